//! The records of Chat Completions, as they are on the wire: chunks, whole responses and errors.

use crate::dialect::openai_error::ErrorFields;
use crate::json::record;

record! {
    /// A chunk, a whole response, or an error in one of its forms.
    pub(super) struct Chunk<'a> {
        id: text "id",
        object: text "object",
        model: text "model",
        choices: shape<Choice> "choices",
        usage: record<Usage> "usage",
        error: shape<ErrorFields> "error",
        /// The fields of an error that is not in an object of its own.
        kind: text "type",
        message: text "message",
        code: json "code",
        detail: json "detail",
    }
}

record! {
    /// One of the answers that were requested. A chunk has its next piece, a whole response all of
    /// it.
    pub(super) struct Choice<'a> {
        index: number "index",
        delta: record<Delta> "delta",
        message: record<Delta> "message",
        finish_reason: text "finish_reason",
        error: shape<ErrorFields> "error",
    }
}

record! {
    /// A piece of a message, or a whole one.
    pub(super) struct Delta<'a> {
        role: text "role",
        content: shape<Part> "content",
        reasoning_content: text "reasoning_content",
        reasoning: text "reasoning",
        reasoning_details: records<ReasoningDetail> "reasoning_details",
        refusal: text "refusal",
        tool_calls: records<CallPiece> "tool_calls",
        function_call: record<Function> "function_call",
        annotations: json "annotations",
        images: json "images",
        audio: json "audio",
    }
}

record! {
    /// A part of a content that is a list.
    pub(super) struct Part<'a> {
        kind: text "type",
        text: text "text",
        thinking: shape<ThinkingPart> "thinking",
    }
}

record! {
    /// A part of a reasoning that is a list.
    pub(super) struct ThinkingPart<'a> {
        text: text "text",
    }
}

record! {
    /// A piece of reasoning in the form in which it has to be returned to the provider.
    pub(super) struct ReasoningDetail<'a> {
        text: text "text" | "summary",
        signature: text "signature" | "data",
        _kind: text "type",
        _id: text "id",
        _format: text "format",
        _index: number "index",
    }
}

record! {
    /// A piece of a tool call, or a whole one.
    pub(super) struct CallPiece<'a> {
        index: number "index",
        id: text "id",
        function: record<Function> "function",
        custom: record<Function> "custom",
        _kind: text "type",
    }
}

record! {
    /// The tool and its arguments: a text of JSON, of some servers an object. A custom tool takes
    /// free text.
    pub(super) struct Function<'a> {
        name: text "name",
        arguments: json "arguments" | "input",
    }
}

record! {
    /// Tokens. Both counts include their details.
    pub(super) struct Usage<'a> {
        prompt: number "prompt_tokens",
        completion: number "completion_tokens",
        total: number "total_tokens",
        prompt_details: record<PromptDetails> "prompt_tokens_details",
        completion_details: record<CompletionDetails> "completion_tokens_details",
        cache_hit: number "prompt_cache_hit_tokens",
        cost: float "cost",
    }
}

record! {
    /// Parts of the input.
    pub(super) struct PromptDetails<'a> {
        cached: number "cached_tokens",
        cache_write: number "cache_write_tokens",
        _audio: json "audio_tokens",
    }
}

record! {
    /// Parts of the output.
    pub(super) struct CompletionDetails<'a> {
        reasoning: number "reasoning_tokens",
        _audio: json "audio_tokens",
    }
}
