//! `gemini-api`: a response of Gemini's `generateContent` API, streamed or whole.
//!
//! A streamed response is a sequence of chunks, each of which is a whole `GenerateContentResponse`: as
//! server-sent events, or as the elements of an array that is printed over many lines. Text is
//! streamed in parts; a call is one part, and its id is optional. There is no end marker: a chunk with a
//! `finishReason`, or one that states why the prompt was blocked, is the last. Every chunk has the
//! counts so far. The prompt's include cached tokens, and those of the candidates exclude thoughts. A
//! request that fails is answered with an object `error`, in an array or not, and so is a stream that
//! fails.
//!
//! A response is a turn. If it calls tools of the client, the turn waits for the client, though the
//! finish reason is `STOP`.

mod decode;
mod ended;
mod failure;
mod ignored;
mod parts;
mod rules;
mod wire;

use super::{Confidence, Dialect, FramingKind, Probe};
use crate::event::ErrorClass;
use crate::json::read::Record;

pub use decode::GeminiApiDecoder;

/// The dialect `gemini-api`.
pub static DIALECT: Dialect = Dialect {
    name: "gemini-api",
    aliases: &["gemini-generate-content"],
    about: "Gemini's generateContent API: a response, streamed or whole",
    framing: FramingKind::SseOrObjects,
    unnamed_calls: Some("call_gemini_"),
    // A response without a finish reason was cut off on the way.
    exit_class: |_| Some(ErrorClass::Network),
    decoder: Some(|| Box::<GeminiApiDecoder>::default()),
    recognise,
    rules: Some(|| Box::<rules::GeminiApiRules>::default()),
    reads: <wire::Chunk<'static> as Record<'static>>::shape,
    ignores: ignored::IGNORED,
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};

fn recognise(probe: &Probe<'_>) -> Confidence {
    let about = ["usageMetadata", "modelVersion", "responseId"].iter().any(|name| probe.has(name));
    let is_error = probe.has_inside("error", "code") && probe.has_inside("error", "status");
    match probe.has("candidates") || probe.has("promptFeedback") {
        true if about => Confidence::Sure,
        true => Confidence::Maybe,
        false if is_error && !probe.has("type") && !probe.has("jsonrpc") => Confidence::Sure,
        false if probe.has("usageMetadata") && probe.has("modelVersion") => Confidence::Sure,
        false => Confidence::No,
    }
}
