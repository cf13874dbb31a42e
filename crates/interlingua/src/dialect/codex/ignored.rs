//! What of Codex's stream is left out on purpose.

use crate::dialect::Ignored;

pub(super) const IGNORED: &[Ignored] = &[
    Ignored { what: &["error"], why: "a record of this type without a message says nothing" },
    Ignored { what: &["item.*: item.sender_thread_id"], why: "it is the session's own id" },
    Ignored {
        what: &["item.*: item.result._meta"],
        why: "what an MCP server says to its client alone",
    },
];
