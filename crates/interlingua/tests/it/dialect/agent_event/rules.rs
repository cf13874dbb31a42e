//! Every rule of `agent-event` finds its violations, and nothing else.

use serde_json::{Value, json};

use crate::support::rules::broken_by_lines;

/// The names of the rules that some records break, in order and without repetition.
fn broken(records: &[Value]) -> Vec<&'static str> {
    broken_by_lines("agent-event", records)
}

/// As [`broken`], for records between the start of a session and the end of a turn, each with an
/// envelope.
fn broken_between(records: &[Value]) -> Vec<&'static str> {
    let start = json!({"type":"session.started"});
    let end = json!({"type":"turn.completed","finishReason":"done"});
    broken(&enveloped(&[&[start], records, &[end]].concat()))
}

fn enveloped(records: &[Value]) -> Vec<Value> {
    let with_envelope = |(number, record): (usize, &Value)| {
        let mut complete = json!({
            "eventId":format!("e{number}"),"agentId":"a","agentType":"claude-code",
            "teamMetadata":{},"timestamp":1
        });
        for (name, value) in record.as_object().unwrap() {
            complete[name] = value.clone();
        }
        complete
    };
    records.iter().enumerate().map(with_envelope).collect()
}

fn started() -> Value {
    json!({"type":"tool.started","toolName":"Bash","toolId":"c","input":{}})
}

fn completed() -> Value {
    json!({"type":"tool.completed","toolName":"Bash","toolId":"c","output":"x"})
}

#[test]
fn a_valid_stream_breaks_no_rule() {
    let records = [
        json!({"type":"text","text":"a","role":"assistant","category":"message"}),
        started(),
        completed(),
        json!({"type":"todo_list","todoId":"t","items":[{"text":"a","status":"cancelled"}]}),
        json!({"type":"error","error":"e","code":"C"}),
    ];
    assert_eq!(broken_between(&records), [""; 0]);
}

#[test]
fn the_envelope_is_complete() {
    let record = json!({"type":"session.started","eventId":"e","agentId":"a","agentType":"x","teamMetadata":{},"timestamp":1});
    let end = enveloped(&[json!({"type":"turn.completed","finishReason":"done"})]).remove(0);
    for name in ["eventId", "agentId", "agentType", "teamMetadata", "timestamp"] {
        let mut flawed = record.clone();
        flawed[name] = json!([]);
        assert_eq!(broken(&[flawed, end.clone()]), ["envelope"], "{name}");
    }
    assert_eq!(broken(&[record.clone(), record, end]), ["fresh-event-id"]);
}

#[test]
fn every_type_is_known() {
    assert_eq!(broken_between(&[json!({"type":"tool.updated"})]), ["known-type"]);
}

#[test]
fn a_type_has_its_fields_and_no_others() {
    for record in [
        json!({"type":"text"}),
        json!({"type":"text","text":null}),
        json!({"type":"text","text":"a","delta":true}),
        json!({"type":"text","text":"a","role":"user"}),
        json!({"type":"error","error":{}}),
        json!({"type":"todo_list","todoId":"t","items":{}}),
    ] {
        assert_eq!(broken_between(std::slice::from_ref(&record)), ["fields"], "{record}");
    }
    let mut call = started();
    call["input"] = json!("text");
    assert_eq!(broken_between(&[call, completed()]), ["fields"]);
    let mut answer = completed();
    answer["output"] = json!([]);
    assert_eq!(broken_between(&[started(), answer]), ["fields"]);
    let end = json!({"type":"turn.completed","finishReason":"stop"});
    assert_eq!(broken_between(&[end]), ["fields"]);
}

#[test]
fn the_start_of_the_session_is_first() {
    let records = [
        json!({"type":"text","text":"a"}),
        json!({"type":"session.started"}),
        json!({"type":"turn.completed","finishReason":"done"}),
    ];
    assert_eq!(broken(&enveloped(&records)), ["session-first"]);
}

#[test]
fn a_tool_is_started_once_and_completed_once() {
    let done = completed();
    let again = [started(), done.clone(), started(), done.clone()];
    assert_eq!(broken_between(&again), ["fresh-tool-id", "call-id-reused"]);
    assert_eq!(broken_between(&[started(), done.clone(), done]), ["tool-answered-once"]);
    assert!(broken_between(&[completed()]).contains(&"tool-started-first"));
    assert!(broken_between(&[started()]).contains(&"tool-answered"));
}

#[test]
fn a_todo_tool_is_hidden() {
    for name in ["TodoWrite", "write_todos", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet"] {
        let mut call = started();
        call["toolName"] = json!(name);
        assert_eq!(broken_between(&[call, completed()]), ["todo-tool-hidden"], "{name}");
    }
}

#[test]
fn items_have_a_text_and_a_status() {
    for item in [
        json!({"text":" ","status":"pending"}),
        json!({"text":"a","status":"blocked"}),
        json!({"text":"a","status":"pending","id":"1"}),
    ] {
        let list = json!({"type":"todo_list","todoId":"t","items":[item]});
        assert_eq!(broken_between(&[list]), ["todo-items"], "{item}");
    }
}

#[test]
fn a_turn_ends_with_turn_completed() {
    let records = [json!({"type":"session.started"}), json!({"type":"text","text":"a"})];
    assert!(broken(&enveloped(&records)).contains(&"turn-completed-last"));
}

#[test]
fn a_list_differs_from_the_one_before() {
    let list = json!({"type":"todo_list","todoId":"t","items":[]});
    assert_eq!(broken_between(&[list.clone(), list]), ["todo-list-changed"]);
}

#[test]
fn a_failed_turn_has_an_error() {
    let records = [
        json!({"type":"session.started"}),
        json!({"type":"turn.completed","finishReason":"error"}),
    ];
    assert_eq!(broken(&enveloped(&records)), ["error-reported"]);
}
