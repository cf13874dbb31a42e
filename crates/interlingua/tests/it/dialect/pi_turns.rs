//! pi says every text many times, and ends many times: it is told once.

use interlingua::Exit;
use serde_json::{Value, json};

use crate::support::records::{of_type, text_of};
use crate::support::{dialect, is_linear, translate_chunks};

fn read(lines: &[Value]) -> Vec<Value> {
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let exit = Exit { code: Some(0), ..Exit::default() };
    let from = Some(dialect("pi"));
    translate_chunks(from, dialect("events"), [input.as_bytes()], &exit).records()
}

fn message(kind: &str, stop_reason: &str, content: Value) -> Value {
    let mut message = json!({
        "role": "assistant", "content": content, "model": "m", "stopReason": stop_reason,
        "usage": {"input": 10, "output": 2, "totalTokens": 12},
    });
    if stop_reason == "error" {
        message["errorMessage"] = json!("503: busy");
        message["usage"] = json!({"input": 0, "output": 0, "totalTokens": 0});
    }
    json!({"type": kind, "message": message})
}

fn update(kind: &str, index: u64, words: &str) -> Value {
    let field = if kind.ends_with("_delta") { "delta" } else { "content" };
    let mut update = json!({"type": kind, "contentIndex": index});
    update[field] = json!(words);
    json!({"type": "message_update", "assistantMessageEvent": update})
}

fn bare(kind: &str) -> Value {
    json!({"type": kind})
}

fn agent_end(will_retry: bool) -> Value {
    json!({"type": "agent_end", "messages": [], "willRetry": will_retry})
}

/// A message of one text, as pi tells it.
fn text_message(words: &str, stop_reason: &str) -> Vec<Value> {
    let content = json!([{"type": "text", "text": words}]);
    vec![
        message("message_start", "pending", json!([])),
        update("text_start", 0, ""),
        update("text_delta", 0, words),
        update("text_end", 0, words),
        message("message_end", stop_reason, content.clone()),
        message("turn_end", stop_reason, content),
    ]
}

#[test]
fn a_turn_ends_when_it_has_settled_and_not_before() {
    let mut lines = vec![bare("agent_start")];
    lines.extend(text_message("First", "error"));
    let retry = json!({
        "type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 5,
        "errorMessage": "503: busy",
    });
    lines.extend([agent_end(true), retry, bare("agent_start")]);
    lines.extend(text_message("Second", "stop"));
    lines.extend([agent_end(false), bare("agent_settled")]);
    let events = read(&lines);
    assert_eq!(of_type(&events, "turn_started").len(), 1);
    assert_eq!(of_type(&events, "withdrawn")[0]["blocks"][0]["block"], 1);
    let retry = of_type(&events, "retry")[0];
    assert_eq!((&retry["class"], &retry["http_status"]), (&json!("overloaded"), &json!(503)));
    let ends = of_type(&events, "turn_ended");
    assert_eq!((ends.len(), &ends[0]["outcome"]), (1, &json!("completed")));
    assert_eq!(ends[0]["usage"]["input"], 10);
}

#[test]
fn the_last_message_tells_how_the_turn_ended() {
    for (stop_reason, outcome) in [
        ("stop", "completed"),
        ("length", "limit_reached"),
        ("aborted", "cancelled"),
        ("error", "failed"),
    ] {
        let mut lines = vec![bare("agent_start")];
        lines.extend(text_message("Text", stop_reason));
        lines.extend([agent_end(false), bare("agent_settled")]);
        let events = read(&lines);
        assert_eq!(of_type(&events, "turn_ended")[0]["outcome"], outcome, "{stop_reason}");
        assert_eq!(text_of(&events), "Text");
    }
}

#[test]
fn without_the_last_record_there_is_no_success() {
    let mut lines = vec![bare("agent_start")];
    lines.extend(text_message("Text", "stop"));
    lines.push(agent_end(false));
    assert_eq!(of_type(&read(&lines), "turn_ended")[0]["outcome"], "failed");
}

#[test]
fn a_version_that_does_not_settle_ends_with_its_run() {
    let mut lines = vec![bare("agent_start")];
    lines.extend(text_message("One", "stop"));
    lines.extend([json!({"type": "agent_end", "messages": []}), bare("agent_start")]);
    lines.extend(text_message("Two", "stop"));
    lines.push(json!({"type": "agent_end", "messages": []}));
    let events = read(&lines);
    let ends = of_type(&events, "turn_ended");
    assert_eq!(ends.len(), 2);
    assert!(ends.iter().all(|end| end["outcome"] == "completed"));
}

#[test]
fn a_thought_that_ends_late_is_over_when_the_text_begins() {
    let lines = [
        bare("agent_start"),
        message("message_start", "pending", json!([])),
        update("thinking_start", 0, ""),
        update("thinking_delta", 0, "Hm."),
        update("text_start", 1, ""),
        update("text_delta", 1, "Yes."),
        update("thinking_end", 0, "Hm."),
        update("text_end", 1, "Yes."),
    ];
    let events = read(&lines);
    let order: Vec<_> = events
        .iter()
        .filter(|event| event["type"].as_str().unwrap().starts_with("block"))
        .map(|event| format!("{} {}", event["type"].as_str().unwrap(), event["block"]))
        .collect();
    let expected = [
        "block_started 1",
        "block_delta 1",
        "block_ended 1",
        "block_started 2",
        "block_delta 2",
        "block_ended 2",
    ];
    assert_eq!(order, expected);
}

/// Versions before 0.87 add the whole message to every piece, twice.
fn with_whole_messages(pieces: usize, size: usize) -> Vec<u8> {
    let mut input = message("message_start", "pending", json!([])).to_string() + "\n";
    let (piece, mut whole) = ("x".repeat(size), String::new());
    for _ in 0..pieces {
        whole += &piece;
        let mut line = update("text_delta", 0, &piece);
        let content = json!([{"type": "text", "text": whole}]);
        line["assistantMessageEvent"]["partial"] = json!({"role": "assistant", "content": content});
        line["message"] = json!({"role": "assistant", "content": content});
        input += &(line.to_string() + "\n");
    }
    input.into_bytes()
}

#[test]
fn a_message_that_every_piece_repeats_is_told_once() {
    let input = with_whole_messages(20, 10);
    let from = Some(dialect("pi"));
    let events = translate_chunks(from, dialect("events"), [&*input], &Exit::default()).records();
    assert_eq!(text_of(&events).len(), 200);
}

#[test]
fn reading_it_costs_no_more_than_its_bytes() {
    let (short, long) = (with_whole_messages(20, 2_000), with_whole_messages(20, 16_000));
    let run = |input: &[u8]| {
        let from = Some(dialect("pi"));
        translate_chunks(from, dialect("giselle"), [input], &Exit::default()).bytes.len()
    };
    assert!(is_linear(|| assert!(run(&short) > 0), || assert!(run(&long) > 0)));
}

#[test]
fn updates_of_a_running_call_tell_what_is_new() {
    let running = |text: &str| {
        json!({
            "type": "tool_execution_update", "toolCallId": "c", "toolName": "bash",
            "partialResult": {"content": [{"type": "text", "text": text}]},
        })
    };
    let start =
        json!({"type": "tool_execution_start", "toolCallId": "c", "toolName": "bash", "args": {}});
    let result =
        json!({"content": [{"type": "text", "text": "a\nb\n\nCommand exited with code 3"}]});
    let end = json!({
        "type": "tool_execution_end", "toolCallId": "c", "toolName": "bash", "result": result,
        "isError": true,
    });
    let events = read(&[bare("agent_start"), start, running("a\n"), running("a\nb\n"), end]);
    let told: Vec<_> =
        of_type(&events, "tool_progress").iter().filter_map(|it| it["output"].as_str()).collect();
    assert_eq!(told, ["a\n", "b\n"]);
    let ended = of_type(&events, "tool_ended")[0];
    assert_eq!((&ended["status"], &ended["exit_code"]), (&json!("failed"), &json!(3)));
}

#[test]
fn a_call_of_a_request_that_failed_never_ran() {
    let begins =
        json!({"type": "toolcall_start", "contentIndex": 0, "id": "c", "toolName": "bash"});
    let piece = json!({"type": "toolcall_delta", "contentIndex": 0, "delta": "{\"comm"});
    let empty = json!({"type": "toolcall_delta", "contentIndex": 0, "delta": ""});
    let update = |it: Value| json!({"type": "message_update", "assistantMessageEvent": it});
    let call = json!([{"type": "toolCall", "id": "c", "name": "bash", "arguments": {}}]);
    let mut lines = vec![bare("agent_start"), message("message_start", "pending", json!([]))];
    lines.extend([update(begins), update(empty), update(piece)]);
    lines.extend([message("message_end", "error", call), agent_end(true)]);
    lines.push(json!({"type": "auto_retry_start", "attempt": 1, "errorMessage": "terminated"}));
    lines.push(bare("agent_start"));
    lines.extend(text_message("Again", "stop"));
    lines.extend([agent_end(false), bare("agent_settled")]);
    let events = read(&lines);
    let ended = events.iter().position(|event| event["type"] == "tool_ended").unwrap();
    assert_eq!(events[ended]["status"], "cancelled");
    assert!(ended < events.iter().position(|event| event["type"] == "retry").unwrap());
    // What there was of its input is not its input.
    assert!(of_type(&events, "tool_input")[0].get("input").is_none());
    assert_eq!(of_type(&events, "tool_input_delta").len(), 1);
}

#[test]
fn failures_beside_the_turn_are_told_in_their_words() {
    let events = read(&[
        bare("agent_start"),
        json!({"type": "extension_error", "extensionPath": "/e.ts", "error": "guard threw"}),
        json!({"type": "compaction_end", "aborted": false, "errorMessage": "no model"}),
        json!({"type": "compaction_end", "aborted": true}),
    ]);
    let told: Vec<_> = of_type(&events, "notice").iter().map(|it| it["text"].clone()).collect();
    assert_eq!(told, ["guard threw", "no model"]);
}

#[test]
fn the_session_has_a_time_and_the_turn_has_none() {
    let time = "2026-11-15T19:38:04.814Z";
    let session = json!({"type": "session", "id": "s", "timestamp": time, "cwd": "/x"});
    let events = read(&[session, bare("agent_start")]);
    assert_eq!(of_type(&events, "session_started")[0]["time"], time);
    assert!(of_type(&events, "turn_started")[0].get("time").is_none());
}
