//! The protocols of model APIs, one module each, and their common parts.
//!
//! A protocol parses a request into a [`Conversation`] and writes an [`Answer`] as a stream, as one
//! JSON value or as an error. It does not know the script, the checks or the network.

mod chat;
mod failure;
mod gemini;
mod messages;
mod responses;

use serde_json::{Map, Value};

use crate::conversation::Conversation;
use crate::play::{Beat, first_half};
use crate::script::{
    ApiError, ChatForm, ErrorEvent, GeminiForm, MessagesForm, Reply, ResponsesForm, Sending, Stop,
    Usage,
};

pub(crate) use failure::ErrorAnswer;

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
    /// The name of the API in recorded requests.
    pub(crate) fn api(self) -> &'static str {
        match self {
            Self::Responses => "openai-responses",
            Self::Chat => "openai-chat",
            Self::Messages => "anthropic",
            Self::Gemini => "gemini",
        }
    }

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

    /// The pieces of an answer as they must come back: the blocks of a message, the parts of a
    /// content, items, or one message. In a stream of Gemini, each delta is a part.
    pub(crate) fn pieces(self, answer: &Answer, streamed: bool) -> Vec<Value> {
        let list = |body: Value, field| body.get(field).and_then(Value::as_array).cloned();
        match self {
            Self::Responses => list(responses::body(answer), "output").unwrap_or_default(),
            Self::Messages => list(messages::body(answer), "content").unwrap_or_default(),
            Self::Chat => vec![chat::message(answer)],
            Self::Gemini => gemini::parts_to_return(answer, streamed),
        }
    }

    /// Writes an HTTP error.
    pub(crate) fn error(self, error: &ApiError, number: usize) -> ErrorAnswer {
        let body = match self {
            Self::Responses | Self::Chat => chat::error(error),
            Self::Messages => messages::error(error, &failure::request_id(number)),
            Self::Gemini => gemini::error(error),
        };
        let mut headers = self.headers(number);
        let seconds = error.retry_after;
        headers.extend(seconds.map(|seconds| ("retry-after".to_owned(), seconds.to_string())));
        ErrorAnswer { status: error.status, headers, body }
    }

    /// Writes an error inside a stream.
    pub(crate) fn error_event(self, error: &ErrorAnswer, form: ErrorEvent) -> String {
        match self {
            Self::Responses => responses::error_event(error, form),
            Self::Messages => named("error", &error.body),
            Self::Chat | Self::Gemini => data(&error.body),
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

/// A reply that is ready to be written: its tools are chosen, its calls have ids, and its blocks
/// have signatures.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// The number of the request, from which ids are generated.
    pub(crate) number: usize,
    /// The model that the request named.
    pub(crate) model: String,
    /// The content.
    pub(crate) blocks: Vec<Block>,
    /// The counts, unless the answer reports none.
    pub(crate) usage: Option<Usage>,
    pub(crate) stop: Stop,
    /// Whether a stream of Chat Completions ends with the counts.
    pub(crate) wants_usage: bool,
    /// Whether the answer ends at its last checkpoint.
    pub(crate) continued: bool,
    pub(crate) forms: Forms,
}

/// The variants of the protocols.
#[derive(Debug, Clone, Default)]
pub(crate) struct Forms {
    pub(crate) messages: MessagesForm,
    pub(crate) responses: ResponsesForm,
    pub(crate) chat: ChatForm,
    pub(crate) gemini: GeminiForm,
}

impl Forms {
    pub(crate) fn of(reply: &Reply) -> Self {
        Self {
            messages: reply.messages.clone(),
            responses: reply.responses.clone(),
            chat: reply.chat.clone(),
            gemini: reply.gemini.clone(),
        }
    }
}

impl Answer {
    pub(crate) fn has_calls(&self) -> bool {
        self.blocks.iter().any(|block| matches!(block.content, Content::Call(_)))
    }

    /// The text with which the model refuses, if it does.
    pub(crate) fn refusal(&self) -> Option<String> {
        let mut blocks = self.blocks.iter().filter(|block| block.content == Content::Refusal);
        let first = blocks.next()?.text();
        Some(blocks.fold(first, |text, block| text + &block.text()))
    }
}

/// A block of an answer, in the deltas in which it is sent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Block {
    pub(crate) content: Content,
    pub(crate) bits: Vec<Bit>,
    /// The value that must come back unchanged: the signature of reasoning, or hidden reasoning.
    pub(crate) signature: Option<String>,
}

/// The kind of a block.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    Reasoning,
    /// Reasoning whose text is hidden.
    Redacted,
    Text,
    Refusal,
    Call(SentCall),
    /// A token with which the answer can be continued from here.
    Checkpoint(String),
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
    pub(crate) sending: Sending,
}

impl SentCall {
    /// The input as the agent will read it.
    pub(crate) fn input_text(&self) -> String {
        if let Some(text) = &self.sending.raw_arguments {
            return text.clone();
        }
        match &self.input {
            Value::String(text) if self.free_text => text.clone(),
            input => input.to_string(),
        }
    }

    /// The input as an object; raw arguments that are none are an empty one.
    pub(crate) fn input_object(&self) -> Value {
        match &self.sending.raw_arguments {
            None => self.input.clone(),
            Some(text) => {
                let parsed = serde_json::from_str::<Value>(text).ok();
                parsed.filter(Value::is_object).unwrap_or_else(|| Value::Object(Map::new()))
            }
        }
    }

    /// The block of the call: its input in deltas, with the gate after the first.
    pub(crate) fn into_block(self, gate_inside: Option<String>) -> Block {
        let text = self.input_text();
        let mut deltas = match &self.sending.split_arguments {
            _ if self.sending.truncated => vec![first_half(&text)],
            Some(positions) => split(&text, positions),
            None => split(&text, &[first_half(&text).len()]),
        };
        let rest = deltas.split_off(1.min(deltas.len()));
        let delta = |delta: &str| Bit::Delta(delta.to_owned());
        let mut bits: Vec<Bit> = deltas.into_iter().map(delta).collect();
        bits.extend(gate_inside.map(Bit::Gate));
        bits.extend(rest.into_iter().map(delta));
        Block { content: Content::Call(self), bits, signature: None }
    }
}

/// Splits a text at byte positions; one inside a character moves to its start.
fn split<'a>(text: &'a str, positions: &[usize]) -> Vec<&'a str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    for position in positions {
        let end = text.floor_char_boundary((*position).min(text.len())).max(start);
        pieces.extend(text.get(start..end));
        start = end;
    }
    pieces.extend(text.get(start..));
    pieces
}

impl Block {
    /// Whether a part of this kind that follows belongs to the block. Gates inside a text do.
    pub(crate) fn takes(&self, content: &Content) -> bool {
        let streamed =
            matches!(self.content, Content::Text | Content::Reasoning | Content::Refusal);
        self.content == *content && *content != Content::Redacted
            || *content == Content::Gates && streamed
    }

    /// The id of the call, if the block is one.
    pub(crate) fn call_id(&self) -> Option<&str> {
        match &self.content {
            Content::Call(call) => Some(&call.id),
            _ => None,
        }
    }

    /// The concatenated deltas.
    pub(crate) fn text(&self) -> String {
        self.deltas().collect()
    }

    /// Only the deltas.
    pub(crate) fn deltas(&self) -> impl Iterator<Item = &str> {
        self.bits.iter().filter_map(|bit| match bit {
            Bit::Delta(delta) => Some(delta.as_str()),
            Bit::Gate(_) => None,
        })
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
