//! `codex-app-server`: what `codex app-server` and its client say to each other.
//!
//! Seen in Codex 0.166.0. JSON-RPC without the field `jsonrpc`, one message a line, in both
//! directions; every notification has its time. A thread is a session, and a turn of it has items:
//! messages, thoughts, commands, file changes, calls of other tools. Text and thoughts come in pieces
//! under the id of their item, then whole. Token counts are those of the whole thread so far, and
//! a resume repeats them. An `error` says whether the request is made again; what the request that was
//! cut had said is then never completed, and said anew under another id. `turn/completed` says how a
//! turn ended; an interrupted one leaves items open. A closed standard input or a signal ends the
//! program in the middle of a turn without a word, with exit code 0 as a rule.
//!
//! The reader takes the agent's side alone, or both sides in one stream. Requests and answers of the
//! two sides are told apart by their shape: both count their ids from zero.
//!
//! Names that no transcript has are read as the program declares them: `plan`, `hookPrompt`,
//! `mcpToolCall`, `dynamicToolCall`, `functionCallOutput`, `subAgentActivity`, `sleep` and
//! `imageGeneration` items, questions to the user, and the decisions of the agent's own reviewer.

mod asked;
mod calls;
mod client;
mod counts;
mod decode;
mod diffs;
mod failures;
mod ignored;
mod items;
mod said;
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
    about: "Codex CLI: codex app-server, with or without what its client says",
    decoder: Some(|| Box::<CodexAppServerDecoder>::default()),
    recognise,
    reads: <wire::Message<'static> as Record<'static>>::shape,
    ignores: ignored::IGNORED,
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};

/// Methods whose first part other protocols on JSON-RPC have too, or may have.
const SURE: &[&str] = &["item/", "thread/", "turn/", "remoteControl/", "serverRequest/"];

fn recognise(probe: &Probe<'_>) -> Confidence {
    let Some(method) = probe.text("method") else {
        // An answer, of which nothing can be seen but that it is one.
        let answer = probe.has("id") && (probe.has("result") || probe.has("error"));
        let own = answer && !probe.has("jsonrpc") && !probe.has("type");
        return if own { Confidence::Maybe } else { Confidence::No };
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
