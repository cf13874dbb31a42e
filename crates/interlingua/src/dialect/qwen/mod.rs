//! `qwen`: what `qwen --output-format stream-json` prints.
//!
//! Seen in Qwen Code 0.24.4; what no transcript shows is from its public source. The records have the
//! names of Claude's and another grammar. `system/init` opens a turn, `stream_event` with a
//! `goal_state` follows at once, `result` ends the turn. An `assistant` record holds blocks of one
//! kind: a thought, or text, or all calls of an answer together; each has a message id of its own, and
//! only the last has counts. With `--include-partial-messages` the pieces have one message id for
//! all of them, that of the first record, and count from zero again for each record; the record comes
//! before `message_stop`, and there is no `message_delta`. A failed request is told as text of the model
//! and again in `result.error`. `result.usage` is of the whole process, with a request in it that is not
//! shown. A signal leaves no `result`; neither does a pipe that is cut at 64 KiB when the program exits,
//! with exit code 0. `--output-format json` prints the same records as one array.

mod decode;
mod ended;
mod failure;
mod ignored;
mod system;
mod thread;
mod tools;
mod wire;

use super::{Confidence, Dialect, Probe};
use crate::json::read::Record;

pub use decode::QwenDecoder;

/// The dialect `qwen`.
pub static DIALECT: Dialect = Dialect {
    name: "qwen",
    aliases: &["qwen-code"],
    about: "Qwen Code: qwen --output-format stream-json",
    decoder: Some(|| Box::<QwenDecoder>::default()),
    recognise,
    reads: <wire::Line<'static> as Record<'static>>::shape,
    ignores: ignored::IGNORED,
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};

/// Most records look like Claude's; the first one names the program, and a failed end has one error
/// where Claude has a list, and no cost.
fn recognise(probe: &Probe<'_>) -> Confidence {
    let session = probe.has("session_id");
    match probe.kind().as_str() {
        "system" if session && probe.has("qwen_code_version") => Confidence::Sure,
        "result" if session && probe.has("error") && !probe.has("total_cost_usd") => {
            Confidence::Sure
        }
        "system" if session && probe.has("data") => Confidence::Maybe,
        _ => Confidence::No,
    }
}
