//! The script: the replies of the model, independent of any protocol.
//!
//! A script is built in Rust or parsed from JSON; both use the same names. It does not know how a
//! reply is written, nor which tools a request offers.

mod build;
mod build_forms;
mod failure;
mod form;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use failure::{Failure, FailureClass, RawAnswer};
pub use form::{
    CallArguments, CallIndex, ChatForm, ErrorEvent, GeminiForm, MessagesForm, ResponsesForm,
    SignaturePlace,
};

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
    /// Whether requests outside the main conversation are recognised and answered by themselves.
    /// Without it, every request takes a reply.
    pub side_requests: bool,
    /// Whether a request must also keep the rules that an agent of our own can keep: a history that
    /// only grows, signatures that come back as they were sent, the newest version of each API.
    pub strict: bool,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            replies: Vec::new(),
            at_end: AtEnd::Exhausted,
            key: "dummy".to_owned(),
            expect_stream: Some(true),
            side_text: "A side answer".to_owned(),
            side_requests: true,
            strict: false,
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
    /// An HTTP error of a class, as each API reports it, instead of a reply.
    pub failure: Option<Failure>,
    /// The first request that continues the reply after a checkpoint gets this HTTP error. Gemini
    /// only.
    pub continuation_failure: Option<Failure>,
    /// Any status, headers and body instead of a reply.
    pub raw: Option<RawAnswer>,
    /// The answer, head included, is held back until the test opens the gate of this name.
    pub hold: Option<String>,
    /// The answer is one JSON value although a stream was requested.
    pub whole_json: bool,
    /// The answer reports no counts.
    pub without_usage: bool,
    /// Variants of Anthropic Messages.
    pub messages: MessagesForm,
    /// Variants of OpenAI Responses.
    pub responses: ResponsesForm,
    /// Variants of Chat Completions.
    pub chat: ChatForm,
    /// Variants of Gemini.
    pub gemini: GeminiForm,
}

/// A part of a reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A delta of reasoning.
    Reasoning(String),
    /// A block of reasoning whose text the provider hides: `redacted_thinking`, or a reasoning item
    /// without a summary. Gemini and plain Chat Completions have no such block and omit it.
    RedactedReasoning,
    /// A text delta.
    Text(String),
    /// A JSON value as text, for structured output.
    Json(Value),
    /// A delta of the text with which the model refuses. Anthropic and Gemini report it beside the
    /// reason why the model stopped.
    Refusal(String),
    /// A tool call.
    Call(Call),
    /// The reply waits here until the test opens the gate of this name.
    Gate(String),
    /// Gemini sends a `continuationToken` here; a request with the token gets the rest of the
    /// reply. The other protocols omit it.
    Checkpoint,
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
        /// How the input is sent.
        #[serde(default)]
        sending: Sending,
    },
    /// The tool that the request offers for the action.
    Action {
        /// The action.
        action: Action,
        /// A gate in the middle of the input.
        #[serde(default)]
        gate_inside: Option<String>,
        /// How the input is sent.
        #[serde(default)]
        sending: Sending,
    },
}

/// How the input of a call is sent. Gemini sends it whole.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sending {
    /// The byte positions at which the input is split into deltas, instead of its middle. A position
    /// inside a character moves to its start.
    pub split_arguments: Option<Vec<usize>>,
    /// Only the first half of the input is sent, as when the limit of output tokens is reached
    /// inside it (`stop: length`). Gemini omits the call.
    pub truncated: bool,
    /// This text is sent as the input, whether it is valid JSON or not. Where the API needs an
    /// object, one that is not valid becomes an empty one.
    pub raw_arguments: Option<String>,
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
    /// All input tokens, including cached ones and those written to the cache.
    pub input: u64,
    /// All output tokens, including those of reasoning.
    pub output: u64,
    /// The input tokens that were read from the cache.
    pub cached: u64,
    /// The input tokens that were written to the cache. Gemini does not report them.
    pub cache_write: u64,
    /// The output tokens of reasoning.
    pub reasoning: u64,
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 100, output: 20, cached: 0, cache_write: 0, reasoning: 0 }
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
    /// With an error event of a class, as each API reports it, in place of the last event.
    Failure(Failure),
    /// With a cut connection.
    Cut(Cut),
    /// At the last checkpoint, with the `finishReason` `CONTINUATION`. Gemini only: the other
    /// protocols end normally.
    Continuation,
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
    /// In the middle of the event with the last delta of a call's input. Calls before it are
    /// complete.
    InCall,
    /// After the last call, which is complete, and before anything that follows it.
    AfterCalls,
    /// After the last checkpoint.
    AfterCheckpoint,
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
