//! What an edit does to a file, as the difference that an editor shows.
//!
//! Agents tell it in the call's input (the old and the new text, the whole file, or a patch) or when
//! the file has changed (both texts, hunks, or a patch). A patch is told hunk by hunk: the rest of
//! the file is not known.

use super::place::Folder;
use crate::dialect::patch::Hunk;
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
                show_hunk(list, path, kind, &hunk, folder);
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
    for hunk in Hunk::of_change(kind, &text.to_plain()) {
        show_hunk(list, path, kind, &hunk, folder);
    }
}

fn show_hunk(
    list: &mut Bytes,
    path: &Text<'_>,
    kind: &FileChangeKind,
    hunk: &Hunk,
    folder: &Folder,
) {
    let old = Text::plain(&hunk.old);
    let old = (*kind != FileChangeKind::Add).then_some(&old);
    show(list, path, old, &Text::plain(&hunk.new), folder);
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

#[cfg(test)]
mod tests {
    use super::*;

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
