//! `openai-responses`: the responses of OpenAI's Responses API, and of servers that are compatible
//! with it.
//!
//! A streamed response consists of events with a `type` and a `sequence_number`. `response.created`
//! begins it, and one of `response.completed`, `response.incomplete` and `response.failed` ends it;
//! nothing else does. Its output is a list of items: messages, reasoning, and calls of tools. An item
//! is added, its texts and arguments are streamed, each text is repeated as a whole, and the item is
//! done. The last event repeats all items, and has the counts. Of compatible servers, its output may be
//! empty, or the only place of an item. An `error` is an event of its own, flat or nested. A response
//! that is not streamed is one object.

mod calls;
mod decode;
mod ended;
mod ignored;
mod rules;
mod texts;
mod wire;

use super::{Confidence, Dialect, FramingKind, Probe};
use crate::event::ErrorClass;
use crate::json::read::Record;

pub use decode::OpenAiResponsesDecoder;

/// The dialect `openai-responses`.
pub static DIALECT: Dialect = Dialect {
    name: "openai-responses",
    aliases: &["responses"],
    about: "The responses of OpenAI's Responses API",
    framing: FramingKind::LinesOrSse,
    // A response that ends without its last event was cut off on its way.
    exit_class: |_| Some(ErrorClass::Network),
    decoder: Some(|| Box::<OpenAiResponsesDecoder>::default()),
    recognise,
    rules: Some(|| Box::<rules::OpenAiResponsesRules>::default()),
    reads: <wire::Line<'static> as Record<'static>>::shape,
    ignores: ignored::IGNORED,
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};

fn recognise(probe: &Probe<'_>) -> Confidence {
    let kind = probe.kind();
    let has_place =
        ["sequence_number", "output_index", "item_id"].iter().any(|field| probe.has(field));
    match kind.as_str() {
        "response.created" | "response.queued" | "response.in_progress" => Confidence::Sure,
        kind if kind.starts_with("response.") && has_place => Confidence::Sure,
        "error" if probe.has("sequence_number") => Confidence::Sure,
        "" if probe.text("object").is_some_and(|object| object == *"response") => Confidence::Sure,
        // The body of an HTTP error, which the other APIs of OpenAI have too.
        "" if probe.has("error") && !probe.has("jsonrpc") && !probe.has("choices") => {
            Confidence::Maybe
        }
        _ => Confidence::No,
    }
}
