//! The script: the replies of the model, independent of any protocol.
//!
//! A script is built in Rust or parsed from JSON; both use the same names. It does not know how a
//! reply is written, nor which tools a request offers.

mod build;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A list of replies, and the expected properties of requests.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// The replies, one for each request of the main conversation.
    pub replies: Vec<Reply>,
    /// What happens when the replies are used up.
    pub at_end: AtEnd,
    /// The key that the agent was given. It is compared with that of each request and never
    /// recorded.
    pub key: String,
    /// Whether a request of the main conversation must request a stream; `null` accepts both.
    pub expect_stream: Option<bool>,
    /// The text of the answer to a side request.
    pub side_text: String,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            replies: Vec::new(),
            at_end: AtEnd::Exhausted,
            key: "dummy".to_owned(),
            expect_stream: Some(true),
            side_text: "A side answer".to_owned(),
        }
    }
}

/// What happens when the replies are used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AtEnd {
    /// The text `(script exhausted)` is sent, and there is a finding.
    Exhausted,
    /// The last reply is sent again.
    RepeatLast,
}

/// One reply of the model: its parts in order, and how it ends; or an error instead.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reply {
    /// The conversation that the reply is reserved for, given by text of its prompt: for
    /// sub-agents, whose requests arrive in any order. Without it, the reply is for conversations
    /// that have no reply of their own.
    pub only_for: Option<String>,
    /// The reply answers all requests until the test opens the gate of this name: for an agent that
    /// retries as often as it likes. From then on, it is skipped.
    pub until: Option<String>,
    /// The content, in deltas.
    pub parts: Vec<Part>,
    /// The counts that are reported.
    pub usage: Usage,
    /// The pause between two deltas, in milliseconds.
    pub delay_ms: u64,
    /// Why the model stopped.
    pub stop: Stop,
    /// How the transport ends.
    pub ending: Ending,
    /// An HTTP error instead of all of the above.
    pub error: Option<ApiError>,
}

/// A part of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A delta of reasoning.
    Reasoning(String),
    /// A text delta.
    Text(String),
    /// A tool call.
    Call(Call),
    /// The reply waits here until the test opens the gate of this name.
    Gate(String),
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Call {
    /// The tool and its input as given.
    Raw {
        /// The name of the tool.
        name: String,
        /// Its input: an object, or a text for a tool that takes free text.
        input: Value,
        /// A gate in the middle of the input.
        #[serde(default)]
        gate_inside: Option<String>,
    },
    /// The tool that the request offers for the action.
    Action {
        /// The action.
        action: Action,
        /// A gate in the middle of the input.
        #[serde(default)]
        gate_inside: Option<String>,
    },
}

/// An action for which every agent has a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Runs a shell command.
    Shell {
        /// The command.
        command: String,
    },
    /// Writes a file.
    Write {
        /// The file; preferably an absolute path, since some agents require it.
        path: String,
        /// The content of the file.
        content: String,
    },
    /// Reads a file.
    Read {
        /// The file; preferably an absolute path, since some agents require it.
        path: String,
    },
    /// Runs a shell command that waits until the test opens a gate, for interrupts in a tool. The
    /// command needs `bash` and access to the server, which a sandbox may deny.
    WaitAtGate {
        /// The name of the gate.
        gate: String,
    },
}

/// Token counts. Each protocol gets them as it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// All input tokens, including cached ones.
    pub input: u64,
    /// All output tokens, including those of reasoning.
    pub output: u64,
    /// The cached input tokens.
    pub cached: u64,
    /// The output tokens of reasoning.
    pub reasoning: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 100, output: 20, cached: 0, reasoning: 0 }
    }
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It completed its answer, or waits for its tool calls.
    #[default]
    Done,
    /// The limit of output tokens was reached.
    Length,
    /// The model, or a filter, refused to continue.
    Refusal,
}

/// How the transport ends.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Normally.
    #[default]
    Complete,
    /// With an error event in place of the last event. Without a stream: with an HTTP error.
    Error(ApiError),
    /// With a cut connection.
    Cut(Cut),
}

/// Where the connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// Before the first byte of the answer.
    BeforeFirstByte,
    /// In the middle of the event with the last text delta (or the last delta of reasoning or of a
    /// call, if there is no text).
    InText,
    /// Before the event that states why the model stopped.
    BeforeLastEvent,
    /// At the same position, but the HTTP response ends normally, like that of a short answer.
    QuietBeforeLastEvent,
}

/// An error of the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApiError {
    /// The HTTP status.
    pub status: u16,
    /// The message of the API.
    pub message: String,
    /// The seconds of the header `retry-after`.
    #[serde(default)]
    pub retry_after: Option<u64>,
}
