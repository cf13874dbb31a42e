//! Synthetic streams for measurements: random words in the shapes that real agents print.
//!
//! This module generates words, ids and times; each pair defines its records. The same arguments
//! always give the same bytes.

/// The records that most of a stream consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Text deltas, and small records.
    Small,
    /// Records of about a kilobyte.
    Kilobyte,
    /// A few lines of nine megabytes.
    Huge,
}

impl Shape {
    pub(crate) const ALL: [Self; 3] = [Self::Small, Self::Kilobyte, Self::Huge];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Kilobyte => "kilobyte",
            Self::Huge => "huge",
        }
    }
}

/// The size of a corpus.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// The approximate length of a stream of small or kilobyte records.
    pub(crate) stream: usize,
    /// The approximate length of a huge line.
    pub(crate) line: usize,
}

impl Size {
    /// The size that is measured.
    pub(crate) const FULL: Self = Self { stream: 32 << 20, line: 9_000_000 };
}

/// The number of deltas of a streamed message.
pub(crate) const DELTAS: usize = 24;

const WORDS: [&str; 24] = [
    "the",
    "stream",
    "reads",
    "one",
    "line",
    "of",
    "text",
    "and",
    "writes",
    "it",
    "again",
    "when",
    "a",
    "tool",
    "call",
    "ends",
    "with",
    "status",
    "open",
    "file",
    "src/main.rs",
    "fn",
    "value",
    "done",
];

/// Text that occasionally separates words, escaped for a string literal.
const MARKS: [&str; 10] =
    [", ", ". ", "\\n", "\\n\\n", " \\\"key\\\": ", "\\t", " é ", " → ", " 日本 ", " 🧪 "];

/// The lines so far, and the state that varies the next one.
#[derive(Default)]
pub(crate) struct Stream {
    pub(crate) bytes: Vec<u8>,
    numbers: u64,
    times: u64,
    state: u64,
}

impl Stream {
    pub(crate) fn line(&mut self, parts: &[&str]) {
        for part in parts {
            self.bytes.extend_from_slice(part.as_bytes());
        }
        self.bytes.push(b'\n');
    }

    /// Knuth's linear congruential generator, which distributes evenly enough.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.state >> 33) as usize % limit
    }

    /// Text of about this length, escaped for a string literal.
    pub(crate) fn text(&mut self, length: usize) -> String {
        let mut text = String::with_capacity(length + 16);
        while text.len() < length {
            text.push_str(WORDS.get(self.below(WORDS.len())).unwrap_or(&""));
            let mark = MARKS.get(self.below(MARKS.len() * 8)).unwrap_or(&" ");
            text.push_str(mark);
        }
        text
    }

    pub(crate) fn plain_words(&mut self, count: usize) -> String {
        let words: Vec<_> =
            (0..count).filter_map(|_| WORDS.get(self.below(WORDS.len())).copied()).collect();
        words.join(" ")
    }

    /// The next number, for ids.
    pub(crate) fn number(&mut self) -> String {
        self.numbers += 1;
        format!("{:06}", self.numbers)
    }

    pub(crate) fn uuid(&mut self) -> String {
        let mut part = |width: usize| format!("{:0width$x}", self.below(1 << 16));
        [part(8), part(4), part(4), part(4), part(12)].join("-")
    }

    /// The next time, in milliseconds.
    pub(crate) fn millis(&mut self) -> String {
        self.times += 7;
        (1_794_769_010_257 + self.times).to_string()
    }

    /// The next time, as text.
    pub(crate) fn time(&mut self) -> String {
        self.times += 7;
        let (seconds, milliseconds) = (self.times / 1000, self.times % 1000);
        let (minutes, seconds) = (seconds / 60, seconds % 60);
        let (hours, minutes) = (minutes / 60 % 24, minutes % 60);
        format!("2026-11-15T{hours:02}:{minutes:02}:{seconds:02}.{milliseconds:03}Z")
    }
}
