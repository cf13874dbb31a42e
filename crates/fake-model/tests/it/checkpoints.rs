//! Checkpoints of Gemini: a request with a token gets the rest of the answer, and nothing twice.

use fake_model::{Cut, Kind, Reply, Script};
use serde_json::{Value, json};

use crate::support::{
    Entry, Response, Wire, ask, found, model, parsed_answer, post, request, start,
};

fn reply() -> Reply {
    Reply::text("One, ").then_checkpoint().then_text("two, ").then_checkpoint().then_text("three.")
}

fn tokens(response: &Response) -> Vec<String> {
    let events = response.events().into_iter();
    let events = events.map(|(_, data)| serde_json::from_str::<Value>(&data).unwrap());
    let token =
        |event: Value| Some(event["candidates"][0]["continuationToken"].as_str()?.to_owned());
    events.filter_map(token).collect()
}

/// The text and the reason to stop; chunks with a token only have no content.
fn text(response: &Response) -> (String, String) {
    let (mut text, mut stop) = (String::new(), String::new());
    for (_, data) in response.events() {
        let event: Value = serde_json::from_str(&data).unwrap();
        let candidate = &event["candidates"][0];
        text += candidate["content"]["parts"][0]["text"].as_str().unwrap_or_default();
        stop += candidate["finishReason"].as_str().unwrap_or_default();
    }
    (text, stop)
}

fn continued(text: &str) -> (String, String) {
    (text.to_owned(), "STOP".to_owned())
}

#[test]
fn each_token_continues_after_its_checkpoint() {
    for cut in [Cut::InText, Cut::AfterCheckpoint] {
        let model = model([reply().cut(cut), Reply::text("next")]);
        let first = ask(&model, Wire::Gemini);
        assert!(!first.complete && text(&first).0 == "One, two, ", "{cut:?}");
        let tokens = tokens(&first);
        let (path, mut body) = request(Wire::Gemini, &[Entry::User("Hello")]);
        for (token, rest) in tokens.iter().zip(["two, three.", "three."]) {
            body["continuationToken"] = json!(token);
            assert_eq!(text(&post(&model, &path, &body)), continued(rest));
        }
        let kinds: Vec<Kind> = model.requests().into_iter().map(|request| request.kind).collect();
        assert_eq!(kinds, vec![Kind::Main(Some(0)); 3]);
        assert_eq!(text(&ask(&model, Wire::Gemini)), continued("next"));
        assert_eq!(found(&model), [""; 0]);
    }
}

#[test]
fn an_answer_may_end_at_its_last_checkpoint() {
    let model = model([reply().continued()]);
    let first = ask(&model, Wire::Gemini);
    assert!(first.complete);
    assert_eq!(text(&first), ("One, two, ".to_owned(), "CONTINUATION".to_owned()));
    let (path, mut body) = request(Wire::Gemini, &[Entry::User("Hello")]);
    body["continuationToken"] = json!(tokens(&first).last().unwrap());
    assert_eq!(text(&post(&model, &path, &body)), continued("three."));
}

#[test]
fn a_strict_script_expects_both_halves_back() {
    let path = "/v1beta/models/m:streamGenerateContent?alt=sse";
    for (kept, expected) in [("One, two, three.", vec![]), ("three.", vec!["reply-changed"])] {
        let reply = reply().then_call("bash", json!({})).cut(Cut::AfterCheckpoint);
        let model = start(Script::new().strict().reply(reply).reply(Reply::text("Bye")));
        let first = ask(&model, Wire::Gemini);
        let (_, mut body) = request(Wire::Gemini, &[Entry::User("Hello")]);
        let mut again = body.clone();
        again["continuationToken"] = json!(tokens(&first).last().unwrap());
        let rest = post(&model, path, &again);
        let events = rest.events();
        let call: Value = serde_json::from_str(&events[1].1).unwrap();
        let call = call["candidates"][0]["content"]["parts"][0].clone();
        let result = json!({
            "id": call["functionCall"]["id"], "name": "bash", "response": {"output": "x"},
        });
        let contents = body["contents"].as_array_mut().unwrap();
        contents.push(json!({"role": "model", "parts": [{"text": kept}, call]}));
        contents.push(json!({"role": "user", "parts": [{"functionResponse": result}]}));
        post(&model, path, &body);
        assert_eq!(found(&model), expected);
    }
}

#[test]
fn other_protocols_have_no_checkpoints() {
    for wire in [Wire::Responses, Wire::Chat, Wire::Messages] {
        let response = ask(&model([reply().continued()]), wire);
        assert!(response.complete);
        assert_eq!(parsed_answer(wire, &response).text, "One, two, three.", "{wire:?}");
    }
}
