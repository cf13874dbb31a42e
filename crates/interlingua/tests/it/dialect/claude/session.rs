//! The session in Claude's records, and when it can be written.

use serde_json::{Value, json};

use crate::support::translate_lines;

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
fn an_id_that_arrives_late_is_that_of_the_result() {
    let text = r#"{"type":"block","kind":"text","text":"Hi"}"#;
    let lines = [text, r#"{"type":"session_updated","id":"s"}"#, text, DONE, text, DONE];
    let written = translate_lines("events", "claude", &lines);
    let records = written.records();
    assert_eq!(sessions(&records).len(), 2);
    let end = records.iter().position(|record| record["type"] == "result").unwrap();
    assert_eq!(sessions(&records[end..]), ["s"]);
    assert_eq!(sessions(&records[..end]).len(), 1);
    assert_eq!(records[0]["unknown_fields"], json!(["session_id"]));
    assert!(written.losses().is_empty());
}

#[test]
fn an_error_before_the_first_turn_follows_its_init() {
    let error = r#"{"type":"error","class":"other","message":"odd","fatal":false}"#;
    let records = translate_lines("events", "claude", &[error, DONE]).records();
    let position = records.iter().position(|record| record["content"] == "odd");
    assert_eq!(position, Some(1));
}

#[test]
fn another_id_within_a_turn_is_that_of_the_next() {
    let text = r#"{"type":"block","kind":"text","text":"Hi"}"#;
    let (first, other) =
        (r#"{"type":"session_started","id":"r"}"#, r#"{"type":"session_updated","id":"s"}"#);
    let written = translate_lines("events", "claude", &[first, text, other, DONE, text, DONE]);
    let records = written.records();
    let second = records.iter().rposition(|record| record["subtype"] == "init").unwrap();
    assert_eq!(sessions(&records[..second]), ["r"]);
    assert_eq!(sessions(&records[second..]), ["s"]);
    assert!(!written.losses().is_empty());
}

#[test]
fn init_waits_for_the_model_until_there_is_content() {
    let lines = [
        r#"{"type":"turn_started"}"#,
        r#"{"type":"session_updated","tools":["run_shell_command","write_file","invoke_agent"]}"#,
        r#"{"type":"user_message","text":"Do"}"#,
        r#"{"type":"notice","severity":"warning","text":"odd bytes"}"#,
        "no record",
        r#"{"type":"session_updated","id":"s"}"#,
        r#"{"type":"message_started","message":"1","model":"m"}"#,
        r#"{"type":"block","kind":"text","text":"Hi","message":"1"}"#,
        DONE,
    ];
    let records = translate_lines("events", "claude", &lines).records();
    let kinds: Vec<_> = records.iter().map(|record| record["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["system", "user", "system", "assistant", "result"]);
    assert_eq!((&records[0]["model"], sessions(&records)), (&json!("m"), vec!["s"]));
    assert_eq!(records[0]["tools"], json!(["Bash", "Write", "Task"]));
}

#[test]
fn a_message_names_the_model_that_wrote_it() {
    let lines = [
        r#"{"type":"session_started","model":"m"}"#,
        r#"{"type":"message_started","message":"1","model":"m"}"#,
        r#"{"type":"block","kind":"text","text":"a","message":"1"}"#,
        r#"{"type":"message_started","message":"2","model":"n"}"#,
        r#"{"type":"block","kind":"text","text":"b","message":"2"}"#,
        r#"{"type":"tool_started","call":"c","name":"Bash","kind":"execute","input":{"command":"ls"},"message":"2"}"#,
        r#"{"type":"block","kind":"text","text":"c","message":"1","index":1}"#,
    ];
    let records = translate_lines("events", "claude", &lines).records();
    let messages = records.iter().filter(|record| record["type"] == "assistant");
    let models: Vec<_> = messages.map(|record| record["message"]["model"].clone()).collect();
    assert_eq!(models, ["m", "n", "n", "m"]);
}

#[test]
fn init_has_only_values_of_claude() {
    let text = r#"{"type":"block","kind":"text","text":"Hi"}"#;
    for (given, mode) in [
        ("never", "default"),
        ("yolo", "bypassPermissions"),
        ("auto-edit", "acceptEdits"),
        ("accept-edits", "acceptEdits"),
        ("plan", "plan"),
    ] {
        let started =
            json!({"type":"session_started","agent":"a","version":"9","permission_mode":given})
                .to_string();
        let written = translate_lines("events", "claude", &[&started, text]);
        let init = &written.records()[0];
        assert_eq!(init["permissionMode"], mode);
        assert_eq!(init.get("claude_code_version"), None);
        let mut losses = written.losses().iter().map(|(what, _)| what);
        let lost = losses.any(|what| what == "permission modes of other agents");
        assert_eq!(lost, given == "never");
    }
    let claude = r#"{"type":"session_started","agent":"claude","version":"2.1.0"}"#;
    let records = translate_lines("events", "claude", &[claude, text]).records();
    assert_eq!(records[0]["claude_code_version"], "2.1.0");
}

#[test]
fn a_model_without_a_name_is_unknown_everywhere() {
    let lines = [r#"{"type":"block","kind":"text","text":"Hi"}"#, DONE];
    let records = translate_lines("events", "claude", &lines).records();
    assert_eq!(records[0]["model"], "unknown");
    assert_eq!(records[1]["message"]["model"], "unknown");
}

#[test]
fn a_record_keeps_the_time_that_the_agent_stated() {
    let text =
        |time: Value| json!({"type":"block","time":time,"kind":"text","text":"Hi"}).to_string();
    let (iso, number) = (text(json!("2026-01-01T00:00:00Z")), text(json!(17)));
    let records = translate_lines("events", "claude", &[&iso, &number]).records();
    let messages: Vec<_> = records.iter().filter(|record| record["type"] == "assistant").collect();
    assert_eq!(messages[0]["timestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(messages[1].get("timestamp"), None);
}
