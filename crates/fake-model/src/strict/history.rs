//! A request as what it sends: the system prompt, the tools, and the pieces of its messages.
//!
//! Marks for the cache are not part of it. Messages and Gemini merge neighbouring messages of one
//! role, so their pieces are blocks and parts; in the other protocols, they are messages and items.

use serde_json::{Value, json};

use super::responses::is_output;
use crate::conversation::{items_at, text_at};
use crate::protocol::Protocol;

#[derive(Debug, Clone, Default)]
pub(super) struct History {
    pub(super) system: Value,
    pub(super) tools: Value,
    pub(super) pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Piece {
    pub(super) role: Role,
    pub(super) value: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    System,
    User,
    Model,
}

impl History {
    pub(super) fn of(protocol: Protocol, body: &Value) -> Self {
        let mut body = body.clone();
        remove_marks(&mut body);
        let field = |name: &str| body.get(name).cloned().unwrap_or(Value::Null);
        let (system, pieces) = match protocol {
            Protocol::Messages => (blocks(&field("system")), messages(&body)),
            Protocol::Gemini => {
                let system =
                    body.get("systemInstruction").or_else(|| body.get("system_instruction"));
                (system.cloned().unwrap_or(Value::Null), contents(&body))
            }
            Protocol::Chat => (Value::Null, items_at(&body, "messages").iter().map(chat).collect()),
            Protocol::Responses => (field("instructions"), items(&body)),
        };
        Self { system, tools: field("tools"), pieces }
    }

    /// The first piece of the user, which identifies the conversation.
    pub(super) fn opening(&self) -> Option<&Value> {
        let first = self.pieces.iter().find(|piece| piece.role == Role::User);
        first.map(|piece| &piece.value)
    }
}

fn remove_marks(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("cache_control");
            fields.remove("prompt_cache_breakpoint");
            fields.values_mut().for_each(remove_marks);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_marks),
        _ => {}
    }
}

/// A text as blocks, in which it means the same.
fn blocks(content: &Value) -> Value {
    match content {
        Value::String(text) => json!([{"type": "text", "text": text}]),
        other => other.clone(),
    }
}

fn messages(body: &Value) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for message in items_at(body, "messages") {
        let role = role(text_at(message, "role"));
        let content = blocks(message.get("content").unwrap_or(&Value::Null));
        let content = content.as_array().cloned().unwrap_or_default();
        pieces.extend(content.into_iter().map(|value| Piece { role, value }));
    }
    pieces
}

fn contents(body: &Value) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for content in items_at(body, "contents") {
        let role = role(text_at(content, "role"));
        let parts = items_at(content, "parts").iter();
        pieces.extend(parts.map(|part| Piece { role, value: part.clone() }));
    }
    pieces
}

fn chat(message: &Value) -> Piece {
    let mut value = message.clone();
    if let Some(fields) = value.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    Piece { role: role(text_at(message, "role")), value }
}

fn items(body: &Value) -> Vec<Piece> {
    if let Some(text) = body.get("input").and_then(Value::as_str) {
        let value = json!({"role": "user", "content": text});
        return vec![Piece { role: Role::User, value }];
    }
    let piece = |item: &Value| {
        let role = if is_output(item) { Role::Model } else { role(text_at(item, "role")) };
        Piece { role, value: item.clone() }
    };
    items_at(body, "input").iter().map(piece).collect()
}

fn role(name: &str) -> Role {
    match name {
        "assistant" | "model" => Role::Model,
        "system" | "developer" => Role::System,
        _ => Role::User,
    }
}
