//! What stands on the terminal, as far as the next line must know; and what may go there at all.

use crate::json::write::Bytes;

/// How far a sub-agent stands from the left.
const INDENT: &[u8] = b"    ";

/// What was written last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Part {
    /// Nothing yet.
    #[default]
    Nothing,
    /// A line of ours.
    Line,
    /// Text of the agent: the block of this number.
    Prose(u64),
    /// The end of a turn.
    TurnEnd,
}

/// Where on the terminal the next character goes.
#[derive(Debug, Clone, Default)]
pub(super) struct Screen {
    last: Part,
    /// The current line has text on it.
    mid_line: bool,
    /// The line above the current one is empty.
    below_blank: bool,
    /// What follows is said by a sub-agent.
    nested: bool,
    /// What the lines of a paragraph after its first one start with.
    hanging: &'static str,
    /// Where the text of this part stands in an escape sequence, which pieces may cut anywhere.
    escape: Escape,
}

/// How much of an escape sequence was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Escape {
    /// Nothing: this is text.
    #[default]
    Outside,
    /// The escape character.
    Begun,
    /// The start of a colour or a movement.
    Inside,
}

impl Screen {
    /// What was written last.
    pub(super) fn last(&self) -> Part {
        self.last
    }

    /// Whether text of the agent was written last, and its line goes on.
    pub(super) fn is_mid_prose(&self) -> bool {
        self.mid_line && matches!(self.last, Part::Prose(_))
    }

    /// Begins a part on a line of its own; only lines follow each other without an empty one.
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

    /// Says what the further lines of this part start with.
    pub(super) fn hang(&mut self, hanging: &'static str) {
        self.hanging = hanging;
    }

    /// Ends the line, if there is something on it.
    pub(super) fn end_line(&mut self, out: &mut Bytes) {
        if std::mem::take(&mut self.mid_line) {
            out.push(b'\n');
            self.below_blank = false;
        }
    }

    /// Leaves a line empty, unless that was done or nothing stands above it.
    fn blank_line(&mut self, out: &mut Bytes) {
        self.end_line(out);
        if self.last != Part::Nothing && !std::mem::replace(&mut self.below_blank, true) {
            out.push(b'\n');
        }
    }

    /// Writes text, without whatever would steer the terminal.
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
            // An empty line belongs to the paragraph too.
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

/// Whether a byte can go to the terminal whatever stands around it. The first byte of the control
/// characters above ASCII is not harmless, though other characters share it.
fn is_harmless(byte: u8) -> bool {
    byte >= 0x20 && byte != 0x7f && byte != 0xc2
}

/// The characters of a text that may go to a terminal: no control characters but line ends and
/// tabs, and no remains of colours.
pub(super) fn shown(text: &str) -> impl Iterator<Item = char> {
    let mut escape = Escape::default();
    text.chars().filter_map(move |character| escape.shown(character))
}

impl Escape {
    /// The next character of a text, if it may go to a terminal.
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

    fn written(pieces: &[&str]) -> String {
        let (mut screen, mut out) = (Screen::default(), Bytes::new());
        screen.begin(Part::Prose(1), false, &mut out);
        pieces.iter().for_each(|piece| screen.write(piece, &mut out));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_agent_cannot_steer_the_terminal() {
        assert_eq!(written(&["a\u{1b}[2J\u{1b}[1;1Hb\rc\u{8}d\u{7f}e\u{9b}f\0"]), "abcdef");
        assert_eq!(written(&["\u{1b}]0;title\u{7}"]), "]0;title");
        assert_eq!(
            written(&["cut \u{1b}", "[31mhere \u{1b}[", "0", "mand there"]),
            "cut here and there"
        );
    }

    #[test]
    fn lines_tabs_and_other_scripts_stay() {
        assert_eq!(written(&["£ 1\t日本\n\n", "é"]), "£ 1\t日本\n\né");
    }

    #[test]
    fn parts_stand_apart_by_one_empty_line() {
        let (mut screen, mut out) = (Screen::default(), Bytes::new());
        for part in [Part::Prose(1), Part::Line, Part::Line, Part::Prose(2)] {
            screen.begin(part, part == Part::Line, &mut out);
            screen.write("x\ny\n", &mut out);
        }
        assert_eq!(String::from_utf8(out).unwrap(), "x\ny\n\n    x\n    y\n    x\n    y\n\nx\ny\n");
    }
}
