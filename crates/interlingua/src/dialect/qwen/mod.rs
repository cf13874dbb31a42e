//! `qwen`: the output of `qwen --output-format stream-json`.
//!
//! Observed in Qwen Code 0.24.4; what no transcript contains is from its public source. The records
//! have the names of Claude's and another grammar. `system/init` starts a turn, `stream_event` with
//! a `goal_state` follows directly, and `result` ends the turn. An `assistant` record holds blocks
//! of one kind: reasoning, or text, or all calls of a response; each record has its own message id,
//! and only the last has counts. With `--include-partial-messages` all deltas of a response have
//! the message id of its first record, and their block indexes restart at zero for each record; the
//! record precedes `message_stop`, and there is no `message_delta`. A failed request is text of the
//! model, and again `result.error`. `result.usage` covers the process, and includes a request that
//! is not in the stream. A process that was ended by a signal writes no `result`. Neither does one
//! whose output pipe is truncated at 64 KiB when it exits, with exit code 0. `--output-format json`
//! writes the same records as one array.

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
    kind_of_tool: tools::kind_of,
    reads: <wire::Line<'static> as Record<'static>>::shape,
    ignores: ignored::IGNORED,
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};

/// Most records look like Claude's. The first one states the version of Qwen Code, and a failed
/// `result` has one error, where Claude's has a list, and no cost.
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
