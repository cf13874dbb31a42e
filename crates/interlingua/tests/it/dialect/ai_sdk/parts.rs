//! The AI SDK parts that are written for an agent's stream.

use interlingua::Exit;
use interlingua::dialect::ai_sdk::{AiSdkEncoder, Specification};
use interlingua::dialect::{EncodeOptions, Encoder, Output};
use interlingua::event::{
    Block, BlockDelta, BlockEnded, BlockKind, BlockStarted, Cost, Data, Error, ErrorClass, Event,
    Notice, Outcome, SessionStarted, Severity, ToolEnded, ToolStatus, TurnEnded, TurnStarted,
    Usage,
};
use interlingua::json::{Json, Text};
use serde_json::json;

use crate::support::ai_sdk::{
    CODEX_END, CODEX_START, completed, encode, encoder, parse, parts, session_metadata,
};
use crate::support::records::of_type;
use crate::support::{dialect, translate_chunks};

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
            json!({"type":"text-end","id":"b2","providerMetadata":session_metadata("t-1")}),
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
fn a_stream_has_exactly_one_finish() {
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
fn every_block_has_an_id() {
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
fn empty_deltas_are_left_out() {
    let started = BlockStarted { block: 7, ..BlockStarted::default() };
    let delta = BlockDelta { block: 7, ..BlockDelta::default() };
    let ended = BlockEnded { block: 7, ..BlockEnded::default() };
    let empty = Block { block: 8, ..Block::default() };
    let events = vec![started.into(), delta.into(), ended.into(), empty.into(), completed()];
    let (parts, _) = encode(encoder(), events);
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
    let (parts, _) = encode(encoder(), vec![block.into(), completed()]);
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
    let (parts, losses) = encode(encoder(), events);
    assert_eq!(parts.len(), 2);
    assert_eq!(losses, ["hidden reasoning"]);
}

#[test]
fn content_that_is_written_is_not_counted_as_lost() {
    let ended = ToolEnded {
        status: ToolStatus::Failed,
        output: Json::from_text("\"no\"".to_owned()),
        error: Some("no".into()),
        ..ToolEnded::default()
    };
    let error = Error { message: "too long".into(), ..Error::default() };
    let limit = |cause: &'static str| {
        let cause = Some(Text::plain(cause));
        TurnEnded { outcome: Outcome::LimitReached, cause, ..TurnEnded::default() }
    };
    let events = vec![ended.into(), error.clone().into(), limit("it was too long").into()];
    assert_eq!(encode(encoder(), events).1, [""; 0]);
    let events = vec![error.into(), limit("another").into(), completed()];
    assert_eq!(
        encode(encoder(), events).1,
        ["errors that did not end the turn", "why a turn before the last one ended"]
    );
}

/// The agent's process was killed, which only version 4 can express.
#[test]
fn a_truncated_stream_is_interrupted_in_version_4() {
    let finish = |to: &str, exit: &Exit, lines: &[&str]| {
        let input = lines.join("\n");
        let codex = Some(dialect("codex"));
        let parts = translate_chunks(codex, dialect(to), [input.as_bytes()], exit).records();
        let errors = of_type(&parts, "error").len();
        (parts.last().unwrap()["finishReason"]["unified"].clone(), errors)
    };
    let killed = Exit { signal: Some(9), ..Exit::default() };
    let stopped = Exit { signal: Some(15), ..Exit::default() };
    let turn = [CODEX_START, r#"{"type":"turn.started"}"#];
    assert_eq!(finish("ai-sdk", &killed, &turn), (json!("error"), 1));
    assert_eq!(finish("ai-sdk-v4", &killed, &turn), (json!("interrupted"), 1));
    assert_eq!(finish("ai-sdk-v4", &stopped, &turn), (json!("interrupted"), 0));
    let failed = [CODEX_START, r#"{"type":"turn.failed","error":{"message":"no"}}"#];
    assert_eq!(finish("ai-sdk-v4", &killed, &failed), (json!("error"), 1));
    let done = [CODEX_START, CODEX_END];
    assert_eq!(finish("ai-sdk-v4", &Exit::default(), &done), (json!("stop"), 0));
}

#[test]
fn a_notice_is_a_custom_part_in_version_4() {
    let notice = || Data::from(Notice { severity: Severity::Warning, text: "careful".into() });
    let (parts, losses) = encode(encoder(), vec![notice(), completed()]);
    assert_eq!((parts.len(), losses), (2, vec!["notices".to_owned()]));
    let version_4 = encoder().in_version(Specification::V4);
    let (parts, losses) = encode(version_4, vec![notice(), completed()]);
    let metadata = json!({"interlingua":{"severity":"warning","text":"careful"}});
    let custom = json!({"type":"custom","kind":"interlingua.notice","providerMetadata":metadata});
    assert_eq!(parts[1], custom);
    assert_eq!(losses, [""; 0]);
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
    let (parts, losses) = encode(encoder(), vec![error.into(), ended.into()]);
    assert_eq!(
        parts[1..],
        [
            json!({"type":"error","error":{"message":"too busy","statusCode":529,"code":"overloaded","isRetryable":true}}),
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
    // These three were not ended by the model.
    for (outcome, unified, raw) in [
        (Outcome::Completed, "stop", "word"),
        (Outcome::LimitReached, "length", "word"),
        (Outcome::Refused, "content-filter", "word"),
        (Outcome::Cancelled, "other", "cancelled"),
        (Outcome::TimedOut, "error", "timed_out"),
        (Outcome::Failed, "error", "failed"),
    ] {
        let ended = TurnEnded { outcome, stop_reason: Some("word".into()), ..TurnEnded::default() };
        let with_reason = TurnEnded { reason: Some("stated".into()), ..ended.clone() };
        let (parts, _) = encode(encoder(), vec![ended.into()]);
        let reason = json!({"unified":unified,"raw":raw});
        assert_eq!(parts.last().unwrap()["finishReason"], reason);
        assert_eq!(of_type(&parts, "error").len(), usize::from(unified == "error"));
        let (parts, _) = encode(encoder(), vec![with_reason.into()]);
        let raw = if raw == "word" { raw } else { "stated" };
        assert_eq!(parts.last().unwrap()["finishReason"]["raw"], raw);
    }
}

#[test]
fn unknown_counts_are_left_out() {
    let usage = |usage: Option<Usage<'static>>| {
        let ended = TurnEnded { outcome: Outcome::Completed, usage, ..TurnEnded::default() };
        let (parts, _) = encode(encoder(), vec![ended.into()]);
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
fn cost_and_duration_are_metadata_of_the_finish() {
    let turn = || {
        let cost = Some(Cost { usd: 0.1, ..Cost::default() });
        let duration_ms = Some(20);
        let outcome = Outcome::Completed;
        Data::from(TurnEnded { outcome, cost, duration_ms, ..TurnEnded::default() })
    };
    let (parts, _) = encode(encoder(), vec![turn(), turn(), turn()]);
    let facts = &parts.last().unwrap()["providerMetadata"]["interlingua"];
    assert_eq!(*facts, json!({"outcome":"completed","costUsd":0.3,"durationMs":60}));
}

#[test]
fn parts_of_a_sub_agent_name_its_call() {
    let mut out = Output::default();
    let mut encoder = encoder();
    let block = Block { text: "hi".into(), ..Block::default() };
    let event = Event::new(block).within(Some(Text::plain("task-1")));
    encoder.encode(&event, &mut out);
    let parts = parse(out.bytes());
    let metadata = json!({"interlingua":{"parentToolCallId":"task-1"}});
    assert_eq!(parts[1]["providerMetadata"], metadata);
    assert_eq!(parts[2].get("providerMetadata"), None);
    assert_eq!(parts[3]["providerMetadata"], metadata);
}

#[test]
fn metadata_is_written_again_when_it_changes() {
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
    let (parts, _) = encode(encoder().finishing_each_turn(), vec![session, turn(), turn()]);
    let finishes = of_type(&parts, "finish");
    assert_eq!(finishes.len(), 2);
    assert_eq!(finishes[0], finishes[1]);
    assert_eq!(finishes[1]["usage"]["outputTokens"], json!({"total":1}));
    assert_eq!(finishes[1]["providerMetadata"]["interlingua"]["sessionId"], "s");
}

#[test]
fn each_turn_can_be_a_stream_of_its_own() {
    let options = EncodeOptions { stream_each_turn: true, ..EncodeOptions::default() };
    let turn = || [Data::from(TurnStarted::default()), completed()];
    let events: Vec<_> = turn().into_iter().chain(turn()).collect();
    let (parts, _) = encode(AiSdkEncoder::new(&options), events);
    let kinds: Vec<_> = parts.iter().map(|part| part["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["stream-start", "finish", "stream-start", "finish"]);
}
