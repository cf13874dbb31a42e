//! A strict script finds what an API refuses in a request alone.

use fake_model::{Reply, Script};
use serde_json::{Value, json};

use crate::support::turns::Turns;
use crate::support::{Client, Entry, Wire, found, model, request, start};

const NOTHING: [&str; 0] = [];

fn calls() -> Reply {
    Reply::call("bash", json!({"command": "ls"})).then_call("bash", json!({"command": "pwd"}))
}

fn changed(wire: Wire, change: impl FnOnce(&mut Value)) -> Vec<&'static str> {
    Turns::new(wire, calls()).send_changed(change)
}

/// Posts a request of Messages with this header.
fn version(script: Script, header: &str) -> Vec<&'static str> {
    let model = start(script.reply(Reply::text("ok")));
    let (path, body) = request(Wire::Messages, &[Entry::User("Hello")]);
    let (body, mut client) = (body.to_string(), Client::new(&model));
    let length = body.len();
    client.write(&format!(
        "POST {path} HTTP/1.1\r\nx-api-key: dummy\r\n{header}content-length: {length}\r\n\r\n{body}"
    ));
    client.read();
    found(&model)
}

#[test]
fn the_version_of_anthropic_is_checked() {
    let (new, old) = ("anthropic-version: 2026-10-21\r\n", "anthropic-version: 2023-06-01\r\n");
    for (header, lax, strict) in [
        (new, vec![], vec![]),
        (old, vec![], vec!["version-wrong"]),
        ("anthropic-version: 2024-01-01\r\n", vec!["version-wrong"], vec!["version-wrong"]),
        ("", vec!["version-wrong"], vec!["version-wrong"]),
    ] {
        assert_eq!(version(Script::new(), header), lax, "{header}");
        assert_eq!(version(Script::new().strict(), header), strict, "{header}");
    }
}

#[test]
fn a_lax_script_finds_none_of_it() {
    let model = model([Reply::text("ok")]);
    let (path, mut body) = request(Wire::Chat, &[Entry::User("Hello")]);
    body["max_tokens"] = json!(1);
    body["max_completion_tokens"] = json!(1);
    crate::support::post(&model, &path, &body);
    assert_eq!(found(&model), NOTHING);
}

#[test]
fn fields_that_are_refused_are_found() {
    for (wire, change) in [
        (Wire::Messages, json!({"temperature": 1})),
        (Wire::Messages, json!({"top_p": 1})),
        (Wire::Messages, json!({"top_k": 1})),
        (Wire::Messages, json!({"max_tokens": null})),
        (Wire::Chat, json!({"max_tokens": 1, "max_completion_tokens": 1})),
        (Wire::Responses, json!({"max_tokens": 1})),
        (Wire::Responses, json!({"store": false})),
        (
            Wire::Gemini,
            json!({"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW", "thinkingBudget": 1}}}),
        ),
        (Wire::Gemini, json!({"continuationToken": "unknown"})),
    ] {
        let findings = changed(wire, |body| {
            body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        });
        assert_eq!(findings, ["field-refused"], "{change}");
    }
}

#[test]
fn an_empty_list_is_found_in_chat() {
    let findings = changed(Wire::Chat, |body| {
        let message = json!({"role": "assistant", "content": "Hm.", "tool_calls": []});
        let messages = body["messages"].as_array_mut().unwrap();
        messages.push(message);
        messages.push(json!({"role": "user", "content": "And?"}));
    });
    assert_eq!(findings, ["field-refused"]);
    let script = Script::new().strict().without_side_requests().reply(Reply::text("ok"));
    let model = start(script);
    let (path, mut body) = request(Wire::Chat, &[Entry::User("Hello")]);
    body["tools"] = json!([]);
    crate::support::post(&model, &path, &body);
    assert_eq!(found(&model), ["field-refused"]);
}

#[test]
fn arguments_of_chat_are_a_text_with_json() {
    for value in [json!({}), json!("{\"a\":"), json!("[]")] {
        let findings = changed(Wire::Chat, |body| {
            body["messages"][1]["tool_calls"][0]["function"]["arguments"] = value.clone();
        });
        assert_eq!(findings, ["field-refused", "reply-changed"], "{value}");
    }
}

#[test]
fn tools_of_responses_state_whether_they_are_strict() {
    for field in ["strict", "parameters"] {
        let model = start(Script::new().strict().reply(Reply::text("ok")));
        let (path, mut body) = request(Wire::Responses, &[Entry::User("Hello")]);
        body["tools"][0]["strict"] = json!(false);
        body["tools"][0].as_object_mut().unwrap().remove(field);
        crate::support::post(&model, &path, &body);
        assert_eq!(found(&model), ["field-refused"], "{field}");
    }
}

#[test]
fn an_item_in_progress_is_found() {
    let findings =
        changed(Wire::Responses, |body| body["input"][1]["status"] = json!("in_progress"));
    assert_eq!(findings, ["field-refused"]);
}

#[test]
fn reasoning_without_its_item_or_its_content_is_found() {
    let reply = || Reply::new().then_reasoning("r").then_text("t");
    let findings = Turns::new(Wire::Responses, reply()).send_changed(|body| {
        body["input"].as_array_mut().unwrap().remove(2);
    });
    assert_eq!(findings, ["reasoning-alone", "reply-changed", "reply-changed"]);
    let findings = Turns::new(Wire::Responses, reply()).send_changed(|body| {
        body["store"] = json!(false);
        body["include"] = json!(["reasoning.encrypted_content"]);
        body["input"][1].as_object_mut().unwrap().remove("encrypted_content");
    });
    assert_eq!(findings, ["signature-missing", "signature-missing"]);
}

#[test]
fn a_blank_text_block_is_found() {
    let findings = changed(Wire::Messages, |body| {
        let content = body["messages"][2]["content"].as_array_mut().unwrap();
        content.push(json!({"type": "text", "text": " \n"}));
    });
    assert_eq!(findings, ["content-empty"]);
}

#[test]
fn text_after_a_call_is_found() {
    let findings = changed(Wire::Messages, |body| {
        let content = body["messages"][1]["content"].as_array_mut().unwrap();
        content.push(json!({"type": "text", "text": "Well."}));
    });
    assert_eq!(findings, ["text-after-call", "reply-changed"]);
}

#[test]
fn results_in_two_messages_are_found() {
    let findings = changed(Wire::Messages, |body| {
        let second = body["messages"][2]["content"].as_array_mut().unwrap().pop().unwrap();
        let messages = body["messages"].as_array_mut().unwrap();
        messages.push(json!({"role": "user", "content": [second]}));
    });
    assert_eq!(findings, ["answers-misplaced"]);
    let findings = changed(Wire::Messages, |body| {
        let content = body["messages"][2]["content"].as_array_mut().unwrap();
        content.insert(1, json!({"type": "text", "text": "Well."}));
    });
    assert!(findings.contains(&"answers-misplaced"), "{findings:?}");
}

#[test]
fn answers_in_another_order_are_found() {
    let swap = |body: &mut Value| body["messages"].as_array_mut().unwrap().swap(2, 3);
    assert_eq!(changed(Wire::Chat, swap), ["answers-misplaced"]);
    let swap = |body: &mut Value| {
        body["contents"][2]["parts"].as_array_mut().unwrap().swap(0, 1);
    };
    assert_eq!(changed(Wire::Gemini, swap), ["answers-misplaced", "answers-misplaced"]);
}

#[test]
fn responses_of_gemini_are_alone_named_and_numbered() {
    let findings = changed(Wire::Gemini, |body| {
        body["contents"][2]["parts"].as_array_mut().unwrap().push(json!({"text": "Well."}));
    });
    assert_eq!(findings, ["answers-misplaced"]);
    let findings = changed(Wire::Gemini, |body| {
        body["contents"][2]["parts"][0]["functionResponse"]["name"] = json!("other");
    });
    assert_eq!(findings, ["answers-misplaced"]);
    let findings = changed(Wire::Gemini, |body| {
        let response = &mut body["contents"][2]["parts"][0]["functionResponse"];
        response.as_object_mut().unwrap().remove("id");
    });
    assert!(findings.contains(&"answer-id-missing"), "{findings:?}");
}

#[test]
fn a_thought_or_an_empty_part_of_gemini_is_found() {
    let findings = changed(Wire::Gemini, |body| {
        let parts = body["contents"][1]["parts"].as_array_mut().unwrap();
        parts.insert(0, json!({"text": "Hm.", "thought": true}));
    });
    assert_eq!(findings, ["field-refused", "reply-changed"]);
    let findings = changed(Wire::Gemini, |body| {
        body["contents"][1]["parts"].as_array_mut().unwrap().insert(0, json!({"text": ""}));
    });
    assert_eq!(findings, ["content-empty"]);
}
