//! Styled text: spans, lines, and their escape sequences.
//!
//! Colours are the sixteen of the terminal, so that its theme decides how they look, on a light
//! background and on a dark one.

use super::width;

/// How a piece of text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Style {
    pub(crate) color: Color,
    pub(crate) bold: bool,
    pub(crate) dim: bool,
    pub(crate) italic: bool,
    pub(crate) underline: bool,
    pub(crate) strike: bool,
}

/// A colour of the terminal's palette.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Color {
    #[default]
    Default,
    Red,
    Green,
    Yellow,
    Blue,
    Magenta,
    Cyan,
}

impl Style {
    pub(crate) const PLAIN: Self = Self {
        color: Color::Default,
        bold: false,
        dim: false,
        italic: false,
        underline: false,
        strike: false,
    };
    pub(crate) const BOLD: Self = Self { bold: true, ..Self::PLAIN };
    pub(crate) const DIM: Self = Self { dim: true, ..Self::PLAIN };
    pub(crate) const RED: Self = Self::of(Color::Red);
    pub(crate) const GREEN: Self = Self::of(Color::Green);
    pub(crate) const YELLOW: Self = Self::of(Color::Yellow);
    pub(crate) const CYAN: Self = Self::of(Color::Cyan);

    /// Plain text in a colour.
    pub(crate) const fn of(color: Color) -> Self {
        Self { color, ..Self::PLAIN }
    }

    /// This style, with what the other one adds.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            color: if other.color == Color::Default { self.color } else { other.color },
            bold: self.bold || other.bold,
            dim: self.dim || other.dim,
            italic: self.italic || other.italic,
            underline: self.underline || other.underline,
            strike: self.strike || other.strike,
        }
    }

    /// The parameters of the escape sequence that switches it on; empty for plain text.
    fn parameters(self, palette: Palette) -> String {
        if self == Self::PLAIN {
            return String::new();
        }
        let color = match self.color {
            Color::Default => None,
            Color::Red => Some("31"),
            Color::Green => Some("32"),
            Color::Yellow => Some("33"),
            Color::Blue => Some("34"),
            Color::Magenta => Some("35"),
            Color::Cyan => Some("36"),
        };
        let attributes = [
            (self.bold, "1"),
            (self.dim, "2"),
            (self.italic, "3"),
            (self.underline, "4"),
            (self.strike, "9"),
        ];
        let attributes = attributes.into_iter().filter(|(on, _)| *on).map(|(_, code)| code);
        let color = color.filter(|_| palette == Palette::Colors);
        let codes: Vec<&str> = match palette {
            Palette::None => Vec::new(),
            Palette::Attributes | Palette::Colors => attributes.chain(color).collect(),
        };
        codes.join(";")
    }
}

/// Which escape sequences for styles the terminal gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Palette {
    /// None: the terminal is dumb.
    None,
    /// Bold, dim and the like, but no colours (`NO_COLOR`).
    Attributes,
    /// Everything.
    Colors,
}

/// Text in one style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) text: String,
    pub(crate) style: Style,
}

impl Span {
    pub(crate) fn new(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }
}

/// A line of the terminal. Its text contains no control characters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Line {
    pub(crate) spans: Vec<Span>,
}

impl Line {
    pub(crate) fn new(text: impl AsRef<str>, style: Style) -> Self {
        Self::default().with(text, style)
    }

    /// The line, with more text at its end.
    #[must_use]
    pub(crate) fn with(mut self, text: impl AsRef<str>, style: Style) -> Self {
        self.push(text, style);
        self
    }

    pub(crate) fn push(&mut self, text: impl AsRef<str>, style: Style) {
        let text = text.as_ref();
        match self.spans.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.style == style => last.text.push_str(text),
            _ => self.spans.push(Span::new(text, style)),
        }
    }

    /// The line, with other text before it.
    #[must_use]
    pub(crate) fn after(self, prefix: &Line) -> Self {
        let mut line = prefix.clone();
        self.spans.into_iter().for_each(|span| line.push(span.text, span.style));
        line
    }

    /// The line, with this style added to all of its text.
    #[must_use]
    pub(crate) fn styled(mut self, style: Style) -> Self {
        self.spans.iter_mut().for_each(|span| span.style = style.and(span.style));
        self
    }

    pub(crate) fn width(&self) -> usize {
        self.spans.iter().map(|span| width::of(&span.text)).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The line for the terminal, without trailing spaces.
    pub(crate) fn to_terminal(&self, palette: Palette) -> String {
        let mut out = String::new();
        let last = self.spans.iter().rposition(|span| !span.text.trim_end().is_empty());
        for (index, span) in self.spans.iter().enumerate() {
            let text = match last {
                Some(last) if index < last => &*span.text,
                Some(last) if index == last => span.text.trim_end(),
                _ => break,
            };
            let parameters = span.style.parameters(palette);
            if parameters.is_empty() {
                out.push_str(text);
            } else {
                out.push_str(&format!("\u{1b}[{parameters}m{text}\u{1b}[0m"));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_style_is_switched_off_where_it_ends() {
        let bold_red = Style { bold: true, ..Style::RED };
        let line = Line::new("a", bold_red).with("b ", Style::PLAIN).with("  ", Style::DIM);
        assert_eq!(line.to_terminal(Palette::Colors), "\u{1b}[1;31ma\u{1b}[0mb");
        assert_eq!(line.to_terminal(Palette::Attributes), "\u{1b}[1ma\u{1b}[0mb");
        assert_eq!(line.to_terminal(Palette::None), "ab");
    }
}
