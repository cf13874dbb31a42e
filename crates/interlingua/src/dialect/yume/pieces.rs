//! Text cut so that no line grows over the limit.
//!
//! Knows how long a string is once it is a JSON literal, and where such a literal may be cut: on a
//! character's border, and never inside an escape or between the two halves of a surrogate pair. A
//! literal from a frame is cut as it stands, without being unescaped. Knows no record.

use crate::json::Text;
use crate::json::write::{self, Bytes};

/// A part of a text, in the form in which the text was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece<'t> {
    /// A part of a literal's body, escapes and all.
    Escaped(&'t str),
    /// A part of plain text.
    Plain(&'t str),
}

impl<'t> Piece<'t> {
    /// Writes the piece as a string literal.
    #[inline]
    pub(super) fn write(self, out: &mut Bytes) {
        out.push(b'"');
        self.write_body(out);
        out.push(b'"');
    }

    /// Writes what stands between the quotes of the literal.
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

    /// How many characters the text has that the piece stands for.
    pub(super) fn characters(self) -> usize {
        match self {
            Self::Escaped(body) => {
                let count = |(run, _): (Option<&str>, _)| run.map_or(1, |run| run.chars().count());
                runs(body).map(count).sum()
            }
            Self::Plain(plain) => plain.chars().count(),
        }
    }

    /// How many bytes the text has that the piece stands for.
    pub(super) fn plain_length(self) -> usize {
        match self {
            Self::Escaped(body) => units(body).map(|unit| unit.plain).sum(),
            Self::Plain(plain) => plain.len(),
        }
    }

    /// How many bytes the body of the literal has.
    pub(super) fn encoded_length(self) -> usize {
        match self {
            Self::Escaped(body) => body.len(),
            Self::Plain(plain) => plain.bytes().map(escaped_width).sum(),
        }
    }

    /// Parts the piece: as much as fits, and the rest. Something is always taken.
    fn split(self, room: usize) -> (Self, Option<Self>) {
        let body = self.body();
        // A byte becomes six at most.
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
            Some((start, rest)) => (self.alike(start), Some(self.alike(rest))),
        }
    }

    /// As [`Piece::split`], but at the end of a line or else of a word, where one ends in the second
    /// half of what fits.
    fn split_between_words(self, room: usize) -> (Self, Option<Self>) {
        let (start, rest) = self.split(room);
        let end = rest.and_then(|_| start.last_boundary());
        match end.and_then(|end| self.body().split_at_checked(end)) {
            Some((start, rest)) => (self.alike(start), Some(self.alike(rest))),
            None => (start, rest),
        }
    }

    /// Where the last line in the second half of the piece ends, or else the last word.
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

    fn alike<'p>(self, body: &'p str) -> Piece<'p> {
        match self {
            Self::Escaped(_) => Piece::Escaped(body),
            Self::Plain(_) => Piece::Plain(body),
        }
    }
}

/// A text as one piece.
pub(super) fn whole<'t>(text: &'t Text<'_>) -> Piece<'t> {
    match text {
        Text::Plain(plain) => Piece::Plain(plain),
        _ => Piece::Escaped(text.body()),
    }
}

/// The pieces of a text, none of which needs more room than there is; one empty one for no text.
pub(super) fn pieces<'t>(text: &'t Text<'_>, room: usize) -> impl Iterator<Item = Piece<'t>> {
    let mut rest = Some(whole(text));
    std::iter::from_fn(move || {
        let (piece, after) = rest.take()?.split(room);
        rest = after;
        Some(piece)
    })
}

/// The pieces of a text that was not streamed: none needs more room than there is, and as far as
/// possible each ends where a line or a word does.
pub(super) fn pieces_between_words<'t>(
    text: &'t Text<'_>,
    room: usize,
) -> impl Iterator<Item = Piece<'t>> {
    let mut rest = Some(whole(text));
    std::iter::from_fn(move || {
        let (piece, after) = rest.take()?.split_between_words(room);
        rest = after;
        Some(piece)
    })
}

/// As much of a text as there is room for, and how many bytes of it were left out.
pub(super) fn start<'t>(text: &'t Text<'_>, room: usize) -> (Piece<'t>, usize) {
    let (piece, rest) = whole(text).split(room);
    (piece, rest.map_or(0, Piece::plain_length))
}

/// The same text; or the start of it, where it needs more room than there is.
pub(super) fn bounded<'t>(text: &'t Text<'_>, room: usize) -> Result<Text<'t>, String> {
    match whole(text).split(room) {
        (_, None) => Ok(text.borrowed()),
        (piece, Some(_)) => {
            let mut literal = Bytes::new();
            piece.write(&mut literal);
            Err(serde_json::from_slice(&literal).unwrap_or_default())
        }
    }
}

/// Where a literal's body may be cut.
fn escaped_end(body: &str, room: usize) -> usize {
    let mut end = 0;
    for unit in units(body) {
        if end + unit.written > room {
            if unit.is_run {
                // A run of plain characters may be cut inside.
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

/// Where plain text may be cut.
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

/// How many bytes a byte of plain text becomes in a literal.
fn escaped_width(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        0x00..=0x1f => 6,
        _ => 1,
    }
}

/// A part of a literal's body that may not be cut, or a run of plain characters that may.
struct Unit {
    /// How many bytes it has in the literal.
    written: usize,
    /// How many bytes it stands for.
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

/// The runs of a literal's body, each as it stands, and between them the escapes as `None`; with how
/// many bytes each has.
fn runs(body: &str) -> impl Iterator<Item = (Option<&str>, usize)> {
    let mut at = 0;
    units(body).map(move |unit| {
        let run = body.get(at..at + unit.written).filter(|_| unit.is_run);
        at += unit.written;
        (run, unit.written)
    })
}

/// The escape at the start of some bytes; both halves of a surrogate pair are one.
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
        pieces(text, room)
            .map(|piece| {
                let mut literal = Bytes::new();
                piece.write(&mut literal);
                assert!(literal.len() <= room + 2, "{piece:?} is too long");
                assert_eq!(piece.encoded_length() + 2, literal.len());
                let plain = serde_json::from_slice::<String>(&literal).unwrap();
                assert_eq!(piece.plain_length(), plain.len());
                plain
            })
            .collect()
    }

    #[test]
    fn every_room_gives_the_same_text() {
        let plain = "a\"b\\c\nd\u{1}é€🧪 plain text after that, and more of it 🧪🧪";
        let literal = serde_json::to_string(plain).unwrap();
        let raw: &RawValue = serde_json::from_str(&literal).unwrap();
        for room in 12..80 {
            assert_eq!(cut(&Text::plain(plain), room).concat(), plain);
            assert_eq!(cut(&Text::of(raw).unwrap(), room).concat(), plain);
        }
    }

    #[test]
    fn an_escape_is_never_cut() {
        let raw: &RawValue = serde_json::from_str(r#""ab\n\u00e9\ud83e\uddeacd\\e""#).unwrap();
        for room in 12..30 {
            assert_eq!(cut(&Text::of(raw).unwrap(), room).concat(), "ab\né🧪cd\\e");
        }
        assert_eq!(cut(&Text::of(raw).unwrap(), 14), ["ab\né", "🧪cd", "\\e"]);
    }

    #[test]
    fn no_text_is_one_empty_piece() {
        assert_eq!(cut(&Text::plain(""), 10), [""]);
    }

    #[test]
    fn what_was_left_out_is_counted() {
        let text = Text::plain("ééééééééééé");
        let (piece, left) = start(&text, 13);
        assert_eq!((piece, left), (Piece::Plain("éééééé"), 10));
        assert_eq!(bounded(&Text::plain("a name"), 100), Ok(Text::plain("a name")));
        assert_eq!(bounded(&text, 13), Err("éééééé".to_owned()));
    }

    #[test]
    fn unstreamed_text_is_cut_after_lines_and_words() {
        let plain = "one two\nthree four five six seven eightnineteneleven";
        let literal = serde_json::to_string(plain).unwrap();
        let raw: &RawValue = serde_json::from_str(&literal).unwrap();
        let cut = |text: &Text<'_>| -> Vec<String> {
            let literal = |piece: Piece<'_>| {
                let mut literal = Bytes::new();
                piece.write(&mut literal);
                serde_json::from_slice(&literal).unwrap()
            };
            pieces_between_words(text, 14).map(literal).collect()
        };
        let expected = ["one two\n", "three four ", "five six ", "seven eightnin", "eteneleven"];
        assert_eq!(cut(&Text::plain(plain)), expected);
        assert_eq!(cut(&Text::of(raw).unwrap()), expected);
    }

    #[test]
    fn an_escaped_backslash_before_an_n_is_no_line() {
        let raw: &RawValue = serde_json::from_str(r#""aaaaaaaaaa\\n bbbbbbbbbbbbbbb""#).unwrap();
        let text = Text::of(raw).unwrap();
        let first = pieces_between_words(&text, 16).next();
        assert_eq!(first, Some(Piece::Escaped(r"aaaaaaaaaa\\n ")));
    }

    #[test]
    fn characters_are_counted_however_they_are_written() {
        let raw: &RawValue = serde_json::from_str(r#""é\n\u00e9\ud83e\uddea🧪""#).unwrap();
        assert_eq!(whole(&Text::of(raw).unwrap()).characters(), 5);
        assert_eq!(whole(&Text::plain("é🧪a")).characters(), 3);
    }
}
