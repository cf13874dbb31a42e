//! What `check` finds in a stream of Chat Completions.

use interlingua::Exit;
use interlingua::check::Checker;
use interlingua::framing::Limits;
use serde_json::{Value, json};

use crate::support::dialect;

fn findings(stream: &str) -> Vec<&'static str> {
    let mut checker = Checker::new(dialect("openai-chat"), Limits::default());
    checker.push(stream.as_bytes());
    let mut rules: Vec<_> =
        checker.finish(&Exit::default()).into_iter().map(|finding| finding.rule).collect();
    rules.sort_unstable();
    rules.dedup();
    rules
}

fn chunk(delta: Value, reason: Option<&str>) -> String {
    let chunk = json!({
        "id": "c", "object": "chat.completion.chunk", "model": "m",
        "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }],
    });
    format!("data: {chunk}\n\n")
}

fn call(piece: Value) -> String {
    chunk(json!({ "tool_calls": [piece] }), None)
}

const DONE: &str = "data: [DONE]\n\n";

#[test]
fn a_stream_of_openai_keeps_the_rules() {
    let stream = [
        chunk(json!({"role": "assistant", "content": ""}), None),
        chunk(json!({"content": "Hi"}), None),
        call(
            json!({"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}),
        ),
        call(json!({"index": 0, "function": {"arguments": "{}"}})),
        chunk(json!({}), Some("tool_calls")),
        format!(
            "data: {}\n\n",
            json!({
                "id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [],
                "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
            })
        ),
        DONE.to_owned(),
    ];
    assert_eq!(findings(&stream.concat()), Vec::<&str>::new());
}

#[test]
fn a_missing_end_is_found() {
    let (start, stop) = (chunk(json!({"content": "Hi"}), None), chunk(json!({}), Some("stop")));
    assert_eq!(findings(&format!("{start}{stop}")), ["done-missing"]);
    assert_eq!(findings(&format!("{start}{DONE}")), ["finish-missing"]);
    assert!(findings(&start).contains(&"finish-missing"));
    assert_eq!(findings(&format!("{start}{stop}{DONE}{DONE}")), ["done-once"]);
}

#[test]
fn a_choice_that_continues_after_its_end_is_found() {
    let stream =
        [chunk(json!({}), Some("stop")), chunk(json!({"content": "Hi"}), None), DONE.to_owned()];
    assert_eq!(findings(&stream.concat()), ["finish-last"]);
}

#[test]
fn odd_calls_are_found() {
    let stop = chunk(json!({}), Some("tool_calls")) + DONE;
    let function = json!({"name": "f", "arguments": "{}"});
    let of = |pieces: &[Value]| {
        findings(&(pieces.iter().map(|piece| call(piece.clone())).collect::<String>() + &stop))
    };
    assert_eq!(of(&[json!({"id": "a", "function": function})]), ["call-index"]);
    assert_eq!(of(&[json!({"index": 0, "function": function})]), ["call-id"]);
    assert_eq!(
        of(&[json!({"index": 0, "id": "a", "function": {"arguments": "{}"}})]),
        ["call-name"]
    );
    let two = [
        json!({"index": 0, "id": "a", "function": function}),
        json!({"index": 0, "id": "b", "function": function}),
    ];
    assert!(of(&two).contains(&"call-index"));
    let object = json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": {}}});
    assert_eq!(of(&[object]), ["call-arguments"]);
}

#[test]
fn odd_reasons_and_counts_are_found() {
    let stream = chunk(json!({"content": "Hi"}), Some("eos")) + DONE;
    assert_eq!(findings(&stream), ["finish-reason"]);
    let mut counted: Value = json!({
        "id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 4},
    });
    let stop = chunk(json!({}), Some("stop"));
    assert_eq!(findings(&format!("{stop}data: {counted}\n\n{DONE}")), ["usage-sum"]);
    counted["usage"] = json!({"total_tokens": 4});
    assert_eq!(findings(&format!("{stop}data: {counted}\n\n{DONE}")), ["usage-fields"]);
}
