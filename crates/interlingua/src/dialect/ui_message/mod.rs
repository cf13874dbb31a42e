//! `ui-message`: the UI message stream of the AI SDK, as server-sent events that `useChat` reads.
//!
//! The encoder follows `ai` 6.0.229, 6.0.326 and 7.0.169, whose clients read the output in tests.
//! One stream is one message of the assistant: `start` is the first chunk and `finish` the last,
//! each written once, followed by `[DONE]`. Text and reasoning are parts with an id, and steps are
//! marked. A call is `tool-input-start`, `-delta`, `-available`, and its answer
//! `tool-output-available` or `-error`. Agents run their own tools: such a call is
//! `providerExecuted` and `dynamic` on every chunk, since clients would otherwise make two parts of
//! it. A call that the client must answer has no flags.
//!
//! Clients validate every chunk. An unknown type, a `null`, or a field with the name of a prototype
//! aborts the stream, and so does an unknown field in clients up to 6.0.230 and 7.0.31. An event
//! without a chunk is therefore a `data-*` part with the payload that it has in the dialect
//! `events`. The part is transient if it is of interest only while the stream runs, and kept if it
//! belongs to the message.
//!
//! The chunks that only version 7 has (`custom`, `reset-step`, `interrupted`) are not written,
//! since version 6 would reject them. Text that the agent retracts therefore stays in the message.
//!
//! The dialect can only be written: a client sends back a list of messages, not a stream.

mod calls;
mod data;
mod encode;
mod rules;

use super::{Dialect, FramingKind, Written};

pub use encode::UiMessageEncoder;

/// The dialect `ui-message`.
pub static DIALECT: Dialect = Dialect {
    name: "ui-message",
    aliases: &["ui-message-stream", "ai-sdk-ui", "use-chat"],
    about: "AI SDK: UI message stream, server-sent events for `useChat`",
    framing: FramingKind::Sse,
    encoder: Some(|options| Box::new(UiMessageEncoder::new(options))),
    written: Written::ServerSentEvents,
    cannot_express: &[
        "hidden reasoning",
        "text that the agent retracted",
        "replayed turns",
        "log lines, unknown and unreadable records",
        "standard error",
    ],
    rules: Some(|| Box::<rules::UiMessageRules>::default()),
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};
