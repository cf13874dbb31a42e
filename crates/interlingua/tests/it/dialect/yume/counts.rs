//! Counts for Yume: stated counts are written, and only missing ones are estimated.
use crate::support::{Written, translate_lines};
use serde_json::{Value, json};

fn result(written: &Written) -> Value {
    let records = written.records();
    let result = records.iter().find(|record| record["type"] == "result");
    result.cloned().unwrap_or_else(|| panic!("no result in {}", written.text()))
}

/// The turn that a `result` of Yume's contract ends, in our own events.
fn turn_read(result: &Value) -> Value {
    let written = translate_lines("yume", "events", &[&result.to_string()]);
    let events = written.records();
    events.into_iter().find(|event| event["type"] == "turn_ended").unwrap()
}

const GEMINI_INIT: &str =
    r#"{"type":"init","timestamp":"t","session_id":"g1","model":"gemini-2.5-pro"}"#;

fn gemini(status: &str, stats: &Value) -> Written {
    let text = r#"{"type":"message","timestamp":"t","role":"assistant","content":"Hello, this is a longer answer.","delta":true}"#;
    let end = json!({"type": "result", "timestamp": "t", "status": status, "stats": stats});
    translate_lines("gemini", "yume", &[GEMINI_INIT, text, &end.to_string()])
}

#[test]
fn the_counts_of_each_model_are_written() {
    let models = json!({
        "gemini-2.5-pro": {"total_tokens": 30, "input_tokens": 20, "output_tokens": 10, "cached": 4, "input": 16},
        "gemini-2.5-flash": {"total_tokens": 8, "input_tokens": 5, "output_tokens": 3, "cached": 0, "input": 5},
    });
    let stats = json!({
        "total_tokens": 38, "input_tokens": 25, "output_tokens": 13, "cached": 4, "input": 21,
        "models": models,
    });
    assert_eq!(
        result(&gemini("success", &stats))["modelUsage"],
        json!({
            "gemini-2.5-flash": {"inputTokens": 5, "outputTokens": 3, "cacheReadInputTokens": 0},
            "gemini-2.5-pro": {"inputTokens": 16, "outputTokens": 10, "cacheReadInputTokens": 4},
        })
    );
    let alone = json!({"total_tokens": 38, "input_tokens": 25, "output_tokens": 13});
    assert_eq!(result(&gemini("success", &alone)).get("modelUsage"), None);
}

#[test]
fn the_cost_of_a_turn_is_that_of_its_only_model() {
    let claude = json!({
        "type": "result", "subtype": "success", "is_error": false, "duration_ms": 5,
        "duration_api_ms": 4, "num_turns": 1, "result": "", "session_id": "s", "total_cost_usd": 0.25,
        "usage": {"input_tokens": 7, "output_tokens": 9},
        "modelUsage": {"claude-x": {
            "inputTokens": 7, "outputTokens": 9, "cacheReadInputTokens": 1,
            "cacheCreationInputTokens": 2, "webSearchRequests": 0, "costUSD": 0.25,
        }},
    });
    let written = translate_lines("claude", "yume", &[&claude.to_string()]);
    let counts = json!({
        "inputTokens": 7, "outputTokens": 9, "cacheReadInputTokens": 1,
        "cacheCreationInputTokens": 2, "costUSD": 0.25,
    });
    let result = result(&written);
    assert_eq!(result["modelUsage"], json!({ "claude-x": counts }));
    // It is read back.
    let turn = turn_read(&result);
    let model = json!({
        "scope": "turn", "model": "claude-x", "input": 7, "cache_read": 1, "cache_write": 2,
        "output": 9,
    });
    assert_eq!(turn["by_model"], json!([model]));
    assert_eq!(turn["cost"]["usd"], 0.25);
}

#[test]
fn the_cost_of_models_is_the_cost_of_a_turn_that_states_none() {
    let turn = turn_read(&json!({
        "type": "result", "is_error": false,
        "modelUsage": {"a": {"inputTokens": 1, "costUSD": 0.5}, "b": {"outputTokens": 2, "costUsd": 0.25}},
    }));
    assert_eq!(turn["cost"]["usd"], 0.75);
    assert_eq!(turn["by_model"].as_array().unwrap().len(), 2);
}

#[test]
fn counts_of_gemini_need_no_total() {
    let stats = json!({"input_tokens": 120, "output_tokens": 310, "cached": 20});
    let result = result(&gemini("success", &stats));
    let usage = json!({"input_tokens": 100, "output_tokens": 310, "cache_read_input_tokens": 20});
    assert_eq!((&result["usage"], result.get("usage_estimated")), (&usage, None));
}

#[test]
fn the_last_request_of_opencode_is_stated_and_not_estimated() {
    let lines = [
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"OpenCode","version":"1.18.33"},"agentCapabilities":{}}}"#,
        r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}"#,
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"bash","kind":"execute","status":"pending","rawInput":{"command":"ls"}}}}"#,
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","content":[{"type":"content","content":{"type":"text","text":"a.txt"}}]}}}"#,
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Done, there is one file."}}}}"#,
        r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":1000,"outputTokens":20,"totalTokens":1020},"_meta":{}}}"#,
    ];
    let result = result(&translate_lines("acp", "yume", &lines));
    let usage = json!({"input_tokens": 1000, "output_tokens": 20});
    assert_eq!((&result["usage"], result.get("usage_estimated")), (&usage, None));
}

#[test]
fn the_counts_of_a_truncated_turn_are_those_of_its_models() {
    let claude = json!({
        "type": "result", "subtype": "error_during_execution", "is_error": true, "duration_ms": 5,
        "duration_api_ms": 4, "num_turns": 1, "session_id": "s", "total_cost_usd": 0.25,
        "terminal_reason": "aborted_streaming", "errors": [],
        "usage": {"input_tokens": 0, "output_tokens": 0},
        "modelUsage": {
            "a": {"inputTokens": 7, "outputTokens": 9, "cacheReadInputTokens": 1},
            "b": {"inputTokens": 70, "outputTokens": 90},
        },
    });
    let result = result(&translate_lines("claude", "yume", &[&claude.to_string()]));
    assert_eq!(result["subtype"], "cancelled");
    let usage = json!({"input_tokens": 77, "output_tokens": 99, "cache_read_input_tokens": 1});
    assert_eq!((&result["usage"], result.get("usage_estimated")), (&usage, None));
    assert_eq!(result["modelUsage"]["b"], json!({"inputTokens": 70, "outputTokens": 90}));
}

#[test]
fn the_counts_of_requests_of_a_stopped_turn_are_written_and_marked() {
    let message = r#"{"interlingua":1,"type":"message_started","message":"m"}"#;
    let ended = r#"{"interlingua":1,"type":"message_ended","message":"m","usage":{"scope":"request","input":100,"output":1}}"#;
    let stopped = r#"{"interlingua":1,"type":"turn_ended","outcome":"cancelled"}"#;
    let result = result(&translate_lines("events", "yume", &[message, ended, stopped]));
    let usage = json!({"input_tokens": 100, "output_tokens": 1, "estimated": true});
    assert_eq!((&result["usage"], &result["usage_estimated"]), (&usage, &json!(true)));
}

#[test]
fn a_stated_count_is_written_next_to_an_estimated_one() {
    let result = result(&gemini("success", &json!({"output_tokens": 310})));
    let usage = json!({"input_tokens": 1, "output_tokens": 310, "estimated": true});
    assert_eq!((&result["usage"], &result["usage_estimated"]), (&usage, &json!(true)));
}

#[test]
fn a_cancelled_turn_without_counts_is_estimated_by_characters() {
    let lines = [
        GEMINI_INIT,
        r#"{"type":"message","timestamp":"t","role":"user","content":"ééééé"}"#,
        r#"{"type":"message","timestamp":"t","role":"assistant","content":"日本語日本語","delta":true}"#,
        r#"{"type":"result","timestamp":"t","status":"error","error":{"type":"FatalCancellationError","message":"stopped"},"stats":{"total_tokens":0}}"#,
    ];
    let written = translate_lines("gemini", "yume", &lines);
    let result = result(&written);
    assert_eq!(result["subtype"], "cancelled");
    let usage = json!({"input_tokens": 2, "output_tokens": 2, "estimated": true});
    assert_eq!((&result["usage"], &result["usage_estimated"]), (&usage, &json!(true)));
    let records = written.records();
    let usage = records.iter().find(|record| record["type"] == "usage").unwrap();
    assert_eq!(usage["estimated"], true);
}

#[test]
fn a_failed_turn_without_counts_has_none() {
    assert_eq!(result(&gemini("error", &json!({"total_tokens": 0}))).get("usage"), None);
}
