//! Law 2: every line of the input has an event that states its number, and unknown records keep
//! their JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use serde_json::Value;

use crate::support::{self, Case, translate, translate_lines};

/// Records that only repeat what earlier ones stated: a complete block that repeats its deltas, the
/// end of an input block, a signature that the end of its block carries.
fn may_emit_nothing(line: &str) -> bool {
    ["\"assistant\"", "stream_event", "item.completed", "item.updated", "\"init\"", "message_stop"]
        .iter()
        .any(|kind| line.contains(kind))
}

/// An event states the line on which its record begins; a record of several lines, such as one with
/// a header, has all bytes of them.
#[test]
fn every_line_of_every_transcript_has_an_event() {
    for case in Case::all() {
        let records = translate("events", &case.input, &case.exit).records();
        let lines: BTreeSet<u64> =
            records.iter().map(|event| event["line"].as_u64().unwrap()).collect();
        let ranges: BTreeMap<u64, u64> = records.iter().map(bytes_of).collect();
        let (text, mut start) = (String::from_utf8_lossy(&case.input), 0);
        for (at, line) in text.split('\n').enumerate() {
            let (from, to) = (start, start + line.trim_end().len() as u64);
            start += line.len() as u64 + 1;
            let named = lines.contains(&(at as u64 + 1)) || covers(&ranges, from..to);
            // The elements of an array are records, and what is between them is nothing.
            let separates = line.trim().trim_matches([',', ']']).is_empty();
            let accounted = named || separates || may_emit_nothing(line);
            assert!(accounted, "{}:{} {line}", case.name, at + 1);
        }
        for event in &records {
            let (start, end) = bytes_of(event);
            assert!(start <= end && end <= case.input.len() as u64, "{}: {event}", case.name);
        }
    }
}

/// Whether ranges, by their starts, include one without a gap.
fn covers(ranges: &BTreeMap<u64, u64>, mut wanted: Range<u64>) -> bool {
    while let Some((_, end)) = ranges.range(..=wanted.start).next_back()
        && wanted.start < *end
        && wanted.start < wanted.end
    {
        wanted.start = *end;
    }
    wanted.is_empty()
}

fn bytes_of(event: &Value) -> (u64, u64) {
    (event["bytes"][0].as_u64().unwrap(), event["bytes"][1].as_u64().unwrap())
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
