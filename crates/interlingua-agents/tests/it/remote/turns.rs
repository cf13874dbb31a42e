//! Prompts and their turns: each is a run, and all are one session.

use fake_model::service::Step;
use interlingua_agents::remote::{Access, Contract, RemoteSettings};
use interlingua_agents::{Prompt, Refused};
use serde_json::json;

use super::*;

#[tokio::test]
async fn a_prompt_is_a_run_and_the_next_one_continues_its_session() {
    let sandbox = record(json!({"type": "sandbox", "sandbox_id": "box-1"}));
    let first = vec![Step::Relay, sandbox, init("s1"), said("Hello "), said("world!")];
    let result = record(
        json!({"type": "result", "status": "success", "stats": {"input_tokens": 7, "output_tokens": 3}}),
    );
    let service = service(vec![first, vec![init("s1"), said("Again."), result]]);
    let (mut session, _asked) = open(settings(&service, Contract::Relay)).await;
    session.handle.prompt("one").await.unwrap();
    session.handle.prompt("two").await.unwrap();
    session.handle.finish().await.unwrap();
    while session.more().await {}
    let (ended, events) = session.end().await;
    assert_eq!(ended.code(), 0);
    assert_eq!(text(&events), "Hello world!Again.");
    let outcomes: Vec<_> =
        of(&events, &["turn_ended"]).iter().map(|it| it["outcome"].clone()).collect();
    assert_eq!(outcomes, ["completed", "completed"]);
    let sequences = events.iter().map(|event| event["sequence"].as_u64().unwrap());
    assert!(sequences.eq(0..events.len() as u64), "{events:?}");
    let bodies: Vec<_> = service.runs().into_iter().map(|run| run.body).collect();
    assert_eq!(bodies[0], json!({"type": "agent.run", "message": "one"}));
    let expected =
        json!({"type": "agent.run", "message": "two", "session_id": "s1", "sandbox_id": "box-1"});
    assert_eq!(bodies[1], expected);
    let authorization = ("authorization".to_owned(), "Bearer key-of-the-service-0123".to_owned());
    assert!(service.runs().iter().all(|run| run.headers.contains(&authorization)));
}

/// A user has to know that the agent is not restricted.
#[tokio::test]
async fn the_start_states_that_no_mode_applies() {
    let service = service(Vec::new());
    let (mut session, _asked) = open(settings(&service, Contract::Relay)).await;
    let notice = session.until(is("notice")).await;
    let notice = notice["text"].as_str().unwrap();
    assert!(
        notice.contains("neither the permission mode nor the rules")
            && notice.contains("127.0.0.1"),
        "{notice}"
    );
}

/// In version 3, the client names the chat, whatever the service calls its session.
#[tokio::test]
async fn a_chat_keeps_the_id_that_its_client_gave() {
    let service =
        service(vec![vec![init("agent-1"), said("Hello.")], vec![init("agent-2"), said("Again.")]]);
    let (mut session, _asked) = open(settings(&service, Contract::Results)).await;
    session.handle.prompt("one").await.unwrap();
    session.handle.prompt("two").await.unwrap();
    session.handle.finish().await.unwrap();
    while session.more().await {}
    let (_, events) = session.end().await;
    let ids: Vec<_> = events
        .iter()
        .filter(|event| {
            event["type"].as_str().unwrap().starts_with("session_") && event["id"].is_string()
        })
        .collect();
    assert_eq!(ids.len(), 1, "{events:?}");
    let chats: Vec<_> = service.runs().iter().map(|run| run.body["chat_id"].clone()).collect();
    assert_eq!(chats, [ids[0]["id"].clone(), ids[0]["id"].clone()]);
}

#[tokio::test]
async fn a_session_is_continued_with_its_id() {
    let service = service(vec![vec![init("s1"), said("Hello.")]]);
    let access =
        Access { session: Some("s1".to_owned()), sandbox: Some("box".to_owned()), relay: None };
    let settings = RemoteSettings { access, ..settings(&service, Contract::Relay) };
    let (session, _asked) = open(settings).await;
    session.handle.prompt("on").await.unwrap();
    session.handle.finish().await.unwrap();
    let (_, events) = session.end().await;
    assert_eq!(text(&events), "Hello.");
    let body = &service.runs()[0].body;
    assert_eq!((&body["session_id"], &body["sandbox_id"]), (&json!("s1"), &json!("box")));
}

/// The service is not told, because its contract has no word for it.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_ends_the_turn_and_says_that_the_service_may_go_on() {
    let service =
        service(vec![vec![init("s1"), said("Begun."), gate("never")], vec![said("Next.")]]);
    let (mut session, _asked) = open(settings(&service, Contract::Relay)).await;
    session.handle.prompt("one").await.unwrap();
    session.until(is("block_delta")).await;
    session.handle.interrupt().await.unwrap();
    service.until_left(0);
    session.handle.prompt("two").await.unwrap();
    session.handle.finish().await.unwrap();
    while session.more().await {}
    let (ended, events) = session.end().await;
    let outcomes: Vec<_> =
        of(&events, &["turn_ended"]).iter().map(|it| it["outcome"].clone()).collect();
    assert_eq!(outcomes, ["cancelled", "completed"]);
    let notices = of(&events, &["notice"]);
    assert!(
        notices.iter().any(|it| it["text"].as_str().unwrap().contains("may go on there")),
        "{notices:?}"
    );
    assert_eq!(ended.code(), 0);
}

#[tokio::test]
async fn what_the_contract_cannot_express_is_refused() {
    let service = service(vec![vec![init("s1"), gate("go")]]);
    let (mut session, _asked) = open(settings(&service, Contract::Relay)).await;
    session.handle.prompt("one").await.unwrap();
    session.until(is("session_updated")).await;
    let files = Prompt::new("x").with_files(vec!["/etc/hostname".into()]);
    for refused in [
        session.handle.prompt(Prompt::joining("x")).await,
        session.handle.prompt(files).await,
        session.handle.set_model("m").await,
    ] {
        assert!(matches!(refused, Err(Refused::NotSupported(_))), "{refused:?}");
    }
    service.open("go");
    session.handle.finish().await.unwrap();
    session.end().await;
}
