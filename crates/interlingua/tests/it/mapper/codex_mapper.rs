//! The tests that the document on the Codex mapper lists, and the failures that were found in it.

use interlingua::mapper::CodexStdoutMapper;
use serde_json::{Value, json};

fn parse(lines: Vec<String>) -> Vec<Value> {
    lines
        .iter()
        .map(|line| {
            assert!(line.ends_with('\n'), "{line:?} is a complete line");
            serde_json::from_str(line).unwrap()
        })
        .collect()
}

fn map(line: &str) -> Vec<Value> {
    parse(CodexStdoutMapper::new().push(format!("{line}\n").as_bytes()))
}

#[test]
fn maps_session_created_to_init() {
    assert_eq!(
        map(r#"{"type":"session.created","id":"sess_123","model":"o4-mini"}"#),
        [json!({"type":"init","session_id":"sess_123","modelId":"o4-mini"})]
    );
}

#[test]
fn maps_message_output_text_delta_to_message_delta() {
    assert_eq!(
        map(r#"{"type":"message.output_text.delta","delta":"Hello"}"#),
        [json!({"type":"message","role":"assistant","content":"Hello","delta":true})]
    );
}

#[test]
fn maps_message_output_text_done_to_message_full() {
    assert_eq!(
        map(r#"{"type":"message.output_text.done","text":"Hello world"}"#),
        [json!({"type":"message","role":"assistant","content":"Hello world","delta":false})]
    );
}

#[test]
fn maps_error_to_stderr() {
    assert_eq!(
        map(r#"{"type":"error","message":"API rate limited"}"#),
        [json!({"type":"stderr","content":"API rate limited"})]
    );
}

#[test]
fn an_error_without_a_message_is_written_completely() {
    let mapped = map(r#"{"type":"error","message":{"code":1}}"#);
    assert_eq!(mapped[0]["type"], "stderr");
    let content: Value = serde_json::from_str(mapped[0]["content"].as_str().unwrap()).unwrap();
    assert_eq!(content, json!({"type":"error","message":{"code":1}}));
}

#[test]
fn drops_response_completed_events() {
    assert!(map(r#"{"type":"response.completed","usage":{}}"#).is_empty());
}

#[test]
fn drops_unknown_events() {
    assert!(map(r#"{"type":"some.unknown.event"}"#).is_empty());
}

#[test]
fn handles_multiple_events_in_one_chunk() {
    let chunk = concat!(
        r#"{"type":"session.created","id":"s1","model":"o4-mini"}"#,
        "\n",
        r#"{"type":"message.output_text.delta","delta":"Hi"}"#,
        "\n"
    );
    assert_eq!(CodexStdoutMapper::new().push(chunk.as_bytes()).len(), 2);
}

#[test]
fn buffers_partial_lines_across_chunks() {
    let mut mapper = CodexStdoutMapper::new();
    let full = r#"{"type":"message.output_text.delta","delta":"Hi"}"#;
    assert!(mapper.push(&full.as_bytes()[..10]).is_empty());
    let lines = parse(mapper.push(format!("{}\n", &full[10..]).as_bytes()));
    assert_eq!(lines[0]["content"], "Hi");
}

#[test]
fn flush_processes_remaining_buffer() {
    let mut mapper = CodexStdoutMapper::new();
    assert!(mapper.push(br#"{"type":"message.output_text.delta","delta":"end"}"#).is_empty());
    let lines = parse(mapper.flush());
    assert_eq!(lines[0]["content"], "end");
    assert_eq!(lines.len(), 1);
}

#[test]
fn flush_returns_empty_when_buffer_is_empty() {
    assert!(CodexStdoutMapper::new().flush().is_empty());
}

#[test]
fn skips_malformed_json_lines() {
    let mut mapper = CodexStdoutMapper::new();
    assert!(mapper.push(b"not json\n{\"type\":\"message.outp\n5\n[1]\nnull\n").is_empty());
    let next = mapper.push(b"{\"type\":\"message.output_text.delta\",\"delta\":\"on\"}\n");
    assert_eq!(next.len(), 1);
}

#[test]
fn reset_discards_an_incomplete_line() {
    let mut mapper = CodexStdoutMapper::new();
    mapper.push(b"{\"type\":\"message.output_te");
    mapper.reset();
    assert!(mapper.flush().is_empty());
}

#[test]
fn a_thread_gives_the_session_and_a_later_session_only_the_model() {
    let chunk = concat!(
        r#"{"type":"thread.started","thread_id":"thread-abc-123"}"#,
        "\n",
        r#"{"type":"session.created","id":"session-1","model":"codex-small"}"#,
        "\n",
        r#"{"type":"message.output_text.delta","delta":"Hello"}"#,
        "\n",
        r#"{"type":"message.output_text.done","text":"!"}"#,
        "\n",
        r#"{"type":"error","message":"Oops"}"#,
        "\n"
    );
    assert_eq!(
        parse(CodexStdoutMapper::new().push(chunk.as_bytes())),
        [
            json!({"type":"init","session_id":"thread-abc-123"}),
            json!({"type":"init","modelId":"codex-small"}),
            json!({"type":"message","role":"assistant","content":"Hello","delta":true}),
            json!({"type":"message","role":"assistant","content":"!","delta":false}),
            json!({"type":"stderr","content":"Oops"}),
        ]
    );
}

#[test]
fn messages_of_the_real_program_are_mapped_too() {
    let line =
        r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Hi"}}"#;
    assert_eq!(
        map(line),
        [json!({"type":"message","role":"assistant","content":"Hi","delta":false})]
    );
}

/// Regression: deltas and the complete message that repeats them were both shown.
#[test]
fn a_complete_message_that_repeats_its_deltas_is_not_written_again() {
    let mut mapper = CodexStdoutMapper::new();
    mapper.push(b"{\"type\":\"message.output_text.delta\",\"delta\":\"Hel\"}\n");
    mapper.push(b"{\"type\":\"message.output_text.delta\",\"delta\":\"lo\"}\n");
    assert!(
        mapper.push(b"{\"type\":\"message.output_text.done\",\"text\":\"Hello\"}\n").is_empty()
    );
}

/// `chunk.toString("utf8")` replaced a character that was split between two chunks by two U+FFFD.
#[test]
fn a_character_may_be_split_between_chunks() {
    let line = "{\"type\":\"message.output_text.delta\",\"delta\":\"é🧪\"}\n".as_bytes();
    for cut in 0..line.len() {
        let mut mapper = CodexStdoutMapper::new();
        let mut lines = mapper.push(&line[..cut]);
        lines.extend(mapper.push(&line[cut..]));
        assert_eq!(parse(lines)[0]["content"], "é🧪");
    }
}

/// Regression: the cause of a failed turn was lost.
#[test]
fn a_failed_turn_becomes_stderr_unless_its_reason_was_written() {
    let failed = r#"{"type":"turn.failed","error":{"message":"boom"}}"#;
    let error = r#"{"type":"error","message":"boom"}"#;
    let stderr = "{\"type\":\"stderr\",\"content\":\"boom\"}\n";
    let map = |lines: &[&str]| {
        let mut mapper = interlingua::mapper::CodexStdoutMapper::new();
        let mut written = mapper.push((lines.join("\n") + "\n").as_bytes());
        written.extend(mapper.flush());
        written
    };
    assert_eq!(map(&[failed]), [stderr]);
    assert_eq!(map(&[error, failed]), [stderr]);
    assert_eq!(map(&[failed, failed]), [stderr, stderr], "another turn");
}

#[test]
fn a_session_without_an_id_is_introduced_too() {
    let mut mapper = interlingua::mapper::CodexStdoutMapper::new();
    let lines = mapper.push(b"{\"type\":\"session.created\",\"model\":\"o4-mini\"}\n");
    assert_eq!(lines, ["{\"type\":\"init\",\"modelId\":\"o4-mini\"}\n"]);
}
