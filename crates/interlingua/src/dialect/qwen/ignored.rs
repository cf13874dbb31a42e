//! What of Qwen Code's stream is left out on purpose.

use crate::dialect::Ignored;

pub(super) const IGNORED: &[Ignored] = &[
    Ignored {
        what: &[
            "stream_event/goal",
            "stream_event: event.goal_state",
            "stream_event: event.active_goal",
        ],
        why: "the program's own note of what it is after, for its screen",
    },
    Ignored {
        what: &["stream_event: event.content"],
        why: "how far a tool is, in its own measure; that it lives is told",
    },
    Ignored {
        what: &["control_request", "control_response"],
        why: "the program's talk with its host; questions about tools are told",
    },
    Ignored {
        what: &["system/task_notification", "system/compaction"],
        why: "the program's own list of work; what it says to the model is told",
    },
    Ignored {
        what: &["*: *message.role", "*: *message.type"],
        why: "the type of the record says it",
    },
    Ignored {
        what: &["*: *content[].signature", "*: event.content_block.signature"],
        why: "the heading of a thought, which the thought repeats, and no signature",
    },
    Ignored {
        what: &["system/init: slash_commands", "system/init: agents"],
        why: "how the program is set up; what a consumer can use of it is read",
    },
    Ignored {
        what: &["result/*: stats"],
        why: "the same counts in more detail; `--output-format json` has them",
    },
];
