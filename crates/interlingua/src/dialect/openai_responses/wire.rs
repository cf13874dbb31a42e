//! The records of the Responses API, as they are on the wire: events, whole responses and errors.

use crate::dialect::openai_error::ErrorFields;
use crate::json::record;

record! {
    /// An event, or an error in one of its forms.
    pub(super) struct Line<'a> {
        kind: text "type",
        object: text "object",
        response: record<Response> "response",
        item: whole<Item> "item",
        part: record<Part> "part",
        output_index: number "output_index",
        content_index: number "content_index",
        summary_index: number "summary_index",
        delta: text "delta",
        /// The whole text, refusal, arguments, input or code that the deltas consist of.
        whole: text "text" | "refusal" | "arguments" | "input" | "code",
        error: shape<ErrorFields> "error",
        message: text "message",
        detail: json "detail",
        _item_id: text "item_id",
        _sequence_number: number "sequence_number",
    }
}

record! {
    /// A response, so far or complete.
    pub(super) struct Response<'a> {
        id: text "id",
        object: text "object",
        model: text "model",
        status: text "status",
        output: json "output",
        usage: record<Usage> "usage",
        error: shape<ErrorFields> "error",
        incomplete: record<Incomplete> "incomplete_details",
    }
}

record! {
    /// Why a response is incomplete.
    pub(super) struct Incomplete<'a> {
        reason: text "reason",
    }
}

record! {
    /// An item of the output: a message, reasoning, or a call of a tool.
    pub(super) struct Item<'a> {
        kind: text "type",
        id: text "id",
        status: text "status",
        content: records<Part> "content",
        summary: records<Part> "summary",
        encrypted_content: text "encrypted_content",
        call_id: text "call_id",
        name: text "name",
        arguments: text "arguments",
        input: text "input",
        code: text "code",
        /// What a tool without arguments is to do.
        action: json "action" | "operation",
        queries: json "queries",
        prompt: text "revised_prompt",
        output: json "output" | "outputs" | "results" | "result" | "tools",
        error: json "error",
        server: text "server_label",
        _role: text "role",
        _phase: text "phase",
        _container: text "container_id",
        _namespace: text "namespace",
    }
}

record! {
    /// A part of a message or of reasoning.
    pub(super) struct Part<'a> {
        kind: text "type",
        text: text "text",
        refusal: text "refusal",
    }
}

record! {
    /// A part of the output of a code interpreter.
    pub(super) struct CodeOutput<'a> {
        logs: text "logs",
    }
}

record! {
    /// Tokens. Both counts include their details.
    pub(super) struct Usage<'a> {
        input: number "input_tokens",
        output: number "output_tokens",
        total: number "total_tokens",
        input_details: record<InputDetails> "input_tokens_details",
        output_details: record<OutputDetails> "output_tokens_details",
    }
}

record! {
    /// Parts of the input.
    pub(super) struct InputDetails<'a> {
        cached: number "cached_tokens",
        cache_write: number "cache_write_tokens",
        _by_lifetime: json "cache_write_tokens_details",
    }
}

record! {
    /// Parts of the output.
    pub(super) struct OutputDetails<'a> {
        reasoning: number "reasoning_tokens",
        _audio: json "audio_tokens",
    }
}
