//! The records of Gemini's stream, as they are on the wire. Some fields have an older name.

use crate::json::record;

record! {
    /// One line.
    pub(in crate::dialect) struct Line<'a> {
        kind: text "type",
        timestamp: json "timestamp",
        session_id: text "session_id",
        model: text "model" | "modelId",
        role: text "role",
        content: text "content",
        delta: flag "delta",
        tool_name: text "tool_name" | "name",
        tool_id: text "tool_id" | "tool_use_id" | "id",
        parameters: json "parameters" | "input",
        status: text "status",
        output: json "output",
        error: record<Failure> "error",
        severity: text "severity",
        message: text "message",
        stats: record<Stats> "stats",
        // Fields of the records that a host adds (`giselle`).
        request_id: text "requestId",
        sandbox_id: text "sandbox_id",
        snapshot_id: text "snapshot_id",
        relay_session: text "sessionId",
        relay_token: text "token",
        relay_url: text "relayUrl",
        relay_expires: json "expiresAt",
        instruction: json "instruction",
        document: json "document",
        actions: json "actions",
        fields: json "fields",
        path: text "path",
        label: text "label",
        mime_type: text "mime_type",
        size_bytes: number "size_bytes",
    }
}

record! {
    /// Why a tool or a turn failed.
    pub(in crate::dialect) struct Failure<'a> {
        kind: text "type" | "code",
        message: text "message",
    }
}

record! {
    /// The counts of a run. The input tokens include the cached ones.
    pub(in crate::dialect) struct Stats<'a> {
        total: number "total_tokens",
        input_all: number "input_tokens",
        output: number "output_tokens",
        cached: number "cached",
        input: number "input",
        duration_ms: number "duration_ms",
        models: json "models",
    }
}

record! {
    /// The output of a tool, if it is an object.
    pub(super) struct ToolOutput<'a> {
        text: text "text",
    }
}
