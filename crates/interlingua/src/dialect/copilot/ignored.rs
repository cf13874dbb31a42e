//! The records and fields of Copilot's stream that are left out on purpose.

use crate::dialect::Ignored;

pub(in crate::dialect) const IGNORED: &[Ignored] = &[
    Ignored {
        what: &["session.background_tasks_changed", "session.todos_changed"],
        why: "it has no content; only calls report what changed, if anything does",
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
        why: "the bounds of steps and requests; messages, errors and the end report the same",
    },
    Ignored {
        what: &["model.call_failure"],
        why: "the retry or the error that follows reports it",
    },
    Ignored {
        what: &["session.model_change?", "session.tools_updated?"],
        why: "the model of a sub-agent, or that of the session once more; the session's is emitted",
    },
    Ignored {
        what: &["tool.shell_output?"],
        why: "the output of a command in the background, whose call has ended; the call that reads \
              it has it",
    },
    Ignored {
        what: &[
            "permission.requested: data.permissionRequest.commands",
            "permission.requested: data.permissionRequest.commandSegments",
            "permission.requested: data.permissionRequest.hasWriteFileRedirection",
            "permission.requested: data.permissionRequest.possiblePaths",
            "permission.requested: data.permissionRequest.possibleUrls",
            "permission.requested: data.permissionRequest.shellType",
        ],
        why: "what the program believes that a command does; the command itself is emitted",
    },
    Ignored {
        what: &[
            "permission.requested: data.permissionRequest.newFileContents",
            "permission.requested: data.permissionRequest.fileEdits[].before.content",
            "permission.requested: data.permissionRequest.fileEdits[].after.content",
        ],
        why: "the contents of the files; their difference is emitted",
    },
    Ignored {
        what: &["permission.requested: data.permissionRequest.canOfferSessionApproval"],
        why: "an answer that the program would offer on its own screen",
    },
    Ignored {
        what: &["permission.requested?"],
        why: "a hook of the user has decided this request already; the decision is emitted",
    },
    Ignored {
        what: &["agent.interrupted", "abort?"],
        why: "the record `abort` of the main agent reports it; the calls that it names are emitted \
              as cancelled",
    },
    Ignored {
        what: &["tool.execution_start?"],
        why: "a call starts to run; the message or this record has started it already",
    },
    Ignored {
        what: &["tool.execution_partial_result"],
        why: "it repeats the output of the command so far, which was streamed as deltas",
    },
    Ignored {
        what: &["assistant.reasoning?"],
        why: "reasoning that was streamed as deltas, or that its message contains",
    },
    Ignored {
        what: &["session.info?"],
        why: "a notice of a retry, an interruption or a new file, which other records report",
    },
    Ignored {
        what: &["subagent.selected", "subagent.configured", "subagent.deselected"],
        why: "the configuration of a sub-agent; its start and its end are emitted",
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
        why: "the configuration of the program; a server that cannot be used is emitted as a notice",
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
        why: "records for the program's own screen and log",
    },
    Ignored {
        what: &["*: id", "*: parentId", "*: ephemeral", "*: agentId"],
        why: "ids of records, which often refer to one that is not printed",
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
        why: "further ids; messages and calls have ids of their own",
    },
    Ignored {
        what: &["user.message: data.transformedContent"],
        why: "the prompt with the program's additions for the model",
    },
    Ignored {
        what: &[
            "assistant.message: data.reasoningOpaque",
            "assistant.message: data.reasoningBlocks",
            "assistant.message: data.serverTools",
        ],
        why: "encrypted reasoning for the provider; the readable reasoning is emitted",
    },
    Ignored {
        what: &[
            "*: data.toolTitle",
            "*: data.toolRequests[].toolTitle",
            "*: data.toolRequests[].intentionSummary",
            "*: data.toolRequests[].type",
            "*: data.toolType",
        ],
        why: "labels of a call for the screen; its name and its input are read",
    },
    Ignored {
        what: &["tool.execution_start: data.shellToolInfo"],
        why: "the program's guess at the files of a command, whose text is emitted",
    },
    Ignored {
        what: &["tool.execution_complete: data.toolTelemetry"],
        why: "measurements for the program's authors",
    },
    Ignored {
        what: &["tool.shell_output: data.stream", "tool.shell_output: data.sequence"],
        why: "both streams are one output, in the order of printing",
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
        why: "how a sub-agent was selected, and its totals; its own records report its work",
    },
    Ignored {
        what: &["result: usage"],
        why: "totals of the session, with earlier runs; the durations of a turn are derived from \
              its records, and the changes from its calls",
    },
];
