//! `giselle`: the normalized NDJSON that the Giselle API streams.
//!
//! It contains Gemini's records, with the agent's time if it states one, and records of the host. A
//! run begins with `relay.session`, if the client runs tools, and `sandbox`, and ends with
//! `snapshot`. `snapshot_request` and `execute_request` ask the client to run a tool, and suspend
//! the turn: the answer is sent to the relay, and is not part of the stream. `artifact` reports a
//! file, and `stderr` contains output outside all other records. Without a `result`, the end of the
//! stream is the end of the turn.

mod decode;
mod encode;
mod rules;

use super::gemini::is_record;
use super::{Confidence, Dialect, Ending, FramingKind, Probe};
use crate::json::read::Record;

pub use decode::GiselleDecoder;
pub use encode::GiselleEncoder;

/// The tool by which a client returns the content of its form.
pub(crate) const SNAPSHOT_TOOL: &str = "getFormSnapshot";
/// The tool by which a client fills in its form.
pub(crate) const EXECUTE_TOOL: &str = "executeFormActions";

/// The dialect `giselle`.
pub static DIALECT: Dialect = Dialect {
    name: "giselle",
    aliases: &["giselle-ndjson"],
    about: "The normalized NDJSON of the Giselle API",
    framing: FramingKind::Objects,
    ending: Ending::Implied,
    unnamed_calls: Some("call_gemini_"),
    decoder: Some(|| Box::<GiselleDecoder>::default()),
    encoder: Some(|options| Box::new(GiselleEncoder::new(options))),
    recognise,
    cannot_express: &[
        "reasoning",
        "tool progress",
        "permissions",
        "cost",
        "sub-agents and their text",
        "compaction",
        "answers of the client",
    ],
    rules: Some(|| Box::<rules::GiselleRules>::default()),
    reads: <super::gemini::Line<'static> as Record<'static>>::shape,
    ignores: super::gemini::ignored::IGNORED,
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};

fn recognise(probe: &Probe<'_>) -> Confidence {
    match probe.kind().as_str() {
        "relay.session" | "snapshot_request" | "execute_request" => Confidence::Sure,
        "sandbox" if probe.has("sandbox_id") => Confidence::Sure,
        "init" if probe.has("modelId") => Confidence::Sure,
        "stderr" if probe.has("content") => Confidence::Sure,
        "result" | "error" if !probe.has("timestamp") && is_record(probe) => Confidence::Maybe,
        "artifact" if probe.has("path") => Confidence::Maybe,
        _ if !probe.has("timestamp") && is_record(probe) => Confidence::Sure,
        _ => Confidence::No,
    }
}
