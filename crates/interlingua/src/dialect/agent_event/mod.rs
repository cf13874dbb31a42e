//! `agent-event`: the unified `AgentEvent` that the seed on todo lists describes.
//!
//! Known from the sources of `@testany/agent-chatter-core` 1.1.8, where three parsers make it from
//! Claude's, Codex's and Gemini's streams. Every record has the same envelope: `eventId`, `agentId`,
//! `agentType`, `teamMetadata`, and `timestamp` in milliseconds. There are seven types:
//! `session.started`, `text`, `tool.started`, `tool.completed`, `turn.completed`, `error` and
//! `todo_list`, which is always the whole list. Text has no pieces and no wholes: each `text` goes on
//! where the one before it ended.
//!
//! What is written is the clean form of the contract: a tool that keeps the todo list is told by
//! `todo_list` alone, neither its call nor its result; outputs are text; a failed turn says why in an
//! `error` before its end, and so does one that waits for a tool of the client. There is one list,
//! the main agent's. A notice is a `text` of the role `system`, in the category `notice`.
//!
//! What is read may also be the form that was shipped, in which the result of a todo tool leaks and
//! the final text is said again with the category `result`.

mod decode;
mod encode;
mod ignored;
mod rules;
mod todo_calls;
mod wire;

use super::{Confidence, Dialect, Probe};
use crate::json::read::Record;

pub use decode::AgentEventDecoder;
pub use encode::AgentEventEncoder;

/// The dialect `agent-event`.
pub static DIALECT: Dialect = Dialect {
    name: "agent-event",
    aliases: &["agent-events", "agentevent", "agent-chatter"],
    about: "The unified AgentEvent: text, tools and todo lists of any agent",
    decoder: Some(|| Box::<AgentEventDecoder>::default()),
    encoder: Some(|options| Box::new(AgentEventEncoder::new(options))),
    recognise,
    cannot_express: &[
        "session facts (id, model, folder, tools)",
        "usage, cost and duration",
        "user messages",
        "hidden reasoning and signatures",
        "tool progress",
        "tools that the client runs",
        "file changes, artifacts and compaction",
        "permissions and questions",
        "how a call failed (denied, cancelled, abandoned)",
        "sub-agents, apart from what they say and do",
        "retries and limits",
        "unknown records",
    ],
    rules: Some(|| Box::<rules::AgentEventRules>::default()),
    reads: <wire::Line<'static> as Record<'static>>::shape,
    ignores: ignored::IGNORED,
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};

fn recognise(probe: &Probe<'_>) -> Confidence {
    match (probe.has("eventId"), probe.has("agentId")) {
        (true, true) => Confidence::Sure,
        (true, false) | (false, true) if probe.has("teamMetadata") => Confidence::Maybe,
        _ => Confidence::No,
    }
}
