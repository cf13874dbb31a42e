//! Consumers that are fast, slow, stalled or closed: nothing is lost, and the agent is not blocked.

use std::io::{self, Write};

use interlingua_agents::Stop;
use tokio::sync::mpsc;

use crate::support::*;

#[tokio::test]
async fn all_output_of_an_agent_that_exits_at_once_arrives() {
    let many = r#"i=0; while [ $i -lt 3000 ]; do echo "{\"type\":\"item.completed\",\"item\":{\"id\":\"item_$i\",\"type\":\"agent_message\",\"text\":\"$i;\"}}"; i=$((i+1)); done"#;
    let (ended, events) = run(script(&[BEGINS, many, COMPLETES]), options()).await;
    let expected: String = (0..3000).map(|number| format!("{number};")).collect();
    assert_eq!((ended.code(), text(&events)), (0, expected));
}

/// A consumer that accepts one byte at a time.
struct ByteAtATime(Consumer);

impl Write for ByteAtATime {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (first, _) = bytes.split_at(1.min(bytes.len()));
        std::thread::yield_now();
        self.0.write(first)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl interlingua_agents::Consumer for ByteAtATime {}

#[tokio::test]
async fn a_consumer_that_accepts_a_byte_at_a_time_loses_nothing() {
    let many = r#"i=0; while [ $i -lt 300 ]; do echo "{\"type\":\"item.completed\",\"item\":{\"id\":\"item_$i\",\"type\":\"agent_message\",\"text\":\"$i;\"}}"; i=$((i+1)); done"#;
    let launch = script(&[BEGINS, many, COMPLETES]);
    let (consumer, _chunks) = Consumer::new();
    let (_controls, none) = mpsc::channel(1);
    let slow = Box::new(ByteAtATime(consumer.clone()));
    let ended = within(interlingua_agents::run(launch, options(), slow, none)).await.unwrap();
    let expected: String = (0..300).map(|number| format!("{number};")).collect();
    assert_eq!((ended.code(), text(&consumer.events())), (0, expected));
}

#[tokio::test]
async fn a_consumer_that_stalls_loses_nothing() {
    let filler = "x".repeat(2000);
    let many = format!(
        r#"i=0; while [ $i -lt 2000 ]; do echo "{{\"type\":\"item.completed\",\"item\":{{\"id\":\"item_$i\",\"type\":\"agent_message\",\"text\":\"${{i}}{filler}\"}}}}"; i=$((i+1)); done"#
    );
    let done = Fifo::new();
    let launch = script(&[BEGINS, &many, COMPLETES, &done.signal_command()]);
    let (consumer, _chunks) = Consumer::new();
    let stalled = Stalled::before(&consumer);
    let (_controls, none) = mpsc::channel(1);
    let run = interlingua_agents::run(launch, options(), Box::new(stalled.clone()), none);
    let run = tokio::spawn(run);
    // The agent is not blocked: it exits although the consumer has accepted nothing.
    within(done.signalled()).await;
    assert_eq!(consumer.bytes().len(), 0);
    stalled.open();
    let ended = within(run).await.unwrap().unwrap();
    let received = text(&consumer.events());
    let expected: String = (0..2000).map(|number| format!("{number}{filler}")).collect();
    assert_eq!((ended.code(), received.len(), received == expected), (0, expected.len(), true));
}

/// A consumer that is closed.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl interlingua_agents::Consumer for Closed {}

#[tokio::test]
async fn an_agent_whose_consumer_is_closed_is_stopped() {
    let (_controls, none) = mpsc::channel(1);
    let launch = script(&[BEGINS, MESSAGE, "sleep 1000"]);
    let ended =
        within(interlingua_agents::run(launch, options(), Box::new(Closed), none)).await.unwrap();
    assert_eq!((ended.stop.as_ref(), ended.code()), (Some(&Stop::ConsumerGone), 130));
}

/// Unread output is kept on disk, so it must have a limit.
#[tokio::test]
async fn an_agent_with_too_much_unread_output_is_stopped() {
    let stopped = Fifo::new();
    let trap = format!("trap '{}; exit 1' INT TERM", stopped.signal_command());
    let endless = r#"while :; do echo "{\"type\":\"item.completed\",\"item\":{\"id\":\"item_$((i=i+1))\",\"type\":\"agent_message\",\"text\":\"and so on\"}}"; done"#;
    let mut options = options();
    options.max_unread = 100_000;
    let stalled = Stalled::before(&Consumer::new().0);
    let (_controls, none) = mpsc::channel(1);
    let launch = script(&[&trap, BEGINS, endless]);
    let run = interlingua_agents::run(launch, options, Box::new(stalled.clone()), none);
    let run = tokio::spawn(run);
    within(stopped.signalled()).await;
    stalled.open();
    let ended = within(run).await.unwrap().unwrap();
    let Some(Stop::TimedOut(why)) = &ended.stop else { panic!("{ended:?}") };
    assert!(why.contains("slow"), "{why}");
}

/// An agent whose output is not read because the consumer is stalled does not count as silent.
#[tokio::test]
async fn a_consumer_that_stalls_does_not_make_the_agent_silent() {
    let done = Fifo::new();
    let many = r#"i=0; while [ $i -lt 2000 ]; do echo "{\"type\":\"item.completed\",\"item\":{\"id\":\"item_$i\",\"type\":\"agent_message\",\"text\":\"$(printf %01000d $i)\"}}"; i=$((i+1)); done"#;
    let mut options = options();
    options.deadlines.silence = Some(std::time::Duration::from_millis(200));
    let stalled = Stalled::before(&Consumer::new().0);
    let (_controls, none) = mpsc::channel(1);
    // The agent is quiet for longer than the silence limit; the test depends on real time.
    let launch = script(&[BEGINS, many, "sleep 0.6", COMPLETES, &done.signal_command()]);
    let run = interlingua_agents::run(launch, options, Box::new(stalled.clone()), none);
    let run = tokio::spawn(run);
    within(done.signalled()).await;
    stalled.open();
    let ended = within(run).await.unwrap().unwrap();
    assert_eq!((ended.stop.clone(), ended.code()), (None, 0), "{ended:?}");
}

/// Background work produces results of its own: the run ends when the process exits.
#[tokio::test]
async fn several_results_are_one_run() {
    let again = MESSAGE.replace("item_0", "item_2").replace("hello", " and more");
    let lines =
        [BEGINS, MESSAGE, COMPLETES, r#"echo '{"type":"turn.started"}'"#, &again, COMPLETES];
    let (ended, events) = run(script(&lines), options()).await;
    assert_eq!((ended.code(), text(&events)), (0, "hello and more".to_owned()));
    let ends = kinds(&events).into_iter().filter(|kind| *kind == "turn_ended").count();
    assert_eq!(ends, 2);
    assert_eq!(kinds(&events).last(), Some(&"session_ended"));
}
