//! `goose`: the output of `goose run --output-format stream-json`.
//!
//! In goose 1.34.0, every line is one object. `message` contains a delta of a message, and several
//! share its id; `complete` is the end of the turn. Unless `-q` is given, a banner precedes them. It
//! is the only source for the id of the session, the model and the working directory.
//!
//! The program exits with 0 and prints `complete` with every outcome. A failed request is prose in a
//! message without an id: `Ran into this error: …`. An interrupted turn can be recognised only by
//! prose before `complete` on the same line, or by a call without an answer. A failed command is a
//! `success` with `isError`. Counts are those of the session.

mod banner;
mod decode;
mod failure;
mod ignored;
mod tools;
mod wire;

use super::{Confidence, Dialect, Probe};
use crate::json::read::Record;

pub use decode::GooseDecoder;

/// The dialect `goose`.
pub static DIALECT: Dialect = Dialect {
    name: "goose",
    aliases: &[],
    about: "goose: goose run --output-format stream-json",
    decoder: Some(|| Box::<GooseDecoder>::default()),
    recognise,
    kind_of_tool: tools::kind_of,
    reads: <wire::Line<'static> as Record<'static>>::shape,
    ignores: ignored::IGNORED,
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};

fn recognise(probe: &Probe<'_>) -> Confidence {
    match probe.kind().as_str() {
        "message" if probe.has("message") && !probe.has("role") => Confidence::Sure,
        "complete" if probe.has("total_tokens") => Confidence::Sure,
        "notification" if probe.has("extension_id") => Confidence::Sure,
        _ => Confidence::No,
    }
}
