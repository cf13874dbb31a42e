//! `codex-app-server`: the messages between `codex app-server` and its client.
//!
//! Seen in Codex 0.166.0. The protocol is JSON-RPC without the field `jsonrpc`, one message per
//! line, in both directions; every notification has a time. A thread is a session, and its turns
//! consist of items: messages, thoughts, commands, file changes and calls of other tools. Text and
//! thoughts are streamed under the id of their item, which then repeats them completely. Token
//! counts are those of the thread so far, and a resume repeats them. An `error` states whether the
//! request to the model is retried; the messages of the failed request are then never completed,
//! and the retry repeats them under other ids. `turn/completed` reports the outcome of a turn; an
//! interrupted one leaves items open. A closed standard input or a signal ends the program in the
//! middle of a turn without another record, usually with exit code 0.
//!
//! The decoder reads the agent's side alone, or both sides in one stream. Requests and responses of
//! the two sides are distinguished by their methods and fields, since both sides count their ids
//! from zero.
//!
//! Some names occur in no transcript and are read as the program declares them: the items `plan`,
//! `hookPrompt`, `mcpToolCall`, `dynamicToolCall`, `functionCallOutput`, `subAgentActivity`,
//! `sleep` and `imageGeneration`, questions to the user, and the decisions of the agent's own
//! reviewer.

mod agent_requests;
mod calls;
mod client;
mod counts;
mod decode;
mod diffs;
mod failures;
mod ignored;
mod items;
mod messages;
mod questions;
mod threads;
mod tools;
mod turns;
mod wire;

use super::{Confidence, Dialect, Probe};
use crate::json::read::Record;

pub use decode::CodexAppServerDecoder;

/// The dialect `codex-app-server`.
pub static DIALECT: Dialect = Dialect {
    name: "codex-app-server",
    aliases: &["codex-appserver"],
    about: "Codex CLI: codex app-server, with or without the messages of its client",
    decoder: Some(|| Box::<CodexAppServerDecoder>::default()),
    recognise,
    reads: <wire::Message<'static> as Record<'static>>::shape,
    ignores: ignored::IGNORED,
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};

/// The prefixes of methods that identify this protocol with certainty. Other protocols based on
/// JSON-RPC may have the other methods too.
const SURE: &[&str] = &["item/", "thread/", "turn/", "remoteControl/", "serverRequest/"];

fn recognise(probe: &Probe<'_>) -> Confidence {
    let Some(method) = probe.text("method") else {
        // A response could belong to any protocol.
        let is_response = probe.has("id") && (probe.has("result") || probe.has("error"));
        let is_ours = is_response && !probe.has("jsonrpc") && !probe.has("type");
        return if is_ours { Confidence::Maybe } else { Confidence::No };
    };
    let method = method.to_plain();
    if SURE.iter().any(|start| method.starts_with(start)) || probe.has("emittedAtMs") {
        Confidence::Sure
    } else if !probe.has("jsonrpc") && !probe.has("type") {
        Confidence::Maybe
    } else {
        Confidence::No
    }
}
