//! A request as all protocols mean it: who said what, which tools are offered.
//!
//! The protocols read their bodies into this; the checks and the choice of a reply look at nothing
//! else. It knows no wire form.

use serde_json::Value;

/// What a request says.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// The model, if one is named.
    pub(crate) model: Option<String>,
    /// Whether a stream is asked for.
    pub(crate) stream: bool,
    /// Whether the counts are to be sent in a stream; only Chat Completions ask.
    pub(crate) wants_usage: bool,
    /// The system prompt.
    pub(crate) instructions: String,
    /// Everything that was said, in order.
    pub(crate) entries: Vec<Entry>,
    /// The tools that the agent runs itself.
    pub(crate) tools: Vec<Tool>,
    /// The one tool that the model is told to call, if it is told so.
    pub(crate) forced_tool: Option<String>,
    /// The schema that the answer must fit, if the request has one.
    pub(crate) answer_schema: Option<Value>,
    /// Whether the answer must be JSON, with or without a schema.
    pub(crate) answer_json: bool,
}

impl Conversation {
    /// What the person said before the model first spoke: it tells conversations apart.
    pub(crate) fn opening(&self) -> String {
        let model = |entry: &&Entry| {
            !matches!(entry, Entry::Call { .. } | Entry::Message { role: Role::Model, .. })
        };
        let texts: Vec<&str> =
            self.entries.iter().take_while(model).filter_map(Entry::by_person).collect();
        texts.join("\n")
    }

    /// What the person, or the agent in the person's name, said last.
    pub(crate) fn last_user_text(&self) -> &str {
        self.entries.iter().rev().find_map(Entry::by_person).unwrap_or_default()
    }
}

/// One thing that was said.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A message, or the text of one.
    Message { role: Role, text: String },
    /// The model called a tool.
    Call { id: String, name: String },
    /// The agent answered a call.
    Answer { id: String, text: String },
    /// Something without a meaning here: reasoning, references.
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

/// Who speaks.
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
    /// The schema of its input; nothing if it takes free text.
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
