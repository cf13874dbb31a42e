//! The records of the flat contract, as they are on the wire; some fields have several names.

use crate::json::record;

record! {
    /// One line. The fields of all record types together: each type has some of them.
    pub(super) struct Line<'a> {
        kind: text "type",
        subtype: text "subtype",
        timestamp: json "timestamp",
        parent: text "parent_tool_use_id",
        session_id: text "session_id",
        // system
        model: text "model",
        cwd: text "cwd",
        permission_mode: text "permissionMode",
        tools: json "tools",
        compact_metadata: json "compact_metadata",
        // text and thinking
        content: json "content",
        text: text "text",
        thought: text "thought" | "thinking",
        // tools
        id: text "id",
        tool_id: text "tool_use_id" | "tool_id",
        name: text "name" | "tool_name",
        input: json "input" | "parameters",
        executor: text "executor",
        output: json "output",
        is_error: flag "is_error",
        partial: flag "partial",
        // the end of a turn
        status: text "status",
        result: text "result",
        errors: json "errors",
        structured: json "structured_output",
        cost: float "total_cost_usd",
        duration_ms: number "duration_ms",
        api_duration_ms: number "duration_api_ms",
        requests: number "num_turns",
        denials: json "permission_denials",
        usage: record<Counts> "usage",
        models: json "modelUsage",
        usage_estimated: flag "usage_estimated",
        input_tokens: number "input_tokens",
        output_tokens: number "output_tokens",
        cache_write: number "cache_creation_input_tokens",
        cache_read: number "cache_read_input_tokens",
        estimated: flag "estimated",
        // errors
        message: text "message",
        error: shape<Failure> "error",
        code: json "code",
    }
}

record! {
    /// What went wrong.
    pub(super) struct Failure<'a> {
        message: text "message",
    }
}

record! {
    /// Tokens; input counts leave out the cached ones.
    pub(super) struct Counts<'a> {
        input: number "input_tokens",
        output: number "output_tokens",
        cache_write: number "cache_creation_input_tokens",
        cache_read: number "cache_read_input_tokens",
        estimated: flag "estimated",
        _model: text "model",
    }
}

record! {
    /// What a tool gave back, where that is an object.
    pub(super) struct Answer<'a> {
        content: json "content",
        output: json "output",
    }
}

record! {
    /// What is told of a conversation that was made shorter.
    pub(super) struct CompactMetadata<'a> {
        trigger: text "trigger",
        before: number "pre_tokens",
        after: number "post_tokens",
    }
}
