//! `openai-chat`: the responses of OpenAI's Chat Completions, and of servers that are compatible with
//! it.
//!
//! A streamed response consists of chunks, `{id, object, model, choices, usage}`, as server-sent events.
//! A choice has the next piece of its message (`delta`), and the last one states why it stopped
//! (`finish_reason`). The counts are in a chunk without choices, in the last one, or in all of them as
//! running totals. `[DONE]` is the end; some servers leave it out, and others never state a reason. A
//! stream that has neither was cut off. The official API streams no reasoning: others do, under two
//! names. An error in a response that has begun is a record in place of the next chunk. A response that
//! is not streamed is one object with a `message` in place of the `delta`.

mod calls;
mod decode;
mod ended;
mod ignored;
mod rules;
mod wire;

use super::{Confidence, Dialect, FramingKind, Probe};
use crate::event::ErrorClass;
use crate::json::read::Record;

pub use decode::OpenAiChatDecoder;

/// The dialect `openai-chat`.
pub static DIALECT: Dialect = Dialect {
    name: "openai-chat",
    aliases: &["openai-chat-completions", "chat-completions"],
    about: "The responses of OpenAI's Chat Completions and of compatible servers",
    framing: FramingKind::LinesOrSse,
    // A response that ends without its last record was cut off on its way.
    exit_class: |_| Some(ErrorClass::Network),
    decoder: Some(|| Box::<OpenAiChatDecoder>::default()),
    recognise,
    rules: Some(|| Box::<rules::OpenAiChatRules>::default()),
    reads: <wire::Chunk<'static> as Record<'static>>::shape,
    ignores: ignored::IGNORED,
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};

fn recognise(probe: &Probe<'_>) -> Confidence {
    if probe.has("type") || probe.has("jsonrpc") {
        return Confidence::No;
    }
    let object = probe.text("object").map(|object| object.to_plain().into_owned());
    match object.as_deref() {
        Some("chat.completion.chunk" | "chat.completion") => Confidence::Sure,
        Some("error") if probe.has("message") => Confidence::Sure,
        _ if probe.has("choices") && probe.has("model") => Confidence::Sure,
        // The body of an HTTP error, which the other APIs of OpenAI have too.
        None if probe.has("error") => Confidence::Maybe,
        _ => Confidence::No,
    }
}
