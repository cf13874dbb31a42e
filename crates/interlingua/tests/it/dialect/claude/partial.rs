//! The pieces of messages, as `--include-partial-messages` adds them.

use interlingua::dialect::EncodeOptions;
use interlingua::{Exit, Options};
use serde_json::{Value, json};

use crate::support::{dialect, translate_lines, translate_with};

fn pieces(from: &str, lines: &[&str]) -> Vec<Value> {
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
const PIECE: &str = r#"{"type":"block_delta","block":1,"message":"m","kind":"text","text":"half"}"#;
const STOP: &str = r#"{"type":"block_ended","block":1,"message":"m","kind":"text"}"#;

#[test]
fn a_message_that_was_cut_off_has_no_reason_to_stop() {
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
        assert_eq!(*stop_reason(&pieces("events", &[START, PIECE, STOP, end])), reason, "{end}");
    }
}

#[test]
fn a_message_whose_calls_nobody_answered_did_not_stop_for_them() {
    let call = r#"{"type":"tool_started","call":"c","name":"x","input":{}}"#;
    let answer = r#"{"type":"tool_ended","call":"c"}"#;
    assert_eq!(*stop_reason(&pieces("events", &[call])), Value::Null);
    assert_eq!(*stop_reason(&pieces("events", &[call, answer])), "tool_use");
}

#[test]
fn a_block_that_is_taken_back_is_void_and_never_whole() {
    let lines = [
        START,
        PIECE,
        r#"{"type":"withdrawn","message":"m","index":0}"#,
        r#"{"type":"block","message":"n","kind":"text","text":"whole"}"#,
        r#"{"type":"turn_ended","outcome":"completed"}"#,
    ];
    let records = pieces("events", &lines);
    let void = records.iter().find(|record| record.get("abandoned_blocks").is_some()).unwrap();
    assert_eq!(void["event"]["type"], "message_stop");
    assert_eq!(void["abandoned_blocks"], json!({"api_message_id":"m","from_block_index":0}));
    let starts = records.iter().filter(|record| record["event"]["type"] == "message_start");
    let ids: Vec<_> = starts.map(|record| &record["event"]["message"]["id"]).collect();
    assert_eq!(ids, ["m", "n"]);
    for records in [records, translate_lines("events", "claude", &lines).records()] {
        let said = records.iter().filter_map(|it| it["message"]["content"][0]["text"].as_str());
        assert_eq!(said.collect::<Vec<_>>(), ["whole"]);
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
