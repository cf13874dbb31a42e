//! How the agent ended, what was lost in translation, and the resulting exit code.

use crate::support::{Ran, TURN, file, run, unended};

const FROM_CODEX: [&str; 5] = ["translate", "--from", "codex", "--to", "text"];

fn translate(more: &[&str], input: &str) -> Ran {
    run(&[&FROM_CODEX, more].concat(), input.as_bytes())
}

#[test]
fn a_failure_of_the_agent_is_not_an_error_of_the_command() {
    let ran = translate(&["--exit-status", "1"], &unended());
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.contains("— failed: the agent exited with code 1"), "{}", ran.stdout);
}

#[test]
fn a_negative_exit_status_is_a_signal() {
    let ran = translate(&["--exit-status", "-15"], &unended());
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.contains("\n— cancelled: "), "{}", ran.stdout);
    assert!(ran.stdout.contains("signal 15"), "{}", ran.stdout);
}

#[test]
fn a_recording_of_a_turn_that_the_user_stopped_was_cancelled() {
    let ran = translate(&["--interrupted"], &unended());
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.contains("\n— cancelled: the user stopped the agent"), "{}", ran.stdout);
    let ran = translate(&["--interrupted"], TURN);
    assert!(!ran.stdout.contains("cancelled"), "{}", ran.stdout);
    let to_yume = ["translate", "--from", "codex", "--to", "yume", "--interrupted"];
    let ran = run(&to_yume, unended().as_bytes());
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let at = lines.iter().position(|line| line.contains(r#"{"type":"interrupt"}"#)).unwrap();
    let result = lines[at..].iter().find(|line| line.contains(r#""type":"result""#)).unwrap();
    assert!(result.contains(r#""subtype":"cancelled","is_error":false"#), "{result}");
}

#[test]
fn the_end_of_standard_error_is_kept() {
    let long = format!("{}\nthe last word\n", "é".repeat(5000));
    let path = file("agent.err", long.as_bytes());
    let ran = translate(&["--exit-status", "1", "--stderr", &path], &unended());
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.ends_with("| the last word\n"), "{}", ran.stdout);
    assert!(!ran.stdout.contains('\u{fffd}'), "{}", ran.stdout);
}

#[test]
fn the_stream_is_ended_even_without_standard_error() {
    let ran = translate(&["--stderr", "/no/such/file.err"], &unended());
    assert_eq!(ran.code, Some(2));
    assert!(ran.stdout.contains("— failed: "), "{}", ran.stdout);
    assert!(ran.stderr.contains("/no/such/file.err does not exist"), "{}", ran.stderr);
}

#[test]
fn strict_accepts_a_complete_translation() {
    let ran = translate(&["--strict"], TURN);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}

#[test]
fn strict_rejects_repairs() {
    let ran = translate(&["--strict"], &unended());
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("<stdin>:3: turn-not-ended: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("--strict: the translation is incomplete"), "{}", ran.stderr);
}

#[test]
fn strict_rejects_unreadable_lines() {
    let ran = translate(&["--strict"], &format!("hello\n{TURN}"));
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("<stdin>:1: unreadable: "), "{}", ran.stderr);
}

#[test]
fn the_loss_report_lists_what_was_lost() {
    let call = r#"{"type":"item.completed","item":{"id":"9","type":"command_execution","command":"ls","aggregated_output":"a\nb\n","exit_code":0,"status":"completed"}}"#;
    let input =
        TURN.replace("{\"type\":\"turn.completed", &format!("{call}\n{{\"type\":\"turn.completed"));
    let ran = translate(&["--loss-report"], &input);
    assert_eq!(ran.code, Some(0));
    let report =
        "`text` could not express:\n  1  tool outputs beyond one line\nno repairs were needed\n";
    assert_eq!(ran.stderr, report);
    assert_eq!(translate(&["--strict"], &input).code, Some(1));
}

#[test]
fn the_agent_and_its_team_are_set_by_arguments() {
    let line = b"{\"type\":\"init\",\"session_id\":\"s\",\"model\":\"m\"}\n";
    let named = ["--agent-id", "a-7", "--agent-type", "custom", "--team", r#"{"teamName":"red"}"#];
    let arguments =
        [&["translate", "--from", "gemini", "--to", "agent-event"], &named[..]].concat();
    let ran = run(&arguments, line);
    let first = ran.stdout.lines().next().unwrap_or_default();
    for part in
        [r#""agentId":"a-7""#, r#""agentType":"custom""#, r#""teamMetadata":{"teamName":"red"}"#]
    {
        assert!(first.contains(part), "{part}: {first}");
    }
    let wrong = run(&["translate", "--to", "agent-event", "--team", "red"], line);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("not a JSON object"), "{}", wrong.stderr);
}

/// Regression: two runs on one session generated the same ids.
#[test]
fn a_seed_changes_the_ids() {
    let line = b"{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n";
    let written = |seed: &[&str]| {
        run(&[&["translate", "--from", "codex", "--to", "agent-event"], seed].concat(), line).stdout
    };
    assert_eq!(written(&[]), written(&[]), "the same input gives the same ids");
    assert_ne!(written(&["--id-seed", "1"]), written(&["--id-seed", "2"]));
}
