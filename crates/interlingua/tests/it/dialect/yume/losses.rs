//! Content that is shortened or left out because a line of Yume's contract is too short is reported
//! as lost.
use crate::support::{Written, translate_lines};
use serde_json::{Value, json};

/// The stream written for Yume from our own events.
fn written(events: &[Value]) -> Written {
    let line = |event: &Value| {
        let mut event = event.clone();
        event["interlingua"] = json!(1);
        event.to_string()
    };
    let lines: Vec<String> = events.iter().map(line).collect();
    let written = translate_lines("events", "yume", &lines);
    assert!(written.text().lines().all(|line| line.len() < 100_000));
    written
}

/// The names of what was lost, with counts.
fn lost(written: &Written) -> Vec<(String, u64)> {
    let losses = written.losses().iter();
    losses.map(|(what, count)| (what.to_owned(), count)).collect()
}

fn one(what: &str) -> Vec<(String, u64)> {
    vec![(what.to_owned(), 1)]
}

fn completed() -> Value {
    json!({"type": "turn_ended", "outcome": "completed"})
}

#[test]
fn long_names_and_ids_are_shortened() {
    let long = "n".repeat(600);
    let started = json!({"type": "session_started", "id": "s", "model": long});
    assert_eq!(lost(&written(&[started, completed()])), one("end of a long name"));
    let started = json!({"type": "session_started", "id": long});
    assert_eq!(lost(&written(&[started, completed()])), one("end of a long id"));
}

#[test]
fn two_long_call_ids_stay_different() {
    let mut events = Vec::new();
    for at in [1, 2] {
        let call = format!("{}{at}", "c".repeat(600));
        events.push(json!({"type": "tool_started", "call": call, "name": "t", "input": {}}));
        events.push(json!({"type": "tool_ended", "call": call, "status": "completed"}));
    }
    events.push(completed());
    let written = written(&events);
    assert_eq!(lost(&written), [("end of a long id".to_owned(), 4)]);
    let records = written.records();
    let ids = |kind: &str, field: &str| -> Vec<Value> {
        let of_kind = records.iter().filter(|record| record["type"] == kind);
        of_kind.map(|record| record[field].clone()).collect()
    };
    let calls = ids("tool_use", "id");
    assert_ne!(calls[0], calls[1]);
    assert_eq!(calls, ids("tool_result", "tool_use_id"));
}

#[test]
fn long_errors_are_shortened() {
    let message = "e".repeat(60_000);
    let error = json!({"type": "error", "class": "other", "message": message, "fatal": true});
    let ended = json!({"type": "turn_ended", "outcome": "failed", "cause": message});
    // It is in its own record and in the list of the result.
    let expected = [("end of a long error message".to_owned(), 2)];
    assert_eq!(lost(&written(&[error, ended])), expected);
}

#[test]
fn errors_beyond_the_line_limit_of_a_result_are_counted() {
    let errors: Vec<String> = (0..30).map(|at| format!("{at}{}", "e".repeat(5000))).collect();
    let ended = json!({"type": "turn_ended", "outcome": "failed", "errors": errors});
    let written = written(&[ended]);
    let records = written.records();
    let result = records.iter().find(|record| record["type"] == "result").unwrap();
    let written_count = result["errors"].as_array().unwrap().len() as u64;
    let left_out = [("error of a result over the line limit".to_owned(), 30 - written_count)];
    assert_eq!(lost(&written), left_out);
}

#[test]
fn a_text_that_is_too_long_for_a_result_is_left_out_of_it() {
    let text = "word ".repeat(30_000);
    let block = json!({"type": "block", "kind": "text", "text": text});
    let written = written(&[block, completed()]);
    assert_eq!(lost(&written), one("text of a result over the line limit"));
    let records = written.records();
    let texts = records.iter().filter(|record| record["type"] == "text");
    let joined: String = texts.map(|record| record["content"].as_str().unwrap()).collect();
    assert_eq!(joined, text);
}

#[test]
fn tools_and_models_beyond_the_line_limit_are_counted() {
    let tools: Vec<String> = (0..2000).map(|at| format!("{at}-{}", "t".repeat(100))).collect();
    let started = json!({"type": "session_started", "id": "s", "tools": tools});
    let written_tools = written(&[started, completed()]);
    let listed = written_tools.records()[0]["tools"].as_array().unwrap().len() as u64;
    let expected = [("name of a tool over the line limit".to_owned(), 2000 - listed)];
    assert_eq!(lost(&written_tools), expected);
    let models: Vec<Value> = (0..200)
        .map(|at| json!({"model": format!("{at}-{}", "m".repeat(100)), "input": 1, "output": 2}))
        .collect();
    let ended = json!({"type": "turn_ended", "outcome": "completed", "by_model": models});
    let written_models = written(&[ended]);
    let records = written_models.records();
    let result = records.iter().find(|record| record["type"] == "result").unwrap();
    let written_count = result["modelUsage"].as_object().unwrap().len() as u64;
    let expected = [("counts of a model over the line limit".to_owned(), 200 - written_count)];
    assert_eq!(lost(&written_models), expected);
}

#[test]
fn content_that_fits_is_not_lost() {
    let call = json!({"type": "tool_started", "call": "c", "name": "t", "input": {}});
    let ended = json!({"type": "tool_ended", "call": "c", "status": "completed", "output": "x"});
    assert_eq!(lost(&written(&[call, ended, completed()])), []);
}
