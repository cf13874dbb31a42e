//! The records and fields of the `generateContent` API that are left out on purpose.

use crate::dialect::Ignored;

pub(super) const IGNORED: &[Ignored] = &[
    Ignored { what: &["chunk"], why: "it has only counts, which later chunks replace" },
    Ignored {
        what: &["candidate"],
        why: "an alternative to the first candidate, for which there is no event; it is kept",
    },
    Ignored {
        what: &["thoughtSignature", "continuationToken", "error.details"],
        why: "for the next request, where it has to be sent back or waited for; it is kept",
    },
    Ignored {
        what: &["groundingMetadata", "citationMetadata", "urlContextMetadata"],
        why: "sources of a text, for which there is no event; they are kept",
    },
    Ignored {
        what: &["*: candidates[].content.role", "*: createTime"],
        why: "it is the same in every response, or a time of the provider",
    },
    Ignored {
        what: &[
            "*: candidates[].safetyRatings",
            "*: candidates[].avgLogprobs",
            "*: candidates[].logprobsResult",
            "*: candidates[].tokenCount",
            "*: promptFeedback.safetyRatings",
        ],
        why: "ratings of the text; the finish reason states what became of it",
    },
    Ignored {
        what: &["*: usageMetadata.*", "*: modelStatus"],
        why: "a breakdown of the counts, and how the provider served the request",
    },
    Ignored { what: &["*: automaticFunctionCallingHistory"], why: "of the SDK, not of the API" },
];
