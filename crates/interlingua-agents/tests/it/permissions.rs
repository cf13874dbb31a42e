//! Permission requests, and that every decision reaches the agent and the stream.

use std::time::Duration;

use interlingua_agents::Wanted;
use interlingua_agents::agent::Launch;
use interlingua_agents::driver::ClaudeDriver;
use interlingua_agents::permission::{Decision, Mode};
use interlingua_agents::process::Input;
use serde_json::Value;
use tokio::sync::mpsc;

use crate::support::*;

/// A script that requests a permission like Claude Code, and prints the answer as its text.
fn requests_permission() -> Launch {
    let call = r#"echo '{"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"touch x"}}]},"session_id":"s","uuid":"u1"}'"#;
    let requests_permission = r#"echo '{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"touch x"},"tool_use_id":"t1"}}'"#;
    let answered = r#"
case $answer in
  *'"behavior":"allow"'*) result='"content":"ran"';;
  *) result='"content":"refused","is_error":true';;
esac
echo '{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1",'"$result"'}]},"session_id":"s","uuid":"u2"}'"#;
    let result = r#"echo '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s","uuid":"u3"}'"#;
    // It exits when its input is closed.
    let lines = [
        "read prompt",
        call,
        requests_permission,
        "read answer",
        answered,
        result,
        "cat > /dev/null",
    ];
    live(&lines, "claude", Input::Open, Box::<ClaudeDriver>::default())
}

fn decision(events: &[Value]) -> &str {
    let resolved: Vec<_> = events.iter().filter(|it| it["type"] == "permission_resolved").collect();
    assert_eq!(resolved.len(), 1, "{events:?}");
    resolved[0]["decision"].as_str().unwrap()
}

fn answer(events: &[Value]) -> &Value {
    &events.iter().find(|event| event["type"] == "tool_ended").unwrap()["output"]
}

#[tokio::test]
async fn a_mode_decides_and_the_decision_is_an_event() {
    let modes = [(Mode::Auto, "allowed", "ran"), (Mode::Deny, "denied", "refused")];
    for (mode, decided, result) in modes {
        let mut options = options();
        options.policy.mode = mode;
        let (ended, events) = run(requests_permission(), options).await;
        assert_eq!(
            (ended.code(), decision(&events), answer(&events)),
            (0, decided, &result.into())
        );
    }
}

#[tokio::test]
async fn without_a_user_requests_are_denied() {
    let (_, events) = run(requests_permission(), options()).await;
    assert_eq!(decision(&events), "denied");
}

#[tokio::test]
async fn the_user_decides() {
    let (requests, mut asked) = mpsc::unbounded_channel();
    let mut options = options();
    options.input_requests = Some(requests);
    let run = Watched::start(requests_permission(), options).await;
    let asked = within(asked.recv()).await.unwrap();
    let Wanted::Permission(request) = &asked.wanted else { panic!("{asked:?}") };
    assert_eq!((&*request.tool, request.kind.as_str()), ("Bash", "execute"));
    assert!(asked.is_pending());
    run.handle.decide(asked.id(), Decision::Allow).await.unwrap();
    assert!(!asked.is_pending());
    let (ended, events) = run.end().await;
    assert_eq!((ended.code(), decision(&events), answer(&events)), (0, "allowed", &"ran".into()));
}

#[tokio::test]
async fn a_request_that_is_not_answered_in_time_is_denied() {
    let (requests, _asked) = mpsc::unbounded_channel();
    let mut options = options();
    options.input_requests = Some(requests);
    options.deadlines.answer = Duration::from_millis(100);
    let (ended, events) = run(requests_permission(), options).await;
    assert_eq!((ended.code(), decision(&events)), (0, "denied"));
    let resolved = events.iter().find(|event| event["type"] == "permission_resolved").unwrap();
    assert_eq!(resolved["reason"], "the permission request was not answered in time");
}

#[tokio::test]
async fn silence_while_a_request_is_pending_is_allowed() {
    let (requests, mut asked) = mpsc::unbounded_channel();
    let mut options = options();
    options.input_requests = Some(requests);
    options.deadlines.silence = Some(Duration::from_millis(100));
    let run = Watched::start(requests_permission(), options).await;
    let asked = within(asked.recv()).await.unwrap();
    // The test depends on real time.
    tokio::time::sleep(Duration::from_millis(300)).await;
    run.handle.decide(asked.id(), Decision::Allow).await.unwrap();
    assert_eq!(run.end().await.0.code(), 0);
}
