//! Law 8: nothing is emitted twice; identity is (message id, block index, parent call).

use crate::support::translate_lines;

fn event(event: &str) -> String {
    format!(
        r#"{{"type":"stream_event","event":{event},"session_id":"s","parent_tool_use_id":null,"uuid":"u"}}"#
    )
}

fn start() -> Vec<String> {
    vec![
        event(r#"{"type":"message_start","message":{"id":"m1","role":"assistant","content":[]}}"#),
        event(
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        ),
    ]
}

fn delta(text: &str) -> String {
    event(&format!(
        r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#
    ))
}

fn complete_block(id: &str, text: &str, parent: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"{id}","role":"assistant","content":[{{"type":"text","text":"{text}"}}]}},"parent_tool_use_id":{parent},"session_id":"s","uuid":"u"}}"#
    )
}

fn text_deltas(lines: &[String]) -> String {
    let parts = translate_lines("claude", "ai-sdk", lines).records();
    let deltas = parts.iter().filter(|part| part["type"] == "text-delta");
    deltas.map(|part| part["delta"].as_str().unwrap()).collect::<Vec<_>>().join("|")
}

#[test]
fn a_complete_block_that_repeats_its_deltas_is_dropped() {
    let mut lines = start();
    lines.extend([delta("Hel"), delta("lo"), complete_block("m1", "Hello", "null")]);
    lines.push(event(r#"{"type":"content_block_stop","index":0}"#));
    assert_eq!(text_deltas(&lines), "Hel|lo");
}

#[test]
fn a_complete_block_that_is_longer_than_its_deltas_adds_only_the_rest() {
    let mut lines = start();
    lines.extend([delta("Hel"), complete_block("m1", "Hello", "null")]);
    assert_eq!(text_deltas(&lines), "Hel|lo");
}

#[test]
fn an_escape_equals_the_character_that_it_encodes() {
    let mut lines = start();
    lines.extend([delta("\\u00e9"), complete_block("m1", "é", "null")]);
    assert_eq!(text_deltas(&lines), "\u{e9}");
}

/// Regression: a flag "deltas were seen" dropped all text after a tool call.
#[test]
fn another_message_with_the_same_text_is_emitted() {
    let mut lines = start();
    lines.extend([
        delta("Hi"),
        complete_block("m1", "Hi", "null"),
        complete_block("m2", "Hi", "null"),
    ]);
    assert_eq!(text_deltas(&lines), "Hi|Hi");
}

#[test]
fn a_second_block_of_the_same_message_is_emitted() {
    let mut lines = start();
    lines.extend([delta("Hi"), complete_block("m1", "Hi", "null")]);
    lines.push(event(r#"{"type":"content_block_stop","index":0}"#));
    lines.push(complete_block("m1", "Hi", "null"));
    assert_eq!(text_deltas(&lines), "Hi|Hi");
}

#[test]
fn the_same_text_of_a_sub_agent_is_emitted() {
    let mut lines = start();
    lines.extend([
        delta("Hi"),
        complete_block("m1", "Hi", "\"call\""),
        complete_block("m1", "Hi", "null"),
    ]);
    assert_eq!(text_deltas(&lines), "Hi|Hi");
}

#[test]
fn a_complete_block_that_differs_is_kept_and_reported() {
    let mut lines = start();
    lines.extend([delta("Hello"), complete_block("m1", "Goodbye", "null")]);
    assert_eq!(text_deltas(&lines), "Hello|Goodbye");
    let written = translate_lines("claude", "ai-sdk", &lines);
    let kinds: Vec<_> = written.repairs().counts().map(|(kind, _)| kind.name()).collect();
    assert!(kinds.contains(&"block-differs"), "{kinds:?}");
}

#[test]
fn an_unchanged_plan_is_not_emitted_again() {
    let list = r#"{"id":"item_0","type":"todo_list","items":[{"text":"Look","completed":true}]}"#;
    let lines = ["started", "updated", "completed"]
        .map(|what| format!(r#"{{"type":"item.{what}","item":{list}}}"#));
    let records = translate_lines("codex", "agent-event", &lines).records();
    assert_eq!(records.iter().filter(|event| event["type"] == "todo_list").count(), 1);
}

/// Some commands of Claude Code answer only in the result, and a result repeats the last text.
#[test]
fn the_text_of_a_result_is_emitted_only_if_it_is_new() {
    let result = r#"{"type":"result","subtype":"success","is_error":false,"duration_ms":5,"num_turns":1,"result":"Hi","session_id":"s","usage":{},"permission_denials":[],"uuid":"u"}"#;
    assert_eq!(text_deltas(&[result.to_owned()]), "Hi");
    assert_eq!(text_deltas(&[complete_block("m1", "Hi", "null"), result.to_owned()]), "Hi");
    // The results of two turns may both follow the text of the second.
    assert_eq!(
        text_deltas(&[complete_block("m1", "Hi", "null"), result.to_owned(), result.to_owned()]),
        "Hi"
    );
}
