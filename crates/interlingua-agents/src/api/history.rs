//! The history of a conversation: what every request repeats.
//!
//! It is append-only. Current models bind their reasoning to everything before it, so nothing that
//! was sent is ever changed. An answer of the model is kept twice: as the provider wrote it, which
//! is sent back unchanged to the same model API, and as text and calls, which any other one can take.

use serde_json::Value;
use serde_json::value::RawValue;

use super::model::ApiKind;

/// A part of what the user or a tool contributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Text.
    Text(String),
    /// An image.
    Image {
        /// Its media type, for example `image/png`.
        media_type: String,
        /// The bytes in base64.
        data: String,
    },
    /// A document.
    Document {
        /// Its media type, for example `application/pdf`.
        media_type: String,
        /// The bytes in base64.
        data: String,
        /// The name of the file.
        name: String,
    },
}

/// An item of the history.
#[derive(Debug, Clone)]
pub(crate) enum Item {
    /// A prompt of the user.
    User(Vec<Part>),
    /// An answer of the model.
    Answer(Answer),
    /// The results of all calls of the answer before it, in their order.
    Results(Vec<CallResult>),
}

/// An answer of the model.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    /// Its text and its calls, in order.
    pub(crate) content: Vec<Content>,
    /// The answer as the provider wrote it, if it is known.
    pub(crate) native: Option<NativeAnswer>,
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    /// Text for the user.
    Text(String),
    /// A call of a tool.
    Call(AnswerCall),
}

/// A call in an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AnswerCall {
    /// The provider's id, by which the result is found; made up if the provider gave none.
    pub(crate) id: String,
    /// The provider gave no id.
    pub(crate) unnamed: bool,
    pub(crate) name: String,
    pub(crate) input: Value,
}

/// An answer as the provider wrote it.
#[derive(Debug, Clone)]
pub(crate) struct NativeAnswer {
    pub(crate) api: ApiKind,
    pub(crate) model: String,
    /// Messages, or items, in the form in which a request repeats them.
    pub(crate) messages: Vec<Box<RawValue>>,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallResult {
    /// The id of the call, as in its answer.
    pub(crate) call: String,
    /// The provider gave the call no id.
    pub(crate) unnamed: bool,
    pub(crate) name: String,
    pub(crate) content: Vec<Part>,
    pub(crate) is_error: bool,
}

impl CallResult {
    /// The result of a call that was not run, or not to its end.
    pub(crate) fn refused(call: &AnswerCall, why: &str) -> Self {
        Self {
            call: call.id.clone(),
            unnamed: call.unnamed,
            name: call.name.clone(),
            content: vec![Part::Text(why.to_owned())],
            is_error: true,
        }
    }

    /// The texts of the result, joined by line ends.
    pub(crate) fn text(&self) -> String {
        text_of(&self.content)
    }
}

/// The texts among some parts, joined by line ends.
pub(crate) fn text_of(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(&**text),
        Part::Image { .. } | Part::Document { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

impl Answer {
    pub(crate) fn calls(&self) -> impl Iterator<Item = &AnswerCall> {
        self.content.iter().filter_map(|content| match content {
            Content::Call(call) => Some(call),
            Content::Text(_) => None,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.content.is_empty() && self.native.is_none()
    }

    /// The provider's own form, if it is of this API and model. Another model cannot take the
    /// signatures in it.
    pub(crate) fn native_for(&self, api: ApiKind, model: &str) -> Option<&[Box<RawValue>]> {
        let native = self.native.as_ref()?;
        (native.api == api && native.model == model).then_some(&*native.messages)
    }
}

/// The history of a conversation.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    items: Vec<Item>,
}

impl History {
    pub(crate) fn new(items: Vec<Item>) -> Self {
        Self { items }
    }

    pub(crate) fn items(&self) -> &[Item] {
        &self.items
    }

    pub(crate) fn push(&mut self, item: Item) {
        self.items.push(item);
    }

    /// Whether the calls of the last answer have no results.
    pub(crate) fn open_calls(&self) -> Vec<AnswerCall> {
        match self.items.last() {
            Some(Item::Answer(answer)) => answer.calls().cloned().collect(),
            _ => Vec::new(),
        }
    }

    /// Answers the calls that have no results, so that the history is valid: they were cut off by an
    /// interrupt, or by the end of the program.
    pub(crate) fn close_calls(&mut self, why: &str) {
        let open = self.open_calls();
        if open.is_empty() {
            return;
        }
        let results = open.iter().map(|call| CallResult::refused(call, why));
        self.items.push(Item::Results(results.collect()));
    }
}
