//! The records and fields of Chat Completions that are left out on purpose.

use crate::dialect::Ignored;

pub(super) const IGNORED: &[Ignored] = &[
    Ignored { what: &["[DONE]"], why: "the response had ended already" },
    Ignored {
        what: &["chunk/empty?"],
        why: "it has no content: the role of the message, or counts that the end of it has",
    },
    Ignored {
        what: &["tool_calls/begun?"],
        why: "the id and the name of a call, which is emitted when its arguments begin",
    },
    Ignored {
        what: &["tool_calls/late?"],
        why: "a piece of a call after the response had stopped, which is kept as it is",
    },
    Ignored {
        what: &["choices/other?"],
        why: "one of several answers to the same request; only the first is the turn",
    },
    Ignored {
        what: &["annotations?", "images?", "audio?"],
        why: "sources and media of a message have no event; the record is kept as it is",
    },
    Ignored {
        what: &["*: created", "*: system_fingerprint", "*: service_tier", "*: provider"],
        why: "when and where the provider computed the response",
    },
    Ignored { what: &["*: obfuscation"], why: "padding, which hides the length of a piece" },
    Ignored {
        what: &["*: choices[].logprobs", "*: choices[].native_finish_reason"],
        why: "probabilities of tokens, and another name of the reason",
    },
    Ignored {
        what: &["*: choices[].stop_reason", "*: choices[].token_ids", "*: prompt_token_ids"],
        why: "details of a server's own sampling",
    },
    Ignored {
        what: &["*: *content_filter_results", "*: prompt_filter_results"],
        why: "what a filter did not stop; what it stops is the reason of the end",
    },
    Ignored {
        what: &[
            "*: usage.*audio_tokens",
            "*: usage.*image_tokens",
            "*: usage.*video_tokens",
            "*: usage.*text_tokens",
            "*: usage.*prediction_tokens",
            "*: usage.prompt_cache_miss_tokens",
            "*: usage.is_byok",
            "*: usage.cost_details",
        ],
        why: "parts of counts that are read as a whole",
    },
    Ignored { what: &["*: param"], why: "the message of the error names it" },
];
