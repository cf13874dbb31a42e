//! Law 2: every line of the input has an event that states its number, and unknown records keep
//! their JSON.

use std::collections::BTreeSet;

use crate::support::{self, Case, translate, translate_lines};

/// Records that only repeat what earlier ones stated: a complete block that repeats its deltas, the
/// end of an input block, a signature that the end of its block carries.
fn may_emit_nothing(line: &str) -> bool {
    ["\"assistant\"", "stream_event", "item.completed", "item.updated", "\"init\"", "message_stop"]
        .iter()
        .any(|kind| line.contains(kind))
}

#[test]
fn every_line_of_every_transcript_has_an_event() {
    for case in Case::all() {
        let records = translate("events", &case.input, &case.exit).records();
        let lines: BTreeSet<u64> =
            records.iter().map(|event| event["line"].as_u64().unwrap()).collect();
        let text = String::from_utf8_lossy(&case.input);
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let named = lines.contains(&(at as u64 + 1));
            assert!(named || may_emit_nothing(line), "{}:{} {line}", case.name, at + 1);
        }
        for event in &records {
            let range = &event["bytes"];
            let (start, end) = (range[0].as_u64().unwrap(), range[1].as_u64().unwrap());
            assert!(start <= end && end <= case.input.len() as u64, "{}: {event}", case.name);
        }
    }
}

#[test]
fn sequence_numbers_have_no_gaps() {
    for case in Case::all() {
        let records = translate("events", &case.input, &case.exit).records();
        for (at, event) in records.iter().enumerate() {
            assert_eq!(event["sequence"], at, "{}", case.name);
        }
    }
}

#[test]
fn an_unknown_record_keeps_its_json() {
    let line = r#"{"type":"brand.new","weight":[1,{"deep":"\u00e9"}]}"#;
    for from in ["claude", "codex", "gemini", "giselle", "yume", "agent-event"] {
        let records = translate_lines(from, "events", &[line]).records();
        let unknown = records.iter().find(|event| event["type"] == "unknown");
        let unknown = unknown.unwrap_or_else(|| panic!("{from}: {records:#?}"));
        let expected: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(unknown["raw"], expected, "{from}");
        assert_eq!(unknown["name"], "brand.new", "{from}");
    }
}

#[test]
fn an_unreadable_line_keeps_its_text_and_costs_one_line() {
    let next = r#"{"type":"thread.started","thread_id":"t"}"#;
    let records = translate_lines("codex", "events", &["{\"type\":\"thr", next]).records();
    assert_eq!(records[0]["type"], "unparsed");
    assert_eq!(records[0]["text"], "{\"type\":\"thr");
    assert_eq!(records[1]["id"], "t");
}

#[test]
fn a_last_line_that_was_cut_off_is_marked_as_unterminated() {
    let written = support::translate_chunks(
        Some(support::dialect("codex")),
        support::dialect("events"),
        [&b"{\"type\":\"thr"[..]],
        &interlingua::Exit::default(),
    );
    assert_eq!(written.records()[0]["flaw"], "truncated");
}
