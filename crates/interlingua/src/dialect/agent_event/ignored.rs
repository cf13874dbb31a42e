//! What of an `AgentEvent` stream is left out on purpose.

use crate::dialect::Ignored;

pub(super) const IGNORED: &[Ignored] = &[
    Ignored {
        what: &["todo_result"],
        why: "the result of a todo tool whose list was told in its own right",
    },
    Ignored {
        what: &["*: agentId", "*: teamMetadata*", "*: eventId", "*: visible"],
        why: "the envelope of the host that wrote the stream",
    },
];
