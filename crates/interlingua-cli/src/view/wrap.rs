//! Wraps styled text at words.
//!
//! A line may also be broken between wide characters, since Chinese and Japanese have no spaces
//! between words. A word that is wider than the line is broken anywhere.

use super::style::{Line, Span, Style};
use super::width;

/// Wraps spans into lines of at most this many columns. A line feed in a span ends a line.
pub(crate) fn wrap(spans: &[Span], columns: usize) -> Vec<Line> {
    let mut wrapper = Wrapper { columns: columns.max(1), ..Wrapper::default() };
    for span in spans {
        for (index, part) in span.text.split('\n').enumerate() {
            if index > 0 {
                wrapper.end_line();
            }
            wrapper.text(part, span.style);
        }
    }
    wrapper.end_line();
    wrapper.lines
}

/// Breaks text into lines of at most this many columns, anywhere. Code is shown like this, since
/// its spaces matter.
pub(crate) fn chop(line: &Line, columns: usize) -> Vec<Line> {
    if line.width() <= columns {
        return vec![line.clone()];
    }
    let mut lines = vec![Line::default()];
    let mut used = 0;
    for span in &line.spans {
        for (grapheme, width) in width::graphemes(&span.text) {
            if used + width > columns && used > 0 {
                lines.push(Line::default());
                used = 0;
            }
            used += width;
            if let Some(line) = lines.last_mut() {
                line.push(grapheme, span.style);
            }
        }
    }
    lines
}

#[derive(Debug, Default)]
struct Wrapper {
    columns: usize,
    lines: Vec<Line>,
    line: Line,
    used: usize,
    /// The spaces after the line, which are dropped if it ends here.
    spaces: Line,
    spaces_width: usize,
    /// The word that is being read. Its pieces may have several styles.
    word: Vec<Span>,
    word_width: usize,
}

impl Wrapper {
    fn text(&mut self, text: &str, style: Style) {
        let mut rest = text;
        while !rest.is_empty() {
            let blank = rest.starts_with(' ');
            let end = rest.find(|letter: char| (letter == ' ') != blank).unwrap_or(rest.len());
            let (run, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
            rest = after;
            if blank {
                self.end_word();
                self.spaces.push(run, style);
                self.spaces_width += run.len();
            } else if run.is_ascii() && self.word.is_empty() && !rest.is_empty() {
                // Most words are whole, and need not be kept.
                self.place(&[(run, style)], run.len());
            } else if run.is_ascii() {
                self.word.push(Span::new(run, style));
                self.word_width += run.len();
            } else {
                self.wide_run(run, style);
            }
        }
    }

    /// Adds text without spaces in which wide characters are words of their own.
    fn wide_run(&mut self, run: &str, style: Style) {
        for (grapheme, width) in width::graphemes(run) {
            let ideograph = width == 2;
            if ideograph {
                self.end_word();
            }
            match self.word.last_mut() {
                Some(last) if last.style == style => last.text.push_str(grapheme),
                _ => self.word.push(Span::new(grapheme, style)),
            }
            self.word_width += width;
            if ideograph {
                self.end_word();
            }
        }
    }

    fn end_word(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let word = std::mem::take(&mut self.word);
        let width = std::mem::take(&mut self.word_width);
        let pieces: Vec<_> = word.iter().map(|span| (&*span.text, span.style)).collect();
        self.place(&pieces, width);
    }

    /// Puts a word on the line, or on the next one.
    fn place(&mut self, word: &[(&str, Style)], width: usize) {
        if self.used > 0 && self.used + self.spaces_width + width > self.columns {
            self.break_line();
        }
        let indent = std::mem::take(&mut self.spaces_width).min(self.columns / 2);
        for span in self.spaces.spans.drain(..) {
            self.line.push(span.text.get(..indent).unwrap_or(&span.text), span.style);
        }
        self.used += indent;
        let fits = self.used + width <= self.columns;
        for (text, style) in word {
            if fits {
                self.line.push(text, *style);
            } else {
                self.long_word(text, *style);
            }
        }
        if fits {
            self.used += width;
        }
    }

    fn long_word(&mut self, text: &str, style: Style) {
        for (grapheme, width) in width::graphemes(text) {
            if self.used + width > self.columns && self.used > 0 {
                self.break_line();
            }
            self.line.push(grapheme, style);
            self.used += width;
        }
    }

    fn break_line(&mut self) {
        self.lines.push(std::mem::take(&mut self.line));
        self.used = 0;
        self.spaces = Line::default();
        self.spaces_width = 0;
    }

    fn end_line(&mut self) {
        self.end_word();
        self.break_line();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, columns: usize) -> Vec<String> {
        let lines = wrap(&[Span::new(text, Style::PLAIN)], columns);
        lines.iter().map(|line| line.to_terminal(crate::view::style::Palette::None)).collect()
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("one  two\nthree", 20), ["one  two", "three"]);
        assert_eq!(wrapped("", 7), [""]);
        assert_eq!(wrapped("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
        assert_eq!(wrapped("漢字漢字漢字", 5), ["漢字", "漢字", "漢字"]);
        assert_eq!(wrapped("a 漢字bc", 5), ["a 漢", "字bc"]);
    }

    #[test]
    fn a_word_in_several_styles_stays_together() {
        let spans = [Span::new("a b", Style::PLAIN), Span::new("old", Style::BOLD)];
        assert_eq!(wrap(&spans, 4).len(), 2);
    }

    #[test]
    fn code_is_broken_anywhere() {
        let line = Line::new("let x =", Style::PLAIN).with(" 1;", Style::CYAN);
        let widths: Vec<_> = chop(&line, 4).iter().map(Line::width).collect();
        assert_eq!(widths, [4, 4, 2]);
    }
}
