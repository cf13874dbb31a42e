//! `acp`: the Agent Client Protocol, JSON-RPC 2.0 in lines, as agents speak it with editors.
//!
//! Seen in Gemini CLI 0.61.0, Copilot CLI 1.0.102, OpenCode 1.18.33 and Qwen Code 0.24.4, and in the
//! schema 1.15.1 (protocol version 1). The client asks (`initialize`, `session/new`, `session/load`,
//! `session/prompt`), the agent tells what happens in `session/update`, asks in its turn
//! (`session/request_permission`), and answers the prompt with a `stopReason` when the turn is over,
//! or with an error. An answer has no name, only the id of its request: in the agent's direction
//! alone it is known by its shape.
//!
//! Pieces of text that follow each other are one block, unless their `messageId` differs. A tool call
//! has a title for people; its name is new in the protocol, and agents told it in `_meta`, in the id
//! (Gemini) or in the first title (OpenCode). What a running call shows is told as a whole every time.
//! A session that is loaded tells its past in the same updates.
//!
//! What the protocol has no word for, our writer says in `_meta.interlingua`, and our reader reads it
//! there.

mod decode;
mod encode;
mod ending;
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
    about: "Agent Client Protocol: what agents say to editors, as JSON-RPC lines",
    decoder: Some(|| Box::<AcpDecoder>::default()),
    encoder: Some(|options| Box::new(AcpEncoder::new(options))),
    recognise,
    cannot_express: &[
        "hidden reasoning and signatures",
        "prompts of the turn at hand and of sub-agents, text that the program put in",
        "permission decisions, answers to questions, questions in an unknown form",
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

/// Other protocols are JSON-RPC too: only the methods and the first answer of this one are sure.
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
