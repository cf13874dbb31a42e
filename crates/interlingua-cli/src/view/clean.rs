//! Makes hostile text harmless: the text of a model or of a program must not control the terminal,
//! reorder what is shown, or contain what cannot be seen.
//!
//! The filter of the dialect `text` removes control characters and escape sequences. What is left
//! are characters that are invisible or change the direction of text. They are removed here, except
//! joiners where scripts and emoji need them. A command is shown with its hidden characters visible
//! instead, since they may matter to what it does.

use interlingua::dialect::text::TerminalFilter;
use interlingua_agents::permission::{is_hidden, visible};

/// The columns between two tab stops.
const TAB: usize = 4;

/// Cleans a text that is streamed in pieces.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cleaner {
    filter: TerminalFilter,
    /// The last character that was kept.
    last: Option<char>,
}

impl Cleaner {
    /// Appends the next piece of the text. Line feeds and tabs are kept.
    pub(crate) fn push(&mut self, piece: &str, out: &mut String) {
        for letter in piece.chars() {
            let Some(letter) = self.filter.shown(letter) else { continue };
            let kept = match letter {
                '\n' | '\t' | ' '..='~' => letter,
                // Joiners belong to words of many scripts, and to emoji.
                '\u{200c}' | '\u{200d}' if self.last.is_some_and(joins) => letter,
                _ if letter.is_whitespace() => ' ',
                _ if is_hidden(letter) => continue,
                _ => letter,
            };
            self.last = Some(kept);
            out.push(kept);
        }
    }
}

/// Whether a joiner may follow: not after ASCII, after a space, or after another joiner.
fn joins(last: char) -> bool {
    !last.is_ascii() && !last.is_whitespace() && !matches!(last, '\u{200c}' | '\u{200d}')
}

/// A whole text, cleaned.
pub(crate) fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    Cleaner::default().push(text, &mut out);
    out
}

/// A text on one line, cleaned: spaces are merged, and it has at most `limit` characters more than
/// are ever shown. The cost does not depend on the length of the text.
pub(crate) fn one_line(text: &str, limit: usize) -> String {
    let mut out = String::new();
    let mut cleaner = Cleaner::default();
    let mut clean = String::new();
    // A character that is removed counts too, so that hidden text cannot be of any length.
    for letter in text.trim_start().chars().take(limit.saturating_mul(4)) {
        clean.clear();
        cleaner.push(letter.encode_utf8(&mut [0; 4]), &mut clean);
        for letter in clean.chars() {
            match letter {
                ' ' | '\t' | '\n' if out.is_empty() || out.ends_with(' ') => {}
                '\t' | '\n' => out.push(' '),
                _ => out.push(letter),
            }
        }
        if out.len() > limit.saturating_mul(4) {
            break;
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// A command on one line. Hidden characters are shown as escapes, and line ends as `⏎`.
pub(crate) fn command(text: &str, limit: usize) -> String {
    let text: String = text.trim().chars().take(limit.saturating_mul(2)).collect();
    let shown = |line: &str| visible(&line.replace('\t', " ")).into_owned();
    text.lines().map(shown).collect::<Vec<_>>().join(" ⏎ ")
}

/// The line with tabs replaced by spaces.
pub(crate) fn expand_tabs(line: &str) -> std::borrow::Cow<'_, str> {
    if !line.contains('\t') {
        return line.into();
    }
    let mut out = String::with_capacity(line.len() + 16);
    let mut column = 0;
    for (grapheme, width) in super::width::graphemes(line) {
        if grapheme == "\t" {
            let spaces = TAB - column % TAB;
            out.extend(std::iter::repeat_n(' ', spaces));
            column += spaces;
        } else {
            out.push_str(grapheme);
            column += width;
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_controls_a_terminal_is_left() {
        assert_eq!(text("a\u{1b}[2Jb\rc\u{8}d\u{9b}31me\u{7f}\0"), "abcd31me");
        assert_eq!(text("a\u{202e}b\u{200b}c\u{feff}\u{2066}d\u{ad}"), "abcd");
        assert_eq!(text("\u{e0041}tag\u{2028}x\u{a0}y"), "tag x y");
        assert_eq!(text("a\u{200d}b 👩\u{200d}👩\u{200d}\u{200d}👧"), "ab 👩\u{200d}👩\u{200d}👧");
    }

    #[test]
    fn an_escape_sequence_may_be_split() {
        let (mut cleaner, mut out) = (Cleaner::default(), String::new());
        ["a\u{1b}", "[3", "1mb"].iter().for_each(|piece| cleaner.push(piece, &mut out));
        assert_eq!(out, "ab");
    }

    #[test]
    fn a_text_is_put_on_one_line() {
        assert_eq!(one_line("  a\n\n\tb  c \n", 80), "a b c");
        assert!(one_line(&"\u{200b}".repeat(100_000), 80).is_empty());
        assert_eq!(command("git status\nrm x\u{202e}\r", 80), "git status ⏎ rm x\\u{202e}");
    }

    #[test]
    fn tabs_reach_the_next_stop() {
        assert_eq!(expand_tabs("\ta\tb"), "    a   b");
    }
}
