//! The todo list of goose is one item: the call that writes it is the plan, in every dialect.

use serde_json::Value;

use crate::support::{Case, translate, translate_lines};

fn todos(to: &str) -> Vec<Value> {
    let case = Case::of("goose").into_iter().find(|case| case.name == "goose/todos").unwrap();
    translate(to, &case.input, &case.exit).records()
}

#[test]
fn the_plan_names_the_call_that_writes_it() {
    let events = todos("events");
    let calls: Vec<_> = events.iter().filter(|event| event["type"] == "tool_started").collect();
    let plans: Vec<_> = events.iter().filter(|event| event["type"] == "plan_updated").collect();
    assert_eq!((calls.len(), plans.len()), (2, 2));
    for (call, plan) in calls.iter().zip(&plans) {
        assert_eq!(call["call"], plan["call"]);
    }
}

/// Regression: a call of `todo__todo_write` was written together with one that the writer
/// generated.
#[test]
fn no_additional_call_is_generated() {
    let claude = todos("claude");
    let blocks = claude.iter().flat_map(|record| record["message"]["content"].as_array()).flatten();
    let calls: Vec<_> = blocks.filter(|block| block["type"] == "tool_use").collect();
    let steps = |call: &Value| call["input"]["todos"].as_array().map(Vec::len);
    let found: Vec<_> = calls.iter().map(|call| (call["name"].as_str(), steps(call))).collect();
    assert_eq!(found, [(Some("TodoWrite"), Some(4)), (Some("TodoWrite"), Some(3))]);

    let yume = todos("yume");
    let calls: Vec<_> = yume.iter().filter(|record| record["type"] == "tool_use").collect();
    let found: Vec<_> = calls.iter().map(|call| (call["name"].as_str(), steps(call))).collect();
    assert_eq!(found, [(Some("TodoWrite"), Some(4)), (Some("TodoWrite"), Some(3))]);

    for (to, kind) in [("ai-sdk", "tool-call"), ("ai-sdk-v4", "tool-call"), ("giselle", "tool_use")]
    {
        let calls = todos(to).iter().filter(|record| record["type"] == kind).count();
        assert_eq!(calls, 2, "{to}");
    }
}

#[test]
fn a_list_that_the_tool_refuses_is_withdrawn() {
    let call = r#"{"type":"message","message":{"id":"m","role":"assistant","content":[{"type":"toolRequest","id":"c","toolCall":{"status":"success","value":{"name":"todo__todo_write","arguments":{"content":"- [ ] one"}}}}]}}"#;
    let answer = r#"{"type":"message","message":{"id":"n","role":"user","content":[{"type":"toolResponse","id":"c","toolResult":{"status":"error","error":"too long"}}]}}"#;
    let events = translate_lines("goose", "events", &[call, answer]).records();
    let plans: Vec<_> = events.iter().filter(|event| event["type"] == "plan_updated").collect();
    assert_eq!(plans.last().unwrap()["synthetic"], "refused");
    assert!(plans.last().unwrap()["items"].as_array().is_none_or(Vec::is_empty));
}
