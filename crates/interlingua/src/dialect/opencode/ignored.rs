//! What of opencode's records is left out on purpose.

use crate::dialect::Ignored;

/// How the types of events begin that are about the server, its files and its terminals.
pub(super) const ABOUT_THE_SERVER: &[&str] = &[
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
        why: "about the server and its own screens, not about what the agent does",
    },
    Ignored {
        what: &["file.*", "session.diff", "patch/part"],
        why: "the calls tell what they changed, and the rest is told when a step ends",
    },
    Ignored { what: &["*/again"], why: "a snapshot that says what was told before" },
    Ignored {
        what: &["*/aborted"],
        why: "told at the end of the turn, after what was interrupted",
    },
    Ignored { what: &["*/other-session"], why: "another session of the same server" },
    Ignored {
        what: &["*/sub-agent"],
        why: "the call that started it tells what it was asked, and when it starts and ends",
    },
    Ignored {
        what: &["*/summary"],
        why: "what the next request is given in place of the conversation",
    },
    Ignored {
        what: &["*/part"],
        why: "marks of the program's own, and what the user attached to a message",
    },
    Ignored {
        what: &["session.deleted", "message.removed", "message.part.removed"],
        why: "the program's own store of what was said",
    },
    Ignored {
        what: &["session.next.*"],
        why: "the same again, in a form that the program is only trying out",
    },
    Ignored {
        what: &[
            "*: part.sessionID",
            "*: properties.part.sessionID",
            "*: properties.info.sessionID",
            "*: *tool.messageID",
        ],
        why: "the record says it once more",
    },
    Ignored {
        what: &["*: *part.snapshot", "*: *part.hash", "*: *part.metadata", "*: *part.attempt"],
        why: "the program's own store of files, and what its provider wants back",
    },
    Ignored {
        what: &["*: *state.title", "*: *state.time", "*: *state.raw", "*: *state.attachments"],
        why: "for the program's own screen; the record has a time of its own",
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
        why: "the message and the status say it",
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
        why: "the program's own store of sessions",
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
        why: "how the program is set up; the model is read",
    },
    Ignored {
        what: &["*: properties.info.cost", "*: properties.info.tokens"],
        why: "the steps tell what was used",
    },
    Ignored { what: &["session.status: properties.status.action"], why: "advice for the user" },
    Ignored {
        what: &["todo.updated: *", "question.*: *", "permission.*: *"],
        why: "it is passed on",
    },
];
