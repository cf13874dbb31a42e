//! One record per line, or one that is printed over several lines.
//!
//! This framing knows lines and the grammar of JSON. The rules:
//!
//! - A line that opens an object and does not close it opens a record. The following lines belong
//!   to the record until its object is complete. Every other line is a frame of its own, without a
//!   copy, as in [`Lines`].
//! - An unindented line that begins with `{"type"` always begins a record. A record that is open at
//!   that point, or that a line cannot continue, is broken and costs only its own lines: they
//!   become one frame, except for the complete objects in it that begin in the first column.
//! - A record on several lines has at most 100 000 bytes, and a line at most [`Limits::frame`]. A
//!   longer one is reported and skipped.
//! - At the end of the input, an open record becomes an unterminated frame.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr_iter, memchr2};

use super::candidate::{Candidate, Verdict};
use super::lines::{RawLine, decode};
use super::{Body, Frame, FrameText, Framing, Limits, Lines};

/// The start of a line that always begins a record.
const RECORD_START: &[u8] = b"{\"type\"";

/// The longest record on several lines that is kept, in bytes.
const JOINED_LIMIT: usize = 100_000;

/// Cuts a stream into lines, and joins the lines of a record that is printed over several.
#[derive(Debug)]
pub struct Joined {
    lines: Lines,
    record: Record,
}

impl Joined {
    /// Starts at the first line of an input.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        let record = Record { limit: JOINED_LIMIT.min(limits.frame), ..Record::default() };
        Self { lines: Lines::new(limits), record }
    }

    /// The memory in use for bytes that are held back between two chunks.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.lines.held_bytes() + self.record.text.capacity()
    }
}

impl Default for Joined {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Framing for Joined {
    fn push(&mut self, chunk: &[u8], sink: &mut dyn FnMut(Frame<'_>)) {
        let Self { lines, record } = self;
        lines.push_raw(chunk, &mut |line| record.take(line, sink));
    }

    fn finish(&mut self, sink: &mut dyn FnMut(Frame<'_>)) {
        let Self { lines, record } = self;
        lines.finish_raw(&mut |line| record.take(line, sink));
        record.emit_broken(true, sink);
    }
}

/// The open record that is printed over several lines, if there is one.
#[derive(Debug, Default)]
struct Record {
    limit: usize,
    open: bool,
    candidate: Candidate,
    /// The number of its first line.
    line: u64,
    /// The byte range of the record so far.
    bytes: Range<u64>,
    /// Its bytes; empty once the record exceeds the limit.
    text: Vec<u8>,
}

impl Record {
    fn take(&mut self, line: RawLine<'_>, sink: &mut dyn FnMut(Frame<'_>)) {
        let Ok(raw) = line.raw else {
            self.emit_broken(false, sink);
            return line.emit(sink);
        };
        if self.open {
            let verdict = match raw.starts_with(RECORD_START) {
                true => Verdict::Broken,
                false => self.read(raw, &line),
            };
            match verdict {
                Verdict::Open => return self.hold(raw, &line),
                Verdict::Complete => {
                    self.hold(raw, &line);
                    return self.complete(sink);
                }
                Verdict::Broken | Verdict::TooDeep => self.emit_broken(false, sink),
            }
        }
        if self.opens(raw, &line) {
            self.open = true;
            self.line = line.line;
            self.bytes = line.bytes;
            self.text.extend_from_slice(raw);
        } else {
            line.emit(sink);
        }
    }

    /// Whether a line opens an object that later lines can complete.
    fn opens(&mut self, raw: &[u8], line: &RawLine<'_>) -> bool {
        let object = raw.trim_ascii_start();
        let Some(inside) = object.strip_prefix(b"{") else { return false };
        if line.unterminated || raw.len() >= self.limit || closes(inside) {
            return false;
        }
        let brace = line.bytes.start + (raw.len() - object.len()) as u64;
        self.candidate.open(brace);
        let (_, verdict) = self.candidate.read(inside, brace + 1);
        verdict == Verdict::Open && self.reads_line_feed(line)
    }

    /// Reads the next bytes of the open record.
    fn read(&mut self, raw: &[u8], line: &RawLine<'_>) -> Verdict {
        let (_, verdict) = self.candidate.read(raw, line.bytes.start);
        match verdict {
            Verdict::Open if line.unterminated || self.reads_line_feed(line) => Verdict::Open,
            Verdict::Open => Verdict::Broken,
            verdict => verdict,
        }
    }

    /// Whether the object may continue on the next line.
    fn reads_line_feed(&mut self, line: &RawLine<'_>) -> bool {
        self.candidate.read(b"\n", line.bytes.end).1 == Verdict::Open
    }

    /// Adds a line to the open record, unless the record is already too long.
    fn hold(&mut self, raw: &[u8], line: &RawLine<'_>) {
        self.bytes.end = line.bytes.end;
        if self.is_too_long() {
            self.text.clear();
        } else {
            self.text.push(b'\n');
            self.text.extend_from_slice(raw);
        }
    }

    fn is_too_long(&self) -> bool {
        self.bytes.end - self.bytes.start > self.limit as u64
    }

    /// Emits the complete record.
    fn complete(&mut self, sink: &mut dyn FnMut(Frame<'_>)) {
        if self.is_too_long() {
            return self.emit_broken(false, sink);
        }
        self.open = false;
        let mut position = Position { at: self.bytes.start, line: self.line };
        self.emit(&mut position, self.bytes.end, false, sink);
        self.text.clear();
    }

    /// Emits the frames of a broken record.
    fn emit_broken(&mut self, unterminated: bool, sink: &mut dyn FnMut(Frame<'_>)) {
        if !std::mem::take(&mut self.open) {
            return;
        }
        if self.is_too_long() {
            let bytes = self.bytes.clone();
            let (length, limit) = (bytes.end - bytes.start, self.limit);
            let body = Body::TooLong { length, limit };
            return sink(Frame { line: self.line, bytes, body });
        }
        let mut position = Position { at: self.bytes.start, line: self.line };
        let swallowed = std::mem::take(&mut self.candidate.swallowed);
        for object in swallowed.iter().filter(|object| self.is_in_first_column(object)) {
            self.emit(&mut position, object.start, false, sink);
            self.emit(&mut position, object.end, false, sink);
        }
        self.candidate.swallowed = swallowed;
        self.emit(&mut position, self.bytes.end, unterminated, sink);
        self.text.clear();
    }

    /// Whether an inner object is contained in the record and begins in the first column.
    fn is_in_first_column(&self, object: &Range<u64>) -> bool {
        let before = object.start.checked_sub(self.bytes.start + 1);
        let begins_line = before.and_then(|at| self.text.get(at as usize)) == Some(&b'\n');
        begins_line && object.end <= self.bytes.end
    }

    /// Emits the bytes of the record up to `end` as a frame, unless they are blank.
    fn emit(
        &self,
        position: &mut Position,
        end: u64,
        unterminated: bool,
        sink: &mut dyn FnMut(Frame<'_>),
    ) {
        let at = |position: u64| (position - self.bytes.start) as usize;
        let raw = self.text.get(at(position.at)..at(end)).unwrap_or_default();
        let (blank, rest) = raw.split_at(raw.len() - raw.trim_ascii_start().len());
        position.advance(blank);
        let (start, line) = (position.at, position.line);
        position.advance(rest);
        let text = rest.trim_ascii_end();
        if text.is_empty() {
            return;
        }
        let decoded = decode(text);
        let body = FrameText {
            text: &decoded,
            noise: "",
            replaced: matches!(decoded, Cow::Owned(_)),
            unterminated,
            several_lines: true,
            event: "",
        };
        let bytes = start..start + text.len() as u64;
        sink(Frame { line, bytes, body: Body::Text(body) });
    }
}

/// Whether these bytes close the object that was opened before them. Validity is not checked: an
/// object that is closed is either complete or broken, and later lines cannot change that. Most
/// lines close theirs, and this check is cheaper than the whole grammar.
fn closes(inside: &[u8]) -> bool {
    let (mut depth, mut at) = (1_usize, 0);
    while let Some(byte) = inside.get(at) {
        at += 1;
        match byte {
            b'"' => match string_length(inside.get(at..).unwrap_or_default()) {
                Some(length) => at += length,
                None => return false,
            },
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 1 => return true,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
    }
    false
}

/// The length of a string, including its closing quote.
fn string_length(rest: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        // Most strings are short, and a plain loop is faster for them than vector instructions.
        let ahead = rest.get(at..)?;
        let near = ahead.iter().take(16).position(|byte| matches!(byte, b'"' | b'\\'));
        at += match near {
            Some(near) => near,
            None => 16 + memchr2(b'"', b'\\', ahead.get(16..)?)?,
        };
        match rest.get(at)? {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

/// A position in the input, and its line.
struct Position {
    at: u64,
    line: u64,
}

impl Position {
    fn advance(&mut self, bytes: &[u8]) {
        self.at += bytes.len() as u64;
        self.line += memchr_iter(b'\n', bytes).count() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_closes_with_its_own_bracket() {
        let closed = [r#"}"#, r#""a":{}}"#, r#""}":"\"}","b":["{"]}"#, r#""a":1]"#, "x}"];
        assert!(closed.iter().all(|text| closes(text.as_bytes())));
        let open = ["", r#""a":{}"#, r#""a":"}"#, r#""a":"\"}"#, r#""a":[{},"}]"#, r#""a\"#];
        assert!(open.iter().all(|text| !closes(text.as_bytes())));
        let long = format!(r#""{}\\":1}}"#, "x".repeat(40));
        assert!(closes(long.as_bytes()));
    }
}
