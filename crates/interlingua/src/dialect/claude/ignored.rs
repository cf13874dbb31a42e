//! What of Claude's stream is left out on purpose.

use crate::dialect::Ignored;

pub(super) const IGNORED: &[Ignored] = &[
    Ignored {
        what: &["command_lifecycle", "control_response", "control_request", "keep_alive"],
        why: "the program's talk with its host, which has been answered",
    },
    Ignored {
        what: &["message_delta", "ping"],
        why: "what it says of the message is told when the message ends",
    },
    Ignored {
        what: &["system/status", "system/thinking_tokens", "system/task_progress"],
        why: "signs of life; the estimates are told as counts when the request is over",
    },
    Ignored {
        what: &["system/hook_*"],
        why: "programs of the user's own, which say nothing to the user",
    },
    Ignored {
        what: &["system/task_*", "system/background_tasks_changed"],
        why: "the program's own list of work in the background; agents in it are told",
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
        why: "the type of the record says it, or the stop reason does",
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
        why: "how the provider served the request; the counts are read",
    },
    Ignored {
        what: &["*: *context_management", "*: *container", "*: message.diagnostics"],
        why: "the provider's own housekeeping",
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
    Ignored {
        what: &["*: user_message_uuid*", "*: agent_id", "*: task_description", "*: *run_id"],
        why: "names for things that are already named by their calls",
    },
    Ignored {
        what: &["system/init: *"],
        why: "how the program is set up; what a consumer can use of it is read",
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
        why: "the code of the error, the status and the turn's outcome say it",
    },
    Ignored {
        what: &[
            "control_request: request.blocked_path",
            "control_request: request.display_name",
            "control_request: request.server_policy_ask_only",
            "system/permission_denied: decision_reason_type",
        ],
        why: "the description of the request, and the reason of the decision, say it",
    },
];
