//! Law 7: every tool call is answered exactly once; a call without an answer is abandoned.

use serde_json::Value;

use crate::support::records::of_type;
use crate::support::{Case, translate, translate_lines};

const STARTED: &str = r#"{"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"sleep 9","aggregated_output":"","exit_code":null,"status":"in_progress"}}"#;
const COMPLETED: &str = r#"{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"sleep 9","aggregated_output":"done","exit_code":0,"status":"completed"}}"#;
const TURN_ENDED: &str =
    r#"{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}"#;

#[test]
fn a_call_without_an_answer_is_abandoned_before_the_turn_ends() {
    let written = translate_lines("codex", "events", &[STARTED, TURN_ENDED]);
    let records = written.records();
    let ended = of_type(&records, "tool_ended");
    assert_eq!(ended.len(), 1);
    assert_eq!(
        (&ended[0]["status"], &ended[0]["synthetic"], &ended[0]["name"]),
        (&"abandoned".into(), &"turn_ended".into(), &"command_execution".into())
    );
    let place = |kind| records.iter().position(|event| event["type"] == kind).unwrap();
    assert!(place("tool_ended") < place("turn_ended"));
    let repairs = written.repairs().listed();
    assert_eq!(repairs[0].kind.name(), "call-not-answered");
    assert_eq!(repairs[0].line, 2);
}

#[test]
fn an_answer_without_a_call_implies_its_call() {
    let result =
        r#"{"type":"tool_result","timestamp":"t","tool_id":"x","status":"success","output":"ok"}"#;
    let records = translate_lines("gemini", "events", &[result]).records();
    let started = of_type(&records, "tool_started");
    assert_eq!(
        (&started[0]["name"], &started[0]["synthetic"]),
        (&"unknown".into(), &"implied".into())
    );
    assert_eq!(of_type(&records, "tool_ended").len(), 1);
}

#[test]
fn a_second_answer_is_dropped() {
    let records = translate_lines("codex", "events", &[STARTED, COMPLETED, COMPLETED]).records();
    assert_eq!(of_type(&records, "tool_started").len(), 1);
    assert_eq!(of_type(&records, "tool_ended").len(), 1);
}

#[test]
fn an_answer_after_the_turn_is_kept_as_a_native_record() {
    let written = translate_lines("codex", "events", &[STARTED, TURN_ENDED, COMPLETED]);
    let records = written.records();
    assert_eq!(of_type(&records, "tool_ended").len(), 1);
    let late = of_type(&records, "native");
    assert_eq!((&late[0]["name"], &late[0]["raw"]), (&"late_answer".into(), &"done".into()));
}

#[test]
fn a_client_call_stays_open_while_the_turn_waits() {
    let request = r#"{"type":"snapshot_request","requestId":"r","instruction":"x"}"#;
    let records = translate_lines("giselle", "events", &[request]).records();
    assert_eq!(of_type(&records, "tool_ended").len(), 0);
    assert_eq!(of_type(&records, "turn_ended")[0]["outcome"], "waiting_for_client");
}

#[test]
fn every_call_of_every_transcript_is_answered_once() {
    for case in Case::all() {
        let records = translate("events", &case.input, &case.exit).records();
        let client = |event: &Value| event["executor"] == "client";
        let ids = |kind| {
            let calls = of_type(&records, kind).into_iter().filter(|event| !client(event));
            let mut ids: Vec<_> = calls.map(|event| event["call"].to_string()).collect();
            ids.sort();
            ids
        };
        assert_eq!(ids("tool_started"), ids("tool_ended"), "{}", case.name);
        let mut unique = ids("tool_started");
        unique.dedup();
        assert_eq!(unique, ids("tool_started"), "{}", case.name);
    }
}

/// Writers may leave open only calls that the client has to run.
#[test]
fn a_turn_that_waits_for_an_unknown_call_leaves_none_open() {
    let call = r#"{"type":"tool_started","call":"c","name":"n"}"#;
    let waits = r#"{"type":"turn_ended","outcome":"waiting_for_client"}"#;
    let answer = r#"{"type":"tool_ended","call":"c","output":"late"}"#;
    let written = translate_lines(
        "yume",
        "events",
        &[
            r#"{"type":"tool_use","id":"c","name":"n","input":{}}"#,
            r#"{"type":"result","is_error":false,"subtype":"waiting_for_client"}"#,
        ],
    );
    assert_eq!(of_type(&written.records(), "tool_ended")[0]["status"], "abandoned");
    // The stream itself reports the waiting call: that is no error, and its answer is not lost.
    assert!(written.repairs().is_empty());
    let chunks = translate_lines("events", "ai-sdk", &[call, waits, answer]).records();
    let answers = chunks.iter().filter(|part| part["type"] == "tool-result");
    assert_eq!(answers.count(), 1);
}

#[test]
fn the_input_of_a_client_call_is_complete_before_the_turn_waits() {
    let call = r#"{"type":"tool_use","id":"c","name":"n","executor":"client"}"#;
    let call = translate_lines("yume", "events", &[call]).records();
    assert!(call.iter().any(|event| event["executor"] == "client"));
    let started = r#"{"type":"tool_started","call":"c","name":"n","executor":"client"}"#;
    let waits = r#"{"type":"turn_ended","outcome":"waiting_for_client"}"#;
    let parts = translate_lines("events", "ai-sdk", &[started, waits]).records();
    assert_eq!(parts.iter().filter(|part| part["type"] == "tool-call").count(), 1);
    assert_eq!(parts.iter().filter(|part| part["type"] == "tool-result").count(), 0);
}

/// Consumers expect an answer where its call is.
#[test]
fn an_answer_has_the_parent_of_its_call() {
    let call = r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"c","name":"Bash","input":{}}]},"parent_tool_use_id":"task"}"#;
    let answer = r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"ok"}]},"parent_tool_use_id":null}"#;
    let records = translate_lines("claude", "events", &[call, answer]).records();
    let ended = of_type(&records, "tool_ended");
    assert_eq!((&ended[0]["parent"], &ended[0]["output"]), (&"task".into(), &"ok".into()));
}

#[test]
fn another_call_with_the_same_id_is_emitted_as_a_separate_call() {
    let call = |message: &str, name: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"{message}","role":"assistant","content":[{{"type":"tool_use","id":"call_0","name":"{name}","input":{{}}}}]}},"session_id":"s"}}"#
        )
    };
    let answer = |text: &str| {
        format!(
            r#"{{"type":"user","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"call_0","content":"{text}"}}]}},"session_id":"s"}}"#
        )
    };
    let lines = [
        call("m1", "First"),
        answer("one"),
        // A repetition is no other call.
        call("m1", "First"),
        call("m2", "Second"),
        answer("two"),
        call("m3", "Third"),
        answer("three"),
    ];
    let written = translate_lines("claude", "events", &lines);
    let records = written.records();
    let emitted = |kind| {
        let events = of_type(&records, kind).into_iter();
        let calls = events.map(|event| (event["call"].as_str().unwrap(), event["name"].as_str()));
        calls.collect::<Vec<_>>()
    };
    let calls =
        [("call_0", Some("First")), ("call_0-2", Some("Second")), ("call_0-3", Some("Third"))];
    assert_eq!(emitted("tool_started"), calls);
    assert_eq!(emitted("tool_ended"), calls);
    let outputs = of_type(&records, "tool_ended").into_iter().map(|event| &event["output"]);
    assert_eq!(outputs.collect::<Vec<_>>(), ["one", "two", "three"]);
    let repaired = written.repairs().listed().iter();
    let reused = repaired.filter(|repair| repair.kind.name() == "call-id-reused");
    assert_eq!(reused.count(), 2);
}
