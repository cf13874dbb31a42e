//! Lines of a text, with their numbers.

use std::fmt::Write;
use std::io::{self, BufRead, BufReader, Read};

use crate::tool::Failure;

/// How many lines are shown if the call does not name a number.
const DEFAULT_LINES: u64 = 2000;

/// How many bytes are shown.
const MAX_SHOWN: usize = 100_000;

/// How many bytes are shown of a line.
const MAX_LINE: usize = 2000;

/// How many bytes are read, including those that are skipped.
const MAX_READ: u64 = 256 << 20;

/// Which lines to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Range {
    /// The number of the first line, counted from 1.
    pub(super) first: u64,
    lines: u64,
}

impl Range {
    pub(super) fn new(offset: Option<u64>, limit: Option<u64>) -> Self {
        let lines = limit.filter(|limit| *limit > 0).unwrap_or(DEFAULT_LINES);
        Self { first: offset.unwrap_or(1).max(1), lines }
    }
}

/// Lines of a file as they are shown.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Lines {
    text: String,
    /// How many lines are shown.
    pub(super) lines: u64,
    /// How many lines were skipped before.
    skipped: u64,
    /// Whether the file ends after these lines.
    at_end: bool,
    /// Whether reading ended at the bound on what is read.
    at_bound: bool,
    /// How many lines are cut.
    cut: u64,
    has_invalid: bool,
    has_crlf: bool,
    /// Whether the last line that is shown has no end, so that it is the last one of the file.
    has_open_end: bool,
}

/// Reads lines.
pub(super) fn read(file: &mut impl Read, range: &Range) -> io::Result<Lines> {
    let mut reader = BufReader::with_capacity(64 << 10, file.take(MAX_READ));
    let mut found = Lines::default();
    while found.skipped + 1 < range.first {
        match next_line(&mut reader, 0)? {
            Some(_) => found.skipped += 1,
            None => return Ok(found.ended(&reader)),
        }
    }
    while found.lines < range.lines && found.text.len() < MAX_SHOWN {
        match next_line(&mut reader, MAX_LINE)? {
            Some(line) => found.push(range.first, &line),
            None => return Ok(found.ended(&reader)),
        }
    }
    let rest_is_empty = reader.fill_buf()?.is_empty();
    Ok(if rest_is_empty { found.ended(&reader) } else { found })
}

/// A line, of which the start is kept.
struct Line {
    start: Vec<u8>,
    is_cut: bool,
    has_end: bool,
}

/// Reads up to the end of a line, and keeps at most `kept` bytes of it.
fn next_line(reader: &mut impl BufRead, kept: usize) -> io::Result<Option<Line>> {
    let mut line = Line { start: Vec::new(), is_cut: false, has_end: false };
    let mut is_empty = true;
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok((!is_empty).then_some(line));
        }
        is_empty = false;
        let end = memchr::memchr(b'\n', buffer);
        let piece = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
        let room = kept.saturating_sub(line.start.len());
        line.start.extend_from_slice(piece.get(..room).unwrap_or(piece));
        line.is_cut |= piece.len() > room;
        let used = piece.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            line.has_end = true;
            return Ok(Some(line));
        }
    }
}

impl Lines {
    fn ended<R: Read>(mut self, reader: &BufReader<io::Take<R>>) -> Self {
        self.at_bound = reader.get_ref().limit() == 0;
        self.at_end = !self.at_bound;
        self
    }

    fn push(&mut self, first: u64, line: &Line) {
        let number = first + self.lines;
        let mut bytes = &*line.start;
        if number == 1 {
            bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        }
        if let Some(without) = bytes.strip_suffix(b"\r").filter(|_| !line.is_cut) {
            (bytes, self.has_crlf) = (without, true);
        }
        let text = String::from_utf8_lossy(bytes);
        // The cut may have split a character, which is no fault of the file.
        self.has_invalid |= !line.is_cut && matches!(text, std::borrow::Cow::Owned(_));
        let end = if line.is_cut { "… (cut)" } else { "" };
        self.cut += u64::from(line.is_cut);
        self.has_open_end = !line.has_end;
        self.lines += 1;
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{number:>6}→{text}{end}");
    }

    /// Whether the whole file is shown.
    pub(super) fn is_complete(&self, range: &Range) -> bool {
        range.first == 1 && self.at_end && self.cut == 0
    }

    /// The lines, with notes on what is not shown.
    pub(super) fn shown(&self, path: &str, range: &Range) -> Result<String, Failure> {
        let next = range.first + self.lines;
        if self.lines == 0 && self.at_bound {
            return Err(Failure(format!(
                "line {} of {path} is more than {MAX_READ} bytes after its start; use Bash, for \
                 example `tail -c` or `sed -n`",
                range.first
            )));
        }
        if self.lines == 0 && range.first > 1 {
            return Err(Failure(format!("{path} has only {} lines", self.skipped)));
        }
        if self.lines == 0 {
            return Ok(format!("({path} is empty)"));
        }
        let mut notes = Vec::new();
        if !self.at_end && !self.at_bound {
            notes.push(format!("the file has more lines: read on with offset {next}"));
        }
        if self.at_bound {
            notes.push(format!("only the first {MAX_READ} bytes of the file were read"));
        }
        if self.cut > 0 {
            notes.push(format!("{} lines are longer than {MAX_LINE} bytes and were cut", self.cut));
        }
        if self.has_invalid {
            notes.push("the file is not valid UTF-8; invalid bytes are shown as �".to_owned());
        }
        if self.has_crlf {
            notes.push("lines end in CRLF, which edits keep; write \\n".to_owned());
        }
        if self.has_open_end && self.at_end {
            notes.push("the last line has no line end".to_owned());
        }
        let mut text = self.text.trim_end_matches('\n').to_owned();
        if !notes.is_empty() {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n\n({})", notes.join("; "));
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &[u8], offset: Option<u64>, limit: Option<u64>) -> Result<String, Failure> {
        let range = Range::new(offset, limit);
        read(&mut &*text, &range).unwrap().shown("a", &range)
    }

    #[test]
    fn lines_are_numbered() {
        assert_eq!(shown(b"a\n\nb\n", None, None).unwrap(), "     1→a\n     2→\n     3→b");
        assert_eq!(shown(b"a\nb\n", Some(2), None).unwrap(), "     2→b");
        assert_eq!(
            shown(b"a\nb\nc\n", Some(2), Some(1)).unwrap(),
            "     2→b\n\n(the file has more lines: read on with offset 3)"
        );
        assert_eq!(shown(b"a\nb\n", None, Some(2)).unwrap(), "     1→a\n     2→b");
        assert_eq!(shown(b"", None, None).unwrap(), "(a is empty)");
        assert!(shown(b"a\nb\n", Some(4), None).unwrap_err().0.contains("only 2 lines"));
    }

    #[test]
    fn what_is_not_shown_is_stated() {
        let long = shown("ä".repeat(3000).as_bytes(), None, None).unwrap();
        assert!(long.contains("… (cut)") && !long.contains('�') && long.contains("1 lines"));
        let text = shown(b"\xef\xbb\xbfa\xff\r\nb\r\n", None, None).unwrap();
        assert!(text.starts_with("     1→a\u{fffd}\n     2→b\n\n("), "{text:?}");
        assert!(text.contains("not valid UTF-8") && text.contains("CRLF"), "{text:?}");
        let open = shown(b"a\nb", None, None).unwrap();
        assert_eq!(open, "     1→a\n     2→b\n\n(the last line has no line end)");
        assert!(!shown(b"a\nb", None, Some(1)).unwrap().contains("no line end"));
        let many = shown(&b"0123456789\n".repeat(50_000), None, Some(50_000)).unwrap();
        assert!(many.len() < MAX_SHOWN + 1000 && many.contains("read on with offset"));
    }
}
