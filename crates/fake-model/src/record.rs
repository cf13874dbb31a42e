//! What is kept of each request, for the test to look at.

use serde_json::Value;

use crate::keys::Key;
use crate::protocol::Protocol;

/// A request that came, and how its answer went.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its place among all requests, from 0.
    pub number: usize,
    /// The HTTP method.
    pub method: String,
    /// The path with its query, without a key.
    pub path: String,
    /// The headers, names in lower case, without those that hold secrets.
    pub headers: Vec<(String, String)>,
    /// Whether a key came, and the right one.
    pub key: Key,
    /// The body as JSON; a text if it is not JSON; null if there is none.
    pub body: Value,
    /// The protocol, if the path is one of a model API.
    pub protocol: Option<Protocol>,
    /// What it was taken for.
    pub kind: Kind,
    /// How its answer went.
    pub outcome: Outcome,
}

/// What a request was taken for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A request of the main conversation, with the number of the reply that it got (nothing if the
    /// script had none left).
    Main(Option<usize>),
    /// A request beside the main conversation, and how that was seen.
    Side(&'static str),
    /// It asks how many tokens something has.
    CountTokens,
    /// It asks which models there are.
    Models,
    /// A tool of the agent stands at a gate. If its process ends, its outcome is that it left.
    Gate,
    /// It could not be read; the answer said why.
    Unreadable,
    /// A path that no model API has; the answer was 404.
    Unknown,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Main(Some(reply)) => write!(formatter, "reply {reply}"),
            Self::Main(None) => write!(formatter, "no reply left"),
            Self::Side(reason) => write!(formatter, "side request: {reason}"),
            Self::CountTokens => write!(formatter, "count of tokens"),
            Self::Models => write!(formatter, "list of models"),
            Self::Gate => write!(formatter, "a tool at a gate"),
            Self::Unreadable => write!(formatter, "not readable"),
            Self::Unknown => write!(formatter, "not found"),
        }
    }
}

/// How an answer went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It is still on its way, or stands at a gate.
    Pending,
    /// It was sent to its end.
    Sent,
    /// The script cut it.
    Cut,
    /// The agent closed the connection before the end.
    AgentLeft,
}

/// What an agent sent back for a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The id of the call.
    pub id: String,
    /// The tool that was called.
    pub name: String,
    /// The answer as text; nothing as long as none came.
    pub text: Option<String>,
}
