//! `giselle`: the normalized NDJSON that the Giselle API streams.
//!
//! Gemini's records, without their times, and those of the host around them: `relay.session`,
//! `sandbox`, `snapshot_request` and `execute_request` for tools that the client runs, `artifact`,
//! `snapshot`, and `stderr` for what is not part of any. The end of the stream is the end of the
//! turn where no `result` says more.

mod decode;
mod encode;
mod rules;

use super::gemini::is_record;
use super::{Confidence, Dialect, Ending, FramingKind, Probe};

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
    decoder: Some(|| Box::<GiselleDecoder>::default()),
    encoder: Some(|options| Box::new(GiselleEncoder::new(options))),
    recognise,
    cannot_say: &["reasoning", "tool progress", "permissions", "cost", "sub-agents", "compaction"],
    rules: Some(|| Box::<rules::GiselleRules>::default()),
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
