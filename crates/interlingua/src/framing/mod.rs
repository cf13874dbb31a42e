//! Bytes into frames, and nothing about meaning.
//!
//! A frame is the text of what should be one JSON record, with the place where it stood in the
//! input. Framing knows lines, server-sent events and loose objects; it does not know JSON records
//! of any protocol, and it never fails: what cannot be framed is a frame too, and says why.
//!
//! Every framing obeys the same three laws: any split of the input into chunks gives the same
//! frames, each byte is looked at a bounded number of times, and never more than
//! [`Limits::frame`] bytes are held back.

mod candidate;
mod either;
mod joined;
mod lines;
mod objects;
mod sse;

use std::ops::Range;

pub use either::LinesOrSse;
pub use joined::Joined;
pub use lines::Lines;
pub use objects::{Objects, extract_json_objects};
pub use sse::Sse;

/// How records are cut out of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FramingKind {
    /// One record a line.
    Lines,
    /// One record a line, or one that is printed over several lines.
    Joined,
    /// Server-sent events.
    Sse,
    /// Lines or server-sent events, whichever the stream turns out to be.
    LinesOrSse,
    /// Objects wherever they stand.
    Objects,
}

impl FramingKind {
    /// The same framing, for a stream that must have each record on one line where it may.
    #[must_use]
    pub(crate) fn strict(self) -> Self {
        if self == Self::Joined { Self::Lines } else { self }
    }

    /// A framing of this kind, at the beginning of a stream.
    #[must_use]
    pub fn at_start(self, limits: Limits) -> Box<dyn Framing + Send> {
        match self {
            Self::Lines => Box::new(Lines::new(limits)),
            Self::Joined => Box::new(Joined::new(limits)),
            Self::Sse => Box::new(Sse::new(limits)),
            Self::LinesOrSse => Box::new(LinesOrSse::new(limits)),
            Self::Objects => Box::new(Objects::new(limits)),
        }
    }
}

/// What one frame may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The longest frame that is kept, in bytes. A longer one is reported and skipped.
    pub frame: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { frame: 64 << 20 }
    }
}

/// The text of what should be one record, and where it stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The line of the input on which the frame starts; the first line is 1.
    pub line: u64,
    /// The bytes of the input that the frame covers, its terminator not included.
    pub bytes: Range<u64>,
    /// What stood there.
    pub body: Body<'a>,
}

/// What a frame holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body<'a> {
    /// Text that should be one JSON value.
    Text(FrameText<'a>),
    /// More bytes than [`Limits::frame`]; they were skipped up to the frame's end.
    TooLong {
        /// How long the frame was.
        length: u64,
        /// The limit that it passed.
        limit: usize,
    },
    /// The `[DONE]` with which some servers end a stream of events.
    Done,
}

/// The text of a frame, and what was done to it on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameText<'a> {
    /// The text, starting at its first brace where it has one.
    pub text: &'a str,
    /// What stood before the first brace: terminal colours, a banner, a prompt. Empty as a rule.
    pub noise: &'a str,
    /// Bytes that are not UTF-8 were replaced by U+FFFD in this frame.
    pub replaced: bool,
    /// The input ended inside this frame: no terminator was seen.
    pub unterminated: bool,
    /// The text may stand on several lines.
    pub several_lines: bool,
    /// The `event:` name of a server-sent event; empty elsewhere.
    pub event: &'a str,
}

/// Something that cuts bytes into frames.
pub trait Framing {
    /// Takes the next bytes, in any split, and hands on every frame that is now complete.
    fn push(&mut self, chunk: &[u8], sink: &mut dyn FnMut(Frame<'_>));

    /// Says that no more bytes will come: hands on what was held back.
    fn finish(&mut self, sink: &mut dyn FnMut(Frame<'_>));
}
