//! Makes text visible that a terminal or a reader would not see as it is.
//!
//! A permission request quotes text of a model. Control characters can erase or overwrite what
//! precedes them, direction marks can reorder it, and characters without a width or with that of a
//! space can hide where a word ends. A user who is asked must see what would run.

use std::borrow::Cow;
use std::fmt::Write;

/// Replaces every character that is invisible, that moves the cursor, or that looks like a space
/// without being one, by an escape such as `\u{202e}`. Line feeds and spaces stay.
///
/// A backslash stays as it is: the text remains readable, and an escape that is part of the text
/// only makes it look more suspicious than it is.
pub fn visible(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find(is_hidden) else { return Cow::Borrowed(text) };
    let (plain, rest) = text.split_at(first);
    let mut shown = String::with_capacity(text.len() + 16);
    shown.push_str(plain);
    for letter in rest.chars() {
        match letter {
            '\t' => shown.push_str("\\t"),
            '\r' => shown.push_str("\\r"),
            '\u{1b}' => shown.push_str("\\e"),
            _ if is_hidden(letter) => {
                // Writing to a string cannot fail.
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(letter));
            }
            _ => shown.push(letter),
        }
    }
    Cow::Owned(shown)
}

/// Whether a character is not seen as what it is.
pub fn is_hidden(letter: char) -> bool {
    match letter {
        '\n' | ' ' => false,
        '!'..='~' => false,
        _ if letter.is_control() => true,
        // Spaces that a shell does not treat as such, and separators of lines that it ignores.
        _ if letter.is_whitespace() => true,
        // Soft hyphens and joiners, marks of direction, fillers, and selectors of variants have no
        // width. Tags are whole alphabets without a glyph.
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{2800}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0e}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readable_text_is_unchanged() {
        for text in ["", "git status && ls -l", "echo 'é 漢字 👩‍👩‍👧 ❤️'\nls"] {
            let without_joiners = text.replace('\u{200d}', "");
            assert!(matches!(visible(&without_joiners), Cow::Borrowed(_)), "{text}");
        }
    }

    #[test]
    fn hidden_characters_are_escaped() {
        let cases = [
            ("rm x\rls  ", "rm x\\rls  "),
            ("ls\u{1b}[2K\u{1b}[1Gecho", "ls\\e[2K\\e[1Gecho"),
            ("echo a\u{202e}b", "echo a\\u{202e}b"),
            ("git\u{a0}status", "git\\u{a0}status"),
            ("a\u{200b}b\u{feff}c\u{ad}", "a\\u{200b}b\\u{feff}c\\u{ad}"),
            ("x\u{8}\u{7f}\u{9b}31m", "x\\u{8}\\u{7f}\\u{9b}31m"),
            ("one\ttwo\u{2028}three", "one\\ttwo\\u{2028}three"),
            ("tag\u{e0041}\u{e0042}", "tag\\u{e0041}\\u{e0042}"),
            ("\0", "\\u{0}"),
        ];
        for (text, expected) in cases {
            assert_eq!(visible(text), expected, "{text:?}");
        }
    }

    #[test]
    fn nothing_hidden_remains() {
        let all: String = (0..=0x10_ffff).filter_map(char::from_u32).collect();
        let shown = visible(&all);
        assert_eq!(shown.chars().find(|letter| is_hidden(*letter)), None);
        assert!(shown.chars().filter(|letter| letter.is_control()).all(|letter| letter == '\n'));
    }
}
