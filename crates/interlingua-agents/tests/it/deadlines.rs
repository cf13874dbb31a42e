//! The limits for silence, retries, a late exit, and the whole run.

use std::time::Duration;

use interlingua_agents::ProcessAgent;
use interlingua_agents::driver::ClaudeDriver;
use interlingua_agents::process::Input;

use crate::support::*;

#[tokio::test]
async fn silence_during_a_turn_ends_it() {
    let mut options = options();
    options.deadlines.silence = Some(Duration::from_millis(300));
    let (ended, events) = run(script(&[BEGINS, MESSAGE, "sleep 1000"]), options).await;
    assert_eq!(ended.code(), 124);
    let end = turn_end(&events);
    assert_eq!(end["outcome"], "timed_out");
    assert!(end["cause"].as_str().unwrap().contains("silent for 300 ms"), "{end}");
}

#[tokio::test]
async fn a_running_tool_may_be_silent() {
    let mut options = options();
    options.deadlines.silence = Some(Duration::from_millis(300));
    // The test depends on real time.
    let lines = [BEGINS, TOOL_STARTS, "sleep 1", TOOL_ENDS, COMPLETES];
    let (ended, events) = run(script(&lines), options).await;
    assert_eq!((ended.code(), &turn_end(&events)["outcome"]), (0, &"completed".into()));
}

#[tokio::test]
async fn a_run_has_a_deadline() {
    let mut options = options();
    options.deadlines.run = Some(Duration::from_millis(300));
    // The agent is never silent for long; the test depends on real time.
    let talk = format!("while :; do {MESSAGE}; sleep 0.05; done");
    let (ended, events) = run(script(&[BEGINS, &talk]), options).await;
    assert_eq!(ended.code(), 124);
    assert!(turn_end(&events)["cause"].as_str().unwrap().contains("longer than 300 ms"));
}

#[tokio::test]
async fn an_agent_that_does_not_exit_after_its_turn_is_ended_and_has_not_failed() {
    let mut options = options();
    options.deadlines.exit_after_turn = Duration::from_millis(200);
    let (ended, events) = run(script(&[BEGINS, MESSAGE, COMPLETES, "sleep 1000"]), options).await;
    assert_eq!((ended.code(), &turn_end(&events)["outcome"]), (0, &"completed".into()));
    assert!(!kinds(&events).contains(&"error"));
}

#[tokio::test]
async fn an_agent_that_only_retries_is_stopped() {
    let mut options = options();
    options.deadlines.retries = Some(Duration::from_millis(400));
    // The agent is never silent for long; the test depends on real time.
    let again = r#"while :; do echo '{"type":"error","message":"Reconnecting... waiting for network"}'; sleep 0.05; done"#;
    let (ended, events) = run(script(&[BEGINS, again]), options).await;
    assert_eq!(ended.code(), 124);
    assert!(turn_end(&events)["cause"].as_str().unwrap().contains("retried"));
}

#[tokio::test]
async fn an_agent_that_never_reads_its_input_does_not_block_the_run() {
    let mut options = options();
    options.deadlines.run = Some(Duration::from_millis(300));
    let driver = Box::<ClaudeDriver>::default();
    let launch = live(&["sleep 1000"], "claude", Input::Open, driver);
    let run = Watched::open(ProcessAgent::new(launch), options).await;
    // More than the capacity of a pipe.
    run.handle.prompt("x".repeat(1 << 20)).await.unwrap();
    let (ended, _) = run.end().await;
    assert_eq!(ended.code(), 124);
}
