//! The records and fields of the Messages API that are left out on purpose.

use crate::dialect::Ignored;

pub(super) const IGNORED: &[Ignored] = &[
    Ignored { what: &["ping"], why: "it keeps the connection open" },
    Ignored {
        what: &["message_delta?", "signature_delta", "content_block_stop?", "message_stop?"],
        why: "what it states is emitted when the block or the message ends",
    },
    Ignored {
        what: &["citations_delta", "citations"],
        why: "sources of a text, for which there is no event; the record is kept",
    },
    Ignored {
        what: &["input_transformations"],
        why: "what the provider changed in the request, for which there is no event; it is kept",
    },
    Ignored {
        what: &["*: *message.role", "*: *message.type", "message: role", "*: *stop_sequence"],
        why: "the type of the record or the stop reason states it",
    },
    Ignored {
        what: &["message_start: message.*"],
        why: "content, stop reason and details are empty when a message starts",
    },
    Ignored {
        what: &["*: *usage.*"],
        why: "details of how the provider served the request; the counts are read",
    },
    Ignored {
        what: &["*: *container", "*: *context_management", "*: *diagnostics"],
        why: "internal state of the provider",
    },
    Ignored { what: &["error: request_id"], why: "for the support of the provider" },
    Ignored {
        what: &["content_block_delta: delta.estimated_tokens"],
        why: "an estimate, which the counts at the end replace",
    },
];
