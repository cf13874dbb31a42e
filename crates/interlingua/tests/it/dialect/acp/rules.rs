//! Every rule of ACP finds its violations.

use serde_json::{Value, json};

use crate::support::rules::broken_by_lines;

/// The rules that a stream breaks.
fn broken(messages: &[Value]) -> Vec<&'static str> {
    broken_by_lines("acp", messages)
}

fn session() -> Value {
    json!({"jsonrpc": "2.0", "id": 90, "result": {"sessionId": "s"}})
}

fn update(update: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}})
}

fn text(text: &str) -> Value {
    update(
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}),
    )
}

fn call(id: &str) -> Value {
    update(json!({
        "sessionUpdate": "tool_call", "toolCallId": id, "title": "t", "kind": "read",
        "status": "in_progress", "rawInput": {"path": "a"},
    }))
}

fn answer(id: &str) -> Value {
    update(json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed"}))
}

fn end(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"stopReason": "end_turn"}})
}

fn permission(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": {
        "sessionId": "s", "toolCall": {"toolCallId": "c", "title": "t"},
        "options": [{"optionId": "a", "name": "A", "kind": "allow_once"}],
    }})
}

/// The value with another one at some place.
fn with(mut value: Value, place: &str, other: Value) -> Value {
    *value.pointer_mut(place).unwrap_or_else(|| panic!("no {place}")) = other;
    value
}

/// The rules that a stream of one turn breaks if it contains this message.
fn broken_by(message: Value) -> Vec<&'static str> {
    broken(&[session(), message, end(1)])
}

#[test]
fn a_valid_stream_breaks_no_rule() {
    let messages = [
        session(),
        text("a"),
        call("c"),
        permission(0),
        answer("c"),
        text("b"),
        end(1),
        text("x"),
        end(2),
    ];
    assert!(broken(&messages).is_empty(), "{:?}", broken(&messages));
}

#[test]
fn messages_are_json_rpc() {
    assert_eq!(broken_by(with(text("a"), "/jsonrpc", json!("1.0"))), ["json-rpc"]);
    assert_eq!(broken_by(json!({"jsonrpc": "2.0", "result": {}})), ["message-shape"]);
    let both =
        json!({"jsonrpc": "2.0", "id": 7, "result": {}, "error": {"code": 1, "message": "m"}});
    assert!(broken_by(both).contains(&"message-shape"));
    let method = json!({"jsonrpc": "2.0", "method": "session/upgrade", "params": {}});
    assert_eq!(broken_by(method), ["known-method"]);
    let extension = json!({"jsonrpc": "2.0", "method": "_x/y", "params": {}});
    assert!(broken_by(extension).is_empty());
    let mut notification = text("a");
    notification["id"] = json!(3);
    assert_eq!(broken_by(notification), ["notification"]);
}

#[test]
fn updates_have_their_fields() {
    assert_eq!(broken_by(with(text("a"), "/params/sessionId", json!(""))), ["session-id"]);
    let unknown = with(text("a"), "/params/update/sessionUpdate", json!("agent_message"));
    assert_eq!(broken_by(unknown), ["known-update"]);
    let block = with(text("a"), "/params/update/content", json!({"type": "text"}));
    assert_eq!(broken_by(block), ["content-block"]);
    let block = with(text("a"), "/params/update/content", json!({"type": "video"}));
    assert_eq!(broken_by(block), ["content-block"]);
    let mut chunk = text("a");
    chunk["params"]["update"]["messageId"] = json!(7);
    assert_eq!(broken_by(chunk), ["chunk-fields"]);
    let usage = update(json!({"sessionUpdate": "usage_update", "used": 1}));
    assert_eq!(broken_by(usage), ["usage-update-fields"]);
    let mode = update(json!({"sessionUpdate": "current_mode_update"}));
    assert_eq!(broken_by(mode), ["mode-fields"]);
    let mut meta = text("a");
    meta["params"]["update"]["_meta"] = json!("m");
    assert_eq!(broken_by(meta), ["meta-object"]);
}

#[test]
fn plans_have_their_fields() {
    assert_eq!(broken_by(update(json!({"sessionUpdate": "plan"}))), ["plan-entry"]);
    for entry in [
        json!({"content": "a", "status": "pending"}),
        json!({"content": "a", "priority": "medium", "status": "cancelled"}),
        json!({"priority": "medium", "status": "pending"}),
    ] {
        let plan = update(json!({"sessionUpdate": "plan", "entries": [entry]}));
        assert_eq!(broken_by(plan), ["plan-entry"]);
    }
}

#[test]
fn calls_have_their_fields() {
    let one = |message: Value| broken(&[session(), message, answer("c"), end(1)]);
    assert_eq!(one(with(call("c"), "/params/update/title", json!(""))), ["tool-call-fields"]);
    assert_eq!(one(with(call("c"), "/params/update/kind", json!("bash"))), ["tool-kind"]);
    assert_eq!(one(with(call("c"), "/params/update/status", json!("running"))), ["tool-status"]);
    let content = |content: Value| {
        let mut call = call("c");
        call["params"]["update"]["content"] = content;
        one(call)
    };
    assert_eq!(content(json!([{"type": "text", "text": "a"}])), ["tool-content"]);
    assert_eq!(content(json!("a")), ["tool-content"]);
    assert_eq!(content(json!([{"type": "diff", "path": "a"}])), ["diff-fields"]);
    let mut place = call("c");
    place["params"]["update"]["locations"] = json!([{"line": 1}]);
    assert_eq!(one(place.clone()), ["tool-location"]);
    place["params"]["update"]["locations"] = json!([{"path": "a.rs"}]);
    assert_eq!(one(place.clone()), ["location-absolute"]);
    place["params"]["update"]["locations"] = json!([{"path": "/a.rs"}, {"path": "C:\\a.rs"}]);
    assert!(one(place).is_empty());
}

#[test]
fn calls_are_in_order() {
    assert!(broken(&[session(), answer("c"), end(1)]).contains(&"tool-known"));
    let twice = [session(), call("c"), answer("c"), answer("c"), end(1)];
    assert!(broken(&twice).contains(&"tool-answered-once"));
    assert!(broken(&[session(), call("c"), end(1)]).contains(&"tool-answered"));
    let again = [session(), call("c"), answer("c"), call("c"), answer("c"), end(1)];
    assert!(broken(&again).contains(&"tool-id-unique"));
}

#[test]
fn permission_requests_have_their_fields() {
    let options = |options: Value| broken_by(with(permission(0), "/params/options", options));
    assert!(options(json!([])).contains(&"permission-options"));
    let unknown = json!([{"optionId": "a", "name": "A", "kind": "maybe"}]);
    assert!(options(unknown).contains(&"permission-options"));
    let nameless = with(permission(0), "/params/toolCall/toolCallId", json!(""));
    assert!(broken_by(nameless).contains(&"permission-fields"));
    let no_id = with(permission(0), "/id", Value::Null);
    assert!(broken_by(no_id).contains(&"permission-fields"));
    let twice = [session(), call("c"), permission(0), permission(0), answer("c"), end(1)];
    assert_eq!(broken(&twice), ["request-id-unique"]);
    let mut hiding = permission(0);
    hiding["params"]["toolCall"] = json!({"toolCallId": "c", "title": "bash", "name": "bash"});
    let stream = |asked: Value| broken(&[session(), call("c"), asked, answer("c"), end(1)]);
    assert_eq!(stream(hiding.clone()), ["permission-title"]);
    hiding["params"]["toolCall"] = json!({"toolCallId": "c"});
    assert!(stream(hiding).is_empty());
}

#[test]
fn questions_have_their_fields() {
    let question = json!({"jsonrpc": "2.0", "id": 0, "method": "elicitation/create", "params": {
        "sessionId": "s", "mode": "form", "message": "Which?",
        "requestedSchema": {"type": "object", "properties": {}},
    }});
    assert!(broken_by(question.clone()).is_empty());
    let nothing = with(question.clone(), "/params/message", json!(""));
    assert_eq!(broken_by(nothing), ["question-fields"]);
    let formless = with(question, "/params/requestedSchema", Value::Null);
    assert_eq!(broken_by(formless), ["question-fields"]);
}

/// Our own writer writes one session, and marks replayed history.
#[test]
fn our_own_writer_keeps_its_own_rules() {
    let opened =
        update(json!({"sessionUpdate": "session_info_update", "_meta": {"interlingua": {}}}));
    let other = with(text("a"), "/params/sessionId", json!("t"));
    assert_eq!(broken(&[opened.clone(), other.clone(), end(1)]), ["one-session"]);
    assert!(broken(&[session(), other, end(1)]).is_empty());
    let mut prompt = with(text("a"), "/params/update/sessionUpdate", json!("user_message_chunk"));
    assert_eq!(broken(&[opened.clone(), prompt.clone(), end(1)]), ["prompt-echo"]);
    prompt["params"]["update"]["_meta"] = json!({"interlingua": {"replay": true}});
    assert!(broken(&[opened, prompt, end(1)]).is_empty());
}

#[test]
fn responses_have_their_fields() {
    let stop = with(end(1), "/result/stopReason", json!("done"));
    assert_eq!(broken(&[session(), text("a"), stop]), ["stop-reason"]);
    let mut usage = end(1);
    usage["result"]["usage"] = json!({"inputTokens": 1});
    assert_eq!(broken(&[session(), text("a"), usage]), ["usage-fields"]);
    let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": "x", "message": "m"}});
    assert_eq!(broken(&[session(), text("a"), error]), ["error-fields"]);
    assert_eq!(broken(&[session(), text("a"), end(1), text("b"), end(1)]), ["answer-id-unique"]);
    assert!(broken(&[session(), text("a")]).contains(&"prompt-answered"));
}
