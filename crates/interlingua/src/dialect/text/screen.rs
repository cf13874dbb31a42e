//! Tracks the position on the terminal, and removes control characters and escape sequences.

use crate::json::write::Bytes;

/// The indentation of a sub-agent's lines.
const INDENT: &[u8] = b"    ";

/// A part of the log. It begins on a new line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Part {
    /// Nothing yet.
    #[default]
    Nothing,
    /// A line that the encoder made.
    Line,
    /// Text of a message: the block with this number.
    Prose(u64),
    /// The end of a turn.
    TurnEnd,
}

/// The position on the terminal at which the next character is written.
#[derive(Debug, Clone, Default)]
pub(super) struct Screen {
    last: Part,
    /// The current line has text on it.
    mid_line: bool,
    /// The line above the current one is empty.
    below_blank: bool,
    /// The current part comes from a sub-agent, so its lines are indented.
    nested: bool,
    /// The prefix of every further line of the current part.
    hanging: &'static str,
    /// The position in an escape sequence, which may be split between deltas.
    escape: Escape,
}

/// Removes what would control a terminal from a text that is streamed in pieces: control
/// characters, and escape sequences, which may be split between pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TerminalFilter(Escape);

impl TerminalFilter {
    /// The next character of the text, if it may be written to a terminal. Line feeds and tabs are
    /// the only control characters that may.
    pub fn shown(&mut self, character: char) -> Option<char> {
        self.0.shown(character)
    }
}

/// The position in an escape sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Escape {
    /// In text, outside an escape sequence.
    #[default]
    Outside,
    /// After the escape character.
    Begun,
    /// In a control sequence (CSI), such as a colour or a cursor movement.
    Inside,
}

impl Screen {
    /// The part that was written last.
    pub(super) fn last(&self) -> Part {
        self.last
    }

    /// Whether the current line contains text of a message, and has not ended.
    pub(super) fn is_mid_prose(&self) -> bool {
        self.mid_line && matches!(self.last, Part::Prose(_))
    }

    /// Begins a part on a new line, with an empty line before it unless both parts are lines.
    pub(super) fn begin(&mut self, part: Part, nested: bool, out: &mut Bytes) {
        let apart = !matches!((self.last, part), (Part::Nothing, _) | (Part::Line, Part::Line));
        self.end_line(out);
        if apart {
            self.blank_line(out);
        }
        self.last = part;
        self.nested = nested;
        self.hanging = "";
        self.escape = Escape::Outside;
    }

    /// Sets the prefix of every further line of the current part.
    pub(super) fn set_hanging(&mut self, hanging: &'static str) {
        self.hanging = hanging;
    }

    /// Ends the current line, if it contains text.
    pub(super) fn end_line(&mut self, out: &mut Bytes) {
        if std::mem::take(&mut self.mid_line) {
            out.push(b'\n');
            self.below_blank = false;
        }
    }

    /// Writes an empty line, unless there is one already, or nothing above it.
    fn blank_line(&mut self, out: &mut Bytes) {
        self.end_line(out);
        if self.last != Part::Nothing && !std::mem::replace(&mut self.below_blank, true) {
            out.push(b'\n');
        }
    }

    /// Writes text, without anything that would control the terminal.
    pub(super) fn write(&mut self, text: &str, out: &mut Bytes) {
        if text.is_empty() {
            return;
        }
        if self.escape == Escape::Outside && text.bytes().all(is_harmless) {
            self.begin_line(out);
            out.extend_from_slice(text.as_bytes());
            return;
        }
        for character in text.chars() {
            match self.escape.shown(character) {
                Some('\n') => self.new_line(out),
                Some(character) => {
                    self.begin_line(out);
                    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                None => {}
            }
        }
    }

    fn new_line(&mut self, out: &mut Bytes) {
        let mark = self.hanging.trim_end();
        if !self.mid_line && !mark.is_empty() {
            // An empty line of the part has the prefix too.
            self.mid_line = true;
            if self.nested {
                out.extend_from_slice(INDENT);
            }
            out.extend_from_slice(mark.as_bytes());
        }
        self.below_blank = !self.mid_line;
        self.mid_line = false;
        out.push(b'\n');
    }

    fn begin_line(&mut self, out: &mut Bytes) {
        if std::mem::replace(&mut self.mid_line, true) {
            return;
        }
        if self.nested {
            out.extend_from_slice(INDENT);
        }
        out.extend_from_slice(self.hanging.as_bytes());
    }
}

/// Whether a byte is harmless to the terminal in any context. 0xc2 is not: C1 control characters
/// start with it, although others do too.
fn is_harmless(byte: u8) -> bool {
    byte >= 0x20 && byte != 0x7f && byte != 0xc2
}

/// The characters of a text that may be written to a terminal: no escape sequences, and no control
/// characters except line ends and tabs.
pub(super) fn shown(text: &str) -> impl Iterator<Item = char> {
    let mut escape = Escape::default();
    text.chars().filter_map(move |character| escape.shown(character))
}

impl Escape {
    /// The next character of a text, if it may be written to a terminal.
    fn shown(&mut self, character: char) -> Option<char> {
        let before = std::mem::take(self);
        match (before, character) {
            (Self::Begun, '[') | (Self::Inside, ' '..='?') => {
                *self = Self::Inside;
                None
            }
            (Self::Inside, '@'..='~') => None,
            (_, '\u{1b}') => {
                *self = Self::Begun;
                None
            }
            (_, '\n' | '\t') => Some(character),
            (_, character) => Some(character).filter(|it| !it.is_control()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(deltas: &[&str]) -> String {
        let (mut screen, mut out) = (Screen::default(), Bytes::new());
        screen.begin(Part::Prose(1), false, &mut out);
        deltas.iter().for_each(|delta| screen.write(delta, &mut out));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_agent_cannot_control_the_terminal() {
        assert_eq!(written(&["a\u{1b}[2J\u{1b}[1;1Hb\rc\u{8}d\u{7f}e\u{9b}f\0"]), "abcdef");
        assert_eq!(written(&["\u{1b}]0;title\u{7}"]), "]0;title");
        assert_eq!(
            written(&["cut \u{1b}", "[31mhere \u{1b}[", "0", "mand there"]),
            "cut here and there"
        );
    }

    #[test]
    fn line_ends_tabs_and_other_scripts_are_kept() {
        assert_eq!(written(&["£ 1\t日本\n\n", "é"]), "£ 1\t日本\n\né");
    }

    #[test]
    fn parts_are_separated_by_one_empty_line() {
        let (mut screen, mut out) = (Screen::default(), Bytes::new());
        for part in [Part::Prose(1), Part::Line, Part::Line, Part::Prose(2)] {
            screen.begin(part, part == Part::Line, &mut out);
            screen.write("x\ny\n", &mut out);
        }
        assert_eq!(String::from_utf8(out).unwrap(), "x\ny\n\n    x\n    y\n    x\n    y\n\nx\ny\n");
    }
}
