//! The records and fields of goose's stream that are left out on purpose.

use crate::dialect::Ignored;

pub(super) const IGNORED: &[Ignored] = &[
    Ignored { what: &["notification"], why: "a notification of an extension for its client" },
    Ignored { what: &["banner"], why: "the facts of the session in it are emitted" },
    Ignored { what: &["message/empty"], why: "a message without content" },
    Ignored {
        what: &["message/actionRequired"],
        why: "a question of an extension, which cannot be answered in this mode of the program",
    },
    Ignored {
        what: &["message: message.created"],
        why: "a time in seconds; times are read in milliseconds",
    },
    Ignored {
        what: &["message: message.metadata"],
        why: "whether the message is shown to the user or to the model",
    },
    Ignored {
        what: &["message: message.content[]._meta", "message: message.content[].tool_meta"],
        why: "the name of the tool contains its extension",
    },
    Ignored {
        what: &["message: *.annotations", "message: *metadata", "message: *.priority"],
        why: "hints for the model and the program's own screen",
    },
];
