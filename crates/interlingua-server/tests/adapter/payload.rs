//! Messages of any kind in the log of a session: an entry holds the text of one, and two dialects of
//! our own write that text, as a JSON record or as it is.

use interlingua::dialect::{Dialect, Encoder, Output, Written};
use interlingua::event::{Data, Event, Notice};
use interlingua::json::Text;
use interlingua::{Entry, Origin};
use serde_json::Value;

pub(crate) static JSON: Dialect = Dialect {
    name: "payload-json",
    about: "The messages of a JSON stream",
    encoder: Some(|_| Box::new(Payload { separator: b"\n" })),
    written: Written::Lines,
    ..Dialect::BLANK
};

pub(crate) static TEXT: Dialect = Dialect {
    name: "payload-text",
    about: "The messages of a stream of text",
    encoder: Some(|_| Box::new(Payload { separator: b"" })),
    written: Written::Text,
    ..Dialect::BLANK
};

/// Messages that are no text are stored with a character for each byte.
pub(crate) static BYTES: Dialect = Dialect {
    name: "payload-bytes",
    about: "The messages of a stream of bytes",
    encoder: Some(|_| Box::new(Bytes)),
    written: Written::Text,
    ..Dialect::BLANK
};

#[derive(Debug, Clone)]
struct Payload {
    separator: &'static [u8],
}

#[derive(Debug, Clone)]
struct Bytes;

impl Encoder for Bytes {
    fn encode(&mut self, event: &Event<'_>, out: &mut Output) {
        if let Data::Notice(notice) = &event.data {
            let text = notice.text.to_plain();
            out.bytes().extend(text.chars().filter_map(|letter| u8::try_from(letter).ok()));
        }
    }
}

impl Encoder for Payload {
    fn encode(&mut self, event: &Event<'_>, out: &mut Output) {
        if let Data::Notice(notice) = &event.data {
            out.bytes().extend_from_slice(notice.text.to_plain().as_bytes());
            out.bytes().extend_from_slice(self.separator);
        }
    }
}

pub(crate) fn entry(sequence: u64, text: &str) -> Entry {
    let notice = Notice { text: Text::from(text.to_owned()), ..Notice::default() };
    Entry {
        sequence,
        received_at: None,
        epoch: 0,
        origin: Origin::default(),
        event: Event::new(notice),
        raw: None,
    }
}

pub(crate) fn is_json(kind: &str) -> bool {
    kind.split(';').next().is_some_and(|kind| kind.trim() == "application/json")
}

/// The messages of a body: the elements of an array, one JSON value, or one text. Nothing, if it
/// cannot be one.
pub(crate) fn messages(kind: &str, body: &[u8]) -> Option<Vec<String>> {
    if body.is_empty() {
        return Some(Vec::new());
    }
    if kind.starts_with("text/") {
        return Some(vec![String::from_utf8_lossy(body).into_owned()]);
    }
    if !is_json(kind) {
        return Some(vec![body.iter().copied().map(char::from).collect()]);
    }
    match serde_json::from_slice(body).ok()? {
        Value::Array(values) => Some(values.iter().map(Value::to_string).collect()),
        value => Some(vec![value.to_string()]),
    }
}
