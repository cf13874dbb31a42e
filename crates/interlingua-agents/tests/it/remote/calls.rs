//! What the service asks of the client's form, in both versions of the contract.

use fake_model::service::Step;
use interlingua_agents::permission::Decision;
use interlingua_agents::remote::{Access, Contract, RelayAccess, RemoteSettings};
use interlingua_agents::{CallOutcome, LateResult, Prompt, Stop, Wanted};
use serde_json::json;

use super::*;

/// The next call of the client.
async fn next_call(asked: &mut mpsc::UnboundedReceiver<InputRequest>) -> InputRequest {
    let asked = within(asked.recv()).await.unwrap();
    assert!(matches!(&asked.wanted, Wanted::Call(call) if call.tool == "getFormSnapshot"));
    asked
}

fn response(request: &str) -> Value {
    json!({"type": "snapshot_response", "requestId": request, "fields": [1]})
}

fn waits_for(request: &str) -> Step {
    Step::AwaitResponse(request.to_owned())
}

/// The response of the run stays open while the client answers at the relay.
#[tokio::test]
async fn a_run_goes_on_when_the_relay_has_the_result() {
    let run =
        vec![Step::Relay, init("s1"), said("I look."), asks("r1"), waits_for("r1"), said("Done.")];
    let service = service(vec![run]);
    let (mut session, mut asked) = open(settings(&service, Contract::Relay)).await;
    session.handle.prompt("fill it in").await.unwrap();
    session.handle.finish().await.unwrap();
    let call = next_call(&mut asked).await;
    session.until(is("suspended")).await;
    session.handle.answer(call.id(), json!({"fields": [1]})).await.unwrap();
    let again = session.handle.answer(call.id(), json!({"fields": [2]})).await;
    assert!(again.is_err(), "a second answer was accepted");
    while session.more().await {}
    let (ended, events) = session.end().await;
    assert_eq!((ended.code(), text(&events)), (0, "I look.Done.".to_owned()));
    let kinds = |event: &&Value| event["type"].as_str().unwrap().to_owned();
    let story =
        of(&events, &["turn_started", "tool_started", "suspended", "tool_ended", "turn_ended"]);
    let story: Vec<_> = story.iter().map(kinds).collect();
    assert_eq!(story, ["turn_started", "tool_started", "suspended", "tool_ended", "turn_ended"]);
    assert_eq!(service.runs().len(), 1);
    let relayed = service.relayed();
    assert_eq!(relayed.len(), 1);
    assert_eq!(relayed[0]["response"], response("r1"));
}

/// The response has ended at the request, and the turn goes on in the next run.
#[tokio::test]
async fn a_closed_run_is_continued_when_its_calls_are_answered() {
    for contract in [Contract::Relay, Contract::Results] {
        let first = vec![Step::Relay, init("s1"), said("I look."), asks("r1"), asks("r2")];
        let service = service(vec![first, vec![init("s1"), said("Done.")]]);
        let (mut session, mut asked) = open(settings(&service, contract)).await;
        session.handle.prompt("fill it in").await.unwrap();
        session.handle.finish().await.unwrap();
        let (one, two) = (next_call(&mut asked).await, next_call(&mut asked).await);
        session.handle.answer(two.id(), json!({"fields": [1]})).await.unwrap();
        session.handle.answer(one.id(), json!({"fields": [1]})).await.unwrap();
        while session.more().await {}
        let (ended, events) = session.end().await;
        assert_eq!((ended.code(), text(&events)), (0, "I look.Done.".to_owned()), "{events:?}");
        assert_eq!(turn_end(&events)["outcome"], "completed");
        let runs = service.runs();
        assert_eq!((runs.len(), &runs[1].body["message"]), (2, &json!("fill it in")));
        match contract {
            Contract::Relay => {
                let mut relayed: Vec<_> =
                    service.relayed().iter().map(|it| it["response"].clone()).collect();
                relayed.sort_by_key(ToString::to_string);
                assert_eq!(relayed, [response("r1"), response("r2")]);
                assert_eq!(runs[1].body["session_id"], "s1");
            }
            Contract::Results => {
                assert!(service.relayed().is_empty());
                let result = |id: &str| json!({"toolCallId": id, "toolName": "getFormSnapshot", "output": {"fields": [1]}});
                assert_eq!(runs[1].body["tool_results"], json!([result("r2"), result("r1")]));
                assert_eq!(runs[1].body["chat_id"], runs[0].body["chat_id"]);
            }
        }
    }
}

#[tokio::test]
async fn a_failure_and_a_refusal_release_the_agent() {
    let run =
        vec![Step::Relay, asks("r1"), waits_for("r1"), asks("r2"), waits_for("r2"), said("Sorry.")];
    let service = service(vec![run]);
    let (mut session, mut asked) = open(settings(&service, Contract::Relay)).await;
    session.handle.prompt("fill it in").await.unwrap();
    session.handle.finish().await.unwrap();
    let call = next_call(&mut asked).await;
    session.handle.decline(call.id(), "the page is gone").await.unwrap();
    let call = next_call(&mut asked).await;
    assert!(session.handle.decide(call.id(), Decision::Allow).await.is_err());
    session.handle.decide(call.id(), Decision::Deny("not now".to_owned())).await.unwrap();
    while session.more().await {}
    let (_, events) = session.end().await;
    let messages: Vec<_> =
        service.relayed().iter().map(|it| it["response"]["message"].clone()).collect();
    assert_eq!(messages, ["the page is gone", "not now"]);
    let statuses: Vec<_> =
        of(&events, &["tool_ended"]).iter().map(|it| it["status"].clone()).collect();
    assert_eq!(statuses, ["failed", "denied"]);
}

/// The session of the client has no such tool, or no client is there.
#[tokio::test]
async fn a_call_that_no_client_can_answer_fails_at_once() {
    let run = || vec![Step::Relay, asks("r1"), waits_for("r1"), said("Sorry.")];
    let service = service(vec![run(), run()]);
    let unoffered =
        RemoteSettings { client_tools: Vec::new(), ..settings(&service, Contract::Relay) };
    let (session, _asked) = open(unoffered).await;
    session.handle.prompt("one").await.unwrap();
    session.handle.finish().await.unwrap();
    let (_, events) = session.end().await;
    assert_eq!(text(&events), "Sorry.");
    let settings = settings(&service, Contract::Relay);
    let session = Watched::open(RemoteAgent::new(settings), options()).await;
    session.handle.prompt("two").await.unwrap();
    session.handle.finish().await.unwrap();
    let (_, events) = session.end().await;
    assert_eq!(text(&events), "Sorry.");
    let types: Vec<_> = service.relayed().iter().map(|it| it["response"]["type"].clone()).collect();
    assert_eq!(types, ["error_response", "error_response"]);
}

#[tokio::test]
async fn an_interrupt_releases_the_agent_that_waits_for_the_client() {
    let service = service(vec![vec![Step::Relay, init("s1"), asks("r1"), gate("never")]]);
    let (session, mut asked) = open(settings(&service, Contract::Relay)).await;
    session.handle.prompt("one").await.unwrap();
    let call = next_call(&mut asked).await;
    session.handle.interrupt().await.unwrap();
    assert!(!call.is_pending());
    session.handle.finish().await.unwrap();
    let (_, events) = session.end().await;
    assert_eq!(turn_end(&events)["outcome"], "cancelled");
    let relayed = service.relayed();
    assert_eq!((relayed.len(), &relayed[0]["response"]["type"]), (1, &json!("error_response")));
}

/// The service gave the call up, or another client has answered it.
#[tokio::test]
async fn a_result_that_is_not_waited_for_any_more_is_reported() {
    let service = service(vec![vec![Step::Relay, asks("r1"), gate("go"), said("Done.")]]);
    service.refuse_at_relay(&[404]);
    let (mut session, mut asked) = open(settings(&service, Contract::Relay)).await;
    session.handle.prompt("one").await.unwrap();
    session.handle.finish().await.unwrap();
    let call = next_call(&mut asked).await;
    session.handle.answer(call.id(), json!({"fields": [1]})).await.unwrap();
    let is_warning = |event: &Value| event["type"] == "notice" && event["severity"] == "warning";
    let warning = session.until(is_warning).await;
    assert!(warning["text"].as_str().unwrap().contains("does not wait"), "{warning}");
    service.open("go");
    let (_, events) = session.end().await;
    assert_eq!(text(&events), "Done.");
}

#[tokio::test]
async fn a_result_that_the_relay_refuses_fails_the_turn() {
    let service = service(vec![vec![Step::Relay, asks("r1"), gate("never")]]);
    service.refuse_at_relay(&[401]);
    let (session, mut asked) = open(settings(&service, Contract::Relay)).await;
    session.handle.prompt("one").await.unwrap();
    session.handle.finish().await.unwrap();
    let call = next_call(&mut asked).await;
    session.handle.answer(call.id(), json!({"fields": [1]})).await.unwrap();
    let (ended, events) = session.end().await;
    let cause = turn_end(&events)["cause"].as_str().unwrap();
    assert!(cause.contains("did not reach the service") && cause.contains("401"), "{cause}");
    assert_eq!(ended.code(), 1);
}

/// A program goes on with what the one before had left.
#[tokio::test]
async fn a_late_result_is_given_before_the_turn_goes_on() {
    for contract in [Contract::Relay, Contract::Results] {
        let first = vec![Step::Relay, init("s1"), asks("r1"), gate("never")];
        let service = service(vec![first, vec![init("s1"), said("Done.")]]);
        let (session, mut asked) = open(settings(&service, contract)).await;
        session.handle.prompt("fill it in").await.unwrap();
        let call = next_call(&mut asked).await;
        session.handle.stop(Stop::Suspended).await.unwrap();
        let (_, events) = session.end().await;
        assert_eq!(turn_end(&events)["outcome"], "waiting_for_client");
        assert!(of(&events, &["tool_ended"]).is_empty() && service.relayed().is_empty());

        let chat = service.runs()[0].body["chat_id"].as_str().map(str::to_owned);
        let relay = RelayAccess {
            session: "relay-1".to_owned(),
            token: "relay-token-of-the-fake-service".to_owned(),
            url: format!("{}/relay", service.address()),
        };
        let access = Access {
            session: Some(chat.unwrap_or("s1".to_owned())),
            sandbox: None,
            relay: Some(relay),
        };
        let message = Some("fill it in".to_owned());
        let (next, _asked) =
            open(RemoteSettings { access, message, ..settings(&service, contract) }).await;
        let result = LateResult {
            call: call.id().to_owned(),
            native: None,
            tool: "getFormSnapshot".to_owned(),
            input: "{}".to_owned(),
            outcome: CallOutcome::Output(json!({"fields": [1]})),
            deferred: false,
        };
        next.handle.prompt(Prompt::resuming(vec![result])).await.unwrap();
        next.handle.finish().await.unwrap();
        let (ended, events) = next.end().await;
        assert_eq!((ended.code(), text(&events)), (0, "Done.".to_owned()), "{events:?}");
        assert_eq!(of(&events, &["tool_ended"]).len(), 1);
        let body = &service.runs()[1].body;
        assert_eq!(body["message"], "fill it in");
        match contract {
            Contract::Relay => assert_eq!(service.relayed()[0]["response"], response("r1")),
            Contract::Results => assert_eq!(body["tool_results"][0]["toolCallId"], "r1"),
        }
    }
}

/// What the relay says of an interrupted turn ended the next one.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_release_does_not_concern_the_next_turn() {
    let first = vec![Step::Relay, init("s1"), asks("r1"), gate("never")];
    let service = service(vec![first, vec![init("s1"), gate("go"), said("Next.")]]);
    service.refuse_at_relay(&[401]);
    let (session, mut asked) = open(settings(&service, Contract::Relay)).await;
    session.handle.prompt("one").await.unwrap();
    next_call(&mut asked).await;
    session.handle.interrupt().await.unwrap();
    session.handle.prompt("two").await.unwrap();
    service.until_refused(1);
    service.open("go");
    session.handle.finish().await.unwrap();
    let (ended, events) = session.end().await;
    assert_eq!((ended.code(), text(&events)), (0, "Next.".to_owned()), "{events:?}");
}

/// It is too large, or has another form than the relay expects.
#[tokio::test]
async fn a_result_that_the_service_cannot_take_becomes_an_error() {
    let run = vec![Step::Relay, init("s1"), asks("r1"), waits_for("r1"), said("Sorry.")];
    let service_1 = service(vec![run]);
    service_1.refuse_at_relay(&[413]);
    let (session, mut asked) = open(settings(&service_1, Contract::Relay)).await;
    session.handle.prompt("one").await.unwrap();
    session.handle.finish().await.unwrap();
    let call = next_call(&mut asked).await;
    session.handle.answer(call.id(), json!({"fields": [1]})).await.unwrap();
    let (ended, events) = session.end().await;
    assert_eq!((ended.code(), text(&events)), (0, "Sorry.".to_owned()), "{events:?}");
    assert_eq!(service_1.relayed()[0]["response"]["type"], "error_response");

    let refused = Run::Refuse { status: 413, headers: Vec::new(), body: "too large".to_owned() };
    let first = Run::Stream(vec![init("s1"), asks("r1")]);
    let last = Run::Stream(vec![said("Sorry.")]);
    let service_3 = FakeService::start(vec![first, refused, last]).unwrap();
    let (session, mut asked) = open(settings(&service_3, Contract::Results)).await;
    session.handle.prompt("one").await.unwrap();
    session.handle.finish().await.unwrap();
    let call = next_call(&mut asked).await;
    session.handle.answer(call.id(), json!({"fields": [1]})).await.unwrap();
    let (ended, events) = session.end().await;
    assert_eq!((ended.code(), text(&events)), (0, "Sorry.".to_owned()), "{events:?}");
    let last = &service_3.runs()[2].body["tool_results"][0];
    assert_eq!((&last["toolCallId"], &last["state"]), (&json!("r1"), &json!("output-error")));
}

/// A relay that may not be used was a reason to fail, and each failure a turn of its own.
#[tokio::test]
async fn a_turn_ends_once_if_no_relay_can_be_used() {
    let run = || vec![init("s1"), asks("r1"), asks("r2"), gate("never")];
    let service = service(vec![run(), run()]);
    let (session, mut asked) = open(settings(&service, Contract::Relay)).await;
    session.handle.prompt("one").await.unwrap();
    next_call(&mut asked).await;
    session.handle.interrupt().await.unwrap();
    session.handle.prompt("two").await.unwrap();
    let mut call = next_call(&mut asked).await;
    while !call.is_pending() {
        call = next_call(&mut asked).await;
    }
    session.handle.answer(call.id(), json!({"fields": [1]})).await.unwrap();
    session.handle.finish().await.unwrap();
    let (_, events) = session.end().await;
    let outcomes: Vec<_> =
        of(&events, &["turn_ended"]).iter().map(|it| it["outcome"].clone()).collect();
    assert_eq!(outcomes, ["cancelled", "failed"], "{events:?}");
}
