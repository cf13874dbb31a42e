//! Another model in the middle of a conversation.

use fake_model::{Reply, Script};
use interlingua_agents::api::ApiKind;
use serde_json::{Value, json};

use super::resume::notices;
use super::{APIS, Bench, only, text};

/// A model binds its reasoning to itself, so no other one can take it.
#[tokio::test]
async fn another_model_gets_the_conversation_without_its_reasoning() {
    for api in APIS {
        let think = || Reply::new().then_reasoning("Hm.");
        let read = think().then_call("Read", json!({"file_path": "note.txt"}));
        // A strict script expects the signatures to come back.
        let replies = [read, think().then_text("Plum."), Reply::text("Still plum.")];
        let script = replies.into_iter().fold(Script::new(), Script::reply);
        let bench = Bench::with_script(api, script);
        bench.write("note.txt", "the secret word is plum\n");
        let mut session = bench.open().await;
        session.handle.prompt("which word?").await.unwrap();
        session.until(|event| event["type"] == "turn_ended").await;
        session.handle.set_model("other-model").await.unwrap();
        session.handle.prompt("and now?").await.unwrap();
        session.handle.finish().await.unwrap();
        let (ended, events) = session.end().await;
        assert_eq!(ended.code(), 0, "{api:?}: {events:#?}");
        assert_eq!(text(&events), "Plum.|Still plum.", "{api:?}");
        assert_eq!(only(&events, "session_updated")["model"], "other-model", "{api:?}");
        assert!(notices(&events).contains("the reasoning of the one before"), "{api:?}");
        let requests = bench.model.main_requests();
        let model = |at: usize| match api {
            ApiKind::Gemini => json!(requests[at].path.contains("other-model")),
            _ => json!(requests[at].body["model"] == "other-model"),
        };
        assert_eq!([model(1), model(2)], [json!(false), json!(true)], "{api:?}");
        let sent = requests[2].body.to_string();
        for part in ["which word?", "secret word is plum", "Plum.", "and now?"] {
            assert!(sent.contains(part), "{api:?} {part}: {sent}");
        }
        assert!(!sent.contains("fakeSign"), "{api:?}: {sent}");
        let ends: Vec<&Value> = super::of_kind(&events, "turn_ended");
        assert_eq!(ends[1]["by_model"][0]["model"], "other-model", "{api:?}");
        bench.check("another-model");
    }
}

#[tokio::test]
async fn the_model_stays_the_same_during_a_turn() {
    let reply = Reply::text("One, ").then_gate("half way").then_text("two.");
    let bench = Bench::new(APIS[0], [reply]);
    let mut session = bench.open().await;
    session.handle.prompt("count").await.unwrap();
    session.until(|event| event["type"] == "block_delta").await;
    let refused = session.handle.set_model("other-model").await.unwrap_err().to_string();
    assert!(refused.contains("during a turn"), "{refused}");
    bench.model.gate("half way").open();
    session.handle.finish().await.unwrap();
    assert_eq!(session.end().await.0.code(), 0);
}
