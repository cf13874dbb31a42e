//! A retry that discards text which was already shown: dialects that can retract text do so, and
//! the others do not repeat it.

use serde_json::json;

use crate::support::records::event;
use crate::support::{translate_lines, written};

fn delta(message: &str, text: &str) -> String {
    event("block_delta", json!({"message": message, "index": 0, "kind": "text", "text": text}))
}

fn ended(message: &str) -> String {
    event("block_ended", json!({"message": message, "index": 0, "kind": "text"}))
}

fn withdrawn(message: &str) -> String {
    event("withdrawn", json!({"message": message, "index": 0}))
}

/// A turn with a first attempt that is withdrawn, and a second one.
fn turn(first: &[&str], first_ends: bool, second: &[&str]) -> Vec<String> {
    let mut lines = vec![event("turn_started", json!({}))];
    lines.extend(first.iter().map(|text| delta("one", text)));
    if first_ends {
        lines.push(ended("one"));
    }
    lines.push(withdrawn("one"));
    lines.extend(second.iter().map(|text| delta("two", text)));
    lines.push(ended("two"));
    lines.push(event("turn_ended", json!({"outcome": "completed"})));
    lines
}

/// The concatenated text of a stream of parts, and the ids of its blocks in the order of their
/// ends.
fn text_of_parts(lines: &[String]) -> (String, Vec<String>) {
    let parts = translate_lines("events", "ai-sdk", lines).records();
    let text = |kind: &str, field: &str| -> Vec<String> {
        let of_kind = parts.iter().filter(|part| part["type"] == kind);
        of_kind.map(|part| part[field].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(text("text-start", "id"), text("text-end", "id"));
    (text("text-delta", "delta").concat(), text("text-end", "id"))
}

#[test]
fn a_second_attempt_with_the_same_text_is_not_written_twice() {
    let lines = turn(&["Hel", "lo wor"], false, &["Hello", " world", "!"]);
    let (text, blocks) = text_of_parts(&lines);
    assert_eq!((text.as_str(), blocks.len()), ("Hello world!", 1));
}

#[test]
fn a_complete_block_that_is_repeated_is_written_once() {
    let lines = turn(&["Hello"], true, &["Hel", "lo"]);
    let (text, blocks) = text_of_parts(&lines);
    assert_eq!((text.as_str(), blocks.len()), ("Hello", 1));
    let longer = turn(&["Hello"], true, &["Hello world"]);
    assert_eq!(text_of_parts(&longer).0, "Hello world");
}

#[test]
fn a_second_attempt_with_other_text_is_a_separate_block() {
    let lines = turn(&["This will be"], false, &["This is", " better."]);
    let (text, blocks) = text_of_parts(&lines);
    assert_eq!((text.as_str(), blocks.len()), ("This will beThis is better.", 2));
    let written = translate_lines("events", "ai-sdk", &lines);
    let lost: Vec<_> = written.losses().iter().collect();
    assert!(lost.contains(&("text that the agent retracted", 1)), "{lost:?}");
}

#[test]
fn a_second_attempt_has_its_own_message() {
    for (first_ends, second) in [(false, "Other."), (true, "Other."), (true, "Hello world")] {
        let lines = turn(&["Hello"], first_ends, &[second, " More."]);
        let chunks = translate_lines("events", "acp", &lines).records();
        let updates = chunks.iter().filter_map(|chunk| chunk["params"]["update"].as_object());
        let ids: Vec<_> = updates.filter_map(|update| update.get("messageId")?.as_str()).collect();
        assert_eq!(ids, ["one", "two", "two"], "{first_ends} {second}");
    }
}

#[test]
fn a_second_attempt_can_be_withdrawn_too() {
    let mut lines = turn(&["Hello"], false, &["Hello wor"]);
    let end = lines.pop().unwrap();
    lines.pop();
    lines.extend([withdrawn("two"), delta("three", "Hello world"), ended("three"), end]);
    let (text, blocks) = text_of_parts(&lines);
    assert_eq!((text.as_str(), blocks.len()), ("Hello world", 1));
}

#[test]
fn withdrawn_text_that_is_not_repeated_still_ends() {
    let lines = [
        event("turn_started", json!({})),
        delta("one", "Hello"),
        withdrawn("one"),
        event("turn_ended", json!({"outcome": "failed", "cause": "no luck"})),
    ];
    let (text, blocks) = text_of_parts(&lines);
    assert_eq!((text.as_str(), blocks.len()), ("Hello", 1));
}

const MESSAGE: &str =
    r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Once."}}"#;
const RETRY: &str = r#"{"type":"error","message":"Reconnecting... 1/5 (stream disconnected)"}"#;
const END: &str = r#"{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}"#;

#[test]
fn our_own_events_list_the_withdrawn_blocks() {
    let again = MESSAGE.replace("item_0", "item_1");
    let events = translate_lines("codex", "events", &[MESSAGE, RETRY, &again, END]).records();
    let withdrawn_event = events.iter().find(|event| event["type"] == "withdrawn").unwrap();
    assert_eq!(withdrawn_event["blocks"], json!([{"block": 1, "kind": "text", "text": "Once."}]));
    assert_eq!(events.iter().filter(|event| event["type"] == "block").count(), 2);
}

#[test]
fn a_message_that_codex_repeats_after_a_reconnect_is_written_once_in_every_dialect() {
    let again = MESSAGE.replace("item_0", "item_1");
    for to in written().filter(|to| to.name != "events") {
        let text = translate_lines("codex", to.name, &[MESSAGE, RETRY, &again, END]).text();
        let times = text.matches("Once.").count();
        // The end of a turn may repeat its last text.
        let in_result = text.lines().filter(|line| line.contains("\"result\":\"Once.\"")).count();
        assert_eq!(times - in_result, 1, "{}: {text}", to.name);
    }
}

#[test]
fn text_before_an_answered_call_is_not_withdrawn() {
    let lines = [
        event("turn_started", json!({})),
        event("block", json!({"message": "one", "text": "Kept."})),
        event("tool_started", json!({"call": "c", "name": "t", "input": {}})),
        event("tool_ended", json!({"call": "c", "status": "completed"})),
        event("withdrawn", json!({})),
        event("block", json!({"message": "two", "text": "Kept."})),
        event("turn_ended", json!({"outcome": "completed"})),
    ];
    let (text, blocks) = text_of_parts(&lines);
    assert_eq!((text.as_str(), blocks.len()), ("Kept.Kept.", 2));
}

#[test]
fn a_replayed_turn_is_not_written_as_a_live_one() {
    let lines = [
        event("turn_started", json!({"replay": true})),
        event("block", json!({"message": "one", "text": "Long ago."})),
        event("turn_ended", json!({"outcome": "completed"})),
        event("turn_started", json!({})),
        event("block", json!({"message": "two", "text": "Now."})),
        event("turn_ended", json!({"outcome": "completed"})),
    ];
    // These two mark replayed turns.
    for to in written().filter(|to| !["events", "acp"].contains(&to.name)) {
        let written = translate_lines("events", to.name, &lines);
        let text = written.text();
        assert!(!text.contains("Long ago.") && text.contains("Now."), "{}: {text}", to.name);
        let lost: Vec<_> = written.losses().iter().collect();
        assert!(lost.contains(&("replayed turns", 1)), "{lost:?}");
    }
}

/// Blocks that were given another name are withdrawn too when our own events are read again.
#[test]
fn withdrawn_blocks_keep_their_names_in_our_own_events() {
    let again = [
        r#"{"type":"message_end","message":{"role":"assistant","content":[{}]}}"#,
        r#"{"type":"message_update","assistantMessageEvent":{"type":"text_delta"}}"#,
        r#"{"type":"auto_retry_start"}"#,
    ];
    let first = translate_lines("pi", "events", &again);
    let records = first.records();
    let withdrawn_event = records.iter().find(|event| event["type"] == "withdrawn").unwrap();
    assert_eq!(withdrawn_event["blocks"].as_array().unwrap().len(), 2);
    let text = first.text();
    let lines: Vec<&str> = text.lines().collect();
    let second = translate_lines("events", "claude", &lines);
    let repairs = second.repairs().listed();
    assert!(repairs.is_empty(), "{repairs:?}");
}
