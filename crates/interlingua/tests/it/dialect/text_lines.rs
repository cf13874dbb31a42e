//! Where lines of our own are written between lines of text: never inside one, and one at the end
//! of each turn.

use crate::support::{Case, translate, translate_lines};

const NOTICE: &str = r#"{"type":"notice","severity":"info","text":"a notice"}"#;
const ENDED: &str = r#"{"type":"block_ended","message":"m","kind":"text"}"#;
const COMPLETED: &str = r#"{"type":"turn_ended","outcome":"completed"}"#;

fn delta(text: &str) -> String {
    format!(r#"{{"type":"block_delta","message":"m","kind":"text","text":"{text}"}}"#)
}

fn shown(lines: &[&str]) -> String {
    translate_lines("events", "text", lines).text()
}

/// Regression: a notice was shown in the middle of a word.
#[test]
fn a_notice_waits_for_the_end_of_the_block() {
    let lines = [&delta("One sen"), NOTICE, &delta("tence."), ENDED, COMPLETED];
    assert_eq!(shown(&lines), "One sentence.\n\n! a notice\n\n— completed\n");
}

#[test]
fn a_notice_waits_for_the_end_of_the_line_and_no_longer() {
    let lines = [&delta("One li"), NOTICE, &delta("ne.\\nAnother"), &delta("."), ENDED, COMPLETED];
    assert_eq!(shown(&lines), "One line.\n\n! a notice\n\nAnother.\n\n— completed\n");
    let lines = [&delta("One line.\\n"), NOTICE, &delta("Another."), ENDED, COMPLETED];
    assert_eq!(shown(&lines), "One line.\n\n! a notice\n\nAnother.\n\n— completed\n");
}

#[test]
fn a_notice_is_shown_before_an_event_that_ends_the_line_anyway() {
    let call = r#"{"type":"tool_started","call":"c","name":"look","input":{}}"#;
    let answer = r#"{"type":"tool_ended","call":"c"}"#;
    let lines = [&delta("Half"), NOTICE, call, answer, COMPLETED];
    assert_eq!(shown(&lines), "Half\n\n! a notice\n▸ look\n  ⎿ done\n\n— completed\n");
    assert_eq!(shown(&[&delta("Half"), NOTICE]).matches("! a notice\n").count(), 1);
}

#[test]
fn a_question_to_the_user_does_not_wait() {
    let question = r#"{"type":"permission_requested","request":"r","tool":"look","input":{}}"#;
    let lines = [&delta("Half"), question, &delta(" of it."), ENDED, COMPLETED];
    assert_eq!(shown(&lines), "Half\n\n! permission requested: look\n\n of it.\n\n— completed\n");
}

#[test]
fn every_turn_has_a_line_for_its_end() {
    for case in Case::all() {
        let events = translate("events", &case.input, &case.exit).records();
        let live =
            |event: &&serde_json::Value| event["type"] == "turn_ended" && event["replay"] != true;
        let turns = events.iter().filter(live).count();
        let text = translate("text", &case.input, &case.exit).text();
        let ends = text.lines().filter(|line| line.starts_with("— ")).count();
        assert_eq!(ends, turns, "{}: {text}", case.name);
    }
}
