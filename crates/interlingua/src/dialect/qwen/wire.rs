//! The records of Qwen Code's stream as they are on the wire. It knows no meaning of them.

use crate::json::record;

record! {
    /// One line, with the fields of all record types: each type has some of them.
    pub(super) struct Line<'a> {
        // The most frequent fields are first, since fields are compared in this order.
        kind: text "type",
        uuid: text "uuid",
        session_id: text "session_id",
        parent: text "parent_tool_use_id",
        event: record<StreamEvent> "event",
        message: record<Message> "message",
        subtype: text "subtype",
        data: record<SystemData> "data",
        // system/init
        cwd: text "cwd",
        tools: json "tools",
        model: text "model",
        permission_mode: text "permission_mode",
        version: text "qwen_code_version",
        mcp_servers: records<McpServer> "mcp_servers",
        // result
        is_error: flag "is_error",
        result: text "result",
        error: record<Failure> "error",
        num_turns: number "num_turns",
        duration_ms: number "duration_ms",
        duration_api_ms: number "duration_api_ms",
        usage: record<Usage> "usage",
        permission_denials: json "permission_denials",
        structured_result: json "structured_result",
        // permissions
        request_id: text "request_id",
        request: record<ControlRequest> "request",
        response: record<ControlResponse> "response",
    }
}

record! {
    /// A message with the role of the assistant or of the user.
    pub(super) struct Message<'a> {
        id: text "id",
        model: text "model",
        content: shape<Content> "content",
        stop_reason: text "stop_reason",
        usage: record<Usage> "usage",
    }
}

record! {
    /// One content block.
    pub(super) struct Content<'a> {
        kind: text "type",
        text: text "text",
        thinking: text "thinking",
        id: text "id",
        name: text "name",
        input: json "input",
        tool_use_id: text "tool_use_id",
        content: json "content",
        is_error: flag "is_error",
    }
}

record! {
    /// A part of a streamed message, or the goal of the program.
    pub(super) struct StreamEvent<'a> {
        kind: text "type",
        index: number "index",
        delta: record<Delta> "delta",
        block: record<Content> "content_block",
        message: record<Message> "message",
        tool_use_id: text "tool_use_id",
    }
}

record! {
    /// A delta of a block.
    pub(super) struct Delta<'a> {
        kind: text "type",
        text: text "text",
        thinking: text "thinking",
        partial_json: text "partial_json",
    }
}

record! {
    /// Counts of tokens. Input counts include cached tokens.
    pub(super) struct Usage<'a> {
        input: number "input_tokens",
        cached: number "cache_read_input_tokens",
        output: number "output_tokens",
        total: number "total_tokens",
        _kind: text "type",
    }
}

record! {
    /// The details of a `system` record.
    pub(super) struct SystemData<'a> {
        reason: text "reason",
        preserve_text: flag "preserveText",
        discarded_calls: number "discardedToolCalls",
        from_model: text "fromModel",
        to_model: text "toModel",
        status_code: number "statusCode",
        error: text "error",
        text: text "text",
        session_id: text "session_id",
        cwd: text "cwd",
        version: text "version",
    }
}

record! {
    /// The cause of a failed turn.
    pub(super) struct Failure<'a> {
        message: text "message",
    }
}

record! {
    /// An MCP server, which provides tools.
    pub(super) struct McpServer<'a> {
        name: text "name",
        status: text "status",
    }
}

record! {
    /// A request of the program to its host.
    pub(super) struct ControlRequest<'a> {
        subtype: text "subtype",
        tool_name: text "tool_name",
        tool_use_id: text "tool_use_id",
        input: json "input",
        suggestions: json "permission_suggestions",
    }
}

record! {
    /// The response to a request.
    pub(super) struct ControlResponse<'a> {
        request_id: text "request_id",
        response: record<Verdict> "response",
    }
}

record! {
    /// The decision on a permission request.
    pub(super) struct Verdict<'a> {
        allowed: flag "allowed",
        _behavior: text "behavior",
    }
}
