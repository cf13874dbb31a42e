//! The records and fields of pi's stream that are left out on purpose.

use crate::dialect::Ignored;

pub(super) const IGNORED: &[Ignored] = &[
    Ignored {
        what: &["turn_start", "turn_end", "agent_end", "*/again"],
        why: "it repeats messages and calls that were emitted already",
    },
    Ignored {
        what: &["message_end/*", "message_start/toolResult"],
        why: "it repeats the start of the message, or the answer of the tool",
    },
    Ignored { what: &["message_start/*"], why: "instructions of the program to the model" },
    Ignored {
        what: &["auto_retry_end"],
        why: "the next attempt and the end of the turn report the result",
    },
    Ignored {
        what: &["entry_appended", "queue_update", "session_info_changed", "thinking_level_changed"],
        why: "the program's own log and settings",
    },
    Ignored {
        what: &["compaction_start", "auto_compaction_start", "summarization_*", "*/nothing"],
        why: "only the end of a compaction is emitted, or why it failed",
    },
    Ignored {
        what: &["session: version"],
        why: "the version of the file format, not of the program",
    },
    Ignored {
        what: &["*: message.api", "*: message.provider", "*: message.rawStopReason"],
        why: "the access to the model; its name and pi's own stop reason are read",
    },
    Ignored {
        what: &["*: message.responseId", "*: message.diagnostics"],
        why: "it is missing in the first record of the message, so ids are generated",
    },
    Ignored {
        what: &[
            "*: message.sections",
            "*: message.toolsAdded[].*",
            "*: message.toolCallId",
            "*: message.toolName",
            "*: message.isError",
            "*: message.details",
        ],
        why: "fields of messages that other records contain",
    },
    Ignored {
        what: &["message_update: usage", "*: *partial"],
        why: "the message so far; its deltas and its end are read",
    },
    Ignored {
        what: &["*: *textSignature", "*: *thoughtSignature", "*: *.data", "*: *.mimeType"],
        why: "data for the provider, or a picture for the model",
    },
];
