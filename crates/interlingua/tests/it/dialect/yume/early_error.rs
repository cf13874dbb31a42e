//! An error before the session is named does not invent a session.

use serde_json::Value;

use crate::support::records::translate_checked;

const ERROR: &str = r#"{"type":"error","message":"the configuration is odd"}"#;
const THREAD: &str = r#"{"type":"thread.started","thread_id":"t-1"}"#;
const TEXT: &str =
    r#"{"type":"item.completed","item":{"id":"0","type":"agent_message","text":"Hi"}}"#;
const END: &str = r#"{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}"#;

fn written(from: &str, lines: &[&str]) -> Vec<Value> {
    translate_checked(from, "yume", lines).records()
}

/// Regression: an `init` with a generated id was written, and the agent's id never was.
#[test]
fn an_early_error_waits_for_the_session() {
    let records = written("codex", &[ERROR, THREAD, TEXT, END]);
    assert_eq!(records[0]["subtype"], "init");
    assert_eq!(records[0]["session_id"], "t-1");
    assert_eq!(records[1]["type"], "error");
    assert_eq!(records[1]["message"], "the configuration is odd");
    assert_eq!(records[2]["content"], "Hi");
    let result = records.iter().find(|record| record["type"] == "result").unwrap();
    assert_eq!(result["session_id"], "t-1");
}

#[test]
fn an_early_error_is_written_if_there_is_no_session() {
    let records = written("codex", &[ERROR]);
    assert_eq!(records[0]["subtype"], "init");
    assert_eq!(records[1]["type"], "error");
    let odd = |record: &&Value| record["message"] == "the configuration is odd";
    assert_eq!(records.iter().filter(odd).count(), 1);
}

#[test]
fn an_early_error_does_not_wait_once_the_agent_continues() {
    let error = r#"{"type":"error","message":"odd"}"#;
    let text = r#"{"type":"block","kind":"text","text":"Hi"}"#;
    let named = r#"{"type":"session_updated","id":"s-1"}"#;
    let records = written("events", &[error, text, named]);
    let kinds: Vec<_> = records.iter().map(|record| record["type"].as_str().unwrap()).collect();
    assert_eq!(kinds[..4], ["system", "error", "text", "system"]);
    assert_eq!(records[3]["subtype"], "session_id");
    assert_eq!(records[3]["session_id"], "s-1");
}
