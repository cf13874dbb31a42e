//! `pi`: what `pi --mode json` prints.
//!
//! Seen in pi 0.87.1. One object a line. `session` comes first; what pi calls an agent run is
//! `agent_start` … `agent_end`, what it calls a turn is one request to the model. A failed request
//! ends the run with `agent_end{willRetry:true}`; `auto_retry_start` and another run follow, which
//! say everything again. Only `agent_settled` is the end. The program exits with 0 also where the
//! last request failed: `stopReason` of the last message tells.
//!
//! A block's text is told in pieces, then whole by `text_end`, by `message_end`, by `turn_end` and by
//! `agent_end`; older versions also repeat the whole message with every piece. A block may end after
//! the next one began. A message has no id that is there from its first record on, so ids are made
//! by counting. Counts are those of one request, and zeros where it failed.

mod calls;
mod decode;
mod ended;
mod ignored;
mod tools;
mod wire;

use super::{Confidence, Dialect, Probe};
use crate::json::read::Record;

pub use decode::PiDecoder;

/// The dialect `pi`.
pub static DIALECT: Dialect = Dialect {
    name: "pi",
    aliases: &["pi-coding-agent"],
    about: "pi: pi --mode json",
    decoder: Some(|| Box::<PiDecoder>::default()),
    recognise,
    reads: <wire::Line<'static> as Record<'static>>::shape,
    ignores: ignored::IGNORED,
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};

fn recognise(probe: &Probe<'_>) -> Confidence {
    match probe.kind().as_str() {
        "session" if probe.has("cwd") && probe.has("version") => Confidence::Sure,
        "message_update" if probe.has("assistantMessageEvent") => Confidence::Sure,
        "tool_execution_start" | "tool_execution_update" | "tool_execution_end"
            if probe.has("toolCallId") =>
        {
            Confidence::Sure
        }
        "auto_retry_start" | "auto_retry_end" | "agent_settled" => Confidence::Sure,
        "agent_end" if probe.has("messages") => Confidence::Sure,
        "agent_start" | "turn_start" | "turn_end" => Confidence::Maybe,
        _ => Confidence::No,
    }
}
