//! `opencode`: what `opencode run --format json` prints, and what `opencode serve` sends as `/event`.
//!
//! Seen in opencode 1.18.33. Two forms of one thing. A line of `run` tells a part of a message when
//! the part is whole: text, reasoning, a tool call with its answer, the start and finish of a step. It
//! has no first and no last record: the end is a `step_finish` whose reason is none to go on.
//!
//! The server sends `{id, type, properties}` for everything that happens to all of its sessions:
//! parts as snapshots, and their text in pieces between an empty snapshot and a whole one. A session is
//! busy, waits for the next try, or is idle; `session.idle` is the end, and comes twice where a
//! request failed or was aborted, with the last snapshots in between. A sub-agent is a session of its
//! own, which the call that started it names in its metadata. A text may go on after a call that
//! came in the middle of it.

mod calls;
mod decode;
mod failure;
mod ignored;
mod parts;
mod requests;
mod server;
mod sessions;
mod tools;
mod turn;
mod wire;

use super::{Confidence, Dialect, FramingKind, Probe};
use crate::json::read::Record;

pub use decode::OpencodeDecoder;

/// The dialect `opencode`.
pub static DIALECT: Dialect = Dialect {
    name: "opencode",
    aliases: &["open-code"],
    about: "opencode: opencode run --format json, and the /event stream of opencode serve",
    framing: FramingKind::LinesOrSse,
    decoder: Some(|| Box::<OpencodeDecoder>::default()),
    recognise,
    reads: <wire::Line<'static> as Record<'static>>::shape,
    ignores: ignored::IGNORED,
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};

fn recognise(probe: &Probe<'_>) -> Confidence {
    let kind = probe.kind();
    if probe.has("properties") {
        let ours = ["server.", "session.", "message.", "permission.", "question.", "todo."];
        let ours = ours.iter().any(|start| kind.starts_with(start));
        return if ours { Confidence::Sure } else { Confidence::Maybe };
    }
    let line = probe.has("sessionID") && probe.has("timestamp");
    match kind.as_str() {
        "step_start" | "step_finish" | "text" | "reasoning" | "tool_use"
            if line && probe.has("part") =>
        {
            Confidence::Sure
        }
        "error" if line => Confidence::Sure,
        _ => Confidence::No,
    }
}
