//! What of pi's stream is left out on purpose.

use crate::dialect::Ignored;

pub(super) const IGNORED: &[Ignored] = &[
    Ignored {
        what: &["turn_start", "turn_end", "agent_end", "*/again"],
        why: "the messages and calls that it repeats have been told",
    },
    Ignored {
        what: &["message_end/*", "message_start/toolResult"],
        why: "the beginning of the message, or the answer of the tool, has told it",
    },
    Ignored { what: &["message_start/*"], why: "what the program tells the model about itself" },
    Ignored {
        what: &["auto_retry_end"],
        why: "the next try tells how it went, and the end of the turn does",
    },
    Ignored {
        what: &["entry_appended", "queue_update", "session_info_changed", "thinking_level_changed"],
        why: "the program's own log and settings",
    },
    Ignored {
        what: &["compaction_start", "auto_compaction_start", "summarization_*", "*/nothing"],
        why: "only a conversation that was made shorter is told, when it was, and why it could not be",
    },
    Ignored { what: &["session: version"], why: "of the file format, not of the program" },
    Ignored {
        what: &["*: message.api", "*: message.provider", "*: message.rawStopReason"],
        why: "how the model is reached; its name and pi's own stop reason are read",
    },
    Ignored {
        what: &["*: message.responseId", "*: message.diagnostics"],
        why: "it is not there from the message's first record on, so ids are counted",
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
        why: "of messages that other records have told",
    },
    Ignored {
        what: &["message_update: usage", "*: *partial"],
        why: "the same message as far as it is by now; it is told when it ends",
    },
    Ignored {
        what: &["*: *textSignature", "*: *thoughtSignature", "*: *.data", "*: *.mimeType"],
        why: "for the provider alone, or a picture that the model was shown",
    },
];
