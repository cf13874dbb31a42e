//! Every signature has a value of its own, where the API puts it.

use std::collections::HashSet;

use fake_model::{ChatForm, GeminiForm, Reply, SignaturePlace};
use serde_json::{Value, json};

use crate::support::{Response, Wire, ask, model};

fn data(response: &Response) -> Vec<Value> {
    let events = response.events().into_iter();
    events
        .filter(|(_, data)| data != "[DONE]")
        .map(|(_, data)| serde_json::from_str(&data).unwrap())
        .collect()
}

/// All values of a field, anywhere in the events.
fn values(response: &Response, field: &str) -> Vec<String> {
    fn collect(value: &Value, field: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match value.as_str() {
                        Some(text) if name == field && !text.is_empty() => {
                            found.push(text.to_owned());
                        }
                        _ => collect(value, field, found),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, field, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    data(response).iter().for_each(|event| collect(event, field, &mut found));
    found
}

#[test]
fn blocks_of_thinking_have_signatures_of_their_own() {
    let reply = || {
        Reply::new()
            .then_reasoning("a")
            .then_text("t")
            .then_reasoning("b")
            .then_redacted_reasoning()
            .then_redacted_reasoning()
    };
    let model = model([reply(), reply()]);
    let mut all = HashSet::new();
    for _ in 0..2 {
        let response = ask(&model, Wire::Messages);
        let signatures = values(&response, "signature");
        let hidden = values(&response, "data");
        assert_eq!((signatures.len(), hidden.len()), (2, 2));
        all.extend(signatures.into_iter().chain(hidden));
        let start = data(&response)
            .iter()
            .filter(|event| event["content_block"]["type"] == "redacted_thinking")
            .count();
        assert_eq!(start, 2);
    }
    assert_eq!(all.len(), 8);
}

#[test]
fn a_signature_is_the_last_delta_of_its_block() {
    let response = ask(&model([Reply::new().then_reasoning("a")]), Wire::Messages);
    let kinds: Vec<Value> =
        data(&response).iter().map(|event| event["delta"]["type"].clone()).collect();
    let place = kinds.iter().position(|kind| kind == "signature_delta").unwrap();
    assert_eq!(data(&response)[place + 1]["type"], "content_block_stop");
}

#[test]
fn encrypted_content_is_complete_only_when_the_item_is_done() {
    let response =
        ask(&model([Reply::new().then_reasoning("a").then_redacted_reasoning()]), Wire::Responses);
    let item = |name: &str, place: usize| {
        let events = data(&response);
        let mut items = events.iter().filter(|event| event["type"] == json!(name));
        items.nth(place).unwrap()["item"].clone()
    };
    for place in 0..2 {
        let added = item("response.output_item.added", place);
        let done = item("response.output_item.done", place);
        let text = |item: &Value| item["encrypted_content"].as_str().unwrap().to_owned();
        assert!(text(&done).starts_with(&text(&added)) && text(&done).len() > text(&added).len());
    }
    assert_ne!(
        item("response.output_item.done", 0)["encrypted_content"],
        item("response.output_item.done", 1)["encrypted_content"]
    );
    assert_eq!(item("response.output_item.done", 1)["summary"], json!([]));
}

#[test]
fn messages_of_responses_have_phases_on_request() {
    use fake_model::ResponsesForm;
    let form = ResponsesForm { phases: true, ..ResponsesForm::default() };
    for (reply, phase) in [
        (Reply::text("t").then_call("bash", json!({})), "commentary"),
        (Reply::text("t"), "final_answer"),
    ] {
        let response = ask(&model([reply.clone()]), Wire::Responses);
        assert_eq!(values(&response, "phase"), Vec::<String>::new());
        let response = ask(&model([reply.responses(form.clone())]), Wire::Responses);
        assert!(values(&response, "phase").iter().all(|found| found == phase));
    }
}

#[test]
fn gemini_signs_the_first_call_or_the_last_text() {
    let parts = |reply: Reply| -> Vec<Value> {
        let response = ask(&model([reply]), Wire::Gemini);
        let parts = data(&response).into_iter();
        parts.map(|event| event["candidates"][0]["content"]["parts"][0].clone()).collect()
    };
    let signed = |parts: &[Value]| -> Vec<usize> {
        let places = parts.iter().enumerate();
        places
            .filter(|(_, part)| part.get("thoughtSignature").is_some())
            .map(|(place, _)| place)
            .collect()
    };
    let calls = Reply::text("a").then_call("bash", json!({})).then_call("bash", json!({}));
    assert_eq!(signed(&parts(calls)), [1]);
    let text = || Reply::new().then_reasoning("r").then_text("a").then_text("b");
    assert_eq!(signed(&parts(text())), [2]);
    let form = |signature| GeminiForm { signature, ..GeminiForm::default() };
    let at_end = parts(text().gemini(form(SignaturePlace::EmptyPart)));
    assert_eq!(signed(&at_end), [3]);
    assert_eq!(at_end[3]["text"], "");
    assert_eq!(signed(&parts(text().gemini(form(SignaturePlace::Nowhere)))), [0; 0]);
}

#[test]
fn reasoning_of_chat_is_in_the_field_that_the_script_names() {
    let reply = || Reply::new().then_reasoning("a").then_reasoning("b");
    let form = ChatForm {
        reasoning_field: "reasoning".to_owned(),
        reasoning_details: true,
        ..ChatForm::default()
    };
    let default = ask(&model([reply()]), Wire::Chat);
    assert_eq!(values(&default, "reasoning_content").concat(), "ab");
    assert!(!default.body.contains("reasoning_details"));
    let named = ask(&model([reply().chat(form)]), Wire::Chat);
    assert_eq!(values(&named, "reasoning").concat(), "ab");
    assert_eq!(values(&named, "text").concat(), "ab");
    assert_eq!(values(&named, "signature").len(), 1);
    assert!(!named.body.contains("reasoning_content"));
}
