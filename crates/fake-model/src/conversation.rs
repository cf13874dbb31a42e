//! A request, independent of its protocol: the messages and the offered tools.
//!
//! The protocols parse their bodies into this type; the checks and the choice of a reply use
//! nothing else. It knows no wire format.

use serde_json::Value;

/// The content of a request.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// The model, if one is named.
    pub(crate) model: Option<String>,
    /// Whether a stream is requested.
    pub(crate) stream: bool,
    /// Whether the counts are to be sent in a stream; only Chat Completions requests state it.
    pub(crate) wants_usage: bool,
    /// The system prompt.
    pub(crate) instructions: String,
    /// All messages, calls and answers, in order.
    pub(crate) entries: Vec<Entry>,
    /// The tools that the agent runs itself.
    pub(crate) tools: Vec<Tool>,
    /// The one tool that the model must call, if the request forces one.
    pub(crate) forced_tool: Option<String>,
    /// The schema that the answer must fit, if the request has one.
    pub(crate) answer_schema: Option<Value>,
    /// Whether the answer must be JSON, with or without a schema.
    pub(crate) answer_json: bool,
}

impl Conversation {
    /// The user's text before the first message of the model, which identifies the conversation.
    pub(crate) fn opening(&self) -> String {
        let model = |entry: &&Entry| {
            !matches!(entry, Entry::Call { .. } | Entry::Message { role: Role::Model, .. })
        };
        let texts: Vec<&str> =
            self.entries.iter().take_while(model).filter_map(Entry::by_person).collect();
        texts.join("\n")
    }

    /// The id of the next call without an id: the reader of Gemini's requests numbers such calls of
    /// one name. `before` are the calls that precede it in the same answer.
    pub(crate) fn next_unnamed<'a>(
        &'a self,
        name: &str,
        before: impl Iterator<Item = &'a str>,
    ) -> String {
        let earlier = self.entries.iter().filter_map(|entry| match entry {
            Entry::Call { id, .. } => Some(id.as_str()),
            _ => None,
        });
        let unnamed = |id: &&str| id.strip_prefix(name).is_some_and(|rest| rest.starts_with('#'));
        format!("{name}#{}", earlier.chain(before).filter(unnamed).count() + 1)
    }

    /// The last text of the user, or of the agent in the user's name.
    pub(crate) fn last_user_text(&self) -> &str {
        self.entries.iter().rev().find_map(Entry::by_person).unwrap_or_default()
    }
}

/// A message, a call or an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A message, or the text of one.
    Message { role: Role, text: String },
    /// The model called a tool.
    Call { id: String, name: String },
    /// The agent answered a call.
    Answer { id: String, text: String },
    /// An entry that does not matter here: reasoning, references.
    Other,
}

impl Entry {
    fn by_person(&self) -> Option<&str> {
        match self {
            Self::Message { role: Role::User, text } => Some(text),
            _ => None,
        }
    }
}

/// The author of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    System,
    User,
    Model,
    Unknown(String),
}

/// A tool that a request offers.
#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) name: String,
    /// The schema of its input; `None` if it takes free text.
    pub(crate) schema: Option<Value>,
}

impl Tool {
    /// Whether the tool's input has a field of this name.
    pub(crate) fn has_field(&self, field: &str) -> bool {
        self.schema
            .as_ref()
            .and_then(|schema| schema.get("properties"))
            .and_then(|properties| properties.get(field))
            .is_some()
    }
}

/// A text field of an object, or an empty text.
pub(crate) fn text_at<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The items of a list field, or none.
pub(crate) fn items_at<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The text of a content field in any of its forms: a text, or blocks with a `text`.
pub(crate) fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts: Vec<&str> =
                blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect();
            texts.join("\n")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
