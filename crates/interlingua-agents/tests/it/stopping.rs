//! An agent that has to stop is stopped, together with everything that it started.

use std::time::Duration;

use interlingua_agents::driver::{Driver, Interrupt, PlainDriver, Step};
use interlingua_agents::process::Input;
use interlingua_agents::{ProcessAgent, Stop};

use crate::support::*;

#[tokio::test]
async fn an_interrupt_ends_the_turn_as_cancelled() {
    let lines = ["trap 'exit 1' INT", BEGINS, MESSAGE, "sleep 1000 & wait"];
    let mut run = Watched::start(script(&lines), options()).await;
    run.until(|event| event["type"] == "block").await;
    run.handle.stop(Stop::Interrupted).await.unwrap();
    let (ended, events) = run.end().await;
    assert_eq!((ended.code(), text(&events)), (130, "hello".to_owned()));
    let end = turn_end(&events);
    assert_eq!((&end["outcome"], &end["synthetic"]), (&"cancelled".into(), &"stopped".into()));
}

/// The description of an unknown program states how it is interrupted.
#[tokio::test]
async fn an_interrupt_can_be_the_end_of_the_input() {
    let driver = Box::new(PlainDriver::new(Interrupt::CloseInput));
    let lines = [BEGINS, MESSAGE, "cat", "exit 7"];
    let mut run =
        Watched::start(with_driver(&lines, "codex", Input::Open, driver), options()).await;
    run.until(|event| event["type"] == "block").await;
    run.handle.stop(Stop::Interrupted).await.unwrap();
    let (ended, _) = run.end().await;
    assert_eq!((ended.code(), ended.exit.code), (130, Some(7)));
}

#[tokio::test]
async fn an_agent_that_will_not_stop_is_killed() {
    let lines = ["trap '' INT TERM", BEGINS, MESSAGE, "while :; do sleep 1000; done"];
    let mut run = Watched::start(script(&lines), options()).await;
    run.until(|event| event["type"] == "block").await;
    run.handle.stop(Stop::Interrupted).await.unwrap();
    let (ended, _) = run.end().await;
    assert_eq!((ended.code(), ended.exit.signal), (130, Some(9)));
}

/// The driver of an agent that does not exit by itself, as servers do not.
#[derive(Debug)]
struct Terminating;

impl Driver for Terminating {
    fn prompt(&mut self, prompt: &str, steps: &mut Vec<Step>) {
        steps.push(Step::Type(format!("{prompt}\n").into_bytes()));
    }

    fn close(&mut self, steps: &mut Vec<Step>) {
        steps.push(Step::Terminate);
    }
}

#[tokio::test]
async fn an_agent_that_is_terminated_by_design_has_not_failed() {
    for reaction in ["true", "trap '' TERM"] {
        let turn = ["read prompt", BEGINS, MESSAGE, COMPLETES];
        let lines = [&[reaction], &turn[..], &["while :; do sleep 1000; done"]].concat();
        let launch = live(&lines, "codex", Input::Open, Box::new(Terminating));
        let (ended, events) = run(launch, options()).await;
        assert_eq!((ended.code(), ended.exit.signal), (0, None), "{reaction}");
        assert!(!ended.exit_overdue && !kinds(&events).contains(&"error"), "{reaction}");
    }
}

/// A failure of its own is still one.
#[tokio::test]
async fn a_terminated_agent_may_fail() {
    // A signal that arrives before `wait` does not end it, so the shell looks up often.
    let turn = ["read prompt", BEGINS, MESSAGE, COMPLETES];
    let lines = [&["trap 'exit 3' TERM"], &turn[..], &["while :; do sleep 0.1; done"]].concat();
    let launch = live(&lines, "codex", Input::Open, Box::new(Terminating));
    let (ended, _) = run(launch, options()).await;
    assert_eq!((ended.code(), ended.exit.code), (1, Some(3)));
}

#[tokio::test]
async fn no_process_survives() {
    let all_started = Fifo::new();
    let orphan = format!(
        "(setsid sh -c 'sleep 1003 & echo $! >&2; {}; wait' &)",
        all_started.signal_command()
    );
    // One in the process group, one in its own session, and one that has become an orphan.
    let lines = [
        BEGINS,
        "sleep 1001 & echo $! >&2",
        "setsid sleep 1002 & echo $! >&2",
        &orphan,
        &all_started.wait_command(),
        COMPLETES,
    ];
    let (ended, _) = run(script(&lines), options()).await;
    assert_eq!(ended.code(), 0);
    assert!(ended.orphans >= 3, "{}", ended.orphans);
    let stderr = ended.exit.stderr.unwrap();
    assert_eq!(stderr.lines().count(), 3, "{stderr}");
    for pid in stderr.lines() {
        assert!(!is_alive(pid), "{pid} is alive");
    }
}

#[tokio::test]
async fn a_signal_reaches_processes_that_moved_away() {
    let received = Fifo::new();
    // A shell's background commands ignore SIGINT from the start, so the next signal must reach it.
    // It waits in a loop because the signal may reach the process that it waits for first.
    let away = format!(
        "setsid sh -c 'trap \"echo received >&2; {signal}; exit\" TERM; {signal}; while :; do sleep 1000 & wait; done' &",
        signal = received.signal_command()
    );
    let lines = [
        &format!("trap '' INT; trap '{}; exit 1' TERM", received.wait_command()),
        BEGINS,
        &away,
        &received.wait_command(),
        MESSAGE,
        "sleep 1000 & wait",
    ];
    let mut options = options();
    // The agent exits once the other process has received its signal, however long that takes.
    options.deadlines.terminate = Duration::from_secs(20);
    let mut run = Watched::start(script(&lines), options).await;
    run.until(|event| event["type"] == "block").await;
    run.handle.stop(Stop::Interrupted).await.unwrap();
    let (ended, _) = run.end().await;
    assert!(ended.exit.stderr.unwrap().contains("received"));
}

#[tokio::test]
async fn a_session_without_a_handle_ends_after_its_prompts() {
    let seen = Fifo::new();
    let launch = script(&[BEGINS, &seen.wait_command(), MESSAGE, COMPLETES]);
    let run = Watched::open(ProcessAgent::new(launch), options()).await;
    run.handle.prompt("do it").await.unwrap();
    let Watched { handle, entries, events } = run;
    drop(handle);
    seen.release();
    let mut all = events;
    let mut entries = entries;
    while let Some(batch) = within(entries.next()).await {
        all.extend(batch.to_entries().iter().map(|entry| serde_json::to_value(entry).unwrap()));
    }
    assert_eq!((within(entries.end()).await.unwrap().code(), text(&all)), (0, "hello".to_owned()));
}
