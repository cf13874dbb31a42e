//! What is read from a response: its counts, its end, its errors, and what is not known.

use interlingua::Exit;
use interlingua::event::ErrorClass;
use serde_json::{Value, json};

use crate::support::records::{of_type, text_of};
use crate::support::{dialect, translate_chunks, translate_lines};

pub fn message_start(id: &str) -> Value {
    let usage = json!({"input_tokens": 10, "cache_read_input_tokens": 4, "output_tokens": 1});
    let message = json!({
        "id": id, "type": "message", "role": "assistant", "model": "m", "content": [],
        "usage": usage,
    });
    json!({"type": "message_start", "message": message})
}

pub fn block_start(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

pub fn delta(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

pub fn block_stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

pub fn message_delta(stop_reason: &str, output: u64) -> Value {
    let delta = json!({"stop_reason": stop_reason, "stop_sequence": null});
    json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": output}})
}

/// A block of text.
pub fn text(index: u64, words: &str) -> Vec<Value> {
    vec![
        block_start(index, json!({"type": "text", "text": ""})),
        delta(index, json!({"type": "text_delta", "text": words})),
        block_stop(index),
    ]
}

/// A whole response with one text.
pub fn response(stop_reason: &str) -> Vec<Value> {
    let mut events = vec![message_start("m")];
    events.extend(text(0, "Hi"));
    events.extend([message_delta(stop_reason, 5), json!({"type": "message_stop"})]);
    events
}

/// The server-sent events of a response.
pub fn stream(events: &[Value]) -> String {
    let event = |it: &Value| format!("event: {}\ndata: {it}\n\n", it["type"].as_str().unwrap());
    events.iter().map(event).collect()
}

pub fn read(events: &[Value]) -> Vec<Value> {
    let from = Some(dialect("anthropic-api"));
    let stream = stream(events);
    translate_chunks(from, dialect("events"), [stream.as_bytes()], &Exit::default()).records()
}

fn turn(events: &[Value]) -> Value {
    let events = read(events);
    let ends = of_type(&events, "turn_ended");
    assert_eq!(ends.len(), 1);
    ends[0].clone()
}

#[test]
fn the_stop_reason_decides_the_outcome() {
    for (reason, outcome) in [
        ("end_turn", "completed"),
        ("stop_sequence", "completed"),
        ("tool_use", "waiting_for_client"),
        ("pause_turn", "waiting_for_client"),
        ("max_tokens", "limit_reached"),
        ("model_context_window_exceeded", "limit_reached"),
        ("refusal", "refused"),
        ("brand_new", "completed"),
    ] {
        let turn = turn(&response(reason));
        assert_eq!((&turn["outcome"], &turn["stop_reason"]), (&json!(outcome), &json!(reason)));
    }
}

#[test]
fn only_message_stop_ends_a_response() {
    let events = response("end_turn");
    for length in 1..events.len() {
        let turn = turn(&events[..length]);
        let expected = (&json!("failed"), &json!("network"), &json!("input_ended"));
        assert_eq!((&turn["outcome"], &turn["class"], &turn["synthetic"]), expected, "{length}");
    }
}

#[test]
fn counts_replace_those_from_before_and_are_not_added() {
    let mut events = response("end_turn");
    events.insert(4, json!({"type": "message_delta", "delta": {}, "usage": {"output_tokens": 3}}));
    let expected = json!({"scope": "turn", "input": 10, "cache_read": 4, "output": 5});
    assert_eq!(turn(&events)["usage"], expected);
    events[5]["usage"] = json!({
        "output_tokens": 7, "input_tokens": 20, "cache_read_input_tokens": 0,
        "output_tokens_details": {"thinking_tokens": 2},
    });
    let expected =
        json!({"scope": "turn", "input": 20, "cache_read": 0, "output": 7, "reasoning": 2});
    assert_eq!(turn(&events)["usage"], expected);
}

/// The first event counts the first tokens of the output only.
#[test]
fn the_output_of_a_response_without_its_counts_is_unknown() {
    let mut events = response("end_turn");
    events.remove(4);
    assert_eq!(turn(&events)["usage"], json!({"scope": "turn", "input": 10, "cache_read": 4}));
}

#[test]
fn the_counts_of_a_response_that_lost_only_its_last_event_are_kept() {
    let mut events = response("end_turn");
    events.pop();
    let turn = turn(&events);
    assert_eq!((&turn["outcome"], &turn["usage"]["output"]), (&json!("failed"), &json!(5)));
}

#[test]
fn errors_have_their_class_and_whether_they_may_be_retried() {
    for (kind, code, class, retried) in [
        ("authentication_error", None, "authentication", false),
        ("permission_error", None, "permission", false),
        ("not_found_error", None, "not_found", false),
        ("billing_error", None, "quota", false),
        ("request_too_large", None, "context_overflow", false),
        ("invalid_request_error", Some("tool_name_conflict"), "bad_request", false),
        ("rate_limit_error", None, "rate_limit", true),
        ("rate_limit_error", Some("enforced_spend_limit_reached"), "quota", false),
        ("overloaded_error", None, "overloaded", true),
        ("timeout_error", None, "timed_out", true),
        ("api_error", None, "internal", true),
        ("conflict_error", None, "internal", true),
    ] {
        let mut error = json!({"type": kind, "message": "why"});
        if let Some(code) = code {
            error["details"] = json!({"error_code": code});
        }
        let body = json!({"type": "error", "error": error, "request_id": "r"});
        for events in [vec![body.clone()], vec![message_start("m"), body.clone()]] {
            let events = read(&events);
            let error = of_type(&events, "error")[0];
            assert_eq!((&error["class"], &error["message"]), (&json!(class), &json!("why")));
            assert_eq!(error["code"], code.unwrap_or(kind));
            let turn = of_type(&events, "turn_ended")[0];
            assert_eq!((&turn["outcome"], &turn["class"]), (&json!("failed"), &json!(class)));
            assert_eq!(ErrorClass::from(class).may_be_retried(), retried, "{kind}");
        }
    }
}

/// A gateway that fails sends its error as it would send it alone.
#[test]
fn a_bare_error_may_follow_the_events_of_a_stream() {
    let body = json!({"type": "error", "error": {"type": "api_error", "message": "why"}});
    let input = stream(&[message_start("m")]) + &serde_json::to_string_pretty(&body).unwrap();
    let (from, to) = (Some(dialect("anthropic-api")), dialect("events"));
    let events = translate_chunks(from, to, [input.as_bytes()], &Exit::default()).records();
    let turn = of_type(&events, "turn_ended")[0];
    assert_eq!((&turn["class"], &turn["cause"]), (&json!("internal"), &json!("why")));
}

#[test]
fn an_error_of_an_unknown_type_is_a_failure() {
    let body = json!({"type": "error", "error": {"type": "moon_error", "message": "dark"}});
    let turn = turn(&[body]);
    assert_eq!((&turn["outcome"], &turn["cause"]), (&json!("failed"), &json!("dark")));
    assert!(turn.get("class").is_none());
}

#[test]
fn what_is_unknown_is_kept_and_costs_nothing_else() {
    let mut events = response("end_turn");
    let unknown = [
        json!({"type": "message_hint", "hint": 1}),
        block_start(1, json!({"type": "hologram", "depth": 3})),
        delta(1, json!({"type": "hologram_delta", "part": "x"})),
        block_stop(1),
        delta(0, json!({"type": "input_json_delta", "partial_json": "{"})),
    ];
    events.splice(4..4, unknown);
    let events = read(&events);
    let names: Vec<_> = of_type(&events, "unknown").iter().map(|it| it["name"].clone()).collect();
    let expected = [
        "message_hint",
        "content_block_delta/hologram_delta",
        "content_block_delta/input_json_delta",
    ];
    assert_eq!(names, expected);
    let block = of_type(&events, "block")[0];
    assert_eq!(block["kind"], "hologram");
    assert_eq!(block["content"], json!({"type": "hologram", "depth": 3}));
    assert_eq!(text_of(&events), "Hi");
    assert_eq!(of_type(&events, "turn_ended")[0]["outcome"], "completed");
}

#[test]
fn blocks_may_interleave() {
    let part = |index, words: &str| delta(index, json!({"type": "text_delta", "text": words}));
    let tool = json!({"type": "tool_use", "id": "c", "name": "t", "input": {}});
    let piece = |text: &str| delta(1, json!({"type": "input_json_delta", "partial_json": text}));
    let events = read(&[
        message_start("m"),
        block_start(0, json!({"type": "text", "text": ""})),
        block_start(1, tool),
        part(0, "a"),
        piece("{\"x\""),
        part(0, "b"),
        piece(":1}"),
        block_stop(1),
        block_stop(0),
        message_delta("tool_use", 5),
        json!({"type": "message_stop"}),
    ]);
    assert_eq!(text_of(&events), "ab");
    assert_eq!(of_type(&events, "tool_input")[0]["input"], json!({"x": 1}));
}

#[test]
fn a_response_that_another_one_cuts_off_has_failed() {
    let mut events = response("end_turn");
    events.truncate(3);
    events.extend(response("end_turn").into_iter().map(|mut event| {
        if event["type"] == "message_start" {
            event["message"]["id"] = json!("another");
        }
        event
    }));
    let events = read(&events);
    let ends = of_type(&events, "turn_ended");
    let outcomes: Vec<_> = ends.iter().map(|end| end["outcome"].clone()).collect();
    assert_eq!(outcomes, ["failed", "completed"]);
    assert_eq!((&ends[0]["class"], &ends[0]["synthetic"]), (&json!("network"), &json!("implied")));
    assert_eq!(text_of(&events), "HiHi");
}

#[test]
fn a_whole_response_has_the_same_content_as_a_streamed_one() {
    let whole = json!({
        "id": "m", "type": "message", "role": "assistant", "model": "m",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "s"},
            {"type": "text", "text": "Hi"},
            {"type": "tool_use", "id": "c", "name": "t", "input": {"x": 1}},
        ],
        "stop_reason": "tool_use", "stop_sequence": null,
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 4, "output_tokens": 5},
    });
    let mut streamed = vec![
        message_start("m"),
        block_start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "Hm."})),
        delta(0, json!({"type": "signature_delta", "signature": "s"})),
        block_stop(0),
    ];
    streamed.extend(text(1, "Hi"));
    streamed.extend([
        block_start(2, json!({"type": "tool_use", "id": "c", "name": "t", "input": {}})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "{\"x\":1}"})),
        block_stop(2),
        message_delta("tool_use", 5),
        json!({"type": "message_stop"}),
    ]);
    let pretty = serde_json::to_string_pretty(&whole).unwrap();
    let of_whole = translate_lines("anthropic-api", "events", &[whole.to_string()]).records();
    let of_pretty = translate_lines("anthropic-api", "events", &[pretty]).records();
    let (from, claude) = (Some(dialect("anthropic-api")), dialect("claude"));
    let stream = stream(&streamed);
    for events in [&of_whole, &of_pretty, &read(&streamed)] {
        assert_eq!(text_of(events), "Hm.Hi");
        let turn = of_type(events, "turn_ended")[0];
        let usage = json!({"scope": "turn", "input": 10, "cache_read": 4, "output": 5});
        assert_eq!((&turn["outcome"], &turn["usage"]), (&json!("waiting_for_client"), &usage));
    }
    // A writer of whole blocks writes the same for both.
    let one = translate_lines("anthropic-api", "claude", &[whole.to_string()]).records();
    let two = translate_chunks(from, claude, [stream.as_bytes()], &Exit::default()).records();
    let content = |records: &[Value]| -> Vec<Value> {
        records.iter().map(|record| record["message"]["content"].clone()).collect()
    };
    assert_eq!(content(&one), content(&two));
}

#[test]
fn odd_json_does_not_lose_a_record() {
    let lines = [
        r#"{"type":"message_start","type":"message_start","message":{"id":"m","type":"message","model":"a","model":"b"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\ud83d","text":"b\ud83dc"}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let events = translate_lines("anthropic-api", "events", &lines).records();
    assert_eq!(text_of(&events), "b\u{fffd}c");
    assert_eq!(of_type(&events, "session_started")[0]["model"], "b");
    assert_eq!(of_type(&events, "turn_ended")[0]["outcome"], "completed");
}
