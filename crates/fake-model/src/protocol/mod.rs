//! The protocols of model APIs, one module each, and their common parts.
//!
//! A protocol parses a request into a [`Conversation`] and writes an [`Answer`] as a stream, as one
//! JSON value or as an error. It does not know the script, the checks or the network.

mod chat;
mod gemini;
mod messages;
mod responses;

use serde_json::Value;

use crate::conversation::Conversation;
use crate::play::{Beat, first_half};
use crate::script::{ApiError, Stop, Usage};

/// The protocol of a model API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// OpenAI Responses.
    Responses,
    /// OpenAI Chat Completions.
    Chat,
    /// Anthropic Messages.
    Messages,
    /// Gemini.
    Gemini,
}

/// The resource that a path denotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// An answer of the model.
    Generate(Protocol),
    /// A count of tokens.
    CountTokens(Protocol),
    /// The list of models.
    Models(Protocol),
    /// No resource of a model API.
    Unknown,
}

/// Finds the resource that a request denotes. Any prefix of the path is accepted.
pub(crate) fn endpoint(method: &str, path: &str) -> Endpoint {
    let path = path.split('?').next().unwrap_or_default().trim_end_matches('/');
    let ends = |end: &str| path.ends_with(end);
    match method {
        "POST" if ends("/responses") => Endpoint::Generate(Protocol::Responses),
        "POST" if ends("/chat/completions") => Endpoint::Generate(Protocol::Chat),
        "POST" if ends("/messages/count_tokens") => Endpoint::CountTokens(Protocol::Messages),
        "POST" if ends("/messages") => Endpoint::Generate(Protocol::Messages),
        "POST" if ends(":streamGenerateContent") || ends(":generateContent") => {
            Endpoint::Generate(Protocol::Gemini)
        }
        "POST" if ends(":countTokens") => Endpoint::CountTokens(Protocol::Gemini),
        "GET" if ends("/v1beta/models") => Endpoint::Models(Protocol::Gemini),
        "GET" if ends("/models") => Endpoint::Models(Protocol::Chat),
        _ => Endpoint::Unknown,
    }
}

impl Protocol {
    /// Reads the body of a request.
    pub(crate) fn read(self, path: &str, body: &Value) -> Conversation {
        match self {
            Self::Responses => responses::read(body),
            Self::Chat => chat::read(body),
            Self::Messages => messages::read(body),
            Self::Gemini => gemini::read(path, body),
        }
    }

    /// Writes an answer as server-sent events.
    pub(crate) fn stream(self, answer: &Answer) -> Vec<Beat> {
        match self {
            Self::Responses => responses::stream(answer),
            Self::Chat => chat::stream(answer),
            Self::Messages => messages::stream(answer),
            Self::Gemini => gemini::stream(answer),
        }
    }

    /// Writes an answer as one JSON value.
    pub(crate) fn body(self, answer: &Answer) -> Value {
        match self {
            Self::Responses => responses::body(answer),
            Self::Chat => chat::body(answer),
            Self::Messages => messages::body(answer),
            Self::Gemini => gemini::body(answer),
        }
    }

    /// Writes the body of an HTTP error.
    pub(crate) fn error(self, error: &ApiError) -> Value {
        match self {
            Self::Responses | Self::Chat => chat::error(error),
            Self::Messages => messages::error(error),
            Self::Gemini => gemini::error(error),
        }
    }

    /// Writes an error inside a stream.
    pub(crate) fn error_event(self, error: &ApiError) -> String {
        match self {
            Self::Responses => responses::error_event(error),
            Self::Chat => data(&chat::error(error)),
            Self::Messages => named("error", &messages::error(error)),
            Self::Gemini => data(&gemini::error(error)),
        }
    }

    /// Writes a count of tokens.
    pub(crate) fn token_count(self, tokens: usize) -> Value {
        match self {
            Self::Gemini => gemini::token_count(tokens),
            _ => messages::token_count(tokens),
        }
    }

    /// Lists the one model.
    pub(crate) fn models(self) -> Value {
        match self {
            Self::Gemini => gemini::models(),
            _ => chat::models(),
        }
    }
}

/// A reply that is ready to be written: its tools are chosen, and its calls have ids.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// The number of the request, from which ids are generated.
    pub(crate) number: usize,
    /// The model that the request named.
    pub(crate) model: String,
    /// The content.
    pub(crate) blocks: Vec<Block>,
    pub(crate) usage: Usage,
    pub(crate) stop: Stop,
    /// Whether a stream of Chat Completions ends with the counts.
    pub(crate) wants_usage: bool,
}

impl Answer {
    pub(crate) fn has_calls(&self) -> bool {
        self.blocks.iter().any(|block| matches!(block.content, Content::Call(_)))
    }
}

/// A block of an answer, in the deltas in which it is sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Block {
    pub(crate) content: Content,
    pub(crate) bits: Vec<Bit>,
}

/// The kind of a block.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    Reasoning,
    Text,
    Call(SentCall),
    /// No block, but gates between blocks.
    Gates,
}

/// A delta of a block, or a gate in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bit {
    Delta(String),
    Gate(String),
}

/// A call with its id.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SentCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) input: Value,
    /// Whether the tool takes free text instead of JSON.
    pub(crate) free_text: bool,
}

impl SentCall {
    /// The input as the agent will read it.
    pub(crate) fn input_text(&self) -> String {
        match &self.input {
            Value::String(text) if self.free_text => text.clone(),
            input => input.to_string(),
        }
    }

    /// The block of the call: its input in two deltas, with the gate between them.
    pub(crate) fn into_block(self, gate_inside: Option<String>) -> Block {
        let text = self.input_text();
        let half = first_half(&text);
        let rest = text.get(half.len()..).unwrap_or_default();
        let mut bits = vec![Bit::Delta(half.to_owned())];
        bits.extend(gate_inside.map(Bit::Gate));
        bits.push(Bit::Delta(rest.to_owned()));
        Block { content: Content::Call(self), bits }
    }
}

impl Block {
    /// The concatenated deltas.
    pub(crate) fn text(&self) -> String {
        let deltas = self.bits.iter().filter_map(|bit| match bit {
            Bit::Delta(delta) => Some(delta.as_str()),
            Bit::Gate(_) => None,
        });
        deltas.collect()
    }

    /// Only the gates.
    pub(crate) fn gates(&self) -> impl Iterator<Item = Beat> {
        self.bits.iter().filter_map(|bit| match bit {
            Bit::Gate(name) => Some(Beat::Gate(name.clone())),
            Bit::Delta(_) => None,
        })
    }

    /// Writes each delta with `write`, and keeps each gate.
    pub(crate) fn beats(&self, mut write: impl FnMut(&str) -> Beat) -> Vec<Beat> {
        let beat = |bit: &Bit| match bit {
            Bit::Delta(delta) => write(delta),
            Bit::Gate(name) => Beat::Gate(name.clone()),
        };
        self.bits.iter().map(beat).collect()
    }
}

/// Sets a field of an object.
pub(crate) fn set(object: &mut Value, field: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(field.to_owned(), value);
    }
}

/// An event without a name.
pub(crate) fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

/// An event with a name.
pub(crate) fn named(name: &str, value: &Value) -> String {
    format!("event: {name}\ndata: {value}\n\n")
}
