//! Splits an agent's output into lines for the drivers.

use interlingua::framing::{Body, Framing, Limits, Lines};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Splits output into lines, and yields those that are valid records.
#[derive(Debug)]
pub(super) struct Records {
    lines: Lines,
}

impl Default for Records {
    fn default() -> Self {
        Self { lines: Lines::new(Limits::default()) }
    }
}

impl Records {
    pub(super) fn each(&mut self, chunk: &[u8], mut take: impl FnMut(&str)) {
        self.lines.push(chunk, &mut |frame| {
            if let Body::Text(text) = frame.body {
                take(text.text);
            }
        });
    }
}

/// Splits output into lines and yields them unchanged, for a driver that passes them on.
#[derive(Debug, Default)]
pub(super) struct RawLines {
    part: Vec<u8>,
}

/// A longer line is yielded in pieces; drivers have no interest in lines of this size.
const LONGEST: usize = 16 << 20;

impl RawLines {
    pub(super) fn each(&mut self, chunk: &[u8], mut take: impl FnMut(Vec<u8>)) {
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.part.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.part.len() > LONGEST {
                take(std::mem::take(&mut self.part));
            }
        }
    }

    /// The last line, if it has no line ending.
    pub(super) fn rest(&mut self) -> Option<Vec<u8>> {
        Some(std::mem::take(&mut self.part)).filter(|part| !part.is_empty())
    }
}

/// A JSON-RPC message, of which only the envelope is parsed.
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

/// Adds a field to the parameters.
pub(super) fn set(params: &mut serde_json::Value, name: &str, value: &str) {
    if let Some(fields) = params.as_object_mut() {
        fields.insert(name.to_owned(), value.into());
    }
}

/// The message of a JSON-RPC error, with its details.
pub(super) fn error_text(error: &RawValue) -> String {
    #[derive(Deserialize)]
    struct Failure {
        message: Option<String>,
        data: Option<serde_json::Value>,
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
