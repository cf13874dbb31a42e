//! Law 8: nothing is said twice; identity is (message id, block index, parent call).

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

fn whole(id: &str, text: &str, parent: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"{id}","role":"assistant","content":[{{"type":"text","text":"{text}"}}]}},"parent_tool_use_id":{parent},"session_id":"s","uuid":"u"}}"#
    )
}

fn said(lines: &[String]) -> String {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let parts = translate_lines("claude", "ai-sdk", &lines).records();
    let deltas = parts.iter().filter(|part| part["type"] == "text-delta");
    deltas.map(|part| part["delta"].as_str().unwrap()).collect::<Vec<_>>().join("|")
}

#[test]
fn a_whole_block_that_repeats_its_pieces_is_dropped() {
    let mut lines = start();
    lines.extend([delta("Hel"), delta("lo"), whole("m1", "Hello", "null")]);
    lines.push(event(r#"{"type":"content_block_stop","index":0}"#));
    assert_eq!(said(&lines), "Hel|lo");
}

#[test]
fn a_whole_block_that_goes_further_adds_only_the_rest() {
    let mut lines = start();
    lines.extend([delta("Hel"), whole("m1", "Hello", "null")]);
    assert_eq!(said(&lines), "Hel|lo");
}

#[test]
fn an_escape_is_the_character_that_it_stands_for() {
    let mut lines = start();
    lines.extend([delta("\\u00e9"), whole("m1", "é", "null")]);
    assert_eq!(said(&lines), "\u{e9}");
}

/// A flag that said "deltas were seen" dropped all text after a tool call.
#[test]
fn another_message_with_the_same_text_is_said() {
    let mut lines = start();
    lines.extend([delta("Hi"), whole("m1", "Hi", "null"), whole("m2", "Hi", "null")]);
    assert_eq!(said(&lines), "Hi|Hi");
}

#[test]
fn a_second_block_of_the_same_message_is_said() {
    let mut lines = start();
    lines.extend([delta("Hi"), whole("m1", "Hi", "null")]);
    lines.push(event(r#"{"type":"content_block_stop","index":0}"#));
    lines.push(whole("m1", "Hi", "null"));
    assert_eq!(said(&lines), "Hi|Hi");
}

#[test]
fn a_sub_agent_is_another_voice() {
    let mut lines = start();
    lines.extend([delta("Hi"), whole("m1", "Hi", "\"call\""), whole("m1", "Hi", "null")]);
    assert_eq!(said(&lines), "Hi|Hi");
}

#[test]
fn a_whole_block_that_differs_is_kept_and_reported() {
    let mut lines = start();
    lines.extend([delta("Hello"), whole("m1", "Goodbye", "null")]);
    assert_eq!(said(&lines), "Hello|Goodbye");
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let written = translate_lines("claude", "ai-sdk", &lines);
    let kinds: Vec<_> = written.repairs().counts().map(|(kind, _)| kind.name()).collect();
    assert!(kinds.contains(&"block-differs"), "{kinds:?}");
}

#[test]
fn a_plan_that_did_not_change_is_not_told_again() {
    let list = r#"{"id":"item_0","type":"todo_list","items":[{"text":"Look","completed":true}]}"#;
    let lines = ["started", "updated", "completed"]
        .map(|what| format!(r#"{{"type":"item.{what}","item":{list}}}"#));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let records = translate_lines("codex", "agent-event", &lines).records();
    assert_eq!(records.iter().filter(|event| event["type"] == "todo_list").count(), 1);
}

/// Some commands of Claude Code answer in the result alone; and a result repeats the last text.
#[test]
fn a_last_word_is_said_only_if_it_was_not_said_before() {
    let result = r#"{"type":"result","subtype":"success","is_error":false,"duration_ms":5,"num_turns":1,"result":"Hi","session_id":"s","usage":{},"permission_denials":[],"uuid":"u"}"#;
    assert_eq!(said(&[result.to_owned()]), "Hi");
    assert_eq!(said(&[whole("m1", "Hi", "null"), result.to_owned()]), "Hi");
    // Both results of two turns may come at the end, after the text of the second.
    assert_eq!(said(&[whole("m1", "Hi", "null"), result.to_owned(), result.to_owned()]), "Hi");
}
