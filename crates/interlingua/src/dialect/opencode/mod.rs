//! `opencode`: the output of `opencode run --format json`, and the events of `opencode serve` at
//! `/event`.
//!
//! Seen in opencode 1.18.33. The two forms report the same events. A line of `run` contains a
//! complete part of a message: text, reasoning, a tool call with its result, or the start or the
//! finish of a step. There is no first and no last record: the turn ends with a `step_finish` whose
//! reason does not announce another step.
//!
//! The server sends `{id, type, properties}` for every event of all its sessions. Parts are sent as
//! snapshots, and their text is streamed in deltas between an empty snapshot and a complete one. A
//! session is busy, waits for a retry, or is idle. `session.idle` is the end of the turn; it is
//! sent twice if a request failed or was aborted, with the last snapshots in between. A sub-agent
//! is a session of its own, which the metadata of the call that spawned it contains. A text may
//! continue after a call that interrupted it.

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
    kind_of_tool: tools::kind_of,
    reads: <wire::Line<'static> as Record<'static>>::shape,
    ignores: ignored::IGNORED,
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};

fn recognise(probe: &Probe<'_>) -> Confidence {
    let kind = probe.kind();
    if probe.has("properties") {
        let prefixes = ["server.", "session.", "message.", "permission.", "question.", "todo."];
        let is_ours = prefixes.iter().any(|prefix| kind.starts_with(prefix));
        return if is_ours { Confidence::Sure } else { Confidence::Maybe };
    }
    let is_line = probe.has("sessionID") && probe.has("timestamp");
    match kind.as_str() {
        "step_start" | "step_finish" | "text" | "reasoning" | "tool_use"
            if is_line && probe.has("part") =>
        {
            Confidence::Sure
        }
        "error" if is_line => Confidence::Sure,
        _ => Confidence::No,
    }
}
