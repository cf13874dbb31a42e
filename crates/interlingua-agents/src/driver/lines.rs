//! The agent's lines, as far as a driver has to look at them.

use interlingua::framing::{Body, Framing, Limits, Lines};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Cuts what an agent prints into lines, and hands on those that are records.
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

/// Cuts what an agent prints into lines, and gives them as they are, for somebody who passes them on.
#[derive(Debug, Default)]
pub(super) struct RawLines {
    part: Vec<u8>,
}

/// A line that is longer than this is handed on in pieces: it is none that a driver looks at.
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

    /// What is left, where the last line has no end.
    pub(super) fn rest(&mut self) -> Option<Vec<u8>> {
        Some(std::mem::take(&mut self.part)).filter(|part| !part.is_empty())
    }
}

/// A JSON-RPC message, of which only the envelope is read.
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

    /// The id as our events name it: a string without its quotes.
    pub(super) fn id_text(&self) -> Option<String> {
        let raw = self.id?.get();
        Some(serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.to_owned()))
    }
}

/// Gives some parameters one more.
pub(super) fn set(params: &mut serde_json::Value, name: &str, value: &str) {
    if let Some(fields) = params.as_object_mut() {
        fields.insert(name.to_owned(), value.into());
    }
}

/// What a JSON-RPC error says.
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
