//! `yume`: the flat contract that Yume specifies for every agent except Claude.
//!
//! The contract is the *Protocol Normalization Strategy* of aofp/yume. Each line is one object with
//! a `type`:
//!
//! - `system` `init` is the first record and occurs once, with `session_id`, `model`, `cwd`,
//!   `permissionMode` and `tools`. `session_id` reports another id, `compact_boundary` a
//!   compaction, and `error` that the agent is not configured or not signed in.
//! - `text` (`content`) and `thinking` (`thought`) are streamed. Yume drops a line that it has
//!   already received, so each has a unique `id`.
//! - `tool_use` (`id`, `name`, `input`) is followed directly by its `tool_result` (`tool_use_id`,
//!   `content`, `is_error`): calls are strictly serial.
//! - `interrupt`, `error` (`message`, `code`).
//! - `usage`, `result` and `message_stop` end a turn, in this order, also after errors.
//!
//! Every line is shorter than 100 000 bytes. Text is written in chunks of about 4 KB. A long answer
//! of a tool is several consecutive `tool_result` records of one call: all but the last have
//! `"partial":true` and their number as `part`; their contents together are the answer, and the
//! last one closes the call. The input of a tool cannot be split: its longest strings are truncated
//! and state how much is missing.
//!
//! The contract requires some facts without naming fields for them. Estimated counts are marked
//! with `"estimated":true` in `usage` and `"usage_estimated":true` in `result`. `modelUsage` has
//! the counts of the turn, with Claude's field names. A `tool_use` that the client must answer has
//! `"executor":"client"`; a turn that waits for it ends with the subtype `waiting_for_client`,
//! which is not an error, and its `tool_result` follows in a later turn. A cancelled turn is not an
//! error either, since Yume discards the session of a failed turn. A plan that no tool wrote is a
//! call of `TodoWrite`. Tools have Claude's names; a call that changes several files is written as
//! one `Edit` or `Write` for each file. The records of a sub-agent have the call that started it as
//! `parent_tool_use_id`.
//!
//! The decoder also reads Claude's nested `assistant`, `user` and `stream_event` records, the other
//! names that Yume's own programs use (`tool_name`, `tool_id`, `parameters`, nested `usage`),
//! records that span several lines, and the `$` that older programs write at the end of a message.

mod calls;
mod chunks;
mod decode;
mod encode;
mod ending;
mod ignored;
mod names;
mod queue;
mod result;
mod rules;
mod session;
mod shorten;
mod turn;
mod wire;

use super::{Confidence, Dialect, FramingKind, Probe};
use crate::json::read::Record;

pub use decode::YumeDecoder;
pub use encode::YumeEncoder;

/// The length that every line stays below, including its line feed.
const LINE_LIMIT: usize = 100_000;
/// The longest id or name; longer ones are truncated.
const NAME_LIMIT: usize = 500;
/// The executor of a tool that the client runs.
const CLIENT: &str = "client";
/// The subtype of a turn that waits until the client has run a tool.
const WAITING_FOR_CLIENT: &str = "waiting_for_client";
/// The subtype of a turn that reached a limit other than that of turns or cost.
const LIMIT_REACHED: &str = "error_limit_reached";
/// The tools that work on one file, which they state in `file_path`.
const FILE_TOOLS: &[&str] = &["Read", "Write", "Edit", "MultiEdit"];

/// The dialect `yume`.
pub static DIALECT: Dialect = Dialect {
    name: "yume",
    aliases: &["yume-flat", "yume-cli"],
    about: "Yume's flat contract: text, tool_use, tool_result, usage, result, message_stop",
    decoder: Some(|| Box::<YumeDecoder>::default()),
    encoder: Some(|options| Box::new(YumeEncoder::new(options))),
    framing: FramingKind::Joined,
    recognise,
    cannot_express: &[
        "user messages",
        "hidden reasoning, signatures, images",
        "tools that run in parallel",
        "tool progress, structured output",
        "plan steps that are blocked or cancelled",
        "tool inputs over 100 KB",
        "file changes outside a tool",
        "permissions and questions",
        "limits, notices, artifacts",
        "changes of model, working directory, mode or tools",
        "host facts (sandbox, relay)",
    ],
    rules: Some(|| Box::<rules::YumeRules>::default()),
    reads: <wire::Line<'static> as Record<'static>>::shape,
    ignores: ignored::IGNORED,
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};

/// Claude's `system` records have a `uuid`, and Gemini's calls have a `tool_name`; this dialect's
/// have neither.
fn recognise(probe: &Probe<'_>) -> Confidence {
    let subtype = probe.text("subtype");
    match probe.kind().as_str() {
        "system" if probe.has("uuid") => Confidence::No,
        "system" if subtype.as_ref().is_some_and(|subtype| *subtype == "init") => Confidence::Sure,
        "text" if probe.text("content").is_some() => Confidence::Sure,
        "thinking" if probe.has("thought") || probe.has("thinking") => Confidence::Sure,
        "tool_use" if probe.has("id") && probe.has("name") => Confidence::Sure,
        "tool_result" if probe.has("tool_use_id") && probe.has("content") => Confidence::Sure,
        "message_stop" | "interrupt" => Confidence::Sure,
        "usage" if probe.has("input_tokens") || probe.has("usage") => Confidence::Maybe,
        "error" if probe.has("message") => Confidence::Maybe,
        "result" if probe.has("is_error") && !probe.has("duration_api_ms") => Confidence::Maybe,
        "system" if subtype.is_some() => Confidence::Maybe,
        _ => Confidence::No,
    }
}
