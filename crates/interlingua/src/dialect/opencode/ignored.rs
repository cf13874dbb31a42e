//! The records and fields of opencode that are left out on purpose.

use crate::dialect::Ignored;

/// The prefixes of the types of events about the server, its files and its terminals.
pub(super) const SERVER_EVENT_PREFIXES: &[&str] = &[
    "server.",
    "global.",
    "installation.",
    "plugin.",
    "catalog.",
    "reference.",
    "integration.",
    "models-dev.",
    "project.",
    "workspace.",
    "worktree.",
    "vcs.",
    "file.",
    "lsp.",
    "mcp.",
    "pty.",
    "tui.",
    "ide.",
    "command.",
    "storage.",
];

pub(super) const IGNORED: &[Ignored] = &[
    Ignored {
        what: &[
            "server.*",
            "global.*",
            "installation.*",
            "plugin.*",
            "catalog.*",
            "reference.*",
            "integration.*",
            "models-dev.*",
            "project.*",
            "workspace.*",
            "worktree.*",
            "vcs.*",
            "lsp.*",
            "mcp.*",
            "pty.*",
            "tui.*",
            "ide.*",
            "command.*",
            "storage.*",
        ],
        why: "about the server and its own display, not about the work of the agent",
    },
    Ignored {
        what: &["file.*", "session.diff", "patch/part"],
        why: "calls report the files that they changed, and the other files are emitted when a step ends",
    },
    Ignored { what: &["*/again"], why: "a snapshot that contains nothing new" },
    Ignored {
        what: &["*/aborted"],
        why: "emitted at the end of the turn, after the interrupted message",
    },
    Ignored { what: &["*/other-session"], why: "another session of the same server" },
    Ignored {
        what: &["*/sub-agent"],
        why: "the call that spawned it contains its prompt, and reports its start and its end",
    },
    Ignored {
        what: &["*/summary"],
        why: "the text that replaces the conversation in the next request",
    },
    Ignored {
        what: &["*/part"],
        why: "internal marks of the program, and attachments of the user",
    },
    Ignored {
        what: &["session.deleted", "message.removed", "message.part.removed"],
        why: "the internal store of messages",
    },
    Ignored { what: &["session.next.*"], why: "the same events in an experimental form" },
    Ignored {
        what: &[
            "*: part.sessionID",
            "*: properties.part.sessionID",
            "*: properties.info.sessionID",
            "*: *tool.messageID",
        ],
        why: "the record contains it twice",
    },
    Ignored {
        what: &["*: *part.snapshot", "*: *part.hash", "*: *part.metadata", "*: *part.attempt"],
        why: "the internal store of files, and data for the provider",
    },
    Ignored {
        what: &["*: *state.title", "*: *state.time", "*: *state.raw", "*: *state.attachments"],
        why: "for the program's own display; the time of the record is read",
    },
    Ignored {
        what: &[
            "*: *data.isRetryable",
            "*: *data.responseHeaders",
            "*: *data.responseBody",
            "*: *data.metadata",
            "*: *data.ref",
            "*: *data.providerID",
        ],
        why: "the message and the status are read",
    },
    Ignored {
        what: &[
            "*: properties.info.slug",
            "*: properties.info.projectID",
            "*: properties.info.workspaceID",
            "*: properties.info.title",
            "*: properties.info.path",
            "*: properties.info.share",
            "*: properties.info.revert",
            "*: properties.info.permission",
            "*: properties.info.time.*",
        ],
        why: "the internal store of sessions",
    },
    Ignored {
        what: &[
            "*: properties.info.agent",
            "*: properties.info.mode",
            "*: properties.info.providerID",
            "*: properties.info.model.providerID",
            "*: properties.info.*variant",
            "*: properties.info.system",
            "*: properties.info.tools",
        ],
        why: "the configuration of the program; the model is read",
    },
    Ignored {
        what: &["*: properties.info.cost", "*: properties.info.tokens"],
        why: "the usage of the steps is read",
    },
    Ignored { what: &["session.status: properties.status.action"], why: "advice for the user" },
    Ignored {
        what: &["todo.updated: *", "question.*: *", "permission.*: *"],
        why: "it is passed on as it is",
    },
];
