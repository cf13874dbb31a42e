//! Pauses, answers and new messages. The numbers are those of the scenarios in `docs/giselle.md`.

use interlingua::event::{Event, Outcome, ToolEnded, ToolStarted};
use interlingua::json::Json;
use serde_json::{Value, json};

use super::stage::{Agent, Run, Stage, names, problem, text};
use crate::support::{ADMIN, Answer};

fn chat(message: &str, results: Value) -> Value {
    json!({"type": "agent.run", "chat_id": "c", "message": message, "agent_type": "codex", "tool_results": results})
}

fn result(id: &str) -> Value {
    json!({"toolCallId": id, "toolName": "getFormSnapshot", "output": {"fields": []}})
}

fn answer(id: &str) -> Value {
    json!({"type": "answer", "request": id, "answer": {"fields": []}})
}

fn prompt(text: &str) -> Value {
    json!({"type": "prompt", "text": text, "whilePending": "supersede"})
}

/// A run that has paused for `req-1`: its agent, and what its client got.
async fn paused(stage: &Stage) -> (Agent, Vec<Value>) {
    let run = stage.run(&chat("go", json!([]))).await;
    let mut agent = stage.agent(&run.session).await;
    agent.begin().await;
    agent.says("I'll fill").await;
    agent.snapshot("req-1").await;
    let records = run.rest().await;
    stage.taken();
    (agent, records)
}

#[tokio::test]
async fn scenario_28_pause() {
    let stage = Stage::new().await;
    let (_, records) = paused(&stage).await;
    assert_eq!(names(&records), ["init", "message I'll fill", "snapshot_request req-1"]);
    assert_eq!(
        records[2],
        json!({"type": "snapshot_request", "requestId": "req-1", "instruction": "fill"})
    );
}

/// B1 and B7: what the agent had printed behind the request was lost.
#[tokio::test]
async fn scenario_36_b1_what_follows_a_request_is_in_the_next_run() {
    let stage = Stage::new().await;
    let (mut agent, records) = paused(&stage).await;
    agent.says("held back").await;
    assert!(!names(&records).contains(&"message held back".to_owned()));
    let run = stage.run(&chat("go", json!([result("req-1")]))).await;
    assert_eq!(stage.taken(), [answer("req-1")], "no second prompt");
    agent.answered("req-1").await;
    agent.says("more").await;
    agent.ends(Outcome::Completed).await;
    assert_eq!(names(&run.rest().await), ["message held back", "message more", "result"]);
}

#[tokio::test]
async fn scenario_29_hot_resume() {
    let stage = Stage::new().await;
    let (mut agent, _) = paused(&stage).await;
    let run = stage.run(&chat("go", json!([result("req-1")]))).await;
    assert_eq!(stage.taken(), [answer("req-1")]);
    agent.answered("req-1").await;
    agent.says("Done!").await;
    agent.ends(Outcome::Completed).await;
    assert_eq!(names(&run.rest().await), ["message Done!", "result"]);
}

/// B20: a client of version 1 that has answered at the relay began a second turn with the same prompt.
#[tokio::test]
async fn scenario_30_a_client_that_has_answered_at_the_relay_joins_the_turn() {
    let stage = Stage::new().await;
    let first = stage.run(&json!({"message": "go"})).await;
    let mut agent = stage.agent(&first.session).await;
    agent.begin().await;
    agent.call(&[("req-1", "executeFormActions", json!({"actions": [], "fields": []}))]).await;
    let report = json!({"applied": 2, "skipped": 1, "warnings": ["w"]});
    let response = json!({"type": "execute_response", "requestId": "req-1", "report": report});
    assert_eq!(stage.respond(&first, response).await, (200, json!({"ok": true})));
    agent.answered("req-1").await;
    let (session, sandbox) = (first.session.clone(), first.sandbox["sandbox_id"].clone());
    let again = json!({"message": "go", "session_id": session, "sandbox_id": sandbox});
    let run = stage.run(&again).await;
    agent.says("Done!").await;
    agent.ends(Outcome::Completed).await;
    assert_eq!(names(&run.rest().await), ["message Done!", "result"]);
    let taken = stage.taken();
    let given = json!({"type": "answer", "request": "req-1", "answer": report});
    assert_eq!(taken, [prompt("go"), given], "there is one prompt");
    drop(stage.run(&again).await);
    assert_eq!(stage.taken(), [prompt("go")], "the turn has ended, so this is a follow-up");
}

#[tokio::test]
async fn scenario_31_and_38_a_result_of_another_call_is_a_conflict() {
    let stage = Stage::new().await;
    let (agent, _) = paused(&stage).await;
    let (status, code, message) = stage.refused(&chat("go", json!([result("other")]))).await;
    assert_eq!((status, &*code, &*message), (409, "CONFLICT", "Missing tool result for req-1"));
    assert_eq!(stage.taken(), Vec::<Value>::new(), "nothing was sent");
    let state = stage.server.get(&format!("/v1/sessions/{}", agent.id)).await.json();
    assert_eq!(state["state"], "waiting");
}

#[tokio::test]
async fn scenario_32_a_follow_up_needs_no_state_of_the_client() {
    let stage = Stage::new().await;
    let (mut agent, _) = paused(&stage).await;
    drop(stage.run(&chat("go", json!([result("req-1")]))).await);
    agent.answered("req-1").await;
    agent.ends(Outcome::Completed).await;
    stage.taken();
    // Clients send all results of the conversation again.
    for results in [json!([]), json!([result("req-1")]), json!([result("of an expired session")])] {
        drop(stage.run(&chat("next", results)).await);
        assert_eq!(stage.taken(), [prompt("next")]);
    }
}

/// Two calls at once: what is missing is asked for again, and nothing twice.
#[tokio::test]
async fn of_several_calls_one_is_answered() {
    let stage = Stage::new().await;
    let run = stage.run(&chat("go", json!([]))).await;
    let mut agent = stage.agent(&run.session).await;
    agent.begin().await;
    let calls =
        [("a", "getFormSnapshot", json!({})), ("b", "getFormSnapshot", json!({"instruction": ""}))];
    agent.call(&calls).await;
    let records = run.rest().await;
    assert_eq!(names(&records), ["init", "snapshot_request a", "snapshot_request b"]);
    assert_eq!(records[2]["instruction"], "snapshot", "clients need one");
    let second = stage.run(&chat("go", json!([result("a")]))).await.rest().await;
    assert_eq!(names(&second), ["snapshot_request b"]);
    assert_eq!(second[0], records[2]);
}

/// B4: both of two concurrent resumes were sent, and each got a part of the rest.
#[tokio::test]
async fn b4_of_two_answers_exactly_one_wins() {
    let stage = Stage::new().await;
    paused(&stage).await;
    let other =
        json!([{"toolCallId": "req-1", "toolName": "getFormSnapshot", "output": {"fields": [{}]}}]);
    let (one, two) = (chat("go", json!([result("req-1")])), chat("go", other));
    let (one, two) = tokio::join!(
        stage.send("/agent-api/run", ADMIN, &one),
        stage.send("/agent-api/run", ADMIN, &two)
    );
    let mut statuses = [one.status().as_u16(), two.status().as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    let lost = if one.status() == 409 { one } else { two };
    assert_eq!(problem(&Answer::of(lost).await).1, "CONFLICT");
}

/// B6: a tool's error reached the agent as a snapshot.
#[tokio::test]
async fn b6_a_tool_error_is_an_error_for_the_agent() {
    let stage = Stage::new().await;
    paused(&stage).await;
    let output = json!({"type": "error-text", "value": "boom"});
    let failed = json!([{"toolCallId": "req-1", "toolName": "getFormSnapshot", "output": output}]);
    drop(stage.run(&chat("go", failed)).await);
    assert_eq!(stage.taken(), [json!({"type": "answer", "request": "req-1", "decline": "boom"})]);
}

#[tokio::test]
async fn a_tool_that_does_not_exist_is_an_error_for_the_agent() {
    let stage = Stage::new().await;
    paused(&stage).await;
    let unknown = json!([{"toolCallId": "req-1", "toolName": "fly", "output": {}}]);
    drop(stage.run(&chat("go", unknown)).await);
    let declined = json!({"type": "answer", "request": "req-1", "decline": "Unknown tool: fly"});
    assert_eq!(stage.taken(), [declined]);
}

/// B11 and B12: a request was written twice, and a pause had two ends.
#[tokio::test]
async fn b11_and_b12_a_request_is_written_once_and_a_run_has_one_end() {
    let stage = Stage::new().await;
    let (mut agent, records) = paused(&stage).await;
    let requests = records.iter().filter(|record| record["type"] == "snapshot_request");
    assert_eq!(requests.count(), 1);
    assert!(records.iter().all(|record| record["type"] != "result"), "the request is the end");
    let run = stage.run(&chat("go", json!([result("req-1")]))).await;
    agent.answered("req-1").await;
    agent.ends(Outcome::Completed).await;
    assert_eq!(names(&run.rest().await), ["result"]);
}

/// B13: a chat with a pending call took no message any more.
#[tokio::test]
async fn b13_a_message_supersedes_what_waits() {
    let stage = Stage::new().await;
    let (mut agent, _) = paused(&stage).await;
    let run = stage.run(&chat("something else", json!([]))).await;
    assert_eq!(stage.taken(), [prompt("something else")]);
    agent.answered("req-1").await;
    agent.ends(Outcome::Completed).await;
    agent.begin().await;
    agent.says("new").await;
    agent.ends(Outcome::Completed).await;
    assert_eq!(names(&run.rest().await), ["init", "message new", "result"], "not the turn before");
}

/// The chat went on in a new session, and its client repeats the results of the one that has expired. It got a 409
/// for ever.
#[tokio::test]
async fn b13_a_message_with_results_of_an_expired_session_supersedes_what_waits() {
    let stage = Stage::new().await;
    paused(&stage).await;
    drop(stage.run(&chat("something else", json!([result("of an expired session")]))).await);
    assert_eq!(stage.taken(), [prompt("something else")]);
}

/// B17: the name of a call was not known behind a pause.
#[tokio::test]
async fn b17_a_result_behind_a_pause_belongs_to_its_call() {
    let stage = Stage::new().await;
    let run = stage.run(&chat("go", json!([]))).await;
    let mut agent = stage.agent(&run.session).await;
    agent.begin().await;
    let (call, name) = (text("t1"), text("list_directory"));
    let input = Json::from_text("{}".to_owned());
    let started = ToolStarted { call: call.clone(), name, input, ..ToolStarted::default() };
    agent.emit(vec![Event::new(started)]).await;
    agent.snapshot("req-1").await;
    assert_eq!(names(&run.rest().await), ["init", "tool_use", "snapshot_request req-1"]);
    let run = stage.run(&chat("go", json!([result("req-1")]))).await;
    agent.answered("req-1").await;
    agent.emit(vec![Event::new(ToolEnded { call, ..ToolEnded::default() })]).await;
    agent.ends(Outcome::Completed).await;
    let records = run.rest().await;
    assert_eq!(names(&records), ["tool_result", "result"]);
    assert_eq!((&records[0]["tool_id"], &records[0]["status"]), (&json!("t1"), &json!("success")));
}

/// B19: after a crash between the answer and its record, every retry failed.
#[tokio::test]
async fn b19_an_answer_that_is_sent_again_joins_the_turn() {
    let stage = Stage::new().await;
    let (mut agent, _) = paused(&stage).await;
    let resume = chat("go", json!([result("req-1")]));
    drop(stage.run(&resume).await);
    agent.answered("req-1").await;
    stage.taken();
    let again = stage.run(&resume).await;
    assert_eq!(stage.taken(), Vec::<Value>::new(), "neither an answer nor a prompt");
    agent.says("Done!").await;
    agent.ends(Outcome::Completed).await;
    assert_eq!(names(&again.rest().await), ["message Done!", "result"]);
}

/// The agent was lost while its call waited, and goes on in another turn.
#[tokio::test]
async fn an_answer_to_a_lost_agent_is_a_resume() {
    let stage = Stage::new().await;
    let (mut agent, _) = paused(&stage).await;
    agent.ends(Outcome::WaitingForClient).await;
    let run: Run = stage.run(&chat("go", json!([result("req-1")]))).await;
    assert_eq!(stage.taken(), [answer("req-1")]);
    agent.answered("req-1").await;
    agent.says("Done!").await;
    agent.ends(Outcome::Completed).await;
    assert_eq!(names(&run.rest().await), ["message Done!", "result"]);
}

/// The client came back after the next call, which was superseded by the same prompt.
#[tokio::test]
async fn a_client_that_has_answered_at_the_relay_finds_the_next_call() {
    let stage = Stage::new().await;
    let first = stage.run(&json!({"message": "go"})).await;
    let mut agent = stage.agent(&first.session).await;
    agent.begin().await;
    agent.snapshot("req-1").await;
    stage.taken();
    let response = json!({"type": "snapshot_response", "requestId": "req-1", "fields": []});
    assert_eq!(stage.respond(&first, response).await.0, 200);
    agent.answered("req-1").await;
    agent.snapshot("req-2").await;
    stage.taken();
    let again = json!({"message": "go", "session_id": first.session});
    let run = stage.run(&again).await;
    assert_eq!(names(&run.rest().await), ["snapshot_request req-2"]);
    assert_eq!(stage.taken(), [Value::Null; 0], "no second prompt");
    // It has seen the call, so that the same message is a new one.
    drop(stage.run(&again).await);
    assert_eq!(stage.taken(), [prompt("go")]);
}

/// The agent was lost during the pause, and is started again. The client that answered at the relay sent the
/// message again meanwhile, which then ran after the resumed turn, too.
#[tokio::test]
async fn a_late_answer_at_the_relay_is_no_reason_for_a_second_prompt() {
    let stage = Stage::new().await;
    let first = stage.run(&json!({"message": "go"})).await;
    let mut agent = stage.agent(&first.session).await;
    agent.begin().await;
    let calls = [("a", "getFormSnapshot", json!({})), ("b", "getFormSnapshot", json!({}))];
    agent.call(&calls).await;
    agent.ends(Outcome::WaitingForClient).await;
    stage.taken();
    let again = json!({"message": "go", "session_id": first.session});
    // It stays accepted until the agent was started, as a late answer does.
    agent.is_answered_late("a").await;
    agent.is_answered_late("b").await;
    let run = stage.run(&again).await;
    let other = stage.run(&json!({"message": "other", "session_id": first.session})).await;
    assert_eq!(
        stage.taken(),
        [prompt("other")],
        "the same message joins, and another one is a prompt"
    );
    drop(other);
    agent.resumes(&["a", "b"]).await;
    agent.says("Done!").await;
    agent.ends(Outcome::Completed).await;
    assert_eq!(names(&run.rest().await), ["message Done!", "result"]);
}

/// A result of 5 MB was refused with 413, and its agent waited for a day.
#[tokio::test]
async fn a_long_result_reaches_the_agent() {
    let stage = Stage::new().await;
    let (mut agent, _) = paused(&stage).await;
    let long = json!([{"fieldId": "x".repeat(5_000_000)}]);
    let output = json!({"fields": long});
    let result = json!([{"toolCallId": "req-1", "toolName": "getFormSnapshot", "output": output}]);
    let run = stage.run(&chat("go", result)).await;
    assert!(stage.taken() == [json!({"type": "answer", "request": "req-1", "answer": output})]);
    agent.answered("req-1").await;
    agent.snapshot("req-2").await;
    let response = json!({"type": "snapshot_response", "requestId": "req-2", "fields": long});
    assert_eq!(stage.respond(&run, response).await, (200, json!({"ok": true})));
    assert!(stage.taken() == [json!({"type": "answer", "request": "req-2", "answer": output})]);
    let small = Stage::with(|settings| settings.limits.command_bytes = 1000).await;
    let (status, code, _) = small.refused(&chat(&"x".repeat(2000), json!([]))).await;
    assert_eq!((status, &*code), (413, "INVALID_REQUEST"));
}

/// The log repeats only the beginning of a long message, which was compared with all of it.
#[tokio::test]
async fn a_long_message_joins_its_turn() {
    let stage = Stage::new().await;
    let long = json!({"message": "go ".repeat(50_000)});
    let first = stage.run(&long).await;
    let mut agent = stage.agent(&first.session).await;
    agent.begin().await;
    agent.snapshot("req-1").await;
    agent.answered("req-1").await;
    stage.taken();
    let mut again = long.clone();
    again["session_id"] = json!(first.session);
    let run = stage.run(&again).await;
    assert!(stage.taken().is_empty(), "there is one prompt");
    agent.ends(Outcome::Completed).await;
    assert_eq!(names(&run.rest().await), ["result"]);
}
