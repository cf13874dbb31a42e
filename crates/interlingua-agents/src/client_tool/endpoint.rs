//! Where an agent finds the tools of its session, in the forms that agents take.
//!
//! What concerns one agent only is in its own file; here is what several of them share.

use std::fmt;
use std::time::Duration;

use serde_json::{Map, Value, json};

/// How long an agent may wait for the answer to a call: longer than a session waits, so that it is
/// the session that ends a call. Timers of JavaScript take no more than 24.8 days.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_hours(24 * 24);

/// Where an agent finds the tools of its session.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The address of the MCP server.
    pub url: String,
    /// The value of the header `Authorization`, which is a secret.
    pub authorization: String,
    /// No tool changes anything, so that several calls may run at once.
    pub only_reads: bool,
}

impl Endpoint {
    /// The headers as an object.
    pub(crate) fn headers(&self) -> Value {
        json!({"Authorization": self.authorization})
    }

    /// The description of a server that speaks HTTP, in the form that most agents take, with further
    /// fields.
    pub(crate) fn http(&self, more: &Value) -> Value {
        let mut server = Map::new();
        server.insert("type".to_owned(), "http".into());
        server.insert("url".to_owned(), self.url.as_str().into());
        server.insert("headers".to_owned(), self.headers());
        server.extend(more.as_object().cloned().into_iter().flatten());
        server.into()
    }

    /// The secret, as it stands in a record.
    pub(crate) fn secret(&self) -> String {
        Value::from(&*self.authorization).to_string()
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Endpoint").field("url", &self.url).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_not_shown() {
        let authorization = "Bearer abc".to_owned();
        let url = "http://127.0.0.1:1/mcp".to_owned();
        let endpoint = Endpoint { url, authorization, only_reads: false };
        let shown = format!("{endpoint:?}");
        assert!(shown.contains("127.0.0.1") && !shown.contains("abc"), "{shown}");
    }
}
