//! Words: which of them are literal, and which commands their substitutions run.

use brush_parser::ParserOptions;
use brush_parser::word::{Parameter, ParameterExpr, WordPiece, WordPieceWithSource};

use super::lines;
use super::script::Word;

/// The options of the parser, for programs and for words.
pub(super) fn options() -> ParserOptions {
    ParserOptions {
        // Shells start without extended globs; `!(rm x)` is then a negated subshell.
        enable_extended_globbing: false,
        // The parser panics on `~99999999999999999999`; tildes are found here.
        tilde_expansion_at_word_start: false,
        ..ParserOptions::default()
    }
}

/// A word, and the commands that its expansion would run.
#[derive(Debug)]
pub(super) struct ReadWord {
    pub(super) word: Word,
    /// The texts of the command substitutions.
    pub(super) substitutions: Vec<String>,
    /// Whether the expansion may run commands that are not listed.
    pub(super) may_run_more: bool,
    /// Whether the word has a `}` that it does not open itself. In zsh, that ends a group.
    pub(super) closes_group: bool,
}

/// Reads a word as it is written, with its quotes.
pub(super) fn read(raw: &str) -> ReadWord {
    let parsed = if lines::has_costly_expansions(raw) {
        None
    } else {
        brush_parser::word::parse(raw, &options()).ok()
    };
    let Some(pieces) = parsed else {
        let word = Word::Unresolved { prefix: String::new() };
        let substitutions = Vec::new();
        return ReadWord { word, substitutions, may_run_more: true, closes_group: true };
    };
    let mut reader = Reader {
        raw,
        text: String::new(),
        literal: true,
        substitutions: Vec::new(),
        may_run_more: false,
        open_braces: 0,
        closes_group: false,
    };
    reader.pieces(&pieces, false);
    let Reader { text, literal, substitutions, may_run_more, closes_group, .. } = reader;
    // `{name}` before a redirection assigns a variable.
    let word = if literal && !names_variable(raw) {
        Word::Literal(text)
    } else if literal {
        Word::Unresolved { prefix: String::new() }
    } else {
        Word::Unresolved { prefix: text }
    };
    ReadWord { word, substitutions, may_run_more, closes_group }
}

/// Whether a word is a variable in braces, as in `{fd}> file`.
fn names_variable(raw: &str) -> bool {
    let name = raw.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    name.is_some_and(|name| name.starts_with(|c: char| c.is_alphabetic() || c == '_'))
}

/// Whether a parameter is only a name or a number. An index and an operand may contain commands.
fn is_plain(parameter: &ParameterExpr) -> bool {
    matches!(
        parameter,
        ParameterExpr::Parameter {
            parameter: Parameter::Named(_) | Parameter::Positional(_) | Parameter::Special(_),
            indirect: false,
        }
    )
}

struct Reader<'r> {
    raw: &'r str,
    /// The text so far; it no longer grows after the first part that is not literal.
    text: String,
    literal: bool,
    substitutions: Vec<String>,
    may_run_more: bool,
    /// The number of unquoted braces that are open.
    open_braces: usize,
    closes_group: bool,
}

impl Reader<'_> {
    fn pieces(&mut self, pieces: &[WordPieceWithSource], quoted: bool) {
        for (index, WordPieceWithSource { piece, .. }) in pieces.iter().enumerate() {
            let next = pieces.get(index + 1).map(|next| &next.piece);
            match piece {
                WordPiece::Text(text) if text == "$" => self.dollar(next),
                WordPiece::Text(text) if quoted => self.quoted_text(text),
                WordPiece::Text(text) => {
                    self.braces(text);
                    self.unquoted_text(text);
                }
                WordPiece::SingleQuotedText(text) => self.push(text),
                WordPiece::DoubleQuotedSequence(pieces) => self.pieces(pieces, true),
                WordPiece::EscapeSequence(escape) => self.escape(escape),
                // Shells and the parser disagree about where some substitutions end, and about
                // backslashes between backquotes.
                WordPiece::CommandSubstitution(text)
                | WordPiece::BackquotedCommandSubstitution(text) => {
                    self.is_expanded(true);
                    self.substitutions.push(text.clone());
                }
                WordPiece::GettextDoubleQuotedSequence(pieces) => {
                    self.is_expanded(true);
                    self.pieces(pieces, true);
                }
                // Of `$'…'`, dash reads the quotes, but not the escapes.
                WordPiece::AnsiCQuotedText(_) | WordPiece::ArithmeticExpression(_) => {
                    self.is_expanded(true);
                }
                WordPiece::ParameterExpansion(parameter) => {
                    self.is_expanded(!is_plain(parameter));
                }
                WordPiece::TildeExpansion(_) => self.is_expanded(false),
            }
        }
    }

    /// Notes that the word is not literal, and whether its expansion may run commands.
    fn is_expanded(&mut self, may_run_more: bool) {
        self.literal = false;
        self.may_run_more |= may_run_more;
    }

    fn push(&mut self, text: &str) {
        if self.literal {
            self.text.push_str(text);
        }
    }

    /// A dollar sign that starts no expansion known to the parser is literal at the end of a word
    /// or a quotation, and before a blank. Elsewhere, some shell may expand it.
    fn dollar(&mut self, next: Option<&WordPiece>) {
        let literal = match next {
            None => true,
            Some(WordPiece::Text(text)) => text.starts_with([' ', '\t', '\n', ')', '|']),
            Some(_) => false,
        };
        self.literal &= literal;
        self.push("$");
    }

    fn quoted_text(&mut self, text: &str) {
        self.literal &= !text.contains(['$', '`', '"']) && !text.contains("\\\n");
        self.push(text);
    }

    fn escape(&mut self, escape: &str) {
        let escaped = escape.strip_prefix('\\').unwrap_or_default();
        self.literal &= !escaped.is_empty() && escaped != "\n";
        self.push(escaped);
    }

    fn braces(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '{' => self.open_braces += 1,
                '}' if self.open_braces == 0 => self.closes_group = true,
                '}' => self.open_braces -= 1,
                _ => {}
            }
        }
    }

    /// Text outside quotes, up to the first character that is not literal there.
    fn unquoted_text(&mut self, text: &str) {
        // `[` is a command; as a word of its own it is no pattern.
        if self.raw == "[" {
            return self.push(text);
        }
        for c in text.chars() {
            let literal = match c {
                '*' | '?' | '[' | '$' | '`' | '\\' | '\'' | '"' => false,
                '(' | ')' | '<' | '>' | '|' | '&' | ';' | ' ' | '\t' | '\n' => false,
                // A tilde is expanded at the start of a word, and in what looks like an assignment.
                '~' => !self.text.is_empty() && !self.text.ends_with([':', '=']),
                // `a{b,c}` and `{1..3}` become several words; `@{1}` does not.
                '{' => !self.raw.contains(',') && !self.raw.contains(".."),
                // In zsh, `=name` is the path of a program.
                '=' => !self.text.is_empty(),
                _ => true,
            };
            self.literal &= literal;
            if !self.literal {
                return;
            }
            self.text.push(c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(raw: &str) -> Option<String> {
        read(raw).word.literal().map(str::to_owned)
    }

    #[test]
    fn quotes_are_removed_from_literal_words() {
        let words = [
            ("git", "git"),
            ("r\"m\"", "rm"),
            ("\\rm", "rm"),
            ("'a b'", "a b"),
            ("a\\ b", "a b"),
            ("\"a\\\"b\\$c\"", "a\"b$c"),
            ("\"a\\nb\"", "a\\nb"),
            ("''", ""),
            ("HEAD~1", "HEAD~1"),
            ("stash@{0}", "stash@{0}"),
            ("'foo$'", "foo$"),
            ("\"foo$\"", "foo$"),
            ("foo$", "foo$"),
            ("--format='%h %s'", "--format=%h %s"),
            ("{}", "{}"),
            ("[", "["),
            ("a\u{a0}b", "a\u{a0}b"),
        ];
        for (raw, text) in words {
            assert_eq!(literal(raw).as_deref(), Some(text), "{raw}");
        }
    }

    #[test]
    fn what_a_shell_expands_is_not_literal() {
        let words = [
            "$x",
            "\"$x\"",
            "${x}",
            "a*",
            "a?",
            "[ab]",
            "~",
            "~/x",
            "~root",
            "a=~/x",
            "a:~",
            "{a,b}",
            "{1..3}",
            "$'a'",
            "$\"a\"",
            "$(x)",
            "`x`",
            "\"`x`\"",
            "$((1))",
            "$[1]",
            "=ls",
            "{fd}",
            "@(a)",
            "\"$%\"",
            "~99999999999999999999999",
        ];
        for raw in words {
            assert_eq!(literal(raw), None, "{raw}");
        }
    }

    #[test]
    fn an_unresolved_word_keeps_what_is_known_of_it() {
        let prefix = |raw| match read(raw).word {
            Word::Unresolved { prefix } => prefix,
            Word::Literal(text) => panic!("{text} is literal"),
        };
        assert_eq!(prefix("--x=$y"), "--x=");
        assert_eq!(prefix("'a b'c*"), "a bc");
        assert_eq!(prefix("$x"), "");
    }

    #[test]
    fn substitutions_are_found_in_quotes_too() {
        assert_eq!(read("a$(b c)\"d`e`\"").substitutions, ["b c", "e"]);
    }
}
