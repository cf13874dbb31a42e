//! The records and fields of Claude's stream that are left out on purpose.

use crate::dialect::Ignored;

pub(super) const IGNORED: &[Ignored] = &[
    Ignored {
        what: &[
            "command_lifecycle",
            "control_response",
            "control_request",
            "keep_alive",
            "attachment",
        ],
        why: "control messages between the program and its host, which were answered",
    },
    Ignored {
        what: &["message_delta", "ping"],
        why: "its counts and stop reason are emitted when the message ends",
    },
    Ignored {
        what: &["system/status", "system/thinking_tokens", "system/task_progress"],
        why: "heartbeats; the estimates are replaced by the counts at the end of the request",
    },
    Ignored {
        what: &["system/hook_*"],
        why: "hooks of the user, whose output is not part of the conversation",
    },
    Ignored {
        what: &["system/task_*", "system/background_tasks_changed"],
        why: "the program's list of background tasks; sub-agents among them have events",
    },
    Ignored {
        what: &[
            "system/commands_changed",
            "system/control_request_progress",
            "system/elicitation_complete",
            "system/files_persisted",
            "system/local_command_output",
            "system/memory_recall",
            "system/mirror_error",
            "system/model_refusal_*",
            "system/plugin_install",
            "system/session_*",
            "system/worker_shutting_down",
            "auth_status",
            "prompt_suggestion",
            "tool_use_summary",
            "conversation_reset",
            "active_goal",
        ],
        why: "for the program's own screen",
    },
    Ignored {
        what: &["*: *message.role", "*: *message.type", "*: *stop_sequence", "*: *stop_details"],
        why: "the type of the record or the stop reason states it",
    },
    Ignored {
        what: &[
            "*: *usage.cache_creation",
            "*: *usage.fallback_credit",
            "*: *usage.inference_geo",
            "*: *usage.iterations",
            "*: *usage.server_tool_use",
            "*: *usage.service_tier",
            "*: *usage.speed",
        ],
        why: "details of how the provider served the request; the counts are read",
    },
    Ignored {
        what: &["*: *context_management", "*: *container", "*: message.diagnostics"],
        why: "internal state of the provider",
    },
    Ignored {
        what: &[
            "*: *ttft*",
            "*: first_*",
            "*: *time_to_request_ms",
            "*: request_sent_wall_ms",
            "*: thinking_duration_ms",
        ],
        why: "timings of single requests; the duration of the turn is read",
    },
    Ignored { what: &["result/*: deferred_tool_use"], why: "the call that it repeats is open" },
    Ignored { what: &["result/*: deferred_tool_use"], why: "the call that it repeats is known" },
    Ignored {
        what: &["tool_progress: heartbeat", "assistant: tool_use_meta"],
        why: "its effect is emitted, or it is for the program's own screen",
    },
    Ignored {
        what: &["*: user_message_uuid*", "*: agent_id", "*: task_description", "*: *run_id"],
        why: "ids of things that their calls already identify",
    },
    Ignored {
        what: &["system/init: *"],
        why: "the configuration of the program; what a consumer can use of it is read",
    },
    Ignored {
        what: &[
            "result/*: fast_mode_*",
            "result/*: origin",
            "result/*: queued_turn_count",
            "result/*: result_index",
            "result/*: safety_stops",
            "result/*: subagent_stats",
            "*: local_command*",
            "*: context_usage",
            "*: thinking_display",
        ],
        why: "for the program's own screen",
    },
    Ignored {
        what: &["*: api_error_type", "*: is_api_error_message", "assistant: aborted"],
        why: "the error code, the status and the outcome of the turn state it",
    },
    Ignored {
        what: &[
            "control_request: request.blocked_path",
            "control_request: request.display_name",
            "control_request: request.server_policy_ask_only",
            "system/permission_denied: decision_reason_type",
        ],
        why: "the description of the request and the reason of the decision state it",
    },
];
