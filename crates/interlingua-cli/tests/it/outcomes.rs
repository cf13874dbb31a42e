//! How the agent ended, what was lost on the way, and what the exit code says of it.

use crate::support::{Ran, TURN, file, run, unended};

const FROM_CODEX: [&str; 5] = ["translate", "--from", "codex", "--to", "text"];

fn translate(more: &[&str], input: &str) -> Ran {
    run(&[&FROM_CODEX, more].concat(), input.as_bytes())
}

#[test]
fn the_agents_failure_is_not_ours() {
    let ran = translate(&["--exit-status", "1"], &unended());
    assert_eq!(ran.code, Some(0));
    assert!(ran.out.contains("— failed: the agent exited with code 1"), "{}", ran.out);
}

#[test]
fn a_negative_exit_status_is_a_signal() {
    let ran = translate(&["--exit-status", "-15"], &unended());
    assert_eq!(ran.code, Some(0));
    assert!(ran.out.contains("\n— cancelled: "), "{}", ran.out);
    assert!(ran.out.contains("signal 15"), "{}", ran.out);
}

#[test]
fn a_recording_of_a_turn_that_the_user_stopped_was_cancelled() {
    let ran = translate(&["--interrupted"], &unended());
    assert_eq!(ran.code, Some(0));
    assert!(ran.out.contains("\n— cancelled: the user stopped the agent"), "{}", ran.out);
    let ran = translate(&["--interrupted"], TURN);
    assert!(!ran.out.contains("cancelled"), "{}", ran.out);
    let to_yume = ["translate", "--from", "codex", "--to", "yume", "--interrupted"];
    let ran = run(&to_yume, unended().as_bytes());
    let lines: Vec<&str> = ran.out.lines().collect();
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
    assert!(ran.out.ends_with("| the last word\n"), "{}", ran.out);
    assert!(!ran.out.contains('\u{fffd}'), "{}", ran.out);
}

#[test]
fn the_stream_is_ended_even_without_standard_error() {
    let ran = translate(&["--stderr", "/no/such/file.err"], &unended());
    assert_eq!(ran.code, Some(2));
    assert!(ran.out.contains("— failed: "), "{}", ran.out);
    assert!(ran.told.contains("/no/such/file.err does not exist"), "{}", ran.told);
}

#[test]
fn strict_is_content_with_a_whole_translation() {
    let ran = translate(&["--strict"], TURN);
    assert_eq!((ran.code, ran.told.as_str()), (Some(0), ""));
}

#[test]
fn strict_refuses_what_was_repaired() {
    let ran = translate(&["--strict"], &unended());
    assert_eq!(ran.code, Some(1));
    assert!(ran.told.contains("<stdin>:3: turn-not-ended: "), "{}", ran.told);
    assert!(ran.told.contains("--strict: the translation is not whole"), "{}", ran.told);
}

#[test]
fn strict_refuses_what_could_not_be_read() {
    let ran = translate(&["--strict"], &format!("hello\n{TURN}"));
    assert_eq!(ran.code, Some(1));
    assert!(ran.told.contains("<stdin>:1: unreadable: "), "{}", ran.told);
}

#[test]
fn the_loss_report_tells_what_was_lost() {
    let call = r#"{"type":"item.completed","item":{"id":"9","type":"command_execution","command":"ls","aggregated_output":"a\nb\n","exit_code":0,"status":"completed"}}"#;
    let input =
        TURN.replace("{\"type\":\"turn.completed", &format!("{call}\n{{\"type\":\"turn.completed"));
    let ran = translate(&["--loss-report"], &input);
    assert_eq!(ran.code, Some(0));
    let report =
        "`text` could not say:\n  1  tool outputs beyond one line\nnothing had to be repaired\n";
    assert_eq!(ran.told, report);
    assert_eq!(translate(&["--strict"], &input).code, Some(1));
}

#[test]
fn the_agent_and_its_team_are_named_as_the_caller_says() {
    let line = b"{\"type\":\"init\",\"session_id\":\"s\",\"model\":\"m\"}\n";
    let named = ["--agent-id", "a-7", "--agent-type", "custom", "--team", r#"{"teamName":"red"}"#];
    let arguments =
        [&["translate", "--from", "gemini", "--to", "agent-event"], &named[..]].concat();
    let ran = run(&arguments, line);
    let first = ran.out.lines().next().unwrap_or_default();
    for part in
        [r#""agentId":"a-7""#, r#""agentType":"custom""#, r#""teamMetadata":{"teamName":"red"}"#]
    {
        assert!(first.contains(part), "{part}: {first}");
    }
    let wrong = run(&["translate", "--to", "agent-event", "--team", "red"], line);
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.told.contains("not a JSON object"), "{}", wrong.told);
}

/// Two runs on one session made the same ids.
#[test]
fn a_seed_makes_other_ids() {
    let line = b"{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n";
    let written = |seed: &[&str]| {
        run(&[&["translate", "--from", "codex", "--to", "agent-event"], seed].concat(), line).out
    };
    assert_eq!(written(&[]), written(&[]), "the same input gives the same ids");
    assert_ne!(written(&["--id-seed", "1"]), written(&["--id-seed", "2"]));
}
