//! `acp`: the Agent Client Protocol between coding agents and editors, as JSON-RPC 2.0 in lines.
//!
//! Seen in Gemini CLI 0.61.0, Copilot CLI 1.0.102, OpenCode 1.18.33 and Qwen Code 0.24.4, and in
//! the schema 1.15.1 (protocol version 1). The client sends requests (`initialize`, `session/new`,
//! `session/load`, `session/prompt`). The agent reports its work in `session/update`, sends
//! requests of its own (`session/request_permission`), and responds to the prompt with a
//! `stopReason` or an error when the turn ends. A response has no method, only the id of its
//! request, so without the client's direction it is recognised by its fields.
//!
//! Consecutive chunks of text are one block, unless their `messageId` differs. A tool call has a
//! title for people. The field for the tool's name is new in the protocol; agents used to write the
//! name in `_meta`, in the id (Gemini) or in the first title (OpenCode). The content of a running
//! call is repeated as a whole with every update. A loaded session replays its history in the same
//! updates.
//!
//! The encoder writes facts that the protocol has no field for in `_meta.interlingua`, and the
//! decoder reads them there.

mod decode;
mod encode;
mod ending;
mod form;
mod ignored;
mod rules;
mod tools;
mod wire;
mod wire_meta;

use super::{Confidence, Dialect, Probe};
use crate::json::read::Record;

pub use decode::AcpDecoder;
pub use encode::AcpEncoder;

/// The dialect `acp`.
pub static DIALECT: Dialect = Dialect {
    name: "acp",
    aliases: &["agent-client-protocol", "zed"],
    about: "Agent Client Protocol: the messages of an agent to its editor, as JSON-RPC lines",
    decoder: Some(|| Box::<AcpDecoder>::default()),
    encoder: Some(|options| Box::new(AcpEncoder::new(options))),
    recognise,
    kind_of_tool: |name| tools::kind_of(name, None),
    cannot_express: &[
        "hidden reasoning and signatures",
        "prompts of the current turn and of sub-agents, text inserted by the agent",
        "permission decisions, answers to questions, questions of an unknown shape",
        "file changes outside a tool",
        "plans of sub-agents, sub-agent starts and ends",
        "usage within a turn",
        "retries, notices and limits",
        "compactions",
        "host facts (sandbox, relay)",
        "unknown and unreadable records",
    ],
    rules: Some(|| Box::<rules::AcpRules>::default()),
    reads: <wire::Message<'static> as Record<'static>>::shape,
    ignores: ignored::IGNORED,
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};

/// Other protocols use JSON-RPC too, so only the methods of this one identify it with certainty.
fn recognise(probe: &Probe<'_>) -> Confidence {
    if !probe.has("jsonrpc") {
        return Confidence::No;
    }
    match probe.text("method").map(|method| method.to_plain().into_owned()).as_deref() {
        Some(
            "session/update"
            | "session/request_permission"
            | "session/prompt"
            | "session/new"
            | "session/load",
        ) => Confidence::Sure,
        Some(_) => Confidence::Maybe,
        None if probe.has("id") && (probe.has("result") || probe.has("error")) => Confidence::Maybe,
        None => Confidence::No,
    }
}
