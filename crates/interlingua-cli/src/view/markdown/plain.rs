//! A preview of plain text, to which more is appended.
//!
//! Most of what a model streams is a paragraph, word by word. As long as nothing in it can be a mark
//! of Markdown, a word more changes the last line of the preview and no other, so only that line is
//! wrapped again. All else is rendered as a whole.

use super::super::style::{Line, Span, Style};
use super::super::wrap::wrap;

/// The last preview of a line of the source that has not ended.
#[derive(Debug)]
pub(super) struct Plain {
    columns: usize,
    /// The length of the source that was rendered.
    rendered: usize,
    /// The number of lines before the last one.
    before: usize,
    /// Where the text of the last line begins in the source.
    last: usize,
}

impl Plain {
    /// Remembers a preview of the source, if more of it only changes the last line.
    pub(super) fn of(source: &str, lines: &[Line], columns: usize) -> Option<Self> {
        let ([.., last], true) = (lines, begins_as_text(source)) else { return None };
        let [Span { text, style: Style::PLAIN }] = &*last.spans else { return None };
        let before_last = source.trim_end_matches(' ').strip_suffix(&**text)?;
        let is_whole = before_last.is_empty() || before_last.ends_with(' ');
        if !is_whole || text.starts_with(' ') || !is_inert(text) {
            return None;
        }
        let (rendered, before) = (source.len(), lines.len() - 1);
        Some(Self { columns, rendered, before, last: before_last.len() })
    }

    /// Renders what was appended to the source: the number of lines that are the same, and those that
    /// follow them. `None` if it has to be rendered as a whole.
    pub(super) fn extend(&mut self, source: &str) -> Option<(usize, Vec<Line>)> {
        is_inert(source.get(self.rendered..)?).then_some(())?;
        let text = source.get(self.last..)?;
        let (same, lines) = (self.before, wrap(&[Span::new(text, Style::PLAIN)], self.columns));
        let [ended @ .., _] = &*lines else { return None };
        let mut rest = text;
        for line in ended {
            let [Span { text, .. }] = &*line.spans else { return None };
            rest = rest.trim_start_matches(' ').strip_prefix(&**text)?;
        }
        self.last = source.len() - rest.trim_start_matches(' ').len();
        self.before += ended.len();
        self.rendered = source.len();
        Some((same, lines))
    }
}

/// Whether a line begins a paragraph, whatever follows. A number may be that of a list.
fn begins_as_text(source: &str) -> bool {
    let after_number = source.trim_start_matches(|letter: char| letter.is_ascii_digit());
    source.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && after_number.starts_with(|letter: char| letter == ' ' || letter.is_ascii_alphabetic())
        // It may be a row of a table.
        && !source.contains('|')
}

/// Whether a text is no part of a mark of Markdown: it neither is one, nor completes one before it,
/// such as the semicolon of an entity or the bracket of a link.
fn is_inert(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b" ,.:?'\"/".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::super::Markdown;

    /// The preview after each piece, put together from its changes, and how often only its end was
    /// rendered.
    fn previews(pieces: &[String], columns: usize) -> usize {
        let (mut markdown, mut shown, mut partly) = (Markdown::new(columns), Vec::new(), 0);
        for piece in pieces {
            if !markdown.push(piece).is_empty() {
                shown.clear();
            }
            let (same, lines) = markdown.preview_changes();
            partly += usize::from(same > 0);
            shown.truncate(same);
            shown.extend(lines);
            assert_eq!(shown, markdown.preview(), "{piece:?} in {pieces:?}");
        }
        partly
    }

    fn pieces(text: &str, length: usize) -> Vec<String> {
        let letters: Vec<char> = text.chars().collect();
        letters.chunks(length).map(|piece| piece.iter().collect()).collect()
    }

    const TEXTS: [&str; 12] = [
        "Plain words, of which there are many: some short, some considerably longer. More follow.",
        "A **bold** word, `code` and a [link](https://example.com/a_b) before more plain words.",
        "An *open mark, and a `tick, and words that follow them until the line is full, and more.",
        "Entities &amp; others &lt; and &notone; are text, as is a < b, but <b>not</b> this one.",
        "12 words begin with a number, and others follow until the line is full of them, at last.",
        "12. is the number of an item, whose text goes on until the line is full of it, at last.",
        "- An item, with words until the line is full of them.\n- Another one, with as many words.",
        "Two lines\nof one paragraph, with words until it is full, and more.\n\nAnother one, as long.",
        "a | b and more words\n--- | ---\nc | d and so on, until the line is full of words, at last",
        "Averyveryverylongwordwhichdoesnotfitintooneline and anotherextraordinarilylongone follow.",
        "Spaces   between    words     and at the end of a line      are kept, or dropped where it ends.",
        "A title, which is underlined below, and has enough words for two lines\n---\nand a text.",
    ];

    #[test]
    fn the_end_of_a_preview_is_what_the_whole_would_be() {
        for text in TEXTS {
            for columns in [20, 33, 80] {
                for length in [1, 2, 3, 5, 11] {
                    previews(&pieces(text, length), columns);
                }
            }
        }
    }

    #[test]
    fn of_plain_text_only_the_end_is_rendered() {
        let words: Vec<String> = (0..400).map(|number| format!("word {number} ")).collect();
        let partly = previews(&words, 100);
        assert!(partly > 350, "{partly}");
    }

    #[test]
    fn a_preview_is_the_same_in_any_split() {
        let config = proptest::test_runner::Config::with_cases(300);
        let text =
            proptest::collection::vec("[a-zA-Z0-9 ,.*_`&;<>()\\[\\]|#-]{1,12}|\n|[a-z ]{9}", 1..40);
        proptest::proptest!(config, |(pieces in text, columns in 20_usize..60)| {
            previews(&pieces, columns);
        });
    }
}
