//! What of Copilot's stream is left out on purpose.

use crate::dialect::Ignored;

pub(super) const IGNORED: &[Ignored] = &[
    Ignored {
        what: &["session.background_tasks_changed", "session.todos_changed"],
        why: "it has no content; what changed is told by the calls, or nowhere",
    },
    Ignored {
        what: &[
            "assistant.turn_start",
            "assistant.turn_end",
            "assistant.idle",
            "model.call_start",
            "model.call_finished",
            "model.call_final_result",
        ],
        why: "the bounds of steps and requests; what they say is told by messages, errors and the end",
    },
    Ignored { what: &["model.call_failure"], why: "the retry or the error that follows tells it" },
    Ignored {
        what: &["agent.interrupted", "abort"],
        why: "the record `abort` of the main agent tells it; the calls that it names are told as stopped",
    },
    Ignored {
        what: &["tool.execution_start"],
        why: "that a call runs; the message before has made it, or this record does",
    },
    Ignored {
        what: &["tool.execution_partial_result"],
        why: "it repeats what the command has printed so far, which was told piece by piece",
    },
    Ignored {
        what: &["assistant.reasoning"],
        why: "a thought that was told in pieces, or by its message",
    },
    Ignored {
        what: &["session.info"],
        why: "a notice of a retry, an interruption or a new file, which other records tell",
    },
    Ignored {
        what: &["subagent.selected", "subagent.configured", "subagent.deselected"],
        why: "how another agent is set up; its start and its end are told",
    },
    Ignored {
        what: &[
            "session.skills_loaded",
            "session.mcp_*",
            "session.custom_agents_updated",
            "session.extensions_loaded",
            "session.permissions_changed",
            "session.mode_changed",
            "session.managed_settings_*",
            "capabilities.changed",
            "commands.changed",
            "mcp.*",
        ],
        why: "how the program is set up; a server that cannot be used is told as a notice",
    },
    Ignored {
        what: &[
            "session.title_changed",
            "session.idle",
            "session.shutdown",
            "session.task_complete",
            "session.context_changed",
            "session.usage_info",
            "session.usage_checkpoint",
            "session.truncation",
            "session.compaction_start",
            "session.plan_changed",
            "session.workspace_file_changed",
            "session.binary_asset",
            "session.custom_notification",
            "assistant.intent",
            "assistant.streaming_delta",
            "assistant.usage",
            "pending_messages.modified",
            "hook.*",
            "skill.invoked",
            "system.*",
            "command.*",
            "tool_search.activated",
            "tool.user_requested",
        ],
        why: "for the program's own screen and its own log",
    },
    Ignored {
        what: &["*: id", "*: parentId", "*: ephemeral", "*: agentId"],
        why: "names of records, which often name one that is not printed",
    },
    Ignored {
        what: &[
            "*: data.turnId",
            "*: data.interactionId",
            "*: data.originatingMessageId",
            "*: data.apiCallId",
            "*: data.rte",
            "*: data.delivery",
            "*: data.parentAgentTaskId",
            "*: data.supportedNativeDocumentMimeTypes",
        ],
        why: "names for things that are already named by their messages and calls",
    },
    Ignored {
        what: &["user.message: data.transformedContent"],
        why: "the prompt with what the program adds to it for the model",
    },
    Ignored {
        what: &[
            "assistant.message: data.reasoningOpaque",
            "assistant.message: data.reasoningBlocks",
            "assistant.message: data.serverTools",
        ],
        why: "what only the provider can read; the thought itself was told",
    },
    Ignored {
        what: &[
            "*: data.toolTitle",
            "*: data.toolRequests[].toolTitle",
            "*: data.toolRequests[].intentionSummary",
            "*: data.toolRequests[].type",
            "*: data.toolType",
        ],
        why: "what the screen shows of a call; its name and its input are read",
    },
    Ignored {
        what: &["tool.execution_complete: data.toolTelemetry"],
        why: "measurements for the program's authors",
    },
    Ignored {
        what: &["tool.shell_output: data.stream", "tool.shell_output: data.sequence"],
        why: "both streams are one output, in the order in which they are printed",
    },
    Ignored {
        what: &[
            "subagent.*: data.agentDisplayName",
            "subagent.*: data.agentType",
            "subagent.*: data.durationMs",
            "subagent.*: data.executionMode",
            "subagent.*: data.firstDispatchedModel",
            "subagent.*: data.modelSelectionSource",
            "subagent.*: data.resumable",
            "subagent.*: data.taskModelSource",
            "subagent.*: data.totalTokens",
            "subagent.*: data.totalToolCalls",
        ],
        why: "how another agent was chosen and what it took; its own records tell what it did",
    },
    Ignored {
        what: &["result: usage"],
        why: "what the session has taken since it began, earlier runs included; the durations of a \
              turn are told by its records, and the changes by its calls",
    },
];
