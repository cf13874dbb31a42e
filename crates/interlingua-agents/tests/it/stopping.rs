//! Whoever is told to stop is stopped, with all that it started.

use std::time::Duration;

use interlingua_agents::driver::{Interrupt, PlainDriver};
use interlingua_agents::process::Input;
use interlingua_agents::{Control, Stop};
use tokio::sync::mpsc;

use crate::support::*;

#[tokio::test]
async fn an_interrupt_ends_the_turn_as_cancelled() {
    let lines = ["trap 'exit 1' INT", BEGINS, SAYS, "sleep 1000 & wait"];
    let mut run = Watched::start(script(&lines), options());
    run.until(|event| event["type"] == "block").await;
    run.controls.send(Control::Stop(Stop::Interrupted)).await.unwrap();
    let (ended, events) = run.end().await;
    assert_eq!((ended.code(), text(&events)), (130, "hello".to_owned()));
    let end = turn_end(&events);
    assert_eq!((&end["outcome"], &end["synthetic"]), (&"cancelled".into(), &"stopped".into()));
}

/// A program that nobody knows says itself how it is to be interrupted.
#[tokio::test]
async fn an_interrupt_can_be_the_end_of_the_input() {
    let driver = Box::new(PlainDriver::new(Interrupt::CloseInput));
    let lines = [BEGINS, SAYS, "cat", "exit 7"];
    let mut run = Watched::start(with_driver(&lines, "codex", Input::Open, driver), options());
    run.until(|event| event["type"] == "block").await;
    run.controls.send(Control::Stop(Stop::Interrupted)).await.unwrap();
    let (ended, _) = run.end().await;
    assert_eq!((ended.code(), ended.exit.code), (130, Some(7)));
}

#[tokio::test]
async fn an_agent_that_will_not_stop_is_killed() {
    let lines = ["trap '' INT TERM", BEGINS, SAYS, "while :; do sleep 1000; done"];
    let mut run = Watched::start(script(&lines), options());
    run.until(|event| event["type"] == "block").await;
    run.controls.send(Control::Stop(Stop::Interrupted)).await.unwrap();
    let (ended, _) = run.end().await;
    assert_eq!((ended.code(), ended.exit.signal), (130, Some(9)));
}

#[tokio::test]
async fn nobody_is_left_behind() {
    let all_started = Fifo::new();
    let orphan =
        format!("(setsid sh -c 'sleep 1003 & echo $! >&2; {}; wait' &)", all_started.tell());
    // One in the group, one in a session of its own, one that is an orphan by then.
    let lines = [
        BEGINS,
        "sleep 1001 & echo $! >&2",
        "setsid sleep 1002 & echo $! >&2",
        &orphan,
        &all_started.wait(),
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
async fn a_signal_reaches_those_who_moved_away() {
    let told = Fifo::new();
    // A shell's background commands ignore an interrupt from the start: the next signal must reach it.
    let away = format!(
        "setsid sh -c 'trap \"echo told >&2; {tell}; exit\" TERM; {tell}; sleep 1000 & wait' &",
        tell = told.tell()
    );
    let lines = [
        &format!("trap '' INT; trap '{}; exit 1' TERM", told.wait()),
        BEGINS,
        &away,
        &told.wait(),
        SAYS,
        "sleep 1000 & wait",
    ];
    let mut options = options();
    // It ends when the other has been told, however long that takes.
    options.deadlines.terminate = Duration::from_secs(20);
    let mut run = Watched::start(script(&lines), options);
    run.until(|event| event["type"] == "block").await;
    run.controls.send(Control::Stop(Stop::Interrupted)).await.unwrap();
    let (ended, _) = run.end().await;
    assert!(ended.exit.stderr.unwrap().contains("told"));
}

#[tokio::test]
async fn a_caller_that_controls_nothing_lets_the_run_go_on() {
    let seen = Fifo::new();
    let launch = script(&[BEGINS, &seen.wait(), SAYS, COMPLETES]);
    let mut run = Watched::start(launch, options());
    // The run has not begun yet: it never has somebody who controls it.
    run.controls = mpsc::channel(1).0;
    run.until(|event| event["type"] == "turn_started").await;
    seen.let_go_on();
    let (ended, events) = run.end().await;
    assert_eq!((ended.code(), text(&events)), (0, "hello".to_owned()));
}
