//! `ai-sdk` and `ai-sdk-v4`: the stream parts of an AI SDK language model, as JSON lines.
//!
//! The encoder follows `@ai-sdk/provider` 3.0.19 and 4.0.37, and its output is replayed through
//! `ai` 6 and 7 in tests. `stream-start` is the first part, `finish` the last; each is written
//! once. `finish` contains the usage. Text and reasoning are blocks with an id on every part.
//! Agents run their own tools: such a call is `providerExecuted` and `dynamic`, and its
//! `tool-result` is in the same stream. A call that the client must answer has no flags, and the
//! stream then ends with `tool-calls`. The `input` of a call is a string that contains JSON.
//!
//! An unknown part aborts every consumer, and an unknown field aborts older ones. An event without
//! a part is therefore written as a pair of call and result (`updatePlan`, `compaction`,
//! `artifact`, `fileChange`), or in `providerMetadata.interlingua`, or is lost. That metadata
//! contains the id of the session on every `text-end` and `tool-call`, since consumers send it back
//! with the next prompt. Unknown counts are left out; the two objects for them are always written.
//!
//! `ai` 6 reads only version 3, `ai` 7 reads both. Choose version 3 unless you need what only
//! version 4 can express: `interrupted`, for a turn whose end the agent did not report, and
//! `custom` parts, for notices.
//!
//! The dialect can only be written: a consumer sends back a prompt, not a stream.

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
        "structured tool outputs",
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
        "structured tool outputs",
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
