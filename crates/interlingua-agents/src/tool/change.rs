//! Changes of files: the diff for programs, and the few lines that the model sees.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use interlingua::event::FileChangeKind;
use similar::TextDiff;

use super::{Change, replace};

/// How long a diff may take; after that, it is complete but not minimal.
const DIFF_TIMEOUT: Duration = Duration::from_secs(1);

/// How many bytes and lines are compared, of the old and the new content together.
const MAX_COMPARED: usize = 8 << 20;
const MAX_LINES: usize = 400_000;

/// How many bytes a diff may have.
const MAX_DIFF: usize = 1 << 20;

/// How many lines are shown of a change.
const SHOWN_LINES: usize = 8;

/// How many characters are shown of a line.
const SHOWN_WIDTH: usize = 200;

/// The change of a file from one content to another; `old` is absent if the file is new.
pub(super) fn change(path: &Path, shown: &str, old: Option<&[u8]>, new: &[u8]) -> Change {
    let kind = if old.is_some() { FileChangeKind::Update } else { FileChangeKind::Add };
    let old_name = if old.is_some() { shown } else { "/dev/null" };
    let diff = diff(old_name, shown, old.unwrap_or_default(), new);
    Change { path: path.to_owned(), old_path: None, kind, diff }
}

/// A unified diff. What is left out is stated in a line that begins with a backslash, which programs
/// that read diffs skip.
fn diff(old_name: &str, new_name: &str, old: &[u8], new: &[u8]) -> String {
    let lines = |content| memchr::memchr_iter(b'\n', content).count();
    if old.len() + new.len() > MAX_COMPARED || lines(old) + lines(new) > MAX_LINES {
        return format!(
            "--- {old_name}\n+++ {new_name}\n\\ The diff is left out, because the file is too long: \
             it had {} bytes, and has {}.\n",
            old.len(),
            new.len()
        );
    }
    let (before, after) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    let diff = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_lines(&*before, &*after);
    let mut diff = diff.unified_diff().context_radius(3).header(old_name, new_name).to_string();
    if diff.len() > MAX_DIFF {
        let limit = diff.floor_char_boundary(MAX_DIFF);
        let end = diff.get(..limit).and_then(|kept| kept.rfind('\n')).map_or(0, |at| at + 1);
        let left = diff.len() - end;
        diff.truncate(end);
        // Writing to a string cannot fail.
        let _ = writeln!(diff, "\\ The diff is cut here: {left} bytes are left out.");
    }
    diff
}

/// The numbered lines of a content that start at a byte, and as many as a change of this length
/// has. The first one is the first line of the change, since consumers read its number.
pub(super) fn numbered_lines(content: &[u8], at: usize, length: usize) -> String {
    let first = replace::line_number(content, at);
    let start =
        memchr::memrchr(b'\n', content.get(..at).unwrap_or_default()).map_or(0, |it| it + 1);
    let changed = content.get(at..at + length).unwrap_or_default();
    let lines = memchr::memchr_iter(b'\n', changed).count() + 2;
    let text = content.get(start..).unwrap_or_default();
    // The last line end does not begin another line.
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let mut result = String::new();
    for (number, line) in
        (first..).zip(text.split(|byte| *byte == b'\n')).take(lines.min(SHOWN_LINES))
    {
        let line = String::from_utf8_lossy(line);
        let line: String = line.trim_end_matches('\r').chars().take(SHOWN_WIDTH).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(result, "{number:>6}→{line}");
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_a_unified_diff() {
        let change = change(Path::new("/w/a"), "a", Some(b"1\n2\n3\n"), b"1\nzwei\n3\n");
        assert_eq!(change.kind, FileChangeKind::Update);
        assert_eq!(change.diff, "--- a\n+++ a\n@@ -1,3 +1,3 @@\n 1\n-2\n+zwei\n 3\n");
        let added = super::change(Path::new("/w/a"), "a", None, b"1");
        assert_eq!(added.kind, FileChangeKind::Add);
        assert_eq!(
            added.diff,
            "--- /dev/null\n+++ a\n@@ -0,0 +1 @@\n+1\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn a_long_diff_is_cut_and_says_so() {
        let new = "zeile ä\n".repeat(200_000);
        let diff = change(Path::new("/w/a"), "a", None, new.as_bytes()).diff;
        assert!(diff.len() < MAX_DIFF + 100, "{}", diff.len());
        assert!(diff.starts_with("--- /dev/null\n+++ a\n@@ -0,0 +1,200000 @@\n+zeile ä\n"));
        let last = diff.lines().last().unwrap();
        assert!(last.starts_with("\\ The diff is cut here: "), "{last}");
        let new = "\n".repeat(MAX_LINES + 1);
        let diff = change(Path::new("/w/a"), "a", Some(b"x"), new.as_bytes()).diff;
        assert!(diff.contains("it had 1 bytes, and has 400001."), "{diff}");
    }

    #[test]
    fn the_first_shown_line_is_the_first_changed_one() {
        let lines = numbered_lines(b"1\n2\nneu\n4\n5\n6\n", 4, 3);
        assert_eq!(lines, "     3→neu\n     4→4\n");
    }

    #[test]
    fn a_line_end_at_the_end_begins_no_line() {
        assert_eq!(numbered_lines(b"1\nneu\n", 2, 3), "     2→neu\n");
        assert_eq!(numbered_lines(b"1\nneu", 2, 3), "     2→neu\n");
    }
}
