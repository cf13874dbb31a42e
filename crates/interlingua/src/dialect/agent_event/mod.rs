//! `agent-event`: the unified `AgentEvent` of agent-chatter, with todo lists.
//!
//! The contract is taken from the sources of `@testany/agent-chatter-core` 1.1.8, where three
//! parsers make it from the streams of Claude, Codex and Gemini. Every record has the same
//! envelope: `eventId`, `agentId`, `agentType`, `teamMetadata`, and `timestamp` in milliseconds.
//! There are seven types: `session.started`, `text`, `tool.started`, `tool.completed`,
//! `turn.completed`, `error` and `todo_list`, which always contains the complete list. Text does
//! not distinguish deltas from complete messages: each `text` continues the one before it.
//!
//! The encoder writes the clean form of the contract. A tool that keeps the todo list appears only
//! as `todo_list`, without its call and its result. Outputs are text. A failed turn states its
//! cause in an `error` before its end, and so does a turn that waits for a tool of the client.
//! There is one list, that of the main agent. A notice is a `text` with the role `system`; a
//! warning or an error has the category `notice`.
//!
//! The decoder also reads the form that was shipped, in which the result of a todo tool is not
//! hidden and the final text is repeated with the category `result`.

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
        "sub-agents, apart from their messages and calls",
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
