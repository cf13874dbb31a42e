//! The fields of the messages of `codex app-server` that are read.
//!
//! The envelope is that of [JSON-RPC](crate::dialect::json_rpc).

use crate::dialect::json_rpc;
use crate::json::record;

/// A message of either side.
pub(super) type Message<'a> = json_rpc::Message<'a, Params<'a>, ResponseResult<'a>>;

record! {
    /// The parameters of a request or a notification.
    pub(super) struct Params<'a> {
        thread_id: text "threadId" | "conversationId",
        turn_id: text "turnId",
        item_id: text "itemId" | "callId" | "targetItemId",
        delta: text "delta",
        part: number "summaryIndex" | "contentIndex",
        item: record<Item> "item",
        thread: record<Thread> "thread",
        turn: record<Turn> "turn",
        usage: record<TokenUsage> "tokenUsage",
        error: record<Failure> "error",
        will_retry: flag "willRetry",
        message: text "message",
        summary: text "summary",
        details: text "details",
        diff: text "diff",
        plan: records<Step> "plan",
        explanation: text "explanation",
        limits: record<Limits> "rateLimits",
        // Requests of the agent, and of the client.
        request: json "requestId",
        reason: text "reason",
        command: json "command",
        cwd: text "cwd",
        decisions: json "availableDecisions",
        changes: json "fileChanges",
        permissions: json "permissions",
        // What an approval allows beyond the command or the change that it names.
        approval_kind: text "kind",
        additional_permissions: json "additionalPermissions",
        network: json "networkApprovalContext",
        grant_root: json "grantRoot",
        questions: json "questions",
        schema: json "requestedSchema",
        server: text "serverName",
        url: text "url",
        meta: record<ElicitationMeta> "_meta",
        tool: text "tool",
        arguments: json "arguments",
        review: record<Review> "review",
        input: records<Input> "input",
        model: text "model" | "toModel",
        // The status of an MCP server.
        name: text "name",
        status: text "status",
    }
}

record! {
    /// The metadata of a form. Codex asks for the approval of an MCP tool call with a form, which
    /// only its metadata distinguishes from one of the server.
    pub(super) struct ElicitationMeta<'a> {
        approval: text "codex_approval_kind",
        params: json "tool_params",
        // In a response of the client: how long an approval holds.
        persist: json "persist",
    }
}

record! {
    /// The result in a response of either side.
    pub(super) struct ResponseResult<'a> {
        thread: record<Thread> "thread",
        model: text "model",
        cwd: text "cwd",
        approval_policy: text "approvalPolicy",
        // In responses of the client.
        decision: json "decision",
        permissions: json "permissions",
        answers: json "answers",
        action: text "action",
        content: json "content",
        meta: record<ElicitationMeta> "_meta",
        content_items: json "contentItems",
        // In responses of either side.
        secret: json "accessToken" | "authToken" | "apiKey" | "token",
    }
}

record! {
    /// A thread.
    pub(super) struct Thread<'a> {
        id: text "id",
        model: text "model",
        cwd: text "cwd",
        version: text "cliVersion",
        parent: text "parentThreadId",
        forked_from: text "forkedFromId",
        preview: text "preview",
        turns: records<Turn> "turns",
    }
}

record! {
    /// A turn, with all of its items, the last message, or none.
    pub(super) struct Turn<'a> {
        id: text "id",
        status: text "status",
        error: record<Failure> "error",
        items: records<Item> "items",
        duration_ms: number "durationMs",
    }
}

record! {
    /// Why a request to the model, or a turn, failed.
    pub(super) struct Failure<'a> {
        message: text "message",
        info: json "codexErrorInfo",
        details: text "additionalDetails",
    }
}

record! {
    /// The HTTP status in a failure.
    pub(super) struct HttpFailure<'a> {
        status: number "httpStatusCode",
        _model: text "model",
    }
}

record! {
    /// The tokens of the thread so far and of the last request.
    pub(super) struct TokenUsage<'a> {
        total: record<Counts> "total",
        last: record<Counts> "last",
    }
}

record! {
    /// Counts of tokens. The input includes cached tokens.
    pub(super) struct Counts<'a> {
        input: number "inputTokens",
        cached: number "cachedInputTokens",
        cache_write: number "cacheWriteInputTokens",
        output: number "outputTokens",
        reasoning: number "reasoningOutputTokens",
        _scope: text "scope",
    }
}

record! {
    /// The limits of an account.
    pub(super) struct Limits<'a> {
        id: text "limitId",
        name: text "limitName",
        primary: json "primary",
        secondary: json "secondary",
        credits: json "credits",
        individual: json "individualLimit",
        spending: json "spendControlReached" | "spendControl",
        reached: text "rateLimitReachedType",
        plan: json "planType",
        model: json "normalModelSlug",
    }
}

record! {
    /// One limit of an account.
    pub(super) struct Window<'a> {
        resets_at: json "resetsAt",
    }
}

record! {
    /// One step of the plan.
    pub(super) struct Step<'a> {
        text: text "step",
        status: text "status",
    }
}

record! {
    /// The decision of the agent's own reviewer about a call.
    pub(super) struct Review<'a> {
        status: text "status",
        rationale: text "rationale",
    }
}

record! {
    /// A part of a message of the user.
    pub(super) struct Input<'a> {
        kind: text "type",
        text: text "text",
    }
}

record! {
    /// An item of a turn: a message, a thought or a call.
    pub(super) struct Item<'a> {
        id: text "id",
        kind: text "type",
        status: text "status",
        text: text "text",
        summary: json "summary",
        content: json "content",
        fragments: records<Input> "fragments",
        command: json "command",
        cwd: json "cwd",
        output: json "aggregatedOutput" | "output",
        exit_code: integer "exitCode",
        changes: json "changes",
        server: text "server",
        namespace: text "namespace",
        tool: text "tool" | "name",
        arguments: json "arguments",
        result: json "result",
        content_items: json "contentItems",
        error: record<ToolFailure> "error",
        query: json "query",
        action: json "action",
        results: json "results",
        path: json "path",
        prompt: json "prompt" | "revisedPrompt",
        saved_path: text "savedPath",
        receivers: json "receiverThreadIds",
        states: json "agentsStates",
        activity: text "kind",
        agent: text "agentThreadId",
        agent_path: text "agentPath",
    }
}

record! {
    /// Why a call failed.
    pub(super) struct ToolFailure<'a> {
        message: text "message",
    }
}

record! {
    /// The result of an MCP server.
    pub(super) struct McpResult<'a> {
        content: json "content",
        structured: json "structuredContent",
    }
}

record! {
    /// A part of the output of a tool of the client.
    pub(super) struct ContentItem<'a> {
        kind: text "type",
        text: text "text",
        image: text "imageUrl",
    }
}

record! {
    /// A changed file.
    pub(super) struct Change<'a> {
        path: text "path",
        kind: record<ChangeKind> "kind",
        diff: json "diff",
    }
}

record! {
    /// The kind of a change.
    pub(super) struct ChangeKind<'a> {
        kind: text "type",
        move_path: text "move_path" | "movePath",
    }
}

record! {
    /// The state of a sub-agent.
    pub(super) struct AgentState<'a> {
        status: text "status",
        message: text "message",
    }
}
