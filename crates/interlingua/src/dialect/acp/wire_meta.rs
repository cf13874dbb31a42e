//! The fields outside the protocol that agents write in `_meta`, with those of Interlingua's own
//! encoder. Some agents also count tokens there.

use crate::json::record;

record! {
    /// Counts of tokens, as the protocol defines them.
    pub(super) struct WireUsage<'a> {
        input: number "inputTokens",
        output: number "outputTokens",
        total: number "totalTokens",
        thought: number "thoughtTokens",
        cache_read: number "cachedReadTokens",
        cache_write: number "cachedWriteTokens",
        meta: record<UsageMeta> "_meta",
    }
}

record! {
    pub(super) struct UsageMeta<'a> {
        ours: record<InterlinguaUsage> "interlingua",
    }
}

record! {
    /// The fields of `_meta` that are read.
    pub(super) struct Meta<'a> {
        ours: record<InterlinguaMeta> "interlingua",
        claude: record<ClaudeMeta> "claudeCode",
        tool_name: text "toolName",
        usage: record<WireUsage> "usage",
        quota: record<Quota> "quota",
        kind: text "kind",
        todo: record<Named> "qwenTodo",
        plan: record<Named> "qwenTodoPlan",
        terminal_output: record<TerminalOutput> "terminal_output",
        terminal_exit: record<TerminalExit> "terminal_exit",
        // A permission request of Qwen that is a question.
        interaction: text "qwenInteractionKind",
        questions: json "qwenQuestions",
    }
}

record! {
    pub(super) struct ClaudeMeta<'a> {
        parent: text "parentToolUseId",
        tool_name: text "toolName",
    }
}

record! {
    pub(super) struct Named<'a> {
        id: text "id",
    }
}

record! {
    /// The next delta of the output of a terminal.
    pub(super) struct TerminalOutput<'a> {
        data: text "data",
    }
}

record! {
    pub(super) struct TerminalExit<'a> {
        exit_code: integer "exit_code",
        signal: text "signal",
    }
}

record! {
    /// Counts of tokens, as Gemini reports them.
    pub(super) struct Quota<'a> {
        count: record<TokenCount> "token_count",
        models: records<ModelUsage> "model_usage",
    }
}

record! {
    pub(super) struct ModelUsage<'a> {
        model: text "model",
        count: record<TokenCount> "token_count",
    }
}

record! {
    pub(super) struct TokenCount<'a> {
        input: number "input_tokens",
        output: number "output_tokens",
        total: json "total_tokens",
    }
}

record! {
    /// The fields that Interlingua's own encoder writes.
    pub(super) struct InterlinguaMeta<'a> {
        parent: text "parentToolCallId",
        session: text "sessionId",
        replay: flag "replay",
        injected: flag "injected",
        agent: text "agent",
        version: text "version",
        model: text "model",
        cwd: text "cwd",
        permission_mode: text "permissionMode",
        tools: json "tools",
        kind: text "kind",
        executor: text "executor",
        status: text "status",
        exit_code: integer "exitCode",
        error: text "error",
        output: text "output",
        structured: json "structured",
        elapsed_ms: number "elapsedMs",
        changes: records<InterlinguaChange> "filesChanged",
        request: text "requestId",
        description: text "description",
        options: json "options",
        message: text "message",
        server: text "server",
        questions: json "questions",
        call: text "toolCallId",
        plan: text "planId",
        id: text "id",
        active_form: text "activeForm",
        outcome: text "outcome",
        cause: text "cause",
        class: text "class",
        reason: text "reason",
        stop_reason: text "stopReason",
        errors: json "errors",
        http_status: number "httpStatus",
        usage: record<InterlinguaUsage> "usage",
        by_model: records<InterlinguaUsage> "byModel",
        cost_usd: float "costUsd",
        cost_estimated: flag "costEstimated",
        duration_ms: number "durationMs",
        api_duration_ms: number "apiDurationMs",
        steps: number "steps",
        denials: json "denials",
        to_be_continued: flag "toBeContinued",
    }
}

record! {
    pub(super) struct InterlinguaChange<'a> {
        path: text "path",
        old_path: text "oldPath",
        kind: text "kind",
        diff: json "diff",
    }
}

record! {
    pub(super) struct InterlinguaUsage<'a> {
        model: text "model",
        input: number "input",
        cache_read: number "cacheRead",
        cache_write: number "cacheWrite",
        output: number "output",
        reasoning: number "reasoning",
        total: number "total",
        estimated: flag "estimated",
    }
}
