//! Exact replacements in the bytes of a file.
//!
//! Models write `\n`; in a file whose lines end in `\r\n`, both texts are converted first. What is
//! not replaced stays as it is, byte for byte, also a byte order mark and invalid UTF-8.

use memchr::memmem;
use serde::Deserialize;

/// How many line numbers of occurrences are listed.
const LISTED: usize = 10;

/// A replacement.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Replacement {
    pub(super) old_string: String,
    pub(super) new_string: String,
    pub(super) replace_all: Option<bool>,
}

/// A content after a replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Replaced {
    pub(super) content: Vec<u8>,
    /// How many occurrences were replaced.
    pub(super) count: usize,
    /// Where the first one starts.
    pub(super) at: usize,
    /// The length of what took its place.
    pub(super) length: usize,
}

/// Makes a replacement, whose result has a maximum size. The error explains to a model why it
/// cannot be made.
pub(super) fn replace(
    content: &[u8],
    edit: &Replacement,
    max_size: usize,
) -> Result<Replaced, String> {
    if edit.old_string.is_empty() {
        return Err("`old_string` is empty; use Write to create a file".to_owned());
    }
    if edit.old_string == edit.new_string {
        return Err("`old_string` and `new_string` are the same".to_owned());
    }
    let has_crlf = lines_end_in_crlf(content);
    let (mut old, mut new) = (edit.old_string.clone(), edit.new_string.clone());
    if has_crlf {
        (old, new) = (to_crlf(&old), to_crlf(&new));
    }
    if has_crlf && memmem::find(content, old.as_bytes()).is_none() {
        // A part of the file may have other line ends than the rest.
        (old, new) = (edit.old_string.clone(), edit.new_string.clone());
    }
    // They are counted and not collected: there may be as many as the file has bytes.
    let found = || memmem::find_iter(content, old.as_bytes());
    let (count, all) = (found().count(), edit.replace_all == Some(true));
    let Some(first) = found().next() else { return Err(not_found(content, &edit.old_string)) };
    if count > 1 && !all {
        let listed: Vec<_> =
            found().take(LISTED).map(|at| line_number(content, at).to_string()).collect();
        let more = if count > LISTED { ", …" } else { "" };
        return Err(format!(
            "`old_string` occurs {count} times, at the lines {}{more}; add lines around it until it \
             is unique, or set `replace_all`",
            listed.join(", ")
        ));
    }
    // Before it is built, since many long replacements would exceed the memory.
    let size = (content.len() - count * old.len()).saturating_add(count.saturating_mul(new.len()));
    if size > max_size {
        return Err(format!("the file would have {size} bytes; at most {max_size} are possible"));
    }
    let content = splice(content, found(), size, old.len(), new.as_bytes());
    Ok(Replaced { content, count, at: first, length: new.len() })
}

fn splice(
    content: &[u8],
    found: impl Iterator<Item = usize>,
    size: usize,
    length: usize,
    new: &[u8],
) -> Vec<u8> {
    let mut result = Vec::with_capacity(size);
    let mut from = 0;
    for at in found {
        result.extend_from_slice(content.get(from..at).unwrap_or_default());
        result.extend_from_slice(new);
        from = at + length;
    }
    result.extend_from_slice(content.get(from..).unwrap_or_default());
    result
}

/// Why a text was not found, with the most likely cause.
fn not_found(content: &[u8], old: &str) -> String {
    let trimmed: Vec<_> = old.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let text = String::from_utf8_lossy(content);
    let lines = text.lines().enumerate();
    let similar = trimmed.first().and_then(|first| {
        let at = lines.into_iter().find(|(_, line)| line.trim() == *first)?;
        Some(at.0 + 1)
    });
    match similar {
        Some(line) => format!(
            "`old_string` does not occur in the file; line {line} is like its first line, so the \
             white space or the lines after it may differ: read the file again"
        ),
        None => "`old_string` does not occur in the file; read the file again".to_owned(),
    }
}

/// Whether most lines end in `\r\n`.
pub(super) fn lines_end_in_crlf(content: &[u8]) -> bool {
    let all = memchr::memchr_iter(b'\n', content).count();
    let crlf = memmem::find_iter(content, b"\r\n").count();
    crlf * 2 > all
}

/// Converts line ends to `\r\n`.
pub(super) fn to_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// The number of the line that contains a byte.
pub(super) fn line_number(content: &[u8], at: usize) -> usize {
    memchr::memchr_iter(b'\n', content.get(..at).unwrap_or(content)).count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(old: &str, new: &str, all: bool) -> Replacement {
        let (old_string, new_string) = (old.to_owned(), new.to_owned());
        Replacement { old_string, new_string, replace_all: Some(all) }
    }

    fn replaced(content: &str, old: &str, new: &str, all: bool) -> Result<String, String> {
        let replaced = replace(content.as_bytes(), &edit(old, new, all), 1 << 20)?;
        Ok(String::from_utf8(replaced.content).unwrap())
    }

    #[test]
    fn a_match_is_exact_and_unique() {
        assert_eq!(replaced("a b a", "b", "$0 \\1", false).unwrap(), "a $0 \\1 a");
        assert_eq!(replaced("a b a", "a", "", true).unwrap(), " b ");
        let problem = replaced("a\nb\na\n", "a", "c", false).unwrap_err();
        assert!(problem.contains("2 times, at the lines 1, 3;"), "{problem}");
        let problem = replaced("x\n  foo\n", "foo\nbar", "c", false).unwrap_err();
        assert!(problem.contains("line 2 is like its first line"), "{problem}");
        assert!(replaced("a", "a", "a", false).is_err());
        assert!(replaced("a", "", "a", false).is_err());
    }

    #[test]
    fn line_ends_stay_as_they_are() {
        assert_eq!(replaced("a\r\nb\r\nc", "a\nb", "x\ny\nz", false).unwrap(), "x\r\ny\r\nz\r\nc");
        assert_eq!(replaced("a\r\nb\r\n", "a\r\nb", "x\r\ny", false).unwrap(), "x\r\ny\r\n");
        assert_eq!(replaced("a\nb\n", "a\nb", "x\ny", false).unwrap(), "x\ny\n");
        // The end of the file is kept, with or without a line end.
        assert_eq!(replaced("a\nb", "a", "x", false).unwrap(), "x\nb");
        // One line of many ends in a bare line feed.
        assert_eq!(
            replaced("1\r\n2\r\n3\r\na\nb\r\n", "a\nb", "x\ny", false).unwrap(),
            "1\r\n2\r\n3\r\nx\ny\r\n"
        );
    }

    #[test]
    fn a_result_that_is_too_large_is_not_built() {
        let (content, new) = ("a".repeat(1 << 20), "x".repeat(1 << 20));
        let problem = replace(content.as_bytes(), &edit("a", &new, true), 1 << 25).unwrap_err();
        assert!(problem.contains("would have 1099511627776 bytes"), "{problem}");
    }

    #[test]
    fn bytes_that_are_not_replaced_are_kept() {
        let content = b"\xef\xbb\xbfa \xff b";
        let replaced = replace(content, &edit("b", "c", false), 1 << 20).unwrap();
        assert_eq!(replaced.content, b"\xef\xbb\xbfa \xff c");
        assert_eq!((replaced.count, replaced.length), (1, 1));
    }
}
