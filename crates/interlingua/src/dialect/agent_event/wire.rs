//! The records of an `AgentEvent` stream, as they are on the wire.

use crate::json::record;

record! {
    /// One line.
    pub(super) struct Line<'a> {
        kind: text "type",
        agent_type: text "agentType",
        timestamp: json "timestamp",
        text: text "text",
        role: text "role",
        category: text "category",
        tool_name: text "toolName",
        tool_id: text "toolId",
        input: json "input",
        output: json "output",
        error: json "error",
        code: text "code",
        finish_reason: text "finishReason",
        todo_id: text "todoId",
        items: json "items",
    }
}

/// The agents whose name differs from that of their dialect.
const AGENT_TYPES: &[(&str, &str)] =
    &[("claude-code", "claude"), ("openai-codex", "codex"), ("google-gemini", "gemini")];

/// The agent type of a dialect: the dialect's own name unless a different one is prescribed.
pub(super) fn agent_type(dialect: &str) -> &str {
    AGENT_TYPES.iter().find(|(_, name)| *name == dialect).map_or(dialect, |(kind, _)| kind)
}

/// The dialect of an agent type.
pub(super) fn dialect_of(agent_type: &str) -> &str {
    AGENT_TYPES.iter().find(|(kind, _)| *kind == agent_type).map_or(agent_type, |(_, name)| name)
}
