//! What AI SDK consumers are told of an agent's stream.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, missing_docs)]

use interlingua::dialect::ai_sdk::AiSdkEncoder;
use interlingua::dialect::{self, EncodeOptions, Encoder, Output};
use interlingua::event::{
    Block, BlockDelta, BlockEnded, BlockKind, BlockStarted, Cost, Data, Error, ErrorClass, Event,
    Executor, FileChange, FilesChanged, Outcome, SessionStarted, ToolEnded, ToolStarted,
    ToolStatus, TurnEnded, Usage,
};
use interlingua::json::{Json, Text};
use interlingua::{Exit, Options, Translator};
use serde_json::{Value, json};

/// The parts of a stream in some dialect.
fn parts(from: &str, lines: &[&str]) -> Vec<Value> {
    let to = dialect::find("ai-sdk").unwrap();
    let mut translator = Translator::new(dialect::find(from), to, Options::default()).unwrap();
    let mut written = translator.push(lines.join("\n").as_bytes()).to_vec();
    written.extend_from_slice(translator.finish(&Exit::default()));
    read(&written)
}

/// The parts of some events, and what was lost of them.
fn encoded(mut encoder: AiSdkEncoder, events: Vec<Data<'_>>) -> (Vec<Value>, Vec<String>) {
    let mut out = Output::default();
    for data in events {
        encoder.encode(&Event::new(data), &mut out);
    }
    encoder.finish(&mut out);
    let losses = out.losses().iter().map(|(what, _)| what.to_owned()).collect();
    (read(out.bytes()), losses)
}

fn encoder() -> AiSdkEncoder {
    AiSdkEncoder::new(&EncodeOptions::default())
}

fn read(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_type<'p>(parts: &'p [Value], kind: &str) -> Vec<&'p Value> {
    parts.iter().filter(|part| part["type"] == kind).collect()
}

fn completed() -> Data<'static> {
    Data::from(TurnEnded { outcome: Outcome::Completed, ..TurnEnded::default() })
}

const CODEX_START: &str = r#"{"type":"thread.started","thread_id":"t-1"}"#;
const CODEX_END: &str = r#"{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":4,"output_tokens":5}}"#;

#[test]
fn a_small_stream_is_these_parts() {
    let parts = parts(
        "codex",
        &[
            CODEX_START,
            r#"{"type":"turn.started"}"#,
            r#"{"type":"item.completed","item":{"id":"item_0","type":"reasoning","text":"Hm."}}"#,
            r#"{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"Hello"}}"#,
            CODEX_END,
        ],
    );
    assert_eq!(
        parts,
        [
            json!({"type":"stream-start","warnings":[]}),
            json!({"type":"response-metadata","id":"t-1"}),
            json!({"type":"reasoning-start","id":"b1"}),
            json!({"type":"reasoning-delta","id":"b1","delta":"Hm."}),
            json!({"type":"reasoning-end","id":"b1"}),
            json!({"type":"text-start","id":"b2"}),
            json!({"type":"text-delta","id":"b2","delta":"Hello"}),
            json!({"type":"text-end","id":"b2"}),
            json!({
                "type":"finish",
                "finishReason":{"unified":"stop","raw":"completed"},
                "usage":{
                    "inputTokens":{"total":10,"noCache":6,"cacheRead":4},
                    "outputTokens":{"total":5}
                },
                "providerMetadata":{"interlingua":{"sessionId":"t-1","outcome":"completed"}}
            }),
        ]
    );
}

#[test]
fn exactly_one_finish() {
    for lines in [&[][..], &["not json"], &[CODEX_START], &[CODEX_START, CODEX_END, CODEX_END]] {
        let parts = parts("codex", lines);
        assert_eq!(of_type(&parts, "finish").len(), 1, "{lines:?}");
        assert_eq!(parts.last().unwrap()["type"], "finish");
        assert_eq!(of_type(&parts, "stream-start").len(), 1, "{lines:?}");
        assert_eq!(parts[0]["type"], "stream-start");
    }
}

#[test]
fn several_turns_are_one_stream() {
    let parts = parts(
        "codex",
        &[
            CODEX_START,
            r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"One"}}"#,
            r#"{"type":"turn.failed","error":{"message":"broken"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"Two"}}"#,
            r#"{"type":"response.completed","usage":{"input_tokens":10,"output_tokens":1}}"#,
            r#"{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"Three"}}"#,
            r#"{"type":"response.completed","usage":{"input_tokens":20,"output_tokens":2}}"#,
        ],
    );
    assert_eq!(of_type(&parts, "text-delta").len(), 3);
    assert_eq!(of_type(&parts, "error").len(), 1);
    let [finish] = of_type(&parts, "finish")[..] else { panic!("one finish") };
    assert_eq!(finish["finishReason"]["unified"], "stop");
    assert_eq!(finish["usage"]["inputTokens"], json!({"total":30,"noCache":30}));
    assert_eq!(finish["usage"]["outputTokens"], json!({"total":3}));
}

#[test]
fn ids_on_every_block() {
    let gemini = |text: &str| {
        format!(r#"{{"type":"message","role":"assistant","content":"{text}","delta":true}}"#)
    };
    let call = r#"{"type":"tool_use","tool_name":"ls","tool_id":"c1","parameters":{}}"#;
    let answer = r#"{"type":"tool_result","tool_id":"c1","status":"success","output":"x"}"#;
    let parts = parts("gemini", &[&gemini("a"), &gemini("b"), call, answer, &gemini("c")]);
    let blocks: Vec<_> = parts
        .iter()
        .filter(|part| part["type"].as_str().unwrap().starts_with("text-"))
        .map(|part| (part["type"].as_str().unwrap(), part["id"].as_str().unwrap()))
        .collect();
    assert_eq!(
        blocks,
        [
            ("text-start", "b1"),
            ("text-delta", "b1"),
            ("text-delta", "b1"),
            ("text-end", "b1"),
            ("text-start", "b2"),
            ("text-delta", "b2"),
            ("text-end", "b2"),
        ]
    );
}

#[test]
fn empty_pieces_are_left_out() {
    let started = BlockStarted { block: 7, ..BlockStarted::default() };
    let delta = BlockDelta { block: 7, ..BlockDelta::default() };
    let ended = BlockEnded { block: 7, ..BlockEnded::default() };
    let empty = Block { block: 8, ..Block::default() };
    let events = vec![started.into(), delta.into(), ended.into(), empty.into(), completed()];
    let (parts, _) = encoded(encoder(), events);
    assert_eq!(of_type(&parts, "text-start"), [&json!({"type":"text-start","id":"b7"})]);
    assert!(of_type(&parts, "text-delta").is_empty());
}

#[test]
fn a_signature_is_metadata_of_the_reasonings_end() {
    let block = Block {
        kind: BlockKind::Reasoning,
        text: "Hm.".into(),
        signature: Some("c2ln".into()),
        ..Block::default()
    };
    let (parts, _) = encoded(encoder(), vec![block.into(), completed()]);
    let expected = json!({
        "type":"reasoning-end","id":"b0","providerMetadata":{"interlingua":{"signature":"c2ln"}}
    });
    assert_eq!(of_type(&parts, "reasoning-end"), [&expected]);
}

#[test]
fn hidden_reasoning_is_lost_and_counted() {
    let kind = BlockKind::HiddenReasoning;
    let started = BlockStarted { kind: kind.clone(), ..BlockStarted::default() };
    let delta = BlockDelta { kind: kind.clone(), text: "x".into(), ..BlockDelta::default() };
    let ended = BlockEnded { kind, ..BlockEnded::default() };
    let events = vec![started.into(), delta.into(), ended.into(), completed()];
    let (parts, losses) = encoded(encoder(), events);
    assert_eq!(parts.len(), 2);
    assert_eq!(losses, ["hidden reasoning"]);
}

#[test]
fn input_is_a_json_string() {
    for (given, expected) in [
        (Some(r#"{"a":"b\n\"c\""}"#), r#"{"a":"b\n\"c\""}"#),
        (Some(r#""text""#), "{}"),
        (Some("[1]"), "{}"),
        (Some("null"), "{}"),
    ] {
        let input = given.and_then(|json| Json::from_text(json.to_owned()));
        let started = ToolStarted { call: "c".into(), input, ..ToolStarted::default() };
        let (parts, _) = encoded(encoder(), vec![started.into(), completed()]);
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
        "input":"{\"command\":\"false\"}","providerExecuted":true,"dynamic":true
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
fn an_input_that_comes_in_pieces_is_told_in_pieces() {
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
        parts[1..7],
        [
            json!({"type":"tool-input-start","id":"c","toolName":"Bash","providerExecuted":true,"dynamic":true}),
            json!({"type":"tool-input-delta","id":"c","delta":"{\"command\":"}),
            json!({"type":"tool-input-delta","id":"c","delta":"\"ls\"}"}),
            json!({"type":"tool-input-end","id":"c"}),
            json!({"type":"tool-call","toolCallId":"c","toolName":"Bash","input":"{\"command\":\"ls\"}","providerExecuted":true,"dynamic":true}),
            json!({"type":"tool-result","toolCallId":"c","toolName":"Bash","result":"a.txt","dynamic":true}),
        ]
    );
}

#[test]
fn a_result_is_never_null() {
    let result = |ended: ToolEnded<'_>| {
        let (parts, _) = encoded(encoder(), vec![ended.into(), completed()]);
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
fn a_result_that_names_a_prototype_is_told_as_text() {
    let output = Json::from_text(r#"{"a":{"__proto__":{"x":1}}}"#.to_owned());
    let ended = ToolEnded { output, ..ToolEnded::default() };
    let (parts, _) = encoded(encoder(), vec![ended.into(), completed()]);
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
            json!({"type":"text-end","id":"b1"}),
            json!({"type":"tool-call","toolCallId":"req-1","toolName":"getFormSnapshot","input":"{\"instruction\":\"fill\"}"}),
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
fn a_failed_turn_is_an_error_and_a_finish() {
    let error = Error {
        class: ErrorClass::Overloaded,
        message: "too busy".into(),
        http_status: Some(529),
        ..Error::default()
    };
    let ended = TurnEnded {
        outcome: Outcome::Failed,
        cause: Some("too busy".into()),
        http_status: Some(529),
        ..TurnEnded::default()
    };
    let (parts, losses) = encoded(encoder(), vec![error.into(), ended.into()]);
    assert_eq!(
        parts[1..],
        [
            json!({"type":"error","error":{"message":"too busy","statusCode":529,"isRetryable":true}}),
            json!({
                "type":"finish",
                "finishReason":{"unified":"error","raw":"failed"},
                "usage":{"inputTokens":{},"outputTokens":{}},
                "providerMetadata":{"interlingua":{"outcome":"failed"}}
            }),
        ]
    );
    assert_eq!(losses, [""; 0]);
}

#[test]
fn a_cancelled_turn_is_no_error() {
    let parts = parts(
        "gemini",
        &[
            r#"{"type":"result","status":"error","error":{"type":"FatalCancellationError","message":"stopped"}}"#,
        ],
    );
    assert!(of_type(&parts, "error").is_empty());
    let finish = parts.last().unwrap();
    let reason = json!({"unified":"other","raw":"FatalCancellationError"});
    assert_eq!(finish["finishReason"], reason);
    assert_eq!(finish["providerMetadata"]["interlingua"]["cause"], "stopped");
}

#[test]
fn outcomes_have_their_reasons() {
    for (outcome, unified) in [
        (Outcome::Completed, "stop"),
        (Outcome::LimitReached, "length"),
        (Outcome::Refused, "content-filter"),
        (Outcome::Cancelled, "other"),
        (Outcome::TimedOut, "error"),
        (Outcome::Failed, "error"),
    ] {
        let ended = TurnEnded { outcome, stop_reason: Some("word".into()), ..TurnEnded::default() };
        let (parts, _) = encoded(encoder(), vec![ended.into()]);
        let reason = json!({"unified":unified,"raw":"word"});
        assert_eq!(parts.last().unwrap()["finishReason"], reason);
        assert_eq!(of_type(&parts, "error").len(), usize::from(unified == "error"));
    }
}

#[test]
fn unknown_counts_are_left_out() {
    let usage = |usage: Option<Usage<'static>>| {
        let ended = TurnEnded { outcome: Outcome::Completed, usage, ..TurnEnded::default() };
        let (parts, _) = encoded(encoder(), vec![ended.into()]);
        parts.last().unwrap()["usage"].clone()
    };
    assert_eq!(usage(None), json!({"inputTokens":{},"outputTokens":{}}));
    let some = Usage { output: Some(9), reasoning: Some(4), ..Usage::default() };
    assert_eq!(
        usage(Some(some)),
        json!({"inputTokens":{},"outputTokens":{"total":9,"text":5,"reasoning":4}})
    );
}

#[test]
fn money_and_time_are_metadata_of_the_finish() {
    let turn = || {
        let cost = Some(Cost { usd: 0.1, ..Cost::default() });
        let duration_ms = Some(20);
        let outcome = Outcome::Completed;
        Data::from(TurnEnded { outcome, cost, duration_ms, ..TurnEnded::default() })
    };
    let (parts, _) = encoded(encoder(), vec![turn(), turn(), turn()]);
    let facts = &parts.last().unwrap()["providerMetadata"]["interlingua"];
    assert_eq!(*facts, json!({"outcome":"completed","costUsd":0.3,"durationMs":60}));
}

#[test]
fn what_a_sub_agent_does_names_its_call() {
    let mut out = Output::default();
    let mut encoder = encoder();
    let block = Block { text: "hi".into(), ..Block::default() };
    let event = Event::new(block).within(Some(Text::plain("task-1")));
    encoder.encode(&event, &mut out);
    let parts = read(out.bytes());
    let metadata = json!({"interlingua":{"parentToolCallId":"task-1"}});
    assert_eq!(parts[1]["providerMetadata"], metadata);
    assert_eq!(parts[2].get("providerMetadata"), None);
    assert_eq!(parts[3]["providerMetadata"], metadata);
}

#[test]
fn a_plan_that_no_call_wrote_is_a_pair() {
    let parts = parts(
        "codex",
        &[
            CODEX_START,
            r#"{"type":"item.started","item":{"id":"item_0","type":"todo_list","items":[{"text":"Look","completed":false}]}}"#,
            CODEX_END,
        ],
    );
    assert_eq!(
        parts[2..4],
        [
            json!({"type":"tool-call","toolCallId":"plan-0","toolName":"updatePlan","input":"{\"plan\":[{\"step\":\"Look\",\"status\":\"pending\"}]}","providerExecuted":true,"dynamic":true}),
            json!({"type":"tool-result","toolCallId":"plan-0","toolName":"updatePlan","result":"ok","dynamic":true}),
        ]
    );
}

#[test]
fn a_plan_that_a_call_wrote_is_that_call() {
    let call = r#"{"type":"tool_use","tool_name":"write_todos","tool_id":"c","parameters":{"todos":[{"description":"a","status":"pending"}]}}"#;
    let parts = parts("gemini", &[call]);
    let names: Vec<_> = of_type(&parts, "tool-call").iter().map(|call| &call["toolName"]).collect();
    assert_eq!(names, ["write_todos"]);
}

#[test]
fn artifacts_compaction_and_file_changes_are_pairs() {
    let artifact =
        r#"{"type":"artifact","path":"a.png","size_bytes":3,"mime_type":"image/png","label":"A"}"#;
    let compact = r#"{"type":"system","subtype":"compact_boundary","session_id":"s","uuid":"u","compact_metadata":{"trigger":"auto","pre_tokens":9,"post_tokens":2}}"#;
    let artifact = parts("giselle", &[artifact]);
    let compaction = parts("claude", &[compact]);
    let change = FileChange { path: "a.rs".into(), ..FileChange::default() };
    let (changes, _) = encoded(
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
fn metadata_comes_again_with_news() {
    let parts = parts(
        "giselle",
        &[
            r#"{"type":"init","session_id":"s","modelId":"one"}"#,
            r#"{"type":"init","session_id":"s","modelId":"two"}"#,
        ],
    );
    assert_eq!(
        of_type(&parts, "response-metadata"),
        [
            &json!({"type":"response-metadata","id":"s","modelId":"one"}),
            &json!({"type":"response-metadata","modelId":"two"}),
        ]
    );
}

#[test]
fn a_writer_that_pauses_finishes_each_turn() {
    let session = Data::from(SessionStarted { id: Some("s".into()), ..SessionStarted::default() });
    let turn = || {
        let usage = Some(Usage { output: Some(1), ..Usage::default() });
        let outcome = Outcome::Completed;
        Data::from(TurnEnded { outcome, usage, ..TurnEnded::default() })
    };
    let (parts, _) = encoded(encoder().finishing_each_turn(), vec![session, turn(), turn()]);
    let finishes = of_type(&parts, "finish");
    assert_eq!(finishes.len(), 2);
    assert_eq!(finishes[0], finishes[1]);
    assert_eq!(finishes[1]["usage"]["outputTokens"], json!({"total":1}));
    assert_eq!(finishes[1]["providerMetadata"]["interlingua"]["sessionId"], "s");
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
    let (parts, losses) = encoded(encoder().hiding_agent_tools(), events);
    let kinds: Vec<_> = parts.iter().map(|part| part["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["stream-start", "tool-call", "finish"]);
    assert_eq!(parts[2]["finishReason"]["unified"], "tool-calls");
    assert_eq!(losses, ["tool call of the agent"]);
}
