//! `gemini`: the output of `gemini --output-format stream-json`.
//!
//! Gemini CLI 0.61.0 prints `init`, the prompt as a `message` of the user, then `message` deltas,
//! `tool_use`, `tool_result` and `error`, and one `result`. Messages have no ids, and turns have no
//! delimiters: consecutive deltas are one block until another record follows. The output of a tool
//! is what the terminal shows, so it may be empty or absent, and a failed command is a `success`.
//! Reasoning is never printed. After a signal, or if the pipe is cut off at 64 KiB when the program
//! exits, `result` is missing and the exit code is 0.

mod decode;
pub(super) mod ignored;
mod wire;

use super::{Confidence, Dialect, Probe, RepeatedStart};
use crate::event::ErrorClass;
use crate::grammar::Exit;
use crate::json::read::Record;

pub use decode::GeminiDecoder;
pub(super) use wire::Line;

/// The dialect `gemini`.
pub static DIALECT: Dialect = Dialect {
    name: "gemini",
    aliases: &["gemini-cli"],
    about: "Gemini CLI: gemini --output-format stream-json",
    repeated_start: RepeatedStart::NewRun,
    unnamed_calls: Some("call_gemini_"),
    exit_class,
    decoder: Some(|| Box::new(GeminiDecoder::new("gemini"))),
    recognise,
    rules: None,
    reads: <wire::Line<'static> as Record<'static>>::shape,
    ignores: ignored::IGNORED,
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};

/// Gemini reports only on standard error why it could not start, and has an exit code for each
/// cause.
fn exit_class(exit: &Exit) -> Option<ErrorClass> {
    match exit.code {
        Some(41) => Some(ErrorClass::Authentication),
        // The sandbox, the settings, or a directory that is not trusted.
        Some(44 | 52 | 55) => Some(ErrorClass::Configuration),
        _ => None,
    }
}

/// Every record of Gemini has a timestamp; the same records without one are `giselle`.
fn recognise(probe: &Probe<'_>) -> Confidence {
    if !probe.has("timestamp") || probe.has("modelId") || !is_record(probe) {
        return Confidence::No;
    }
    // Gemini's `init` states the model; that of `giselle` may have a timestamp too.
    let begins = probe.kind().as_str() == "init";
    if begins && !probe.has("model") { Confidence::Maybe } else { Confidence::Sure }
}

/// Whether a record has the fields of one of Gemini's, apart from the timestamp.
pub(super) fn is_record(probe: &Probe<'_>) -> bool {
    match probe.kind().as_str() {
        "init" => probe.has("session_id"),
        "message" => probe.has("role"),
        "tool_use" => probe.has("tool_name"),
        "tool_result" => probe.has("tool_id"),
        "result" => probe.has("status"),
        "error" => probe.has("severity"),
        _ => false,
    }
}
