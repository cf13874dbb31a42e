//! goose exits with 0 and says `complete` however its turn ended: only what was a success is one.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use interlingua::Exit;
use serde_json::{Value, json};
use support::{dialect, translate_chunks};

const COUNTED: &str =
    r#"{"type":"complete","total_tokens":12,"input_tokens":10,"output_tokens":2}"#;
const NOT_COUNTED: &str = r#"{"type":"complete","total_tokens":null}"#;

fn read(lines: &[&str]) -> Vec<Value> {
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let exit = Exit { code: Some(0), ..Exit::default() };
    let from = Some(dialect("goose"));
    translate_chunks(from, dialect("events"), [input.as_bytes()], &exit).records()
}

fn message(id: Value, content: Value) -> String {
    let message = json!({"id": id, "role": "assistant", "created": 1, "content": [content]});
    json!({"type": "message", "message": message}).to_string()
}

fn says(id: Value, text: &str) -> String {
    message(id, json!({"type": "text", "text": text}))
}

fn end(events: &[Value]) -> &Value {
    events.iter().find(|event| event["type"] == "turn_ended").unwrap()
}

fn said(events: &[Value]) -> String {
    let pieces = events.iter().filter(|event| event["type"] == "block_delta");
    pieces.map(|piece| piece["text"].as_str().unwrap()).collect()
}

const PROSE: &str = "Ran into this error: Rate limit exceeded: Status: 429 Too Many Requests.\n\n\
                     Please retry if you think this is a transient or recoverable error.";

#[test]
fn prose_without_an_id_is_a_failure() {
    let events = read(&[&says(Value::Null, PROSE), NOT_COUNTED]);
    assert_eq!(end(&events)["outcome"], "failed");
    assert_eq!(end(&events)["class"], "rate_limit");
    assert_eq!(end(&events)["http_status"], 429);
    assert_eq!(said(&events), "");
}

#[test]
fn the_same_prose_by_the_model_is_text() {
    let events = read(&[&says(json!("m"), PROSE), COUNTED]);
    assert_eq!(end(&events)["outcome"], "completed");
    assert_eq!(said(&events), PROSE);
}

#[test]
fn pieces_of_one_message_are_one_block() {
    let events = read(&[&says(json!("m"), "Hel"), &says(json!("m"), "lo"), COUNTED]);
    let blocks = events.iter().filter(|event| event["type"] == "block_started").count();
    assert_eq!((said(&events).as_str(), blocks), ("Hello", 1));
    assert_eq!(end(&events)["usage"]["input"], 10);
}

#[test]
fn a_turn_without_counts_was_interrupted() {
    let events = read(&[&says(json!("m"), "Hel"), NOT_COUNTED]);
    assert_eq!(end(&events)["outcome"], "cancelled");
    assert!(end(&events).get("usage").is_none());
}

#[test]
fn prose_in_front_of_the_end_is_an_interrupt() {
    let glued = format!("Yes — what would you like me to do?{COUNTED}");
    let events = read(&[&says(json!("m"), "Hel"), &glued]);
    assert_eq!(end(&events)["outcome"], "cancelled");
}

#[test]
fn a_call_without_an_answer_was_interrupted() {
    let call = json!({"status": "success", "value": {"name": "shell", "arguments": {}}});
    let call = message(json!("m"), json!({"type": "toolRequest", "id": "c", "toolCall": call}));
    let events = read(&[&call, COUNTED]);
    assert_eq!(end(&events)["outcome"], "cancelled");
}

#[test]
fn without_an_end_there_is_no_success() {
    let events = read(&[&says(json!("m"), "Hello")]);
    assert_eq!(end(&events)["outcome"], "failed");
}
