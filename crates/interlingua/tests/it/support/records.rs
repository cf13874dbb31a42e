//! Builds and queries records, whose kind is their `type` in most dialects.

use interlingua::Exit;
use interlingua::check::Checker;
use interlingua::framing::Limits;
use serde_json::{Value, json};

use super::{Written, dialect, translate_lines};

/// A record of our own events.
pub fn event(kind: &str, fields: Value) -> String {
    let mut record = json!({
        "interlingua": 1, "type": kind, "sequence": 0, "line": 1, "bytes": [0, 1],
    });
    for (name, value) in fields.as_object().unwrap() {
        record[name] = value.clone();
    }
    record.to_string()
}

/// The events of one turn that completed, with its start and its end.
pub fn completed_turn(events: &[String]) -> Vec<String> {
    let start = [event("turn_started", json!({}))];
    let end = [event("turn_ended", json!({"outcome": "completed"}))];
    [&start, events, &end].concat()
}

/// Translates lines of a known dialect, and checks that the result keeps the rules of its dialect.
pub fn translate_checked(from: &str, to: &str, lines: &[impl AsRef<str>]) -> Written {
    let written = translate_lines(from, to, lines);
    let mut checker = Checker::new(dialect(to), Limits::default());
    checker.push(&written.bytes);
    let findings = checker.finish(&Exit::default());
    assert!(findings.is_empty(), "{findings:#?}\n{}", written.text());
    written
}

/// The types of the records, in order.
pub fn types(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["type"].as_str().unwrap()).collect()
}

/// The records of one type.
pub fn of_type<'r>(records: &'r [Value], kind: &str) -> Vec<&'r Value> {
    records.iter().filter(|record| record["type"] == kind).collect()
}

/// The concatenated text of all blocks of our own events.
pub fn text_of(events: &[Value]) -> String {
    let is_text = |event: &&Value| event["type"] == "block" || event["type"] == "block_delta";
    events.iter().filter(is_text).map(|event| event["text"].as_str().unwrap()).collect()
}
