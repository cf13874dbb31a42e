//! The records and fields of Gemini's stream that are left out on purpose.

use crate::dialect::Ignored;

pub(in crate::dialect) const IGNORED: &[Ignored] = &[
    Ignored {
        what: &["result: stats.tool_calls", "result: stats.models.*"],
        why: "the calls themselves are emitted",
    },
    Ignored {
        what: &["message"],
        why: "a message with a role other than the user, the model or the system",
    },
];
