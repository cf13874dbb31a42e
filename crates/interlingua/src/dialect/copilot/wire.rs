//! The records of Copilot's stream, as they are on the wire.

use crate::json::record;

record! {
    /// One line: the envelope of an event, or the `result`, which has none.
    pub(super) struct Line<'a> {
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
    /// What an event is about. The fields of all types together: each type has some of them.
    pub(super) struct Details<'a> {
        // The most frequent first: fields are compared one after the other.
        message: text "messageId",
        piece: text "deltaContent",
        parent_call: text "parentToolCallId",
        call: text "toolCallId",
        tool: text "toolName",
        input_piece: text "inputDelta",
        text: text "text",
        content: text "content",
        tool_requests: records<ToolRequest> "toolRequests",
        thought: text "reasoningId",
        reasoning: text "reasoningText",
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
        request_ms: number "dispatchDurationMs",
        stopped_calls: json "toolCallIds",
        // who said it, and who is told
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
        permission: json "permissionRequest",
        question: text "question",
        choices: json "choices",
        answer: json "answer",
    }
}

record! {
    /// A call that the model asks for.
    pub(super) struct ToolRequest<'a> {
        call: text "toolCallId",
        name: text "name",
        arguments: json "arguments",
        mcp_server: text "mcpServerName",
    }
}

record! {
    /// What a tool gave back: to the model, and to the screen. A permission has a kind in its place.
    pub(super) struct ToolResult<'a> {
        content: json "content",
        shown: json "detailedContent",
        kind: text "kind",
        feedback: text "feedback",
    }
}

record! {
    /// Why something failed.
    pub(super) struct Failure<'a> {
        message: text "message",
        code: text "code",
    }
}

record! {
    /// How a command ended.
    pub(super) struct ShellExecution<'a> {
        exit_code: integer "exitCode",
        _signal: json "signal",
    }
}

record! {
    /// A file that a tool changed.
    pub(super) struct FileEdit<'a> {
        path: text "path",
        kind: text "kind",
    }
}

record! {
    /// Where a session works.
    pub(super) struct Context<'a> {
        cwd: text "cwd",
    }
}

record! {
    /// A server that brings tools.
    pub(super) struct McpServer<'a> {
        name: text "name",
        status: text "status",
        error: text "error",
    }
}

record! {
    /// What the agent asks to be allowed.
    pub(super) struct Permission<'a> {
        call: text "toolCallId",
        kind: text "kind",
        tool: text "toolName",
        intention: text "intention",
    }
}
