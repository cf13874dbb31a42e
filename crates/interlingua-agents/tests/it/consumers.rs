//! What a run owes to those who take its output slowly, and to itself.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex};

use interlingua_agents::Stop;
use support::*;
use tokio::sync::mpsc;

/// A consumer that takes a byte at a time.
struct Sipping(Consumer);

impl Write for Sipping {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (first, _) = bytes.split_at(1.min(bytes.len()));
        std::thread::yield_now();
        self.0.write(first)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl interlingua_agents::Consumer for Sipping {}

#[tokio::test]
async fn a_consumer_that_takes_a_byte_at_a_time_loses_nothing() {
    let many = r#"i=0; while [ $i -lt 300 ]; do echo "{\"type\":\"item.completed\",\"item\":{\"id\":\"item_$i\",\"type\":\"agent_message\",\"text\":\"$i;\"}}"; i=$((i+1)); done"#;
    let launch = script(&[BEGINS, many, COMPLETES]);
    let (consumer, _told) = Consumer::new();
    let (_controls, none) = mpsc::channel(1);
    let sipping = Box::new(Sipping(consumer.clone()));
    let ended = within(interlingua_agents::run(launch, options(), sipping, none)).await.unwrap();
    let expected: String = (0..300).map(|number| format!("{number};")).collect();
    assert_eq!((ended.code(), text(&consumer.events())), (0, expected));
}

/// A consumer that takes nothing until the run has been stopped.
struct Waiting(Arc<(Mutex<bool>, Condvar)>);

impl Write for Waiting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (open, told) = &*self.0;
        drop(told.wait_while(open.lock().unwrap(), |open| !*open).unwrap());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl interlingua_agents::Consumer for Waiting {}

/// What nobody takes is kept on the disk, and a disk is not endless.
#[tokio::test]
async fn an_agent_that_prints_without_end_for_nobody_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let stopped = folder.path().join("stopped");
    let trap = format!("trap 'touch {}; exit 1' INT TERM", stopped.display());
    let endless = r#"while :; do echo "{\"type\":\"item.completed\",\"item\":{\"id\":\"item_$((i=i+1))\",\"type\":\"agent_message\",\"text\":\"and so on\"}}"; done"#;
    let mut options = options();
    options.most_unread = 100_000;
    let open = Arc::new((Mutex::new(false), Condvar::new()));
    let (_controls, none) = mpsc::channel(1);
    let waiting = Box::new(Waiting(open.clone()));
    let launch = script(&[&trap, BEGINS, endless]);
    let run = tokio::spawn(interlingua_agents::run(launch, options, waiting, none));
    within(async {
        while !stopped.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    *open.0.lock().unwrap() = true;
    open.1.notify_all();
    let ended = within(run).await.unwrap().unwrap();
    let Some(Stop::TimedOut(why)) = &ended.stop else { panic!("{ended:?}") };
    assert!(why.contains("slow"), "{why}");
}

/// An agent that nobody reads, because nobody takes what was read, is not silent.
#[tokio::test]
async fn a_consumer_that_stalls_does_not_make_the_agent_silent() {
    let folder = tempfile::tempdir().unwrap();
    let done = folder.path().join("done");
    let many = r#"i=0; while [ $i -lt 2000 ]; do echo "{\"type\":\"item.completed\",\"item\":{\"id\":\"item_$i\",\"type\":\"agent_message\",\"text\":\"$(printf %01000d $i)\"}}"; i=$((i+1)); done"#;
    let last = format!("touch {}", done.display());
    let mut options = options();
    options.deadlines.silence = Some(std::time::Duration::from_millis(200));
    let open = Arc::new((Mutex::new(false), Condvar::new()));
    let (_controls, none) = mpsc::channel(1);
    let waiting = Box::new(Waiting(open.clone()));
    let launch = script(&[BEGINS, many, "sleep 0.6", COMPLETES, &last]);
    let run = tokio::spawn(interlingua_agents::run(launch, options, waiting, none));
    within(async {
        while !done.exists() && !run.is_finished() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    *open.0.lock().unwrap() = true;
    open.1.notify_all();
    let ended = within(run).await.unwrap().unwrap();
    assert_eq!((ended.stop.clone(), ended.code()), (None, 0), "{ended:?}");
}

/// Work in the background has results of its own: the run ends when the process does.
#[tokio::test]
async fn several_results_are_one_run() {
    let again = SAYS.replace("item_0", "item_2").replace("hello", " and more");
    let lines = [BEGINS, SAYS, COMPLETES, r#"echo '{"type":"turn.started"}'"#, &again, COMPLETES];
    let (ended, events) = run(script(&lines), options()).await;
    assert_eq!((ended.code(), text(&events)), (0, "hello and more".to_owned()));
    let ends = kinds(&events).into_iter().filter(|kind| *kind == "turn_ended").count();
    assert_eq!(ends, 2);
    assert_eq!(kinds(&events).last(), Some(&"session_ended"));
}
