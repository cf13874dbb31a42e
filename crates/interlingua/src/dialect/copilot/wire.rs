//! The records of Copilot's stream, as they are on the wire.

use crate::json::record;

record! {
    /// One line: the envelope of an event, or `result`, which has none.
    pub(in crate::dialect) struct Line<'a> {
        kind: text "type",
        data: record<Details> "data",
        timestamp: json "timestamp",
        agent: text "agentId",
        // result
        session_id: text "sessionId",
        exit_code: integer "exitCode",
    }
}

record! {
    /// The data of an event: the fields of all types, of which each type has some.
    pub(in crate::dialect) struct Details<'a> {
        // The most frequent fields are first, since names are compared in this order.
        message: text "messageId",
        delta: text "deltaContent",
        parent_call: text "parentToolCallId",
        call: text "toolCallId",
        tool: text "toolName",
        input_delta: text "inputDelta",
        text: text "text",
        content: text "content",
        tool_requests: records<ToolRequest> "toolRequests",
        reasoning_id: text "reasoningId",
        reasoning_text: text "reasoningText",
        arguments: json "arguments",
        model: text "model" | "selectedModel" | "newModel",
        mcp_server: text "mcpServerName",
        // tool.execution_complete
        success: flag "success",
        result: record<ToolResult> "result",
        error: shape<Failure> "error",
        shell: record<ShellExecution> "shellExecution",
        file_edits: records<FileEdit> "fileEdits",
        progress: text "progressMessage",
        // failures, retries, notices
        status_code: number "statusCode",
        retry_attempt: number "retryAttempt",
        failure_kind: text "failureKind",
        error_message: text "errorMessage",
        error_type: text "errorType",
        reason: text "reason",
        message_text: text "message",
        info_type: text "infoType",
        aborted: flag "aborted",
        // model.call_finished
        outcome: text "outcome",
        request_ms: float "dispatchDurationMs",
        stopped_calls: json "toolCallIds",
        // injected messages and sub-agents
        source: text "source",
        agent_name: text "agentName",
        agent_description: text "agentDescription",
        // the session
        session_id: text "sessionId",
        version: text "copilotVersion",
        context: record<Context> "context",
        servers: records<McpServer> "servers",
        tokens_before: number "preCompactionTokens",
        tokens_after: number "postCompactionTokens",
        // permissions and questions
        request: text "requestId",
        permission: json<Permission> "permissionRequest",
        question: text "question",
        choices: json "choices",
        free_text: flag "allowFreeform",
        answer: json "answer",
        resolved_by_hook: flag "resolvedByHook",
        // assistant.usage
        input_tokens: number "inputTokens",
        output_tokens: number "outputTokens",
        cache_read_tokens: number "cacheReadTokens",
        cache_write_tokens: number "cacheWriteTokens",
        reasoning_tokens: number "reasoningTokens",
    }
}

record! {
    /// A call in a message.
    pub(in crate::dialect) struct ToolRequest<'a> {
        call: text "toolCallId",
        name: text "name",
        arguments: json "arguments",
        mcp_server: text "mcpServerName",
    }
}

record! {
    /// The output of a tool, for the model and for the screen, or the decision about a permission.
    pub(in crate::dialect) struct ToolResult<'a> {
        content: json "content",
        shown: json "detailedContent",
        kind: text "kind",
        feedback: text "feedback" | "reason",
    }
}

record! {
    /// Why something failed.
    pub(in crate::dialect) struct Failure<'a> {
        message: text "message",
        code: text "code",
    }
}

record! {
    /// The end of a command.
    pub(in crate::dialect) struct ShellExecution<'a> {
        exit_code: integer "exitCode",
        _signal: json "signal",
    }
}

record! {
    /// A file that a tool changed.
    pub(in crate::dialect) struct FileEdit<'a> {
        path: text "path",
        kind: text "kind",
    }
}

record! {
    /// The environment of a session.
    pub(in crate::dialect) struct Context<'a> {
        cwd: text "cwd",
    }
}

record! {
    /// An MCP server.
    pub(in crate::dialect) struct McpServer<'a> {
        name: text "name",
        status: text "status",
        error: text "error",
    }
}

record! {
    /// A permission request: the fields of all kinds, of which each kind has some.
    pub(in crate::dialect) struct Permission<'a> {
        call: text "toolCallId",
        kind: text "kind",
        tool: text "toolName",
        intention: text "intention",
        command: text "fullCommandText",
        folder: text "resolvedWorkingDirectory",
        path: text "fileName" | "path",
        diff: text "diff",
        edits: records<ProposedEdit> "fileEdits",
        url: text "url",
    }
}

record! {
    /// A change to a file for which permission is requested.
    pub(in crate::dialect) struct ProposedEdit<'a> {
        before: record<FileVersion> "before",
        after: record<FileVersion> "after",
    }
}

record! {
    /// A file before or after a change.
    pub(in crate::dialect) struct FileVersion<'a> {
        path: text "path",
    }
}
