//! What can be asked of a session.

use interlingua_agents::permission::{Always, Decision};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// A command for a session, as clients send it and as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type", rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub enum Command {
    /// A prompt. It is queued, and begins a turn when those before it have ended.
    #[serde(rename_all = "camelCase")]
    Prompt {
        /// The text.
        text: String,
        /// What happens if the session waits for an answer.
        #[serde(default)]
        while_pending: WhilePending,
        /// It joins the turn that is running, where the agent can, instead of being queued.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        joins: bool,
    },
    /// Decides a permission request.
    #[serde(rename_all = "camelCase")]
    Decide {
        /// The id of the request, or of its tool call.
        request: String,
        /// Whether it is allowed.
        decision: Verdict,
        /// Why it is denied; the agent receives it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Answers a question, or declines to.
    #[serde(rename_all = "camelCase")]
    Answer {
        /// The id of the request, or of its tool call.
        request: String,
        /// The answer, in the form that the question asks for. Without one, the question is declined. A null
        /// declines a question, too; of a call of the client's tools, it is the result.
        #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "openapi", schema(value_type = Option<Object>))]
        answer: Option<Value>,
        /// Why it is declined; the agent receives it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decline: Option<String>,
    },
    /// Stops the running turn.
    Interrupt,
    /// Ends the session. It takes no more commands, and its stream is closed.
    Close,
}

/// Reads a null as an answer: a tool of the client may return nothing.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

impl Command {
    /// A prompt that is queued behind everything else.
    pub fn prompt(text: impl Into<String>) -> Self {
        Self::Prompt { text: text.into(), while_pending: WhilePending::Queue, joins: false }
    }
}

/// Why something is denied, if its sender does not say.
pub(super) const DENIED: &str = "the user denied it";

/// Why a question or a call is not answered, if its sender does not say.
pub(super) const DECLINED: &str = "the user declined to answer";

/// What happens to a prompt while the session waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum WhilePending {
    /// What waits is answered as superseded, permissions are denied, and the prompt is queued.
    Supersede,
    /// The prompt is queued behind the running turn.
    #[default]
    Queue,
    /// The prompt is refused.
    Reject,
}

/// How a permission request is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Verdict {
    /// This request is allowed.
    Allow,
    /// The same commands or files are allowed for the rest of the session.
    AllowAlways,
    /// It is denied.
    Deny,
}

/// How a request is answered by the handle of an agent.
pub(super) enum Reaction {
    Decide(Decision),
    Always(Always),
}

impl Verdict {
    pub(super) fn reaction(self, reason: Option<String>) -> Reaction {
        match self {
            Self::Allow => Reaction::Decide(Decision::Allow),
            Self::AllowAlways => Reaction::Always(Always::Same),
            Self::Deny => {
                let reason = reason.unwrap_or_else(|| DENIED.to_owned());
                Reaction::Decide(Decision::Deny(reason))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_command_is_read_as_clients_write_it() {
        let read = |json: Value| serde_json::from_value::<Command>(json);
        let prompt = Command::prompt("go");
        assert_eq!(read(json!({"type": "prompt", "text": "go"})).unwrap(), prompt);
        let decide = json!({"type": "decide", "request": "r", "decision": "allowAlways"});
        assert_eq!(serde_json::to_value(read(decide.clone()).unwrap()).unwrap(), decide);
        assert!(read(json!({"type": "prompt", "text": "go", "whilePending": "maybe"})).is_err());
        assert!(read(json!({"type": "fly"})).is_err());
        assert!(read(json!({"type": "prompt", "text": "go", "speed": 1})).is_err());
    }
}
