//! The messages of JSON-RPC, which the drivers of ACP, of Codex's app-server and of Copilot's headless mode
//! exchange.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Step;

/// A message from the agent, of which only the envelope is parsed.
#[derive(Debug, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) method: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

impl<'a> Message<'a> {
    pub(super) fn of(record: &'a str) -> Option<Self> {
        serde_json::from_str(record).ok()
    }

    /// The id in the form that events use: a string without its quotes.
    pub(super) fn id_text(&self) -> Option<String> {
        let raw = self.id?.get();
        Some(serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.to_owned()))
    }
}

/// The form of the messages to the agent.
#[derive(Debug, Clone, Copy)]
pub(super) enum Envelope {
    /// As in the standard, with `"jsonrpc": "2.0"`.
    Standard,
    /// Without a version, as Codex writes them.
    WithoutVersion,
}

/// The error code of the standard for a method that the receiver does not have.
const METHOD_NOT_FOUND: i64 = -32601;

impl Envelope {
    pub(super) fn request(self, id: u64, method: &str, params: &Value) -> Step {
        Step::Send(self.record(id, method, params))
    }

    /// The record of a request.
    pub(super) fn record(self, id: u64, method: &str, params: &Value) -> String {
        self.versioned(json!({"id": id, "method": method, "params": params})).to_string()
    }

    pub(super) fn notification(self, method: &str, params: Option<&Value>) -> Step {
        let mut message = json!({"method": method});
        if let (Some(fields), Some(params)) = (message.as_object_mut(), params) {
            fields.insert("params".to_owned(), params.clone());
        }
        self.send(message)
    }

    /// The answer to a request of the agent.
    pub(super) fn result(self, id: &RawValue, result: &Value) -> Step {
        self.send(json!({"id": id, "result": result}))
    }

    /// Refuses a request of the agent whose method this client does not have.
    pub(super) fn not_supported(self, id: &RawValue, method: &str) -> Step {
        let message = format!("{method} is not supported by this client");
        self.send(json!({"id": id, "error": {"code": METHOD_NOT_FOUND, "message": message}}))
    }

    fn send(self, message: Value) -> Step {
        Step::Send(self.versioned(message).to_string())
    }

    fn versioned(self, mut message: Value) -> Value {
        if let Self::Standard = self {
            set(&mut message, "jsonrpc", "2.0");
        }
        message
    }
}

/// How this client introduces itself.
pub(super) fn client_info() -> Value {
    json!({"name": "interlingua", "title": "Interlingua", "version": env!("CARGO_PKG_VERSION")})
}

/// Adds a field to an object.
pub(super) fn set(object: &mut Value, name: &str, value: impl Into<Value>) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(name.to_owned(), value.into());
    }
}

/// The message of a JSON-RPC error, with its details.
pub(super) fn error_text(error: &RawValue) -> String {
    #[derive(Deserialize)]
    struct Failure {
        message: Option<String>,
        data: Option<Value>,
    }
    let Ok(failure) = serde_json::from_str::<Failure>(error.get()) else {
        return error.get().to_owned();
    };
    let message = failure.message.unwrap_or_else(|| error.get().to_owned());
    match failure.data.as_ref().and_then(|data| data.as_str().or(data.get("details")?.as_str())) {
        Some(details) if !message.contains(details) => format!("{message}: {details}"),
        _ => message,
    }
}
