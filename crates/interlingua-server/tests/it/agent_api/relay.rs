//! What browsers get and answer. The numbers are those of the scenarios in `docs/giselle.md`.

use std::sync::atomic::Ordering::SeqCst;

use interlingua::event::Outcome;
use interlingua_sessions::SessionId;
use reqwest::Method;
use serde_json::{Value, json};

use super::stage::{Agent, ORIGIN, Run, Stage};
use crate::support::{Answer, Events};

/// A session that waits for `req-1`.
async fn waiting(stage: &Stage) -> (Run, Agent) {
    let run = stage.run(&json!({"message": "go"})).await;
    let mut agent = stage.agent(&run.session).await;
    agent.begin().await;
    agent.snapshot("req-1").await;
    stage.taken();
    (run, agent)
}

async fn browser(stage: &Stage, run: &Run) -> Events {
    let mut events = Events::new(stage.browser(&run.session, &run.token).await);
    assert_eq!(events.next_block().await.unwrap(), ": connected");
    let ready = events.next().await.unwrap();
    assert_eq!(ready.id, "1");
    assert_eq!(ready.json(), json!({"type": "ready", "sessionId": run.session}));
    events
}

fn snapshot(id: &str) -> Value {
    json!({"type": "snapshot_response", "requestId": id, "fields": [{"fieldId": "bt:email"}]})
}

fn unauthorized(message: &str) -> (u16, Value) {
    (401, json!({"ok": false, "errorCode": "UNAUTHORIZED", "message": message}))
}

fn none(id: &str) -> (u16, Value) {
    let message = format!("Pending request was not found: {id}");
    (404, json!({"ok": false, "errorCode": "NOT_FOUND", "message": message}))
}

#[tokio::test]
async fn scenario_41_a_browser_gets_what_waits_and_what_comes() {
    let stage = Stage::new().await;
    let (run, mut agent) = waiting(&stage).await;
    let response = stage.browser(&run.session, &run.token).await;
    for (name, value) in [
        ("content-type", "text/event-stream; charset=utf-8"),
        ("cache-control", "no-cache, no-transform"),
        ("x-accel-buffering", "no"),
        ("content-encoding", "none"),
    ] {
        assert_eq!(response.headers()[name], value);
    }
    drop(response);
    let mut events = browser(&stage, &run).await;
    let event = events.next().await.unwrap();
    assert_eq!((&*event.event, &*event.id), ("", "2"));
    let request = json!({"type": "snapshot_request", "requestId": "req-1", "instruction": "fill"});
    assert_eq!(event.json(), request);
    agent.answered("req-1").await;
    let input = json!({"actions": [{"action": "click", "fieldId": "bt:ok"}], "fields": []});
    agent.call(&[("req-2", "executeFormActions", input.clone())]).await;
    let event = events.next().await.unwrap();
    assert_eq!(event.id, "3");
    let actions = &input["actions"];
    let request =
        json!({"type": "execute_request", "requestId": "req-2", "actions": actions, "fields": []});
    assert_eq!(event.json(), request);
}

/// B8: a request that arrived while no browser listened was lost, and the agent waited in vain.
#[tokio::test]
async fn b8_a_browser_that_reloads_during_a_pause_gets_the_request_again() {
    let stage = Stage::new().await;
    let run = stage.run(&json!({"message": "go"})).await;
    let first = browser(&stage, &run).await;
    drop(first);
    let mut agent = stage.agent(&run.session).await;
    agent.begin().await;
    agent.snapshot("req-1").await;
    for _ in 0..3 {
        let mut again = browser(&stage, &run).await;
        assert_eq!(again.next().await.unwrap().json()["requestId"], "req-1");
    }
    assert_eq!(stage.respond(&run, snapshot("req-1")).await, (200, json!({"ok": true})));
    agent.answered("req-1").await;
    agent.ends(Outcome::Completed).await;
    agent.begin().await;
    agent.snapshot("req-2").await;
    let mut after = browser(&stage, &run).await;
    assert_eq!(after.next().await.unwrap().json()["requestId"], "req-2", "req-1 was answered");
}

#[tokio::test]
async fn scenario_43_a_response_reaches_the_agent_unchanged() {
    let stage = Stage::new().await;
    let (run, agent) = waiting(&stage).await;
    assert_eq!(stage.respond(&run, snapshot("req-1")).await, (200, json!({"ok": true})));
    let answer = json!({"fields": [{"fieldId": "bt:email"}]});
    assert_eq!(stage.taken(), [json!({"type": "answer", "request": "req-1", "answer": answer})]);
    drop(agent);
}

#[tokio::test]
async fn of_two_browsers_that_answer_at_once_one_wins() {
    let stage = Stage::new().await;
    let (run, _agent) = waiting(&stage).await;
    let other = json!({"type": "snapshot_response", "requestId": "req-1", "fields": []});
    let (one, two) =
        tokio::join!(stage.respond(&run, snapshot("req-1")), stage.respond(&run, other));
    let mut answers = [one, two];
    answers.sort_by_key(|(status, _)| *status);
    assert_eq!(answers, [(200, json!({"ok": true})), none("req-1")]);
}

#[tokio::test]
async fn an_answer_for_another_session_is_not_found() {
    let stage = Stage::new().await;
    let (run, _agent) = waiting(&stage).await;
    let other = stage.run(&json!({"message": "go"})).await;
    assert_eq!(stage.respond(&other, snapshot("req-1")).await, none("req-1"));
    let stolen = json!({"type": "relay.respond", "sessionId": run.session, "token": other.token,
                        "response": snapshot("req-1")});
    assert_eq!(stage.relay(&stolen).await, unauthorized("Invalid relay session credentials."));
}

#[tokio::test]
async fn a_forged_expired_or_truncated_token_is_unauthorized() {
    let stage = Stage::new().await;
    let (run, _agent) = waiting(&stage).await;
    let refused = unauthorized("Invalid relay session credentials.");
    let half = &run.token[..run.token.len() / 2];
    let truncated = &run.token[..run.token.len() - 1];
    let last = if run.token.ends_with('0') { "1" } else { "0" };
    let forged = format!("{truncated}{last}");
    let api = crate::support::ADMIN;
    let own = stage.server.post(&format!("/v1/sessions/{}/tokens", run.session), &json!({})).await;
    let own = own.json()["token"].as_str().unwrap().to_owned();
    for token in [half, truncated, &forged, &run.token.replacen("ilr1", "il1", 1), api, &own, "x"] {
        let body = json!({"type": "relay.respond", "sessionId": run.session, "token": token,
                          "response": snapshot("req-1")});
        assert_eq!(stage.relay(&body).await, refused, "{token}");
        let answer = Answer::of(stage.browser(&run.session, token).await).await;
        let body =
            json!({"errorCode": "UNAUTHORIZED", "message": "Invalid relay session credentials."});
        assert_eq!((answer.status.as_u16(), answer.json()), (401, body), "{token}");
    }
    // A relay token is for the relay alone.
    let answer = stage.send("/agent-api/run", &run.token, &json!({"message": "go"})).await;
    assert_eq!(answer.status(), 401);
    stage.server.hands.advance(24 * 60 * 60 * 1000);
    assert_eq!(stage.respond(&run, snapshot("req-1")).await, refused, "it has expired");
    let url = format!("{}/agent-api/relay?sessionId=x", stage.server.url);
    let answer = Answer::of(stage.server.client.get(url).send().await.unwrap()).await;
    let body = json!({"errorCode": "UNAUTHORIZED", "message": "sessionId and token are required."});
    assert_eq!((answer.status.as_u16(), answer.json()), (401, body));
    assert_eq!(stage.taken(), Vec::<Value>::new());
}

#[tokio::test]
async fn a_response_of_the_wrong_type_releases_the_agent() {
    let stage = Stage::new().await;
    let (run, _agent) = waiting(&stage).await;
    let report = json!({"applied": 1, "skipped": 0, "warnings": []});
    let wrong = json!({"type": "execute_response", "requestId": "req-1", "report": report});
    let message = "Expected snapshot_response, but received execute_response.";
    let body = json!({"ok": false, "errorCode": "INVALID_RESPONSE", "message": message});
    assert_eq!(stage.respond(&run, wrong).await, (422, body));
    let declined = json!({"type": "answer", "request": "req-1", "decline": message});
    assert_eq!(stage.taken(), [declined]);
}

#[tokio::test]
async fn an_error_response_is_an_error_for_the_agent() {
    let stage = Stage::new().await;
    let (run, _agent) = waiting(&stage).await;
    let failed = json!({"type": "error_response", "requestId": "req-1", "message": "boom"});
    assert_eq!(stage.respond(&run, failed).await, (200, json!({"ok": true})));
    assert_eq!(stage.taken(), [json!({"type": "answer", "request": "req-1", "decline": "boom"})]);
}

#[tokio::test]
async fn a_malformed_message_changes_nothing() {
    let stage = Stage::new().await;
    let (run, _agent) = waiting(&stage).await;
    let body = json!({"ok": false, "errorCode": "INVALID_RESPONSE", "message": "Invalid request payload."});
    for message in
        [json!({}), json!([]), json!({"type": "relay.fly"}), json!({"type": "relay.respond"})]
    {
        assert_eq!(stage.relay(&message).await, (400, body.clone()), "{message}");
    }
    for response in [
        json!({}),
        json!({"type": "snapshot_response", "requestId": "req-1"}),
        json!({"type": "snapshot_response", "requestId": "req-1", "fields": "boom"}),
        json!({"type": "execute_response", "requestId": "req-1", "report": {"applied": -1}}),
        json!({"type": "error_response", "requestId": "req-1", "message": ""}),
    ] {
        assert_eq!(stage.respond(&run, response.clone()).await, (400, body.clone()), "{response}");
    }
    assert_eq!(stage.taken(), Vec::<Value>::new());
}

#[tokio::test]
async fn scenario_42_a_program_dispatches_a_request_to_a_browser() {
    let stage = Stage::new().await;
    let run = stage.run(&json!({"message": "go"})).await;
    let request = json!({"type": "snapshot_request", "requestId": "r1", "instruction": "snapshot"});
    let dispatch = |timeout: Value| {
        let mut body = json!({"type": "relay.dispatch", "sessionId": run.session, "token": run.token, "request": request});
        if timeout != Value::Null {
            body["timeoutMs"] = timeout;
        }
        body
    };
    let problem =
        |code: &str, message: &str| json!({"ok": false, "errorCode": code, "message": message});
    let message = "No browser client is connected to this relay session.";
    assert_eq!(stage.relay(&dispatch(Value::Null)).await, (409, problem("NO_BROWSER", message)));
    let mut events = browser(&stage, &run).await;
    // The shortest time: that it passes is what is tested.
    let message = "Timed out waiting for browser relay response.";
    assert_eq!(stage.relay(&dispatch(json!(1))).await, (408, problem("TIMEOUT", message)));
    for timeout in [json!(0), json!(55_001), json!("x")] {
        assert_eq!(stage.relay(&dispatch(timeout)).await.0, 400);
    }
    let message = dispatch(json!(55_000));
    let (dispatched, ()) = tokio::join!(stage.relay(&message), async {
        while events.next().await.unwrap().json() != request {}
        assert_eq!(stage.relay(&message).await.0, 422, "the id is pending");
        // The first one may have timed out before it was read.
        assert_eq!(stage.respond(&run, snapshot("r1")).await, (200, json!({"ok": true})));
        assert_eq!(stage.respond(&run, snapshot("r1")).await, none("r1"));
    });
    assert_eq!(dispatched, (200, json!({"ok": true, "response": snapshot("r1")})));
}

#[tokio::test]
async fn pages_of_allowed_origins_may_use_the_relay() {
    let stage = Stage::new().await;
    let ask = async |origin: &str| {
        let url = format!("{}/agent-api/relay", stage.server.url);
        let request = stage.server.client.request(Method::OPTIONS, url).header("origin", origin);
        let request = request.header("access-control-request-method", "POST");
        Answer::of(request.send().await.unwrap()).await
    };
    let answer = ask(ORIGIN).await;
    assert_eq!(answer.status, 204);
    for (name, value) in [
        ("access-control-allow-origin", ORIGIN),
        ("access-control-allow-methods", "GET, POST, OPTIONS"),
        (
            "access-control-allow-headers",
            "Content-Type, Authorization, x-vercel-protection-bypass, x-giselle-protection-bypass",
        ),
        ("access-control-max-age", "86400"),
    ] {
        assert_eq!(answer.header(name), Some(value));
    }
    let answer = ask("https://evil.example").await;
    assert_eq!((answer.status.as_u16(), answer.header("access-control-allow-origin")), (403, None));
}

#[tokio::test]
async fn a_relay_token_is_in_no_entry_of_the_log() {
    let stage = Stage::new().await;
    let (run, _agent) = waiting(&stage).await;
    let id = SessionId::new(run.session.clone()).unwrap();
    let page = stage.server.store.read(&id, 0, usize::MAX).await.unwrap();
    assert!(!String::from_utf8(page.lines).unwrap().contains(&run.token));
    let record = stage.server.store.load(&id).await.unwrap().unwrap();
    assert!(!serde_json::to_string(&record).unwrap().contains(&run.token));
}

/// B10: connections of clients that were gone were never released.
#[tokio::test]
async fn b10_nothing_is_held_for_a_client_that_is_gone() {
    let stage = Stage::new().await;
    let run = stage.run(&json!({"message": "go"})).await;
    let readers = async || {
        let metrics = stage.server.get("/metrics").await;
        let line = metrics.text().lines().find(|line| line.starts_with("interlingua_readers "));
        line.unwrap().to_owned()
    };
    let browser = browser(&stage, &run).await;
    assert_eq!(readers().await, "interlingua_readers 2");
    let (session, token) = (run.session.clone(), run.token.clone());
    drop((browser, run));
    while readers().await != "interlingua_readers 0" {}
    let request = json!({"type": "snapshot_request", "requestId": "r1", "instruction": "snapshot"});
    let dispatch =
        json!({"type": "relay.dispatch", "sessionId": session, "token": token, "request": request});
    assert_eq!(stage.relay(&dispatch).await.0, 409, "there is no browser any more");
}

/// A client that sent its message again at once found that the call still waited, and began a second turn.
#[tokio::test]
async fn a_response_is_acknowledged_when_the_end_of_its_call_is_stored() {
    let stage = Stage::new().await;
    let (run, mut agent) = waiting(&stage).await;
    stage.answers_early.store(true, SeqCst);
    let mut responded = std::pin::pin!(stage.respond(&run, snapshot("req-1")));
    let before = async {
        stage.next_taken(1).await;
        // Long enough for a response that does not wait.
        for _ in 0..20 {
            assert_eq!(stage.server.get("/healthz").await.status, 200);
        }
    };
    tokio::select! {
        biased;
        response = &mut responded => panic!("{response:?} came before the end of the call"),
        () = before => {}
    }
    agent.answered("req-1").await;
    assert_eq!(responded.await, (200, json!({"ok": true})));
}

/// The next session of a chat has the id of the one before.
#[tokio::test]
async fn a_token_of_a_deleted_session_is_not_one_of_the_next() {
    let stage = Stage::new().await;
    let chat = json!({"chat_id": "c", "message": "go", "agent_type": "codex"});
    let before = stage.run(&chat).await;
    let path = format!("/v1/sessions/{}", before.session);
    let request = stage.server.request(Method::DELETE, &path);
    assert_eq!(request.send().await.unwrap().status(), 204);
    assert_eq!(stage.respond(&before, snapshot("req-1")).await.0, 404);
    stage.server.hands.advance(1);
    let after = stage.run(&chat).await;
    assert_eq!(after.session, before.session);
    let mut agent = stage.agent(&after.session).await;
    agent.begin().await;
    agent.snapshot("req-1").await;
    stage.taken();
    let refused = unauthorized("Invalid relay session credentials.");
    assert_eq!(stage.respond(&before, snapshot("req-1")).await, refused);
    assert_eq!(stage.browser(&before.session, &before.token).await.status(), 401);
    assert_eq!(stage.respond(&after, snapshot("req-1")).await.0, 200);
}

/// A response for a session that another process held was taken for one to a call that no longer waited.
#[tokio::test]
async fn a_response_for_a_session_in_use_is_to_be_sent_again() {
    let stage = Stage::new().await;
    let (run, _agent) = waiting(&stage).await;
    stage.is_held.store(true, SeqCst);
    let (status, body) = stage.respond(&run, snapshot("req-1")).await;
    assert_eq!((status, &body["errorCode"]), (409, &json!("CONFLICT")), "{body}");
    stage.is_held.store(false, SeqCst);
    assert_eq!(stage.respond(&run, snapshot("req-1")).await, (200, json!({"ok": true})));
}

/// A page with one token could take all connections of the server.
#[tokio::test]
async fn a_token_has_a_number_of_readers() {
    let stage = Stage::with(|settings| settings.limits.readers = 2).await;
    let (one, two) =
        (stage.run(&json!({"message": "go"})).await, stage.run(&json!({"message": "go"})).await);
    let (status, code, _) = stage.refused(&json!({"message": "go"})).await;
    assert_eq!((status, &*code), (429, "TOO_MANY_REQUESTS"), "runs are readers");
    let browsers = (browser(&stage, &one).await, browser(&stage, &one).await);
    let third = stage.browser(&one.session, &one.token).await;
    assert_eq!(third.status(), 429);
    assert_eq!(Answer::of(third).await.json()["errorCode"], "TOO_MANY_REQUESTS");
    drop(browser(&stage, &two).await);
    drop(browsers);
    // The place is free when the server has noticed it.
    while stage.browser(&one.session, &one.token).await.status() == 429 {}
}
