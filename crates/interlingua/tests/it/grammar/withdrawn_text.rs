//! A retry that throws away what was already shown: said where there are words for it, and never
//! doubled where there are none.

use serde_json::{Value, json};

use crate::support::{translate_lines, written};

/// Our own events, one record each.
fn event(kind: &str, fields: Value) -> String {
    let mut record = json!({
        "interlingua": 1, "type": kind, "sequence": 0, "line": 1, "bytes": [0, 1],
    });
    for (name, value) in fields.as_object().unwrap() {
        record[name] = value.clone();
    }
    record.to_string()
}

fn piece(message: &str, text: &str) -> String {
    event("block_delta", json!({"message": message, "index": 0, "kind": "text", "text": text}))
}

fn ended(message: &str) -> String {
    event("block_ended", json!({"message": message, "index": 0, "kind": "text"}))
}

fn withdrawn(message: &str) -> String {
    event("withdrawn", json!({"message": message, "index": 0}))
}

/// A turn with a first try that is taken back, and a second one.
fn turn(first: &[&str], first_ends: bool, second: &[&str]) -> Vec<String> {
    let mut lines = vec![event("turn_started", json!({}))];
    lines.extend(first.iter().map(|text| piece("one", text)));
    if first_ends {
        lines.push(ended("one"));
    }
    lines.push(withdrawn("one"));
    lines.extend(second.iter().map(|text| piece("two", text)));
    lines.push(ended("two"));
    lines.push(event("turn_ended", json!({"outcome": "completed"})));
    lines
}

/// All text of a stream of parts, and the ids of its blocks in the order of their ends.
fn text_of_parts(lines: &[String]) -> (String, Vec<String>) {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let parts = translate_lines("events", "ai-sdk", &lines).records();
    let text = |kind: &str, field: &str| -> Vec<String> {
        let of_kind = parts.iter().filter(|part| part["type"] == kind);
        of_kind.map(|part| part[field].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(text("text-start", "id"), text("text-end", "id"));
    (text("text-delta", "delta").concat(), text("text-end", "id"))
}

#[test]
fn a_second_try_that_says_the_same_is_not_said_twice() {
    let lines = turn(&["Hel", "lo wor"], false, &["Hello", " world", "!"]);
    let (text, blocks) = text_of_parts(&lines);
    assert_eq!((text.as_str(), blocks.len()), ("Hello world!", 1));
}

#[test]
fn a_whole_block_that_is_said_again_is_said_once() {
    let lines = turn(&["Hello"], true, &["Hel", "lo"]);
    let (text, blocks) = text_of_parts(&lines);
    assert_eq!((text.as_str(), blocks.len()), ("Hello", 1));
    let longer = turn(&["Hello"], true, &["Hello world"]);
    assert_eq!(text_of_parts(&longer).0, "Hello world");
}

#[test]
fn a_second_try_that_says_something_else_is_a_block_of_its_own() {
    let lines = turn(&["This will be"], false, &["This is", " better."]);
    let (text, blocks) = text_of_parts(&lines);
    assert_eq!((text.as_str(), blocks.len()), ("This will beThis is better.", 2));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let written = translate_lines("events", "ai-sdk", &lines);
    let lost: Vec<_> = written.losses().iter().collect();
    assert!(lost.contains(&("text that the agent took back", 1)), "{lost:?}");
}

#[test]
fn a_second_try_has_its_own_message() {
    for (first_ends, second) in [(false, "Other."), (true, "Other."), (true, "Hello world")] {
        let lines = turn(&["Hello"], first_ends, &[second, " More."]);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let chunks = translate_lines("events", "acp", &lines).records();
        let said = chunks.iter().filter_map(|chunk| chunk["params"]["update"].as_object());
        let ids: Vec<_> = said.filter_map(|update| update.get("messageId")?.as_str()).collect();
        assert_eq!(ids, ["one", "two", "two"], "{first_ends} {second}");
    }
}

#[test]
fn a_second_try_can_be_taken_back_too() {
    let mut lines = turn(&["Hello"], false, &["Hello wor"]);
    let end = lines.pop().unwrap();
    lines.pop();
    lines.extend([withdrawn("two"), piece("three", "Hello world"), ended("three"), end]);
    let (text, blocks) = text_of_parts(&lines);
    assert_eq!((text.as_str(), blocks.len()), ("Hello world", 1));
}

#[test]
fn text_that_is_never_said_again_still_ends() {
    let lines = [
        event("turn_started", json!({})),
        piece("one", "Hello"),
        withdrawn("one"),
        event("turn_ended", json!({"outcome": "failed", "cause": "no luck"})),
    ];
    let (text, blocks) = text_of_parts(&lines);
    assert_eq!((text.as_str(), blocks.len()), ("Hello", 1));
}

const SAID: &str =
    r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Once."}}"#;
const RETRY: &str = r#"{"type":"error","message":"Reconnecting... 1/5 (stream disconnected)"}"#;
const END: &str = r#"{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}"#;

#[test]
fn our_own_events_say_which_blocks_were_taken_back() {
    let again = SAID.replace("item_0", "item_1");
    let told = translate_lines("codex", "events", &[SAID, RETRY, &again, END]).records();
    let taken = told.iter().find(|event| event["type"] == "withdrawn").unwrap();
    assert_eq!(taken["blocks"], json!([{"block": 1, "kind": "text", "text": "Once."}]));
    assert_eq!(told.iter().filter(|event| event["type"] == "block").count(), 2);
}

#[test]
fn what_codex_says_again_after_a_reconnect_is_said_once_everywhere() {
    let again = SAID.replace("item_0", "item_1");
    for to in written().filter(|to| to.name != "events") {
        let text = translate_lines("codex", to.name, &[SAID, RETRY, &again, END]).text();
        let times = text.matches("Once.").count();
        // The end of a turn may repeat its last word.
        let in_result = text.lines().filter(|line| line.contains("\"result\":\"Once.\"")).count();
        assert_eq!(times - in_result, 1, "{}: {text}", to.name);
    }
}

#[test]
fn what_was_said_before_a_tool_was_answered_is_not_taken_back() {
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
fn a_turn_of_the_past_is_not_told_as_one_that_happens_now() {
    let lines = [
        event("turn_started", json!({"replay": true})),
        event("block", json!({"message": "one", "text": "Long ago."})),
        event("turn_ended", json!({"outcome": "completed"})),
        event("turn_started", json!({})),
        event("block", json!({"message": "two", "text": "Now."})),
        event("turn_ended", json!({"outcome": "completed"})),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    // These say that it is of the past.
    for to in written().filter(|to| !["events", "acp"].contains(&to.name)) {
        let written = translate_lines("events", to.name, &lines);
        let text = written.text();
        assert!(!text.contains("Long ago.") && text.contains("Now."), "{}: {text}", to.name);
        let lost: Vec<_> = written.losses().iter().collect();
        assert!(lost.contains(&("turns of the past, told again", 1)), "{lost:?}");
    }
}

/// A block that was given another name is taken back too, when our own events are read again.
#[test]
fn our_own_events_name_the_blocks_that_are_taken_back() {
    let again = [
        r#"{"type":"message_end","message":{"role":"assistant","content":[{}]}}"#,
        r#"{"type":"message_update","assistantMessageEvent":{"type":"text_delta"}}"#,
        r#"{"type":"auto_retry_start"}"#,
    ];
    let first = translate_lines("pi", "events", &again);
    let records = first.records();
    let taken = records.iter().find(|event| event["type"] == "withdrawn").unwrap();
    assert_eq!(taken["blocks"].as_array().unwrap().len(), 2);
    let text = first.text();
    let lines: Vec<&str> = text.lines().collect();
    let second = translate_lines("events", "claude", &lines);
    let repairs = second.repairs().listed();
    assert!(repairs.is_empty(), "{repairs:?}");
}
