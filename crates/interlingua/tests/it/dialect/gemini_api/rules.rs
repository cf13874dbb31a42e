//! `check` reports what a response of the `generateContent` API must not do.

use serde_json::{Value, json};

use super::reading::{chunk, last, stream};
use crate::support::Case;
use crate::support::rules::violations;

fn broken(chunks: &[Value]) -> Vec<&'static str> {
    let mut rules = violations("gemini-api", &stream(chunks));
    rules.dedup();
    rules
}

fn hi() -> Value {
    json!([{"text": "Hi"}])
}

#[test]
fn a_complete_response_breaks_no_rule() {
    assert_eq!(broken(&[chunk(hi()), last(hi(), "STOP")]), [""; 0]);
    for case in Case::of("gemini-api") {
        let name = case.name.split('/').next_back().unwrap();
        let rules = violations("gemini-api", &String::from_utf8_lossy(&case.input));
        let allowed = name.contains("cut") || name == "unusual-framing" || name == "two-responses";
        assert!(rules.is_empty() || allowed, "{name}: {rules:?}");
    }
}

#[test]
fn a_response_ends_with_its_finish_reason() {
    assert_eq!(broken(&[chunk(hi())])[0], "finish-reason-last");
    assert_eq!(broken(&[last(hi(), "STOP"), chunk(hi())])[0], "finish-reason-last");
    assert_eq!(broken(&[last(hi(), "BRAND_NEW")]), ["finish-reason"]);
    let mut another = last(hi(), "STOP");
    another["responseId"] = json!("another");
    assert_eq!(broken(&[chunk(hi()), another])[0], "finish-reason-last");
}

#[test]
fn parts_and_counts_are_checked() {
    assert_eq!(
        broken(&[last(json!([{"text": "a", "inlineData": {}}]), "STOP")]),
        ["one-kind-of-data"]
    );
    assert_eq!(broken(&[last(json!([{"functionCall": {"args": 1}}]), "STOP")])[0], "call-fields");
    let code = json!([{"codeExecutionResult": {"outcome": "OUTCOME_OK"}}]);
    assert_eq!(broken(&[last(code, "STOP")])[0], "code-result");
    let mut end = last(hi(), "STOP");
    end["usageMetadata"]["promptTokenCount"] = json!(3);
    let mut first = chunk(hi());
    first["usageMetadata"] = json!({"promptTokenCount": 10});
    assert_eq!(broken(&[first, end]), ["usage"]);
}

#[test]
fn blocks_and_errors_have_their_fields() {
    assert_eq!(broken(&[json!({"error": {"code": 400, "message": "x"}})]), ["error-fields"]);
    let mut blocked = last(hi(), "STOP");
    blocked["promptFeedback"] = json!({"blockReason": "SAFETY"});
    assert_eq!(broken(&[blocked]), ["block-reason"]);
}
