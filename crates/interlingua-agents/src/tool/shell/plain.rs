//! Output as plain text: escape sequences are removed, invalid UTF-8 is replaced.
//!
//! The pieces may be cut anywhere. A sequence that does not end is text again after a while, so
//! that it cannot hide the rest of the output.

/// How many characters a sequence may have: one that ends in a letter, and one with a text such as
/// a title or a link.
const MAX_SEQUENCE: usize = 64;
const MAX_STRING: usize = 4096;

/// Converts output to plain text, piece by piece.
#[derive(Debug, Default)]
pub(super) struct Plain {
    /// The start of a character that is not complete.
    incomplete: Vec<u8>,
    state: State,
    /// The text of a sequence that is not complete.
    sequence: String,
    /// Whether the last character was a carriage return.
    returned: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// After an escape character.
    Escape,
    /// In `ESC [ … letter`.
    Control,
    /// In a sequence that ends in a bell or in `ESC \`.
    String,
    /// After an escape character in such a sequence.
    StringEscape,
}

const ESCAPE: char = '\u{1b}';
const BELL: char = '\u{7}';

impl Plain {
    /// Converts the next piece.
    pub(super) fn push(&mut self, piece: &[u8]) -> String {
        let mut bytes = std::mem::take(&mut self.incomplete);
        bytes.extend_from_slice(piece);
        let mut text = String::with_capacity(bytes.len());
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            chunk.valid().chars().for_each(|character| self.character(character, &mut text));
            let invalid = chunk.invalid();
            let may_continue =
                std::str::from_utf8(invalid).is_err_and(|problem| problem.error_len().is_none());
            if chunks.peek().is_none() && may_continue {
                self.incomplete = invalid.to_vec();
            } else if !invalid.is_empty() {
                self.character(char::REPLACEMENT_CHARACTER, &mut text);
            }
        }
        text
    }

    /// The end of the output.
    pub(super) fn finish(&mut self) -> String {
        let mut text = String::new();
        if !std::mem::take(&mut self.incomplete).is_empty() {
            self.character(char::REPLACEMENT_CHARACTER, &mut text);
        }
        if matches!(self.state, State::String | State::StringEscape) {
            self.abandon(&mut text);
        }
        text
    }

    fn character(&mut self, character: char, text: &mut String) {
        match self.state {
            State::Text => self.text(character, text),
            State::Escape => {
                self.state = match character {
                    '[' => State::Control,
                    ']' | 'P' | '^' | '_' | 'X' => State::String,
                    // Further characters follow, then a last one.
                    ' '..='/' => State::Escape,
                    ESCAPE => State::Escape,
                    _ => State::Text,
                }
            }
            State::Control => match character {
                '@'..='~' => self.end(),
                ' '..='?' if self.sequence.len() < MAX_SEQUENCE => self.sequence.push(character),
                other => {
                    self.end();
                    self.character(other, text);
                }
            },
            State::String => match character {
                BELL => self.end(),
                ESCAPE => self.state = State::StringEscape,
                // None of these sequences goes over a line end, except by mistake.
                '\n' => {
                    self.abandon(text);
                    self.character(character, text);
                }
                other => {
                    self.sequence.push(other);
                    if self.sequence.len() > MAX_STRING {
                        self.abandon(text);
                    }
                }
            },
            State::StringEscape if character == '\\' => self.end(),
            State::StringEscape => {
                self.abandon(text);
                self.state = State::Escape;
                self.character(character, text);
            }
        }
    }

    fn text(&mut self, character: char, text: &mut String) {
        let returned = std::mem::take(&mut self.returned);
        match character {
            // A line that is written again, as by a progress bar, becomes another line.
            '\r' => self.returned = true,
            '\n' => text.push('\n'),
            other => {
                if returned {
                    text.push('\n');
                }
                match other {
                    ESCAPE => self.state = State::Escape,
                    '\t' => text.push('\t'),
                    other if other.is_control() => {}
                    other => text.push(other),
                }
            }
        }
    }

    /// A sequence is complete.
    fn end(&mut self) {
        self.sequence.clear();
        self.state = State::Text;
    }

    /// What looked like a sequence is text.
    fn abandon(&mut self, text: &mut String) {
        text.push_str(&std::mem::take(&mut self.sequence));
        self.state = State::Text;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(bytes: &[u8]) -> String {
        let mut plain = Plain::default();
        let mut text = plain.push(bytes);
        text.push_str(&plain.finish());
        text
    }

    #[test]
    fn sequences_are_removed() {
        let cases: [(&[u8], &str); 9] = [
            (b"\x1b[31mred\x1b[0m!", "red!"),
            (b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "alink"),
            (b"a\x1b(Bb\x1b=c\x1bMd", "abcd"),
            (b"1%\r2%\r\n3\r\n", "1%\n2%\n3\n"),
            (b"a\x08b\x00c\td", "abc\td"),
            (b"a\xff\xc3", "a\u{fffd}\u{fffd}"),
            (b"\x1b]never\nends", "never\nends"),
            (b"\x1b[1\xc3\xa4", "ä"),
            (b"\x1bP never ends", " never ends"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(plain(bytes), expected, "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn every_split_gives_the_same_text() {
        let bytes = "ä\u{1b}[1;31m€\u{1b}]0;t\u{1b}\\x\r\ny\r\u{1b}[0mz😀\n".as_bytes();
        let whole = plain(bytes);
        assert_eq!(whole, "ä€x\ny\nz😀\n");
        for at in 0..bytes.len() {
            let mut plain = Plain::default();
            let mut text = plain.push(&bytes[..at]);
            text.push_str(&plain.push(&bytes[at..]));
            text.push_str(&plain.finish());
            assert_eq!(text, whole, "{at}");
        }
    }

    #[test]
    fn a_sequence_without_an_end_hides_nothing_and_costs_little() {
        let mut bytes = b"\x1b]".to_vec();
        bytes.extend(std::iter::repeat_n(b'x', 100_000));
        assert_eq!(plain(&bytes).len(), 100_000);
    }
}
