//! `check` reports what a response of the Messages API must not do.

use serde_json::{Value, json};

use super::reading::{block_start, block_stop, delta, response, stream};
use crate::support::Case;
use crate::support::rules::violations;

fn broken(events: &[Value]) -> Vec<&'static str> {
    let mut rules = violations("anthropic-api", &stream(events));
    rules.dedup();
    rules
}

#[test]
fn a_complete_response_breaks_no_rule() {
    assert_eq!(broken(&response("end_turn")), [""; 0]);
    let cut = ["cut-before-end", "cut-in-arguments", "cut-in-text", "pause-turn", "two-responses"];
    for case in Case::of("anthropic-api") {
        let name = case.name.split('/').next_back().unwrap();
        let rules = violations("anthropic-api", &String::from_utf8_lossy(&case.input));
        let allowed = cut.contains(&name) || name == "unusual-framing";
        assert!(rules.is_empty() || allowed, "{name}: {rules:?}");
    }
}

#[test]
fn the_order_of_events_is_checked() {
    let mut events = response("end_turn");
    events.pop();
    assert_eq!(broken(&events), ["message-stop-last", "turn-not-ended"]);
    let events = response("end_turn");
    assert_eq!(broken(&events[1..])[0], "message-start-first");
    let mut events = response("end_turn");
    events.remove(3);
    assert_eq!(broken(&events), ["block-open"]);
    let mut events = response("end_turn");
    events.remove(1);
    assert_eq!(broken(&events)[0], "block-open");
    let mut events = response("end_turn");
    events.remove(4);
    assert_eq!(broken(&events), ["stop-reason"]);
}

#[test]
fn blocks_are_numbered_and_deltas_fit_them() {
    let mut events = response("end_turn");
    for event in &mut events[1..4] {
        event["index"] = json!(2);
    }
    assert_eq!(broken(&events), ["block-index"]);
    let mut events = response("end_turn");
    events[2]["delta"] = json!({"type": "thinking_delta", "thinking": "x"});
    assert_eq!(broken(&events), ["delta-type"]);
}

#[test]
fn counts_and_stop_reasons_are_checked() {
    assert_eq!(broken(&response("brand_new")), ["stop-reason"]);
    let mut events = response("end_turn");
    events.insert(4, events[4].clone());
    events[5]["usage"]["output_tokens"] = json!(4);
    assert_eq!(broken(&events), ["usage"]);
    let mut events = response("end_turn");
    events[0]["message"]["usage"] = json!({});
    assert_eq!(broken(&events), ["usage"]);
}

#[test]
fn the_input_of_a_call_is_a_whole_object_unless_the_response_was_cut_off() {
    let call = |reason: &str| {
        let mut events = response(reason);
        let tool = json!({"type": "tool_use", "id": "c", "name": "t", "input": {}});
        let piece = delta(1, json!({"type": "input_json_delta", "partial_json": "{\"a\":"}));
        events.splice(4..4, [block_start(1, tool), piece, block_stop(1)]);
        events
    };
    assert_eq!(broken(&call("tool_use")), ["call-input"]);
    assert_eq!(broken(&call("max_tokens")), [""; 0]);
    let mut events = call("max_tokens");
    events[4]["content_block"].as_object_mut().unwrap().remove("id");
    assert_eq!(broken(&events)[0], "block-fields");
}

#[test]
fn an_error_has_a_type_and_a_message() {
    assert_eq!(
        broken(&[json!({"type": "error", "error": {"type": "api_error"}})]),
        ["error-fields"]
    );
    let error = json!({"type": "error", "error": {"type": "api_error", "message": "x"}});
    assert_eq!(broken(&[response("end_turn")[0].clone(), error]), [""; 0]);
}
