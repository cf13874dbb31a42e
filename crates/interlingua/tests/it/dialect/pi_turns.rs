//! pi repeats every text and every end of a turn many times; each is emitted once.

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

fn record_without_fields(kind: &str) -> Value {
    json!({"type": kind})
}

fn agent_end(will_retry: bool) -> Value {
    json!({"type": "agent_end", "messages": [], "willRetry": will_retry})
}

/// A message of one text, as pi streams it.
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
    let mut lines = vec![record_without_fields("agent_start")];
    lines.extend(text_message("First", "error"));
    let retry = json!({
        "type": "auto_retry_start", "attempt": 1, "maxAttempts": 3, "delayMs": 5,
        "errorMessage": "503: busy",
    });
    lines.extend([agent_end(true), retry, record_without_fields("agent_start")]);
    lines.extend(text_message("Second", "stop"));
    lines.extend([agent_end(false), record_without_fields("agent_settled")]);
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
fn the_last_message_decides_the_outcome_of_the_turn() {
    for (stop_reason, outcome) in [
        ("stop", "completed"),
        ("length", "limit_reached"),
        ("aborted", "cancelled"),
        ("error", "failed"),
    ] {
        let mut lines = vec![record_without_fields("agent_start")];
        lines.extend(text_message("Text", stop_reason));
        lines.extend([agent_end(false), record_without_fields("agent_settled")]);
        let events = read(&lines);
        assert_eq!(of_type(&events, "turn_ended")[0]["outcome"], outcome, "{stop_reason}");
        assert_eq!(text_of(&events), "Text");
    }
}

#[test]
fn a_stream_without_its_last_record_is_no_success() {
    let mut lines = vec![record_without_fields("agent_start")];
    lines.extend(text_message("Text", "stop"));
    lines.push(agent_end(false));
    assert_eq!(of_type(&read(&lines), "turn_ended")[0]["outcome"], "failed");
}

#[test]
fn a_turn_of_a_version_without_agent_settled_ends_with_its_run() {
    let mut lines = vec![record_without_fields("agent_start")];
    lines.extend(text_message("One", "stop"));
    lines.extend([
        json!({"type": "agent_end", "messages": []}),
        record_without_fields("agent_start"),
    ]);
    lines.extend(text_message("Two", "stop"));
    lines.push(json!({"type": "agent_end", "messages": []}));
    let events = read(&lines);
    let ends = of_type(&events, "turn_ended");
    assert_eq!(ends.len(), 2);
    assert!(ends.iter().all(|end| end["outcome"] == "completed"));
}

#[test]
fn reasoning_that_ends_late_is_closed_when_the_text_starts() {
    let lines = [
        record_without_fields("agent_start"),
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

/// Versions before 0.87 add the complete message to every delta, twice.
fn with_complete_messages(deltas: usize, size: usize) -> Vec<u8> {
    let mut input = message("message_start", "pending", json!([])).to_string() + "\n";
    let (delta, mut complete) = ("x".repeat(size), String::new());
    for _ in 0..deltas {
        complete += &delta;
        let mut line = update("text_delta", 0, &delta);
        let content = json!([{"type": "text", "text": complete}]);
        line["assistantMessageEvent"]["partial"] = json!({"role": "assistant", "content": content});
        line["message"] = json!({"role": "assistant", "content": content});
        input += &(line.to_string() + "\n");
    }
    input.into_bytes()
}

#[test]
fn a_message_that_every_delta_repeats_is_emitted_once() {
    let input = with_complete_messages(20, 10);
    let from = Some(dialect("pi"));
    let events = translate_chunks(from, dialect("events"), [&*input], &Exit::default()).records();
    assert_eq!(text_of(&events).len(), 200);
}

#[test]
fn reading_repeated_messages_has_linear_cost() {
    let (short, long) = (with_complete_messages(20, 2_000), with_complete_messages(20, 16_000));
    let run = |input: &[u8]| {
        let from = Some(dialect("pi"));
        translate_chunks(from, dialect("giselle"), [input], &Exit::default()).bytes.len()
    };
    assert!(is_linear(|| assert!(run(&short) > 0), || assert!(run(&long) > 0)));
}

#[test]
fn updates_of_a_running_call_emit_only_new_output() {
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
    let events = read(&[
        record_without_fields("agent_start"),
        start,
        running("a\n"),
        running("a\nb\n"),
        end,
    ]);
    let emitted: Vec<_> =
        of_type(&events, "tool_progress").iter().filter_map(|it| it["output"].as_str()).collect();
    assert_eq!(emitted, ["a\n", "b\n"]);
    let ended = of_type(&events, "tool_ended")[0];
    assert_eq!((&ended["status"], &ended["exit_code"]), (&json!("failed"), &json!(3)));
}

#[test]
fn a_call_of_a_failed_request_never_ran() {
    let begins =
        json!({"type": "toolcall_start", "contentIndex": 0, "id": "c", "toolName": "bash"});
    let delta = json!({"type": "toolcall_delta", "contentIndex": 0, "delta": "{\"comm"});
    let empty = json!({"type": "toolcall_delta", "contentIndex": 0, "delta": ""});
    let update = |it: Value| json!({"type": "message_update", "assistantMessageEvent": it});
    let call = json!([{"type": "toolCall", "id": "c", "name": "bash", "arguments": {}}]);
    let mut lines =
        vec![record_without_fields("agent_start"), message("message_start", "pending", json!([]))];
    lines.extend([update(begins), update(empty), update(delta)]);
    lines.extend([message("message_end", "error", call), agent_end(true)]);
    lines.push(json!({"type": "auto_retry_start", "attempt": 1, "errorMessage": "terminated"}));
    lines.push(record_without_fields("agent_start"));
    lines.extend(text_message("Again", "stop"));
    lines.extend([agent_end(false), record_without_fields("agent_settled")]);
    let events = read(&lines);
    let ended = events.iter().position(|event| event["type"] == "tool_ended").unwrap();
    assert_eq!(events[ended]["status"], "cancelled");
    assert!(ended < events.iter().position(|event| event["type"] == "retry").unwrap());
    // The part of its input that was streamed is not its input.
    assert!(of_type(&events, "tool_input")[0].get("input").is_none());
    assert_eq!(of_type(&events, "tool_input_delta").len(), 1);
}

#[test]
fn failures_outside_the_turn_are_notices_with_their_message() {
    let events = read(&[
        record_without_fields("agent_start"),
        json!({"type": "extension_error", "extensionPath": "/e.ts", "error": "guard threw"}),
        json!({"type": "compaction_end", "aborted": false, "errorMessage": "no model"}),
        json!({"type": "compaction_end", "aborted": true}),
    ]);
    let emitted: Vec<_> = of_type(&events, "notice").iter().map(|it| it["text"].clone()).collect();
    assert_eq!(emitted, ["guard threw", "no model"]);
}

#[test]
fn the_session_has_a_time_and_the_turn_has_none() {
    let time = "2026-11-15T19:38:04.814Z";
    let session = json!({"type": "session", "id": "s", "timestamp": time, "cwd": "/x"});
    let events = read(&[session, record_without_fields("agent_start")]);
    assert_eq!(of_type(&events, "session_started")[0]["time"], time);
    assert!(of_type(&events, "turn_started")[0].get("time").is_none());
}
