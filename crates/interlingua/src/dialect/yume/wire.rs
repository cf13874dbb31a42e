//! The records of the flat contract as they are on the wire; some fields have several names. It
//! knows no meaning of them.

use crate::json::record;

record! {
    /// One line, with the fields of all record types: each type has some of them.
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
    /// An error.
    pub(super) struct Failure<'a> {
        message: text "message",
    }
}

record! {
    /// Counts of tokens. Input counts exclude cached tokens.
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
    /// The output of a tool, in the form of an object.
    pub(super) struct Answer<'a> {
        content: json "content",
        output: json "output",
    }
}

record! {
    /// The details of a compaction.
    pub(super) struct CompactMetadata<'a> {
        trigger: text "trigger",
        before: number "pre_tokens",
        after: number "post_tokens",
    }
}
