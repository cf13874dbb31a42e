//! The records and fields of an `AgentEvent` stream that are left out on purpose.

use crate::dialect::Ignored;

pub(super) const IGNORED: &[Ignored] = &[
    Ignored {
        what: &["todo_result"],
        why: "the result of a todo tool whose list was emitted already",
    },
    Ignored {
        what: &["*: agentId", "*: teamMetadata*", "*: eventId", "*: visible"],
        why: "the envelope of the host that wrote the stream",
    },
];
