//! Law 6: every turn ends exactly once with its true outcome; a success is never invented.

use interlingua::Exit;
use serde_json::Value;

use crate::support::{self, Case, exit, translate, translate_lines};

const CODEX: &[&str] = &[
    r#"{"type":"thread.started","thread_id":"t"}"#,
    r#"{"type":"turn.started"}"#,
    r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Hi"}}"#,
];

fn ends(records: &[Value]) -> Vec<&Value> {
    records.iter().filter(|event| event["type"] == "turn_ended").collect()
}

fn ended_with(status: &str) -> Value {
    let input = CODEX.join("\n") + "\n";
    let written = translate("events", input.as_bytes(), &exit(status));
    let records = written.records();
    let ends = ends(&records);
    assert_eq!(ends.len(), 1);
    ends[0].clone()
}

#[test]
fn exit_code_zero_without_an_end_of_the_turn_is_a_failure() {
    let end = ended_with("0");
    assert_eq!((&end["outcome"], &end["synthetic"]), (&"failed".into(), &"process_ended".into()));
    assert!(end["cause"].as_str().unwrap().contains("code 0"));
}

#[test]
fn a_signal_that_asks_to_stop_is_a_cancelled_turn() {
    for status in ["-2", "-15", "130", "143"] {
        assert_eq!(ended_with(status)["outcome"], "cancelled", "{status}");
    }
}

#[test]
fn a_kill_is_a_failure() {
    assert_eq!(ended_with("-9")["outcome"], "failed");
}

#[test]
fn an_unknown_exit_code_is_absent() {
    let end = ended_with("unknown");
    assert_eq!((&end["outcome"], &end["synthetic"]), (&"failed".into(), &"input_ended".into()));
    let written = translate_lines("codex", "events", CODEX);
    let last = written.records().pop().unwrap();
    assert_eq!(last["type"], "session_ended");
    assert!(last.get("exit_code").is_none());
}

#[test]
fn an_empty_input_is_a_failed_turn() {
    let written = support::translate_chunks(
        Some(support::dialect("gemini")),
        support::dialect("events"),
        [],
        &Exit { code: Some(41), stderr: Some("no key".into()), ..Exit::default() },
    );
    let records = written.records();
    assert_eq!(ends(&records)[0]["outcome"], "failed");
    assert_eq!(records.last().unwrap()["stderr"], "no key");
}

#[test]
fn the_end_of_a_giselle_stream_is_the_end_of_its_turn_but_not_of_an_empty_one() {
    let text = r#"{"type":"message","role":"assistant","content":"Hi","delta":true}"#;
    let records = translate_lines("giselle", "events", &[text]).records();
    let end = ends(&records)[0].clone();
    assert_eq!((&end["outcome"], &end["synthetic"]), (&"completed".into(), &"stream_ended".into()));
    let records = translate_lines("giselle", "events", &[""; 0]).records();
    assert_eq!(ends(&records)[0]["outcome"], "failed");
}

#[test]
fn a_cut_off_giselle_stream_is_a_failure() {
    let input =
        b"{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"Hi\"}\n{\"type\":\"mess";
    let written = support::translate_chunks(
        Some(support::dialect("giselle")),
        support::dialect("events"),
        [&input[..]],
        &Exit::default(),
    );
    assert_eq!(ends(&written.records())[0]["outcome"], "failed");
}

#[test]
fn every_turn_of_every_transcript_ends_once_and_the_session_after_it() {
    for case in Case::all() {
        let records = translate("events", &case.input, &case.exit).records();
        let mut open = false;
        for event in &records {
            match event["type"].as_str().unwrap() {
                "turn_started" => assert!(!std::mem::replace(&mut open, true), "{}", case.name),
                "turn_ended" => assert!(std::mem::replace(&mut open, false), "{}", case.name),
                _ => {}
            }
        }
        assert!(!open, "{}", case.name);
        assert_eq!(records.last().unwrap()["type"], "session_ended", "{}", case.name);
        assert!(!ends(&records).is_empty(), "{}", case.name);
    }
}

/// Claude prints both results of two turns at the end, after the text of the second.
#[test]
fn two_results_in_a_row_are_two_turns() {
    let case = Case::all().into_iter().find(|case| case.name == "claude/subagent-bg").unwrap();
    let records = translate("events", &case.input, &case.exit).records();
    assert_eq!(ends(&records).len(), 2);
}

/// A consumer that waits for the end of a turn must not mistake the end of a replayed turn for it.
#[test]
fn a_stream_of_replayed_history_alone_still_has_a_turn_that_ends() {
    let replayed = [
        r#"{"type":"turn_started","replay":true}"#,
        r#"{"type":"block","text":"before"}"#,
        r#"{"type":"turn_ended","outcome":"completed"}"#,
    ];
    let result = translate_lines("events", "claude", &replayed).records().pop().unwrap();
    assert_eq!((&result["type"], &result["is_error"]), (&"result".into(), &true.into()));
    let asked = [replayed.as_slice(), &[r#"{"type":"turn_ended","outcome":"completed"}"#]].concat();
    let results = translate_lines("events", "claude", &asked).records();
    assert_eq!(results.iter().filter(|record| record["type"] == "result").count(), 1);
    assert_eq!(results.last().unwrap()["is_error"], false);
}

/// An agent that requests a permission is working, so its client waits for the end of that turn.
#[test]
fn a_permission_request_after_the_turn_starts_another_turn() {
    let ended = r#"{"type":"turn_ended","outcome":"completed"}"#;
    let asked = r#"{"type":"permission_requested","request":"r","tool":"shell"}"#;
    let answers = |lines: &[&str]| {
        let records = translate_lines("events", "acp", lines).records();
        let answers = records.iter().filter(|record| record["method"].is_null());
        answers.map(|answer| answer["error"].is_object()).collect::<Vec<_>>()
    };
    assert_eq!(answers(&[ended]), [false]);
    assert_eq!(answers(&[ended, asked]), [false, true]);
}

/// A program that is called with wrong arguments prints the error first and its usage after it.
#[test]
fn the_line_of_standard_error_that_starts_with_error_is_quoted() {
    let cause = |stderr: &str| {
        let input = CODEX.join("\n") + "\n";
        let exit = Exit { code: Some(1), stderr: Some(stderr.to_owned()), ..Exit::default() };
        let records = translate("events", input.as_bytes(), &exit).records();
        ends(&records)[0]["cause"].as_str().unwrap().to_owned()
    };
    let clap = "error: unexpected argument '--x' found\n\nFor more information, try '--help'.\n";
    assert!(cause(clap).ends_with("the last error was: error: unexpected argument '--x' found"));
    assert!(cause("first\nlast\n\n").ends_with("the last error was: last"));
    assert!(
        cause("Error\nlast").ends_with("the last error was: last"),
        "the word alone is no message"
    );
}
