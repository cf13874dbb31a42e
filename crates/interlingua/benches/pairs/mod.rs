//! The pairs of protocols that are measured, on each shape of stream. Each pair is a file with its
//! corpus and its limit.

mod acp_to_ai_sdk_v4;
mod claude_to_ai_sdk;
mod codex_app_server_to_ui_message;
mod codex_to_claude;
mod copilot_to_acp;
mod gemini_to_giselle;
mod goose_to_ui_message;
mod opencode_to_ag_ui;
mod pi_to_ag_ui;
mod qwen_to_ai_sdk_v4;

use interlingua::{Exit, Finished, Options, Source, Translator, dialect};

use crate::corpus::{Shape, Size, Stream};

/// The size of a chunk of the input, which is what a pipe holds.
pub(crate) const CHUNK: usize = 1 << 16;

/// A hand-written translator: it takes the complete input, and passes on its output in chunks.
pub(crate) type Limit = fn(&[u8], &mut dyn FnMut(&[u8]));

/// A translation from one protocol to another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
    /// Generates a stream of some shape.
    make: fn(&mut Stream, Shape, Size),
    /// The hand-written translator for streams of some shape.
    pub(crate) limit: fn(Shape) -> Limit,
}

/// The pairs that have a limit.
pub(crate) const PAIRS: &[Pair] = &[
    Pair {
        from: "codex",
        to: "claude",
        make: codex_to_claude::corpus,
        limit: |_| codex_to_claude::codex_to_claude,
    },
    Pair {
        from: "claude",
        to: "ai-sdk",
        make: claude_to_ai_sdk::corpus,
        // Claude's small records are deltas; the other shapes have none.
        limit: |shape| match shape {
            Shape::Small => claude_to_ai_sdk::claude_deltas_to_ai_sdk,
            _ => claude_to_ai_sdk::claude_complete_to_ai_sdk,
        },
    },
    Pair {
        from: "gemini",
        to: "giselle",
        make: gemini_to_giselle::corpus,
        limit: |_| gemini_to_giselle::gemini_to_giselle,
    },
    Pair {
        from: "codex-app-server",
        to: "ui-message",
        make: codex_app_server_to_ui_message::corpus,
        limit: |_| codex_app_server_to_ui_message::limit,
    },
    Pair {
        from: "copilot",
        to: "acp",
        make: copilot_to_acp::corpus,
        limit: |_| copilot_to_acp::limit,
    },
    Pair {
        from: "opencode",
        to: "ag-ui",
        make: opencode_to_ag_ui::corpus,
        limit: |_| opencode_to_ag_ui::limit,
    },
    Pair {
        from: "qwen",
        to: "ai-sdk-v4",
        make: qwen_to_ai_sdk_v4::corpus,
        limit: |_| qwen_to_ai_sdk_v4::limit,
    },
    Pair {
        from: "goose",
        to: "ui-message",
        make: goose_to_ui_message::corpus,
        limit: |_| goose_to_ui_message::limit,
    },
    Pair { from: "pi", to: "ag-ui", make: pi_to_ag_ui::corpus, limit: |_| pi_to_ag_ui::limit },
    Pair {
        from: "acp",
        to: "ai-sdk-v4",
        make: acp_to_ai_sdk_v4::corpus,
        limit: |_| acp_to_ai_sdk_v4::limit,
    },
];

impl Pair {
    pub(crate) fn corpus(self, shape: Shape, size: Size) -> Vec<u8> {
        let mut stream = Stream::default();
        (self.make)(&mut stream, shape, size);
        stream.bytes
    }

    pub(crate) fn translator(self) -> Translator {
        let from = Source::named(self.from).expect("the source is a dialect");
        let to = dialect::find(self.to).expect("the target is a dialect");
        Translator::new(from, to, Options::default()).expect("the target can be written")
    }

    /// Translates all of the input, chunk by chunk.
    pub(crate) fn translate(self, input: &[u8], keep: &mut dyn FnMut(&[u8])) -> Finished {
        let mut translator = self.translator();
        for chunk in input.chunks(CHUNK) {
            keep(translator.push(chunk, None));
        }
        let finished = translator.finish(&Exit { code: Some(0), ..Exit::default() }, None);
        keep(&finished.bytes);
        finished
    }
}
