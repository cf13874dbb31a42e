//! The test cases that the document on `write_todos` lists.

use interlingua::dialect::Team;
use interlingua::mapper::GeminiParser;
use serde_json::{Value, json};

fn parse(record: Value) -> Vec<Value> {
    let mut parser = GeminiParser::new(Team::default());
    let events = parser.parse_chunk(format!("{record}\n").as_bytes());
    let events = events.iter().map(|event| serde_json::from_str(event).unwrap());
    events.filter(|event: &Value| event["type"] != "session.started").collect()
}

fn todos(items: Value) -> Value {
    json!({"type":"tool_use","tool_name":"write_todos","tool_id":"call_123","parameters":{"todos":items}})
}

#[test]
fn write_todos_emits_a_todo_list_and_no_tool_started() {
    let events = parse(todos(json!([
        {"description":"Research existing metrics","status":"pending"},
        {"description":"Design the system","status":"in_progress"}
    ])));
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["type"], "todo_list");
    assert_eq!(
        events[0]["items"],
        json!([
            {"text":"Research existing metrics","status":"pending"},
            {"text":"Design the system","status":"in_progress"}
        ])
    );
}

#[test]
fn its_result_is_not_told_either() {
    let mut parser = GeminiParser::new(Team::default());
    parser.parse_chunk(format!("{}\n", todos(json!([]))).as_bytes());
    let result = b"{\"type\":\"tool_result\",\"tool_id\":\"call_123\",\"status\":\"success\"}\n";
    assert!(parser.parse_chunk(result).is_empty());
}

#[test]
fn other_tools_still_emit_tool_started() {
    let record = json!({"type":"tool_use","tool_name":"read_file","tool_id":"t1","parameters":{"file_path":"a"}});
    let events = parse(record);
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["type"], "tool.started");
    assert_eq!(events[0]["toolName"], "read_file");
    assert_eq!(events[0]["input"], json!({"file_path":"a"}));
}

#[test]
fn statuses_map_directly() {
    for status in ["pending", "in_progress", "completed", "cancelled"] {
        let events = parse(todos(json!([{"description":"x","status":status}])));
        assert_eq!(events[0]["items"], json!([{"text":"x","status":status}]));
    }
}

#[test]
fn invalid_items_are_skipped() {
    let events = parse(todos(json!([
        {"description":"","status":"pending"},
        {"description":"kept","status":"pending"},
        {"description":"odd","status":"bogus"}
    ])));
    assert_eq!(events[0]["items"], json!([{"text":"kept","status":"pending"}]));
}

#[test]
fn the_todo_id_is_the_tool_id_or_the_id() {
    assert_eq!(parse(todos(json!([])))[0]["todoId"], "call_123");
    let record =
        json!({"type":"tool_use","name":"write_todos","id":"call_9","parameters":{"todos":[]}});
    assert_eq!(parse(record)[0]["todoId"], "call_9");
}

#[test]
fn parameters_or_input() {
    let record = json!({
        "type":"tool_use","tool_name":"write_todos","tool_id":"c",
        "input":{"todos":[{"description":"x","status":"pending"}]}
    });
    assert_eq!(parse(record)[0]["items"], json!([{"text":"x","status":"pending"}]));
}

#[test]
fn flush_ends_a_turn_that_nobody_ended_and_begins_anew() {
    let mut parser = GeminiParser::new(Team::default());
    let line = "{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"hi\",\"delta\":true}\n";
    parser.parse_chunk(line.as_bytes());
    let last: Vec<Value> =
        parser.flush().iter().map(|event| serde_json::from_str(event).unwrap()).collect();
    assert_eq!(last.last().unwrap()["finishReason"], "error");
    assert_eq!(parser.parse_chunk(line.as_bytes()).len(), 2, "a session and its text");
}
