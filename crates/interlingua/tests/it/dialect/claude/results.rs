//! The end of a turn, written as Claude Code writes it.

use interlingua::Exit;
use serde_json::{Value, json};

use crate::support::{Case, dialect, translate_chunks, translate_lines};

const TEXT: &str = r#"{"type":"block","kind":"text","text":"half"}"#;

/// The records that `claude` writes for a turn of our own events.
fn written(lines: &[&str]) -> Vec<Value> {
    translate_lines("events", "claude", lines).records()
}

fn result(records: &[Value]) -> &Value {
    records.iter().find(|record| record["type"] == "result").unwrap()
}

fn end(lines: &[&str]) -> (Value, Value, Value) {
    let records = written(lines);
    let result = result(&records);
    let field = |name: &str| result.get(name).cloned().unwrap_or_default();
    (field("subtype"), field("terminal_reason"), field("stop_reason"))
}

#[test]
fn every_limit_has_its_own_name() {
    let turns = r#"{"type":"turn_ended","outcome":"limit_reached","reason":"FatalTurnLimitedError","stop_reason":"tool_use"}"#;
    assert_eq!(
        end(&[TEXT, turns]),
        (json!("error_max_turns"), json!("max_turns"), json!("tool_use"))
    );
    let money = r#"{"type":"turn_ended","outcome":"limit_reached","reason":"budget_exhausted"}"#;
    let expected = (json!("error_max_budget_usd"), json!("budget_exhausted"), Value::Null);
    assert_eq!(end(&[TEXT, money]), expected);
    let tokens = r#"{"type":"turn_ended","outcome":"limit_reached","class":"limit","stop_reason":"max_output_tokens"}"#;
    let expected = (json!("error_during_execution"), Value::Null, json!("max_tokens"));
    assert_eq!(end(&[TEXT, tokens]), expected);
}

#[test]
fn a_synthetic_end_has_no_reason() {
    let started = r#"{"type":"turn.started"}"#;
    let records = translate_lines("codex", "claude", &[started]).records();
    assert_eq!(result(&records)["subtype"], "error_during_execution");
    assert_eq!(result(&records).get("terminal_reason"), None);
    assert!(records.iter().all(|record| record["type"] != "assistant"));
}

#[test]
fn a_turn_is_stopped_during_a_call_or_during_its_text() {
    let call = r#"{"type":"tool_started","call":"c","name":"Bash","kind":"execute","input":{"command":"ls"}}"#;
    let stopped = r#"{"type":"turn_ended","outcome":"cancelled"}"#;
    assert_eq!(end(&[TEXT, stopped]).1, "aborted_streaming");
    assert_eq!(end(&[call, stopped]).1, "aborted_tools");
    let answer = r#"{"type":"tool_ended","call":"c","status":"cancelled"}"#;
    assert_eq!(end(&[call, answer, TEXT, stopped]).1, "aborted_streaming");
}

#[test]
fn a_failure_is_written_as_a_synthetic_message() {
    let lines = [
        r#"{"type":"error","message":"a detail","class":"rate_limit"}"#,
        r#"{"type":"turn_ended","outcome":"failed","cause":"Slow down","class":"rate_limit","http_status":429}"#,
    ];
    let records = written(&[&[TEXT], &lines[..]].concat());
    let kinds: Vec<_> = records.iter().map(|record| record["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["system", "assistant", "system", "assistant", "result"]);
    assert_eq!(
        (&records[2]["content"], &records[2]["level"]),
        (&json!("a detail"), &json!("error"))
    );
    let message = &records[3];
    assert_eq!(message["message"]["model"], "<synthetic>");
    assert_eq!(message["message"]["content"], json!([{"type":"text","text":"Slow down"}]));
    assert_eq!(
        (&message["error"], &message["api_error_status"]),
        (&json!("rate_limit"), &json!(429))
    );
    assert_eq!(message["is_api_error_message"], true);
    let result = &records[4];
    assert_eq!((&result["subtype"], &result["is_error"]), (&json!("success"), &json!(true)));
    assert_eq!((&result["result"], result.get("errors")), (&json!("Slow down"), None));
    assert_eq!(result["terminal_reason"], "api_error");
}

#[test]
fn a_prompt_that_is_too_long_has_its_own_reason() {
    let ended =
        r#"{"type":"turn_ended","outcome":"failed","cause":"no room","class":"context_overflow"}"#;
    assert_eq!(end(&[ended]).1, "prompt_too_long");
}

/// The outcome, cause and class of the ends of turns in our own events.
fn causes(events: &[u8]) -> Vec<(Value, Value, Value)> {
    let lines = std::str::from_utf8(events).unwrap().lines();
    let events = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let ends = events.filter(|event| event["type"] == "turn_ended");
    ends.map(|end| (end["outcome"].clone(), end["cause"].clone(), end["http_status"].clone()))
        .collect()
}

#[test]
fn a_failure_is_read_back_as_it_was() {
    for case in Case::all().iter().filter(|case| case.name.starts_with("claude/")) {
        let (claude, events) = (dialect("claude"), dialect("events"));
        let once = translate_chunks(Some(claude), events, [&*case.input], &case.exit).bytes;
        let written = translate_chunks(Some(events), claude, [&*once], &case.exit).bytes;
        let again = translate_chunks(Some(claude), events, [&*written], &case.exit).bytes;
        assert_eq!(causes(&once), causes(&again), "{}", case.name);
    }
}

#[test]
fn a_retry_is_written_once_and_with_a_code() {
    let lines = [
        r#"{"type":"turn.started"}"#,
        r#"{"type":"error","message":"Reconnecting... 1/5 (stream disconnected before completion)"}"#,
        r#"{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"Back."}}"#,
        r#"{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}"#,
    ];
    let written = translate_lines("codex", "claude", &lines);
    let records = written.records();
    let retry = records.iter().find(|record| record["subtype"] == "api_retry").unwrap();
    assert_eq!((&retry["attempt"], &retry["max_retries"]), (&json!(1), &json!(5)));
    assert_eq!(retry["error"], "server_error");
    assert_eq!(retry["retry_delay_ms"], 0);
    assert_eq!(retry["unknown_fields"], json!(["retry_delay_ms"]));
    assert_eq!(written.text().matches("Reconnecting").count(), 1);
    assert_eq!(result(&records).get("errors"), None);
}

#[test]
fn an_error_of_a_turn_that_completed_is_a_notice() {
    let error = r#"{"type":"error","message":"a warning of the provider","class":"unknown"}"#;
    let records = written(&[TEXT, error, r#"{"type":"turn_ended","outcome":"completed"}"#]);
    let notice = records.iter().find(|record| record["subtype"] == "informational").unwrap();
    assert_eq!(
        (&notice["content"], &notice["level"]),
        (&json!("a warning of the provider"), &json!("error"))
    );
    assert_eq!(result(&records).get("errors"), None);
}

#[test]
fn the_cause_is_the_first_of_the_errors() {
    let lines = [
        TEXT,
        r#"{"type":"error","message":"first","class":"network"}"#,
        r#"{"type":"turn_ended","outcome":"cancelled","cause":"stopped"}"#,
    ];
    assert_eq!(result(&written(&lines))["errors"], json!(["stopped", "first"]));
}

#[test]
fn the_models_of_a_session_are_counted_together() {
    let turn = r#"{"type":"turn_ended","outcome":"completed","by_model":[{"model":"a","input":10,"output":2},{"model":"b","input":1}]}"#;
    let records = written(&[TEXT, turn, TEXT, turn]);
    let counts = |input: u64, output: u64| {
        json!({"inputTokens":input,"outputTokens":output,"cacheReadInputTokens":0,
            "cacheCreationInputTokens":0,"webSearchRequests":0,"costUSD":0.0,"contextWindow":0})
    };
    let last = records.iter().rfind(|record| record["type"] == "result").unwrap();
    assert_eq!(last["modelUsage"], json!({"a":counts(20, 4),"b":counts(2, 0)}));
}

#[test]
fn a_result_without_counts_has_an_empty_list_of_models() {
    let records = written(&[TEXT, r#"{"type":"turn_ended","outcome":"completed"}"#]);
    assert_eq!(result(&records)["modelUsage"], json!({}));
}

#[test]
fn a_turn_is_one_request_until_a_call_is_answered() {
    let item =
        |id: &str| format!(r#"{{"type":"block","message":"{id}","kind":"text","text":"x"}}"#);
    let (one, two, three) = (item("1"), item("2"), item("3"));
    let call = r#"{"type":"tool_started","call":"c","name":"x","input":{}}"#;
    let answer = r#"{"type":"tool_ended","call":"c"}"#;
    let done = r#"{"type":"turn_ended","outcome":"completed"}"#;
    let records = written(&[&one, &two, call, answer, &three, done]);
    assert_eq!(result(&records)["num_turns"], 2);
    let unknown = result(&records)["unknown_fields"].as_array().unwrap().clone();
    assert!(unknown.contains(&json!("num_turns")));
    assert_eq!(result(&written(&[done]))["num_turns"], 1);
}

#[test]
fn the_standard_error_at_the_end_is_counted_as_lost() {
    let input = b"{\"type\":\"turn.started\"}\n{\"type\":\"turn.completed\"}\n";
    let exit = Exit { signal: Some(9), stderr: Some("oh no\n".into()), ..Exit::default() };
    let (codex, claude) = (Some(dialect("codex")), dialect("claude"));
    let written = translate_chunks(codex, claude, [&input[..]], &exit);
    let losses: Vec<_> = written.losses().iter().map(|(what, _)| what).collect();
    assert_eq!(losses, ["signals that ended the agent", "standard error"]);
    let cut = translate_chunks(codex, claude, [&input[..24]], &exit);
    assert!(cut.losses().is_empty(), "the result contains it");
}

#[test]
fn a_session_that_does_not_exist_is_not_found() {
    let result = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"session_id":"s","errors":["No conversation found with session ID: x"]}"#;
    let events = translate_lines("claude", "events", &[result]).records();
    let ended = events.iter().find(|event| event["type"] == "turn_ended").unwrap();
    assert_eq!((&ended["outcome"], &ended["class"]), (&json!("failed"), &json!("not_found")));
}

#[test]
fn the_stop_reason_is_one_of_claudes() {
    for (outcome, stop_reason, expected) in [
        ("completed", "stop", json!("end_turn")),
        ("completed", "stop_sequence", json!("stop_sequence")),
        ("cancelled", "tool-calls", Value::Null),
        ("cancelled", "tool_use", json!("tool_use")),
    ] {
        let ended =
            json!({"type":"turn_ended","outcome":outcome,"stop_reason":stop_reason}).to_string();
        let records = translate_lines("events", "claude", &[&ended]).records();
        assert_eq!(records.last().unwrap()["stop_reason"], expected, "{outcome} {stop_reason}");
    }
}

#[test]
fn an_interrupt_is_written_after_open_blocks_and_calls_with_claudes_text() {
    let lines = [
        r#"{"type":"tool_started","call":"c","name":"bash","kind":"execute","input":{"command":"ls"}}"#,
        r#"{"type":"block_started","block":1,"kind":"text"}"#,
        r#"{"type":"block_delta","block":1,"kind":"text","text":"Hal"}"#,
        r#"{"type":"interrupted","text":"Aborted"}"#,
        r#"{"type":"block_ended","block":1,"kind":"text"}"#,
        r#"{"type":"tool_ended","call":"c","status":"cancelled","output":"stopped"}"#,
        r#"{"type":"turn_ended","outcome":"cancelled"}"#,
    ];
    let records = translate_lines("events", "claude", &lines).records();
    let kinds: Vec<_> = records.iter().map(|record| record["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["system", "assistant", "assistant", "user", "user", "result"]);
    assert_eq!(records[2]["aborted"], true);
    let text = &records[4]["message"]["content"][0]["text"];
    assert_eq!(text, "[Request interrupted by user for tool use]");
    assert_eq!(records[5]["terminal_reason"], "aborted_tools");
}

#[test]
fn an_interrupt_is_written_before_the_text_of_a_turn_that_continues() {
    let lines = [
        r#"{"type":"interrupted"}"#,
        r#"{"type":"block","kind":"text","text":"Hi"}"#,
        r#"{"type":"turn_ended","outcome":"completed"}"#,
    ];
    let records = translate_lines("events", "claude", &lines).records();
    assert_eq!(records[1]["message"]["content"][0]["text"], "[Request interrupted by user]");
    assert_eq!(records[2].get("aborted"), None);
}
