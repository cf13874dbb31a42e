//! The records and fields of Codex that are left out on purpose.

use crate::dialect::Ignored;

pub(super) const IGNORED: &[Ignored] = &[
    Ignored {
        what: &["error"],
        why: "a record of this type without a message contains no information",
    },
    Ignored { what: &["item.*: item.sender_thread_id"], why: "it is the id of the session" },
    Ignored {
        what: &["item.*: item.result._meta"],
        why: "data of an MCP server for its client alone",
    },
];
