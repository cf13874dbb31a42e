//! `claude`: the output of `claude -p --output-format stream-json --verbose`.
//!
//! Observed in Claude Code 2.1.197 and 2.1.325. Records are nested: `assistant` and `user` hold one
//! content block each, and several share a `message.id`. If partial messages are requested,
//! `stream_event` holds the raw deltas, and the `assistant` record that repeats a block precedes
//! the end of that block. `system/init` starts every turn and `result` ends it; a process may write
//! several of both. Tools run in parallel, and their results are written in the order in which they
//! end, even between two blocks of one message. The records of a sub-agent state the call that
//! started it in `parent_tool_use_id`. `result.usage` covers the turn, `total_cost_usd` the
//! process. A failed request is a `success` with `is_error`. `type` is not always the first field.

mod answers;
pub(super) mod changes;
mod decode;
mod encode;
pub(super) mod ended;
mod ignored;
pub(super) mod modes;
mod partial;
mod requests;
pub(super) mod result;
mod rules;
mod system;
mod tasks;
mod thread;
pub(super) mod tools;
mod wire;

use super::{Confidence, Dialect, Probe};
use crate::json::read::Record;

pub use decode::ClaudeDecoder;
pub use encode::ClaudeEncoder;
pub use requests::{APPROVE_PLAN, KEEP_PLANNING};

/// The dialect `claude`.
pub static DIALECT: Dialect = Dialect {
    name: "claude",
    aliases: &["claude-code", "stream-json"],
    about: "Claude Code: claude -p --output-format stream-json --verbose",
    decoder: Some(|| Box::<ClaudeDecoder>::default()),
    encoder: Some(|options| Box::new(ClaudeEncoder::new(options))),
    recognise,
    cannot_express: &["file changes outside a tool", "artifacts", "host facts (sandbox, relay)"],
    rules: Some(|| Box::<rules::ClaudeRules>::default()),
    reads: <wire::Line<'static> as Record<'static>>::shape,
    ignores: ignored::IGNORED,
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};

fn recognise(probe: &Probe<'_>) -> Confidence {
    let session = probe.has("session_id");
    match probe.kind().as_str() {
        "system" if session && probe.has("uuid") && !probe.has("qwen_code_version") => {
            Confidence::Sure
        }
        "assistant" | "user" if session && probe.has("message") => Confidence::Sure,
        "stream_event" if session && probe.has("event") => Confidence::Sure,
        "result" if session && probe.has("duration_api_ms") && !probe.has("error") => {
            Confidence::Sure
        }
        "command_lifecycle" | "control_request" | "control_response" => Confidence::Sure,
        "assistant" | "user" if probe.has("message") => Confidence::Maybe,
        "system" if probe.has("subtype") => Confidence::Maybe,
        _ => Confidence::No,
    }
}
