//! The AI SDK parts that are written for an agent's tools, and the tool parts for events without a
//! part of their own.

use interlingua::dialect::{EncodeOptions, Encoder, Output};
use interlingua::event::{
    Data, Event, Executor, FileChange, FilesChanged, Outcome, PlanUpdated, ToolEnded, ToolStarted,
    ToolStatus, TurnEnded,
};
use interlingua::json::{Json, Text};
use interlingua::{Exit, Options};
use serde_json::{Value, json};

use crate::support::ai_sdk::{
    CODEX_END, CODEX_START, completed, encode, encoder, parse, parts, session_metadata,
};
use crate::support::records::of_type;
use crate::support::{dialect, translate_with};

#[test]
fn the_input_is_a_json_string() {
    for (given, expected) in [
        (Some(r#"{"a":"b\n\"c\""}"#), r#"{"a":"b\n\"c\""}"#),
        (Some(r#""text""#), "{}"),
        (Some("[1]"), "{}"),
        (Some("null"), "{}"),
    ] {
        let input = given.and_then(|json| Json::from_text(json.to_owned()));
        let started = ToolStarted { call: "c".into(), input, ..ToolStarted::default() };
        let (parts, _) = encode(encoder(), vec![started.into(), completed()]);
        assert_eq!(of_type(&parts, "tool-call")[0]["input"], expected, "{given:?}");
    }
}

#[test]
fn agent_tools_are_provider_executed_and_dynamic() {
    let parts = parts(
        "codex",
        &[
            CODEX_START,
            r#"{"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"false"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"false","aggregated_output":"no\n","exit_code":3,"status":"failed"}}"#,
            CODEX_END,
        ],
    );
    let call = json!({
        "type":"tool-call","toolCallId":"item_0","toolName":"command_execution",
        "input":"{\"command\":\"false\"}","providerExecuted":true,"dynamic":true,
        "providerMetadata":session_metadata("t-1")
    });
    let result = json!({
        "type":"tool-result","toolCallId":"item_0","toolName":"command_execution",
        "result":"no\n","isError":true,"dynamic":true,
        "providerMetadata":{"interlingua":{"exitCode":3}}
    });
    assert_eq!(parts[2..4], [call, result]);
    assert_eq!(parts[4]["finishReason"]["unified"], "stop");
}

#[test]
fn an_input_that_is_streamed_is_written_in_deltas() {
    let stream = |event: &str| {
        format!(r#"{{"type":"stream_event","session_id":"s","uuid":"u","event":{event}}}"#)
    };
    let parts = parts(
        "claude",
        &[
            &stream(r#"{"type":"message_start","message":{"id":"m"}}"#),
            &stream(
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"Bash","input":{}}}"#,
            ),
            &stream(
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"command\":"}}"#,
            ),
            &stream(
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"\"ls\"}"}}"#,
            ),
            r#"{"type":"assistant","session_id":"s","message":{"id":"m","content":[{"type":"tool_use","id":"c","name":"Bash","input":{"command":"ls"}}]}}"#,
            &stream(r#"{"type":"content_block_stop","index":0}"#),
            r#"{"type":"user","session_id":"s","message":{"content":[{"type":"tool_result","tool_use_id":"c","content":"a.txt"}]}}"#,
        ],
    );
    assert_eq!(
        parts[2..8],
        [
            json!({"type":"tool-input-start","id":"c","toolName":"Bash","providerExecuted":true,"dynamic":true}),
            json!({"type":"tool-input-delta","id":"c","delta":"{\"command\":"}),
            json!({"type":"tool-input-delta","id":"c","delta":"\"ls\"}"}),
            json!({"type":"tool-input-end","id":"c"}),
            json!({"type":"tool-call","toolCallId":"c","toolName":"Bash","input":"{\"command\":\"ls\"}","providerExecuted":true,"dynamic":true,"providerMetadata":session_metadata("s")}),
            json!({"type":"tool-result","toolCallId":"c","toolName":"Bash","result":"a.txt","dynamic":true}),
        ]
    );
}

#[test]
fn a_result_is_never_null() {
    let result = |ended: ToolEnded<'_>| {
        let (parts, _) = encode(encoder(), vec![ended.into(), completed()]);
        of_type(&parts, "tool-result")[0].clone()
    };
    let json = |text: &str| Json::from_text(text.to_owned());
    let failed = ToolEnded {
        status: ToolStatus::Failed,
        output: json("\"\""),
        error: Some("no such file".into()),
        ..ToolEnded::default()
    };
    assert_eq!(result(ToolEnded::default())["result"], "");
    assert_eq!(result(ToolEnded { output: json("null"), ..ToolEnded::default() })["result"], "");
    assert_eq!(result(failed)["result"], "no such file");
    let blocks = r#"[{"type":"text","text":"a"}]"#;
    let listed = result(ToolEnded { output: json(blocks), ..ToolEnded::default() });
    assert_eq!(listed["result"], json!([{"type":"text","text":"a"}]));
    assert_eq!(listed.get("isError"), None);
}

#[test]
fn a_failed_call_states_how_it_failed() {
    let result = |ended: ToolEnded<'_>| {
        let failed = ToolEnded { status: ToolStatus::Failed, ..ended };
        let (parts, _) = encode(encoder(), vec![failed.into(), completed()]);
        of_type(&parts, "tool-result")[0]["result"].clone()
    };
    let json = |text: &str| Json::from_text(text.to_owned());
    let silent = || ToolEnded { output: json("\"\""), ..ToolEnded::default() };
    assert_eq!(result(ToolEnded { exit_code: Some(4), ..silent() }), "Exit code: 4");
    assert_eq!(result(silent()), "the call failed");
    assert_eq!(
        result(ToolEnded { output: json("null"), ..ToolEnded::default() }),
        "the call failed"
    );
    let blocks = json(r#"[{"type":"text","text":"no"}]"#);
    assert_eq!(result(ToolEnded { output: blocks, ..ToolEnded::default() }), "no");
    let error = Some(Text::plain("no such file"));
    let both = ToolEnded { output: json("\"short\""), error, ..ToolEnded::default() };
    assert_eq!(result(both), "short\nno such file");
}

#[test]
fn the_status_of_a_failed_call_is_metadata() {
    for (status, expected) in
        [(ToolStatus::Denied, json!("denied")), (ToolStatus::Failed, Value::Null)]
    {
        let ended = ToolEnded { status, ..ToolEnded::default() };
        let (parts, _) = encode(encoder(), vec![ended.into(), completed()]);
        let result = of_type(&parts, "tool-result")[0];
        assert_eq!(result["isError"], true);
        assert_eq!(result["providerMetadata"]["interlingua"]["status"], expected);
    }
}

#[test]
fn a_result_that_names_a_prototype_is_written_as_text() {
    let output = Json::from_text(r#"{"a":{"__proto__":{"x":1}}}"#.to_owned());
    let ended = ToolEnded { output, ..ToolEnded::default() };
    let (parts, _) = encode(encoder(), vec![ended.into(), completed()]);
    assert_eq!(of_type(&parts, "tool-result")[0]["result"], r#"{"a":{"__proto__":{"x":1}}}"#);
}

#[test]
fn a_clients_tool_has_no_flags_and_ends_the_stream_with_tool_calls() {
    let parts = parts(
        "giselle",
        &[
            r#"{"type":"init","session_id":"s","modelId":"m"}"#,
            r#"{"type":"message","role":"assistant","content":"Look.","delta":true}"#,
            r#"{"type":"snapshot_request","requestId":"req-1","instruction":"fill"}"#,
        ],
    );
    assert_eq!(
        parts[2..],
        [
            json!({"type":"text-start","id":"b1"}),
            json!({"type":"text-delta","id":"b1","delta":"Look."}),
            json!({"type":"text-end","id":"b1","providerMetadata":session_metadata("s")}),
            json!({"type":"tool-call","toolCallId":"req-1","toolName":"getFormSnapshot","input":"{\"instruction\":\"fill\"}","providerMetadata":session_metadata("s")}),
            json!({
                "type":"finish",
                "finishReason":{"unified":"tool-calls","raw":"waiting_for_client"},
                "usage":{"inputTokens":{},"outputTokens":{}},
                "providerMetadata":{"interlingua":{"sessionId":"s","outcome":"waiting_for_client"}}
            }),
        ]
    );
}

#[test]
fn a_plan_without_a_call_is_written_as_a_call_and_its_result() {
    let parts = parts(
        "codex",
        &[
            CODEX_START,
            r#"{"type":"item.started","item":{"id":"item_0","type":"todo_list","items":[{"text":"Look","completed":false}]}}"#,
            CODEX_END,
        ],
    );
    let id = parts[2]["toolCallId"].as_str().unwrap();
    assert!(id.starts_with("plan-"), "{id}");
    assert_eq!(
        parts[2..4],
        [
            json!({"type":"tool-call","toolCallId":id,"toolName":"updatePlan","input":"{\"plan\":[{\"step\":\"Look\",\"status\":\"pending\"}]}","providerExecuted":true,"dynamic":true,"providerMetadata":session_metadata("t-1")}),
            json!({"type":"tool-result","toolCallId":id,"toolName":"updatePlan","result":"ok","dynamic":true}),
        ]
    );
}

#[test]
fn generated_calls_of_several_runs_have_different_ids() {
    let ids = |session: &'static str, id_seed: Option<u64>| {
        let started = format!(
            r#"{{"interlingua":1,"type":"session_started","sequence":0,"id":"{session}"}}"#
        );
        let change = r#"{"interlingua":1,"type":"files_changed","sequence":1,"changes":[]}"#;
        let encode = EncodeOptions { id_seed, ..EncodeOptions::default() };
        let options = Options { encode, ..Options::default() };
        let input = format!("{started}\n{change}\n{change}\n");
        let to = dialect("ai-sdk");
        let written = translate_with(options, None, to, [input.as_bytes()], &Exit::default());
        let parts = written.records();
        let calls = of_type(&parts, "tool-call");
        calls.iter().map(|call| call["toolCallId"].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(ids("s", None), ids("s", None));
    let all = [ids("s", None), ids("t", None), ids("s", Some(1))].concat();
    let different: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(different.len(), 6, "{all:?}");
}

/// Regression: `updatePlan {"plan":[]}` was written, though it was never called.
#[test]
fn a_refused_plan_generates_no_call() {
    let call = r#"{"type":"tool_use","tool_name":"write_todos","tool_id":"c","parameters":{"todos":[{"description":"a","status":"pending"}]}}"#;
    let refused = r#"{"type":"tool_result","tool_id":"c","status":"error"}"#;
    let parts = parts("gemini", &[call, refused]);
    let names: Vec<_> = of_type(&parts, "tool-call").iter().map(|call| &call["toolName"]).collect();
    assert_eq!(names, ["write_todos"]);
    assert_eq!(of_type(&parts, "tool-result")[0]["isError"], true);
}

#[test]
fn a_sub_agents_plan_names_its_call() {
    let mut out = Output::default();
    let mut encoder = encoder();
    let event = Event::new(PlanUpdated::default()).within(Some(Text::plain("task-1")));
    encoder.encode(&event, &mut out);
    let metadata = json!({"interlingua":{"parentToolCallId":"task-1"}});
    for part in &parse(out.bytes())[1..] {
        assert_eq!(part["providerMetadata"], metadata);
    }
}

#[test]
fn a_plan_that_a_call_wrote_is_that_call() {
    let call = r#"{"type":"tool_use","tool_name":"write_todos","tool_id":"c","parameters":{"todos":[{"description":"a","status":"pending"}]}}"#;
    let parts = parts("gemini", &[call]);
    let names: Vec<_> = of_type(&parts, "tool-call").iter().map(|call| &call["toolName"]).collect();
    assert_eq!(names, ["write_todos"]);
}

#[test]
fn artifacts_compaction_and_file_changes_are_written_as_calls_and_results() {
    let artifact =
        r#"{"type":"artifact","path":"a.png","size_bytes":3,"mime_type":"image/png","label":"A"}"#;
    let compact = r#"{"type":"system","subtype":"compact_boundary","session_id":"s","uuid":"u","compact_metadata":{"trigger":"auto","pre_tokens":9,"post_tokens":2}}"#;
    let artifact = parts("giselle", &[artifact]);
    let compaction = parts("claude", &[compact]);
    let change = FileChange { path: "a.rs".into(), ..FileChange::default() };
    let (changes, _) = encode(
        encoder(),
        vec![FilesChanged { call: None, changes: vec![change] }.into(), completed()],
    );
    let input = |parts: &[Value]| of_type(parts, "tool-call")[0]["input"].clone();
    assert_eq!(
        input(&artifact),
        r#"{"path":"a.png","size_bytes":3,"mime_type":"image/png","label":"A"}"#
    );
    assert_eq!(input(&compaction), r#"{"trigger":"auto","tokensBefore":9,"tokensAfter":2}"#);
    assert_eq!(input(&changes), r#"{"changes":[{"path":"a.rs","kind":"update"}]}"#);
}

#[test]
fn agent_tools_can_be_hidden() {
    let call = |executor: Executor| ToolStarted {
        call: executor.as_str().to_owned().into(),
        executor,
        input: Some(Json::object(|_| {})),
        ..ToolStarted::default()
    };
    let answer = ToolEnded { call: "agent".into(), ..ToolEnded::default() };
    let events = vec![
        call(Executor::Agent).into(),
        answer.into(),
        call(Executor::Client).into(),
        Data::from(TurnEnded { outcome: Outcome::WaitingForClient, ..TurnEnded::default() }),
    ];
    let (parts, losses) = encode(encoder().hiding_agent_tools(), events);
    let kinds: Vec<_> = parts.iter().map(|part| part["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["stream-start", "tool-call", "finish"]);
    assert_eq!(parts[2]["finishReason"]["unified"], "tool-calls");
    assert_eq!(losses, ["tool calls of the agent"]);
}
