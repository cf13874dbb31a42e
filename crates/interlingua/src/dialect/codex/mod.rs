//! `codex`: the output of `codex exec --json`.
//!
//! Seen in Codex 0.166.0. Every line is an object whose first field is `type`: `thread.started`,
//! `turn.started`, items that are started, updated and completed, then `turn.completed` or
//! `turn.failed`. Messages are not streamed. Token counts are those of the thread so far. Retries
//! and failures share the record `error`; only `turn.failed` is final. An interrupted turn has no
//! last record. A `web_search` item has two fields named `id`.
//!
//! The decoder also reads the names of an older design of the same stream: `session.created`,
//! `message.output_text.delta`, `message.output_text.done` and `response.completed`.

mod decode;
mod ignored;
mod wire;

use super::{Confidence, Dialect, Probe, RepeatedStart};
use crate::json::read::Record;

pub use decode::CodexDecoder;

/// The dialect `codex`.
pub static DIALECT: Dialect = Dialect {
    name: "codex",
    aliases: &["codex-exec"],
    about: "Codex CLI: codex exec --json",
    repeated_start: RepeatedStart::NewRun,
    decoder: Some(|| Box::<CodexDecoder>::default()),
    recognise,
    rules: None,
    reads: <wire::Line<'static> as Record<'static>>::shape,
    ignores: ignored::IGNORED,
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};

fn recognise(probe: &Probe<'_>) -> Confidence {
    match probe.kind().as_str() {
        "thread.started" => Confidence::Sure,
        "session.created" if !probe.has("properties") => Confidence::Sure,
        "message.output_text.delta" | "message.output_text.done" | "response.completed" => {
            Confidence::Sure
        }
        "item.started" | "item.updated" | "item.completed" if probe.has("item") => Confidence::Sure,
        "turn.started" | "turn.failed" | "turn.completed" if !probe.has("eventId") => {
            Confidence::Sure
        }
        "error" if probe.has("message") && !probe.has("severity") => Confidence::Maybe,
        _ => Confidence::No,
    }
}
