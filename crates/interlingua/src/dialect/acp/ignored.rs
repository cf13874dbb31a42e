//! What of ACP is left out on purpose.

use crate::dialect::Ignored;

pub(super) const IGNORED: &[Ignored] = &[
    Ignored {
        what: &["response"],
        why: "an answer that ends no turn; what it tells of the session is told",
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
            "session/set_config_option",
            "session/list",
            "session/close",
            "session/fork",
            "session/delete",
        ],
        why: "what the client asks for is told when it is there",
    },
    Ignored {
        what: &["session/cancel", "session/prompt"],
        why: "there was no turn to stop, or nothing was said",
    },
    Ignored {
        what: &["fs/*", "terminal/*", "elicitation/*"],
        why: "work that the client does for the agent; the call that it is for is told",
    },
    Ignored {
        what: &["craft/*", "_*", "$/*"],
        why: "extensions, between an agent and a client that know each other",
    },
    Ignored {
        what: &[
            "session/update/available_commands_update",
            "session/update/session_info_update",
            "session/update/config_option_update",
            "session/update/current_mode_update",
        ],
        why: "for the client's own screen; what they tell of the model and the mode is told",
    },
    Ignored {
        what: &["session/update/usage_update"],
        why: "how full the context is; what it cost is told when the turn ends",
    },
    Ignored {
        what: &[
            "session/update/agent_message_chunk",
            "session/update/agent_thought_chunk",
            "session/update/user_message_chunk",
        ],
        why: "a piece without text, one that repeats the prompt, or one that is told otherwise",
    },
    Ignored {
        what: &["session/update/plan", "session/update/plan_*"],
        why: "the plan is told, unless it stands already, a call has told it, or it is no list",
    },
    Ignored { what: &["session/update/compaction_*"], why: "a compaction is told when it is done" },
    Ignored {
        what: &[
            "(no type): result.agentCapabilities",
            "(no type): result.agentInfo.title",
            "(no type): result.authMethods",
            "(no type): result.models.availableModels",
            "(no type): result.modes.availableModes",
            "(no type): result.content",
        ],
        why: "what the agent could do; what it does is told",
    },
    Ignored {
        what: &["(no type): result._meta.qwen*"],
        why: "Qwen's own names for places in its history",
    },
    Ignored {
        what: &[
            "session/update: params.update.availableCommands",
            "session/update: params.update.configOptions[].*",
            "session/update: params.update.updatedAt",
        ],
        why: "for the client's own screen",
    },
    Ignored {
        what: &["session/update: params.update.used", "session/update: params.update.size"],
        why: "how full the context is, which no event tells",
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
        why: "Qwen's own book-keeping; its counts are read",
    },
];
