//! JSON that real agents print and strict readers reject.

use crate::support::{self, translate_chunks, translate_lines};

/// Node prints `\ud83d` alone when it cuts a string inside an emoji; a strict parser rejects the
/// line.
#[test]
fn half_of_a_surrogate_pair_is_replaced_and_reported() {
    let line = r#"{"type":"message","timestamp":"t","role":"assistant","content":"a\ud83d b","delta":true}"#;
    for to in support::written() {
        let written = translate_lines("gemini", to.name, &[line]);
        assert!(!written.text().contains("\\ud83d"), "{}", to.name);
    }
    let records = translate_lines("gemini", "events", &[line]).records();
    let delta = records.iter().find(|event| event["type"] == "block_delta").unwrap();
    assert_eq!(delta["text"], "a\u{fffd} b");
    assert!(records.iter().any(|event| event["type"] == "notice"));
}

/// Codex prints a `web_search` item with two fields named `id`; derived parsers reject it.
#[test]
fn a_repeated_key_loses_nothing() {
    let item = r#""item":{"id":"item_0","type":"web_search","id":"ws_1","query":"q","action":{"type":"search","query":"q"}}"#;
    let lines = [
        format!(r#"{{"type":"item.started",{item}}}"#),
        format!(r#"{{"type":"item.completed",{item}}}"#),
    ];
    let records = translate_lines("codex", "events", &[&lines[0], &lines[1]]).records();
    let calls: Vec<_> = records.iter().filter(|event| event["type"] == "tool_started").collect();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["call"], "item_0");
    let input = records.iter().find(|event| event["type"] == "tool_input").unwrap();
    assert_eq!(input["input"]["query"], "q");
}

#[test]
fn invalid_utf_8_is_replaced_only_in_its_line() {
    let input = b"{\"type\":\"item.completed\",\"item\":{\"id\":\"a\",\"type\":\"agent_message\",\"text\":\"x\xffy\"}}\n{\"type\":\"item.completed\",\"item\":{\"id\":\"b\",\"type\":\"agent_message\",\"text\":\"\xc3\xa9\"}}\n";
    let from = Some(support::dialect("codex"));
    let exit = interlingua::Exit::default();
    let written = translate_chunks(from, support::dialect("events"), input.chunks(1), &exit);
    let texts: Vec<_> = written
        .records()
        .into_iter()
        .filter(|event| event["type"] == "block")
        .map(|event| event["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(texts, ["x\u{fffd}y", "é"]);
}

#[test]
fn line_separators_of_unicode_do_not_end_a_line() {
    let line = "{\"type\":\"item.completed\",\"item\":{\"id\":\"a\",\"type\":\"agent_message\",\"text\":\"x\u{2028}y\u{2029}\u{85}\"}}";
    let records = translate_lines("codex", "events", &[line]).records();
    assert!(records.iter().any(|event| event["text"] == "x\u{2028}y\u{2029}\u{85}"));
}

#[test]
fn two_records_on_one_line_are_two_records() {
    let line = r#"{"type":"thread.started","thread_id":"t"}{"type":"turn.started"} tail"#;
    let records = translate_lines("codex", "events", &[line]).records();
    let kinds: Vec<_> = records.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds[..3], ["session_started", "turn_started", "log"]);
}

#[test]
fn fields_of_another_type_are_ignored() {
    let line = r#"{"type":"item.completed","item":{"id":7,"type":"command_execution","command":[1],"aggregated_output":{"a":1},"exit_code":"x","status":5}}"#;
    for to in support::written() {
        translate_lines("codex", to.name, &[line]);
    }
}

/// Some parsers reject the complete record because of it, others read it as infinity.
#[test]
fn a_number_out_of_range_loses_only_its_line() {
    let lines = [
        r#"{"type":"tool_use","tool_name":"n","tool_id":"t","parameters":{"n":[1e999]}}"#,
        r#"{"type":"message","role":"assistant","content":"still here"}"#,
    ];
    let records = translate_lines("gemini", "events", &lines).records();
    let unparsed = records.iter().find(|event| event["type"] == "unparsed").unwrap();
    assert_eq!(unparsed["text"], lines[0]);
    assert!(unparsed["message"].as_str().unwrap().contains("column 69"), "{unparsed}");
    assert!(records.iter().any(|event| event["text"] == "still here"));
    for to in support::written() {
        let written = translate_lines("gemini", to.name, &lines).text();
        assert!(!written.contains(r#""n":[1e999]"#), "{}", to.name);
    }
}
