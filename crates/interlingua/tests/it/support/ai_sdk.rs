//! What the tests of the AI SDK stream share: encoding, and the records around a turn of Codex.

use interlingua::dialect::ai_sdk::AiSdkEncoder;
use interlingua::dialect::{EncodeOptions, Encoder, Output};
use interlingua::event::{Data, Event, Outcome, TurnEnded};
use serde_json::{Value, json};

use super::translate_lines;

pub const CODEX_START: &str = r#"{"type":"thread.started","thread_id":"t-1"}"#;
pub const CODEX_END: &str = r#"{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":4,"output_tokens":5}}"#;

/// The parts written for a stream in some dialect.
pub fn parts(from: &str, lines: &[&str]) -> Vec<Value> {
    translate_lines(from, "ai-sdk", lines).records()
}

/// The parts written for some events, and the names of what was lost.
pub fn encode(mut encoder: AiSdkEncoder, events: Vec<Data<'_>>) -> (Vec<Value>, Vec<String>) {
    let mut out = Output::default();
    for data in events {
        encoder.encode(&Event::new(data), &mut out);
    }
    encoder.finish(&mut out);
    let losses = out.losses().iter().map(|(what, _)| what.to_owned()).collect();
    (parse(out.bytes()), losses)
}

pub fn encoder() -> AiSdkEncoder {
    AiSdkEncoder::new(&EncodeOptions::default())
}

/// Parses parts, one on each line.
pub fn parse(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The end of a turn that completed.
pub fn completed() -> Data<'static> {
    Data::from(TurnEnded { outcome: Outcome::Completed, ..TurnEnded::default() })
}

/// The metadata by which the next run finds its session.
pub fn session_metadata(id: &str) -> Value {
    json!({"interlingua":{"sessionId":id}})
}
