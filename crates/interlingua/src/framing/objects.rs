//! JSON objects anywhere in a stream: concatenated, spread over lines, or after prose.
//!
//! This framing knows the grammar of JSON, and nothing of what an object means. The rules:
//!
//! - Outside an object only an opening brace is significant: it opens a candidate. A candidate that
//!   is valid JSON up to its closing brace is an object, and becomes a frame.
//! - Text before an object on its line is that frame's noise. Text after the last object of a line,
//!   or on a line without objects, is a frame of its own. White space, commas and square brackets
//!   between objects are ignored.
//! - At the first byte that cannot continue a candidate, the candidate becomes noise, line by line,
//!   except for the complete objects in it that begin a line. Reading continues at that byte. If
//!   the candidate is a broken record (one with a colon), reading continues only at the next line,
//!   so that parts of the record are not taken for records. A brace where none is valid begins a
//!   new record that was appended to a broken one, and is read.
//! - A frame that exceeds the limit is reported and skipped up to the end of the line.
//! - At the end of the input an open candidate is one unterminated frame, unless it is prose, or
//!   contains an object that begins in the first column of a line, where no part of a record
//!   begins.
//!
//! The grammar reads each byte once. Noise is read once more, to find the ends of its lines.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr_iter, memchr2};

use super::candidate::{Candidate, Verdict};
use super::lines::{Carry, decode};
use super::{Body, Frame, FrameText, Framing, Limits};

/// Finds the JSON objects in a stream that need not have one per line.
#[derive(Debug)]
pub struct Objects {
    limits: Limits,
    scanner: Scanner,
    carry: Carry,
}

impl Objects {
    /// Starts at the first line of an input.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, scanner: Scanner::new(limits.frame as u64), carry: Carry::default() }
    }

    /// The memory in use for bytes that are held back between two chunks. The positions of inner
    /// objects take up to 1 MiB in addition.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.carry.capacity()
    }
}

impl Default for Objects {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Framing for Objects {
    fn push(&mut self, chunk: &[u8], sink: &mut dyn FnMut(Frame<'_>)) {
        let limit = self.limits.frame;
        let base = self.scanner.kept_from();
        if self.carry.is_empty() {
            let window = Window { bytes: chunk, base };
            self.scanner.scan(window, &mut |piece| piece.emit(window, limit, sink));
            let rest = window.get(self.scanner.kept_from()..window.end());
            self.carry.extend(rest, limit);
        } else {
            self.carry.extend(chunk, limit);
            let window = Window { bytes: self.carry.as_slice(), base };
            self.scanner.scan(window, &mut |piece| piece.emit(window, limit, sink));
            self.carry.drop_front((self.scanner.kept_from() - base) as usize);
        }
    }

    fn finish(&mut self, sink: &mut dyn FnMut(Frame<'_>)) {
        let window = Window { bytes: self.carry.as_slice(), base: self.scanner.kept_from() };
        let limit = self.limits.frame;
        self.scanner.finish(window, &mut |piece| piece.emit(window, limit, sink));
        self.carry.clear();
    }
}

/// The complete objects in `buffer`, and the rest: the object that is still open at its end, or an
/// empty string.
///
/// This is for callers with a growing string instead of a stream: they keep the rest, append the
/// next text, and call it again.
#[must_use]
pub fn extract_json_objects(buffer: &str) -> (Vec<&str>, &str) {
    let mut scanner = Scanner::new(u64::MAX);
    let mut objects = Vec::new();
    scanner.scan(Window { bytes: buffer.as_bytes(), base: 0 }, &mut |piece| {
        if let What::Object { brace, .. } = piece.what {
            objects.extend(buffer.get(brace as usize..piece.bytes.end as usize));
        }
    });
    let rest = match scanner.state {
        State::Inside => buffer.get(scanner.candidate.start as usize..).unwrap_or_default(),
        _ => "",
    };
    (objects, rest)
}

/// A part of the input that is in memory. All positions are offsets into the whole input.
#[derive(Clone, Copy)]
struct Window<'a> {
    bytes: &'a [u8],
    base: u64,
}

impl<'a> Window<'a> {
    fn end(self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    fn get(self, range: Range<u64>) -> &'a [u8] {
        let relative = (range.start - self.base) as usize..(range.end - self.base) as usize;
        self.bytes.get(relative).unwrap_or_default()
    }

    /// Narrows `range` by the white space at both ends.
    fn trim(self, range: Range<u64>) -> Range<u64> {
        let untrimmed = self.get(range.clone());
        let end = range.start + untrimmed.trim_ascii_end().len() as u64;
        let start = range.end - untrimmed.trim_ascii_start().len() as u64;
        start.min(end)..end
    }

    fn count_line_feeds(self, range: Range<u64>) -> u64 {
        memchr_iter(b'\n', self.get(range)).count() as u64
    }

    fn has_only_separators(self, range: Range<u64>) -> bool {
        let separator = |byte: &u8| byte.is_ascii_whitespace() || b",[]".contains(byte);
        self.get(range).iter().all(separator)
    }
}

/// A frame before its bytes are decoded as text.
struct Piece {
    line: u64,
    bytes: Range<u64>,
    what: What,
}

enum What {
    /// An object that starts at `brace`, after noise.
    Object {
        brace: u64,
        unterminated: bool,
    },
    Noise {
        unterminated: bool,
    },
    TooLong,
}

impl Piece {
    fn emit(self, window: Window<'_>, limit: usize, sink: &mut dyn FnMut(Frame<'_>)) {
        let Self { line, bytes, what } = self;
        let (brace, unterminated) = match what {
            What::Object { brace, unterminated } => (brace, unterminated),
            What::Noise { unterminated } => (bytes.start, unterminated),
            What::TooLong => {
                let length = bytes.end - bytes.start;
                return sink(Frame { line, bytes, body: Body::TooLong { length, limit } });
            }
        };
        // A brace is a character of its own whatever bytes surround it, so decoding its two sides
        // separately gives the same text.
        let noise = decode(window.get(bytes.start..brace));
        let text = decode(window.get(brace..bytes.end));
        let replaced = matches!((&noise, &text), (Cow::Owned(_), _) | (_, Cow::Owned(_)));
        let (noise, text) = (noise.as_ref(), text.as_ref());
        let text =
            FrameText { text, noise, replaced, unterminated, several_lines: true, event: "" };
        sink(Frame { line, bytes, body: Body::Text(text) });
    }
}

/// The state of the scanner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Outside any candidate.
    Between,
    /// After a broken record, on its last line, where no candidate opens.
    Behind,
    /// Inside the candidate.
    Inside,
    /// In the last line of a frame that is too long, after this many line feeds.
    TooLong { line_feeds: u64 },
}

/// Cuts the input into pieces. It contains no bytes, only positions.
#[derive(Debug)]
struct Scanner {
    limit: u64,
    /// The next byte to read.
    at: u64,
    /// The first byte that belongs to no piece yet, and its line.
    start: u64,
    line: u64,
    /// The text from `start` up to the candidate is known to contain more than separators.
    noisy: bool,
    state: State,
    candidate: Candidate,
}

impl Scanner {
    fn new(limit: u64) -> Self {
        Self {
            limit,
            at: 0,
            start: 0,
            line: 1,
            noisy: false,
            state: State::Between,
            candidate: Candidate::default(),
        }
    }

    /// The first byte that the next window must still contain.
    fn kept_from(&self) -> u64 {
        match self.state {
            State::TooLong { .. } => self.at,
            _ => self.start,
        }
    }

    fn scan(&mut self, window: Window<'_>, sink: &mut dyn FnMut(Piece)) {
        while self.at < window.end() {
            match self.state {
                State::Between => self.scan_between(window, sink),
                State::Behind => self.scan_behind(window, sink),
                State::Inside => self.scan_inside(window, sink),
                State::TooLong { line_feeds } => self.skip_line(line_feeds, window, sink),
            }
        }
    }

    fn finish(&mut self, window: Window<'_>, sink: &mut dyn FnMut(Piece)) {
        let end = self.at;
        match self.state {
            State::TooLong { .. } => {
                return sink(Piece {
                    line: self.line,
                    bytes: self.start..end,
                    what: What::TooLong,
                });
            }
            State::Inside if self.candidate.is_unfinished_record() => {
                let end = window.trim(self.candidate.start..end).end;
                return self.end_object(self.candidate.start..end, true, window, sink);
            }
            State::Inside => self.reject_candidate(window, sink),
            State::Between | State::Behind => {}
        }
        self.end_noise(end, true, window, sink);
    }

    /// The end of what is read in this window: one byte past the limit, where a line may still end.
    fn reach(&self, window: Window<'_>) -> u64 {
        window.end().min(self.start.saturating_add(self.limit).saturating_add(1))
    }

    fn scan_between(&mut self, window: Window<'_>, sink: &mut dyn FnMut(Piece)) {
        let reach = self.reach(window);
        let ahead = window.get(self.at..reach);
        let Some(found) = memchr2(b'{', b'\n', ahead) else {
            self.at = reach;
            return self.check_length(window);
        };
        self.at += found as u64;
        if ahead.get(found) == Some(&b'\n') {
            return self.end_line(window, sink);
        }
        self.noisy = self.noisy || !window.has_only_separators(self.start..self.at);
        if !self.noisy {
            self.start = self.at;
        }
        self.candidate.open(self.at);
        self.state = State::Inside;
        self.at += 1;
        self.check_length(window);
    }

    fn scan_behind(&mut self, window: Window<'_>, sink: &mut dyn FnMut(Piece)) {
        let reach = self.reach(window);
        match memchr(b'\n', window.get(self.at..reach)) {
            Some(found) => {
                self.at += found as u64;
                self.end_line(window, sink);
            }
            None => {
                self.at = reach;
                self.check_length(window);
            }
        }
    }

    fn scan_inside(&mut self, window: Window<'_>, sink: &mut dyn FnMut(Piece)) {
        let ahead = window.get(self.at..self.reach(window));
        let (read, verdict) = self.candidate.read(ahead, self.at);
        self.at += read as u64;
        match verdict {
            Verdict::Open => self.check_length(window),
            Verdict::Complete if self.at - self.start > self.limit => self.check_length(window),
            Verdict::Complete => {
                self.end_object(self.candidate.start..self.at, false, window, sink);
            }
            Verdict::Broken | Verdict::TooDeep => {
                let glued = verdict == Verdict::Broken && ahead.get(read) == Some(&b'{');
                self.reject_candidate(window, sink);
                self.noisy = self.noisy || !window.has_only_separators(self.start..self.at);
                if self.noisy && self.candidate.has_colon && !glued {
                    self.state = State::Behind;
                }
            }
        }
    }

    /// Begins to skip once more bytes than the limit allows belong to no piece yet.
    fn check_length(&mut self, window: Window<'_>) {
        if self.at - self.start > self.limit {
            // The last byte is read while skipping, because it may be the end of the line.
            self.at -= 1;
            let line_feeds = window.count_line_feeds(self.start..self.at);
            self.state = State::TooLong { line_feeds };
        }
    }

    fn skip_line(&mut self, line_feeds: u64, window: Window<'_>, sink: &mut dyn FnMut(Piece)) {
        let Some(found) = memchr(b'\n', window.get(self.at..window.end())) else {
            self.at = window.end();
            return;
        };
        self.at += found as u64;
        sink(Piece { line: self.line, bytes: self.start..self.at, what: What::TooLong });
        self.line += line_feeds;
        self.begin_line();
    }

    /// Ends a line outside any candidate.
    fn end_line(&mut self, window: Window<'_>, sink: &mut dyn FnMut(Piece)) {
        self.end_noise(self.at, false, window, sink);
        self.begin_line();
    }

    /// Advances past a line feed.
    fn begin_line(&mut self) {
        self.at += 1;
        self.line += 1;
        self.start_between(self.at);
    }

    fn start_between(&mut self, start: u64) {
        self.start = start;
        self.noisy = false;
        self.state = State::Between;
    }

    fn end_noise(
        &mut self,
        end: u64,
        unterminated: bool,
        window: Window<'_>,
        sink: &mut dyn FnMut(Piece),
    ) {
        if self.noisy || !window.has_only_separators(self.start..end) {
            let bytes = window.trim(self.start..end);
            sink(Piece { line: self.line, bytes, what: What::Noise { unterminated } });
        }
    }

    fn end_object(
        &mut self,
        object: Range<u64>,
        unterminated: bool,
        window: Window<'_>,
        sink: &mut dyn FnMut(Piece),
    ) {
        let brace = object.start;
        let start = window.trim(self.start..object.end).start;
        let what = What::Object { brace, unterminated };
        sink(Piece { line: self.line, bytes: start..object.end, what });
        self.line += window.count_line_feeds(object.clone());
        self.start_between(object.end);
    }

    /// Turns the candidate into noise up to this byte, except for the objects that it has
    /// swallowed.
    fn reject_candidate(&mut self, window: Window<'_>, sink: &mut dyn FnMut(Piece)) {
        let swallowed = std::mem::take(&mut self.candidate.swallowed);
        for object in &swallowed {
            self.cut_lines(object.start, window, sink);
            self.end_object(object.clone(), false, window, sink);
        }
        self.candidate.swallowed = swallowed;
        self.cut_lines(self.at, window, sink);
        self.state = State::Between;
    }

    /// Emits the lines that end before `until` as noise.
    fn cut_lines(&mut self, until: u64, window: Window<'_>, sink: &mut dyn FnMut(Piece)) {
        // The text before the candidate contains no line feed and may be long, so it is skipped.
        let from = self.start.max(self.candidate.start);
        for found in memchr_iter(b'\n', window.get(from..until)) {
            let end = from + found as u64;
            self.end_noise(end, false, window, sink);
            self.line += 1;
            self.start_between(end + 1);
        }
    }
}
