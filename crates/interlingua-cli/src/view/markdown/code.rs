//! Colours code: comments, strings, numbers and keywords.
//!
//! This knows how these look in families of languages, not the grammars of languages. That is
//! enough to find one's way in the few lines that an agent shows, and it costs microseconds. A
//! highlighter with grammars (syntect) takes 27 ms for the first line of each language, 0.16 ms for
//! each further one, and 2.7 MB of the program, which would be seen and felt.

use super::super::style::{Color, Line, Style};

const COMMENT: Style = Style { dim: true, italic: true, ..Style::PLAIN };
const STRING: Style = Style::GREEN;
const NUMBER: Style = Style::CYAN;
const KEYWORD: Style = Style::of(Color::Magenta);

/// The family that a language belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Family {
    /// Not coloured.
    #[default]
    Plain,
    /// Braces, `//` and `/* */`.
    Braces,
    /// `#` comments; Python also has strings of several lines.
    Hash,
    Python,
    Shell,
    /// `--` comments.
    Sql,
    /// `<!-- -->` comments.
    Markup,
    Diff,
}

/// What continues from the previous line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Inside {
    #[default]
    Code,
    /// A comment or a string that ends with this.
    Until(&'static str, Style),
}

/// Colours the lines of one block of code.
#[derive(Debug, Clone, Default)]
pub(crate) struct Highlighter {
    family: Family,
    inside: Inside,
}

impl Highlighter {
    /// The highlighter for a language, by the name behind the fence.
    pub(crate) fn of(language: &str) -> Self {
        let name = language.split([' ', ',', '{', ':']).next().unwrap_or_default();
        let family = match name.to_ascii_lowercase().as_str() {
            "rust" | "rs" | "c" | "h" | "cpp" | "c++" | "cc" | "hpp" | "cs" | "csharp" | "java"
            | "kotlin" | "kt" | "scala" | "swift" | "go" | "golang" | "js" | "javascript"
            | "jsx" | "ts" | "typescript" | "tsx" | "mjs" | "php" | "dart" | "json" | "jsonc"
            | "json5" | "css" | "scss" | "less" | "proto" | "zig" | "groovy" | "solidity" => {
                Family::Braces
            }
            "python" | "py" | "python3" => Family::Python,
            "sh" | "bash" | "zsh" | "shell" | "console" | "fish" => Family::Shell,
            "toml" | "yaml" | "yml" | "ruby" | "rb" | "perl" | "pl" | "make" | "makefile"
            | "dockerfile" | "docker" | "ini" | "conf" | "r" | "elixir" | "ex" | "nix"
            | "cmake" | "hcl" | "terraform" | "tf" | "julia" => Family::Hash,
            "sql" | "lua" | "haskell" | "hs" | "ada" | "elm" => Family::Sql,
            "html" | "xml" | "svg" | "vue" | "svelte" => Family::Markup,
            "diff" | "patch" => Family::Diff,
            _ => Family::Plain,
        };
        Self { family, inside: Inside::Code }
    }

    /// Colours the next line.
    pub(crate) fn line(&mut self, text: &str) -> Line {
        match self.family {
            Family::Plain => Line::new(text, Style::PLAIN),
            Family::Diff => Line::new(text, diff_style(text)),
            _ => self.code(text),
        }
    }

    fn code(&mut self, text: &str) -> Line {
        let mut line = Line::default();
        let mut rest = text;
        let mut after_word = false;
        while let Some(first) = rest.chars().next() {
            let (length, style) = match self.inside {
                Inside::Until(end, style) => (self.length_until(rest, end), style),
                Inside::Code => self.token(rest, first, after_word),
            };
            let (token, after) = rest.split_at_checked(length.max(1)).unwrap_or((rest, ""));
            after_word = token.chars().next_back().is_some_and(is_word);
            line.push(token, style);
            rest = after;
        }
        line
    }

    /// The length of the rest of a comment or a string; notes whether it ends here.
    fn length_until(&mut self, rest: &str, end: &'static str) -> usize {
        match rest.find(end) {
            Some(at) => {
                self.inside = Inside::Code;
                at + end.len()
            }
            None => rest.len(),
        }
    }

    /// The length and the style of the next token.
    fn token(&mut self, rest: &str, first: char, after_word: bool) -> (usize, Style) {
        if let Some((start, end)) = self.long_token(rest) {
            let style = if start.starts_with(['"', '\'']) { STRING } else { COMMENT };
            self.inside = Inside::Until(end, style);
            return (start.len(), style);
        }
        if self.is_line_comment(rest, after_word) {
            return (rest.len(), COMMENT);
        }
        match first {
            '"' => (string_length(rest, '"'), STRING),
            '`' if self.family == Family::Braces => (string_length(rest, '`'), STRING),
            '\'' if let Some(length) = self.quoted_length(rest) => (length, STRING),
            '0'..='9' if !after_word => (run(rest, |it| is_word(it) || it == '.'), NUMBER),
            _ if is_word(first) => {
                let length = run(rest, is_word);
                let word = rest.get(..length).unwrap_or_default();
                let keyword = !after_word && self.is_keyword(word);
                (length, if keyword { KEYWORD } else { Style::PLAIN })
            }
            _ => (first.len_utf8(), Style::PLAIN),
        }
    }

    /// A comment or a string that may have several lines: how it starts, and how it ends.
    fn long_token(&self, rest: &str) -> Option<(&'static str, &'static str)> {
        let forms: &[(&str, &str)] = match self.family {
            Family::Braces => &[("/*", "*/")],
            Family::Python => &[("\"\"\"", "\"\"\""), ("'''", "'''")],
            Family::Markup => &[("<!--", "-->")],
            _ => &[],
        };
        forms.iter().copied().find(|(start, _)| rest.starts_with(start))
    }

    fn is_line_comment(&self, rest: &str, after_word: bool) -> bool {
        match self.family {
            Family::Braces => rest.starts_with("//"),
            // `$#`, `a#b` and the like are no comments.
            Family::Shell => rest.starts_with('#') && !after_word,
            Family::Hash | Family::Python => rest.starts_with('#'),
            Family::Sql => rest.starts_with("--"),
            _ => false,
        }
    }

    /// The length of a text in single quotes. A lifetime of Rust and an apostrophe are none.
    fn quoted_length(&self, rest: &str) -> Option<usize> {
        let length = string_length(rest, '\'');
        let closed = rest.get(..length)?.len() > 1 && rest.get(..length)?.ends_with('\'');
        (closed && self.family != Family::Markup).then_some(length)
    }

    fn is_keyword(&self, word: &str) -> bool {
        let words = match self.family {
            Family::Braces => BRACES,
            Family::Python | Family::Hash => PYTHON,
            Family::Shell => SHELL,
            Family::Sql => return SQL.contains(&&*word.to_ascii_lowercase()),
            _ => return false,
        };
        words.contains(&word)
    }
}

fn diff_style(line: &str) -> Style {
    match line.chars().next() {
        Some('+') => Style::GREEN,
        Some('-') => Style::RED,
        Some('@') => Style::CYAN,
        _ => Style::PLAIN,
    }
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The length of the characters at the start that belong together.
fn run(rest: &str, belongs: impl Fn(char) -> bool) -> usize {
    rest.find(|letter| !belongs(letter)).unwrap_or(rest.len())
}

/// The length of a string that starts here: up to its end, or that of the line.
fn string_length(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, letter) in rest.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if letter == quote => return at + quote.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

const BRACES: &[&str] = &[
    "abstract",
    "as",
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "crate",
    "default",
    "defer",
    "delete",
    "do",
    "else",
    "enum",
    "export",
    "extends",
    "extern",
    "false",
    "finally",
    "fn",
    "for",
    "from",
    "func",
    "function",
    "go",
    "if",
    "impl",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "loop",
    "match",
    "mod",
    "move",
    "mut",
    "new",
    "nil",
    "null",
    "override",
    "package",
    "private",
    "protected",
    "pub",
    "public",
    "range",
    "ref",
    "return",
    "select",
    "self",
    "Self",
    "static",
    "struct",
    "super",
    "switch",
    "this",
    "throw",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "undefined",
    "unsafe",
    "use",
    "using",
    "val",
    "var",
    "void",
    "where",
    "while",
    "yield",
];

const PYTHON: &[&str] = &[
    "and", "as", "assert", "async", "await", "begin", "break", "class", "continue", "def", "del",
    "do", "elif", "else", "end", "except", "False", "false", "finally", "for", "from", "global",
    "if", "import", "in", "is", "lambda", "module", "nil", "None", "nonlocal", "not", "null", "or",
    "pass", "raise", "require", "return", "self", "True", "true", "try", "unless", "while", "with",
    "yield",
];

const SHELL: &[&str] = &[
    "case", "do", "done", "elif", "else", "esac", "export", "fi", "for", "function", "if", "in",
    "local", "return", "then", "until", "while",
];

const SQL: &[&str] = &[
    "and", "as", "begin", "by", "case", "commit", "create", "data", "delete", "distinct", "do",
    "drop", "else", "end", "from", "function", "group", "having", "if", "import", "in", "insert",
    "into", "is", "join", "left", "let", "limit", "local", "module", "not", "null", "on", "or",
    "order", "return", "select", "set", "table", "then", "type", "union", "update", "values",
    "where", "while", "with",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn colored(language: &str, lines: &[&str]) -> Vec<(String, Style)> {
        let mut highlighter = Highlighter::of(language);
        let spans = lines.iter().flat_map(|line| highlighter.line(line).spans);
        spans.filter(|it| it.style != Style::PLAIN).map(|it| (it.text, it.style)).collect()
    }

    #[test]
    fn comments_strings_numbers_and_keywords_are_coloured() {
        let found = colored("rust", &["let x: &'a str = \"a \\\" b\"; // 1", "x1 + 0x1f"]);
        let expected =
            [("let", KEYWORD), ("\"a \\\" b\"", STRING), ("// 1", COMMENT), ("0x1f", NUMBER)];
        assert_eq!(found, expected.map(|(text, style)| (text.to_owned(), style)));
    }

    #[test]
    fn a_comment_continues_on_the_next_line() {
        let found = colored("c", &["a /* b", "c", "d */ return"]);
        let expected = [("/* b", COMMENT), ("c", COMMENT), ("d */", COMMENT), ("return", KEYWORD)];
        assert_eq!(found, expected.map(|(text, style)| (text.to_owned(), style)));
    }

    #[test]
    fn text_of_an_unknown_language_is_unchanged() {
        assert_eq!(colored("", &["let it's \"x\" # 1"]), []);
        assert_eq!(Highlighter::of("python").line("漢'字' é").width(), 8);
    }
}
