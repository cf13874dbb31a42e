//! Tool results as relay responses and back, as the document on sessions maps them.

use interlingua::json::Json;
use interlingua::mapper::{relay_response_to_tool_result, tool_result_to_relay_response};
use serde_json::{Value, json};

fn respond(tool: &str, result: Value) -> Value {
    let result = Json::from_text(result.to_string()).unwrap();
    serde_json::from_str(&tool_result_to_relay_response(tool, "req-1", &result)).unwrap()
}

#[test]
fn a_form_snapshot_is_a_snapshot_response() {
    assert_eq!(
        respond("getFormSnapshot", json!({"fields":[{"fieldId":"bt:email"}]})),
        json!({"type":"snapshot_response","requestId":"req-1","fields":[{"fieldId":"bt:email"}]})
    );
}

#[test]
fn form_actions_are_an_execute_response() {
    assert_eq!(
        respond("executeFormActions", json!({"report":{"applied":2,"skipped":1}})),
        json!({"type":"execute_response","requestId":"req-1","report":{"applied":2,"skipped":1}})
    );
}

#[test]
fn an_unknown_tool_is_an_error_response() {
    assert_eq!(
        respond("other", json!({})),
        json!({"type":"error_response","requestId":"req-1","message":"Unknown tool: other"})
    );
}

#[test]
fn a_result_may_be_wrapped_as_the_ai_sdk_does() {
    let fields = json!({"fields":[1]});
    for wrapped in [
        json!({"type":"json","value":fields}),
        json!({"value":{"value":fields}}),
        json!([{"type":"text","text":fields.to_string()}]),
        json!({"type":"content","value":[{"type":"text","text":fields.to_string()}]}),
        json!({"type":"text","value":fields.to_string()}),
    ] {
        let response = respond("getFormSnapshot", wrapped.clone());
        assert_eq!(response["fields"], json!([1]), "{wrapped}");
    }
}

/// Regression: a tool error became a snapshot whose fields were the error's text.
#[test]
fn a_tool_error_is_an_error_response_with_its_reason() {
    for (result, message) in [
        (json!({"type":"error-text","value":"boom"}), "boom"),
        (json!({"type":"error-json","value":{"code":7}}), r#"{"code":7}"#),
        (json!({"type":"execution-denied","reason":"not now"}), "not now"),
        (json!({"type":"execution-denied"}), "The user denied the tool call"),
        (json!("boom"), "The result of getFormSnapshot has no `fields`"),
    ] {
        assert_eq!(
            respond("getFormSnapshot", result),
            json!({"type":"error_response","requestId":"req-1","message":message})
        );
    }
}

#[test]
fn a_response_is_read_back() {
    for (tool, result) in [
        ("getFormSnapshot", json!({"fields":[1,2]})),
        ("executeFormActions", json!({"report":{"applied":1}})),
    ] {
        let response = Json::from_text(respond(tool, result.clone()).to_string()).unwrap();
        let answer = relay_response_to_tool_result(&response).unwrap();
        assert_eq!((answer.tool, &*answer.call), (Some(tool), "req-1"));
        let actual: Value = serde_json::from_str(answer.result.unwrap().get()).unwrap();
        assert_eq!(actual, result);
    }
    let failed = Json::from_text(respond("other", json!({})).to_string()).unwrap();
    let answer = relay_response_to_tool_result(&failed).unwrap();
    assert_eq!(answer.result, Err("Unknown tool: other".to_owned()));
    let foreign = Json::from_text("{\"type\":\"ready\"}".to_owned()).unwrap();
    assert!(relay_response_to_tool_result(&foreign).is_none());
}

/// Nested wrappings are followed only to a limited depth.
#[test]
fn deeply_nested_wrappings_are_not_followed() {
    let mut wrapped = json!({"fields":[]});
    for _ in 0..1000 {
        wrapped = json!({"value":wrapped});
        if serde_json::to_string(&wrapped).unwrap().len() > 900 {
            break;
        }
    }
    assert_eq!(respond("getFormSnapshot", wrapped)["type"], "error_response");
}
