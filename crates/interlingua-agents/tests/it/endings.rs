//! The reported outcome is truthful, whatever the agent printed last.

use std::time::{Duration, Instant};

use crate::support::*;

#[tokio::test]
async fn a_completed_turn() {
    let (ended, events) = run(script(&[BEGINS, MESSAGE, COMPLETES]), options()).await;
    assert_eq!((ended.code(), ended.orphans), (0, 0));
    assert_eq!(text(&events), "hello");
    assert_eq!(turn_end(&events)["outcome"], "completed");
    assert_eq!(events.last().unwrap()["exit_code"], 0);
}

#[tokio::test]
async fn standard_input_is_closed() {
    let (ended, events) = run(script(&[BEGINS, "cat", MESSAGE, COMPLETES]), options()).await;
    assert_eq!((ended.code(), text(&events)), (0, "hello".to_owned()));
}

#[tokio::test]
async fn an_exit_without_a_result_is_a_failure() {
    let lines = [BEGINS, MESSAGE, "echo 'first words' >&2; echo 'last words' >&2", "exit 0"];
    let (ended, events) = run(script(&lines), options()).await;
    assert_eq!(ended.code(), 1);
    let end = turn_end(&events);
    assert_eq!((&end["outcome"], &end["synthetic"]), (&"failed".into(), &"process_ended".into()));
    let cause = end["cause"].as_str().unwrap();
    assert!(cause.contains("exited with code 0") && cause.contains("last words"), "{cause}");
    assert_eq!(text(&events), "hello", "the text before it is kept");
}

#[tokio::test]
async fn a_truncated_line_is_kept_and_reported() {
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
async fn an_exit_code_that_contradicts_the_stream_is_reported() {
    let (ended, events) =
        run(script(&[BEGINS, MESSAGE, COMPLETES, "echo why >&2; exit 3"]), options()).await;
    assert_eq!(ended.code(), 1);
    assert_eq!(turn_end(&events)["outcome"], "completed");
    let error = events.iter().find(|event| event["type"] == "error").unwrap();
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("exited with code 3") && message.contains("why"), "{message}");
}

#[tokio::test]
async fn the_end_is_reported_at_once() {
    let (before, lines) = (Instant::now(), [BEGINS, "exit 7"]);
    let (ended, _) = run(script(&lines), options()).await;
    assert_eq!(ended.exit.code, Some(7));
    // A tenth of a second is expected; a busy machine takes longer, and a hang would take minutes.
    assert!(before.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn standard_error_is_not_parsed() {
    let lines = [BEGINS, &format!("{{ {MESSAGE}; }} >&2"), COMPLETES];
    let (ended, events) = run(script(&lines), options()).await;
    assert_eq!((ended.code(), text(&events)), (0, String::new()));
    assert!(ended.exit.stderr.unwrap().contains("agent_message"));
}

/// Files that the working folder must have are written; existing files are kept.
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
