//! `gemini`: what `gemini --output-format stream-json` prints.
//!
//! Seen in Gemini CLI 0.61.0. `init`, the prompt as a `message` of the user, then `message` deltas,
//! `tool_use`, `tool_result` and `error`, and one `result`. Messages have no ids and turns no marks:
//! consecutive deltas are one block until something else comes. A tool's output is what the terminal
//! shows, so it may be empty or absent, and a command that failed is a `success`. Thoughts are never
//! printed. A signal, or a pipe that is cut at 64 KiB when the program exits, leaves no `result`,
//! with exit code 0.

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

/// Gemini writes to standard error alone why it could not start, and has an exit code for each cause.
fn exit_class(exit: &Exit) -> Option<ErrorClass> {
    match exit.code {
        Some(41) => Some(ErrorClass::Authentication),
        // The sandbox, the settings, and a folder that is not trusted.
        Some(44 | 52 | 55) => Some(ErrorClass::Configuration),
        _ => None,
    }
}

/// Gemini stamps every record with its time; the same records without it are `giselle`.
fn recognise(probe: &Probe<'_>) -> Confidence {
    if !probe.has("timestamp") || probe.has("modelId") || !is_record(probe) {
        return Confidence::No;
    }
    // Gemini's own begins with the model; the `init` of `giselle` may have a time as well.
    let begins = probe.kind().as_str() == "init";
    if begins && !probe.has("model") { Confidence::Maybe } else { Confidence::Sure }
}

/// Whether a record looks like one of Gemini's, but for its time.
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
