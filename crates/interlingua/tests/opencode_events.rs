//! opencode in both of its forms: nothing is said twice, and a turn ends where it ends.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod support;

use interlingua::Exit;
use serde_json::{Value, json};
use support::{dialect, translate_chunks};

/// Our own events for some records, one a line.
fn read(lines: &[Value], exit: &Exit) -> Vec<Value> {
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let from = Some(dialect("opencode"));
    translate_chunks(from, dialect("events"), [input.as_bytes()], exit).records()
}

/// The same records as server-sent events.
fn served(lines: &[Value]) -> Vec<Value> {
    let input: String = lines.iter().map(|line| format!("data: {line}\n\n")).collect();
    let from = Some(dialect("opencode"));
    translate_chunks(from, dialect("events"), [input.as_bytes()], &Exit::default()).records()
}

fn event(kind: &str, mut properties: Value) -> Value {
    if properties.get("sessionID").is_none() {
        properties["sessionID"] = json!("s");
    }
    json!({"id": "evt", "type": kind, "properties": properties})
}

fn status(word: &str) -> Value {
    event("session.status", json!({"status": {"type": word}}))
}

fn message(over: bool) -> Value {
    let time = if over { json!({"created": 1, "completed": 2}) } else { json!({"created": 1}) };
    event("message.updated", json!({"info": {"id": "m", "role": "assistant", "time": time}}))
}

fn text(words: &str, over: bool) -> Value {
    let time = if over { json!({"start": 1, "end": 2}) } else { json!({"start": 1}) };
    let part = json!({"id": "p", "messageID": "m", "type": "text", "text": words, "time": time});
    event("message.part.updated", json!({"part": part}))
}

fn piece(words: &str) -> Value {
    let piece = json!({"messageID": "m", "partID": "p", "field": "text", "delta": words});
    event("message.part.delta", piece)
}

fn tool(state: Value) -> Value {
    let part = json!({
        "id": "t", "messageID": "m", "type": "tool", "tool": "bash", "callID": "c", "state": state,
    });
    event("message.part.updated", json!({"part": part}))
}

fn of_kind<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// All that was said, block by block.
fn blocks(events: &[Value]) -> Vec<String> {
    let mut blocks: Vec<(Value, String)> = Vec::new();
    for event in events {
        let words = event["text"].as_str().unwrap_or_default();
        match event["type"].as_str().unwrap() {
            "block" | "block_started" => blocks.push((event["block"].clone(), words.to_owned())),
            "block_delta" => {
                let block = blocks.iter_mut().find(|(number, _)| *number == event["block"]);
                block.unwrap().1.push_str(words);
            }
            _ => {}
        }
    }
    blocks.into_iter().map(|(_, words)| words).collect()
}

#[test]
fn a_snapshot_that_is_trimmed_is_not_said_again() {
    let lines = [
        status("busy"),
        message(false),
        text("", false),
        piece("Done"),
        piece(".\n"),
        text("Done.", true),
        message(true),
        status("idle"),
    ];
    assert_eq!(blocks(&served(&lines)), ["Done.\n"]);
}

#[test]
fn a_snapshot_that_goes_further_adds_the_rest() {
    let lines = [status("busy"), message(false), text("", false), piece("Do"), text("Done", true)];
    assert_eq!(blocks(&served(&lines)), ["Done"]);
}

#[test]
fn a_text_that_goes_on_after_a_call_is_another_block() {
    let lines = [
        status("busy"),
        message(false),
        text("", false),
        piece("Before. "),
        tool(json!({"status": "pending", "input": {}, "raw": ""})),
        piece("After."),
        tool(json!({"status": "running", "input": {"command": "true"}})),
        text("Before. After.", true),
        message(true),
        status("idle"),
    ];
    let events = served(&lines);
    assert_eq!(blocks(&events), ["Before. ", "After."]);
    assert_eq!(of_kind(&events, "tool_input")[0]["input"]["command"], "true");
}

/// Seen in 1.18.33: the last snapshots of an aborted turn come after the first `session.idle`.
#[test]
fn an_aborted_turn_ends_after_its_last_snapshots() {
    let error = json!({"name": "MessageAbortedError", "data": {"message": "Aborted"}});
    let output = "begun\n\n<shell_metadata>\nUser aborted the command\n</shell_metadata>";
    let lines = [
        status("busy"),
        message(false),
        tool(json!({"status": "running", "input": {"command": "sleep 9"}})),
        event("session.error", json!({"error": error})),
        status("idle"),
        event("session.idle", json!({})),
        tool(json!({"status": "completed", "input": {"command": "sleep 9"}, "output": output})),
        message(true),
        status("idle"),
        event("session.idle", json!({})),
    ];
    let events = served(&lines);
    assert_eq!(of_kind(&events, "tool_ended")[0]["status"], "cancelled");
    let ends = of_kind(&events, "turn_ended");
    assert_eq!((ends.len(), &ends[0]["outcome"]), (1, &json!("cancelled")));
    assert!(ends[0].get("synthetic").is_none());
}

#[test]
fn a_message_that_never_ends_does_not_hide_the_end_of_its_turn() {
    let lines = [status("busy"), message(false), status("idle"), status("busy")];
    let events = served(&lines);
    assert_eq!(of_kind(&events, "turn_started").len(), 2);
    let ends = of_kind(&events, "turn_ended");
    assert_eq!((&ends[0]["outcome"], &ends[1]["outcome"]), (&json!("completed"), &json!("failed")));
}

#[test]
fn another_session_of_the_server_is_left_out() {
    let mut other = text("Not mine.", true);
    other["properties"]["sessionID"] = json!("other");
    other["properties"]["part"]["id"] = json!("q");
    let events = served(&[status("busy"), message(false), other, text("Mine.", true)]);
    assert_eq!(blocks(&events), ["Mine."]);
}

#[test]
fn a_sub_agent_speaks_within_its_call() {
    let start = json!({
        "status": "running",
        "input": {"description": "look", "prompt": "Look.", "subagent_type": "general"},
        "metadata": {"sessionId": "child"},
    });
    let mut call = tool(start);
    call["properties"]["part"]["tool"] = json!("task");
    let mut said = text("I see.", true);
    said["properties"]["sessionID"] = json!("child");
    let events = served(&[status("busy"), message(false), call, said]);
    let started = of_kind(&events, "subagent_started")[0];
    assert_eq!((&started["id"], &started["kind"]), (&json!("child"), &json!("general")));
    assert_eq!(of_kind(&events, "block")[0]["parent"], "c");
}

#[test]
fn the_call_that_writes_the_plan_tells_it_alone() {
    let todos = json!([{"content": "First", "status": "in_progress", "priority": "high"}]);
    let mut pending = tool(json!({"status": "pending", "input": {}}));
    pending["properties"]["part"]["tool"] = json!("todowrite");
    let mut running = tool(json!({"status": "running", "input": {"todos": todos}}));
    running["properties"]["part"]["tool"] = json!("todowrite");
    let update = event("todo.updated", json!({"todos": todos}));
    let events = served(&[status("busy"), message(false), pending, update.clone(), running]);
    let plans = of_kind(&events, "plan_updated");
    assert_eq!((plans.len(), &plans[0]["call"]), (1, &json!("c")));
    let events = served(&[status("busy"), update]);
    assert!(of_kind(&events, "plan_updated")[0].get("call").is_none());
}

fn line(kind: &str, part: Value) -> Value {
    json!({"type": kind, "timestamp": 1, "sessionID": "s", "part": part})
}

fn finish(reason: &str) -> Value {
    let tokens = json!({
        "total": 33, "input": 10, "output": 2, "reasoning": 1, "cache": {"read": 20, "write": 0},
    });
    let part = json!({
        "type": "step-finish", "messageID": "m", "reason": reason, "tokens": tokens, "cost": 0.5,
    });
    line("step_finish", part)
}

#[test]
fn lines_end_with_the_reason_of_the_last_step() {
    for (reason, outcome) in
        [("stop", "completed"), ("length", "limit_reached"), ("content-filter", "refused")]
    {
        let start = line("step_start", json!({"type": "step-start", "messageID": "m"}));
        let events = read(&[start, finish("tool-calls"), finish(reason)], &Exit::default());
        let ends = of_kind(&events, "turn_ended");
        assert_eq!((ends.len(), &ends[0]["outcome"]), (1, &json!(outcome)), "{reason}");
        let usage = &ends[0]["usage"];
        assert_eq!((&usage["input"], &usage["cache_read"]), (&json!(20), &json!(40)));
        assert_eq!((&usage["output"], &usage["reasoning"]), (&json!(6), &json!(2)));
        assert_eq!(ends[0]["cost"]["usd"], 1.0);
    }
}

#[test]
fn lines_that_stop_before_the_end_are_no_success() {
    let exit = Exit { code: Some(0), ..Exit::default() };
    let start = line("step_start", json!({"type": "step-start", "messageID": "m"}));
    let events = read(&[start, finish("tool-calls")], &exit);
    assert_eq!(of_kind(&events, "turn_ended")[0]["outcome"], "failed");
}

#[test]
fn an_error_is_a_failure_whatever_the_exit_code_says() {
    let error = json!({"name": "APIError", "data": {"message": "No.", "statusCode": 429}});
    let line = json!({"type": "error", "timestamp": 1, "sessionID": "s", "error": error});
    let events = read(&[line], &Exit { code: Some(0), ..Exit::default() });
    let end = of_kind(&events, "turn_ended")[0];
    assert_eq!((&end["outcome"], &end["class"]), (&json!("failed"), &json!("rate_limit")));
    assert_eq!(end["http_status"], 429);
}

#[test]
fn a_command_that_failed_and_a_tool_that_does_not_exist_have_failed() {
    let call = |tool: &str, state: Value| {
        let part = json!({
            "type": "tool", "messageID": "m", "tool": tool, "callID": tool, "state": state,
        });
        line("tool_use", part)
    };
    let ran = json!({
        "status": "completed", "input": {"command": "x"}, "output": "", "metadata": {"exit": 3},
    });
    let unknown = json!({"status": "completed", "input": {"tool": "nope"}, "output": "No."});
    let events = read(&[call("bash", ran), call("invalid", unknown)], &Exit::default());
    let ends = of_kind(&events, "tool_ended");
    assert_eq!((&ends[0]["status"], &ends[0]["exit_code"]), (&json!("failed"), &json!(3)));
    assert_eq!((&ends[1]["status"], &ends[1]["name"]), (&json!("failed"), &json!("nope")));
}
