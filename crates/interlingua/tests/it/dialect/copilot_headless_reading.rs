//! Guards against turns of Copilot's headless mode that are invented, lost or not ended, and against
//! keys in its events.

use serde_json::{Value, json};

use crate::support::records::of_type;
use crate::support::{dialect, translate, translate_chunks};
use interlingua::Exit;

fn events(messages: &[Value]) -> Vec<Value> {
    let framed = |message: &Value| {
        let text = message.to_string();
        format!("Content-Length: {}\r\n\r\n{text}", text.len())
    };
    let input: String = messages.iter().map(framed).collect();
    let from = Some(dialect("copilot-headless"));
    translate_chunks(from, dialect("events"), [input.as_bytes()], &Exit::default()).records()
}

fn event(kind: &str, data: Value) -> Value {
    let event = json!({"type": kind, "data": data, "id": "e", "parentId": null});
    json!({"jsonrpc": "2.0", "method": "session.event", "params": {"sessionId": "s", "event": event}})
}

fn turn(inside: Vec<Value>) -> Vec<Value> {
    let start = event("user.message", json!({"content": "do it"}));
    let end = event("session.idle", json!({"mode": "interactive"}));
    [vec![start], inside, vec![end]].concat()
}

#[test]
fn a_turn_ends_when_the_agent_is_idle() {
    let records = events(&turn(vec![]));
    let ended = of_type(&records, "turn_ended");
    assert_eq!(ended.len(), 1);
    assert_eq!((&ended[0]["outcome"], &ended[0]["synthetic"]), (&json!("completed"), &Value::Null));
    // The agent is also idle without a turn.
    let idle = [turn(vec![]), vec![event("session.idle", json!({}))]].concat();
    assert_eq!(of_type(&events(&idle), "turn_ended").len(), 1);
}

#[test]
fn an_aborted_turn_is_cancelled_even_if_nothing_else_reports_it() {
    let start = event("user.message", json!({"content": "do it"}));
    let records = events(&[start, event("session.idle", json!({"aborted": true}))]);
    assert_eq!(of_type(&records, "turn_ended")[0]["outcome"], "cancelled");
}

#[test]
fn a_failed_turn_has_its_status() {
    let data = json!({"errorType": "query", "message": "Broken.", "statusCode": 500});
    let records = events(&turn(vec![event("session.error", data)]));
    let ended = &of_type(&records, "turn_ended")[0];
    assert_eq!((&ended["outcome"], &ended["http_status"]), (&json!("failed"), &json!(500)));
    assert_eq!(ended["cause"], "Broken.");
}

#[test]
fn the_requests_of_sub_agents_count_for_the_turn() {
    let count = |input, cached| {
        let tokens = json!({"inputTokens": input, "cacheReadTokens": cached, "outputTokens": 5});
        event("assistant.usage", tokens)
    };
    let mut nested = count(40, 0);
    nested["params"]["event"]["agentId"] = json!("a");
    let records = events(&turn(vec![count(100, 30), nested]));
    let usage = &of_type(&records, "turn_ended")[0]["usage"];
    assert_eq!((&usage["input"], &usage["cache_read"]), (&json!(110), &json!(30)));
    assert_eq!(usage["output"], 10);
    let next = events(&[turn(vec![count(100, 30)]), turn(vec![])].concat());
    assert_eq!(of_type(&next, "turn_ended")[1]["usage"], Value::Null);
}

#[test]
fn a_refused_prompt_is_a_turn_that_failed() {
    let prompt =
        json!({"jsonrpc": "2.0", "id": 3, "method": "session.send", "params": {"prompt": "x"}});
    let error = json!({"code": -32603, "message": "Session not found"});
    let records = events(&[prompt, json!({"jsonrpc": "2.0", "id": 3, "error": error})]);
    let ended = of_type(&records, "turn_ended");
    assert_eq!(
        (&ended[0]["outcome"], &ended[0]["cause"]),
        (&json!("failed"), &json!("Session not found"))
    );
    assert_eq!((ended.len(), &ended[0]["synthetic"]), (1, &Value::Null));
}

/// A todo list that arrives after the turn would begin a turn that never ends.
#[test]
fn a_todo_list_is_a_plan_only_within_a_turn() {
    let rows =
        json!([{"id": "a", "title": "Read", "status": "done"}, {"title": "Fix", "status": "x"}]);
    let list = json!({"jsonrpc": "2.0", "id": 4, "result": {"rows": rows}});
    let records = events(&turn(vec![list.clone()]));
    let items = &of_type(&records, "plan_updated")[0]["items"];
    assert_eq!((&items[0]["text"], &items[0]["status"]), (&json!("Read"), &json!("completed")));
    assert_eq!(items[1]["status"], "x");
    let late = [turn(vec![]), vec![list]].concat();
    assert_eq!(of_type(&events(&late), "turn_started").len(), 1);
}

#[test]
fn a_permission_request_names_its_subject() {
    let edit = |before, after| json!({"before": {"path": before}, "after": {"path": after}});
    let requests = [
        (json!({"kind": "shell", "fullCommandText": "ls"}), json!({"command": "ls"})),
        (json!({"kind": "read", "path": "/a"}), json!({"path": "/a"})),
        (
            json!({"kind": "write", "fileName": "/a", "fileEdits": [edit("/a", "/b")], "diff": "d"}),
            json!({"path": "/a", "changes": [{"path": "/a"}, {"path": "/b"}], "diff": "d"}),
        ),
        (json!({"kind": "memory", "fact": "x"}), json!({"kind": "memory", "fact": "x"})),
    ];
    for (permission, input) in requests {
        let data = json!({"requestId": "p", "permissionRequest": permission});
        let records = events(&turn(vec![event("permission.requested", data)]));
        assert_eq!(of_type(&records, "permission_requested")[0]["input"], input);
    }
    let decided =
        json!({"requestId": "p", "permissionRequest": {"kind": "read"}, "resolvedByHook": true});
    let records = events(&turn(vec![event("permission.requested", decided)]));
    assert!(of_type(&records, "permission_requested").is_empty());
}

#[test]
fn a_denial_is_emitted_once_with_the_reason_of_the_user() {
    let result = json!({"kind": "denied-interactively-by-user", "feedback": "not here"});
    let completed = json!({"requestId": "p", "toolCallId": "c", "result": result});
    let answer =
        json!({"toolCallId": "c", "success": false, "error": {"code": "denied", "message": "m"}});
    let inside = vec![
        event("tool.execution_start", json!({"toolCallId": "c", "toolName": "bash"})),
        event("permission.completed", completed),
        event("tool.execution_complete", answer),
    ];
    let records = events(&turn(inside));
    let resolved = of_type(&records, "permission_resolved");
    assert_eq!((resolved.len(), &resolved[0]["reason"]), (1, &json!("not here")));
    assert_eq!(of_type(&records, "tool_ended")[0]["status"], "denied");
}

#[test]
fn the_key_of_a_provider_is_in_no_event() {
    for method in ["session.create", "session.resume"] {
        let params =
            json!({"sessionId": "s", "provider": {"baseUrl": "http://x", "apiKey": "sk-1"}});
        let records =
            events(&[json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})]);
        assert!(!json!(records).to_string().contains("sk-1"), "{method}");
    }
}

#[test]
fn the_dialect_is_recognised_with_and_without_lengths() {
    let message = event("session.start", json!({"sessionId": "s"})).to_string();
    for input in [format!("Content-Length: {}\r\n\r\n{message}", message.len()), message + "\n"] {
        let from = translate("events", input.as_bytes(), &Exit::default()).from();
        assert_eq!(from.map(|from| from.name), Some("copilot-headless"));
    }
}
