//! `ai-sdk` and `ai-sdk-v4`: the stream parts of an AI SDK language model, as JSON lines.
//!
//! Seen in `@ai-sdk/provider` 3.0.19 and 4.0.37, and replayed through `ai` 6 and 7. `stream-start`
//! comes first, once; text and reasoning are blocks with an id on every part; `finish` comes last,
//! once, and holds what was used. Agents run their own tools: such a call is `providerExecuted` and
//! `dynamic`, and has its `tool-result` in the same stream. A call that the client must answer has no
//! flags, and the stream then ends with `tool-calls`. A call's `input` is a string that holds JSON.
//!
//! An unknown part kills the stream of every consumer, and an unknown field that of older ones: what
//! has no part of its own is a pair of call and result (`updatePlan`, `compaction`, `artifact`,
//! `fileChange`), or is in `providerMetadata.interlingua`, or is lost. There stands the session's id on
//! every `text-end` and `tool-call`, since consumers send it back with the next prompt. Counts that
//! are not known are left out; the two objects that hold them are always there.
//!
//! `ai` 6 takes version 3 alone, `ai` 7 takes both: version 3 is the one to choose unless what only
//! version 4 can say is wanted. That is `interrupted`, as the end of a turn whose agent did not say
//! that it was over, and `custom` parts, as which notices are told.
//!
//! Parts are only written. What a consumer sends back is a prompt, not a stream.

mod calls;
mod encode;
mod ending;
mod rules;

use super::Dialect;

pub use encode::AiSdkEncoder;

/// A version of the parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Specification {
    /// `LanguageModelV3StreamPart`.
    #[default]
    V3,
    /// `LanguageModelV4StreamPart`.
    V4,
}

/// The dialect `ai-sdk`.
pub static DIALECT: Dialect = Dialect {
    name: "ai-sdk",
    aliases: &["ai-sdk-v3", "language-model-v3", "vercel-ai"],
    about: "AI SDK: language model stream parts, version 3, one a line",
    encoder: Some(|options| Box::new(AiSdkEncoder::new(options))),
    cannot_express: &[
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
    rules: Some(|| Box::new(rules::AiSdkRules::new(Specification::V3))),
    guide: include_str!("guide.md"),
    ..Dialect::BLANK
};

/// The dialect `ai-sdk-v4`.
pub static DIALECT_V4: Dialect = Dialect {
    name: "ai-sdk-v4",
    aliases: &["language-model-v4"],
    about: "AI SDK: language model stream parts, version 4, one a line",
    encoder: Some(|options| Box::new(AiSdkEncoder::new(options).in_version(Specification::V4))),
    cannot_express: &[
        "user messages",
        "hidden reasoning",
        "tool progress",
        "structured tool output",
        "permissions and questions",
        "sub-agent starts and ends",
        "retries and limits",
        "errors that did not end a turn",
        "session and host facts",
        "unknown and unreadable records",
    ],
    rules: Some(|| Box::new(rules::AiSdkRules::new(Specification::V4))),
    guide: include_str!("guide-v4.md"),
    ..Dialect::BLANK
};
