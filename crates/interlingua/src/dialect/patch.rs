//! Textual changes of a file: patches, and the content of a created or deleted file.
//!
//! This module knows unified diffs of one file, but no records and no tools. A patch contains only
//! its hunks; the rest of the file is unknown.

use crate::event::FileChangeKind;

/// Some lines of a file, before and after.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Hunk {
    pub(super) old: String,
    pub(super) new: String,
    /// Which of the two contains the last line.
    last: (bool, bool),
}

impl Hunk {
    /// The hunks of a change: those of a patch, or the single one of a created or deleted file,
    /// whose change may be given as its content. Empty for text that is neither.
    pub(super) fn of_change(kind: &FileChangeKind, text: &str) -> Vec<Self> {
        let mut hunks = Self::of_patch(text).unwrap_or_default();
        // The content of such a file can be a patch itself.
        let whole = match kind {
            FileChangeKind::Add => Self { new: text.to_owned(), ..Self::default() },
            FileChangeKind::Delete => Self { old: text.to_owned(), ..Self::default() },
            _ => return hunks,
        };
        let is_patch = match hunks.as_slice() {
            [only] if *kind == FileChangeKind::Add => only.old.is_empty(),
            [only] => only.new.is_empty(),
            _ => false,
        };
        if !is_patch {
            hunks = vec![whole];
        }
        hunks
    }

    /// The hunks of a patch of one file; `None` for text that is not such a patch.
    fn of_patch(patch: &str) -> Option<Vec<Self>> {
        let mut hunks = Vec::<Self>::new();
        for line in patch.split_terminator('\n') {
            if line.starts_with("@@ -") {
                hunks.push(Self::default());
            } else if let Some(hunk) = hunks.last_mut() {
                if !hunk.take(line) {
                    return None;
                }
            } else if !is_heading(line) {
                return None;
            }
        }
        (!hunks.is_empty()).then_some(hunks)
    }

    /// Takes the next line; returns whether it is valid in a hunk.
    pub(super) fn take(&mut self, line: &str) -> bool {
        let (sign, text) = line.split_at_checked(1).unwrap_or((" ", ""));
        self.last = match sign {
            " " => (true, true),
            "-" => (true, false),
            "+" => (false, true),
            "\\" => {
                self.end_without_line_feed();
                return true;
            }
            _ => return false,
        };
        for (is_in, side) in [(self.last.0, &mut self.old), (self.last.1, &mut self.new)] {
            if is_in {
                side.push_str(text);
                side.push('\n');
            }
        }
        true
    }

    fn end_without_line_feed(&mut self) {
        if self.last.0 {
            self.old.pop();
        }
        if self.last.1 {
            self.new.pop();
        }
        self.last = (false, false);
    }
}

/// Whether a line is valid before the first hunk of a patch.
fn is_heading(line: &str) -> bool {
    let starts = ["Index: ", "=====", "--- ", "+++ ", "diff ", "index "];
    let modes = ["new file", "create file", "deleted file", "old mode", "new mode"];
    let heads = starts.iter().chain(&modes).chain(&["similarity ", "rename "]);
    line.is_empty() || heads.into_iter().any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(kind: &FileChangeKind, text: &str) -> Vec<(String, String)> {
        let hunks = Hunk::of_change(kind, text);
        hunks.into_iter().map(|hunk| (hunk.old, hunk.new)).collect()
    }

    fn pair(old: &str, new: &str) -> (String, String) {
        (old.to_owned(), new.to_owned())
    }

    #[test]
    fn each_hunk_of_a_patch_has_two_sides() {
        let patch = "--- a\n+++ a\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n@@ -9 +9 @@\n-x\n\\ No newline\n+y\n";
        let hunks = [pair("one\ntwo\n", "one\nthree\n"), pair("x", "y\n")];
        assert_eq!(sides(&FileChangeKind::Update, patch), hunks);
    }

    #[test]
    fn text_that_is_not_a_patch_of_one_file_has_no_hunks() {
        let update = FileChangeKind::Update;
        assert_eq!(sides(&update, "line one\nline two\n"), []);
        assert_eq!(sides(&update, "--- a\n+++ a\n"), []);
        let of_two =
            "@@ -1 +1 @@\n-a\n+b\ndiff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-c\n+d\n";
        assert_eq!(sides(&update, of_two), []);
    }

    #[test]
    fn a_created_or_deleted_file_may_be_a_patch_itself() {
        let patch = "@@ -1 +1 @@\n-a\n+b\n";
        assert_eq!(sides(&FileChangeKind::Add, patch), [pair("", patch)]);
        assert_eq!(sides(&FileChangeKind::Delete, patch), [pair(patch, "")]);
        assert_eq!(sides(&FileChangeKind::Add, "@@ -0,0 +1 @@\n+a\n"), [pair("", "a\n")]);
        assert_eq!(sides(&FileChangeKind::Delete, "@@ -1 +0,0 @@\n-a\n"), [pair("a\n", "")]);
        assert_eq!(sides(&FileChangeKind::Add, ""), [pair("", "")]);
    }
}
