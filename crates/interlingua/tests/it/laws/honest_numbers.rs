//! Law 9: counts are those of one turn, unknown counts are absent, and estimates are marked as
//! such.

use serde_json::{Value, json};

use crate::support::translate_lines;

fn turns(from: &str, lines: &[&str]) -> Vec<Value> {
    let records = translate_lines(from, "events", lines).records();
    records.into_iter().filter(|event| event["type"] == "turn_ended").collect()
}

fn codex_turn(input: u64, cached: u64, output: u64) -> String {
    format!(
        r#"{{"type":"turn.completed","usage":{{"input_tokens":{input},"cached_input_tokens":{cached},"cache_write_input_tokens":0,"output_tokens":{output},"reasoning_output_tokens":0}}}}"#
    )
}

/// Codex states the counts of the complete thread. Adding up those of its turns counted every token
/// several times.
#[test]
fn counts_of_a_thread_become_counts_of_a_turn() {
    let (one, two) = (codex_turn(100, 40, 20), codex_turn(300, 120, 60));
    let start = r#"{"type":"turn.started"}"#;
    let turns = turns("codex", &[start, &one, start, &two]);
    assert_eq!(turns[0]["usage"]["input"], 60);
    assert_eq!(turns[1]["usage"]["input"], 120);
    assert_eq!(turns[1]["usage"]["cache_read"], 80);
    assert_eq!(turns[1]["usage"]["output"], 40);
    assert_eq!(turns[1]["usage"]["scope"], "turn");
}

fn claude_result(cost: &str, rest: &str) -> String {
    format!(
        r#"{{"type":"result","subtype":"success","is_error":false,"duration_ms":5,"duration_api_ms":1,"num_turns":1,"result":"","session_id":"s","total_cost_usd":{cost},"usage":{{"input_tokens":1,"output_tokens":1}},"permission_denials":[],"uuid":"u"{rest}}}"#
    )
}

#[test]
fn the_cost_of_a_process_becomes_the_cost_of_a_turn() {
    let turns = turns("claude", &[&claude_result("0.000858", ""), &claude_result("0.002574", "")]);
    assert_eq!(turns[0]["cost"]["usd"], 0.000858);
    assert_eq!(turns[1]["cost"]["usd"], 0.001716);
}

/// A resumed session starts with the cost of its earlier runs. The cost of the turn is stated as
/// well.
#[test]
fn the_cost_of_earlier_runs_of_a_resumed_session_is_not_charged_again() {
    let since = r#","model_usage_since_last_result":{"m":{"costUSD":0.25}}"#;
    let turns = turns("claude", &[&claude_result("9.5", since)]);
    assert_eq!(turns[0]["cost"]["usd"], 0.25);
}

#[test]
fn a_count_that_is_not_stated_is_absent() {
    let result = r#"{"type":"result","timestamp":"t","status":"success","stats":{"total_tokens":5,"output_tokens":5}}"#;
    let usage = &turns("gemini", &[result])[0]["usage"];
    assert_eq!(*usage, json!({"scope":"turn","output":5,"total":5}));
    let failed = r#"{"type":"turn.failed","error":{"message":"no"}}"#;
    assert!(turns("codex", &[failed])[0].get("usage").is_none());
}

/// A run that failed prints zeros for counts that it did not take.
#[test]
fn the_zeros_of_a_failed_run_are_unknown() {
    let result = r#"{"type":"result","timestamp":"t","status":"error","error":{"type":"FatalCancellationError","message":"Operation cancelled."},"stats":{"total_tokens":0,"input_tokens":0,"output_tokens":0,"cached":0,"input":0,"duration_ms":0,"tool_calls":0,"models":{}}}"#;
    let turn = &turns("gemini", &[result])[0];
    assert_eq!(turn["outcome"], "cancelled");
    assert!(turn.get("usage").is_none() && turn.get("duration_ms").is_none());
}

#[test]
fn no_writer_invents_a_zero() {
    let failed = r#"{"type":"turn.failed","error":{"message":"no"}}"#;
    let parts = translate_lines("codex", "ai-sdk", &[failed]).records();
    let finish = parts.iter().find(|part| part["type"] == "finish").unwrap();
    assert_eq!(finish["usage"], json!({"inputTokens":{},"outputTokens":{}}));
    let records = translate_lines("codex", "yume", &[failed]).records();
    assert!(records.iter().all(|record| record["type"] != "usage"));
}

/// Programs that read Claude's stream require its numbers, so the unknown ones are listed.
#[test]
fn an_unknown_number_that_is_required_is_listed_as_unknown() {
    let failed = r#"{"type":"turn.failed","error":{"message":"no"}}"#;
    let written = translate_lines("codex", "claude", &[failed]);
    let records = written.records();
    let result = records.iter().find(|record| record["type"] == "result").unwrap();
    assert_eq!(
        result["unknown_fields"],
        json!([
            "usage",
            "modelUsage",
            "total_cost_usd",
            "duration_ms",
            "duration_api_ms",
            "num_turns"
        ])
    );
    let text = written.text();
    let lines: Vec<&str> = text.lines().collect();
    let turn = turns("claude", &lines).remove(0);
    for field in ["usage", "by_model", "cost", "duration_ms", "steps"] {
        assert!(turn.get(field).is_none(), "{field} is read back as unknown");
    }
}

/// The token counts of a turn that the AI SDK receives: those of `ai-sdk`, and those of
/// `ui-message`.
fn tokens_of_ai_sdk(usage: &Value) -> [Value; 2] {
    let ended = json!({"type": "turn_ended", "outcome": "completed", "usage": usage}).to_string();
    let finish = |to: &str| {
        let records = translate_lines("events", to, &[&ended]).records();
        records.into_iter().find(|record| record["type"] == "finish").unwrap()
    };
    assert_eq!(finish("ai-sdk")["usage"], finish("ai-sdk-v4")["usage"]);
    [finish("ai-sdk")["usage"].clone(), finish("ui-message")["messageMetadata"]["usage"].clone()]
}

/// Regression: `"text":0` was written for an agent that counts reasoning, but not as output.
#[test]
fn a_negative_remainder_of_tokens_is_unknown_and_not_zero() {
    let [parts, chunks] = tokens_of_ai_sdk(&json!({"input": 5, "output": 12, "reasoning": 33}));
    assert_eq!(parts["outputTokens"], json!({"total": 12, "reasoning": 33}));
    assert_eq!(chunks["outputTokenDetails"], json!({"reasoningTokens": 33}));
    let [parts, _] = tokens_of_ai_sdk(&json!({"output": 33, "reasoning": 33}));
    assert_eq!(parts["outputTokens"], json!({"total": 33, "text": 0, "reasoning": 33}));
    let [parts, chunks] = tokens_of_ai_sdk(&json!({"input": 5}));
    assert_eq!(parts["outputTokens"], json!({}));
    assert!(chunks.get("outputTokens").is_none());
}

#[test]
fn the_input_is_unknown_where_only_the_cache_is_counted() {
    let [parts, chunks] = tokens_of_ai_sdk(&json!({"cache_read": 0, "output": 3}));
    assert_eq!(parts["inputTokens"], json!({"cacheRead": 0}));
    assert!(chunks.get("inputTokens").is_none());
}

/// Claude Code 2.1.197 prints zeros for a request that it repeats without streaming.
#[test]
fn zeros_next_to_the_counts_of_models_are_unknown() {
    let models = r#","modelUsage":{"m":{"inputTokens":100,"outputTokens":20}}"#;
    let result = claude_result("0.1", models)
        .replace(r#""input_tokens":1,"output_tokens":1"#, r#""input_tokens":0,"output_tokens":0"#);
    let turn = &turns("claude", &[&result])[0];
    assert!(turn.get("usage").is_none(), "{turn}");
    assert_eq!(turn["by_model"][0]["output"], 20);
    // A command that calls no model uses no tokens.
    let result = claude_result("0", "")
        .replace(r#""input_tokens":1,"output_tokens":1"#, r#""input_tokens":0,"output_tokens":0"#);
    assert_eq!(turns("claude", &[&result])[0]["usage"]["output"], 0);
}
