//! What is kept of a tool call: all that is known of an open one, and fingerprints of a closed one.

use crate::event::{Executor, ToolEnded, ToolKind};
use crate::fingerprint::{Fingerprint, of_name, of_optional_name, of_words};
use crate::json::{Json, Text};

/// The name of a tool whose name is not known.
pub(super) const UNNAMED: &str = "unknown";

/// The longest input that is kept for permission requests about a call.
const MAX_INPUT: usize = 1 << 20;

/// The length of the end of a running call's output that is kept.
const MAX_OUTPUT: usize = 64 << 10;

#[derive(Debug)]
pub(super) enum Call {
    Open(Box<OpenCall>),
    Closed(ClosedCall),
}

/// What is kept of a closed call to recognise a repeat.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClosedCall {
    pub(super) outcome: Outcome,
    pub(super) epoch: u64,
    /// The fingerprint of the message that it belongs to.
    pub(super) message: u64,
    /// The fingerprint of its name and input.
    pub(super) content: u64,
    /// The fingerprint of its answer.
    pub(super) answer: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Answered,
    Abandoned,
    /// Closed because its turn waits for the client, and the agent did not report for which call.
    Waiting,
}

#[derive(Debug, Default)]
pub(super) struct OpenCall {
    pub(super) id: String,
    pub(super) order: u64,
    pub(super) epoch: u64,
    /// Its position among the calls of its response that the host runs.
    pub(super) position: u64,
    /// The model generated it again, in a response that was requested again.
    pub(super) reclaimed: bool,
    /// Its turn has ended, and the client can still answer it.
    pub(super) outlasts_turn: bool,
    pub(super) name: String,
    pub(super) kind: ToolKind,
    pub(super) executor: Executor,
    pub(super) parent: Option<Text<'static>>,
    pub(super) message: Option<Text<'static>>,
    pub(super) input_known: bool,
    /// The input; empty where it is not known or too long to keep.
    pub(super) input: String,
    /// What was streamed of the input of a client's tool, by which its call is found.
    pub(super) streamed_input: String,
    /// The fingerprint of the input.
    pub(super) input_number: u64,
    /// The end of its output so far.
    pub(super) output: String,
}

impl OpenCall {
    /// Whether it is a call of the client whose turn, or whose process, is gone. A log that is read again is one
    /// stream of several processes.
    pub(super) fn waits_since_before(&self, epoch: u64) -> bool {
        self.executor == Executor::Client && (self.outlasts_turn || self.epoch != epoch)
    }

    /// Keeps the input, if it is known.
    pub(super) fn set_input(&mut self, input: Option<&Json<'_>>) {
        self.input_known = input.is_some();
        self.input_number = input_number(input);
        if let Some(input) = input.filter(|input| input.get().len() <= MAX_INPUT) {
            self.input.push_str(input.get());
        }
    }

    /// Appends to what was streamed of the input, if that is not too long to keep.
    pub(super) fn stream_input(&mut self, piece: &str) {
        if self.streamed_input.len() + piece.len() <= MAX_INPUT {
            self.streamed_input.push_str(piece);
        }
    }

    /// Appends to the output, of which only the end is kept.
    pub(super) fn append_output(&mut self, piece: &str) {
        self.output.push_str(piece);
        // Trimming only at twice the limit keeps the cost of moving the rest linear.
        if self.output.len() > 2 * MAX_OUTPUT {
            let start = self.output.ceil_char_boundary(self.output.len() - MAX_OUTPUT);
            self.output.drain(..start);
        }
    }

    /// The name of its tool, for events that do not contain it.
    pub(super) fn known_name(&self) -> Option<Text<'_>> {
        (self.name != UNNAMED).then(|| Text::plain(&self.name))
    }

    pub(super) fn known_input(&self) -> Option<Json<'_>> {
        (!self.input.is_empty()).then(|| Json::read_from(&self.input))
    }

    /// The output that it wrote before it was stopped.
    pub(super) fn partial_output(&self) -> Option<Json<'static>> {
        (!self.output.is_empty()).then(|| Json::from(&Text::plain(&self.output)))
    }
}

impl Call {
    /// Closes a call, and returns what was known of it.
    pub(super) fn end(&mut self, outcome: Outcome, answer: u64) -> Option<Box<OpenCall>> {
        let Self::Open(open) = self else { return None };
        let closed = ClosedCall {
            outcome,
            epoch: open.epoch,
            message: of_optional_name(&open.message),
            content: content_number(&open.name, open.input_number),
            answer,
        };
        match std::mem::replace(self, Self::Closed(closed)) {
            Self::Open(open) => Some(open),
            Self::Closed(_) => None,
        }
    }
}

impl ClosedCall {
    /// Whether a call with the same id in this message is the same call.
    pub(super) fn repeats_message(&self, message: &Option<Text<'_>>) -> bool {
        message.is_some() && of_optional_name(message) == self.message
    }
}

pub(super) fn input_number(input: Option<&Json<'_>>) -> u64 {
    input.map_or(0, |input| Fingerprint::of(input.get().as_bytes()).number())
}

pub(super) fn content_number(name: &str, input: u64) -> u64 {
    of_words([of_name(name.as_bytes()), input])
}

/// Whether an answer has no content.
pub(super) fn is_bare(ended: &ToolEnded<'_>) -> bool {
    let ToolEnded { output, structured, exit_code, error, .. } = ended;
    output.is_none() && structured.is_none() && exit_code.is_none() && error.is_none()
}

/// The fingerprint of an answer.
pub(super) fn answer_number(ended: &ToolEnded<'_>) -> u64 {
    let json = |json: &Option<Json<'_>>| input_number(json.as_ref());
    of_words([
        of_name(ended.status.as_str().as_bytes()),
        json(&ended.output),
        json(&ended.structured),
        ended.exit_code.map_or(u64::MAX, i64::cast_unsigned),
        of_optional_name(&ended.error),
    ])
}

/// The key of a call: the fingerprint of its id.
#[inline]
pub(in crate::grammar) fn key(call: &Text<'_>) -> u64 {
    of_name(call.to_plain().as_bytes())
}
