//! The records and fields of the Responses API that are left out on purpose.

use crate::dialect::Ignored;

pub(super) const IGNORED: &[Ignored] = &[
    Ignored { what: &["[DONE]"], why: "the last event of a response ends it" },
    Ignored { what: &["response/late?"], why: "an event after the end of its response" },
    Ignored {
        what: &["response.created?", "response.queued?", "response.in_progress?"],
        why: "the start of the response was emitted already",
    },
    Ignored {
        what: &["response.output_item.added?", "response.output_item.done?"],
        why: "its texts and arguments are emitted by events of their own; the phase of a message and \
              the id of an item are in the record",
    },
    Ignored {
        what: &["response.content_part.*?", "response.reasoning_summary_part.*?"],
        why: "it repeats the text of its deltas",
    },
    Ignored {
        what: &["response.*.done?"],
        why: "it repeats what was streamed; the item repeats it once more",
    },
    Ignored {
        what: &["response.*.delta?"],
        why: "an empty piece, or one of an item that is complete",
    },
    Ignored {
        what: &["response.output_text.annotation.added"],
        why: "sources of a message have no event; the record is kept as it is",
    },
    Ignored {
        what: &["response.*_call.*", "response.mcp_list_tools.*", "response.compaction.*"],
        why: "a tool of the provider is running; its item has the result",
    },
    Ignored {
        what: &["response.shell_call_*", "response.audio.*"],
        why: "its item has the result",
    },
    Ignored { what: &["ping", "keepalive"], why: "it keeps the connection alive" },
    Ignored { what: &["output_item/*?"], why: "an item that is kept as it is" },
    Ignored { what: &["*: obfuscation"], why: "padding, which hides the length of a piece" },
    Ignored {
        what: &["*logprobs", "*annotations", "*: annotation", "*annotation_index"],
        why: "probabilities of tokens, and sources",
    },
    Ignored {
        what: &["*: param", "*: code"],
        why: "fields of an error, which are read where it has no object of its own",
    },
    Ignored {
        what: &[
            "*instructions",
            "*max_output_tokens",
            "*max_tool_calls",
            "*metadata",
            "*tool_calls",
            "*previous_response_id",
            "*prompt*",
            "*reasoning",
            "*safety_identifier",
            "*store",
            "*temperature",
            "*: response.text",
            "*: text",
            "*tool_choice",
            "*: response.tools",
            "*: tools",
            "*top_logprobs",
            "*top_p",
            "*truncation",
            "*user",
            "*conversation",
            "*background",
            "*context_management",
            "*moderation",
        ],
        why: "the request, which the response repeats",
    },
    Ignored {
        what: &["*created_at", "*completed_at", "*service_tier"],
        why: "when and where the provider computed the response",
    },
    Ignored {
        what: &[
            "*item.environment",
            "*item.created_by",
            "*item.size",
            "*item.quality",
            "*item.background",
            "*item.output_format",
            "*item.approval_request_id",
        ],
        why: "details of a tool of the provider",
    },
    Ignored {
        what: &[
            "(no type): id",
            "(no type): model",
            "(no type): status",
            "(no type): output*",
            "(no type): usage*",
            "(no type): incomplete_details*",
        ],
        why: "a whole response, whose fields are read as those of the last event are",
    },
];
