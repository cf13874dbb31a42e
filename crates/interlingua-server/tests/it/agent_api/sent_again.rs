//! Requests that are sent again because their response was lost, with the same key, or by a client that has answered
//! at the relay.

use interlingua::event::Outcome;
use serde_json::{Value, json};

use super::stage::{Agent, Stage, names};

fn resume(results: &[&str]) -> Value {
    let result =
        |id| json!({"toolCallId": id, "toolName": "getFormSnapshot", "output": {"fields": []}});
    let results: Vec<_> = results.iter().map(result).collect();
    json!({"chat_id": "c", "message": "go", "agent_type": "codex", "tool_results": results})
}

fn prompt(text: &str) -> Value {
    json!({"type": "prompt", "text": text, "whilePending": "supersede"})
}

async fn finish(agent: &mut Agent) {
    agent.says("Done!").await;
    agent.ends(Outcome::Completed).await;
}

/// Each retry created another session.
#[tokio::test]
async fn a_first_request_of_version_1_creates_one_session() {
    let stage = Stage::new().await;
    let body = json!({"message": "go"});
    let (one, two) = (stage.run_keyed("k1", &body).await, stage.run_keyed("k1", &body).await);
    let other = stage.run_keyed("k2", &body).await;
    assert_eq!((&one.session, &one.sandbox), (&two.session, &two.sandbox));
    assert_ne!(one.session, other.session);
    let mut agent = stage.agent(&one.session).await;
    agent.begin().await;
    finish(&mut agent).await;
    let all = ["init", "message Done!", "result"];
    assert_eq!(
        (names(&one.rest().await), names(&two.rest().await)),
        (all.map(str::to_owned).into(), all.map(str::to_owned).into())
    );
}

/// The retry of a resume became a prompt when the turn had ended meanwhile.
#[tokio::test]
async fn a_resume_shows_the_same_part_when_its_turn_has_ended() {
    let stage = Stage::new().await;
    let run = stage.run(&resume(&[])).await;
    let mut agent = stage.agent(&run.session).await;
    agent.begin().await;
    agent.snapshot("req-1").await;
    let first = stage.run_keyed("k1", &resume(&["req-1"])).await;
    stage.taken();
    agent.answered("req-1").await;
    agent.says("Next.").await;
    agent.snapshot("req-2").await;
    let part = ["message Next.", "snapshot_request req-2"];
    assert_eq!(names(&first.rest().await), part);
    drop(stage.run_keyed("k2", &resume(&["req-1", "req-2"])).await);
    agent.answered("req-2").await;
    finish(&mut agent).await;
    stage.taken();
    let again = stage.run_keyed("k2", &resume(&["req-1", "req-2"])).await;
    assert_eq!(names(&again.rest().await), ["message Done!", "result"]);
    let again = stage.run_keyed("k1", &resume(&["req-1"])).await;
    assert_eq!(names(&again.rest().await), part, "of this request only");
    assert_eq!(stage.taken(), Vec::<Value>::new(), "neither answers nor prompts");
    // The same words in another request are another prompt.
    drop(stage.run_keyed("k3", &resume(&["req-1", "req-2"])).await);
    assert_eq!(stage.taken(), [prompt("go")]);
}

/// The agent was lost, and has gone on in another turn.
#[tokio::test]
async fn a_resume_of_a_lost_agent_shows_the_same_part() {
    let stage = Stage::new().await;
    let run = stage.run(&resume(&[])).await;
    let mut agent = stage.agent(&run.session).await;
    agent.begin().await;
    agent.snapshot("req-1").await;
    agent.ends(Outcome::WaitingForClient).await;
    drop(stage.run_keyed("k1", &resume(&["req-1"])).await);
    agent.resumes(&["req-1"]).await;
    finish(&mut agent).await;
    let again = stage.run_keyed("k1", &resume(&["req-1"])).await;
    assert_eq!(names(&again.rest().await), ["message Done!", "result"]);
}

/// The retry of the first request began at the last pause instead of the beginning.
#[tokio::test]
async fn a_first_request_shows_its_run_from_the_beginning() {
    let stage = Stage::new().await;
    let first = stage.run(&json!({"message": "before"})).await;
    let body = json!({"message": "go", "session_id": first.session});
    let mut agent = stage.agent(&first.session).await;
    agent.begin().await;
    agent.ends(Outcome::Completed).await;
    drop(stage.run_keyed("k1", &body).await);
    agent.begin().await;
    agent.says("I'll fill").await;
    agent.snapshot("req-1").await;
    agent.answered("req-1").await;
    let again = stage.run_keyed("k1", &body).await;
    let all = ["init", "message I'll fill", "snapshot_request req-1"];
    assert_eq!(names(&again.rest().await), all);
}

/// The turn had ended when the client of version 1 came back from the relay, and was begun again.
#[tokio::test]
async fn a_turn_that_ends_before_its_client_comes_back_is_shown_once() {
    let stage = Stage::new().await;
    let first = stage.run(&json!({"message": "go"})).await;
    let mut agent = stage.agent(&first.session).await;
    agent.begin().await;
    agent.snapshot("req-1").await;
    agent.answered("req-1").await;
    finish(&mut agent).await;
    stage.taken();
    let again = json!({"message": "go", "session_id": first.session});
    let run = stage.run(&again).await;
    assert_eq!(names(&run.rest().await), ["message Done!", "result"]);
    assert_eq!(stage.taken(), Vec::<Value>::new(), "no second turn");
    drop(stage.run(&again).await);
    assert_eq!(stage.taken(), [prompt("go")], "what was shown is not shown again");
}
