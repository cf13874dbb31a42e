//! The forms in which providers and compatible servers write answers. Each of them has to come back
//! as it was, in the same session and in a resumed one.

use fake_model::{ChatForm, GeminiForm, MessagesForm, Reply, Script, SignaturePlace};
use interlingua_agents::api::ApiKind;
use serde_json::{Value, json};

use super::resume::{earlier, history, last_turn, notices, storing, that_stores};
use super::{APIS, Bench, of_kind, text};

/// A form of an API, and a first turn in it.
struct Form {
    name: &'static str,
    api: ApiKind,
    replies: fn() -> Vec<Reply>,
    /// The text of the first turn.
    text: &'static str,
}

/// A reply with two calls.
fn calls(reply: Reply) -> Reply {
    let read = |name: &str| json!({"file_path": name});
    reply.then_call("Read", read("note.txt")).then_call("Read", read("list.txt"))
}

fn chat(reply: Reply, field: &str, reasoning_details: bool) -> Reply {
    let reasoning_field = field.to_owned();
    reply.chat(ChatForm { reasoning_field, reasoning_details, ..ChatForm::default() })
}

fn redacted() -> Vec<Reply> {
    let hidden = || Reply::new().then_redacted_reasoning();
    vec![calls(hidden()), hidden().then_text("Plum.")]
}

const FORMS: [Form; 9] = [
    Form {
        name: "redacted reasoning of Anthropic",
        api: ApiKind::Anthropic,
        replies: redacted,
        text: "Plum.",
    },
    Form {
        name: "reasoning without a summary of OpenAI",
        api: ApiKind::Responses,
        replies: redacted,
        text: "Plum.",
    },
    Form {
        name: "a paused turn",
        api: ApiKind::Anthropic,
        replies: || {
            let stop_reason = Some("pause_turn".to_owned());
            let paused = Reply::new().then_reasoning("Hm.").then_text("I search.");
            let paused = paused.messages(MessagesForm { stop_reason, ..MessagesForm::default() });
            vec![paused, Reply::text("Plum.")]
        },
        text: "I search.|Plum.",
    },
    Form {
        name: "a paused turn that is only text so far",
        api: ApiKind::Anthropic,
        replies: || {
            let stop_reason = Some("pause_turn".to_owned());
            let form = MessagesForm { stop_reason, ..MessagesForm::default() };
            vec![Reply::text("I search.").messages(form), Reply::text("Plum.")]
        },
        text: "I search.|Plum.",
    },
    Form {
        name: "reasoning in `reasoning_content`",
        api: ApiKind::Chat,
        replies: || {
            let thinks = || Reply::new().then_reasoning("Hm.");
            vec![calls(thinks()), thinks().then_text("Plum.")]
        },
        text: "Plum.",
    },
    Form {
        name: "reasoning in `reasoning`",
        api: ApiKind::Chat,
        replies: || {
            let thinks = || Reply::new().then_reasoning("Hm.");
            let replies = [calls(thinks()), thinks().then_text("Plum.")];
            replies.map(|reply| chat(reply, "reasoning", false)).into()
        },
        text: "Plum.",
    },
    Form {
        name: "signed reasoning in `reasoning_details`",
        api: ApiKind::Chat,
        replies: || {
            let thinks = || Reply::new().then_reasoning("Hm.");
            let replies = [calls(thinks()), thinks().then_text("Plum.")];
            replies.map(|reply| chat(reply, "reasoning", true)).into()
        },
        text: "Plum.",
    },
    Form {
        name: "a signature on an empty last part",
        api: ApiKind::Gemini,
        replies: || {
            let reply = Reply::new().then_reasoning("Hm.").then_text("Plum.");
            let signature = SignaturePlace::EmptyPart;
            vec![reply.gemini(GeminiForm { signature, ..GeminiForm::default() })]
        },
        text: "Plum.",
    },
    Form {
        name: "calls without ids",
        api: ApiKind::Gemini,
        replies: || {
            let form = || GeminiForm { without_call_ids: true, ..GeminiForm::default() };
            let again = Reply::call("Read", json!({"file_path": "list.txt"})).gemini(form());
            vec![calls(Reply::new()).gemini(form()), again, Reply::text("Plum.")]
        },
        text: "Plum.",
    },
];

#[tokio::test]
async fn every_form_comes_back_as_it_was() {
    for Form { name, api, replies, text: first } in FORMS {
        let more = [Reply::new().then_reasoning("Ha.").then_text("Still plum."), last_turn()];
        let mut bench = storing(api, replies().into_iter().chain(more));
        let session = bench.open().await;
        session.handle.prompt("which word?").await.unwrap();
        session.handle.prompt("and now?").await.unwrap();
        session.handle.finish().await.unwrap();
        let (ended, events) = session.end().await;
        assert_eq!(ended.code(), 0, "{name}: {events:#?}");
        assert_eq!(text(&events), format!("{first}|Still plum."), "{name}");
        assert_eq!(of_kind(&events, "turn_ended").len(), 2, "{name}");
        let ends = of_kind(&events, "tool_ended");
        assert!(ends.iter().all(|end| end["status"] == "completed"), "{name}: {ends:#?}");
        bench.settings.earlier = Some(earlier(&bench, &events));
        let (ended, events) = bench.run("and later?").await;
        assert_eq!(ended.code(), 0, "{name}: {events:#?}");
        assert_eq!(text(&events), "It was plum.", "{name}");
        assert!(!notices(&events).contains("dropped"), "{name}: {}", notices(&events));
        bench.check("form");
    }
}

/// A call without an id has one that is unique in the session.
#[tokio::test]
async fn calls_without_ids_are_told_apart() {
    let form = FORMS.into_iter().find(|form| form.name == "calls without ids").unwrap();
    let bench = storing(form.api, (form.replies)());
    let (_, events) = bench.run("which word?").await;
    let started = of_kind(&events, "tool_started");
    let mut ids: Vec<_> = started.iter().map(|it| it["call"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 3, "{started:#?}");
    bench.check("form-ids");
}

/// A call without an id has one that is unique in its session, also after the session was resumed.
/// Another provider is sent these ids.
#[tokio::test]
async fn calls_without_ids_are_told_apart_after_a_resume() {
    let form = || GeminiForm { without_call_ids: true, ..GeminiForm::default() };
    let turn = || {
        let call = Reply::call("Read", json!({"file_path": "list.txt"})).gemini(form());
        [call, Reply::text("Read.")]
    };
    let mut bench = storing(ApiKind::Gemini, [turn(), turn(), turn()].concat());
    let mut emitted = Vec::new();
    for prompt in ["read", "again", "once more"] {
        let (ended, events) = bench.run(prompt).await;
        assert_eq!(ended.code(), 0, "{events:#?}");
        let started = of_kind(&events, "tool_started");
        emitted.extend(started.iter().map(|it| it["call"].as_str().unwrap().to_owned()));
        bench.settings.earlier = Some(earlier(&bench, &events));
    }
    assert_eq!(emitted.len(), 3);
    let mut other = Bench::new(ApiKind::Anthropic, [last_turn()]);
    other.settings.earlier = bench.settings.earlier.take();
    let (ended, events) = other.run("which word?").await;
    assert_eq!(ended.code(), 0, "{events:#?}");
    let messages = history(&other.model.main_requests()[0].body);
    let blocks = messages.iter().filter_map(|it| it["content"].as_array()).flatten();
    let calls = blocks.filter(|block| block["type"] == "tool_use");
    let sent: Vec<_> = calls.map(|call| call["id"].as_str().unwrap()).collect();
    assert_eq!(sent, emitted, "{messages:#?}");
    let distinct: std::collections::BTreeSet<_> = sent.iter().collect();
    assert_eq!(distinct.len(), 3, "{sent:?}");
    other.check("form-ids-resumed");
}

/// A response of a server that numbers the calls of each response from zero: a call per name.
fn numbered_calls(names: &[&str]) -> Reply {
    let calls = names.iter().enumerate().map(|(index, name)| {
        let arguments = json!({"file_path": name}).to_string();
        let function = json!({"name": "Read", "arguments": arguments});
        json!({"index": index, "id": format!("call_{index}"), "type": "function", "function": function})
    });
    let delta = json!({"role": "assistant", "tool_calls": calls.collect::<Vec<_>>()});
    let chunk = json!({
        "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}],
    });
    let headers = [("content-type", "text/event-stream")];
    Reply::raw(200, &headers, &format!("data: {chunk}\n\ndata: [DONE]\n\n"))
}

/// The values of some fields anywhere in a history, in order.
fn values(history: &Value, fields: &[&str]) -> Vec<String> {
    match history {
        Value::Object(object) => {
            let found = object.iter().flat_map(|(name, value)| match value.as_str() {
                Some(text) if fields.contains(&&**name) => vec![text.to_owned()],
                _ => values(value, fields),
            });
            found.collect()
        }
        Value::Array(items) => items.iter().flat_map(|item| values(item, fields)).collect(),
        _ => Vec::new(),
    }
}

/// Anthropic's API rejects a request in which two calls have the same id.
#[tokio::test]
async fn ids_that_a_server_repeats_are_told_apart_by_another_one() {
    for api in APIS {
        let replies = [numbered_calls(&["note.txt", "list.txt"]), numbered_calls(&["list.txt"])];
        let script = replies.into_iter().fold(Script::new(), Script::reply);
        let bench = Bench::with_script(ApiKind::Chat, script.reply(Reply::text("Plum.")));
        let bench = that_stores(bench);
        let (ended, events) = bench.run("read").await;
        assert_eq!(ended.code(), 0, "{events:#?}");
        // The server gets its own ids back.
        let sent = history(&bench.model.main_requests()[2].body);
        let own = values(&json!(sent), &["tool_call_id"]);
        assert_eq!(own, ["call_0", "call_1", "call_0"], "{sent:#?}");
        let again = Reply::call("Read", json!({"file_path": "note.txt"}));
        let mut other = Bench::new(api, [again, last_turn()]);
        other.settings.model = "another-model".to_owned();
        other.write("note.txt", "plum");
        other.settings.earlier = Some(earlier(&bench, &events));
        let (ended, events) = other.run("which word?").await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        let requests = other.model.main_requests();
        let [first, second] = [0, 1].map(|at: usize| history(&requests[at].body));
        assert_eq!(first[..], second[..first.len()], "{api:?}");
        let fields = ["id", "call_id", "tool_use_id", "tool_call_id"];
        let mut ids = values(&json!(first), &fields);
        ids.retain(|id| id.starts_with("call_"));
        let expected = ["call_0", "call_1", "call_0", "call_1", "call_0_2", "call_0_2"];
        assert_eq!(ids, expected, "{api:?}: {first:#?}");
        other.check("form-ids-repeated");
    }
}

#[tokio::test]
async fn a_prompt_that_is_blocked_is_refused_and_the_session_goes_on() {
    let block_reason = Some("SAFETY".to_owned());
    let blocked = Reply::new().gemini(GeminiForm { block_reason, ..GeminiForm::default() });
    let mut bench = storing(ApiKind::Gemini, [blocked, Reply::text("Hello."), last_turn()]);
    let session = bench.open().await;
    session.handle.prompt("bad").await.unwrap();
    session.handle.prompt("good").await.unwrap();
    session.handle.finish().await.unwrap();
    let (_, events) = session.end().await;
    let ends = of_kind(&events, "turn_ended");
    assert_eq!(ends[0]["outcome"], "refused", "{events:#?}");
    assert_eq!(of_kind(&events, "error")[0]["class"], "refusal", "{events:#?}");
    assert_eq!(ends[1]["outcome"], "completed", "{events:#?}");
    bench.settings.earlier = Some(earlier(&bench, &events));
    let (ended, events) = bench.run("and now?").await;
    assert_eq!(ended.code(), 0, "{events:#?}");
    bench.check("blocked");
}
