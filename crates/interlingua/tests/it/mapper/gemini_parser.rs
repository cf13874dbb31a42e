//! The test cases that the document on `write_todos` lists.

use interlingua::dialect::Team;
use interlingua::mapper::GeminiParser;
use serde_json::{Value, json};

fn parse(record: Value) -> Vec<Value> {
    let mut parser = GeminiParser::new(Team::default());
    read(&parser.parse_chunk(format!("{record}\n").as_bytes(), NOW))
}

const NOW: u64 = 1_700_000_000_000;

fn read(events: &[String]) -> Vec<Value> {
    events.iter().map(|event| serde_json::from_str(event).unwrap()).collect()
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
fn the_result_of_write_todos_is_not_emitted_either() {
    let mut parser = GeminiParser::new(Team::default());
    parser.parse_chunk(format!("{}\n", todos(json!([]))).as_bytes(), NOW);
    let result = b"{\"type\":\"tool_result\",\"tool_id\":\"call_123\",\"status\":\"success\"}\n";
    assert!(parser.parse_chunk(result, NOW).is_empty());
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
fn the_items_are_read_from_parameters_or_input() {
    let record = json!({
        "type":"tool_use","tool_name":"write_todos","tool_id":"c",
        "input":{"todos":[{"description":"x","status":"pending"}]}
    });
    assert_eq!(parse(record)[0]["items"], json!([{"text":"x","status":"pending"}]));
}

const HELLO: &str = r#"{"type":"message","role":"assistant","content":"hi"}"#;

/// Regression: a synthetic start preceded it.
#[test]
fn nothing_precedes_the_event_of_the_first_record() {
    let events = parse(serde_json::from_str(HELLO).unwrap());
    assert_eq!(events.len(), 1);
    let team = json!({"teamName":"default","memberName":"agent","memberDisplayName":"agent","memberRole":"agent"});
    let id = &events[0]["eventId"];
    assert_eq!(
        events[0],
        json!({
            "type":"text","eventId":id,"agentId":"agent","agentType":"google-gemini",
            "teamMetadata":team,"timestamp":NOW,"text":"hi","role":"assistant","category":"message"
        })
    );
}

#[test]
fn flush_gives_nothing_if_no_line_is_open() {
    let mut parser = GeminiParser::new(Team::default());
    assert!(parser.flush(NOW).is_empty());
    parser.parse_chunk(format!("{HELLO}\n").as_bytes(), NOW);
    assert!(parser.flush(NOW).is_empty(), "the turn is not ended");
    parser.parse_chunk(b"  \n  ", NOW);
    assert!(parser.flush(NOW).is_empty());
}

#[test]
fn flush_gives_the_one_event_of_a_line_without_its_end() {
    let mut parser = GeminiParser::new(Team::default());
    assert!(parser.parse_chunk(HELLO.as_bytes(), NOW).is_empty());
    let last = read(&parser.flush(NOW));
    assert_eq!((last.len(), &last[0]["text"]), (1, &json!("hi")));
    assert!(parser.flush(NOW).is_empty(), "a second time");
    assert_eq!(parser.parse_chunk(format!("{HELLO}\n").as_bytes(), NOW).len(), 1);
}

#[test]
fn flush_gives_the_text_of_a_broken_line() {
    let mut parser = GeminiParser::new(Team::default());
    let (start, end) = HELLO.split_at(20);
    assert!(parser.parse_chunk(start.as_bytes(), NOW).is_empty());
    let last = read(&parser.flush(NOW + 1));
    assert_eq!(last.len(), 1, "{last:?}");
    assert_eq!(
        (&last[0]["type"], &last[0]["text"], &last[0]["timestamp"]),
        (&json!("text"), &json!(start), &json!(NOW + 1))
    );
    // A broken line is kept separate from what follows.
    let events = read(&parser.parse_chunk(format!("{end}\n{HELLO}\n").as_bytes(), NOW));
    assert_eq!(events[0]["code"], "JSONL_PARSE_ERROR");
    assert_eq!(events[1]["text"], "hi");
}

#[test]
fn a_list_without_an_id_gets_a_generated_id() {
    let record = json!({"type":"tool_use","tool_name":"write_todos","parameters":{"todos":[]}});
    let line = format!("{record}\n");
    let mut parser = GeminiParser::new(Team::default());
    let mut lists = read(&parser.parse_chunk(line.as_bytes(), NOW));
    lists.extend(read(&parser.parse_chunk(line.as_bytes(), NOW)));
    parser.reset();
    lists.extend(read(&parser.parse_chunk(line.as_bytes(), NOW)));
    let ids: std::collections::BTreeSet<_> =
        lists.iter().map(|list| list["todoId"].as_str().unwrap()).collect();
    assert_eq!((lists.len(), ids.len()), (3, 3), "{lists:?}");
    assert!(lists.iter().all(|list| list["items"] == json!([])));
}

#[test]
fn events_have_the_time_of_the_caller() {
    let record = json!({"type":"message","role":"assistant","content":"hi","timestamp":"2025-01-01T00:00:00.000Z"});
    assert_eq!(parse(record)[0]["timestamp"], NOW);
}

#[test]
fn a_system_message_is_text() {
    let events = parse(json!({"type":"message","role":"system","content":"careful"}));
    assert_eq!(events.len(), 1);
    assert_eq!(
        (&events[0]["type"], &events[0]["text"], &events[0]["role"], &events[0]["category"]),
        (&json!("text"), &json!("careful"), &json!("system"), &Value::Null)
    );
    assert!(parse(json!({"type":"message","role":"user","content":"go"})).is_empty());
}

#[test]
fn an_output_may_be_wrapped() {
    let mut parser = GeminiParser::new(Team::default());
    let call = r#"{"type":"tool_use","tool_name":"read_file","tool_id":"c","parameters":{}}"#;
    parser.parse_chunk(format!("{call}\n").as_bytes(), NOW);
    let answer =
        r#"{"type":"tool_result","tool_id":"c","status":"success","output":{"text":"plain"}}"#;
    let events = read(&parser.parse_chunk(format!("{answer}\n").as_bytes(), NOW));
    assert_eq!(events[0]["output"], "plain");
}

#[test]
fn every_init_is_a_start() {
    let init = r#"{"type":"init","session_id":"s","model":"m"}"#;
    let mut parser = GeminiParser::new(Team::default());
    for _ in 0..3 {
        let events = read(&parser.parse_chunk(format!("{init}\n").as_bytes(), NOW));
        let kinds: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["session.started"]);
    }
}

#[test]
fn parsers_of_different_agents_make_different_ids() {
    let ids = |agent: &str| {
        let team = Team { agent_id: agent.to_owned(), ..Team::default() };
        let mut parser = GeminiParser::new(team);
        let mut events = parser.parse_chunk(format!("{HELLO}\n{HELLO}\n").as_bytes(), NOW);
        parser.reset();
        events.extend(parser.parse_chunk(format!("{HELLO}\n").as_bytes(), NOW));
        read(&events).iter().map(|event| event["eventId"].to_string()).collect::<Vec<_>>()
    };
    let all = [ids("one"), ids("two")].concat();
    let different: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!((all.len(), different.len()), (6, 6));
}
