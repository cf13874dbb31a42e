//! Finds the record types and fields of a stream that its decoder does not know, such as those of a
//! new release of an agent.
//!
//! A decoder skips fields that it does not read, and keeps records of unknown types. This module
//! counts both, with one example each. It does not count what a dialect leaves out on purpose, with
//! a reason. It knows the [shape](crate::json::Shape) of the records that a dialect reads, and
//! costs nothing unless it is used.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::dialect::Dialect;
use crate::event::Unknown;
use crate::json::Shape;

/// The maximum length of an example.
const MAX_EXAMPLE: usize = 160;

/// The number of types or fields that are listed one by one; the rest is only counted.
const MAX_LISTED: usize = 1000;

/// Record types or fields that a dialect leaves out on purpose.
#[derive(Debug, Clone, Copy)]
pub struct Ignored {
    /// Types of records with all their fields, or fields by their path: `type`, or
    /// `type: field.inner`. A `*` matches any text. Of a type with a `?` after it, only some records
    /// are left out, so its fields are not.
    pub what: &'static [&'static str],
    /// Why nothing is lost.
    pub why: &'static str,
}

/// The unknown types and fields of a stream.
#[derive(Debug, Clone)]
pub struct Explanation {
    dialect: &'static Dialect,
    types: BTreeMap<String, Seen>,
    fields: BTreeMap<String, Seen>,
    /// The current record. The fields of a record of an unknown type are not counted.
    current: Option<(String, u64)>,
    /// The number of occurrences beyond those that are listed.
    further: u64,
}

/// How often something occurred, and one example of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The number of occurrences.
    pub count: u64,
    /// The line of its first occurrence in the input.
    pub line: u64,
    /// Its first value, shortened.
    pub example: String,
}

impl Explanation {
    pub(crate) fn of(dialect: &'static Dialect) -> Self {
        let (types, fields) = (BTreeMap::new(), BTreeMap::new());
        Self { dialect, types, fields, current: None, further: 0 }
    }

    /// The unknown types of records.
    pub fn types(&self) -> impl Iterator<Item = (&str, &Seen)> {
        self.types.iter().map(|(name, seen)| (&**name, seen))
    }

    /// The fields that are not read, as the type of the record and the path of the field in it.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Seen)> {
        self.fields.iter().map(|(path, seen)| (&**path, seen))
    }

    /// The number of occurrences beyond those that are listed one by one.
    pub fn further(&self) -> u64 {
        self.further
    }

    /// Whether everything was known.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty() && self.fields.is_empty()
    }

    /// Counts a record of an unknown type.
    pub(crate) fn unknown(&mut self, unknown: &Unknown<'_>, line: u64) {
        self.current = None;
        let name = unknown.name.to_string();
        let name = if name.is_empty() { "(no type)".to_owned() } else { name };
        let raw = unknown.raw.as_ref().map(|raw| raw.get()).unwrap_or_default();
        let value = serde_json::from_str(raw).unwrap_or(Value::Null);
        note(&mut self.types, &mut self.further, name, &value, line);
    }

    /// Begins the next record.
    pub(crate) fn record(&mut self, text: &str, line: u64) {
        self.count_unread_fields();
        self.current = Some((text.to_owned(), line));
    }

    /// Counts the fields of the current record that its decoder does not read.
    pub(crate) fn count_unread_fields(&mut self) {
        let Some((text, line)) = self.current.take() else { return };
        let Ok(mut value) = serde_json::from_str::<Value>(&text) else { return };
        let shape = (self.dialect.reads)();
        if let Some((event, shape)) = take_event(&mut value, shape) {
            self.count_unread_fields_of(&event, shape, line);
        }
        self.count_unread_fields_of(&value, shape, line);
    }

    fn count_unread_fields_of(&mut self, record: &Value, shape: Shape, line: u64) {
        let name = name_of(record);
        if !self.dialect.ignores.iter().any(|ignored| ignored.covers_all_of(&name)) {
            self.count_unknown(record, shape, &mut format!("{name}: "), line);
        }
    }

    fn count_unknown(&mut self, value: &Value, shape: Shape, path: &mut String, line: u64) {
        match (value, shape) {
            (_, Shape::Anything) => {}
            (Value::Object(fields), shape) => {
                for (name, value) in fields {
                    let length = path.len();
                    let dot = if path.ends_with(": ") { "" } else { "." };
                    let _ = write!(path, "{dot}{name}");
                    match shape.of_field(name) {
                        Some(inside) => self.count_unknown(value, inside, path, line),
                        None if self.is_ignored(path) => {}
                        None => {
                            let path = path.clone();
                            note(&mut self.fields, &mut self.further, path, value, line);
                        }
                    }
                    path.truncate(length);
                }
            }
            (Value::Array(list), shape) => {
                let length = path.len();
                path.push_str("[]");
                for value in list {
                    self.count_unknown(value, shape, path, line);
                }
                path.truncate(length);
            }
            _ => {}
        }
    }

    fn is_ignored(&self, path: &str) -> bool {
        self.dialect.ignores.iter().any(|ignored| ignored.covers(path))
    }
}

impl Ignored {
    /// Whether this covers a type, or the field at a path.
    pub fn covers(&self, what: &str) -> bool {
        self.what.iter().any(|pattern| matches(pattern.strip_suffix('?').unwrap_or(pattern), what))
    }

    /// Whether this covers every record of a type.
    fn covers_all_of(&self, name: &str) -> bool {
        self.what.iter().any(|pattern| matches(pattern, name))
    }
}

/// Whether a text matches a pattern, in which `*` matches any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    true
}

/// Takes an event of another stream out of the message that contains it, if the dialect reads it.
/// The paths of its fields are those of that stream.
fn take_event(message: &mut Value, shape: Shape) -> Option<(Value, Shape)> {
    let shape = shape.of_field("params")?.of_field("event")?;
    message.pointer_mut("/params/event").map(|event| (event.take(), shape))
}

/// The type of a record, from any of the fields in which protocols put it.
fn name_of(record: &Value) -> String {
    let word = |name: &str| record.get(name).and_then(Value::as_str);
    let kind = word("type").or_else(|| word("method")).unwrap_or("(no type)");
    match word("subtype") {
        Some(subtype) => format!("{kind}/{subtype}"),
        None => kind.to_owned(),
    }
}

fn note(
    seen: &mut BTreeMap<String, Seen>,
    further: &mut u64,
    name: String,
    value: &Value,
    line: u64,
) {
    if let Some(seen) = seen.get_mut(&name) {
        seen.count += 1;
    } else if seen.len() < MAX_LISTED {
        let example = example(&name, value);
        seen.insert(name, Seen { count: 1, line, example });
    } else {
        *further += 1;
    }
}

/// A shortened value, without what may be a secret.
fn example(name: &str, value: &Value) -> String {
    let mut value = value.clone();
    hide_secrets(name, &mut value);
    let text = value.to_string();
    match text.char_indices().nth(MAX_EXAMPLE) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

/// Words in the names of fields that contain secrets.
const SECRET_NAMES: &[&str] =
    &["token", "secret", "password", "apikey", "api_key", "authorization", "cookie", "credential"];

fn hide_secrets(name: &str, value: &mut Value) {
    let name = name.to_ascii_lowercase();
    let secret = SECRET_NAMES.iter().any(|word| name.contains(word));
    match value {
        Value::String(text) if secret => *text = "[secret]".to_owned(),
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                hide_secrets(name, value);
            }
        }
        Value::Array(list) => {
            for value in list {
                hide_secrets(&name, value);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_any_text() {
        for (pattern, text) in [("a", "a"), ("a*", "abc"), ("*: x", "t: x"), ("a*c*e", "abcde")] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a", "ab"), ("a*", "b"), ("*: x", "t: xy"), ("a*c*e", "abde")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        let value = serde_json::json!({ "accessToken": "abc", "tokens": 7, "list": ["x"] });
        let shown: Value = serde_json::from_str(&example("t: auth", &value)).unwrap();
        let hidden = serde_json::json!({ "accessToken": "[secret]", "tokens": 7, "list": ["x"] });
        assert_eq!(shown, hidden);
        assert_eq!(example("t: apiKey", &serde_json::json!("abc")), r#""[secret]""#);
    }
}
