//! The records and fields of ACP that are left out on purpose.

use crate::dialect::Ignored;

pub(super) const IGNORED: &[Ignored] = &[
    Ignored {
        what: &["response"],
        why: "a response that ends no turn; the facts of the session in it are read",
    },
    Ignored {
        what: &[
            "initialize",
            "authenticate",
            "logout",
            "session/new",
            "session/load",
            "session/resume",
            "session/set_mode",
            "session/set_model",
            "session/set_config_option",
            "session/list",
            "session/close",
            "session/fork",
            "session/delete",
        ],
        why: "requests of the client; their effect is read from the agent's records",
    },
    Ignored {
        what: &["session/cancel", "session/prompt"],
        why: "there was no turn to cancel, or the prompt has no text",
    },
    Ignored {
        what: &["fs/*", "terminal/*", "elicitation/*"],
        why: "work that the client does for the agent; the call that needs it is read",
    },
    Ignored {
        what: &[
            "qwen/notify/session/mode-update: params.planExecutionMode",
            "qwen/notify/session/mode-update: params.v",
        ],
        why: "the mode of Qwen after its plan, and the version of the record; the mode is read",
    },
    Ignored {
        what: &["craft/*", "_*", "$/*"],
        why: "extensions that an agent and its client have agreed on",
    },
    Ignored {
        what: &[
            "session/update/available_commands_update",
            "session/update/session_info_update",
            "session/update/config_option_update",
            "session/update/current_mode_update",
        ],
        why: "for the display of the client; the model and the mode in it are read",
    },
    Ignored {
        what: &["session/update/usage_update"],
        why: "the size of the context; the cost is emitted when the turn ends",
    },
    Ignored {
        what: &[
            "session/update/agent_message_chunk",
            "session/update/agent_thought_chunk",
            "session/update/user_message_chunk",
        ],
        why: "a chunk without text, one that repeats the prompt, or one that is emitted as another event",
    },
    Ignored {
        what: &["session/update/plan", "session/update/plan_*"],
        why: "the plan is emitted, unless it is unchanged, a call has emitted it, or it is not a list",
    },
    Ignored {
        what: &["session/update/compaction_*"],
        why: "a compaction is emitted when it is completed",
    },
    Ignored {
        what: &[
            "(no type): result.agentCapabilities",
            "(no type): result.agentInfo.title",
            "(no type): result.authMethods",
            "(no type): result.models.availableModels",
            "(no type): result.modes.availableModes",
            "(no type): result.content",
        ],
        why: "capabilities of the agent; what it does is emitted",
    },
    Ignored {
        what: &["(no type): result._meta.qwen*"],
        why: "Qwen's own names of positions in its history",
    },
    Ignored {
        what: &[
            "session/update: params.update.availableCommands",
            "session/update: params.update.configOptions[].*",
            "session/update: params.update.updatedAt",
        ],
        why: "for the display of the client",
    },
    Ignored {
        what: &["session/update: params.update.used", "session/update: params.update.size"],
        why: "the size of the context, which no event contains",
    },
    Ignored {
        what: &[
            "session/update: params.update._meta.availableSkill*",
            "session/update: params.update._meta.durationMs",
            "session/update: params.update._meta.phase",
            "session/update: params.update._meta.provenance",
            "session/update: params.update._meta.qwenTranscript",
            "session/update: params.update._meta.stats",
        ],
        why: "Qwen's internal data; its counts of tokens are read",
    },
];
