//! Changes of files: the diff for programs, and the few lines that the model sees.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use interlingua::event::FileChangeKind;
use similar::TextDiff;

use super::{Change, replace};

/// How long a diff may take; after that, it is complete but not minimal.
const DIFF_TIMEOUT: Duration = Duration::from_secs(1);

/// How many lines are shown of a change.
const SHOWN_LINES: usize = 8;

/// How many characters are shown of a line.
const SHOWN_WIDTH: usize = 200;

/// The change of a file from one content to another; `old` is absent if the file is new.
pub(super) fn change(path: &Path, shown: &str, old: Option<&[u8]>, new: &[u8]) -> Change {
    let kind = if old.is_some() { FileChangeKind::Update } else { FileChangeKind::Add };
    let before = String::from_utf8_lossy(old.unwrap_or_default());
    let after = String::from_utf8_lossy(new);
    let diff = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_lines(&*before, &*after);
    let old_name = if old.is_some() { shown } else { "/dev/null" };
    let diff = diff.unified_diff().context_radius(3).header(old_name, shown).to_string();
    Change { path: path.to_owned(), old_path: None, kind, diff }
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
    fn the_first_shown_line_is_the_first_changed_one() {
        let lines = numbered_lines(b"1\n2\nneu\n4\n5\n6\n", 4, 3);
        assert_eq!(lines, "     3→neu\n     4→4\n");
    }
}
