//! Todo lists in `AgentEvent` streams: the test cases of its design, and the same for the other
//! agents.

use serde_json::{Value, json};

use crate::support::records::of_type;
use crate::support::translate_lines;

/// The events written for a stream in some dialect, without their envelopes.
fn events(from: &str, lines: &[&str]) -> Vec<Value> {
    let records = translate_lines(from, "agent-event", lines).records();
    records.into_iter().map(without_envelope).collect()
}

fn without_envelope(mut event: Value) -> Value {
    let fields = event.as_object_mut().unwrap();
    for name in ["eventId", "agentId", "agentType", "teamMetadata", "timestamp"] {
        assert!(fields.remove(name).is_some(), "{name}");
    }
    event
}

/// The items of the only list that a call of `write_todos` causes.
fn gemini_items(todos: &Value) -> Value {
    let call = json!({
        "type":"tool_use","timestamp":"2025-01-01T00:00:00.000Z","tool_name":"write_todos",
        "tool_id":"call_123","parameters":{"todos":todos}
    });
    let events = events("gemini", &[&call.to_string()]);
    let lists = of_type(&events, "todo_list");
    assert_eq!(lists.len(), 1);
    lists[0]["items"].clone()
}

const WRITE_TODOS: &str = r#"{"type":"tool_use","timestamp":"2025-01-01T00:00:00.000Z","tool_name":"write_todos","tool_id":"call_123","parameters":{"todos":[{"description":"Research existing metrics","status":"pending"},{"description":"Design the system","status":"in_progress"}]}}"#;
const TODOS_WRITTEN: &str = r#"{"type":"tool_result","timestamp":"2025-01-01T00:00:00.000Z","tool_id":"call_123","status":"success","output":"Successfully updated the todo list..."}"#;

#[test]
fn tool_use_write_todos_emits_todo_list() {
    let events = events("gemini", &[WRITE_TODOS]);
    let expected = json!({
        "type":"todo_list",
        "todoId":"call_123",
        "items":[
            {"text":"Research existing metrics","status":"pending"},
            {"text":"Design the system","status":"in_progress"}
        ]
    });
    assert_eq!(of_type(&events, "todo_list"), [&expected]);
}

#[test]
fn tool_use_write_todos_does_not_emit_tool_started() {
    let events = events("gemini", &[WRITE_TODOS, TODOS_WRITTEN]);
    assert_eq!(of_type(&events, "tool.started"), [""; 0]);
    assert_eq!(of_type(&events, "tool.completed"), [""; 0]);
    assert_eq!(of_type(&events, "todo_list").len(), 1);
}

#[test]
fn other_tools_still_emit_tool_started() {
    let call = r#"{"type":"tool_use","tool_name":"read_file","tool_id":"call_1","parameters":{"file_path":"a.txt"}}"#;
    let answer = r#"{"type":"tool_result","tool_id":"call_1","status":"success","output":"text"}"#;
    let events = events("gemini", &[call, answer]);
    assert_eq!(
        events[1..3],
        [
            json!({"type":"tool.started","toolName":"read_file","toolId":"call_1","input":{"file_path":"a.txt"}}),
            json!({"type":"tool.completed","toolName":"read_file","toolId":"call_1","output":"text"}),
        ]
    );
}

#[test]
fn description_maps_to_text() {
    let items = gemini_items(&json!([{"description":"Say \"hé\"\n","status":"pending"}]));
    assert_eq!(items, json!([{"text":"Say \"hé\"\n","status":"pending"}]));
}

#[test]
fn statuses_map_directly() {
    for status in ["pending", "in_progress", "completed", "cancelled"] {
        let items = gemini_items(&json!([{"description":"a","status":status}]));
        assert_eq!(items, json!([{"text":"a","status":status}]));
    }
}

#[test]
fn a_blocked_step_is_pending() {
    let items = gemini_items(&json!([{"description":"a","status":"blocked"}]));
    assert_eq!(items, json!([{"text":"a","status":"pending"}]));
}

#[test]
fn invalid_items_are_skipped() {
    let items = gemini_items(&json!([
        {"description":"","status":"pending"},
        {"description":"  \t","status":"pending"},
        {"status":"pending"},
        {"description":7,"status":"pending"},
        {"description":"weird","status":"someday"},
        null,
        "text",
        {"description":"good","status":"completed"}
    ]));
    assert_eq!(items, json!([{"text":"good","status":"completed"}]));
}

#[test]
fn a_list_of_invalid_items_is_an_empty_list() {
    assert_eq!(gemini_items(&json!([{"description":"","status":"pending"}])), json!([]));
}

#[test]
fn a_call_without_a_list_emits_nothing() {
    let call = r#"{"type":"tool_use","tool_name":"write_todos","tool_id":"c","parameters":{}}"#;
    let events = events("gemini", &[call]);
    let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["session.started", "error", "turn.completed"]);
}

/// The number of calls of a todo tool that were lost.
fn lost_calls(from: &str, lines: &[&str]) -> u64 {
    let written = translate_lines(from, "agent-event", lines);
    let lost = written.losses().iter().find(|lost| lost.0 == "calls of a todo tool without a list");
    lost.map_or(0, |lost| lost.1)
}

#[test]
fn a_call_without_a_list_is_counted_as_lost() {
    let call = r#"{"type":"tool_use","tool_name":"write_todos","tool_id":"c","parameters":{}}"#;
    let answer = r#"{"type":"tool_result","tool_id":"c","status":"success","output":"ok"}"#;
    assert_eq!(lost_calls("gemini", &[call, answer]), 1);
    assert_eq!(lost_calls("gemini", &[WRITE_TODOS, TODOS_WRITTEN]), 0);
    let lines = [
        claude_call("c1", "TaskCreate", &json!({"subject":"Look","description":"d"})),
        claude_call("c2", "TaskCreate", &json!({"subject":"Edit","description":"d"})),
        claude_answer("c1", &json!({"task":{"id":"1","subject":"Look"}})),
        claude_answer("c2", &json!({"task":{"id":"2","subject":"Edit"}})),
    ];
    assert_eq!(lost_calls("claude", &lines.each_ref().map(String::as_str)), 0);
}

#[test]
fn todo_id_is_tool_id_or_id() {
    for call in [WRITE_TODOS.to_owned(), WRITE_TODOS.replace("tool_id", "id")] {
        let events = events("gemini", &[&call]);
        assert_eq!(of_type(&events, "todo_list")[0]["todoId"], "call_123");
    }
}

#[test]
fn the_items_are_read_from_parameters_or_input() {
    let with_input = WRITE_TODOS.replace("parameters", "input").replace("tool_name", "name");
    let one = events("gemini", &[WRITE_TODOS]);
    let two = events("gemini", &[&with_input]);
    assert_eq!(of_type(&one, "todo_list"), of_type(&two, "todo_list"));
    assert_eq!(of_type(&two, "todo_list").len(), 1);
}

fn claude_call(id: &str, name: &str, input: &Value) -> String {
    let content = json!([{"type":"tool_use","id":id,"name":name,"input":input}]);
    let message = json!({"id":format!("message-{id}"),"content":content});
    json!({"type":"assistant","session_id":"s","message":message}).to_string()
}

fn claude_answer(id: &str, structured: &Value) -> String {
    let content = json!([{"type":"tool_result","tool_use_id":id,"content":"done"}]);
    json!({
        "type":"user","session_id":"s","message":{"content":content},"tool_use_result":structured
    })
    .to_string()
}

#[test]
fn claude_todo_write_emits_only_todo_list() {
    let todos = json!({"todos":[
        {"content":"A","status":"in_progress","activeForm":"Doing A"},
        {"content":"  ","status":"pending","activeForm":""},
        {"content":"C","status":"completed","activeForm":"Doing C"}
    ]});
    let call = claude_call("toolu_1", "TodoWrite", &todos);
    let events = events("claude", &[&call, &claude_answer("toolu_1", &json!({}))]);
    let list = json!({
        "type":"todo_list","todoId":"toolu_1",
        "items":[{"text":"A","status":"in_progress"},{"text":"C","status":"completed"}]
    });
    assert_eq!(events[1], list);
    assert_eq!(of_type(&events, "tool.started"), [""; 0]);
    assert_eq!(of_type(&events, "tool.completed"), [""; 0]);
}

#[test]
fn claude_task_tools_are_merged_into_the_complete_list() {
    let lines = [
        claude_call("c1", "TaskCreate", &json!({"subject":"Look","description":"d"})),
        claude_answer("c1", &json!({"task":{"id":"1","subject":"Look"}})),
        claude_call("c2", "TaskCreate", &json!({"subject":"Edit","description":"d"})),
        claude_answer("c2", &json!({"task":{"id":"2","subject":"Edit"}})),
        claude_call("c3", "TaskUpdate", &json!({"taskId":"1","status":"completed"})),
        claude_answer("c3", &json!({})),
    ];
    let events = events("claude", &lines.each_ref().map(String::as_str));
    let lists = of_type(&events, "todo_list");
    let list = |items: Value| json!({"type":"todo_list","todoId":"tasks","items":items});
    assert_eq!(
        lists,
        [
            &list(json!([{"text":"Look","status":"pending"}])),
            &list(json!([{"text":"Look","status":"pending"},{"text":"Edit","status":"pending"}])),
            &list(json!([{"text":"Look","status":"completed"},{"text":"Edit","status":"pending"}])),
        ]
    );
    assert_eq!(of_type(&events, "tool.started"), [""; 0]);
    assert_eq!(of_type(&events, "tool.completed"), [""; 0]);
}

#[test]
fn codex_todo_list_is_one_list_that_changes() {
    let item = |kind: &str, done: bool| {
        let items = json!([{"text":"Look","completed":done},{"text":"Edit","completed":false}]);
        json!({"type":kind,"item":{"id":"item_0","type":"todo_list","items":items}}).to_string()
    };
    let lines = [item("item.started", false), item("item.updated", true)];
    let events = events("codex", &lines.each_ref().map(String::as_str));
    let list = |first: &str| {
        let items = json!([{"text":"Look","status":first},{"text":"Edit","status":"pending"}]);
        json!({"type":"todo_list","todoId":"item_0","items":items})
    };
    assert_eq!(of_type(&events, "todo_list"), [&list("pending"), &list("completed")]);
}

#[test]
fn a_refused_list_is_replaced_by_the_list_before_it_under_its_id() {
    let refused = r#"{"type":"tool_result","tool_id":"call_2","status":"error","error":{"type":"x","message":"no"}}"#;
    let second =
        WRITE_TODOS.replace("call_123", "call_2").replace("Design the system", "Do nothing");
    let events = events("gemini", &[WRITE_TODOS, TODOS_WRITTEN, &second, refused]);
    let lists = of_type(&events, "todo_list");
    assert_eq!(lists.len(), 3);
    assert_eq!(lists[2]["items"], lists[0]["items"]);
    assert_eq!(lists[2]["todoId"], "call_2");
}

#[test]
fn an_unchanged_list_is_written_once() {
    // All its steps are invalid, and there was no list before it.
    let call = r#"{"type":"tool_use","tool_name":"write_todos","tool_id":"c","parameters":{"todos":[{"description":"","status":"pending"}]}}"#;
    let refused = r#"{"type":"tool_result","tool_id":"c","status":"error"}"#;
    let events = events("gemini", &[call, refused]);
    let list = json!({"type":"todo_list","todoId":"c","items":[]});
    assert_eq!(of_type(&events, "todo_list"), [&list]);
}

#[test]
fn a_sub_agents_list_does_not_replace_the_main_one() {
    let list = |step: &str| json!({"todos":[{"content":step,"status":"pending","activeForm":""}]});
    let of_subagent = |call: String| call.replacen('{', r#"{"parent_tool_use_id":"task-1","#, 1);
    let lines = [
        claude_call("a", "TodoWrite", &list("main")),
        of_subagent(claude_call("b", "TodoWrite", &list("side"))),
    ];
    let events = events("claude", &lines.each_ref().map(String::as_str));
    let lists = of_type(&events, "todo_list");
    assert_eq!(lists.len(), 1);
    assert_eq!(lists[0]["items"][0]["text"], "main");
}
