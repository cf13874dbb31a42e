//! An error from before the session is named does not make up a session.

use serde_json::Value;

use crate::support::{dialect, translate_lines};
use interlingua::Exit;
use interlingua::check::Checker;
use interlingua::framing::Limits;

const ERROR: &str = r#"{"type":"error","message":"the configuration is odd"}"#;
const THREAD: &str = r#"{"type":"thread.started","thread_id":"t-1"}"#;
const TEXT: &str =
    r#"{"type":"item.completed","item":{"id":"0","type":"agent_message","text":"Hi"}}"#;
const END: &str = r#"{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}"#;

fn written(from: &str, lines: &[&str]) -> Vec<Value> {
    let written = translate_lines(from, "yume", lines);
    let mut checker = Checker::new(dialect("yume"), Limits::default());
    checker.push(&written.bytes);
    assert_eq!(checker.finish(&Exit::default()), [], "{}", written.text());
    written.records()
}

/// Seen: an `init` with an id of our own, and never the one of the agent.
#[test]
fn it_waits_for_the_session() {
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
fn it_is_written_if_there_never_is_a_session() {
    let records = written("codex", &[ERROR]);
    assert_eq!(records[0]["subtype"], "init");
    assert_eq!(records[1]["type"], "error");
    let odd = |record: &&Value| record["message"] == "the configuration is odd";
    assert_eq!(records.iter().filter(odd).count(), 1);
}

#[test]
fn it_does_not_wait_once_the_agent_goes_on() {
    let error = r#"{"type":"error","message":"odd"}"#;
    let text = r#"{"type":"block","kind":"text","text":"Hi"}"#;
    let named = r#"{"type":"session_updated","id":"s-1"}"#;
    let records = written("events", &[error, text, named]);
    let kinds: Vec<_> = records.iter().map(|record| record["type"].as_str().unwrap()).collect();
    assert_eq!(kinds[..4], ["system", "error", "text", "system"]);
    assert_eq!(records[3]["subtype"], "session_id");
    assert_eq!(records[3]["session_id"], "s-1");
}
