//! The messages of `codex app-server`, as they are on the wire.
//!
//! The envelope is that of [JSON-RPC](crate::dialect::json_rpc).

use crate::dialect::json_rpc;
use crate::json::record;

/// One message, of either side.
pub(super) type Message<'a> = json_rpc::Message<'a, Params<'a>, Answer<'a>>;

record! {
    /// What a request or a notification says.
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
        // What the agent asks, and what it is told.
        request: json "requestId",
        reason: text "reason",
        command: json "command",
        cwd: text "cwd",
        decisions: json "availableDecisions",
        changes: json "fileChanges",
        permissions: json "permissions",
        questions: json "questions",
        schema: json "requestedSchema",
        server: json "serverName",
        tool: text "tool",
        arguments: json "arguments",
        review: record<Review> "review",
        input: records<Input> "input",
        model: text "model" | "toModel",
        // How a server of tools is doing.
        name: text "name",
        status: text "status",
    }
}

record! {
    /// What a request was answered with: by the agent, or by the client.
    pub(super) struct Answer<'a> {
        thread: record<Thread> "thread",
        model: text "model",
        cwd: text "cwd",
        approval_policy: text "approvalPolicy",
        // Of the client.
        decision: json "decision",
        permissions: json "permissions",
        answers: json "answers",
        action: text "action",
        content: json "content",
        content_items: json "contentItems",
        // Of either.
        secret: json "accessToken" | "authToken" | "apiKey" | "token",
    }
}

record! {
    /// A conversation.
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
    /// A turn; of its items there may be all, the last message, or none.
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
    /// Tokens, of the thread so far and of the last request.
    pub(super) struct TokenUsage<'a> {
        total: record<Counts> "total",
        last: record<Counts> "last",
    }
}

record! {
    /// Tokens; input counts include the cached ones.
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
    /// How an account stands.
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
    /// What the agent's own reviewer thinks of a call.
    pub(super) struct Review<'a> {
        status: text "status",
        rationale: text "rationale",
    }
}

record! {
    /// A piece of what the user said.
    pub(super) struct Input<'a> {
        kind: text "type",
        text: text "text",
    }
}

record! {
    /// One item of a turn: a message, a thought, a call.
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
    /// What an MCP server gave back.
    pub(super) struct McpResult<'a> {
        content: json "content",
        structured: json "structuredContent",
    }
}

record! {
    /// A part of what a tool of the client gave back.
    pub(super) struct ContentItem<'a> {
        kind: text "type",
        text: text "text",
        image: text "imageUrl",
    }
}

record! {
    /// One file of a change.
    pub(super) struct Change<'a> {
        path: text "path",
        kind: record<ChangeKind> "kind",
        diff: json "diff",
    }
}

record! {
    /// What happened to a file.
    pub(super) struct ChangeKind<'a> {
        kind: text "type",
        move_path: text "move_path" | "movePath",
    }
}

record! {
    /// How another agent is doing.
    pub(super) struct AgentState<'a> {
        status: text "status",
        message: text "message",
    }
}
