//! Permissions and questions, for which the contract has no words: an agent that asks is denied at once,
//! instead of waiting until its limit.

use std::sync::Arc;

use interlingua::event::{Event, Outcome, PermissionRequested, QuestionAsked};
use serde_json::{Value, json};

use super::stage::{Agent, Stage, text};

fn permission(id: &str) -> Event<'static> {
    Event::new(PermissionRequested { request: text(id), ..PermissionRequested::default() })
}

fn question(id: &str) -> Event<'static> {
    Event::new(QuestionAsked { request: text(id), ..QuestionAsked::default() })
}

fn denied(id: &str) -> Value {
    let reason = "no one is available who could decide this";
    json!({"type": "decide", "request": id, "decision": "deny", "reason": reason})
}

fn declined(id: &str) -> Value {
    let reason = "no one is available who could decide this";
    json!({"type": "answer", "request": id, "decline": reason})
}

/// A turn of another interface.
async fn turn_of_others(stage: &Stage, agent: &mut Agent, prompt: &str) {
    let path = format!("/v1/sessions/{}/commands", agent.id);
    let command = json!({"type": "prompt", "text": prompt});
    let sent = stage.server.post_with(&path, &command, &[("idempotency-key", prompt)]).await;
    assert_eq!(sent.status, 202, "{}", sent.text());
    agent.begin_of(prompt).await;
    stage.taken();
}

#[tokio::test]
async fn what_no_client_can_decide_is_denied() {
    let stage = Stage::new().await;
    let run = stage.run(&json!({"message": "go"})).await;
    let mut agent = stage.agent(&run.session).await;
    agent.begin().await;
    stage.taken();
    agent.emit(vec![permission("p"), question("q")]).await;
    assert_eq!(stage.next_taken(2).await, [denied("p"), declined("q")]);
    agent.ends(Outcome::Completed).await;
    run.rest().await;
    assert_eq!(stage.taken(), Vec::<Value>::new(), "each is denied once");
}

/// Only a stream that was read denied something.
#[tokio::test]
async fn a_client_that_has_disconnected_is_not_asked() {
    let stage = Stage::new().await;
    let run = stage.run(&json!({"message": "go"})).await;
    let session = run.session.clone();
    drop(run);
    stage.until_no_reader().await;
    let mut agent = stage.agent(&session).await;
    agent.begin().await;
    stage.taken();
    agent.emit(vec![permission("p")]).await;
    assert_eq!(stage.next_taken(1).await, [denied("p")]);
    // The run of the next prompt is followed, too.
    agent.ends(Outcome::Completed).await;
    drop(stage.run(&json!({"message": "next", "session_id": session})).await);
    stage.until_no_reader().await;
    agent.begin().await;
    stage.taken();
    agent.emit(vec![question("q")]).await;
    assert_eq!(stage.next_taken(1).await, [declined("q")]);
}

/// The run has ended with the request of a call, and no stream was left that read what came next.
#[tokio::test]
async fn an_agent_that_asks_while_a_call_waits_is_denied() {
    let stage = Stage::new().await;
    let run = stage.run(&json!({"message": "go"})).await;
    let mut agent = stage.agent(&run.session).await;
    agent.begin().await;
    agent.snapshot("req-1").await;
    run.rest().await;
    stage.taken();
    agent.emit(vec![permission("p")]).await;
    assert_eq!(stage.next_taken(1).await, [denied("p")]);
}

/// What was asked before the request for a run arrived was taken for something of the past.
#[tokio::test]
async fn what_was_asked_before_a_run_has_joined_is_denied() {
    let stage = Stage::new().await;
    let session = stage.run(&json!({"message": "first"})).await.session.clone();
    let mut agent = stage.agent(&session).await;
    agent.begin().await;
    agent.ends(Outcome::Completed).await;
    turn_of_others(&stage, &mut agent, "go").await;
    agent.snapshot("req-1").await;
    agent.answered("req-1").await;
    agent.emit(vec![question("q")]).await;
    drop(stage.run(&json!({"message": "go", "session_id": session})).await);
    assert_eq!(stage.next_taken(1).await, [declined("q")]);
}

/// The agent was lost, and its client has answered at the relay and does not come back.
#[tokio::test]
async fn a_turn_that_an_answer_at_the_relay_resumes_is_followed() {
    let stage = Stage::new().await;
    let run = stage.run(&json!({"message": "go"})).await;
    let mut agent = stage.agent(&run.session).await;
    agent.begin().await;
    agent.snapshot("req-1").await;
    agent.ends(Outcome::WaitingForClient).await;
    let response = json!({"type": "snapshot_response", "requestId": "req-1", "fields": []});
    assert_eq!(stage.respond(&run, response).await.0, 200);
    agent.resumes(&["req-1"]).await;
    stage.taken();
    agent.emit(vec![permission("p")]).await;
    assert_eq!(stage.next_taken(1).await, [denied("p")]);
}

/// A client of another interface can decide in the turns that it has asked for.
#[tokio::test]
async fn turns_of_other_interfaces_are_left_to_them() {
    let stage = Stage::new().await;
    let session = stage.run(&json!({"message": "first"})).await.session.clone();
    let mut agent = stage.agent(&session).await;
    agent.begin().await;
    agent.ends(Outcome::Completed).await;
    turn_of_others(&stage, &mut agent, "theirs").await;
    agent.emit(vec![permission("theirs")]).await;
    agent.ends(Outcome::Completed).await;
    drop(stage.run(&json!({"message": "ours", "session_id": session})).await);
    agent.begin().await;
    agent.emit(vec![permission("ours")]).await;
    assert_eq!(stage.next_taken(2).await.last(), Some(&denied("ours")));
    assert_eq!(stage.taken(), Vec::<Value>::new());
}

#[tokio::test]
async fn a_session_is_not_followed_when_the_server_stops() {
    let stage = Stage::new().await;
    drop(stage.run(&json!({"message": "go"})).await);
    let Stage { server, commands, .. } = stage;
    server.stop().await;
    // What follows a session holds the server's state.
    while Arc::strong_count(&commands) > 1 {
        tokio::task::yield_now().await;
    }
}
