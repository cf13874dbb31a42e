//! Responses of Gemini that ask to be continued, and that cannot be, or not for ever.

use fake_model::{Cut, FailureClass, GeminiForm, Reply, Script};
use interlingua_agents::api::ApiKind;
use serde_json::{Value, json};

use super::{Bench, of_kind, only, text};

/// A reply that asks to be continued, without a token that marks the place.
fn without_token(reply: Reply) -> Reply {
    let finish_reason = Some("CONTINUATION".to_owned());
    reply.gemini(GeminiForm { finish_reason, ..GeminiForm::default() })
}

fn tokens(bench: &Bench) -> Vec<Value> {
    let requests = bench.model.main_requests();
    requests.iter().map(|request| request.body["continuationToken"].clone()).collect()
}

/// The call was run, although its response had not ended.
#[tokio::test]
async fn a_call_before_a_continuation_without_a_token_is_not_run() {
    let write = |text: &str| Reply::call("Write", json!({"file_path": "out.txt", "content": text}));
    let whole = write("whole").hold("retried");
    let script = Script::new().reply(without_token(write("half"))).reply(whole);
    let bench = Bench::with_script(ApiKind::Gemini, script.reply(Reply::text("Done.")));
    let mut session = bench.open().await;
    session.handle.prompt("write").await.unwrap();
    session.handle.finish().await.unwrap();
    let retry = session.until(|event| event["type"] == "retry").await;
    assert_eq!(retry["class"], "network", "{retry}");
    assert!(!bench.path("out.txt").exists());
    bench.model.gate("retried").open();
    let (ended, events) = session.end().await;
    assert_eq!(ended.code(), 0, "{events:#?}");
    assert_eq!(std::fs::read_to_string(bench.path("out.txt")).unwrap(), "whole");
    assert_eq!(only(&events, "tool_input")["input"]["content"], "whole");
    assert_eq!(only(&events, "tool_ended")["status"], "completed");
    assert_eq!(tokens(&bench), [Value::Null, Value::Null, Value::Null]);
}

/// What came after the token would be generated twice.
#[tokio::test]
async fn a_continuation_whose_token_is_outdated_is_requested_again() {
    let counts = Reply::text("One ").then_checkpoint().then_text("two.");
    let script = Script::new().reply(without_token(counts)).reply(Reply::text("One two three."));
    let bench = Bench::with_script(ApiKind::Gemini, script);
    let (ended, events) = bench.run("count").await;
    assert_eq!(ended.code(), 0, "{events:#?}");
    assert_eq!(text(&events), "One two three.");
    assert_eq!(only(&events, "retry")["class"], "network");
    assert_eq!(only(&events, "turn_ended")["outcome"], "completed");
    assert_eq!(tokens(&bench), [Value::Null, Value::Null]);
}

/// A server that only ever asks for more would be asked for ever.
#[tokio::test]
async fn a_response_that_is_continued_without_progress_is_given_up() {
    let continued = |parts: Value| {
        let content = json!({"role": "model", "parts": parts});
        let candidate = json!({
            "content": content, "index": 0, "continuationToken": "t", "finishReason": "CONTINUATION",
        });
        let chunk = json!({"candidates": [candidate], "modelVersion": "m", "responseId": "r"});
        let headers = [("content-type", "text/event-stream")];
        Reply::raw(200, &headers, &format!("data: {chunk}\n\n"))
    };
    let script = Script::new().reply(continued(json!([{"text": "One "}])));
    let script = script.reply(continued(json!([{"text": "two "}]))).reply(continued(json!([])));
    let mut bench = Bench::with_script(ApiKind::Gemini, script.repeat_last());
    bench.settings.retries.attempts = 2;
    // Without the bound, this one ends the turn.
    bench.settings.limits.requests = Some(20);
    let (ended, events) = bench.run("count").await;
    assert_eq!(ended.code(), 1, "{events:#?}");
    assert_eq!(only(&events, "turn_ended")["class"], "network", "{events:#?}");
    assert_eq!(of_kind(&events, "retry").len(), 1, "{events:#?}");
    // All of it is withdrawn, also what earlier requests had contributed.
    let withdrawn = only(&events, "withdrawn")["blocks"].as_array().unwrap();
    let texts: Vec<_> = withdrawn.iter().map(|block| &block["text"]).collect();
    assert_eq!(texts, ["One ", "two "]);
    let (begin, go_on) = (Value::Null, json!("t"));
    let first = [&begin, &go_on, &go_on, &go_on, &go_on];
    let second = [&begin, &go_on, &go_on];
    assert_eq!(tokens(&bench).iter().collect::<Vec<_>>(), [&first[..], &second[..]].concat());
}

/// The token belongs to the history that was summarised.
#[tokio::test]
async fn a_summary_begins_another_response() {
    let reads = || Reply::text("I read.").then_call("Read", json!({"file_path": "note.txt"}));
    let cut = reads().then_checkpoint().then_text("Then I go on.").cut(Cut::AfterCheckpoint);
    let script = Script::new()
        .reply(Reply::text("Hello."))
        .reply(cut.continuation_failure(FailureClass::ContextOverflow))
        .reply(Reply::text("The user said hi."))
        .reply(reads())
        .reply(Reply::text("Done."));
    let mut bench = Bench::with_script(ApiKind::Gemini, script);
    bench.settings.compact = true;
    bench.write("note.txt", "plum");
    let session = bench.open().await;
    session.handle.prompt("hi").await.unwrap();
    session.handle.prompt("read").await.unwrap();
    session.handle.finish().await.unwrap();
    let (ended, events) = session.end().await;
    assert_eq!(ended.code(), 0, "{events:#?}");
    assert_eq!(text(&events), "Hello.|I read.|Done.");
    assert_eq!(of_kind(&events, "compacted").len(), 1, "{events:#?}");
    let (started, finished) = (only(&events, "tool_started"), only(&events, "tool_ended"));
    assert_eq!(started["call"], finished["call"]);
    assert_eq!(finished["status"], "completed");
    let continued: Vec<_> = tokens(&bench).iter().map(Value::is_string).collect();
    assert_eq!(continued, [false, false, true, false, false, false]);
    assert_eq!(bench.model.findings(), []);
}

/// Only Gemini's API has such responses. The turn failed, because there was no token.
#[tokio::test]
async fn another_api_may_use_the_same_word() {
    let delta = json!({"role": "assistant", "content": "Hello."});
    let choice = json!({"index": 0, "delta": delta, "finish_reason": "CONTINUATION"});
    let chunk = json!({
        "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice],
    });
    let headers = [("content-type", "text/event-stream")];
    let reply = Reply::raw(200, &headers, &format!("data: {chunk}\n\ndata: [DONE]\n\n"));
    let bench = Bench::with_script(ApiKind::Chat, Script::new().reply(reply));
    let (ended, events) = bench.run("hi").await;
    assert_eq!(ended.code(), 0, "{events:#?}");
    assert_eq!(text(&events), "Hello.");
    assert_eq!(of_kind(&events, "retry").len(), 0, "{events:#?}");
}
