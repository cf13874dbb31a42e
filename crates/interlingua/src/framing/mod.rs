//! Cuts bytes into frames, without knowing what they mean.
//!
//! A frame is the text of what should be one JSON record, with its position in the input. Framing
//! knows lines, server-sent events, lengths and loose objects; it does not know the records of any
//! protocol. It never fails: bytes that cannot be framed are a frame too, which states why.
//!
//! Every framing obeys the same three laws: any split of the input into chunks gives the same
//! frames, each byte is read a bounded number of times, and at most [`Limits::frame`] bytes are
//! held back.

mod candidate;
mod content_length;
mod either;
mod joined;
mod lines;
mod objects;
mod sse;
mod sse_or_objects;

use std::ops::Range;

pub use content_length::ContentLength;
pub use either::LinesOrSse;
pub use joined::Joined;
pub use lines::Lines;
pub use objects::{Objects, extract_json_objects};
pub use sse::Sse;
pub use sse_or_objects::SseOrObjects;

/// How records are cut out of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FramingKind {
    /// One record per line.
    Lines,
    /// One record per line, or one that is printed over several lines.
    Joined,
    /// Server-sent events.
    Sse,
    /// Lines, server-sent events, messages with their length or an array, detected from the start of
    /// the stream.
    LinesOrSse,
    /// Objects anywhere in the stream.
    Objects,
    /// Server-sent events, or objects anywhere in the stream, detected from its start.
    SseOrObjects,
    /// Messages that are preceded by their length, as in the Language Server Protocol.
    ContentLength,
}

impl FramingKind {
    /// The same framing, but without joining records that are printed over several lines.
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
            Self::SseOrObjects => Box::new(SseOrObjects::new(limits)),
            Self::ContentLength => Box::new(ContentLength::new(limits)),
        }
    }
}

/// The limits of a frame.
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

/// The text of what should be one record, and its position in the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The line of the input on which the frame starts; the first line is 1.
    pub line: u64,
    /// The bytes of the input that the frame covers, without its terminator.
    pub bytes: Range<u64>,
    /// The content of the frame.
    pub body: Body<'a>,
}

/// The content of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body<'a> {
    /// Text that should be one JSON value.
    Text(FrameText<'a>),
    /// More bytes than [`Limits::frame`]; they were skipped up to the frame's end.
    TooLong {
        /// The length of the frame.
        length: u64,
        /// The limit that it exceeded.
        limit: usize,
    },
    /// The `[DONE]` with which some servers end a stream of events.
    Done,
}

/// The text of a frame, and how it was obtained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameText<'a> {
    /// The text, starting at its first brace if it has one.
    pub text: &'a str,
    /// The noise before the first brace: terminal colours, a banner, a prompt. It is usually empty.
    pub noise: &'a str,
    /// Bytes that are not UTF-8 were replaced by U+FFFD in this frame.
    pub replaced: bool,
    /// The input ended inside this frame, before its terminator.
    pub unterminated: bool,
    /// The text may span several lines.
    pub several_lines: bool,
    /// The `event:` name of a server-sent event; empty elsewhere.
    pub event: &'a str,
}

/// Cuts bytes into frames.
pub trait Framing {
    /// Takes the next bytes, in any split, and emits every frame that is now complete.
    fn push(&mut self, chunk: &[u8], sink: &mut dyn FnMut(Frame<'_>));

    /// Ends the input, and emits what was held back.
    fn finish(&mut self, sink: &mut dyn FnMut(Frame<'_>));
}
