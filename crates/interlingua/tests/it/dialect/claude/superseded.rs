//! Blocks that a retry supersedes: a connection is lost in the middle of a block, and Claude Code
//! repeats the request. Version 2.1.325 marks the blocks that it abandons; 2.1.197 continues with
//! another message.

use serde_json::Value;

use crate::support::{Case, translate};

fn cases() -> Vec<Case> {
    let all = ["claude", "claude-2.1.197"].into_iter().flat_map(Case::of);
    let cases: Vec<_> = all.filter(|case| case.name.contains("/disconnect")).collect();
    assert_eq!(cases.len(), 4);
    cases
}

fn written(to: &str, case: &Case) -> Vec<Value> {
    translate(to, &case.input, &case.exit).records()
}

/// Regression: an `assistant` record with the abandoned text was written after the answer of the
/// second attempt.
#[test]
fn nothing_is_added_to_claudes_records_for_an_abandoned_block() {
    for case in cases() {
        let input = String::from_utf8_lossy(&case.input);
        let records: Vec<Value> =
            input.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(written("claude", &case), records, "{}", case.name);
    }
}

#[test]
fn an_abandoned_block_is_withdrawn_before_the_second_attempt() {
    for case in cases().iter().filter(|case| case.name.ends_with("/disconnect")) {
        let events = written("events", case);
        let place = |found: &dyn Fn(&Value) -> bool| events.iter().position(found).unwrap();
        let withdrawn = place(&|event| event["type"] == "withdrawn");
        let second = place(&|event| event["text"].as_str().is_some_and(|it| it.starts_with("Rec")));
        assert!(withdrawn < second, "{}", case.name);
        let text = events[withdrawn]["blocks"][0]["text"].as_str().unwrap();
        assert!("This will be".starts_with(text.trim()), "{}: {text}", case.name);
    }
}

#[test]
fn an_abandoned_call_ends_before_the_second_attempt() {
    for case in cases().iter().filter(|case| case.name.ends_with("/disconnect-call")) {
        let events = written("events", case);
        let ended = events.iter().position(|event| event["type"] == "tool_ended").unwrap();
        let second = events.iter().position(|event| event["kind"] == "text").unwrap();
        assert!(ended < second, "{}", case.name);
        assert_eq!(events[ended]["status"], "abandoned", "{}", case.name);
        assert_eq!(events[ended]["error"], "a retry superseded this call", "{}", case.name);
    }
}
