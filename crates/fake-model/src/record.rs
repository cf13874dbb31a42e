//! What is recorded of each request, for the test to inspect.

use serde_json::Value;

use crate::keys::Key;
use crate::protocol::Protocol;

/// A received request, and the outcome of its answer.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its place among all requests, from 0.
    pub number: usize,
    /// The HTTP method.
    pub method: String,
    /// The path with its query, without a key.
    pub path: String,
    /// The headers, names in lower case, without those that contain secrets.
    pub headers: Vec<(String, String)>,
    /// Whether the request has a key, and the right one.
    pub key: Key,
    /// The body as JSON; a text if it is not JSON; null if there is none.
    pub body: Value,
    /// The protocol, if the path is one of a model API.
    pub protocol: Option<Protocol>,
    /// The kind of the request.
    pub kind: Kind,
    /// The outcome of its answer.
    pub outcome: Outcome,
}

impl Request {
    /// The value of a header, unless it contains a secret. The name is in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The request as the validation against the types of the SDKs reads it: the API and the body.
    /// `None` if it is no request for an answer.
    #[must_use]
    pub fn recorded(&self) -> Option<Value> {
        let answered = matches!(self.kind, Kind::Main(_) | Kind::Side(_));
        let protocol = self.protocol.filter(|_| answered)?;
        Some(serde_json::json!({"api": protocol.api(), "body": self.body}))
    }
}

/// The kind of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A request of the main conversation, with the number of the reply that it got (`None` if the
    /// script had none left).
    Main(Option<usize>),
    /// A request outside the main conversation, and how it was recognised.
    Side(&'static str),
    /// A request for a count of tokens.
    CountTokens,
    /// A request for the list of models.
    Models,
    /// A tool of the agent waits at a gate. If its process ends, its outcome is that it left.
    Gate,
    /// It could not be read; the answer states why.
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

/// The outcome of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It is being sent, or waits at a gate.
    Pending,
    /// It was sent completely.
    Sent,
    /// The script cut it.
    Cut,
    /// The agent closed the connection before the end.
    AgentLeft,
}

/// The agent's answer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// The id of the call.
    pub id: String,
    /// The tool that was called.
    pub name: String,
    /// The answer as text; `None` until there is one.
    pub text: Option<String>,
}
