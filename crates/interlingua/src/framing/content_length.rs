//! Messages that are preceded by their length, as in the Language Server Protocol.
//!
//! A message is a header, an empty line and a body: `Content-Length: 12`, CR LF, CR LF, and twelve
//! bytes. This framing knows header lines, lengths and braces. The rules:
//!
//! - A frame is a body. Its header belongs to its range and its line, but not to its text. The range
//!   of noise between a header and its body begins with the header instead.
//! - A body begins with a brace. White space before it does not count. A line that is neither a
//!   header nor a body is noise, wherever it is printed, and is a frame of its own.
//! - A header within a body proves that the length was wrong, because a line feed in a JSON string
//!   is escaped: the body ends there. If the declared length does not end at a closing brace, it was
//!   wrong too, and the body extends to the next header.
//! - A body that exceeds the limit is reported and skipped up to its end, or up to the next header.
//! - At the end of the input, an open body is an unterminated frame, and so is a header without one.
//!
//! A line may end with LF alone, and the header `Content-Type` is accepted.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr_iter, memmem};

use super::lines::{Carry, decode};
use super::{Body, Frame, FrameText, Framing, Limits};

/// The name of the header with the length.
const LENGTH: &[u8] = b"Content-Length:";

/// The longest header line that is recognised within other text.
const LONGEST_HEADER: u64 = 64;

/// Cuts a stream into messages that are preceded by their length.
#[derive(Debug)]
pub struct ContentLength {
    carry: Carry,
    limit: usize,
    scanner: Scanner,
}

impl ContentLength {
    /// Starts at the beginning of a stream.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let (carry, limit) = (Carry::default(), limits.frame);
        Self { carry, limit, scanner: Scanner { line: 1, ..Scanner::default() } }
    }

    /// The memory in use for bytes that are held back between two chunks.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.carry.capacity()
    }
}

impl Default for ContentLength {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Framing for ContentLength {
    fn push(&mut self, chunk: &[u8], sink: &mut dyn FnMut(Frame<'_>)) {
        let Self { carry, limit, scanner } = self;
        let base = scanner.start;
        if carry.is_empty() {
            let window = Window { bytes: chunk, base, limit: *limit };
            scanner.scan(window, sink);
            carry.extend(window.get(scanner.start..window.end()), *limit);
        } else {
            carry.extend(chunk, *limit);
            let window = Window { bytes: carry.as_slice(), base, limit: *limit };
            scanner.scan(window, sink);
            carry.drop_front((scanner.start - base) as usize);
        }
    }

    fn finish(&mut self, sink: &mut dyn FnMut(Frame<'_>)) {
        let Self { carry, limit, scanner } = self;
        let window = Window { bytes: carry.as_slice(), base: scanner.start, limit: *limit };
        scanner.finish(window, sink);
        carry.clear();
    }
}

/// The part of the input that is in memory. All positions are offsets into the whole input.
#[derive(Clone, Copy)]
struct Window<'a> {
    bytes: &'a [u8],
    base: u64,
    limit: usize,
}

impl<'a> Window<'a> {
    fn end(self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    fn get(self, range: Range<u64>) -> &'a [u8] {
        let relative = (range.start - self.base) as usize..(range.end - self.base) as usize;
        self.bytes.get(relative).unwrap_or_default()
    }

    /// The first complete header line that begins in `range` and ends in it.
    fn find_header(self, range: Range<u64>) -> Option<u64> {
        let bytes = self.get(range.clone());
        let mut found = memmem::find_iter(bytes, LENGTH);
        found
            .find(|at| declares_length(bytes.get(*at..).unwrap_or_default()))
            .map(|at| range.start + at as u64)
    }
}

/// What the scanner is reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Header lines and noise.
    Head {
        /// The length that a header has declared.
        length: Option<u64>,
        /// An empty line has ended the header, so the body follows.
        complete: bool,
    },
    /// A body of this length, or one that extends to the next header if its length is wrong.
    Body { length: Option<u64> },
    /// Text that exceeds the limit, from its first byte and line, up to an offset or to the next
    /// header.
    TooLong { from: u64, line: u64, end: Option<u64> },
}

impl Default for State {
    fn default() -> Self {
        Self::Head { length: None, complete: false }
    }
}

/// Cuts the input into frames. It contains no bytes, only positions.
#[derive(Debug, Default)]
struct Scanner {
    state: State,
    /// The first byte that the next window must still contain, and its line.
    start: u64,
    line: u64,
    /// The bytes before this offset were searched: for a line feed or for a header.
    searched: u64,
    /// The first byte and line of the header that no frame includes yet.
    header: Option<(u64, u64)>,
}

impl Scanner {
    fn scan(&mut self, window: Window<'_>, sink: &mut dyn FnMut(Frame<'_>)) {
        while match self.state {
            State::Head { length, complete } => self.scan_head(length, complete, window, sink),
            State::Body { length } => self.scan_body(length, window, sink),
            State::TooLong { from, line, end } => self.skip(from, line, end, window, sink),
        } {}
    }

    fn finish(&mut self, window: Window<'_>, sink: &mut dyn FnMut(Frame<'_>)) {
        let end = window.end();
        match self.state {
            State::TooLong { from, line, .. } => self.report(from..end, line, window, sink),
            State::Head { .. } if self.header.is_none() => {
                self.emit_text(end, true, window, sink);
            }
            // A header promises a body.
            State::Head { .. } | State::Body { .. } => {
                self.emit(self.start..end, true, window, sink);
            }
        }
    }

    /// Reads one line between two bodies, or begins a body. Returns whether it can go on.
    fn scan_head(
        &mut self,
        length: Option<u64>,
        complete: bool,
        window: Window<'_>,
        sink: &mut dyn FnMut(Frame<'_>),
    ) -> bool {
        if let (Some(length), true) = (length, complete) {
            let ahead = window.get(self.start..window.end());
            let blank = ahead.len() - ahead.trim_ascii_start().len();
            self.advance(self.start + blank as u64, window);
            match ahead.get(blank) {
                Some(b'{') => return self.begin_body(length, window),
                Some(_) => {}
                None => return false,
            }
        }
        let from = self.searched.max(self.start);
        let found = memchr(b'\n', window.get(from..window.end()));
        let end = found.map_or(window.end(), |found| from + found as u64);
        // A header is read whatever the limit is: it is short.
        if end - self.start > LONGEST_HEADER.max(window.limit as u64) {
            return self.begin_skipping();
        }
        if found.is_none() {
            self.searched = end;
            return false;
        }
        let line = window.get(self.start..end);
        match header_in(line) {
            Some((at, declared)) => {
                let at = self.start + at as u64;
                self.emit_text(at, false, window, sink);
                self.begin_header(at);
                self.state = State::Head { length: Some(declared), complete: false };
            }
            None if line.trim_ascii().is_empty() => {
                self.state = State::Head { length, complete: length.is_some() };
            }
            None if starts_with(line, b"Content-Type:") => self.begin_header(self.start),
            None => self.emit_text(end, false, window, sink),
        }
        self.advance(end + 1, window);
        true
    }

    fn begin_body(&mut self, length: u64, window: Window<'_>) -> bool {
        self.searched = self.start;
        self.state = if length > window.limit as u64 {
            let end = self.start.checked_add(length);
            State::TooLong { from: self.start, line: self.line, end }
        } else {
            State::Body { length: Some(length) }
        };
        true
    }

    /// Reads on in a body. Returns whether it is complete.
    fn scan_body(
        &mut self,
        length: Option<u64>,
        window: Window<'_>,
        sink: &mut dyn FnMut(Frame<'_>),
    ) -> bool {
        let declared = length.map(|length| self.start + length);
        let reach = declared.map_or(window.end(), |end| end.min(window.end()));
        if let Some(at) = window.find_header(self.searched..reach) {
            if at - self.start > window.limit as u64 {
                return self.begin_skipping();
            }
            self.end_body(at, window, sink);
            return true;
        }
        match declared {
            Some(end) if end == reach => {
                if window.get(self.start..end).trim_ascii_end().ends_with(b"}") {
                    self.end_body(end, window, sink);
                } else {
                    self.search_again(reach);
                    self.state = State::Body { length: None };
                }
                true
            }
            // A header that begins within the limit may end beyond it.
            _ if reach - self.start > window.limit as u64 + LONGEST_HEADER => self.begin_skipping(),
            _ => {
                self.search_again(reach);
                false
            }
        }
    }

    fn end_body(&mut self, end: u64, window: Window<'_>, sink: &mut dyn FnMut(Frame<'_>)) {
        self.emit(self.start..end, false, window, sink);
        self.advance(end, window);
        self.state = State::default();
    }

    /// Skips text that is too long. Returns whether its end was found.
    fn skip(
        &mut self,
        from: u64,
        line: u64,
        end: Option<u64>,
        window: Window<'_>,
        sink: &mut dyn FnMut(Frame<'_>),
    ) -> bool {
        let reach = end.map_or(window.end(), |end| end.min(window.end()));
        let header = window.find_header(self.searched.min(reach)..reach);
        match header.or_else(|| end.filter(|end| *end == reach)) {
            Some(at) => {
                self.report(from..at, line, window, sink);
                self.advance(at, window);
                self.state = State::default();
                true
            }
            None => {
                self.search_again(reach);
                self.advance(self.searched, window);
                false
            }
        }
    }

    /// Notes that the bytes before `reach` contain no complete header. One that is not complete yet
    /// is found by the next search.
    fn search_again(&mut self, reach: u64) {
        self.searched = self.searched.max(reach.saturating_sub(LONGEST_HEADER)).max(self.start);
    }

    /// Begins to skip a line or a body that exceeds the limit, up to the next header.
    fn begin_skipping(&mut self) -> bool {
        self.state = State::TooLong { from: self.start, line: self.line, end: None };
        self.searched = self.start;
        true
    }

    /// Moves on to an offset, and counts the lines up to it.
    fn advance(&mut self, to: u64, window: Window<'_>) {
        self.line += memchr_iter(b'\n', window.get(self.start..to)).count() as u64;
        self.start = to;
        self.searched = self.searched.max(to);
    }

    /// Notes where a header begins, of which this is a line.
    fn begin_header(&mut self, at: u64) {
        self.header.get_or_insert((at, self.line));
    }

    /// Reports text that exceeds the limit.
    fn report(
        &mut self,
        text: Range<u64>,
        line: u64,
        window: Window<'_>,
        sink: &mut dyn FnMut(Frame<'_>),
    ) {
        let body = Body::TooLong { length: text.end - text.start, limit: window.limit };
        let (start, line) = self.header.take().unwrap_or((text.start, line));
        sink(Frame { line, bytes: start..text.end, body });
    }

    /// Emits the text from the current byte up to `end` as noise, unless it is blank.
    fn emit_text(
        &mut self,
        end: u64,
        unterminated: bool,
        window: Window<'_>,
        sink: &mut dyn FnMut(Frame<'_>),
    ) {
        let text = window.get(self.start..end);
        if !text.trim_ascii().is_empty() {
            let start = self.start + (text.len() - text.trim_ascii_start().len()) as u64;
            self.emit(start..end, unterminated, window, sink);
        }
    }

    fn emit(
        &mut self,
        range: Range<u64>,
        unterminated: bool,
        window: Window<'_>,
        sink: &mut dyn FnMut(Frame<'_>),
    ) {
        let raw = window.get(range.clone()).trim_ascii_end();
        let (start, line) = self.header.take().unwrap_or((range.start, self.line));
        let bytes = start..range.start + raw.len() as u64;
        let decoded = decode(raw);
        let text = FrameText {
            text: &decoded,
            noise: "",
            replaced: matches!(decoded, Cow::Owned(_)),
            unterminated,
            several_lines: true,
            event: "",
        };
        sink(Frame { line, bytes, body: Body::Text(text) });
    }
}

/// The header in a line without its line feed: its position, and the length that it declares. It may
/// follow noise, which some program printed without a line ending.
fn header_in(line: &[u8]) -> Option<(usize, u64)> {
    let declared = |at: usize| {
        let value = line.get(at + LENGTH.len()..)?.trim_ascii();
        let digits = std::str::from_utf8(value).ok().filter(|_| is_number(value))?;
        Some((at, digits.parse().unwrap_or(u64::MAX)))
    };
    let first = Some(0).filter(|_| starts_with(line, LENGTH));
    first.into_iter().chain(memmem::find_iter(line, LENGTH)).find_map(declared)
}

/// Whether text that starts with the name of the header continues as a whole header line.
fn declares_length(text: &[u8]) -> bool {
    let line = text.get(..text.len().min(LONGEST_HEADER as usize)).unwrap_or_default();
    let Some(end) = memchr(b'\n', line) else { return false };
    line.get(LENGTH.len()..end).is_some_and(|value| is_number(value.trim_ascii()))
}

fn is_number(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().all(u8::is_ascii_digit)
}

fn starts_with(line: &[u8], name: &[u8]) -> bool {
    line.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
}
