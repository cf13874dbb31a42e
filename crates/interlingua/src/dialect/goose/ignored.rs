//! What of goose's stream is left out on purpose.

use crate::dialect::Ignored;

pub(super) const IGNORED: &[Ignored] = &[
    Ignored { what: &["notification"], why: "what an extension says to its client alone" },
    Ignored { what: &["banner"], why: "what it says of the session is told" },
    Ignored { what: &["message/empty"], why: "a message with nothing in it" },
    Ignored {
        what: &["message/actionRequired"],
        why: "a question of an extension, which this mode of the program cannot be answered in",
    },
    Ignored {
        what: &["message: message.created"],
        why: "in whole seconds, where times are read in milliseconds",
    },
    Ignored {
        what: &["message: message.metadata"],
        why: "whether the program's own screen, or the model, is shown the message",
    },
    Ignored {
        what: &["message: message.content[]._meta", "message: message.content[].tool_meta"],
        why: "the name of the tool says which extension it is of",
    },
    Ignored {
        what: &["message: *.annotations", "message: *metadata", "message: *.priority"],
        why: "for the model and the program's own screen",
    },
];
