//! `goose`: what `goose run --output-format stream-json` prints.
//!
//! Seen in goose 1.34.0. One object a line: `message` holds a piece of a message, several share its
//! id; `complete` is the end. Before them, unless `-q` is given, stands a banner, which alone tells
//! the session's id, the model and the folder.
//!
//! The program exits with 0 and prints `complete` however the turn ended. A request that failed is
//! prose in a message that has no id: `Ran into this error: …`. A turn that was interrupted is told
//! by less: prose in front of `complete` on the same line, a call without an answer, or counts that
//! are null. A command that failed is a `success` with `isError`. Counts are those of the session.

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
