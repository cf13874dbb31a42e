//! `ai-sdk`: the stream parts of an AI SDK language model, version 3, as JSON lines.
//!
//! Seen in `@ai-sdk/provider` 3.0.19, and replayed through `ai` 6. `stream-start` comes first, once;
//! text and reasoning are blocks with an id on every part; `finish` comes last, once, and holds what
//! was used. Agents run their own tools: such a call is `providerExecuted` and `dynamic`, and has
//! its `tool-result` in the same stream. A call that the client must answer has no flags, and the
//! stream then ends with `tool-calls`. A call's `input` is a string that holds JSON.
//!
//! An unknown part kills the stream of every consumer, and an unknown field that of older ones: what
//! has no part of its own is a pair of call and result (`updatePlan`, `compaction`, `artifact`,
//! `fileChange`), or is in `providerMetadata.interlingua`, or is lost. Counts that are not known are
//! left out; the two objects that hold them are always there.
//!
//! Parts are only written. What a consumer sends back is a prompt, not a stream.

mod calls;
mod encode;
mod ending;
mod rules;

use super::{Confidence, Dialect, Ending, FramingKind};

pub use encode::AiSdkEncoder;

/// The dialect `ai-sdk`.
pub static DIALECT: Dialect = Dialect {
    name: "ai-sdk",
    aliases: &["ai-sdk-v3", "language-model-v3", "vercel-ai"],
    about: "AI SDK: language model stream parts, version 3, one a line",
    framing: FramingKind::Lines,
    ending: Ending::Told,
    decoder: None,
    encoder: Some(|options| Box::new(AiSdkEncoder::new(options))),
    recognise: |_| Confidence::No,
    cannot_say: &[
        "user messages",
        "hidden reasoning",
        "tool progress",
        "structured tool output",
        "permissions and questions",
        "sub-agent starts and ends",
        "retries, notices and limits",
        "errors that did not end a turn",
        "session and host facts",
        "unknown and unreadable records",
    ],
    rules: Some(|| Box::<rules::AiSdkRules>::default()),
};
