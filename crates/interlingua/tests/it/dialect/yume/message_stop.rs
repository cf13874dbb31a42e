//! The end of a message ends its turn, even if the contract's `result` is missing.
use crate::support::translate_lines;
use serde_json::{Value, json};

const INIT: &str = r#"{"type":"system","subtype":"init","session_id":"s","model":"m","cwd":"/","permissionMode":"default","tools":[]}"#;
const TEXT: &str = r#"{"type":"text","content":"Hello"}"#;
const USAGE: &str = r#"{"type":"usage","input_tokens":5,"output_tokens":7}"#;
const CALL: &str = r#"{"type":"tool_use","id":"c","name":"Bash","input":{"command":"ls"}}"#;
const ANSWER: &str = r#"{"type":"tool_result","tool_use_id":"c","content":"a"}"#;
const STOPS: [&str; 2] = ["$", r#"{"type":"message_stop"}"#];

fn events(lines: &[&str]) -> Vec<Value> {
    translate_lines("yume", "events", lines).records()
}

/// The outcomes of the turns of a stream, and whether the stream reported them.
fn ends(lines: &[&str]) -> Vec<(String, bool)> {
    let ended = |event: &Value| {
        let outcome = event["outcome"].as_str().unwrap().to_owned();
        (outcome, event.get("synthetic").is_none())
    };
    let events = events(lines);
    events.iter().filter(|event| event["type"] == "turn_ended").map(ended).collect()
}

fn reported(outcomes: &[&str]) -> Vec<(String, bool)> {
    outcomes.iter().map(|outcome| ((*outcome).to_owned(), true)).collect()
}

#[test]
fn a_turn_without_a_result_ends_with_its_message() {
    for stop in STOPS {
        assert_eq!(ends(&[INIT, TEXT, USAGE, stop]), reported(&["completed"]));
        let events = events(&[INIT, TEXT, USAGE, stop]);
        let ended = events.iter().find(|event| event["type"] == "turn_ended").unwrap();
        assert_eq!((&ended["usage"]["input"], &ended["usage"]["output"]), (&json!(5), &json!(7)));
        // The next record starts another turn.
        assert_eq!(ends(&[INIT, TEXT, stop, TEXT, stop]), reported(&["completed", "completed"]));
    }
}

#[test]
fn a_message_stop_after_a_result_is_ignored() {
    let result = r#"{"type":"result","is_error":true,"errors":["no"]}"#;
    for stop in STOPS {
        assert_eq!(ends(&[INIT, TEXT, result, stop]), reported(&["failed"]));
    }
}

#[test]
fn an_error_that_is_last_is_the_cause() {
    let error = r#"{"type":"error","message":"the model is gone"}"#;
    for stop in STOPS {
        assert_eq!(ends(&[INIT, TEXT, error, stop]), reported(&["failed"]));
        // An error after which the agent continues does not end the turn.
        assert_eq!(ends(&[INIT, error, TEXT, stop]), reported(&["completed"]));
    }
    let events = events(&[INIT, error, STOPS[0]]);
    let ended = events.iter().find(|event| event["type"] == "turn_ended").unwrap();
    assert_eq!(ended["cause"], "the model is gone");
}

#[test]
fn an_interrupted_turn_was_cancelled() {
    let interrupt = r#"{"type":"interrupt"}"#;
    for stop in STOPS {
        assert_eq!(ends(&[INIT, TEXT, interrupt, stop]), reported(&["cancelled"]));
    }
}

#[test]
fn a_turn_without_content_has_not_completed() {
    for stop in STOPS {
        assert_eq!(ends(&[INIT, stop]), reported(&["failed"]));
    }
}

#[test]
fn a_message_that_ends_with_a_call_does_not_end_the_turn() {
    let nested = r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"c","name":"Bash","input":{"command":"ls"}}]}}"#;
    for stop in STOPS {
        for call in [CALL, nested] {
            let result = r#"{"type":"result","is_error":false,"subtype":"success"}"#;
            let lines = [INIT, TEXT, call, stop, ANSWER, TEXT, result, stop];
            assert_eq!(ends(&lines), reported(&["completed"]));
        }
    }
}

#[test]
fn a_turn_with_a_client_call_waits_for_the_client() {
    let call = CALL.replace("\"name\"", "\"executor\":\"client\",\"name\"");
    for stop in STOPS {
        assert_eq!(ends(&[INIT, &call, stop]), reported(&["waiting_for_client"]));
    }
}

#[test]
fn a_late_result_is_no_turn_and_repeats_no_text() {
    let result = r#"{"type":"result","is_error":true,"result":"Hello","errors":["too late"]}"#;
    let lines = [INIT, TEXT, STOPS[1], result];
    assert_eq!(ends(&lines), reported(&["completed"]));
    let events = events(&lines);
    let texts = events.iter().filter(|event| event["type"] == "block_delta");
    assert_eq!(texts.count(), 1);
    let native = events.iter().find(|event| event["name"] == "result").unwrap();
    assert_eq!(native["raw"]["errors"], json!(["too late"]));
    let error = events.iter().find(|event| event["type"] == "error").unwrap();
    assert_eq!(error["message"], "too late");
}
