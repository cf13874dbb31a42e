//! Each breach of an API's rules is found under its name, and nothing else is found.

use fake_model::{FakeModel, Reply, Script, ToolResult};
use serde_json::{Value, json};

use crate::support::Entry::{Answer, Calls, Model, User};
use crate::support::{Client, Entry, Wire, ask, found, model, post, request, start};

/// The findings in one request.
fn check(wire: Wire, entries: &[Entry]) -> Vec<&'static str> {
    let (path, body) = request(wire, entries);
    check_body(&path, &body)
}

fn check_body(path: &str, body: &Value) -> Vec<&'static str> {
    let model = model([Reply::text("ok")]);
    post(&model, path, body);
    found(&model)
}

const NOTHING: [&str; 0] = [];

fn calls() -> Entry {
    Calls(vec![("a", "bash"), ("b", "bash")])
}

#[test]
fn a_valid_conversation_has_no_findings() {
    let entries = [
        User("Hello"),
        Model("Hi"),
        User("Go"),
        calls(),
        Answer("a", "bash", "one"),
        Answer("b", "bash", "two"),
        Model("Done"),
        User("Thanks"),
    ];
    for wire in Wire::ALL {
        assert_eq!(check(wire, &entries), NOTHING, "{wire:?}");
    }
}

#[test]
fn a_missing_or_wrong_key_is_found_and_not_recorded() {
    for (header, expected) in [
        ("authorization: Bearer dummy", None),
        ("x-api-key: dummy", None),
        ("x-goog-api-key: dummy", None),
        ("authorization: Bearer sk-secret", Some("key-wrong")),
        ("x-api-key: sk-secret", Some("key-wrong")),
        ("cookie: sk-secret", Some("key-missing")),
    ] {
        let model = model([Reply::text("ok")]);
        let (path, body) = request(Wire::Chat, &[User("Hello")]);
        let body = body.to_string();
        let mut client = Client::new(&model);
        let length = body.len();
        client.write(&format!(
            "POST {path} HTTP/1.1\r\n{header}\r\ncontent-length: {length}\r\n\r\n{body}"
        ));
        client.read();
        assert_eq!(found(&model).first().copied(), expected, "{header}");
        let kept = format!("{:?} {:?}", model.requests(), model.findings());
        assert!(!kept.contains("sk-secret") && !kept.contains("dummy"), "{header}");
    }
}

#[test]
fn a_key_in_the_query_is_accepted_and_not_recorded() {
    let model = start(Script::new().reply(Reply::text("ok")).key("q-key"));
    let (_, body) = request(Wire::Gemini, &[User("Hello")]);
    let body = body.to_string();
    let mut client = Client::new(&model);
    let path = "/v1beta/models/m:streamGenerateContent?key=q-key&alt=sse";
    let length = body.len();
    client.write(&format!("POST {path} HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{body}"));
    client.read();
    assert_eq!(found(&model), NOTHING);
    assert_eq!(model.requests()[0].path, "/v1beta/models/m:streamGenerateContent?alt=sse");
}

#[test]
fn a_body_that_is_not_json_is_found() {
    let model = model([]);
    let mut client = Client::new(&model);
    client.write("POST /v1/messages HTTP/1.1\r\nx-api-key: dummy\r\ncontent-length: 3\r\n\r\n{no");
    assert_eq!(client.read().status, 400);
    assert_eq!(found(&model), ["body-unreadable"]);
    assert_eq!(model.requests()[0].body, json!("{no"));
}

#[test]
fn a_missing_model_is_found() {
    for wire in [Wire::Responses, Wire::Chat, Wire::Messages] {
        let (path, mut body) = request(wire, &[User("Hello")]);
        body["model"] = json!(null);
        assert_eq!(check_body(&path, &body), ["model-missing"], "{wire:?}");
    }
    let (_, body) = request(Wire::Gemini, &[User("Hello")]);
    let path = "/v1beta/models/:streamGenerateContent?alt=sse";
    assert_eq!(check_body(path, &body), ["model-missing"]);
}

#[test]
fn an_empty_list_of_messages_is_found() {
    for wire in Wire::ALL {
        assert_eq!(check(wire, &[]), ["messages-empty"], "{wire:?}");
    }
}

#[test]
fn an_unknown_role_is_found() {
    for (wire, field) in [
        (Wire::Responses, "input"),
        (Wire::Chat, "messages"),
        (Wire::Messages, "messages"),
        (Wire::Gemini, "contents"),
    ] {
        let (path, mut body) = request(wire, &[User("Hello"), User("More")]);
        body[field][0]["role"] = json!("robot");
        assert_eq!(check_body(&path, &body), ["role-unknown"], "{wire:?}");
    }
}

#[test]
fn roles_in_a_wrong_order_are_found() {
    for wire in Wire::ALL {
        let first = check(wire, &[Model("Hi"), User("Hello")]);
        let strict = matches!(wire, Wire::Messages | Wire::Gemini);
        assert_eq!(first, if strict { vec!["first-role"] } else { vec![] }, "{wire:?}");
        assert_eq!(check(wire, &[User("Hello"), Model("Hi")]), ["last-role"], "{wire:?}");
    }
}

#[test]
fn an_empty_message_is_found_where_the_api_rejects_it() {
    for wire in Wire::ALL {
        let strict = matches!(wire, Wire::Messages | Wire::Gemini);
        let expected = if strict { vec!["content-empty"] } else { vec![] };
        assert_eq!(check(wire, &[User("")]), expected, "{wire:?}");
    }
}

#[test]
fn a_call_without_an_answer_is_found() {
    for wire in Wire::ALL {
        let entries = [User("Go"), calls(), Answer("a", "bash", "one"), User("And?")];
        assert_eq!(check(wire, &entries), ["call-unanswered"], "{wire:?}");
    }
}

#[test]
fn a_late_answer_is_found_where_the_api_rejects_it() {
    for wire in Wire::ALL {
        let call = Calls(vec![("a", "bash")]);
        let entries = [User("Go"), call, User("And?"), Answer("a", "bash", "one")];
        let expected = if wire == Wire::Responses { vec![] } else { vec!["call-unanswered"] };
        assert_eq!(check(wire, &entries), expected, "{wire:?}");
    }
}

#[test]
fn a_second_answer_is_found() {
    for wire in Wire::ALL {
        let call = Calls(vec![("a", "bash")]);
        let entries = [User("Go"), call, Answer("a", "bash", "one"), Answer("a", "bash", "one")];
        assert_eq!(check(wire, &entries), ["answer-twice"], "{wire:?}");
    }
}

#[test]
fn an_answer_without_a_call_is_found() {
    for wire in Wire::ALL {
        let entries = [User("Go"), Answer("x", "bash", "one")];
        assert_eq!(check(wire, &entries), ["answer-without-call"], "{wire:?}");
    }
}

#[test]
fn two_calls_with_one_id_are_found() {
    for wire in Wire::ALL {
        let call = Calls(vec![("a", "bash"), ("a", "bash")]);
        let entries = [User("Go"), call, Answer("a", "bash", "one")];
        assert_eq!(check(wire, &entries), ["call-twice"], "{wire:?}");
    }
}

#[test]
fn gemini_calls_without_ids_are_paired_by_name_and_order() {
    let (path, mut body) = request(Wire::Gemini, &[User("Go")]);
    let call = json!({"functionCall": {"name": "bash", "args": {}}});
    let answer = json!({"functionResponse": {"name": "bash", "response": {"output": "x"}}});
    let contents = body["contents"].as_array_mut().unwrap();
    contents.push(json!({"role": "model", "parts": [call, call]}));
    contents.push(json!({"role": "user", "parts": [answer, answer]}));
    assert_eq!(check_body(&path, &body), NOTHING);
    body["contents"][2]["parts"].as_array_mut().unwrap().pop();
    assert_eq!(check_body(&path, &body), ["call-unanswered"]);
}

#[test]
fn a_schema_that_is_no_object_is_found() {
    for (wire, pointer) in [
        (Wire::Responses, "/tools/0/parameters"),
        (Wire::Chat, "/tools/0/function/parameters"),
        (Wire::Messages, "/tools/0/input_schema"),
        (Wire::Gemini, "/tools/0/functionDeclarations/0/parametersJsonSchema"),
    ] {
        let (path, mut body) = request(wire, &[User("Hello")]);
        *body.pointer_mut(pointer).unwrap() = json!({"type": "string"});
        assert_eq!(check_body(&path, &body), ["schema-not-object"], "{wire:?}");
    }
}

#[test]
fn two_tools_with_one_name_are_found() {
    for wire in [Wire::Responses, Wire::Chat, Wire::Messages] {
        let (path, mut body) = request(wire, &[User("Hello")]);
        let tool = body["tools"][0].clone();
        body["tools"].as_array_mut().unwrap().push(tool);
        assert_eq!(check_body(&path, &body), ["tool-name"], "{wire:?}");
    }
}

fn continue_conversation(model: &FakeModel, wire: Wire, entries: &[Entry]) {
    let (path, body) = request(wire, entries);
    post(model, &path, &body);
}

#[test]
fn a_call_that_vanishes_is_found() {
    for wire in Wire::ALL {
        let model = model([Reply::shell("ls"), Reply::text("ok")]);
        ask(&model, wire);
        continue_conversation(
            &model,
            wire,
            &[User("Hello"), Model("I did not call"), User("Go on")],
        );
        assert_eq!(found(&model), ["call-lost"], "{wire:?}");
    }
}

#[test]
fn another_conversation_and_a_repeated_request_lose_no_calls() {
    for wire in Wire::ALL {
        let model = model([Reply::shell("ls"), Reply::text("ok"), Reply::text("ok")]);
        ask(&model, wire);
        continue_conversation(&model, wire, &[User("Something else"), Model("Yes"), User("Go on")]);
        ask(&model, wire);
        assert_eq!(found(&model), NOTHING, "{wire:?}");
    }
}

#[test]
fn results_of_tools_are_kept_by_call() {
    for wire in Wire::ALL {
        let model = model([Reply::shell("ls").then_call("bash", json!({})), Reply::text("ok")]);
        ask(&model, wire);
        let result = |id: &str, text: Option<&str>| ToolResult {
            id: id.to_owned(),
            name: "bash".to_owned(),
            text: text.map(str::to_owned),
        };
        assert_eq!(model.tool_results(), [result("call_0001", None), result("call_0002", None)]);
        let calls = Calls(vec![("call_0001", "bash"), ("call_0002", "bash")]);
        let two = Answer("call_0002", "bash", "two");
        continue_conversation(
            &model,
            wire,
            &[User("Hello"), calls, two, Answer("call_0001", "bash", "one")],
        );
        let expected = [result("call_0001", Some("one")), result("call_0002", Some("two"))];
        assert_eq!(model.tool_results(), expected, "{wire:?}");
        assert_eq!(found(&model), NOTHING);
    }
}
