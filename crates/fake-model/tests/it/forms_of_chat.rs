//! The deviations of servers that are compatible with Chat Completions.

use fake_model::{CallArguments, CallIndex, ChatForm, Reply};
use serde_json::{Value, json};

use crate::support::{Response, Wire, ask, model};

fn two_calls(form: ChatForm) -> Response {
    let reply = Reply::call("bash", json!({"a": 1})).then_call("bash", json!({"b": 2}));
    ask(&model([reply.chat(form)]), Wire::Chat)
}

fn chunks(response: &Response) -> Vec<Value> {
    let events = response.events().into_iter();
    events.filter_map(|(_, data)| serde_json::from_str(&data).ok()).collect()
}

fn pieces(response: &Response) -> Vec<Value> {
    let calls = chunks(response).into_iter();
    calls.filter_map(|chunk| chunk.pointer("/choices/0/delta/tool_calls/0").cloned()).collect()
}

fn form() -> ChatForm {
    ChatForm::default()
}

#[test]
fn indexes_may_be_zero_or_missing() {
    let indexes = |index| -> Vec<Value> {
        let pieces = pieces(&two_calls(ChatForm { index, ..form() }));
        pieces.iter().map(|piece| piece["index"].clone()).collect()
    };
    assert_eq!(json!(indexes(CallIndex::Counted)), json!([0, 0, 0, 1, 1, 1]));
    assert_eq!(json!(indexes(CallIndex::Zero)), json!([0, 0, 0, 0, 0, 0]));
    assert!(indexes(CallIndex::Missing).iter().all(Value::is_null));
}

#[test]
fn ids_may_be_repeated() {
    let ids = |repeated_ids| {
        let pieces = pieces(&two_calls(ChatForm { repeated_ids, ..form() }));
        pieces.iter().filter(|piece| piece.get("id").is_some()).count()
    };
    assert_eq!((ids(false), ids(true)), (2, 6));
}

#[test]
fn a_call_may_be_in_one_chunk_and_its_arguments_an_object() {
    let whole = pieces(&two_calls(ChatForm { whole_calls: true, ..form() }));
    let arguments: Vec<&Value> =
        whole.iter().map(|piece| &piece["function"]["arguments"]).collect();
    assert_eq!(arguments, [&json!("{\"a\":1}"), &json!("{\"b\":2}")]);
    let objects = pieces(&two_calls(ChatForm { arguments: CallArguments::Object, ..form() }));
    assert_eq!(objects[1]["function"]["arguments"], json!({"b": 2}));
    assert_eq!(objects.len(), 2);
}

#[test]
fn the_end_may_be_missing_and_the_reason_another() {
    let response = two_calls(ChatForm { without_done: true, ..form() });
    assert!(!response.body.contains("[DONE]") && response.complete);
    let response = two_calls(ChatForm { finish_reason: Some("stop".to_owned()), ..form() });
    assert!(response.body.contains("\"finish_reason\":\"stop\""));
    assert!(!response.body.contains("\"finish_reason\":\"tool_calls\""));
}

#[test]
fn counts_may_be_in_every_chunk() {
    let response = two_calls(ChatForm { usage_in_every_chunk: true, ..form() });
    assert!(chunks(&response).iter().all(|chunk| chunk["usage"]["prompt_tokens"] == 100));
}
