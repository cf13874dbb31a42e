//! The JSON schema of entries, generated from the declarations of the types.

use serde_json::{Map, Value, json};

use super::Data;
use crate::entry::form::VERSION;
use crate::json::{Json, Text};

/// A type that occurs in an event, and its JSON schema.
pub(crate) trait Described {
    fn schema() -> Value;
}

macro_rules! described {
    ($($name:ty => $schema:expr,)+) => {
        $(impl Described for $name {
            fn schema() -> Value {
                $schema
            }
        })+
    };
}

described! {
    Text<'_> => json!({ "type": "string" }),
    Json<'_> => json!({}),
    bool => json!({ "type": "boolean" }),
    u64 => json!({ "type": "integer", "minimum": 0 }),
    u32 => json!({ "type": "integer", "minimum": 0 }),
    i64 => json!({ "type": "integer" }),
    f64 => json!({ "type": "number" }),
}

impl<T: Described> Described for Option<T> {
    fn schema() -> Value {
        T::schema()
    }
}

impl<T: Described> Described for Vec<T> {
    fn schema() -> Value {
        json!({ "type": "array", "items": T::schema() })
    }
}

/// An object with a description and fields, all of them optional. Further fields are allowed.
pub(crate) fn object(about: &str, fields: &[(&str, &str, Value)]) -> Value {
    let described = |(name, about, schema): &(&str, &str, Value)| {
        ((*name).to_owned(), with_description(schema.clone(), about))
    };
    let properties: Map<String, Value> = fields.iter().map(described).collect();
    json!({ "description": about.trim(), "type": "object", "properties": properties })
}

/// One of some strings, or another one that is not known yet.
pub(crate) fn word(words: &[&str]) -> Value {
    json!({ "type": "string", "examples": words })
}

fn with_description(mut schema: Value, about: &str) -> Value {
    if let Some(fields) = schema.as_object_mut() {
        fields.insert("description".to_owned(), about.trim().into());
    }
    schema
}

/// The schema of entries.
pub(crate) fn of_entries() -> Value {
    let kinds: Vec<_> = Data::KINDS.to_vec();
    let place = json!({ "type": "integer", "minimum": 0 });
    let definitions: Map<String, Value> =
        Data::schemas().into_iter().map(|(kind, schema)| (kind.to_owned(), schema)).collect();
    let by_kind = kinds.iter().map(|kind| {
        json!({
            "if": { "properties": { "type": { "const": kind } } },
            "then": { "$ref": format!("#/$defs/{kind}") },
        })
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("Interlingua entries, version {VERSION}"),
        "description": "One object per line: an event, its place in the session, and its position in the input. Absent fields are left out. Readers skip kinds and fields that they do not know.",
        "type": "object",
        "required": ["interlingua", "type", "sequence", "line", "bytes"],
        "properties": {
            "interlingua": { "const": VERSION, "description": "The version of this form." },
            "type": with_description(word(&kinds), "The kind of event."),
            "sequence": with_description(place.clone(), "The place in the session: from zero, without gaps."),
            "received_at": with_description(place.clone(), "When it was received, in milliseconds since 1970."),
            "epoch": with_description(place.clone(), "The epoch, which is one run of the agent; absent for the first one, which is 0."),
            "line": with_description(place.clone(), "The line of the agent's output."),
            "bytes": {
                "type": "array", "items": place, "minItems": 2, "maxItems": 2,
                "description": "The byte range in the agent's output: its start and its end (exclusive).",
            },
            "synthetic": with_description(super::Reason::schema(), "Why the event was added, if the agent's stream does not contain it."),
            "added": { "type": "boolean", "description": "Whether the event was added; present if `synthetic` suggests otherwise." },
            "parent": { "type": "string", "description": "The tool call whose sub-agent emitted it." },
            "time": { "description": "The agent's own time, as the agent wrote it." },
            "raw_record": {
                "type": "object",
                "description": "The agent's own record, on the first entry of its frame, if the log keeps raw records.",
                "properties": { "dialect": { "type": "string" }, "record": { "type": "object" } },
                "required": ["dialect", "record"],
            },
        },
        "allOf": by_kind.collect::<Vec<_>>(),
        "$defs": definitions,
    })
}
