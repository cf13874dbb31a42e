//! What `check` finds in a stream of the Responses API.

use interlingua::Exit;
use interlingua::check::Checker;
use interlingua::framing::Limits;
use serde_json::Value;

use crate::support::{Case, dialect};

fn findings(stream: &[u8]) -> Vec<&'static str> {
    let mut checker = Checker::new(dialect("openai-responses"), Limits::default());
    checker.push(stream);
    let mut rules: Vec<_> =
        checker.finish(&Exit::default()).into_iter().map(|finding| finding.rule).collect();
    rules.sort_unstable();
    rules.dedup();
    rules
}

fn case(name: &str) -> Vec<u8> {
    let cases = Case::of("openai-responses");
    cases.into_iter().find(|case| case.name.ends_with(&format!("/{name}"))).unwrap().input
}

/// The records of a case, changed, as lines.
fn changed(name: &str, change: impl FnOnce(&mut Vec<Value>)) -> Vec<&'static str> {
    let text = String::from_utf8(case(name)).unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let mut records: Vec<Value> = data.map(|line| serde_json::from_str(line).unwrap()).collect();
    change(&mut records);
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    findings(lines.as_bytes())
}

#[test]
fn complete_streams_keep_the_rules() {
    for name in [
        "plain",
        "reasoning",
        "reasoning-parts",
        "tool-single",
        "tool-parallel",
        "server-tools",
        "refusal",
        "length",
        "not-streamed",
        "unusual-framing",
    ] {
        assert_eq!(findings(&case(name)), Vec::<&str>::new(), "{name}");
    }
}

#[test]
fn a_gap_in_the_sequence_is_a_finding_and_no_error() {
    let renumber = |records: &mut Vec<Value>| {
        for record in records.iter_mut().skip(3) {
            record["sequence_number"] = (record["sequence_number"].as_u64().unwrap() + 1).into();
        }
    };
    assert_eq!(changed("plain", renumber), ["sequence"]);
}

#[test]
fn a_missing_or_misplaced_end_is_found() {
    let cut = changed("plain", |records| drop(records.pop()));
    assert!(cut.contains(&"end-missing"), "{cut:?}");
    let swapped = changed("plain", |records| {
        let last = records.pop().unwrap();
        records.insert(3, last);
    });
    assert!(swapped.contains(&"end-last"), "{swapped:?}");
    let headless = changed("plain", |records| drop(records.drain(..2)));
    assert!(headless.contains(&"created-first"), "{headless:?}");
}

#[test]
fn items_that_do_not_fit_are_found() {
    let unannounced = changed("plain", |records| drop(records.remove(2)));
    assert!(unannounced.contains(&"item-order"), "{unannounced:?}");
    let renamed = changed("plain", |records| records[4]["item_id"] = "other".into());
    assert_eq!(renamed, ["item-same"]);
    let differs = changed("plain", |records| records[4]["delta"] = "Goodbye".into());
    assert!(differs.contains(&"deltas-sum"), "{differs:?}");
    let emptied = changed("plain", |records| {
        let last = records.last_mut().unwrap();
        last["response"]["output"] = Value::Array(Vec::new());
    });
    assert_eq!(emptied, ["output-complete"]);
}

#[test]
fn odd_counts_are_found() {
    let total = changed("plain", |records| {
        records.last_mut().unwrap()["response"]["usage"]["total_tokens"] = 1.into();
    });
    assert_eq!(total, ["usage-sum"]);
    let none = changed("plain", |records| {
        records.last_mut().unwrap()["response"]["usage"] = Value::Null;
    });
    assert_eq!(none, ["usage-fields"]);
}
