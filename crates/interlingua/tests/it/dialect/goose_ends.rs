//! goose exits with 0 and writes `complete` however its turn ended: only a real success is reported
//! as one.

use interlingua::Exit;
use serde_json::{Value, json};

use crate::support::records::text_of;
use crate::support::{dialect, translate_chunks};

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

fn text_record(id: Value, text: &str) -> String {
    message(id, json!({"type": "text", "text": text}))
}

fn end(events: &[Value]) -> &Value {
    events.iter().find(|event| event["type"] == "turn_ended").unwrap()
}

const PROSE: &str = "Ran into this error: Rate limit exceeded: Status: 429 Too Many Requests.\n\n\
                     Please retry if you think this is a transient or recoverable error.";

#[test]
fn prose_without_an_id_is_a_failure() {
    let events = read(&[&text_record(Value::Null, PROSE), NOT_COUNTED]);
    assert_eq!(end(&events)["outcome"], "failed");
    assert_eq!(end(&events)["class"], "rate_limit");
    assert_eq!(end(&events)["http_status"], 429);
    assert_eq!(text_of(&events), "");
}

#[test]
fn the_same_prose_by_the_model_is_text() {
    let events = read(&[&text_record(json!("m"), PROSE), COUNTED]);
    assert_eq!(end(&events)["outcome"], "completed");
    assert_eq!(text_of(&events), PROSE);
}

#[test]
fn deltas_of_one_message_are_one_block() {
    let events = read(&[&text_record(json!("m"), "Hel"), &text_record(json!("m"), "lo"), COUNTED]);
    let blocks = events.iter().filter(|event| event["type"] == "block_started").count();
    assert_eq!((text_of(&events).as_str(), blocks), ("Hello", 1));
    assert_eq!(end(&events)["usage"]["input"], 10);
}

/// Regression: every turn of a provider that counts no tokens was cancelled.
#[test]
fn a_turn_without_counts_is_not_cancelled() {
    let events = read(&[&text_record(json!("m"), "Hello."), NOT_COUNTED]);
    assert_eq!(end(&events)["outcome"], "completed");
    assert!(end(&events).get("usage").is_none());
}

#[test]
fn prose_before_the_end_is_an_interrupt() {
    let glued = format!("Yes — what would you like me to do?{COUNTED}");
    let events = read(&[&text_record(json!("m"), "Hel"), &glued]);
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
fn a_stream_without_an_end_is_no_success() {
    let events = read(&[&text_record(json!("m"), "Hello")]);
    assert_eq!(end(&events)["outcome"], "failed");
}

#[test]
fn a_limit_of_turns_is_no_success() {
    let prose = "I've reached the maximum number of actions I can do without user input. Would you \
                 like me to continue?";
    let events = read(&[&text_record(json!("m"), "Hi"), &text_record(Value::Null, prose), COUNTED]);
    assert_eq!(end(&events)["outcome"], "limit_reached");
    assert_eq!(end(&events)["reason"], "max_turns");
    assert_eq!(text_of(&events), "Hi");
    let events = read(&[&text_record(json!("m"), prose), COUNTED]);
    assert_eq!(end(&events)["outcome"], "completed");
}

#[test]
fn a_recipe_without_further_retries_has_failed() {
    let prose = "Retry logic encountered an error: no such file";
    let events = read(&[&text_record(Value::Null, prose), COUNTED]);
    assert_eq!(end(&events)["outcome"], "failed");
    assert_eq!(end(&events)["cause"], "no such file");
}

#[test]
fn calls_of_an_interrupted_turn_are_cancelled() {
    let call = json!({"status": "success", "value": {"name": "shell", "arguments": {}}});
    let call = message(json!("m"), json!({"type": "toolRequest", "id": "c", "toolCall": call}));
    let glued = format!("Yes — what would you like me to do?{COUNTED}");
    let events = read(&[&call, &glued]);
    let answer = events.iter().find(|event| event["type"] == "tool_ended").unwrap();
    assert_eq!(answer["status"], "cancelled");
    let interrupted = events.iter().find(|event| event["type"] == "interrupted").unwrap();
    assert!(interrupted.get("text").is_none());
}

#[test]
fn prose_before_the_records_is_a_log() {
    let banner = "    __( O)>  ● new session · ollama qwen3-coder:30b";
    let lines = ["Loading recipe: K8s", banner, &text_record(json!("m"), "Hi"), "stray", COUNTED];
    let events = read(&lines);
    let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "log").count(), 1);
    assert_eq!(kinds.iter().filter(|kind| **kind == "unparsed").count(), 1);
    assert_eq!(kinds[..2], ["log", "native"]);
}
