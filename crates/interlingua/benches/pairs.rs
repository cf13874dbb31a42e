//! What is measured: pairs of protocols, on each shape of stream.

use interlingua::{Exit, Options, Translator, dialect};

use crate::corpus::{Agent, Shape, Size, generate};
use crate::limit;

/// As much of the input comes at once: what a pipe holds.
const CHUNK: usize = 1 << 16;

/// A hand-written translator: takes all of the input, hands on its output piece by piece.
pub(crate) type Limit = fn(&[u8], &mut dyn FnMut(&[u8]));

/// One way to translate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair {
    pub(crate) agent: Agent,
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
}

/// The pairs that have a limit to be held against.
pub(crate) const PAIRS: [Pair; 3] = [
    Pair { agent: Agent::Codex, from: "codex", to: "claude" },
    Pair { agent: Agent::Claude, from: "claude", to: "ai-sdk" },
    Pair { agent: Agent::Gemini, from: "gemini", to: "giselle" },
];

impl Pair {
    pub(crate) fn corpus(self, shape: Shape, size: Size) -> Vec<u8> {
        generate(self.agent, shape, size)
    }

    /// The limit for this pair. Claude's small records are pieces; the other shapes have none.
    pub(crate) fn limit(self, shape: Shape) -> Limit {
        match (self.agent, shape) {
            (Agent::Codex, _) => limit::codex_to_claude,
            (Agent::Gemini, _) => limit::gemini_to_giselle,
            (Agent::Claude, Shape::Small) => limit::claude_pieces_to_ai_sdk,
            (Agent::Claude, _) => limit::claude_whole_to_ai_sdk,
        }
    }

    pub(crate) fn translator(self) -> Translator {
        let from = dialect::find(self.from);
        let to = dialect::find(self.to).expect("the target is a dialect");
        Translator::new(from, to, Options::default()).expect("the target can be written")
    }

    /// Translates all of the input, chunk by chunk.
    pub(crate) fn translate(self, input: &[u8], keep: &mut dyn FnMut(&[u8])) -> Translator {
        let mut translator = self.translator();
        for chunk in input.chunks(CHUNK) {
            keep(translator.push(chunk));
        }
        keep(translator.finish(&Exit { code: Some(0), ..Exit::default() }));
        translator
    }
}
