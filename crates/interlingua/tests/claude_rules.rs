//! Rules of Claude's stream, and streams that break them.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use interlingua::Exit;
use interlingua::check::Checker;
use interlingua::framing::Limits;
use serde_json::{Value, json};
use support::dialect;

/// The names of the rules that a stream breaks, each once.
fn broken(records: &[Value]) -> Vec<&'static str> {
    let mut checker = Checker::new(dialect("claude"), Limits::default());
    for (at, record) in records.iter().enumerate() {
        let mut record = record.clone();
        record["uuid"] = json!(format!("00000000-0000-4000-8000-{at:012}"));
        checker.push(format!("{record}\n").as_bytes());
    }
    let findings = checker.finish(&Exit::default());
    let mut rules: Vec<_> = findings.into_iter().map(|finding| finding.rule).collect();
    rules.dedup();
    rules
}

fn init() -> Value {
    json!({"type":"system","subtype":"init","session_id":"s","cwd":"/","model":"m","permissionMode":"default","tools":[]})
}

fn said() -> Value {
    json!({"type":"assistant","session_id":"s","parent_tool_use_id":null,"message":{"id":"1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"hi"}]}})
}

fn retry() -> Value {
    json!({"type":"system","subtype":"api_retry","session_id":"s","attempt":1,"max_retries":2,"retry_delay_ms":3,"error_status":null,"error":"rate_limit"})
}

fn result() -> Value {
    let counts = json!({"inputTokens":1,"outputTokens":1,"cacheReadInputTokens":0,"cacheCreationInputTokens":0,"webSearchRequests":0,"costUSD":0.1,"contextWindow":0});
    json!({"type":"result","subtype":"success","is_error":false,"session_id":"s","num_turns":1,"duration_ms":1,"total_cost_usd":0.1,"usage":{},"modelUsage":{"m":counts},"permission_denials":[],"result":"hi"})
}

/// A record with one field changed, or taken out.
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
fn a_turn_as_it_should_be_breaks_none() {
    assert_eq!(broken(&[init(), retry(), said(), result()]), [""; 0]);
}

#[test]
fn all_records_are_of_one_session() {
    let other = with(said(), "/session_id", Some(json!("t")));
    assert_eq!(broken(&[init(), other, result()]), ["one-session"]);
    let second = [init(), result()].map(|it| with(it, "/session_id", Some(json!("t"))));
    assert_eq!(broken(&[&[init(), result()], &second[..]].concat()), [""; 0]);
}

#[test]
fn a_message_names_its_model() {
    let nameless = with(said(), "/message/model", None);
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
