//! Splits text into chunks, so that no line exceeds the limit.
//!
//! It knows the length of a string as a JSON literal, and where a literal may be split: between two
//! characters, and never within an escape or between the two halves of a surrogate pair. A literal
//! from a frame is split without unescaping it. It knows no record.

use crate::json::Text;
use crate::json::write::{self, Bytes};

/// A part of a text, in the form of that text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunk<'t> {
    /// A part of the body of a literal, with its escapes.
    Escaped(&'t str),
    /// A part of plain text.
    Plain(&'t str),
}

impl<'t> Chunk<'t> {
    /// Writes the chunk as a string literal.
    #[inline]
    pub(super) fn write(self, out: &mut Bytes) {
        out.push(b'"');
        self.write_body(out);
        out.push(b'"');
    }

    /// Writes the body of the literal, without its quotes.
    #[inline]
    pub(super) fn write_body(self, out: &mut Bytes) {
        match self {
            Self::Escaped(body) => out.extend_from_slice(body.as_bytes()),
            Self::Plain(plain) => write::escape(out, plain),
        }
    }

    fn body(self) -> &'t str {
        match self {
            Self::Escaped(body) | Self::Plain(body) => body,
        }
    }

    /// The number of characters of the unescaped text.
    pub(super) fn characters(self) -> usize {
        match self {
            Self::Escaped(body) => {
                let count = |(run, _): (Option<&str>, _)| run.map_or(1, |run| run.chars().count());
                runs(body).map(count).sum()
            }
            Self::Plain(plain) => plain.chars().count(),
        }
    }

    /// The number of bytes of the unescaped text.
    pub(super) fn plain_length(self) -> usize {
        match self {
            Self::Escaped(body) => units(body).map(|unit| unit.plain).sum(),
            Self::Plain(plain) => plain.len(),
        }
    }

    /// The number of bytes of the literal's body.
    pub(super) fn encoded_length(self) -> usize {
        match self {
            Self::Escaped(body) => body.len(),
            Self::Plain(plain) => plain.bytes().map(escaped_width).sum(),
        }
    }

    /// Splits the chunk into what fits and the rest. The first part is never empty.
    fn split(self, room: usize) -> (Self, Option<Self>) {
        let body = self.body();
        // An escaped byte takes at most six.
        if body.len() <= room / 6 {
            return (self, None);
        }
        let end = match self {
            Self::Escaped(body) if body.len() <= room => body.len(),
            Self::Escaped(body) => escaped_end(body, room),
            Self::Plain(plain) => plain_end(plain, room),
        };
        match body.split_at_checked(end) {
            Some((_, "")) | None => (self, None),
            Some((start, rest)) => (self.with_body(start), Some(self.with_body(rest))),
        }
    }

    /// As [`Chunk::split`], but at the end of a line or else of a word, if one ends in the second
    /// half of what fits.
    fn split_between_words(self, room: usize) -> (Self, Option<Self>) {
        let (start, rest) = self.split(room);
        let end = rest.and_then(|_| start.last_boundary());
        match end.and_then(|end| self.body().split_at_checked(end)) {
            Some((start, rest)) => (self.with_body(start), Some(self.with_body(rest))),
            None => (start, rest),
        }
    }

    /// The end of the last line in the second half of the chunk, or else of the last word.
    fn last_boundary(self) -> Option<usize> {
        let body = self.body();
        let (mut line, mut word) = (None, None);
        match self {
            Self::Plain(plain) => {
                line = memchr::memrchr(b'\n', plain.as_bytes()).map(|at| at + 1);
                word = memchr::memrchr(b' ', plain.as_bytes()).map(|at| at + 1);
            }
            Self::Escaped(_) => {
                let mut at = 0;
                for (run, written) in runs(body) {
                    let space = run.and_then(|run| memchr::memrchr(b' ', run.as_bytes()));
                    word = space.map(|space| at + space + 1).or(word);
                    let is_line_feed = body.get(at..).is_some_and(|rest| rest.starts_with("\\n"));
                    at += written;
                    line = if is_line_feed { Some(at) } else { line };
                }
            }
        }
        [line, word].into_iter().flatten().find(|end| *end > body.len() / 2)
    }

    fn with_body<'p>(self, body: &'p str) -> Chunk<'p> {
        match self {
            Self::Escaped(_) => Chunk::Escaped(body),
            Self::Plain(_) => Chunk::Plain(body),
        }
    }
}

/// A text as one chunk.
pub(super) fn as_chunk<'t>(text: &'t Text<'_>) -> Chunk<'t> {
    match text {
        Text::Plain(plain) => Chunk::Plain(plain),
        _ => Chunk::Escaped(text.body()),
    }
}

/// Splits a text into chunks that fit the room. An empty text is one empty chunk.
pub(super) fn chunks<'t>(text: &'t Text<'_>, room: usize) -> impl Iterator<Item = Chunk<'t>> {
    let mut rest = Some(as_chunk(text));
    std::iter::from_fn(move || {
        let (chunk, after) = rest.take()?.split(room);
        rest = after;
        Some(chunk)
    })
}

/// Splits a text that was not streamed into chunks that fit the room and, as far as possible, end
/// with a line or a word.
pub(super) fn chunks_between_words<'t>(
    text: &'t Text<'_>,
    room: usize,
) -> impl Iterator<Item = Chunk<'t>> {
    let mut rest = Some(as_chunk(text));
    std::iter::from_fn(move || {
        let (chunk, after) = rest.take()?.split_between_words(room);
        rest = after;
        Some(chunk)
    })
}

/// The start of a text that fits the room, and the number of bytes that are left out.
pub(super) fn start<'t>(text: &'t Text<'_>, room: usize) -> (Chunk<'t>, usize) {
    let (chunk, rest) = as_chunk(text).split(room);
    (chunk, rest.map_or(0, Chunk::plain_length))
}

/// The text if it fits the room, else its start as an error.
pub(super) fn bounded<'t>(text: &'t Text<'_>, room: usize) -> Result<Text<'t>, String> {
    match as_chunk(text).split(room) {
        (_, None) => Ok(text.borrowed()),
        (chunk, Some(_)) => {
            let mut literal = Bytes::new();
            chunk.write(&mut literal);
            Err(serde_json::from_slice(&literal).unwrap_or_default())
        }
    }
}

/// The offset at which the body of a literal is split.
fn escaped_end(body: &str, room: usize) -> usize {
    let mut end = 0;
    for unit in units(body) {
        if end + unit.written > room {
            if unit.is_run {
                // A run of plain characters may be split within.
                let cut = body.floor_char_boundary(room).max(end);
                return if cut == 0 { first_character(body) } else { cut };
            }
            if end > 0 {
                return end;
            }
        }
        end += unit.written;
    }
    end
}

/// The offset at which plain text is split.
fn plain_end(plain: &str, room: usize) -> usize {
    let mut width = 0;
    for (at, character) in plain.char_indices() {
        width += match character.len_utf8() {
            1 => plain.as_bytes().get(at).copied().map_or(1, escaped_width),
            length => length,
        };
        if width > room {
            return if at == 0 { first_character(plain) } else { at };
        }
    }
    plain.len()
}

fn first_character(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

/// The number of bytes that a byte of plain text takes in a literal.
fn escaped_width(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        0x00..=0x1f => 6,
        _ => 1,
    }
}

/// An escape in the body of a literal, which may not be split, or a run of plain characters, which
/// may.
struct Unit {
    /// The number of its bytes in the literal.
    written: usize,
    /// The number of its bytes when unescaped.
    plain: usize,
    is_run: bool,
}

/// The escapes of a literal's body, and the runs between them.
fn units(body: &str) -> impl Iterator<Item = Unit> {
    let mut rest = body.as_bytes();
    std::iter::from_fn(move || {
        let run = memchr::memchr(b'\\', rest).unwrap_or(rest.len());
        let unit = match run {
            0 if rest.is_empty() => return None,
            0 => escape(rest),
            run => Unit { written: run, plain: run, is_run: true },
        };
        rest = rest.get(unit.written..).unwrap_or(&[]);
        Some(unit)
    })
}

/// The runs in the body of a literal, and `None` for each escape between them, with their lengths.
fn runs(body: &str) -> impl Iterator<Item = (Option<&str>, usize)> {
    let mut at = 0;
    units(body).map(move |unit| {
        let run = body.get(at..at + unit.written).filter(|_| unit.is_run);
        at += unit.written;
        (run, unit.written)
    })
}

/// The escape at the start of the bytes; both halves of a surrogate pair are one escape.
fn escape(bytes: &[u8]) -> Unit {
    let unit = |written, plain| Unit { written, plain, is_run: false };
    match (code(bytes), code(bytes.get(6..).unwrap_or(&[]))) {
        (None, _) => unit(2, 1),
        (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => unit(12, 4),
        (Some(0..=0x7f), _) => unit(6, 1),
        (Some(0x80..=0x7ff), _) => unit(6, 2),
        (Some(_), _) => unit(6, 3),
    }
}

/// The number of a `\u` escape.
fn code(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    fn cut(text: &Text<'_>, room: usize) -> Vec<String> {
        chunks(text, room)
            .map(|chunk| {
                let mut literal = Bytes::new();
                chunk.write(&mut literal);
                assert!(literal.len() <= room + 2, "{chunk:?} is too long");
                assert_eq!(chunk.encoded_length() + 2, literal.len());
                let plain = serde_json::from_slice::<String>(&literal).unwrap();
                assert_eq!(chunk.plain_length(), plain.len());
                plain
            })
            .collect()
    }

    #[test]
    fn the_chunks_for_any_room_are_together_the_text() {
        let plain = "a\"b\\c\nd\u{1}é€🧪 plain text after that, and more of it 🧪🧪";
        let literal = serde_json::to_string(plain).unwrap();
        let raw: &RawValue = serde_json::from_str(&literal).unwrap();
        for room in 12..80 {
            assert_eq!(cut(&Text::plain(plain), room).concat(), plain);
            assert_eq!(cut(&Text::of(raw).unwrap(), room).concat(), plain);
        }
    }

    #[test]
    fn an_escape_is_never_split() {
        let raw: &RawValue = serde_json::from_str(r#""ab\n\u00e9\ud83e\uddeacd\\e""#).unwrap();
        for room in 12..30 {
            assert_eq!(cut(&Text::of(raw).unwrap(), room).concat(), "ab\né🧪cd\\e");
        }
        assert_eq!(cut(&Text::of(raw).unwrap(), 14), ["ab\né", "🧪cd", "\\e"]);
    }

    #[test]
    fn an_empty_text_is_one_empty_chunk() {
        assert_eq!(cut(&Text::plain(""), 10), [""]);
    }

    #[test]
    fn the_bytes_that_are_left_out_are_counted() {
        let text = Text::plain("ééééééééééé");
        let (chunk, left) = start(&text, 13);
        assert_eq!((chunk, left), (Chunk::Plain("éééééé"), 10));
        assert_eq!(bounded(&Text::plain("a name"), 100), Ok(Text::plain("a name")));
        assert_eq!(bounded(&text, 13), Err("éééééé".to_owned()));
    }

    #[test]
    fn unstreamed_text_is_split_after_lines_and_words() {
        let plain = "one two\nthree four five six seven eightnineteneleven";
        let literal = serde_json::to_string(plain).unwrap();
        let raw: &RawValue = serde_json::from_str(&literal).unwrap();
        let cut = |text: &Text<'_>| -> Vec<String> {
            let literal = |chunk: Chunk<'_>| {
                let mut literal = Bytes::new();
                chunk.write(&mut literal);
                serde_json::from_slice(&literal).unwrap()
            };
            chunks_between_words(text, 14).map(literal).collect()
        };
        let expected = ["one two\n", "three four ", "five six ", "seven eightnin", "eteneleven"];
        assert_eq!(cut(&Text::plain(plain)), expected);
        assert_eq!(cut(&Text::of(raw).unwrap()), expected);
    }

    #[test]
    fn an_escaped_backslash_before_an_n_is_not_a_line_feed() {
        let raw: &RawValue = serde_json::from_str(r#""aaaaaaaaaa\\n bbbbbbbbbbbbbbb""#).unwrap();
        let text = Text::of(raw).unwrap();
        let first = chunks_between_words(&text, 16).next();
        assert_eq!(first, Some(Chunk::Escaped(r"aaaaaaaaaa\\n ")));
    }

    #[test]
    fn an_escaped_character_counts_as_one() {
        let raw: &RawValue = serde_json::from_str(r#""é\n\u00e9\ud83e\uddea🧪""#).unwrap();
        assert_eq!(as_chunk(&Text::of(raw).unwrap()).characters(), 5);
        assert_eq!(as_chunk(&Text::plain("é🧪a")).characters(), 3);
    }
}
