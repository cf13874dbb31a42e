//! Cases of reading Copilot's stream that its transcripts do not contain, or contain only in
//! passing.

use serde_json::{Value, json};

use crate::support::records::{of_type, types};
use crate::support::{translate_lines, written};

/// A record in the envelope that all records but the last have.
fn line(kind: &str, data: Value) -> String {
    line_of(None, kind, data)
}

fn line_of(agent: Option<&str>, kind: &str, data: Value) -> String {
    let mut record = json!({
        "type": kind, "data": data, "id": "i", "timestamp": "2026-01-01T00:00:00Z", "parentId": "p",
    });
    if let Some(agent) = agent {
        record["agentId"] = agent.into();
    }
    record.to_string()
}

fn prompt() -> String {
    line("user.message", json!({"content": "go"}))
}

fn delta(message: &str, text: &str) -> String {
    line("assistant.message_delta", json!({"messageId": message, "deltaContent": text}))
}

fn message(id: &str, text: &str, requests: Value) -> String {
    let data = json!({"messageId": id, "content": text, "toolRequests": requests, "model": "m"});
    line("assistant.message", data)
}

fn result(code: i64) -> String {
    let usage = json!({"totalApiDurationMs": 5, "sessionDurationMs": 7});
    json!({"type": "result", "sessionId": "s", "exitCode": code, "usage": usage}).to_string()
}

/// Our own events for some lines, without native records.
fn events(lines: &[String]) -> Vec<Value> {
    let emitted = translate_lines("copilot", "events", lines).records();
    emitted.into_iter().filter(|event| event["type"] != "native").collect()
}

#[test]
fn a_retry_withdraws_its_own_request_and_no_other() {
    let retry = json!({"turnId": "1", "model": "m", "reason": "streaming_error"});
    let failure = json!({"failureKind": "transport", "retryAttempt": 0, "errorMessage": "cut"});
    let lines = [
        prompt(),
        // An answer that was cut at the length limit is kept, though it has no complete message.
        delta("a", "Kept. "),
        line("assistant.turn_end", json!({"turnId": "0"})),
        delta("b", "Half a sen"),
        line("model.call_failure", failure),
        line("assistant.turn_retry", retry),
        delta("c", "Half a sentence, whole."),
        message("c", "Half a sentence, whole.", json!([])),
        result(0),
    ];
    let emitted = events(&lines);
    let withdrawn = of_type(&emitted, "withdrawn");
    assert_eq!(withdrawn.len(), 1);
    let block = json!({"block": 2, "kind": "text", "open": true, "text": "Half a sen"});
    assert_eq!((&withdrawn[0]["message"], &withdrawn[0]["blocks"]), (&json!("b"), &json!([block])));
    let retry = of_type(&emitted, "retry")[0];
    let fields = (&retry["class"], &retry["attempt"], &retry["message"]);
    assert_eq!(fields, (&json!("network"), &json!(1), &json!("cut")));
    assert_eq!(of_type(&emitted, "turn_ended")[0]["outcome"], "completed");
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    for to in written().filter(|to| to.name != "events") {
        let text = translate_lines("copilot", to.name, &lines).text();
        // The end of a turn may repeat its last text.
        let text: String =
            text.lines().filter(|line| !line.contains("\"type\":\"result\"")).collect();
        assert_eq!(text.matches("Half a sen").count(), 1, "{}: {text}", to.name);
        assert_eq!(text.matches("Kept.").count(), 1, "{}: {text}", to.name);
    }
}

#[test]
fn a_call_that_a_retry_withdrew_is_answered_or_started_again() {
    let delta = |call: &str, text: &str| {
        let data = json!({"toolCallId": call, "toolName": "bash", "inputDelta": text});
        line("assistant.tool_call_delta", data)
    };
    let request = json!([{"toolCallId": "again", "name": "bash", "arguments": {"command": "ls"}}]);
    let done = json!({"toolCallId": "again", "success": true, "result": {"content": "x"}});
    let emitted = events(&[
        prompt(),
        delta("gone", "{\"comm"),
        delta("again", "{\"comm"),
        line("assistant.turn_retry", json!({"reason": "api_error"})),
        delta("again", "{\"command\":"),
        delta("again", "\"ls\"}"),
        message("m", "", request),
        line("tool.execution_complete", done),
        result(0),
    ]);
    let ended: Vec<_> =
        of_type(&emitted, "tool_ended").iter().map(|end| (&end["call"], &end["status"])).collect();
    let expected = [(json!("gone"), json!("cancelled")), (json!("again"), json!("completed"))];
    assert_eq!(ended, expected.each_ref().map(|(call, status)| (call, status)));
    // The input that was emitted before is not emitted again.
    let calls: Vec<_> =
        of_type(&emitted, "tool_input_delta").iter().map(|delta| &delta["call"]).collect();
    assert_eq!(calls, [&json!("gone"), &json!("again")]);
    assert_eq!(of_type(&emitted, "tool_input").len(), 2);
}

#[test]
fn reasoning_is_emitted_once_with_and_without_deltas() {
    let thought =
        |id: &str| line("assistant.reasoning", json!({"reasoningId": id, "content": "Hm."}));
    let with = |reasoning: &str| {
        let data = json!({
            "messageId": "m", "content": "Yes.", "toolRequests": [], "reasoningText": reasoning,
        });
        line("assistant.message", data)
    };
    let in_pieces = json!({"reasoningId": "r", "deltaContent": "Hm."});
    let streams = [
        vec![prompt(), line("assistant.reasoning_delta", in_pieces), with("Hm."), thought("r")],
        vec![prompt(), with("Hm."), thought("r")],
        vec![prompt(), thought("r"), with("Hm.")],
    ];
    for mut lines in streams {
        lines.push(result(0));
        let emitted = events(&lines);
        let text: String = emitted
            .iter()
            .filter(|event| event["kind"] == "reasoning")
            .filter_map(|event| event["text"].as_str())
            .collect();
        assert_eq!(text, "Hm.", "{emitted:#?}");
        let last = emitted.iter().rposition(|event| event["kind"] == "reasoning").unwrap();
        let first = emitted.iter().position(|event| event["kind"] == "text").unwrap();
        assert!(last < first, "the reasoning precedes the text");
    }
}

#[test]
fn files_that_a_call_changed_are_emitted_with_their_diff() {
    let diff = "\ndiff --git a/a.txt b/a.txt\n@@ -1 +1 @@\n-a\n+b\n";
    let done = json!({
        "toolCallId": "c", "success": true, "fileEdits": [{"path": "/a.txt", "kind": "edit"}],
        "result": {"content": "File updated.", "detailedContent": diff},
    });
    let request = json!([{"toolCallId": "c", "name": "edit", "arguments": {"path": "/a.txt"}}]);
    let lines =
        [prompt(), message("m", "", request), line("tool.execution_complete", done), result(0)];
    let emitted = events(&lines);
    let changed = of_type(&emitted, "files_changed")[0];
    assert_eq!(changed["call"], "c");
    let expected = json!([{"path": "/a.txt", "kind": "update", "diff": diff}]);
    assert_eq!(changed["changes"], expected);
}

#[test]
fn the_creation_of_a_file_is_emitted_once() {
    let done = json!({
        "toolCallId": "c", "success": true, "fileEdits": [{"path": "/a.txt", "kind": "create"}],
        "result": {"content": "Created file /a.txt"},
    });
    let request = json!([{"toolCallId": "c", "name": "create", "arguments": {"path": "/a.txt"}}]);
    let note = json!({"infoType": "file_created", "message": "Created file /a.txt"});
    let emitted = events(&[
        prompt(),
        message("m", "", request),
        line("session.info", note),
        line("tool.execution_complete", done),
        result(0),
    ]);
    assert_eq!(of_type(&emitted, "files_changed")[0]["changes"][0]["kind"], "add");
    assert!(of_type(&emitted, "notice").is_empty());
}

#[test]
fn a_command_with_an_exit_code_has_failed_though_copilot_calls_it_a_success() {
    let end = |id: &str, code: i64| format!("no\n<shellId: {id} completed with exit code {code}>");
    let done = json!({
        "toolCallId": "c", "success": true, "shellExecution": {"exitCode": 3},
        "result": {"content": end("0", 3), "detailedContent": end("0", 3)},
    });
    let snapshot = json!({"toolCallId": "c", "partialOutput": "n"});
    let output = json!({"toolCallId": "c", "stream": "stdout", "text": "n", "sequence": 0});
    let emitted = events(&[
        prompt(),
        message("m", "", json!([{"toolCallId": "c", "name": "bash", "arguments": {}}])),
        line("tool.shell_output", output),
        line("tool.execution_partial_result", snapshot),
        line("tool.execution_complete", done),
        result(0),
    ]);
    let ended = of_type(&emitted, "tool_ended")[0];
    assert_eq!((&ended["status"], &ended["exit_code"]), (&json!("failed"), &json!(3)));
    assert_eq!(ended["output"], "no\n", "the exit code is no part of what was printed");
    let progress: Vec<_> =
        of_type(&emitted, "tool_progress").iter().map(|one| &one["output"]).collect();
    assert_eq!(progress, [&json!("n")]);
}

#[test]
fn events_of_a_sub_agent_have_its_call_as_parent() {
    let task = json!([{"toolCallId": "t", "name": "task", "arguments": {"prompt": "look"}}]);
    let agent = Some("agent-1");
    let emitted = events(&[
        prompt(),
        message("m", "", task),
        line_of(agent, "subagent.started", json!({"toolCallId": "t", "agentName": "explore"})),
        line_of(agent, "user.message", json!({"content": "look"})),
        // Only some of its records name the call; all name the agent.
        line_of(agent, "assistant.message_start", json!({"messageId": "n"})),
        line_of(agent, "assistant.message_delta", json!({"messageId": "n", "deltaContent": "hi"})),
        line_of(agent, "assistant.message", json!({"messageId": "n", "content": "hi"})),
        line_of(agent, "subagent.failed", json!({"toolCallId": "t", "error": "no luck"})),
        line("tool.execution_complete", json!({"toolCallId": "t", "success": false})),
        result(0),
    ]);
    for kind in ["user_message", "block_delta", "message_ended"] {
        assert_eq!(of_type(&emitted, kind).last().unwrap()["parent"], "t", "{kind}");
    }
    let ended = of_type(&emitted, "subagent_ended")[0];
    let expected = (&json!("failed"), &json!("no luck"), &Value::Null);
    assert_eq!((&ended["status"], &ended["summary"], &ended["parent"]), expected);
    assert_eq!(of_type(&emitted, "turn_started").len(), 1);
}

#[test]
fn an_interrupt_without_a_result_cancels_the_turn() {
    let emitted = events(&[
        prompt(),
        message("m", "", json!([{"toolCallId": "c", "name": "bash", "arguments": {}}])),
        line("agent.interrupted", json!({"activity": "tool_call", "toolCallIds": ["c"]})),
        line("abort", json!({"reason": "user_initiated"})),
        line("assistant.idle", json!({"aborted": true})),
    ]);
    let expected = [
        "session_started",
        "turn_started",
        "user_message",
        "message_started",
        "tool_started",
        "message_ended",
        "tool_ended",
        "interrupted",
        "turn_ended",
        "session_ended",
    ];
    assert_eq!(types(&emitted), expected);
    assert_eq!(of_type(&emitted, "tool_ended")[0]["status"], "cancelled");
    let ended = of_type(&emitted, "turn_ended")[0];
    assert_eq!(
        (&ended["outcome"], &ended["reason"]),
        (&json!("cancelled"), &json!("user_initiated"))
    );
    assert!(ended.get("synthetic").is_none(), "the agent reported it");
}

#[test]
fn open_blocks_end_before_the_turn_is_cancelled() {
    let begins = line("assistant.message_start", json!({"messageId": "m"}));
    let task = json!([{"toolCallId": "t", "name": "task", "arguments": {}}]);
    let text = json!({"messageId": "n", "deltaContent": "a", "parentToolCallId": "t"});
    let mut lines = vec![
        prompt(),
        message("l", "", task),
        line("assistant.message_delta", text),
        begins,
        delta("m", "Half a sen"),
        line("abort", json!({"reason": "user_initiated"})),
        line("assistant.turn_end", json!({})),
        line("assistant.idle", json!({"aborted": true})),
    ];
    let emitted = events(&lines);
    let place = |kind: &str| types(&emitted).iter().rposition(|it| *it == kind).unwrap();
    assert!(place("block_ended") < place("interrupted"));
    assert!(place("message_ended") < place("interrupted"));
    assert_eq!(of_type(&emitted, "block_ended").len(), 2);
    // The same run with its lines in another order gives the same events.
    lines.swap(5, 6);
    assert_eq!(types(&events(&lines)), types(&emitted));
}

#[test]
fn a_message_that_is_never_completed_ends_with_its_step() {
    let emitted = events(&[
        prompt(),
        line("assistant.message_start", json!({"messageId": "cut"})),
        delta("cut", "The answer is"),
        line("assistant.turn_end", json!({})),
        message("next", " four.", json!([])),
        result(0),
    ]);
    let ended: Vec<_> =
        of_type(&emitted, "message_ended").iter().map(|it| &it["message"]).collect();
    assert_eq!(ended, ["cut", "next"]);
}

#[test]
fn a_message_has_the_model_of_its_request() {
    let begins = |id: &str| json!({"messageId": id});
    let emitted = events(&[
        line("session.tools_updated", json!({"model": "m"})),
        prompt(),
        line("model.call_start", json!({"model": "m"})),
        line_of(Some("a"), "model.call_start", json!({"model": "small"})),
        line_of(Some("a"), "assistant.message_start", begins("1")),
        line("assistant.message_start", begins("2")),
        result(0),
    ]);
    let models: Vec<_> =
        of_type(&emitted, "message_started").iter().map(|it| &it["model"]).collect();
    assert_eq!(models, ["small", "m"]);
}

#[test]
fn a_fatal_error_is_no_success_whatever_the_exit_code() {
    let error =
        || line("session.error", json!({"errorType": "query", "message": "no", "statusCode": 500}));
    let emitted = events(&[prompt(), error(), result(0)]);
    let ended = of_type(&emitted, "turn_ended")[0];
    assert_eq!((&ended["outcome"], &ended["cause"]), (&json!("failed"), &json!("no")));
    // If the agent continues after it, it did not end the turn.
    let emitted = events(&[prompt(), error(), message("m", "Done.", json!([])), result(0)]);
    assert_eq!(of_type(&emitted, "turn_ended")[0]["outcome"], "completed");
}

#[test]
fn the_duration_of_a_turn_is_not_that_of_the_session() {
    let at = |time: &str, record: String| record.replace("00:00:00Z", time);
    let request = |ms: u64, outcome: &str| {
        line("model.call_finished", json!({"dispatchDurationMs": ms, "outcome": outcome}))
    };
    let mut end: Value = serde_json::from_str(&result(0)).unwrap();
    end["timestamp"] = json!("2026-01-01T00:00:02.250Z");
    let emitted = events(&[
        at("00:00:00.500Z", prompt()),
        request(30, "error"),
        request(40, "success"),
        message("m", "Hi.", json!([])),
        request(2, "success"),
        end.to_string(),
    ]);
    let ended = of_type(&emitted, "turn_ended")[0];
    assert_eq!((&ended["duration_ms"], &ended["api_duration_ms"]), (&json!(1750), &json!(42)));
}

#[test]
fn a_stream_without_an_end_is_no_success() {
    let emitted = events(&[prompt(), delta("m", "Hello"), line("assistant.idle", json!({}))]);
    assert_eq!(of_type(&emitted, "turn_ended")[0]["outcome"], "failed");
}

#[test]
fn unknown_token_counts_are_absent() {
    let emitted = events(&[prompt(), message("m", "Hi.", json!([])), result(0)]);
    let ended = of_type(&emitted, "turn_ended")[0];
    assert!(ended.get("usage").is_none());
}
