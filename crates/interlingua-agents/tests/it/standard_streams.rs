//! Agents that open their standard streams again, and agents that print very much to standard
//! error.

use crate::support::*;

/// The file was truncated, and what the agent had printed before was lost.
#[tokio::test]
async fn an_agent_cannot_truncate_its_output() {
    for stream in ["/dev/stdout", "/proc/self/fd/1"] {
        let reopens = format!("echo ignored > {stream} || echo rejected >&2");
        let (ended, events) = run(script(&[BEGINS, MESSAGE, &reopens, COMPLETES]), options()).await;
        let stderr = ended.exit.stderr.clone().unwrap_or_default();
        if ended.truncated {
            // Root may truncate everything on a file system without append-only files.
            assert_eq!(ended.code(), 1, "{events:?}");
            assert!(kinds(&events).contains(&"error"), "{events:?}");
        } else {
            assert!(stderr.contains("rejected"), "{stderr}");
            assert_eq!((ended.code(), text(&events).as_str()), (0, "hello"), "{events:?}");
        }
    }
}

/// An agent that holds the descriptor can truncate the file itself.
#[tokio::test]
async fn a_truncated_output_is_reported() {
    let seen = Fifo::new();
    let truncates = "python3 -c 'import os; os.ftruncate(1, 0)' || exit 9";
    let lines = [BEGINS, MESSAGE, &seen.wait_command(), truncates, MESSAGE, COMPLETES];
    let mut run = Watched::start(script(&lines), options()).await;
    run.until(|event| event["type"] == "block").await;
    seen.release();
    let (ended, events) = run.end().await;
    if ended.exit.code == Some(9) {
        // The file is append-only, or there is no Python.
        return;
    }
    assert_eq!((ended.code(), ended.truncated), (1, true), "{events:?}");
    let error = events.iter().find(|event| event["type"] == "error").unwrap();
    assert!(error["message"].as_str().unwrap().contains("truncated"), "{error}");
}

/// Scripts print their warnings in this way.
#[tokio::test]
async fn standard_error_can_be_opened_again() {
    let lines = [BEGINS, "echo one >&2; echo two > /dev/stderr; echo three >&2", COMPLETES];
    let (ended, _) = run(script(&lines), options()).await;
    assert_eq!(ended.exit.stderr.as_deref(), Some("one\ntwo\nthree\n"));
}

#[tokio::test]
async fn the_end_of_a_long_standard_error_is_kept() {
    let lines = [BEGINS, "seq 1 1000000 >&2", COMPLETES];
    let (ended, _) = run(script(&lines), options()).await;
    let stderr = ended.exit.stderr.unwrap();
    assert!(stderr.len() <= 64 << 10, "{}", stderr.len());
    assert!(stderr.ends_with("\n999999\n1000000\n"));
}
