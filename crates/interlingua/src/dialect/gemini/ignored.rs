//! What of Gemini's stream is left out on purpose.

use crate::dialect::Ignored;

pub(in crate::dialect) const IGNORED: &[Ignored] = &[
    Ignored {
        what: &["result: stats.tool_calls", "result: stats.models.*"],
        why: "the calls themselves are told",
    },
    Ignored {
        what: &["message"],
        why: "a message of a role that is neither the user's nor the model's",
    },
];
