//! Answers without a stream.

use fake_model::{Cut, Reply, Script};
use serde_json::{Value, json};

use crate::support::bodies::request_without_stream;
use crate::support::{self, Entry, Wire, found, post, start};

fn request_body(wire: Wire, script: Script) -> support::Response {
    let (path, body) = request_without_stream(wire, &[Entry::User("Hello")]);
    post(&start(script.any_stream()), &path, &body)
}

#[test]
fn every_part_is_in_the_body() {
    let reply = Reply::new()
        .then_reasoning("think")
        .then_text("Hel")
        .then_text("lo")
        .then_call("bash", json!({"command": "ls"}))
        .usage(10, 4);
    let arguments = json!("{\"command\":\"ls\"}");
    for (wire, expected) in [
        (
            Wire::Responses,
            vec![
                ("/output/0/summary/0/text", json!("think")),
                ("/output/1/content/0/text", json!("Hello")),
                ("/output/2/arguments", arguments.clone()),
                ("/output/2/call_id", json!("call_0001")),
                ("/status", json!("completed")),
                ("/usage/total_tokens", json!(14)),
            ],
        ),
        (
            Wire::Chat,
            vec![
                ("/object", json!("chat.completion")),
                ("/choices/0/message/reasoning_content", json!("think")),
                ("/choices/0/message/content", json!("Hello")),
                ("/choices/0/message/tool_calls/0/function/arguments", arguments.clone()),
                ("/choices/0/finish_reason", json!("tool_calls")),
                ("/usage/completion_tokens", json!(4)),
            ],
        ),
        (
            Wire::Messages,
            vec![
                ("/content/0/thinking", json!("think")),
                ("/content/1/text", json!("Hello")),
                ("/content/2/input", json!({"command": "ls"})),
                ("/stop_reason", json!("tool_use")),
                ("/usage/output_tokens", json!(4)),
            ],
        ),
        (
            Wire::Gemini,
            vec![
                ("/candidates/0/content/parts/0/thought", json!(true)),
                ("/candidates/0/content/parts/1/text", json!("Hello")),
                ("/candidates/0/content/parts/2/functionCall/args/command", json!("ls")),
                ("/candidates/0/finishReason", json!("STOP")),
                ("/usageMetadata/candidatesTokenCount", json!(4)),
            ],
        ),
    ] {
        let response = request_body(wire, Script::new().reply(reply.clone()));
        let body = response.json();
        for (pointer, value) in expected {
            assert_eq!(body.pointer(pointer), Some(&value), "{wire:?} {pointer}");
        }
    }
}

#[test]
fn a_cut_halves_the_body() {
    for wire in Wire::ALL {
        let script = Script::new().reply(Reply::text("Hello").cut(Cut::InText));
        let response = request_body(wire, script);
        assert!(!response.complete && !response.body.is_empty(), "{wire:?}");
        assert!(serde_json::from_str::<Value>(&response.body).is_err());
    }
}

#[test]
fn an_error_in_the_stream_is_an_http_error_without_one() {
    for wire in Wire::ALL {
        let script = Script::new().reply(Reply::text("Hello").error_in_stream(529, "too much"));
        assert_eq!(request_body(wire, script).status, 529, "{wire:?}");
    }
}

#[test]
fn a_request_without_a_stream_is_found() {
    for wire in Wire::ALL {
        let model = start(Script::new().reply(Reply::text("Hello")));
        let (path, body) = request_without_stream(wire, &[Entry::User("Hello")]);
        post(&model, &path, &body);
        assert_eq!(found(&model), ["stream-unexpected"], "{wire:?}");
    }
}
