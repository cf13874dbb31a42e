//! The deltas of messages, as `--include-partial-messages` adds them.

use interlingua::dialect::EncodeOptions;
use interlingua::{Exit, Options};
use serde_json::{Value, json};

use crate::support::{dialect, translate_lines, translate_with};

fn partial_records(from: &str, lines: &[&str]) -> Vec<Value> {
    let encode = EncodeOptions { partial: true, ..EncodeOptions::default() };
    let options = Options { encode, ..Options::default() };
    let input: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
    let (from, to) = (Some(dialect(from)), dialect("claude"));
    translate_with(options, from, to, [input.as_bytes()], &Exit::default()).records()
}

fn stop_reason(records: &[Value]) -> &Value {
    let delta = records.iter().rfind(|record| record["event"]["type"] == "message_delta").unwrap();
    &delta["event"]["delta"]["stop_reason"]
}

const START: &str = r#"{"type":"block_started","block":1,"message":"m","kind":"text"}"#;
const DELTA: &str = r#"{"type":"block_delta","block":1,"message":"m","kind":"text","text":"half"}"#;
const STOP: &str = r#"{"type":"block_ended","block":1,"message":"m","kind":"text"}"#;

#[test]
fn a_truncated_message_has_no_stop_reason() {
    for (end, reason) in [
        (r#"{"type":"turn_ended","outcome":"completed"}"#, json!("end_turn")),
        (r#"{"type":"turn_ended","outcome":"failed","cause":"no"}"#, Value::Null),
        (r#"{"type":"turn_ended","outcome":"cancelled"}"#, Value::Null),
        (
            r#"{"type":"turn_ended","outcome":"limit_reached","stop_reason":"max_tokens"}"#,
            json!("max_tokens"),
        ),
        (r#"{"type":"turn_ended","outcome":"refused"}"#, json!("refusal")),
    ] {
        assert_eq!(
            *stop_reason(&partial_records("events", &[START, DELTA, STOP, end])),
            reason,
            "{end}"
        );
    }
}

#[test]
fn a_message_with_an_unanswered_call_has_no_stop_reason() {
    let call = r#"{"type":"tool_started","call":"c","name":"x","input":{}}"#;
    let answer = r#"{"type":"tool_ended","call":"c"}"#;
    assert_eq!(*stop_reason(&partial_records("events", &[call])), Value::Null);
    assert_eq!(*stop_reason(&partial_records("events", &[call, answer])), "tool_use");
}

#[test]
fn a_withdrawn_block_is_void_and_never_complete() {
    let lines = [
        START,
        DELTA,
        r#"{"type":"withdrawn","message":"m","index":0}"#,
        r#"{"type":"block","message":"n","kind":"text","text":"whole"}"#,
        r#"{"type":"turn_ended","outcome":"completed"}"#,
    ];
    let records = partial_records("events", &lines);
    let void = records.iter().find(|record| record.get("abandoned_blocks").is_some()).unwrap();
    assert_eq!(void["event"]["type"], "message_stop");
    assert_eq!(void["abandoned_blocks"], json!({"api_message_id":"m","from_block_index":0}));
    let starts = records.iter().filter(|record| record["event"]["type"] == "message_start");
    let ids: Vec<_> = starts.map(|record| &record["event"]["message"]["id"]).collect();
    assert_eq!(ids, ["m", "n"]);
    for records in [records, translate_lines("events", "claude", &lines).records()] {
        let texts = records.iter().filter_map(|it| it["message"]["content"][0]["text"].as_str());
        assert_eq!(texts.collect::<Vec<_>>(), ["whole"]);
    }
}

#[test]
fn a_message_that_claude_did_not_end_is_ended() {
    let lines = [
        r#"{"type":"system","subtype":"init","cwd":"/","session_id":"s","tools":[],"model":"m","permissionMode":"default","uuid":"00000000-0000-4000-8000-000000000001"}"#,
        r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","model":"m","content":[]}},"session_id":"s","parent_tool_use_id":null,"uuid":"00000000-0000-4000-8000-000000000002"}"#,
        r#"{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}},"session_id":"s","parent_tool_use_id":null,"uuid":"00000000-0000-4000-8000-000000000003"}"#,
        r#"{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"half"}},"session_id":"s","parent_tool_use_id":null,"uuid":"00000000-0000-4000-8000-000000000004"}"#,
    ];
    let records = translate_lines("claude", "claude", &lines).records();
    let added: Vec<_> = records[4..]
        .iter()
        .map(|record| record.pointer("/event/type").unwrap_or(&record["type"]).as_str().unwrap())
        .collect();
    let ends = ["assistant", "content_block_stop", "message_delta", "message_stop", "result"];
    assert_eq!(added, ends);
    assert_eq!(records[4]["aborted"], true);
    assert_eq!(*stop_reason(&records), Value::Null);
}
