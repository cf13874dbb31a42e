//! One record per line: newline-delimited JSON.
//!
//! This framing knows line feeds, UTF-8 and opening braces; it does not know whether a line is
//! valid JSON. Only LF ends a line: CR, U+2028 and U+2029 are text. One CR at the end of a line is
//! left out of the frame's text, but its byte range always covers it, and the limit counts it.
//!
//! The module also contains what all framings share: a buffer for bytes that are carried from chunk
//! to chunk, and the decoding of bytes as text.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr_iter};

use super::{Body, Frame, FrameText, Framing, Limits};

/// Cuts newline-delimited JSON into lines.
///
/// A line within one chunk is emitted without a copy. Blank lines are counted, but emit no frame.
#[derive(Debug)]
pub struct Lines {
    limits: Limits,
    /// The number of the current line.
    line: u64,
    /// The offset of the current line in the input.
    start: u64,
    /// The length of the current line in earlier chunks. It exceeds what is carried if the line is
    /// too long.
    length: u64,
    carry: Carry,
    /// The number of bytes since a line was last carried over.
    since_carried: usize,
}

impl Lines {
    /// Starts at the first line of an input.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, line: 1, start: 0, length: 0, carry: Carry::default(), since_carried: 0 }
    }

    /// The memory in use for bytes that are held back between two chunks.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.carry.capacity()
    }

    fn hold(&mut self, part: &[u8]) {
        self.length += part.len() as u64;
        if self.length > self.limits.frame as u64 {
            self.carry.clear();
        } else {
            self.carry.extend(part, self.limits.frame);
        }
    }

    /// Takes the last part of the current line, and emits the line.
    fn end_line(&mut self, part: &[u8], unterminated: bool, take: &mut impl FnMut(RawLine<'_>)) {
        let limit = self.limits.frame;
        let length = self.length + part.len() as u64;
        let (line, bytes) = (self.line, self.start..self.start + length);
        self.line += 1;
        self.start += length + u64::from(!unterminated);
        self.length = 0;

        if length > limit as u64 {
            self.carry.clear();
            take(RawLine { line, bytes, raw: Err(limit), unterminated });
        } else if self.carry.is_empty() {
            take(RawLine { line, bytes, raw: Ok(part), unterminated });
        } else {
            self.carry.extend(part, limit);
            take(RawLine { line, bytes, raw: Ok(self.carry.as_slice()), unterminated });
            self.carry.clear_keeping_memory();
        }
    }

    /// Like [`Framing::push`], but emits raw lines, including blank ones.
    pub(super) fn push_raw(&mut self, chunk: &[u8], take: &mut impl FnMut(RawLine<'_>)) {
        let mut start = 0;
        for end in memchr_iter(b'\n', chunk) {
            self.end_line(chunk.get(start..end).unwrap_or_default(), false, take);
            start = end + 1;
        }
        self.hold(chunk.get(start..).unwrap_or_default());
        // Large lines often follow each other, and memory that is freed between them would have to
        // be allocated and cleared again for each. It is freed after the last of them.
        self.since_carried =
            if self.carry.is_empty() { self.since_carried + chunk.len() } else { 0 };
        if self.since_carried > Carry::RETAINED {
            self.carry.clear();
        }
    }

    /// Like [`Framing::finish`], but emits the last line raw.
    pub(super) fn finish_raw(&mut self, take: &mut impl FnMut(RawLine<'_>)) {
        if self.length > 0 {
            self.end_line(b"", true, take);
        }
    }
}

/// A line of the input, without its line feed.
pub(super) struct RawLine<'a> {
    pub(super) line: u64,
    pub(super) bytes: Range<u64>,
    /// Its bytes, or the limit that it exceeded.
    pub(super) raw: Result<&'a [u8], usize>,
    pub(super) unterminated: bool,
}

impl RawLine<'_> {
    /// Emits the line as a frame, unless it is blank.
    pub(super) fn emit(self, sink: &mut dyn FnMut(Frame<'_>)) {
        let Self { line, bytes, raw, unterminated } = self;
        let raw = match raw {
            Ok(raw) => raw.strip_suffix(b"\r").unwrap_or(raw),
            Err(limit) => {
                let length = bytes.end - bytes.start;
                return sink(Frame { line, bytes, body: Body::TooLong { length, limit } });
            }
        };
        if raw.trim_ascii_start().is_empty() {
            return;
        }
        // Only the whole line is decoded, because a character may be split between two chunks.
        let decoded = decode(raw);
        let replaced = matches!(decoded, Cow::Owned(_));
        let (noise, text) = split_noise(&decoded);
        let text =
            FrameText { text, noise, replaced, unterminated, several_lines: false, event: "" };
        sink(Frame { line, bytes, body: Body::Text(text) });
    }
}

impl Default for Lines {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Framing for Lines {
    fn push(&mut self, chunk: &[u8], sink: &mut dyn FnMut(Frame<'_>)) {
        self.push_raw(chunk, &mut |line| line.emit(sink));
    }

    fn finish(&mut self, sink: &mut dyn FnMut(Frame<'_>)) {
        self.finish_raw(&mut |line| line.emit(sink));
    }
}

/// Separates the noise before a record from the record.
///
/// A line that starts with a brace, indented or not, is a record whatever follows. Otherwise the
/// record starts at the first brace that could open an object, since prose and terminal codes may
/// contain braces too. Without such a brace the whole line is text, which the decoder reports.
fn split_noise(line: &str) -> (&str, &str) {
    let unindented = line.trim_ascii_start();
    if unindented.starts_with('{') {
        return ("", unindented);
    }
    object_start(line.as_bytes()).and_then(|at| line.split_at_checked(at)).unwrap_or(("", line))
}

/// Finds the first brace that is followed by a key or a closing brace.
fn object_start(line: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let brace = from + memchr(b'{', line.get(from..)?)?;
        from = brace + 1;
        if let [b'"' | b'}', ..] = line.get(from..)?.trim_ascii_start() {
            return Some(brace);
        }
    }
}

/// Decodes bytes as UTF-8, with U+FFFD in place of what is invalid. Valid bytes are not copied.
pub(super) fn decode(bytes: &[u8]) -> Cow<'_, str> {
    match simdutf8::basic::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

/// Bytes that are held back from one chunk to the next.
#[derive(Debug, Default)]
pub(super) struct Carry(Vec<u8>);

impl Carry {
    /// The capacity that is kept for the next frame; the memory of a larger frame is freed.
    const RETAINED: usize = 1 << 20;

    /// Appends `part`. The capacity doubles as that of any vector, but exceeds `ceiling` only if it
    /// has to: a frame just below its limit should not cost twice the limit.
    pub(super) fn extend(&mut self, part: &[u8], ceiling: usize) {
        let needed = self.0.len() + part.len();
        if needed > self.0.capacity() {
            let roomy = self.0.capacity().saturating_mul(2).min(ceiling);
            self.0.reserve_exact(needed.max(roomy) - self.0.len());
        }
        self.0.extend_from_slice(part);
    }

    /// Drops the first `count` bytes.
    pub(super) fn drop_front(&mut self, count: usize) {
        if count > 0 {
            self.0.drain(..count.min(self.0.len()));
            self.release();
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
        self.release();
    }

    /// Like [`Carry::clear`], but keeps the memory for a frame that may need it soon.
    pub(super) fn clear_keeping_memory(&mut self) {
        self.0.clear();
    }

    fn release(&mut self) {
        if self.0.capacity() > Self::RETAINED {
            self.0.shrink_to(Self::RETAINED);
        }
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn capacity(&self) -> usize {
        self.0.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_ends_at_the_first_brace_that_could_open_an_object() {
        assert_eq!(split_noise(r#"{"a":1}"#), ("", r#"{"a":1}"#));
        assert_eq!(split_noise(" \t{ }"), ("", "{ }"));
        assert_eq!(split_noise(r#"a {b} { "c":1}"#), ("a {b} ", r#"{ "c":1}"#));
        assert_eq!(split_noise("a {b} {"), ("", "a {b} {"));
        assert_eq!(split_noise(" {x {}"), ("", "{x {}"));
    }

    #[test]
    fn the_carry_neither_outgrows_its_ceiling_nor_keeps_what_a_large_frame_took() {
        let mut carry = Carry::default();
        for _ in 0..3 << 10 {
            carry.extend(&[b'x'; 1 << 10], 3 << 20);
            assert!(carry.capacity() <= 3 << 20);
        }
        carry.clear();
        assert!(carry.capacity() <= Carry::RETAINED);
    }

    #[test]
    fn the_carry_drops_no_more_than_it_holds() {
        let mut carry = Carry::default();
        carry.extend(b"abc", 8);
        carry.drop_front(2);
        assert_eq!(carry.as_slice(), b"c");
        carry.drop_front(2);
        assert!(carry.is_empty());
    }
}
