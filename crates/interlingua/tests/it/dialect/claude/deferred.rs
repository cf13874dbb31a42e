//! Calls that the host of the program defers, and what the two exchange about their tools.

use serde_json::{Value, json};

use crate::support::translate_lines;

fn events(records: &[Value]) -> Vec<Value> {
    let lines: Vec<_> = records.iter().map(Value::to_string).collect();
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    translate_lines("claude", "events", &lines).records()
}

fn init() -> Value {
    json!({"type": "system", "subtype": "init", "session_id": "s", "model": "m", "tools": []})
}

fn call() -> Value {
    let content =
        json!([{"type": "tool_use", "id": "t1", "name": "mcp__s__ask", "input": {"a": 1}}]);
    json!({"type": "assistant", "message": {"id": "m1", "role": "assistant", "content": content}, "session_id": "s"})
}

fn asks_hook() -> Value {
    let input = json!({"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "mcp__s__ask", "tool_input": {"a": 1}, "tool_use_id": "t1"});
    json!({"type": "control_request", "request_id": "h", "request": {"subtype": "hook_callback", "callback_id": "c", "input": input}})
}

fn result() -> Value {
    json!({"type": "user", "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "Blue"}]}, "session_id": "s"})
}

fn of<'e>(events: &'e [Value], kind: &str) -> Vec<&'e Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

#[test]
fn a_turn_whose_call_is_deferred_waits_for_the_client() {
    let end = json!({"type": "result", "subtype": "success", "is_error": false, "stop_reason": "tool_deferred", "terminal_reason": "tool_deferred", "session_id": "s"});
    let events = events(&[init(), call(), asks_hook(), end]);
    let ended = of(&events, "turn_ended");
    assert_eq!(ended.len(), 1);
    assert_eq!(
        [&ended[0]["outcome"], &ended[0]["reason"], &ended[0]["stop_reason"]],
        [&json!("waiting_for_client"), &json!("tool_deferred"), &json!("tool_use")]
    );
    assert_eq!(of(&events, "tool_started").len(), 1, "the hook is asked about the same call");
}

/// Before the first record of its turn, so that the call would have no name.
#[test]
fn a_resumed_program_asks_for_the_call_that_it_has_deferred() {
    let events = events(&[asks_hook(), result(), init()]);
    let started = of(&events, "tool_started");
    assert_eq!(started.len(), 1);
    assert_eq!(
        (&started[0]["name"], &started[0]["input"]),
        (&json!("mcp__s__ask"), &json!({"a": 1}))
    );
    assert_eq!(of(&events, "session_started")[0]["id"], "s");
    assert_eq!(of(&events, "tool_ended")[0]["call"], "t1");
}

/// A person may take minutes for a call that waits in a hook.
#[test]
fn a_hook_that_takes_long_is_progress_of_its_call() {
    let waits = |parent: Value| json!({"type": "tool_progress", "tool_use_id": "hook-PreToolUse-t1-heartbeat-0", "tool_name": "PreToolUse", "parent_tool_use_id": parent, "elapsed_time_seconds": 30, "session_id": "s"});
    let events = events(&[init(), call(), waits(json!("t1")), waits(Value::Null), result()]);
    let progress = of(&events, "tool_progress");
    assert_eq!(progress.len(), 1);
    assert_eq!((&progress[0]["call"], &progress[0]["parent"]), (&json!("t1"), &Value::Null));
    assert_eq!(of(&events, "tool_started").len(), 1);
}

/// The answer to `initialize` names the account, and a message of an MCP server has the client's answer once
/// more.
#[test]
fn what_the_program_and_its_host_exchange_is_not_stored() {
    let responds = |answer: Value| json!({"type": "control_response", "response": {"subtype": "success", "request_id": "r", "response": answer}});
    let message = json!({"subtype": "mcp_message", "server_name": "s", "message": {"method": "tools/call", "params": {"secret": 1}}});
    let events = events(&[
        responds(json!({"commands": [], "account": {"email": "secret"}})),
        init(),
        call(),
        json!({"type": "control_request", "request_id": "r", "request": message}),
        asks_hook(),
        responds(json!({"mcp_response": {"result": "secret"}})),
        responds(json!({"hookSpecificOutput": {"permissionDecision": "secret"}})),
    ]);
    let stored = json!(events).to_string();
    assert!(!stored.contains("secret"), "{stored}");
    assert_eq!(of(&events, "native").len(), 5, "each record is accounted for");
}
