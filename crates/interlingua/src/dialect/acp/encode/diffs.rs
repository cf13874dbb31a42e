//! What an edit does to a file, as the difference that an editor shows.
//!
//! Agents tell it in the call's input (the old and the new text, the whole file, or a patch) or when
//! the file has changed (both texts, hunks, or a patch). A patch is told hunk by hunk: the rest of
//! the file is not known.

use super::place::Folder;
use crate::event::{FileChange, FileChangeKind, ToolKind};
use crate::json::read;
use crate::json::write::{Bytes, Object};
use crate::json::{Json, Text, record};

record! {
    /// The input of a tool that changes files, under any of the names that agents give its parts.
    struct Edit<'a> {
        path: text "file_path" | "path" | "absolute_path" | "filePath" | "fileName",
        old: text "old_string" | "oldString" | "old_str" | "oldText",
        new: text "new_string" | "newString" | "new_str" | "newText",
        whole: text "file_text",
        content: text "content",
        patch: text "diff",
        edits: records<Piece> "edits",
        changes: records<Change> "changes",
    }
}

record! {
    /// One of several pieces of a file that change.
    struct Piece<'a> {
        old: text "old_string" | "oldString" | "old_str" | "oldText",
        new: text "new_string" | "newString" | "new_str" | "newText",
    }
}

record! {
    /// One of several files that change, as Codex writes it.
    struct Change<'a> {
        path: text "path",
        kind: json "kind",
        diff: json "diff",
    }
}

record! {
    struct ChangeKind<'a> {
        word: text "type",
    }
}

record! {
    struct Texts<'a> {
        old: text "oldText",
        new: text "newText",
    }
}

record! {
    struct HunkLines<'a> {
        lines: json "lines",
    }
}

/// Shows what a call would do to files, if that can be seen from its input.
pub(super) fn of_input(list: &mut Bytes, kind: &ToolKind, input: &Json<'_>, folder: &Folder) {
    let Some(edit) = read::record_of::<Edit<'_>>(input) else { return };
    for change in &edit.changes {
        let Some(path) = &change.path else { continue };
        of_file(list, path, &change.kind(), change.diff.as_ref(), folder);
    }
    let Some(path) = &edit.path else { return };
    let content = edit.content.as_ref().filter(|_| *kind == ToolKind::Write);
    if let Some(whole) = edit.whole.as_ref().or(content) {
        show(list, path, None, whole, folder);
    } else if let (Some(old), Some(new)) = (&edit.old, &edit.new) {
        show(list, path, Some(old), new, folder);
    } else if let Some(patch) = &edit.patch {
        of_patch(list, path, &FileChangeKind::Update, patch, folder);
    }
    for piece in &edit.edits {
        if let (Some(old), Some(new)) = (&piece.old, &piece.new) {
            show(list, path, Some(old), new, folder);
        }
    }
}

/// Shows how a file changed, if the agent tells it.
pub(super) fn of_change(list: &mut Bytes, change: &FileChange<'_>, folder: &Folder) {
    of_file(list, &change.path, &change.kind, change.diff.as_ref(), folder);
}

impl Change<'_> {
    fn kind(&self) -> FileChangeKind {
        let Some(kind) = &self.kind else { return FileChangeKind::default() };
        let word = kind.as_text().map(|word| word.to_string());
        let inside = || read::record_of::<ChangeKind<'_>>(kind)?.word.map(|word| word.to_string());
        word.or_else(inside).map(|word| FileChangeKind::from(&*word)).unwrap_or_default()
    }
}

fn of_file(
    list: &mut Bytes,
    path: &Text<'_>,
    kind: &FileChangeKind,
    diff: Option<&Json<'_>>,
    folder: &Folder,
) {
    let Some(diff) = diff else { return };
    if let Some(text) = diff.as_text() {
        of_patch(list, path, kind, &text, folder);
    } else if let Some(hunks) = read::records_of::<HunkLines<'_>>(diff) {
        for hunk in hunks {
            let lines = hunk.lines.as_ref().and_then(Json::read::<Vec<Text<'_>>>);
            let hunk = lines.and_then(|lines| {
                let mut hunk = Hunk::default();
                lines.iter().all(|line| hunk.take(&line.to_plain())).then_some(hunk)
            });
            if let Some(hunk) = hunk {
                hunk.show(list, path, kind, folder);
            }
        }
    } else if let Some(Texts { old, new: Some(new) }) = read::record_of::<Texts<'_>>(diff) {
        show(list, path, old.as_ref(), &new, folder);
    }
}

/// A difference that is text: a patch; or, of a file that is new or gone, the file itself.
fn of_patch(
    list: &mut Bytes,
    path: &Text<'_>,
    kind: &FileChangeKind,
    text: &Text<'_>,
    folder: &Folder,
) {
    let hunks = Hunk::all_of(&text.to_plain());
    match (kind, hunks.as_deref()) {
        // Such a file can be a patch itself.
        (FileChangeKind::Add, Some([only])) if only.old.is_empty() => {
            only.show(list, path, kind, folder);
        }
        (FileChangeKind::Delete, Some([only])) if only.new.is_empty() => {
            only.show(list, path, kind, folder);
        }
        (FileChangeKind::Add, _) => show(list, path, None, text, folder),
        (FileChangeKind::Delete, _) => {
            show(list, path, Some(text), &Text::default(), folder);
        }
        (_, hunks) => {
            for hunk in hunks.unwrap_or_default() {
                hunk.show(list, path, kind, folder);
            }
        }
    }
}

fn show(
    list: &mut Bytes,
    path: &Text<'_>,
    old: Option<&Text<'_>>,
    new: &Text<'_>,
    folder: &Folder,
) {
    if !list.is_empty() {
        list.push(b',');
    }
    let absolute = folder.absolute(path);
    let mut diff = Object::open(list);
    diff.fixed(r#""type":"diff""#).text("path", absolute.as_ref().unwrap_or(path));
    diff.text_if("oldText", old).text("newText", new);
    diff.close();
}

/// Some lines of a file, before and after.
#[derive(Debug, Default, PartialEq)]
struct Hunk {
    old: String,
    new: String,
    /// Which of the two the last line is in.
    last: (bool, bool),
}

impl Hunk {
    /// The hunks of a patch of one file; `None` for text that is no such patch.
    fn all_of(patch: &str) -> Option<Vec<Self>> {
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

    /// Takes the next line; whether it can be one of a hunk.
    fn take(&mut self, line: &str) -> bool {
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

    fn show(&self, list: &mut Bytes, path: &Text<'_>, kind: &FileChangeKind, folder: &Folder) {
        let old = Text::plain(&self.old);
        let old = (*kind != FileChangeKind::Add).then_some(&old);
        show(list, path, old, &Text::plain(&self.new), folder);
    }
}

/// Whether a line can stand above the first hunk of a patch.
fn is_heading(line: &str) -> bool {
    let starts = ["Index: ", "=====", "--- ", "+++ ", "diff ", "index "];
    let modes = ["new file", "create file", "deleted file", "old mode", "new mode"];
    let heads = starts.iter().chain(&modes).chain(&["similarity ", "rename "]);
    line.is_empty() || heads.into_iter().any(|start| line.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides(patch: &str) -> Option<Vec<(String, String)>> {
        let hunks = Hunk::all_of(patch)?;
        Some(hunks.into_iter().map(|hunk| (hunk.old, hunk.new)).collect())
    }

    #[test]
    fn a_patch_has_two_sides_a_hunk() {
        let patch = "--- a\n+++ a\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n@@ -9 +9 @@\n-x\n\\ No newline\n+y\n";
        let pair = |old: &str, new: &str| (old.to_owned(), new.to_owned());
        assert_eq!(sides(patch).unwrap(), [pair("one\ntwo\n", "one\nthree\n"), pair("x", "y\n")]);
    }

    #[test]
    fn what_is_no_patch_of_one_file_has_none() {
        assert_eq!(sides("line one\nline two\n"), None);
        assert_eq!(sides("--- a\n+++ a\n"), None);
        let of_two =
            "@@ -1 +1 @@\n-a\n+b\ndiff --git a/b b/b\n--- a/b\n+++ b/b\n@@ -1 +1 @@\n-c\n+d\n";
        assert_eq!(sides(of_two), None);
    }

    #[test]
    fn a_new_file_that_is_a_patch_is_shown_as_it_is() {
        let (mut list, text) = (Bytes::new(), Text::plain("@@ -1 +1 @@\n-a\n+b\n"));
        let path = Text::plain("/a.patch");
        of_patch(&mut list, &path, &FileChangeKind::Add, &text, &Folder::default());
        let shown: serde_json::Value = serde_json::from_slice(&list).unwrap();
        assert_eq!(shown["newText"], "@@ -1 +1 @@\n-a\n+b\n");
        assert_eq!(shown.get("oldText"), None);
    }
}
