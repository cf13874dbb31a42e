//! `copilot`: what `copilot -p PROMPT --output-format json` prints.
//!
//! Seen in Copilot CLI 1.0.102. One event a line: `{type, data, id, timestamp, parentId}`, and
//! `agentId` where a sub-agent says it. The last line is `result`, which has no envelope, and is the
//! only one that names the session. Text comes in pieces (`assistant.message_delta`), then whole
//! with the calls that the message makes (`assistant.message`); the pieces of a request that is
//! tried again (`assistant.turn_retry`) are void, and have another message id than those that come
//! after. An answer that is cut at the length limit, or interrupted, has no whole message.
//! `assistant.turn_start` and `turn_end` are steps: a turn, in our words, goes from `user.message` to
//! `result`. Calls run in parallel and end in any order; one that was interrupted never ends. A
//! command that failed is a success with an exit code; it is told as failed. `tool.shell_output` is the
//! next piece of what a command prints, `tool.execution_partial_result` a snapshot, of long output only
//! a part. Tokens are nowhere. After SIGINT and SIGTERM the exit code is 0, and `result` is missing more
//! often than not.

mod calls;
mod decode;
mod ended;
mod ignored;
mod thread;
mod tools;
mod wire;

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
    reads: <wire::Line<'static> as Record<'static>>::shape,
    ignores: ignored::IGNORED,
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};

/// Without an account, Copilot prints nothing on standard output and exits with the code of any failure.
fn exit_class(exit: &Exit) -> Option<ErrorClass> {
    let stderr = exit.stderr.as_deref().filter(|_| exit.code == Some(1))?;
    stderr.contains("No authentication information found").then_some(ErrorClass::Authentication)
}

/// All but the last record have an envelope with a type that has a dot in it.
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
