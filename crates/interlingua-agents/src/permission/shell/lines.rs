//! Lines that are not given to the parser: too long, nested too deeply, with characters that shells
//! treat differently, or with input that the parser cannot handle.

use super::{MAX_EXPANSIONS, MAX_LENGTH, MAX_OPENERS};

/// Words that start a compound command, and nest without any bracket.
const OPENING_WORDS: [&str; 13] = [
    "if", "then", "elif", "else", "while", "until", "for", "do", "case", "select", "function",
    "coproc", "time",
];

/// Why a line is not parsed.
pub(super) fn unparsable(line: &str) -> Option<&'static str> {
    if line.len() > MAX_LENGTH {
        return Some("it is too long to be judged");
    }
    if line.contains(|c: char| c.is_control() && c != '\n' && c != '\t') {
        return Some("it contains control characters");
    }
    // Shells and the parser join a line that ends in a backslash with the next one.
    let joined = line.replace("\\\n", "");
    if openers(line) > MAX_OPENERS || openers(&joined) > MAX_OPENERS {
        return Some("it is nested too deeply to be judged");
    }
    // The parser reads the index of `a[…]=` as an expression, like that of `${a[…]}`.
    let indexes =
        |pair: &[u8]| matches!(pair, [name, b'['] if name.is_ascii_alphanumeric() || *name == b'_');
    if expansions(&joined) > 1 && joined.as_bytes().windows(2).any(indexes) {
        return Some("it has indexes with expansions");
    }
    if !has_plain_delimiters(&joined) {
        return Some("it has a here-document with an unusual delimiter");
    }
    if mixes_documents_and_expansions(&joined) {
        return Some("it has a here-document and expansions or an arithmetic command");
    }
    if has_oversized_descriptor(&joined) {
        return Some("it redirects a descriptor that does not exist");
    }
    None
}

/// Whether a line is short and has nothing that nests, so that parsing it needs little stack. A thread
/// with a stack of its own takes longer than to parse such a line.
pub(super) fn is_flat(line: &str) -> bool {
    line.len() <= 1024 && openers(&line.replace("\\\n", "")) == 0
}

/// The number of tokens that may open a nested construct.
fn openers(line: &str) -> usize {
    let brackets = line.bytes().filter(|byte| matches!(byte, b'(' | b'{' | b'[' | b'`' | b'!'));
    let words = line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    brackets.count() + words.filter(|word| OPENING_WORDS.contains(word)).count()
}

/// Whether the expansions of a word are not parsed, because the parser could take exponential time:
/// it tries each of a dozen forms of `${a[…]}` anew, and so for every expansion in the index.
pub(super) fn has_costly_expansions(text: &str) -> bool {
    let count = expansions(text);
    count > MAX_EXPANSIONS || (count > 1 && text.contains("${") && text.contains('['))
}

/// The number of expansions that may contain others.
fn expansions(text: &str) -> usize {
    let opens = |pair: &&[u8]| matches!(pair, [b'$', b'(' | b'{' | b'[']);
    let dollars = text.as_bytes().windows(2).filter(opens).count();
    dollars + text.bytes().filter(|byte| *byte == b'`').count() / 2
}

/// Whether the delimiters of all here-documents are a name, which may be quoted. For `<<E$( ;` the
/// parser allocates memory without end.
fn has_plain_delimiters(line: &str) -> bool {
    let mut rest = line;
    while let Some((_, found)) = rest.split_once("<<") {
        rest = found.trim_start_matches('<');
        let plain = match found.len() - rest.len() {
            0 => starts_with_plain_delimiter(rest),
            // `<<<` is a here-string.
            1 => true,
            _ => false,
        };
        if !plain {
            return false;
        }
    }
    true
}

/// Whether there is an expansion or an arithmetic command before a here-document, or on the same line. For an unfinished
/// expansion, as in `a <<E $(b #`, the parser panics; behind `((`, it takes a document for an operator, and the
/// command that follows for its end. The text of a document may contain anything.
fn mixes_documents_and_expansions(line: &str) -> bool {
    let is_document = |at: &usize| !line.get(..*at).is_some_and(|before| before.ends_with('<'));
    let starts = line.match_indices("<<").map(|(at, _)| at).filter(is_document);
    let documents = starts.filter(|at| !line.get(at + 2..).is_some_and(|it| it.starts_with('<')));
    let Some(last) = documents.last() else { return false };
    let end = line.get(last..).and_then(|rest| rest.find('\n')).map_or(line.len(), |at| last + at);
    let command = line.get(..end).unwrap_or(line);
    ["$(", "${", "$[", "`", "<(", ">(", "(("].iter().any(|opener| command.contains(opener))
}

fn starts_with_plain_delimiter(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text).trim_start_matches([' ', '\t']);
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let name = quote.map_or(text, |quote| text.trim_start_matches(quote));
    let after = name.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    let end = match quote {
        Some(quote) => after.strip_prefix(quote),
        None => Some(after),
    };
    let ends = |rest: &str| {
        rest.is_empty() || rest.starts_with([' ', '\t', '\n', ';', '|', '&', ')', '<', '>'])
    };
    after.len() < name.len() && end.is_some_and(ends)
}

/// Whether a redirection starts with a number that is too large for a descriptor. The parser panics
/// if it does not fit into 32 bits.
fn has_oversized_descriptor(line: &str) -> bool {
    let mut digits = 0;
    line.bytes().any(|byte| {
        if byte.is_ascii_digit() {
            digits += 1;
            return false;
        }
        let oversized = digits > 4 && matches!(byte, b'<' | b'>');
        digits = 0;
        oversized
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_oversized_descriptor_is_found_across_lines() {
        for line in ["99999999999>x", "99999\\\n999999>x", "a 12345<b"] {
            assert!(unparsable(line).is_some(), "{line}");
        }
        for line in ["2>x", "echo 99999999999 >x", "date 20260101"] {
            assert_eq!(unparsable(line), None, "{line}");
        }
    }

    #[test]
    fn unusual_delimiters_are_found() {
        let unusual = [
            "<<E1$(\t; then ",
            "a <<$x",
            "a <<E'F'",
            "a << \\E",
            "a <<",
            "a <<<<<'E'",
            "a <<''",
            "a <<'E",
            "a <<E\\\n$(",
        ];
        for line in unusual {
            assert!(unparsable(line).is_some(), "{line}");
        }
        for line in ["a <<E\nx\nE", "a <<-'E' | b", "a << \"E\";b", "a <<<x", "a <<< $(b)", "a<b"] {
            assert_eq!(unparsable(line), None, "{line}");
        }
    }

    #[test]
    fn expansions_around_documents_are_found() {
        let mixed = [
            "9<<E>x${x:-$x(${x}#<\nE\n",
            "a <<E $(b\nE",
            "$(a <<E\nE\n)",
            "$(\na <<E\nE",
            "`a <<E\nE",
        ];
        for line in mixed {
            assert!(unparsable(line).is_some(), "{line}");
        }
        for line in ["a <<E\n$(b) ${c\nE", "a <<E $b\nE", "a <<< $(b)"] {
            assert_eq!(unparsable(line), None, "{line}");
        }
    }

    #[test]
    fn control_characters_are_rejected() {
        for line in ["git status\r", "a\0b", "a\u{b}b", "a\u{1b}[2J", "a\u{85}b"] {
            assert!(unparsable(line).is_some(), "{line:?}");
        }
        assert_eq!(unparsable("a\n\tb\u{a0}c"), None);
    }
}
