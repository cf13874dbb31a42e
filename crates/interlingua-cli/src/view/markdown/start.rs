//! How a line of Markdown starts: which block it begins, if it begins one.

/// How a line starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Start<'a> {
    /// A fence, with what is written behind it.
    Fence {
        mark: char,
        length: usize,
        info: &'a str,
    },
    Heading,
    /// A thematic break.
    Rule,
    Quote,
    /// A list item, with its number if it has one, and its text.
    Item {
        number: Option<&'a str>,
        mark_length: usize,
        text: &'a str,
    },
    /// Anything else: text that continues a paragraph or begins one.
    Text,
}

impl<'a> Start<'a> {
    /// Looks at a line without its indentation.
    pub(super) fn of(line: &'a str) -> Self {
        let Some(first) = line.chars().next() else { return Self::Text };
        match first {
            '`' | '~' => fence(line, first),
            '#' => heading(line),
            '>' => Self::Quote,
            '-' | '*' | '_' if is_rule(line, first) => Self::Rule,
            '-' | '*' | '+' => item(line, None, 1),
            '0'..='9' => numbered(line),
            _ => Self::Text,
        }
    }
}

fn fence(line: &str, mark: char) -> Start<'_> {
    let info = line.trim_start_matches(mark);
    let length = line.len() - info.len();
    // Backticks behind a fence make it code within a line.
    if length < 3 || (mark == '`' && info.contains('`')) {
        return Start::Text;
    }
    Start::Fence { mark, length, info: info.trim() }
}

fn heading(line: &str) -> Start<'_> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    if level <= 6 && (text.is_empty() || text.starts_with([' ', '\t'])) {
        Start::Heading
    } else {
        Start::Text
    }
}

fn is_rule(line: &str, mark: char) -> bool {
    let marks = line.chars().filter(|letter| *letter == mark).count();
    marks >= 3 && line.chars().all(|letter| letter == mark || letter == ' ')
}

fn numbered(line: &str) -> Start<'_> {
    let digits = line.len() - line.trim_start_matches(|it: char| it.is_ascii_digit()).len();
    let (number, rest) = line.split_at_checked(digits).unwrap_or((line, ""));
    if digits > 9 || !rest.starts_with(['.', ')']) {
        return Start::Text;
    }
    item(line, Some(number), digits + 1)
}

fn item<'a>(line: &'a str, number: Option<&'a str>, mark: usize) -> Start<'a> {
    let rest = line.get(mark..).unwrap_or_default();
    let text = rest.trim_start_matches([' ', '\t']);
    let spaces = rest.len() - text.len();
    if spaces == 0 && !rest.is_empty() {
        return Start::Text;
    }
    // After five spaces, the text is indented code, which begins after the first one.
    let spaces = if spaces > 4 || text.is_empty() { 1 } else { spaces };
    Start::Item { number, mark_length: mark + spaces, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_recognised_by_their_start() {
        assert_eq!(Start::of("```rust"), Start::Fence { mark: '`', length: 3, info: "rust" });
        assert_eq!(Start::of("``` a `b`"), Start::Text);
        assert_eq!(Start::of("## x"), Start::Heading);
        assert_eq!(Start::of("#x"), Start::Text);
        assert_eq!(Start::of("* * *"), Start::Rule);
        assert_eq!(Start::of("**bold**"), Start::Text);
        assert_eq!(Start::of("-1"), Start::Text);
        assert_eq!(Start::of("- a"), Start::Item { number: None, mark_length: 2, text: "a" });
        let item = Start::Item { number: Some("12"), mark_length: 4, text: "a" };
        assert_eq!(Start::of("12. a"), item);
        assert_eq!(Start::of("2026 was"), Start::Text);
    }
}
