//! Rules of Claude's stream, and streams that break them.

use serde_json::{Value, json};

use crate::support::rules::broken_by_lines;

/// The names of the rules that a stream breaks, each once.
fn broken(records: &[Value]) -> Vec<&'static str> {
    let identified = records.iter().enumerate().map(|(at, record)| {
        let mut record = record.clone();
        record["uuid"] = json!(format!("00000000-0000-4000-8000-{at:012}"));
        record
    });
    broken_by_lines("claude", identified)
}

fn init() -> Value {
    json!({"type":"system","subtype":"init","session_id":"s","cwd":"/","model":"m","permissionMode":"default","tools":[]})
}

fn text_record() -> Value {
    json!({"type":"assistant","session_id":"s","parent_tool_use_id":null,"message":{"id":"1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"hi"}]}})
}

fn retry() -> Value {
    json!({"type":"system","subtype":"api_retry","session_id":"s","attempt":1,"max_retries":2,"retry_delay_ms":3,"error_status":null,"error":"rate_limit"})
}

fn result() -> Value {
    let counts = json!({"inputTokens":1,"outputTokens":1,"cacheReadInputTokens":0,"cacheCreationInputTokens":0,"webSearchRequests":0,"costUSD":0.1,"contextWindow":0});
    json!({"type":"result","subtype":"success","is_error":false,"session_id":"s","num_turns":1,"duration_ms":1,"total_cost_usd":0.1,"usage":{},"modelUsage":{"m":counts},"permission_denials":[],"result":"hi"})
}

/// The record with one field changed or removed.
fn with(mut record: Value, pointer: &str, value: Option<Value>) -> Value {
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    let fields = record.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match value {
        Some(value) => fields.insert(field.to_owned(), value),
        None => fields.remove(field),
    };
    record
}

#[test]
fn a_valid_turn_breaks_no_rule() {
    assert_eq!(broken(&[init(), retry(), text_record(), result()]), [""; 0]);
}

#[test]
fn all_records_are_of_one_session() {
    let other = with(text_record(), "/session_id", Some(json!("t")));
    assert_eq!(broken(&[init(), other, result()]), ["one-session"]);
    let second = [init(), result()].map(|it| with(it, "/session_id", Some(json!("t"))));
    assert_eq!(broken(&[&[init(), result()], &second[..]].concat()), [""; 0]);
}

#[test]
fn a_message_names_its_model() {
    let nameless = with(text_record(), "/message/model", None);
    assert_eq!(broken(&[init(), nameless, result()]), ["message"]);
}

#[test]
fn a_result_counts_every_model() {
    let uncounted = with(result(), "/modelUsage", None);
    assert_eq!(broken(&[init(), uncounted]), ["result-fields"]);
    let half = with(result(), "/modelUsage/m/contextWindow", None);
    assert_eq!(broken(&[init(), half]), ["model-usage"]);
}

#[test]
fn a_success_has_no_errors() {
    let both = with(result(), "/errors", Some(json!(["no"])));
    assert_eq!(broken(&[init(), both]), ["result-fields"]);
}

#[test]
fn a_retry_has_numbers_and_a_code() {
    let uncounted = with(retry(), "/attempt", None);
    assert_eq!(broken(&[init(), uncounted, result()]), ["retry-fields"]);
    let prose = with(retry(), "/error", Some(json!("it was too much")));
    assert_eq!(broken(&[init(), prose, result()]), ["retry-fields"]);
}

fn block(kind: &str, block: Value) -> Value {
    with(text_record(), "/message/content", Some(json!([block])))
        .as_object()
        .map(|record| {
            let mut record = Value::Object(record.clone());
            record["type"] = json!(kind);
            record["message"]["role"] = json!(kind);
            record
        })
        .unwrap()
}

fn call() -> Value {
    block("assistant", json!({"type":"tool_use","id":"c","name":"Bash","input":{}}))
}

fn answer(content: &str, is_error: bool) -> Value {
    block(
        "user",
        json!({"type":"tool_result","tool_use_id":"c","content":content,"is_error":is_error}),
    )
}

#[test]
fn a_request_has_the_tool_and_the_input_of_its_call() {
    let asked = json!({"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{},"tool_use_id":"c","permission_suggestions":[{"type":"addRules"}]}});
    let broken = |asked: Value| broken(&[init(), call(), asked, answer("a", false), result()]);
    assert_eq!(broken(asked.clone()), [""; 0]);
    for (field, value) in [
        ("tool_name", None),
        ("input", Some(json!([]))),
        ("permission_suggestions", Some(json!(["accept"]))),
    ] {
        let wrong = with(asked.clone(), &format!("/request/{field}"), value);
        assert_eq!(broken(wrong), ["permission-request"], "{field}");
    }
    let other = with(asked.clone(), "/request/tool_name", Some(json!("bash")));
    assert_eq!(broken(other), ["tool-named"]);
    let question = with(asked, "/request/tool_name", Some(json!("AskUserQuestion")));
    assert_eq!(broken(question), ["permission-request"]);
}

#[test]
fn a_refusal_names_the_tool_of_the_call() {
    let denied = json!({"type":"system","subtype":"permission_denied","session_id":"s","tool_name":"bash","tool_use_id":"c"});
    assert_eq!(broken(&[init(), call(), denied, answer("a", true), result()]), ["tool-named"]);
    let listed = json!([{"tool_name":"bash","tool_use_id":"c","tool_input":{}}]);
    let listed = with(result(), "/permission_denials", Some(listed));
    assert_eq!(broken(&[init(), call(), answer("a", true), listed]), ["tool-named"]);
}

#[test]
fn an_answer_that_is_an_error_has_a_cause() {
    assert_eq!(broken(&[init(), call(), answer("", false), result()]), [""; 0]);
    assert_eq!(broken(&[init(), call(), answer("", true), result()]), ["error-text"]);
}

#[test]
fn an_interrupt_follows_all_answers() {
    let stopped = block("user", json!({"type":"text","text":"[Request interrupted by user]"}));
    let (answered, end) = (answer("a", false), result());
    assert_eq!(broken(&[init(), call(), answered.clone(), stopped.clone(), end.clone()]), [""; 0]);
    assert_eq!(broken(&[init(), call(), stopped, answered, end]), ["interrupt-last"]);
}

#[test]
fn values_are_those_of_claude() {
    let mode = with(init(), "/permissionMode", Some(json!("yolo")));
    assert_eq!(broken(&[mode, result()]), ["permission-mode"]);
    let stop = with(result(), "/stop_reason", Some(json!("stop")));
    assert_eq!(broken(&[init(), stop]), ["stop-reason"]);
    let progress = json!({"type":"tool_progress","session_id":"s","tool_use_id":"c"});
    assert_eq!(broken(&[init(), progress, result()]), ["tool-progress"]);
}

#[test]
fn a_session_without_an_id_gets_it_with_its_result() {
    let named = with(result(), "/session_id", Some(json!("t")));
    assert_eq!(broken(&[init(), named.clone()]), ["one-session"]);
    let nameless = with(init(), "/unknown_fields", Some(json!(["session_id"])));
    assert_eq!(broken(&[nameless, named]), [""; 0]);
}
