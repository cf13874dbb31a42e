//! `copilot`: the output of `copilot -p PROMPT --output-format json`.
//!
//! In Copilot CLI 1.0.102, every line is one event: `{type, data, id, timestamp, parentId}`, and
//! `agentId` if a sub-agent caused it. The last line is `result`, which has no envelope and is the
//! only one that states the id of the session.
//!
//! Text is streamed as deltas (`assistant.message_delta`), then repeated in the complete message,
//! together with its calls (`assistant.message`). When a request is retried
//! (`assistant.turn_retry`), its deltas are void, and the deltas of the next attempt have another
//! message id. An answer that is cut off at the length limit, or interrupted, has no complete
//! message. `assistant.turn_start` and `turn_end` delimit steps; a turn of the event model lasts
//! from `user.message` to `result`.
//!
//! Calls run in parallel and end in any order. An interrupted call never ends. A command that
//! failed is a success with an exit code; its call is emitted as failed. `tool.shell_output` is the
//! next delta of a command's output, `tool.execution_partial_result` a snapshot, which is truncated
//! if the output is long. Token counts are not reported. After SIGINT and SIGTERM the exit code is
//! 0, and `result` is usually missing.

mod calls;
mod decode;
mod ended;
pub(super) mod ignored;
mod questions;
mod thread;
mod tools;
pub(super) mod wire;

use super::{Confidence, Dialect, Probe};
use crate::event::ErrorClass;
use crate::grammar::Exit;
use crate::json::read::Record;

pub use decode::CopilotDecoder;

/// The dialect `copilot`.
pub static DIALECT: Dialect = Dialect {
    name: "copilot",
    aliases: &["copilot-cli", "github-copilot"],
    about: "Copilot CLI: copilot -p PROMPT --output-format json",
    exit_class,
    decoder: Some(|| Box::<CopilotDecoder>::default()),
    recognise,
    kind_of_tool: |name| tools::kind_of(name, None),
    reads: <wire::Line<'static> as Record<'static>>::shape,
    ignores: ignored::IGNORED,
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};

/// Without an account, Copilot prints nothing on standard output, and exits with the code of any
/// failure.
fn exit_class(exit: &Exit) -> Option<ErrorClass> {
    let stderr = exit.stderr.as_deref().filter(|_| exit.code == Some(1))?;
    stderr.contains("No authentication information found").then_some(ErrorClass::Authentication)
}

/// All records except the last have an envelope and a type that contains a dot.
fn recognise(probe: &Probe<'_>) -> Confidence {
    let envelope = probe.has("data") && probe.has("timestamp") && probe.has("parentId");
    match probe.kind().split_once('.') {
        Some((
            "session" | "assistant" | "model" | "tool" | "user" | "subagent" | "agent" | "hook",
            _,
        )) if envelope => Confidence::Sure,
        None if probe.kind() == "result" && probe.has("exitCode") && probe.has("sessionId") => {
            Confidence::Sure
        }
        _ if envelope => Confidence::Maybe,
        _ => Confidence::No,
    }
}
