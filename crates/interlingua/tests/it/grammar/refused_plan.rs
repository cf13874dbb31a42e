//! A plan that is announced and then refused is replaced by the plan before it.

use serde_json::json;

use crate::support::translate_lines;

#[test]
fn a_refused_plan_is_replaced_by_the_plan_before_it() {
    let todos = |id: &str, list: serde_json::Value| {
        json!({"type":"tool_use","timestamp":"t","tool_name":"write_todos","tool_id":id,"parameters":{"todos":list}})
            .to_string()
    };
    let result = |id: &str, status: &str| {
        json!({"type":"tool_result","timestamp":"t","tool_id":id,"status":status}).to_string()
    };
    let lines = [
        todos("a", json!([{"description":"Look","status":"pending"}])),
        result("a", "success"),
        todos("b", json!([{"description":"","status":"odd"}])),
        result("b", "error"),
    ];
    let records = translate_lines("gemini", "events", &lines).records();
    let plans: Vec<_> = records.iter().filter(|event| event["type"] == "plan_updated").collect();
    assert_eq!(plans.len(), 3);
    assert_eq!(plans[2]["items"][0]["text"], "Look");
    assert_eq!(plans[2]["synthetic"], "refused");
}
