//! `yume`: the flat contract that Yume wrote down for every agent but Claude.
//!
//! Contract: *Protocol Normalization Strategy* of aofp/yume, kept here to the letter. One object a
//! line, each with a `type`:
//!
//! - `system` `init` comes first and once, with `session_id`, `model`, `cwd`, `permissionMode` and
//!   `tools`; `session_id` tells another id, `compact_boundary` a shorter conversation, `error` that
//!   the agent is not set up or not logged in.
//! - `text` (`content`) and `thinking` (`thought`), as they are said. Yume drops a line that it has
//!   seen before, so that each has an `id` of its own.
//! - `tool_use` (`id`, `name`, `input`), and then nothing but its own `tool_result` (`tool_use_id`,
//!   `content`, `is_error`): tools come strictly one after the other.
//! - `interrupt`, `error` (`message`, `code`).
//! - `usage`, `result`, `message_stop`: the end of a turn, in this order, also after errors.
//!
//! No line has more than 100 000 bytes. Text is written in pieces of about 4 KB. A long answer of a tool
//! is several `tool_result` records of one call, one after the other: all but the last say
//! `"partial":true` and their number as `part`; their contents together are the answer, and the last
//! one closes the call. The input of a tool cannot be told in parts: its longest strings are cut,
//! and say how much is missing.
//!
//! Where the contract asks for something and gives no name for it: estimated counts are marked with
//! `"estimated":true` in `usage` and `"usage_estimated":true` in `result`. `modelUsage` has the counts
//! of the turn, under Claude's names. A `tool_use` that the
//! client must answer says `"executor":"client"`; a turn that rests until it has ends with the
//! subtype `waiting_for_client`, which is no error, and the `tool_result` comes in a later turn. A
//! cancelled turn is no error either, since Yume forgets the session of a failed one. A plan that no
//! tool wrote is told as a call of `TodoWrite`. Tools have the names that Claude gives them; one that
//! changes several files is written as one `Edit` or `Write` a file. What a sub-agent says and does has the call that started it as `parent_tool_use_id`.
//!
//! Read are also Claude's nested `assistant`, `user` and `stream_event` records, other names that
//! Yume's own programs use (`tool_name`, `tool_id`, `parameters`, nested `usage`), records that are
//! printed over several lines, and the `$` that once ended a message.

mod calls;
mod decode;
mod encode;
mod ending;
mod hold;
mod ignored;
mod names;
mod pieces;
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

/// A line has fewer bytes than this, its line feed included.
const LINE_LIMIT: usize = 100_000;
/// How much of a line an id or a name may take; longer ones are cut.
const NAME_LIMIT: usize = 500;
/// The word for a tool that the client runs.
const CLIENT: &str = "client";
/// The subtype of a turn that rests until the client has run a tool.
const WAITING_FOR_CLIENT: &str = "waiting_for_client";
/// The subtype of a turn that ran into a limit other than on turns or money.
const LIMIT_REACHED: &str = "error_limit_reached";
/// The tools that work on one file, and say which in `file_path`.
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
        "hidden reasoning, signatures, pictures",
        "tools that run at the same time",
        "tool progress, structured output",
        "steps of a plan that are blocked or cancelled",
        "tool inputs over 100 KB",
        "file changes outside a tool",
        "permissions and questions",
        "limits, notices, artifacts",
        "changes of model, folder, mode or tools",
        "host facts (sandbox, relay)",
    ],
    rules: Some(|| Box::<rules::YumeRules>::default()),
    reads: <wire::Line<'static> as Record<'static>>::shape,
    ignores: ignored::IGNORED,
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};

/// Claude stamps its `system` records with a `uuid`, Gemini names a tool in `tool_name`; the same
/// records without are this.
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
