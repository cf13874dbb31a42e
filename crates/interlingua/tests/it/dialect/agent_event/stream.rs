//! All records of an `AgentEvent` stream except todo lists, written and read.

use interlingua::dialect::{EncodeOptions, Team};
use interlingua::{Exit, Options, Source, Translator};
use serde_json::{Value, json};

use crate::support::{dialect, translate_lines, translate_with};

fn translate(from: &str, to: &str, lines: &[&str], exit: &Exit) -> Vec<Value> {
    let team =
        Team { agent_id: "a-1".into(), metadata: r#"{"teamName":"t"}"#.into(), ..Team::default() };
    let encode = EncodeOptions { team, ..EncodeOptions::default() };
    let options = Options { encode, ..Options::default() };
    let input = lines.join("\n");
    translate_with(options, Some(dialect(from)), dialect(to), [input.as_bytes()], exit).records()
}

const CODEX_END: &str = r#"{"type":"turn.completed"}"#;

/// The events written for a stream, without their envelopes.
fn written(from: &str, lines: &[&str]) -> Vec<Value> {
    without_envelopes(translate(from, "agent-event", lines, &Exit::default()))
}

fn without_envelopes(mut events: Vec<Value>) -> Vec<Value> {
    for event in &mut events {
        let fields = event.as_object_mut().unwrap();
        for name in ["eventId", "agentId", "agentType", "teamMetadata", "timestamp"] {
            fields.remove(name);
        }
    }
    events
}

/// A stream as it is read, in the form of AI SDK parts.
fn read(lines: &[&str]) -> Vec<Value> {
    let parts = translate("agent-event", "ai-sdk", lines, &Exit::default());
    parts.into_iter().filter(|part| part["type"] != "stream-start").collect()
}

/// A record with its envelope.
fn event(fields: Value) -> String {
    let mut event = json!({
        "eventId":"e","agentId":"a","agentType":"claude-code","timestamp":1,"teamMetadata":{}
    });
    for (name, value) in fields.as_object().unwrap() {
        event[name] = value.clone();
    }
    event.to_string()
}

#[test]
fn every_event_has_the_envelope() {
    let line = r#"{"type":"init","timestamp":"2025-01-01T00:00:00.250Z","session_id":"s"}"#;
    let events = translate("gemini", "agent-event", &[line], &Exit::default());
    let ids: std::collections::BTreeSet<_> =
        events.iter().map(|event| event["eventId"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), events.len());
    for event in &events {
        assert_eq!(event["agentId"], "a-1");
        assert_eq!(event["agentType"], "google-gemini");
        assert_eq!(event["teamMetadata"], json!({"teamName":"t"}));
        assert_eq!(event["timestamp"], 1_735_689_600_250_u64);
    }
}

#[test]
fn the_time_of_the_caller_is_used_if_the_agent_states_none() {
    let (from, to) = (dialect("codex"), dialect("agent-event"));
    let mut translator = Translator::new(from.into(), to, Options::default()).unwrap();
    let line = b"{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n";
    let event: Value = serde_json::from_slice(translator.push(line, Some(7))).unwrap();
    assert_eq!(event["timestamp"], 7);
    assert_eq!(event["agentType"], "openai-codex");
}

#[test]
fn text_and_reasoning_are_distinguished() {
    let events = written(
        "codex",
        &[
            r#"{"type":"item.completed","item":{"id":"item_0","type":"reasoning","text":"Hm."}}"#,
            r#"{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"Hello"}}"#,
            r#"{"type":"turn.completed"}"#,
        ],
    );
    assert_eq!(
        events,
        [
            json!({"type":"session.started"}),
            json!({"type":"text","text":"Hm.","role":"assistant","category":"reasoning"}),
            json!({"type":"text","text":"Hello","role":"assistant","category":"message"}),
            json!({"type":"turn.completed","finishReason":"done"}),
        ]
    );
}

#[test]
fn the_final_text_is_not_repeated() {
    let text = r#"{"type":"assistant","session_id":"s","message":{"id":"m","content":[{"type":"text","text":"Hello"}]}}"#;
    let result = r#"{"type":"result","subtype":"success","is_error":false,"session_id":"s","duration_api_ms":1,"result":"Hello"}"#;
    let texts = |lines: &[&str]| {
        written("claude", lines).iter().filter(|event| event["type"] == "text").count()
    };
    assert_eq!(texts(&[text, result]), 1);
    assert_eq!(texts(&[result]), 1);
}

#[test]
fn the_text_of_a_sub_agent_is_not_part_of_the_answer() {
    let text = r#"{"type":"assistant","session_id":"s","parent_tool_use_id":"task-1","message":{"id":"m","content":[{"type":"text","text":"Hi"}]}}"#;
    let events = written("claude", &[text]);
    let text = json!({"type":"text","text":"Hi","role":"assistant","category":"subagent"});
    assert_eq!(events[1], text);
}

#[test]
fn codex_items_have_the_names_of_tools() {
    let item = |fields: &str| format!(r#"{{"type":"item.completed","item":{{{fields}}}}}"#);
    let events = written(
        "codex",
        &[
            &item(
                r#""id":"a","type":"command_execution","command":"x","aggregated_output":"out","exit_code":2,"status":"failed""#,
            ),
            &item(r#""id":"b","type":"file_change","changes":[],"status":"completed""#),
            &item(r#""id":"c","type":"web_search","query":"q""#),
            &item(
                r#""id":"d","type":"mcp_tool_call","server":"s","tool":"t","arguments":{},"status":"failed","error":{"message":"no"}"#,
            ),
        ],
    );
    assert_eq!(
        events[1..9],
        [
            json!({"type":"tool.started","toolName":"Bash","toolId":"a","input":{"command":"x"}}),
            json!({"type":"tool.completed","toolName":"Bash","toolId":"a","output":"out","error":"Exit code: 2"}),
            json!({"type":"tool.started","toolName":"Write","toolId":"b","input":{"changes":[]}}),
            json!({"type":"tool.completed","toolName":"Write","toolId":"b"}),
            json!({"type":"tool.started","toolName":"WebSearch","toolId":"c","input":{"query":"q"}}),
            json!({"type":"tool.completed","toolName":"WebSearch","toolId":"c"}),
            json!({"type":"tool.started","toolName":"mcp__s__t","toolId":"d","input":{}}),
            json!({"type":"tool.completed","toolName":"mcp__s__t","toolId":"d","error":"no"}),
        ]
    );
}

#[test]
fn an_output_of_blocks_is_text() {
    let call = r#"{"type":"assistant","session_id":"s","message":{"id":"m","content":[{"type":"tool_use","id":"c","name":"Task","input":{}}]}}"#;
    let answer = r#"{"type":"user","session_id":"s","message":{"content":[{"type":"tool_result","tool_use_id":"c","is_error":true,"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]}}"#;
    let events = written("claude", &[call, answer]);
    let expected = json!({"type":"tool.completed","toolName":"Task","toolId":"c","output":"a\nb","error":"a\nb"});
    assert_eq!(events[2], expected);
}

#[test]
fn a_failed_turn_has_its_cause_once() {
    let error = r#"{"type":"error","message":"unexpected status 401: no"}"#;
    let failed = r#"{"type":"turn.failed","error":{"message":"unexpected status 401: no"}}"#;
    let expected = [
        json!({"type":"session.started"}),
        json!({"type":"error","error":"unexpected status 401: no","code":"AUTHENTICATION"}),
        json!({"type":"turn.completed","finishReason":"error"}),
    ];
    let start = r#"{"type":"thread.started","thread_id":"t"}"#;
    let turn = r#"{"type":"turn.started"}"#;
    assert_eq!(written("codex", &[start, turn, error, failed]), expected);
    assert_eq!(written("codex", &[start, turn, failed]), expected);
}

#[test]
fn a_process_that_was_killed_is_an_error() {
    let exit = Exit { code: Some(3), ..Exit::default() };
    let line = r#"{"type":"thread.started","thread_id":"t"}"#;
    let events = without_envelopes(translate("codex", "agent-event", &[line], &exit));
    assert_eq!(events[1]["code"], "PROCESS_EXIT");
    assert_eq!(events[2], json!({"type":"turn.completed","finishReason":"error"}));
}

#[test]
fn an_unreadable_line_is_an_error_and_the_stream_continues() {
    let events = written("codex", &["{oops}", r#"{"type":"turn.completed"}"#]);
    let message = events[0]["error"].as_str().unwrap();
    assert!(message.starts_with("Failed to parse JSONL: "), "{message}");
    assert_eq!(events[0]["code"], "JSONL_PARSE_ERROR");
    assert_eq!(
        events[1..],
        [json!({"type":"session.started"}), json!({"type":"turn.completed","finishReason":"done"}),]
    );
}

#[test]
fn a_stopped_turn_is_cancelled() {
    let line = r#"{"type":"result","status":"error","error":{"type":"FatalCancellationError","message":"x"}}"#;
    let events = written("gemini", &[line]);
    assert_eq!(events[1..], [json!({"type":"turn.completed","finishReason":"cancelled"})]);
}

#[test]
fn a_tool_that_the_client_runs_is_not_written() {
    let line = r#"{"type":"snapshot_request","requestId":"r"}"#;
    let events = written("giselle", &[line]);
    assert_eq!(
        events[1..],
        [
            json!({"type":"error","error":"the agent waits for a tool of the client"}),
            json!({"type":"turn.completed","finishReason":"error"}),
        ]
    );
}

#[test]
fn a_failure_has_the_code_of_its_class() {
    let failed = r#"{"type":"turn.failed","error":{"message":"Codex ran out of room in the model's context window."}}"#;
    let events = written("codex", &[r#"{"type":"turn.started"}"#, failed]);
    assert_eq!(events[1]["code"], "CONTEXT_OVERFLOW");
    let result = r#"{"type":"result","status":"error"}"#;
    let events = written("gemini", &[result]);
    assert_eq!(events[1]["error"], "the turn failed, and the agent reported no reason");
    assert_eq!(events[2], json!({"type":"turn.completed","finishReason":"error"}));
}

#[test]
fn a_notice_within_a_turn_is_a_text_of_the_system() {
    let notice =
        r#"{"type":"item.completed","item":{"id":"item_9","type":"error","message":"careful"}}"#;
    let lines = [r#"{"type":"thread.started","thread_id":"t"}"#, notice, CODEX_END];
    let events = written("codex", &lines);
    assert_eq!(
        events[1..],
        [
            json!({"type":"text","text":"careful","role":"system","category":"notice"}),
            json!({"type":"turn.completed","finishReason":"done"}),
        ]
    );
    // It is read as a notice again.
    let lines: Vec<String> = translate("codex", "agent-event", &lines, &Exit::default())
        .iter()
        .map(ToString::to_string)
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let read = translate("agent-event", "events", &lines, &Exit::default());
    assert_eq!(read.iter().filter(|event| event["type"] == "notice").count(), 1);
    // After the end of a turn the consumer may have stopped reading, and before the session it has
    // not started.
    let late = written("codex", &[CODEX_END, notice]);
    assert!(late.iter().all(|event| event["type"] != "text"), "{late:?}");
}

#[test]
fn signatures_and_denials_are_counted_as_losses() {
    let lines = [
        r#"{"type":"assistant","session_id":"s","message":{"id":"m","content":[{"type":"thinking","thinking":"Hm.","signature":"c2ln"},{"type":"tool_use","id":"c","name":"Bash","input":{}}]}}"#,
        r#"{"type":"result","subtype":"success","is_error":false,"session_id":"s","result":"ok"}"#,
    ];
    let written = translate_lines("claude", "agent-event", &lines);
    let lost: Vec<_> = written.losses().iter().map(|(what, _)| what).collect();
    assert!(lost.contains(&"signatures"), "{lost:?}");
    assert!(lost.contains(&"how a call failed (denied, cancelled, abandoned)"), "{lost:?}");
}

#[test]
fn consecutive_texts_of_one_category_are_one_block() {
    let parts = read(&[
        &event(json!({"type":"session.started"})),
        &event(json!({"type":"text","text":"Hm.","role":"assistant","category":"reasoning"})),
        &event(json!({"type":"text","text":"a","role":"assistant","category":"message"})),
        &event(json!({"type":"text","text":"b","role":"assistant","category":"message"})),
        &event(
            json!({"type":"tool.started","toolName":"Bash","toolId":"c","input":{"command":"ls"}}),
        ),
        &event(json!({"type":"tool.completed","toolId":"c","output":"x","error":"bad"})),
        &event(json!({"type":"text","text":"c"})),
        &event(json!({"type":"turn.completed","finishReason":"done"})),
    ]);
    let kinds: Vec<_> = parts.iter().map(|part| part["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "reasoning-start",
            "reasoning-delta",
            "reasoning-end",
            "text-start",
            "text-delta",
            "text-delta",
            "text-end",
            "tool-call",
            "tool-result",
            "text-start",
            "text-delta",
            "text-end",
            "finish",
        ]
    );
    assert_eq!(parts[7]["input"], r#"{"command":"ls"}"#);
    assert_eq!((&parts[8]["toolName"], &parts[8]["isError"]), (&json!("Bash"), &json!(true)));
    assert_eq!(parts[12]["finishReason"], json!({"unified":"stop","raw":"done"}));
}

#[test]
fn the_ends_of_turns_are_read() {
    for (word, unified) in
        [("done", "stop"), ("error", "error"), ("cancelled", "other"), ("timeout", "error")]
    {
        let parts = read(&[&event(json!({"type":"turn.completed","finishReason":word}))]);
        assert_eq!(parts.last().unwrap()["finishReason"]["unified"], unified, "{word}");
    }
    let parts = read(&[
        &event(json!({"type":"session.started"})),
        &event(json!({"type":"error","error":"too busy","code":"OVERLOADED"})),
        &event(json!({"type":"turn.completed","finishReason":"error"})),
    ]);
    let error = json!({"message":"too busy","code":"overloaded","isRetryable":true});
    assert_eq!(parts[0]["error"], error);
}

#[test]
fn a_todo_list_is_read_and_the_leaked_result_of_its_tool_is_not_a_call() {
    let items = json!([{"text":"a","status":"pending"}]);
    let parts = read(&[
        &event(json!({"type":"todo_list","todoId":"c","items":items})),
        &event(json!({"type":"tool.completed","toolName":"unknown","toolId":"c","output":"ok"})),
        &event(json!({"type":"turn.completed","finishReason":"done"})),
    ]);
    let calls: Vec<_> = parts.iter().filter(|part| part["type"] == "tool-call").collect();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["input"], r#"{"plan":[{"step":"a","status":"pending"}]}"#);
}

#[test]
fn a_final_text_that_was_sent_twice_is_read_once() {
    let text = event(json!({"type":"text","text":"Hi","category":"assistant-message"}));
    let again = event(json!({"type":"text","text":"Hi","category":"result"}));
    let end = event(json!({"type":"turn.completed","finishReason":"done"}));
    let texts =
        |lines: &[&str]| read(lines).iter().filter(|part| part["type"] == "text-delta").count();
    assert_eq!(texts(&[&text, &again, &end]), 1);
    assert_eq!(texts(&[&again, &end]), 1);
    assert_eq!(texts(&[&again]), 1);
}

#[test]
fn the_dialect_is_recognised() {
    let to = dialect("agent-event");
    let mut translator = Translator::new(Source::Recognise, to, Options::default()).unwrap();
    let line = event(json!({"type":"turn.completed","finishReason":"done"})) + "\n";
    let written = translator.push(line.as_bytes(), None).to_vec();
    assert_eq!(translator.reader().dialect().unwrap().name, "agent-event");
    // Translation into the same dialect is the identity.
    assert_eq!(String::from_utf8(written).unwrap(), line);
}
