//! The number of columns that text takes on a terminal.
//!
//! Terminals disagree about sequences of emoji. A line that is wider than expected wraps, and then
//! the rows that are redrawn are not where they are expected; so the wider reading counts.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The columns of a text.
pub(crate) fn of(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    graphemes(text).map(|(_, width)| width).sum()
}

/// The characters of a text, as a user counts them, and the columns of each.
pub(crate) fn graphemes(text: &str) -> impl Iterator<Item = (&str, usize)> {
    text.graphemes(true).map(|grapheme| {
        if grapheme.len() == 1 {
            return (grapheme, 1);
        }
        let parts = grapheme.chars().map(|letter| letter.width().unwrap_or(0)).sum();
        (grapheme, grapheme.width().max(parts))
    })
}

/// The longest beginning of a text that fits into a number of columns, and the rest.
pub(crate) fn split(text: &str, columns: usize) -> (&str, &str) {
    let mut used = 0;
    let mut end = 0;
    for (grapheme, width) in graphemes(text) {
        if used + width > columns {
            break;
        }
        used += width;
        end += grapheme.len();
    }
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// A text in at most this many columns; what is left out is replaced by an ellipsis.
pub(crate) fn shortened(text: &str, columns: usize) -> String {
    // Most texts are far shorter or far longer than what fits, and need not be measured.
    if text.len() <= columns && text.is_ascii() {
        return text.to_owned();
    }
    let (beginning, rest) = split(text, columns);
    if rest.is_empty() {
        return beginning.to_owned();
    }
    let (beginning, _) = split(beginning, columns.saturating_sub(1));
    format!("{}…", beginning.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!(of("abc"), 3);
        assert_eq!(of("漢字"), 4);
        assert_eq!(of("é"), 1);
        assert_eq!(of("❤️"), 2);
        // Terminals show a family as one character of two columns, or as three of them.
        assert_eq!(of("👩‍👩‍👧"), 6);
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(shortened("漢字漢字", 5), "漢字…");
        assert_eq!(shortened("漢字", 4), "漢字");
        assert_eq!(shortened("abcdef", 4), "abc…");
        assert_eq!(shortened("abc", 0), "…");
        assert_eq!(split("漢字", 3), ("漢", "字"));
    }
}
