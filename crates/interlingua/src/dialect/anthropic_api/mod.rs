//! `anthropic-api`: a response of Anthropic's Messages API, streamed or whole.
//!
//! A streamed response is a sequence of server-sent events: `message_start`, for each block
//! `content_block_start`, deltas and `content_block_stop`, then `message_delta` with the stop reason,
//! and `message_stop`, which alone ends it. `ping` and `error` may occur anywhere. Blocks have an index,
//! and are not assumed to follow one another. The input of a call is JSON text, cut anywhere. The counts
//! of the input are in `message_start`; those in `message_delta` are cumulative and replace them.
//! Without streaming, the response is one object of the type `message`. A request that fails is
//! answered with an object of the type `error`, which is the same inside a stream.
//!
//! A response is a turn. If it calls tools of the client, the turn waits for the client.

mod blocks;
mod decode;
mod ended;
mod failure;
mod ignored;
mod input;
mod rules;
mod wire;

use super::{Confidence, Dialect, FramingKind, Probe};
use crate::event::ErrorClass;
use crate::json::read::Record;

pub use decode::AnthropicApiDecoder;

/// The dialect `anthropic-api`.
pub static DIALECT: Dialect = Dialect {
    name: "anthropic-api",
    aliases: &["anthropic", "anthropic-messages"],
    about: "Anthropic's Messages API: a response, streamed or whole",
    framing: FramingKind::LinesOrSse,
    // A response without its last event was cut off on the way.
    exit_class: |_| Some(ErrorClass::Network),
    decoder: Some(|| Box::<AnthropicApiDecoder>::default()),
    recognise,
    rules: Some(|| Box::<rules::AnthropicApiRules>::default()),
    reads: <wire::ApiRecord<'static> as Record<'static>>::shape,
    ignores: ignored::IGNORED,
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};

fn recognise(probe: &Probe<'_>) -> Confidence {
    match probe.kind().as_str() {
        // Pi has a record of the same name, whose message has no type.
        "message_start" if probe.has_inside("message", "type") => Confidence::Sure,
        "content_block_start" if probe.has("content_block") => Confidence::Sure,
        "content_block_delta" if probe.has("delta") => Confidence::Sure,
        "content_block_stop" if probe.has("index") => Confidence::Sure,
        "message_delta" if probe.has("delta") => Confidence::Sure,
        "message" if probe.has("content") && probe.has("stop_reason") => Confidence::Sure,
        "error" if probe.has_inside("error", "type") && !probe.has("eventId") => Confidence::Sure,
        "ping" => Confidence::Maybe,
        _ => Confidence::No,
    }
}
