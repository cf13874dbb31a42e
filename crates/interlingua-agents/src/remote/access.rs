//! What is known of a session at the service.

use std::fmt;

use interlingua::event::Relay;

/// What is known of a session at the service, by which it is continued.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// The id of the session, or of the chat.
    pub session: Option<String>,
    /// The sandbox in which the agent works.
    pub sandbox: Option<String>,
    /// Where the results of the last run go.
    pub relay: Option<RelayAccess>,
}

/// The relay of a run, to which the results of its calls are sent.
#[derive(Clone, PartialEq, Eq)]
pub struct RelayAccess {
    /// The relay's id of the session.
    pub session: String,
    /// The secret that the relay wants to see.
    pub token: String,
    /// The address.
    pub url: String,
}

/// The token is a secret.
impl fmt::Debug for RelayAccess {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RelayAccess").field("session", &self.session).finish_non_exhaustive()
    }
}

impl RelayAccess {
    /// The relay that a record announces, if the record is complete.
    pub fn of(relay: &Relay<'_>) -> Option<Self> {
        let text = |text: Option<&interlingua::json::Text<'_>>| text.map(ToString::to_string);
        Some(Self {
            session: text(relay.session.as_ref())?,
            token: text(relay.token.reveal())?,
            url: text(relay.url.as_ref())?,
        })
    }
}

#[cfg(test)]
mod tests {
    use interlingua::event::Secret;
    use interlingua::json::Text;

    use super::*;

    #[test]
    fn a_token_is_not_shown() {
        let relay = Relay {
            session: Some(Text::plain("s")),
            token: Secret::new(Some(Text::plain("very-secret"))),
            url: Some(Text::plain("http://h/relay")),
            expires_at: None,
        };
        let access = RelayAccess::of(&relay).unwrap();
        assert_eq!(access.token, "very-secret");
        assert!(!format!("{access:?}").contains("very-secret"));
        assert_eq!(RelayAccess::of(&Relay { url: None, ..relay }), None);
    }
}
