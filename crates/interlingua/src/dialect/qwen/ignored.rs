//! The records and fields of Qwen Code's stream that are left out on purpose.

use crate::dialect::Ignored;

pub(super) const IGNORED: &[Ignored] = &[
    Ignored {
        what: &[
            "stream_event/goal",
            "stream_event: event.goal_state",
            "stream_event: event.active_goal",
        ],
        why: "the goal of the program, for its own screen",
    },
    Ignored {
        what: &["stream_event: event.content"],
        why: "progress in the tool's own units; an event reports that the tool is running",
    },
    Ignored {
        what: &["control_request", "control_response"],
        why: "control messages between the program and its host; permission requests have events",
    },
    Ignored {
        what: &["system/task_notification", "system/compaction"],
        why: "the program's list of background work; its messages to the model have events",
    },
    Ignored {
        what: &["*: *message.role", "*: *message.type"],
        why: "the type of the record states it",
    },
    Ignored {
        what: &["*: *content[].signature", "*: event.content_block.signature"],
        why: "the heading of the reasoning, which its text repeats; it is not a signature",
    },
    Ignored {
        what: &["system/init: slash_commands", "system/init: agents"],
        why: "the configuration of the program; what a consumer can use of it is read",
    },
    Ignored {
        what: &["result/*: stats"],
        why: "the same counts in more detail, which only `--output-format json` contains",
    },
];
