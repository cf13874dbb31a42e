//! The records of Claude Code's stream as they are on the wire. It knows no meaning of them.

use crate::dialect::messages_api::Usage;
use crate::json::record;

record! {
    /// One line, with the fields of all record types: each type has some of them.
    pub(super) struct Line<'a> {
        // The most frequent fields are first, since fields are compared in this order.
        kind: text "type",
        event: record<StreamEvent> "event",
        message: shape<Message> "message",
        session_id: text "session_id",
        parent: text "parent_tool_use_id",
        _uuid: text "uuid",
        api_message_id: text "api_message_id",
        abandoned: record<Abandoned> "abandoned_blocks",
        timestamp: json "timestamp",
        subtype: text "subtype",
        tool_use_result: json "tool_use_result",
        tool_result_meta: records<ResultMeta> "tool_result_meta",
        is_synthetic: flag "isSynthetic",
        is_replay: flag "isReplay",
        // system/init
        cwd: text "cwd",
        tools: json "tools",
        model: text "model",
        permission_mode: text "permissionMode",
        version: text "claude_code_version",
        mcp_servers: records<McpServer> "mcp_servers",
        // failures and retries
        error: text "error",
        api_error_status: number "api_error_status",
        attempt: number "attempt",
        max_retries: number "max_retries",
        retry_delay_ms: float "retry_delay_ms",
        error_status: number "error_status",
        // result
        is_error: flag "is_error",
        result: text "result",
        errors: json "errors",
        stop_reason: text "stop_reason",
        terminal_reason: text "terminal_reason",
        num_turns: number "num_turns",
        duration_ms: number "duration_ms",
        duration_api_ms: number "duration_api_ms",
        usage: record<Usage> "usage",
        total_cost_usd: float "total_cost_usd",
        models: json "modelUsage",
        models_since: json "model_usage_since_last_result",
        permission_denials: json "permission_denials",
        structured_output: json "structured_output",
        unknown_fields: json "unknown_fields",
        // control, permissions, tasks
        request_id: text "request_id",
        request: record<ControlRequest> "request",
        response: record<ControlResponse> "response",
        tool_name: text "tool_name",
        tool_use_id: text "tool_use_id",
        decision_reason: text "decision_reason",
        elapsed_seconds: float "elapsed_time_seconds",
        compact_metadata: json "compact_metadata",
        rate_limit_info: json "rate_limit_info",
        content: text "content",
        level: text "level",
        task_id: text "task_id",
        task_type: text "task_type",
        description: text "description",
        subagent_type: text "subagent_type",
        prompt: text "prompt",
        summary: text "summary",
        status: text "status",
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
        signature: text "signature",
        data: text "data",
        source: json "source",
        id: text "id",
        name: text "name",
        input: json "input",
        tool_use_id: text "tool_use_id",
        content: json "content",
        is_error: flag "is_error",
    }
}

record! {
    /// One raw event of the model's API.
    pub(super) struct StreamEvent<'a> {
        kind: text "type",
        index: number "index",
        message: record<Message> "message",
        block: record<Content> "content_block",
        delta: record<Delta> "delta",
        usage: record<Usage> "usage",
    }
}

record! {
    /// A delta of a block, or the end of a message.
    pub(super) struct Delta<'a> {
        kind: text "type",
        text: text "text",
        thinking: text "thinking",
        signature: text "signature",
        partial_json: text "partial_json",
        stop_reason: text "stop_reason",
    }
}

record! {
    /// The metadata of a tool result.
    pub(super) struct ResultMeta<'a> {
        id: text "id",
        non_execution_kind: text "non_execution_kind",
        permission_decision: record<PermissionDecision> "permission_decision",
    }
}

record! {
    /// The decision on a call, and its source.
    pub(super) struct PermissionDecision<'a> {
        decision: text "decision",
        source: text "source",
        reason: text "reason_type",
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
    /// The blocks of a message that were retracted.
    pub(super) struct Abandoned<'a> {
        message: text "api_message_id",
        from: number "from_block_index",
    }
}

record! {
    /// A request of the program to its host.
    pub(super) struct ControlRequest<'a> {
        subtype: text "subtype",
        tool_name: text "tool_name",
        tool_use_id: text "tool_use_id",
        description: text "description",
        input: json "input",
        suggestions: json "permission_suggestions",
        // A form of an MCP server.
        server: text "mcp_server_name",
        message: text "message",
        schema: json "requested_schema",
        url: text "url",
    }
}

record! {
    /// What a hook of the host is asked.
    pub(super) struct AskedHook<'a> {
        event: text "hook_event_name",
        session_id: text "session_id",
        tool_name: text "tool_name",
        tool_input: json "tool_input",
        tool_use_id: text "tool_use_id",
    }
}

record! {
    /// The response to a request, in either direction between the program and its host.
    pub(super) struct ControlResponse<'a> {
        request_id: text "request_id",
        answer: whole<HostAnswer> "response",
        error: text "error",
    }
}

record! {
    /// The decision of the host on a call, or its answer to a form.
    pub(super) struct HostAnswer<'a> {
        behavior: text "behavior",
        message: text "message",
        updated_input: record<AnsweredInput> "updatedInput",
        action: text "action",
        content: json "content",
        // Answers that concern the program and its host only.
        mcp: json "mcp_response",
        hook: json "hookSpecificOutput",
        account: json "account",
    }
}

record! {
    /// The input of a question, to which the host has added the answers.
    pub(super) struct AnsweredInput<'a> {
        answers: json "answers",
        annotations: json "annotations",
    }
}

record! {
    /// The usage of one model, and its cost.
    pub(super) struct ModelUsage<'a> {
        usd: float "costUSD" | "costUsd",
        input: number "inputTokens",
        cache_read: number "cacheReadInputTokens",
        cache_write: number "cacheCreationInputTokens",
        output: number "outputTokens",
        thinking: number "thinkingTokens",
        estimated: flag "estimated",
        _provider: text "provider",
    }
}
