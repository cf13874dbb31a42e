//! The records of the Messages API as they are on the wire. It knows no meaning of them.

use crate::dialect::messages_api::Usage;
use crate::json::record;

record! {
    /// One event of a stream, a whole response, or an error.
    pub(super) struct ApiRecord<'a> {
        // The most frequent fields are first, since fields are compared in this order.
        kind: text "type",
        index: number "index",
        delta: record<Delta> "delta",
        block: whole<Content> "content_block",
        message: record<Message> "message",
        usage: record<Usage> "usage",
        error: record<Failure> "error",
        // The fields of a whole response.
        id: text "id",
        model: text "model",
        content: json "content",
        stop_reason: text "stop_reason",
        stop_details: record<StopDetails> "stop_details",
        input_transformations: json "input_transformations",
    }
}

record! {
    /// The message that a stream starts with.
    pub(super) struct Message<'a> {
        id: text "id",
        model: text "model",
        usage: record<Usage> "usage",
        input_transformations: json "input_transformations",
    }
}

record! {
    /// One content block.
    pub(super) struct Content<'a> {
        kind: text "type",
        text: text "text",
        thinking: text "thinking",
        signature: text "signature",
        data: text "data",
        citations: json "citations",
        id: text "id",
        name: text "name",
        input: json "input",
        tool_use_id: text "tool_use_id",
        content: json "content",
        is_error: flag "is_error",
    }
}

record! {
    /// A delta of a block, or the end of a message.
    pub(super) struct Delta<'a> {
        kind: text "type",
        text: text "text",
        partial_json: text "partial_json",
        thinking: text "thinking",
        signature: text "signature",
        _citation: json "citation",
        stop_reason: text "stop_reason",
        stop_details: record<StopDetails> "stop_details",
    }
}

record! {
    /// Why the model refused.
    pub(super) struct StopDetails<'a> {
        category: text "category",
        explanation: text "explanation",
        _kind: text "type",
    }
}

record! {
    /// Why a request failed.
    pub(super) struct Failure<'a> {
        kind: text "type",
        message: text "message",
        details: record<FailureDetails> "details",
    }
}

record! {
    /// The stable code of a failure.
    pub(super) struct FailureDetails<'a> {
        code: text "error_code",
    }
}
