//! The request that a prompt of the AI SDK makes, in the forms of its versions.

use interlingua::json::Json;
use interlingua::mapper::{
    extract_tool_results, extract_user_message, tool_result_to_relay_response,
};
use serde_json::{Value, json};

fn prompt(value: Value) -> Json<'static> {
    Json::from_text(value.to_string()).unwrap()
}

#[test]
fn the_last_message_of_the_user_counts() {
    let messages = json!([
        {"role":"system","content":"Be brief."},
        {"role":"user","content":[{"type":"text","text":"first"}]},
        {"role":"assistant","content":[{"type":"text","text":"ok"}]},
        {"role":"user","content":[
            {"type":"text","text":"one "},
            {"type":"file","mediaType":"image/png","data":"AA=="},
            {"type":"text","text":"two"}
        ]}
    ]);
    assert_eq!(extract_user_message(&prompt(messages)).as_deref(), Some("one two"));
}

/// Regression: a prompt that consists of a file was an error.
#[test]
fn a_prompt_without_text_has_no_message() {
    let file =
        json!([{"role":"user","content":[{"type":"file","mediaType":"image/png","data":"AA=="}]}]);
    assert_eq!(extract_user_message(&prompt(file)), None);
    for other in [json!([]), json!({}), json!("x"), json!([{"role":"user"}])] {
        assert_eq!(extract_user_message(&prompt(other.clone())), None, "{other}");
        assert_eq!(extract_tool_results(&prompt(other)), []);
    }
    let text = json!([{"role":"user","content":"plain"}]);
    assert_eq!(extract_user_message(&prompt(text)).as_deref(), Some("plain"));
}

fn result(output: Value) -> Value {
    json!({"type":"tool-result","toolCallId":"req-1","toolName":"getFormSnapshot","output":output})
}

#[test]
fn a_result_is_a_value_an_error_or_a_denial() {
    let cases = [
        (json!({"type":"json","value":{"fields":[1]}}), Ok(r#"{"fields":[1]}"#)),
        (json!({"type":"text","value":"done"}), Ok(r#""done""#)),
        (
            json!({"type":"content","value":[{"type":"text","text":"a"}]}),
            Ok(r#"[{"text":"a","type":"text"}]"#),
        ),
        (json!({"type":"error-text","value":"no form"}), Err("no form")),
        (json!({"type":"error-json","value":{"code":7}}), Err(r#"{"code":7}"#)),
        (json!({"type":"execution-denied","reason":"not now"}), Err("not now")),
        (json!({"type":"execution-denied"}), Err("The user denied the tool call")),
    ];
    for (output, expected) in cases {
        let messages = json!([{"role":"tool","content":[result(output.clone())]}]);
        let results = extract_tool_results(&prompt(messages));
        assert_eq!(results.len(), 1, "{output}");
        assert_eq!(
            (&*results[0].tool_call_id, &*results[0].tool_name),
            ("req-1", "getFormSnapshot")
        );
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        match (&results[0].result, expected) {
            (Ok(one), Ok(two)) => assert_eq!(value(one.get()), value(two)),
            (one, two) => assert_eq!(one.as_ref().map(|_| ()).map_err(|it| &**it), two.map(|_| ())),
        }
    }
}

/// Regression: all results of the conversation were sent again with every prompt.
#[test]
fn only_the_results_at_the_end_are_new() {
    let ok = || json!({"type":"json","value":{"fields":[]}});
    let call = json!({"role":"assistant","content":[{"type":"tool-call","toolCallId":"req-1","toolName":"getFormSnapshot","input":{}}]});
    let messages = json!([
        {"role":"user","content":[{"type":"text","text":"go"}]},
        call,
        {"role":"tool","content":[result(ok())]},
        call,
        {"role":"tool","content":[result(ok()), {"type":"tool-approval-response","approvalId":"a","approved":true}]},
        {"role":"tool","content":[result(ok())]},
    ]);
    assert_eq!(extract_tool_results(&prompt(messages)).len(), 2);
}

#[test]
fn a_result_becomes_the_response_of_the_relay() {
    let messages =
        json!([{"role":"tool","content":[result(json!({"type":"json","value":{"fields":[]}}))]}]);
    let result = extract_tool_results(&prompt(messages)).remove(0);
    let value = result.result.unwrap();
    let response = tool_result_to_relay_response(&result.tool_name, &result.tool_call_id, &value);
    assert_eq!(response, r#"{"type":"snapshot_response","requestId":"req-1","fields":[]}"#);
}

/// The form of the document, from before outputs had a type.
#[test]
fn an_older_result_is_a_bare_value() {
    let part = json!({"type":"tool-result","toolCallId":"c","toolName":"t","result":{"a":1}});
    let failed =
        json!({"type":"tool-result","toolCallId":"c","toolName":"t","result":"no","isError":true});
    let results = extract_tool_results(&prompt(json!([{"role":"tool","content":[part, failed]}])));
    assert_eq!(results[0].result.as_ref().map(Json::get), Ok(r#"{"a":1}"#));
    assert_eq!(results[1].result.as_ref().map(Json::get), Err(&"no".to_owned()));
}
