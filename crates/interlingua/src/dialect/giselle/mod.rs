//! `giselle`: the normalized NDJSON that the Giselle API streams.
//!
//! Gemini's records, with the agent's time where it gives one, and those of the host around them. A run
//! begins with `relay.session`, where the client runs tools, and `sandbox`, and ends with `snapshot`;
//! `snapshot_request` and `execute_request` ask the client to run a tool, and let the turn rest: the
//! answer goes to the relay, and is no part of the stream. `artifact` tells of a file, `stderr` what
//! is not part of any record. The end of the stream is the end of the turn where no `result` says
//! more.

mod decode;
mod encode;
mod rules;

use super::gemini::is_record;
use super::{Confidence, Dialect, Ending, FramingKind, Probe};
use crate::json::read::Record;

pub use decode::GiselleDecoder;
pub use encode::GiselleEncoder;

/// The tool by which a client shows what is on its screen.
pub(crate) const SNAPSHOT_TOOL: &str = "getFormSnapshot";
/// The tool by which a client fills in what is on its screen.
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
        "sub-agents and what they say",
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
