//! What a supervisor owes: complete output, a truthful end, nobody left behind.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use interlingua_agents::driver::{ClaudeDriver, Interrupt, PlainDriver};
use interlingua_agents::process::Input;
use interlingua_agents::{Control, Stop};
use support::*;
use tokio::sync::mpsc;

#[tokio::test]
async fn a_turn_that_went_well() {
    let (ended, events) = run(script(&[BEGINS, SAYS, COMPLETES]), options()).await;
    assert_eq!((ended.code(), ended.left_behind), (0, 0));
    assert_eq!(text(&events), "hello");
    assert_eq!(turn_end(&events)["outcome"], "completed");
    assert_eq!(events.last().unwrap()["exit_code"], 0);
}

#[tokio::test]
async fn standard_input_is_closed() {
    let (ended, events) = run(script(&[BEGINS, "cat", SAYS, COMPLETES]), options()).await;
    assert_eq!((ended.code(), text(&events)), (0, "hello".to_owned()));
}

#[tokio::test]
async fn an_exit_without_a_result_is_no_success() {
    let lines = [BEGINS, SAYS, "echo 'first words' >&2; echo 'last words' >&2", "exit 0"];
    let (ended, events) = run(script(&lines), options()).await;
    assert_eq!(ended.code(), 1);
    let end = turn_end(&events);
    assert_eq!((&end["outcome"], &end["synthetic"]), (&"failed".into(), &"process_ended".into()));
    let cause = end["cause"].as_str().unwrap();
    assert!(cause.contains("exited with code 0") && cause.contains("last words"), "{cause}");
    assert_eq!(text(&events), "hello", "what had been said stays");
}

#[tokio::test]
async fn a_line_that_was_cut_off_is_kept_and_told() {
    let (ended, events) = run(script(&[BEGINS, "printf '{\"type\":\"item.comp'"]), options()).await;
    assert_eq!(ended.code(), 1);
    let unparsed = events.iter().find(|event| event["type"] == "unparsed").unwrap();
    assert_eq!(unparsed["flaw"], "truncated");
    assert!(turn_end(&events)["cause"].as_str().unwrap().contains("cut off"));
}

#[tokio::test]
async fn a_killed_agent_has_failed() {
    let (ended, events) = run(script(&[BEGINS, "kill -9 $$"]), options()).await;
    assert_eq!((ended.code(), ended.exit.signal), (1, Some(9)));
    assert!(turn_end(&events)["cause"].as_str().unwrap().contains("signal 9"));
}

#[tokio::test]
async fn an_exit_code_that_contradicts_the_stream_is_told() {
    let (ended, events) =
        run(script(&[BEGINS, SAYS, COMPLETES, "echo why >&2; exit 3"]), options()).await;
    assert_eq!(ended.code(), 1);
    assert_eq!(turn_end(&events)["outcome"], "completed");
    let error = events.iter().find(|event| event["type"] == "error").unwrap();
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("exited with code 3") && message.contains("why"), "{message}");
}

#[tokio::test]
async fn the_end_is_told_at_once() {
    let (before, lines) = (Instant::now(), [BEGINS, "exit 7"]);
    let (ended, _) = run(script(&lines), options()).await;
    assert_eq!(ended.exit.code, Some(7));
    // A tenth of a second is asked for; a busy machine gets more, and a hang would take minutes.
    assert!(before.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn all_output_of_an_agent_that_exits_at_once_arrives() {
    let many = r#"i=0; while [ $i -lt 3000 ]; do echo "{\"type\":\"item.completed\",\"item\":{\"id\":\"item_$i\",\"type\":\"agent_message\",\"text\":\"$i;\"}}"; i=$((i+1)); done"#;
    let (ended, events) = run(script(&[BEGINS, many, COMPLETES]), options()).await;
    let expected: String = (0..3000).map(|number| format!("{number};")).collect();
    assert_eq!((ended.code(), text(&events)), (0, expected));
}

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

/// What the working folder has to have is written there, and what is there stays.
#[tokio::test]
async fn the_working_folder_is_prepared() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("kept"), "mine").unwrap();
    let mut launch = script(&[BEGINS, COMPLETES]);
    launch.command.folder = folder.path().to_owned();
    launch.files = vec![("kept".into(), "theirs".into()), ("in/new".into(), "made".into())];
    run(launch, options()).await;
    let read = |name| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!((read("kept"), read("in/new")), ("mine".to_owned(), "made".to_owned()));
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
    // One in the group, one in a session of its own, one that is an orphan by then.
    let lines = [
        BEGINS,
        "sleep 1001 & echo $! >&2",
        "setsid sleep 1002 & echo $! >&2",
        "(setsid sh -c 'sleep 1003 & echo $! >&2; wait' &)",
        "sleep 0.2",
        COMPLETES,
    ];
    let (ended, _) = run(script(&lines), options()).await;
    assert_eq!(ended.code(), 0);
    assert!(ended.left_behind >= 3, "{}", ended.left_behind);
    let stderr = ended.exit.stderr.unwrap();
    assert_eq!(stderr.lines().count(), 3, "{stderr}");
    for pid in stderr.lines() {
        assert!(!is_alive(pid), "{pid} is alive");
    }
}

#[tokio::test]
async fn a_signal_reaches_those_who_moved_away() {
    // A shell's background commands ignore an interrupt from the start: the next signal must reach it.
    let away = "setsid sh -c 'trap \"echo told >&2; exit\" TERM; while :; do sleep 0.02; done' &";
    let lines = [
        "trap '' INT; trap 'sleep 0.1; exit 1' TERM",
        BEGINS,
        away,
        "sleep 0.2",
        SAYS,
        "while :; do sleep 0.02; done",
    ];
    let mut run = Watched::start(script(&lines), options());
    run.until(|event| event["type"] == "block").await;
    run.controls.send(Control::Stop(Stop::Interrupted)).await.unwrap();
    let (ended, _) = run.end().await;
    assert!(ended.exit.stderr.unwrap().contains("told"));
}

/// A consumer that goes away after its first piece.
struct Fickle;

impl Write for Fickle {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl interlingua_agents::Consumer for Fickle {}

#[tokio::test]
async fn an_agent_whose_consumer_is_gone_is_stopped() {
    let (_controls, none) = mpsc::channel(1);
    let launch = script(&[BEGINS, SAYS, "sleep 1000"]);
    let ended =
        within(interlingua_agents::run(launch, options(), Box::new(Fickle), none)).await.unwrap();
    assert_eq!((ended.stop.as_ref(), ended.code()), (Some(&Stop::ConsumerGone), 130));
}

/// A consumer that takes nothing until it is told to.
struct Stalled {
    open: Arc<(Mutex<bool>, Condvar)>,
    then: Consumer,
}

impl Write for Stalled {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (open, told) = &*self.open;
        drop(told.wait_while(open.lock().unwrap(), |open| !*open).unwrap());
        self.then.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl interlingua_agents::Consumer for Stalled {}

#[tokio::test]
async fn a_consumer_that_stalls_loses_nothing() {
    let piece = "x".repeat(2000);
    let many = format!(
        r#"i=0; while [ $i -lt 2000 ]; do echo "{{\"type\":\"item.completed\",\"item\":{{\"id\":\"item_$i\",\"type\":\"agent_message\",\"text\":\"${{i}}{piece}\"}}}}"; i=$((i+1)); done"#
    );
    let done = std::env::temp_dir().join(format!("interlingua-stalled-{}", std::process::id()));
    let last = format!("touch {}", done.display());
    let launch = script(&[BEGINS, &many, COMPLETES, &last]);
    let (consumer, _told) = Consumer::new();
    let open = Arc::new((Mutex::new(false), Condvar::new()));
    let stalled = Stalled { open: open.clone(), then: consumer.clone() };
    let (_controls, none) = mpsc::channel(1);
    let run = tokio::spawn(interlingua_agents::run(launch, options(), Box::new(stalled), none));
    // The agent is not held up: it ends although nobody has taken anything.
    within(async {
        while !done.exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    std::fs::remove_file(&done).unwrap();
    assert_eq!(consumer.bytes().len(), 0);
    *open.0.lock().unwrap() = true;
    open.1.notify_all();
    let ended = within(run).await.unwrap().unwrap();
    let said = text(&consumer.events());
    let expected: String = (0..2000).map(|number| format!("{number}{piece}")).collect();
    assert_eq!((ended.code(), said.len(), said == expected), (0, expected.len(), true));
}

#[tokio::test]
async fn silence_in_the_middle_of_a_turn_ends_it() {
    let mut options = options();
    options.deadlines.silence = Some(Duration::from_millis(300));
    let (ended, events) = run(script(&[BEGINS, SAYS, "sleep 1000"]), options).await;
    assert_eq!(ended.code(), 124);
    let end = turn_end(&events);
    assert_eq!(end["outcome"], "timed_out");
    assert!(end["cause"].as_str().unwrap().contains("silent for 300 ms"), "{end}");
}

#[tokio::test]
async fn a_running_tool_may_be_silent() {
    let mut options = options();
    options.deadlines.silence = Some(Duration::from_millis(300));
    let lines = [BEGINS, TOOL_STARTS, "sleep 1", TOOL_ENDS, COMPLETES];
    let (ended, events) = run(script(&lines), options).await;
    assert_eq!((ended.code(), &turn_end(&events)["outcome"]), (0, &"completed".into()));
}

#[tokio::test]
async fn a_run_has_a_deadline() {
    let mut options = options();
    options.deadlines.run = Some(Duration::from_millis(300));
    let talk = format!("while :; do {SAYS}; sleep 0.05; done");
    let (ended, events) = run(script(&[BEGINS, &talk]), options).await;
    assert_eq!(ended.code(), 124);
    assert!(turn_end(&events)["cause"].as_str().unwrap().contains("longer than 300 ms"));
}

#[tokio::test]
async fn an_agent_that_lingers_after_its_turn_is_ended_and_has_not_failed() {
    let mut options = options();
    options.deadlines.lingering = Duration::from_millis(200);
    let (ended, events) = run(script(&[BEGINS, SAYS, COMPLETES, "sleep 1000"]), options).await;
    assert_eq!((ended.code(), &turn_end(&events)["outcome"]), (0, &"completed".into()));
    assert!(!kinds(&events).contains(&"error"));
}

#[tokio::test]
async fn an_agent_that_only_tries_again_is_stopped() {
    let mut options = options();
    options.deadlines.retries = Some(Duration::from_millis(400));
    let again = r#"while :; do echo '{"type":"error","message":"Reconnecting... waiting for network"}'; sleep 0.05; done"#;
    let (ended, events) = run(script(&[BEGINS, again]), options).await;
    assert_eq!(ended.code(), 124);
    assert!(turn_end(&events)["cause"].as_str().unwrap().contains("try again"));
}

#[tokio::test]
async fn a_caller_that_controls_nothing_lets_the_run_go_on() {
    let (consumer, _told) = Consumer::new();
    let (_, none) = mpsc::channel(1);
    let launch = script(&[BEGINS, "sleep 0.1", SAYS, COMPLETES]);
    let output = Box::new(consumer.clone());
    let ended = within(interlingua_agents::run(launch, options(), output, none)).await.unwrap();
    assert_eq!((ended.code(), text(&consumer.events())), (0, "hello".to_owned()));
}

#[tokio::test]
async fn an_agent_that_never_reads_its_input_holds_nobody_up() {
    let mut options = options();
    options.deadlines.run = Some(Duration::from_millis(300));
    // More than a pipe takes.
    let driver = Box::new(ClaudeDriver::new("x".repeat(1 << 20)));
    let launch = with_driver(&["sleep 1000"], "claude", Input::Open, driver);
    let (ended, _) = run(launch, options).await;
    assert_eq!(ended.code(), 124);
}

#[tokio::test]
async fn standard_error_is_no_protocol() {
    let lines = [BEGINS, &format!("{{ {SAYS}; }} >&2"), COMPLETES];
    let (ended, events) = run(script(&lines), options()).await;
    assert_eq!((ended.code(), text(&events)), (0, String::new()));
    assert!(ended.exit.stderr.unwrap().contains("agent_message"));
}
