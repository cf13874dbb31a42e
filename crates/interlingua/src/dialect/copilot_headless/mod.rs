//! `copilot-headless`: the messages between `copilot --headless --stdio` and its client.
//!
//! This is the protocol of Copilot's SDK, which its help does not mention; seen in Copilot CLI
//! 1.0.102, protocol version 3. It is JSON-RPC 2.0, and each message is preceded by its length. The
//! notification `session.event` contains one event, with the names and fields of the JSON stream, so
//! the decoder of [`copilot`](super::copilot) reads it. This module knows the envelope, and what the
//! JSON stream does not have: several turns, token counts, the todo list, and the client's side.
//!
//! A turn lasts from `user.message` to `session.idle`, however it ends. `session.error` precedes
//! `session.idle` if the turn failed, and may be all there is if it failed before its prompt was
//! read. A prompt that is sent during a turn joins it: there is one `session.idle` for both.
//!
//! The decoder reads the agent's side alone, or both sides in one stream. The agent repeats every
//! decision and every answer of the client as an event of its own (`permission.completed`,
//! `user_input.completed`), which is what is read. Both sides count the ids of their requests, so
//! responses are distinguished by their fields.

mod decode;
mod ignored;
mod wire;

use super::{Confidence, Dialect, FramingKind, Probe};
use crate::json::read::Record;

pub use decode::CopilotHeadlessDecoder;

/// The dialect `copilot-headless`.
pub static DIALECT: Dialect = Dialect {
    name: "copilot-headless",
    aliases: &["copilot-sdk"],
    about: "Copilot CLI: copilot --headless --stdio, with or without the messages of its client",
    framing: FramingKind::ContentLength,
    decoder: Some(|| Box::<CopilotHeadlessDecoder>::default()),
    recognise,
    kind_of_tool: super::copilot::DIALECT.kind_of_tool,
    reads: <wire::Message<'static> as Record<'static>>::shape,
    ignores: ignored::IGNORED,
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};

/// Other protocols use JSON-RPC too, so only the methods of this one identify it.
fn recognise(probe: &Probe<'_>) -> Confidence {
    let method = probe.text("method").filter(|_| probe.has("jsonrpc"));
    match method.map(|method| method.to_plain().into_owned()).as_deref() {
        Some(
            "session.event" | "session.lifecycle" | "session.create" | "session.resume"
            | "session.send" | "userInput.request",
        ) => Confidence::Sure,
        _ => Confidence::No,
    }
}
