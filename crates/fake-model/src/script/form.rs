//! The variants in which the providers, and servers compatible with them, write the same reply.
//!
//! Each protocol has a form; its default is what the official API sends. A form does not change the
//! content of a reply.

use serde::{Deserialize, Serialize};

/// Variants of Anthropic Messages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MessagesForm {
    /// The `stop_reason`, such as `pause_turn`, in place of the one that follows from the reply.
    pub stop_reason: Option<String>,
    /// The `category` in the `stop_details` of a refusal.
    pub refusal_category: Option<String>,
}

/// Variants of OpenAI Responses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResponsesForm {
    /// Messages have a `phase`: `commentary` before a call, else `final_answer`. A strict script
    /// always writes it.
    pub phases: bool,
    /// The form of an error in a stream.
    pub error_event: ErrorEvent,
}

/// The form of an error in a stream of Responses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorEvent {
    /// The event `response.failed`.
    #[default]
    Failed,
    /// The event `error` with `code` and `message`.
    Flat,
    /// The event `error` with an object `error`.
    Nested,
}

/// Variants of Chat Completions, as compatible servers write them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChatForm {
    /// The field with reasoning: `reasoning_content` or `reasoning`.
    pub reasoning_field: String,
    /// Reasoning also comes in `reasoning_details`, signed, as OpenRouter sends it.
    pub reasoning_details: bool,
    /// The `index` of calls.
    pub index: CallIndex,
    /// Every piece of a call repeats its id.
    pub repeated_ids: bool,
    /// The type of the arguments of a call.
    pub arguments: CallArguments,
    /// Each call is sent in one chunk.
    pub whole_calls: bool,
    /// The stream ends without `[DONE]`.
    pub without_done: bool,
    /// Every chunk has the counts.
    pub usage_in_every_chunk: bool,
    /// The `finish_reason` in place of the one that follows from the reply; `stop` with calls is
    /// what Ollama sends.
    pub finish_reason: Option<String>,
}

impl Default for ChatForm {
    fn default() -> Self {
        Self {
            reasoning_field: "reasoning_content".to_owned(),
            reasoning_details: false,
            index: CallIndex::Counted,
            repeated_ids: false,
            arguments: CallArguments::Text,
            whole_calls: false,
            without_done: false,
            usage_in_every_chunk: false,
            finish_reason: None,
        }
    }
}

/// The `index` of calls in Chat Completions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallIndex {
    /// The position of the call, from 0.
    #[default]
    Counted,
    /// 0 for every call.
    Zero,
    /// None.
    Missing,
}

/// The type of the arguments of a call in Chat Completions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallArguments {
    /// A text with JSON.
    #[default]
    Text,
    /// An object; the call is then sent in one chunk.
    Object,
}

/// Variants of Gemini.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GeminiForm {
    /// Calls have no id.
    pub without_call_ids: bool,
    /// Where a `thoughtSignature` is.
    pub signature: SignaturePlace,
    /// The `finishReason`, such as `MALFORMED_FUNCTION_CALL`, in place of the one that follows from
    /// the reply.
    pub finish_reason: Option<String>,
    /// The `finishMessage`.
    pub finish_message: Option<String>,
    /// The last chunk has no content.
    pub without_last_content: bool,
    /// The prompt is blocked for this reason: there is no candidate.
    pub block_reason: Option<String>,
}

/// Where Gemini puts a `thoughtSignature`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignaturePlace {
    /// On the first call; without calls, on the last text part.
    #[default]
    LastPart,
    /// On the first call; without calls, on an empty text part at the end of the stream.
    EmptyPart,
    /// Nowhere, as with models before Gemini 3.
    Nowhere,
}
