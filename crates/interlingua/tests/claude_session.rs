//! What Claude's records say of the session, and when they can say it.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use serde_json::{Value, json};
use support::translate_lines;

const DONE: &str = r#"{"type":"turn_ended","outcome":"completed"}"#;

fn sessions(records: &[Value]) -> Vec<&str> {
    let mut ids: Vec<_> = records.iter().filter_map(|it| it["session_id"].as_str()).collect();
    ids.dedup();
    ids
}

#[test]
fn the_first_record_waits_until_the_session_is_known() {
    let lines = [
        r#"{"type":"sandbox","sandbox_id":"sbx_1"}"#,
        r#"{"type":"init","session_id":"abc","modelId":"gemini-2.5-pro"}"#,
        r#"{"type":"message","role":"assistant","content":"Hi","delta":true}"#,
    ];
    let records = translate_lines("giselle", "claude", &lines).records();
    assert_eq!(sessions(&records), ["abc"]);
    assert_eq!(records[0]["model"], "gemini-2.5-pro");
}

#[test]
fn a_notice_before_the_session_follows_its_init() {
    let lines = [
        r#"{"type":"notice","severity":"warning","text":"odd bytes"}"#,
        r#"{"type":"session_started","id":"s","model":"m"}"#,
        r#"{"type":"block","kind":"text","text":"Hi"}"#,
        DONE,
    ];
    let records = translate_lines("events", "claude", &lines).records();
    let kinds: Vec<_> = records.iter().filter_map(|record| record["subtype"].as_str()).collect();
    assert_eq!(kinds, ["init", "informational", "success"]);
    assert_eq!(sessions(&records), ["s"]);
}

#[test]
fn an_id_that_comes_within_a_turn_is_that_of_the_next() {
    let text = r#"{"type":"block","kind":"text","text":"Hi"}"#;
    let lines = [text, r#"{"type":"session_updated","id":"s"}"#, DONE, text, DONE];
    let written = translate_lines("events", "claude", &lines);
    let records = written.records();
    assert_eq!(sessions(&records).len(), 2);
    let second = records.iter().rposition(|record| record["subtype"] == "init").unwrap();
    assert_eq!(sessions(&records[second..]), ["s"]);
    assert!(!written.translator.losses().is_empty());
}

#[test]
fn a_model_that_nobody_named_is_unknown_everywhere() {
    let lines = [r#"{"type":"block","kind":"text","text":"Hi"}"#, DONE];
    let records = translate_lines("events", "claude", &lines).records();
    assert_eq!(records[0]["model"], "unknown");
    assert_eq!(records[1]["message"]["model"], "unknown");
}

#[test]
fn a_record_keeps_the_time_that_the_agent_gave_it() {
    let text =
        |time: Value| json!({"type":"block","time":time,"kind":"text","text":"Hi"}).to_string();
    let (iso, number) = (text(json!("2026-01-01T00:00:00Z")), text(json!(17)));
    let records = translate_lines("events", "claude", &[&iso, &number]).records();
    let said: Vec<_> = records.iter().filter(|record| record["type"] == "assistant").collect();
    assert_eq!(said[0]["timestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(said[1].get("timestamp"), None);
}
