//! Recognises a protocol by its first records.

use crate::json::read::{self, Fields};
use crate::json::{Json, Text};

/// The confidence that a stream is in a dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// The stream is not in the dialect.
    No,
    /// The stream may be in the dialect.
    Maybe,
    /// The record occurs in no other dialect.
    Sure,
}

/// The fields of a record whose protocol is still unknown.
#[derive(Debug)]
pub struct Probe<'a> {
    fields: Fields<'a>,
}

impl<'a> Probe<'a> {
    /// Reads the text of a record; `None` if it is not a record.
    pub fn of(text: &'a str) -> Option<Self> {
        let mut fields = Fields::default();
        read::record(text, &mut fields).ok().map(|_| Self { fields })
    }

    /// Whether the record has a field.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The text of a field, if it is a string.
    pub fn text(&self, name: &str) -> Option<Text<'_>> {
        self.get(name).and_then(Json::as_text)
    }

    /// The record's `type`, or an empty string.
    pub fn kind(&self) -> String {
        self.text("type").map(|text| text.to_plain().into_owned()).unwrap_or_default()
    }

    /// Whether an object in the record has a field.
    pub fn has_inside(&self, name: &str, field: &str) -> bool {
        let inside = self.get(name).and_then(read::record_of::<Fields<'_>>);
        inside.is_some_and(|inside| inside.0.iter().any(|(name, _)| **name == *field))
    }

    fn get(&self, name: &str) -> Option<&Json<'a>> {
        self.fields.0.iter().find(|(field, _)| **field == *name).map(|(_, value)| value)
    }
}
