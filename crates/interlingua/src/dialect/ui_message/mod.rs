//! `ui-message`: the UI message stream of the AI SDK, as server-sent events: what `useChat` reads.
//!
//! Seen in `ai` 6.0.229, 6.0.326 and 7.0.169, whose clients read what we write in our tests. One
//! stream is one message of the assistant: `start` comes first, `finish` last, each once, then the
//! word `[DONE]`. Text and reasoning are parts with an id; steps are marked; a call is
//! `tool-input-start`, `-delta`, `-available`, and its answer `tool-output-available` or `-error`.
//! Agents run their own tools: such a call is `providerExecuted` and `dynamic` on every chunk, else
//! clients make two parts of it. A call that the client must answer has no flags.
//!
//! Clients validate every chunk. An unknown type, a `null`, or a field that names a prototype kills the
//! stream; so does an unknown field in clients up to 6.0.230 and 7.0.31. What has no chunk of its own
//! is a `data-*` part that holds the payload of our own event, so that nothing needs a field of ours:
//! transient where only who watches wants it, kept where it belongs to the message.
//!
//! What version 7 alone knows (`custom`, `reset-step`, `interrupted`) is not written: version 6 would
//! reject it. A chunk that the agent takes back therefore stands.
//!
//! Chunks are only written. What a client sends back is a list of messages, not a stream.

mod calls;
mod data;
mod encode;
mod rules;

use super::{Dialect, FramingKind};

pub use encode::UiMessageEncoder;

/// The dialect `ui-message`.
pub static DIALECT: Dialect = Dialect {
    name: "ui-message",
    aliases: &["ui-message-stream", "ai-sdk-ui", "use-chat"],
    about: "AI SDK: UI message stream, server-sent events for `useChat`",
    framing: FramingKind::Sse,
    encoder: Some(|options| Box::new(UiMessageEncoder::new(options))),
    cannot_express: &[
        "hidden reasoning",
        "text that the agent took back",
        "turns of the past",
        "log lines, unknown and unreadable records",
        "standard error of the agent",
    ],
    rules: Some(|| Box::<rules::UiMessageRules>::default()),
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};
