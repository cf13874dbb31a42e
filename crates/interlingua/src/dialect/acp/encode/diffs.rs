//! The changes of a file as the diffs that an editor shows.
//!
//! Agents report a change in the input of the call (the old and the new text, the complete file, or
//! a patch) or after the file has changed (both texts, hunks, or a patch). A patch is written hunk
//! by hunk, since the rest of the file is unknown.

use super::paths::WorkingFolder;
use crate::dialect::patch::Hunk;
use crate::event::{FileChange, FileChangeKind, ToolKind};
use crate::json::read;
use crate::json::write::{Bytes, Object};
use crate::json::{Json, Text, record};

record! {
    /// The input of a tool that changes files, with the field names of all agents.
    struct Edit<'a> {
        path: text "file_path" | "path" | "absolute_path" | "filePath" | "fileName",
        old: text "old_string" | "oldString" | "old_str" | "oldText",
        new: text "new_string" | "newString" | "new_str" | "newText",
        complete: text "file_text",
        content: text "content",
        patch: text "diff",
        edits: records<TextEdit> "edits",
        changes: records<Change> "changes",
    }
}

record! {
    /// One of several edits of the same file.
    struct TextEdit<'a> {
        old: text "old_string" | "oldString" | "old_str" | "oldText",
        new: text "new_string" | "newString" | "new_str" | "newText",
    }
}

record! {
    /// One of several changed files, as Codex writes it.
    struct Change<'a> {
        path: text "path",
        kind: json "kind",
        diff: json "diff",
    }
}

record! {
    struct ChangeKind<'a> {
        name: text "type",
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

/// Writes the diffs that the input of a call describes.
pub(super) fn write_input_diffs(
    list: &mut Bytes,
    kind: &ToolKind,
    input: &Json<'_>,
    folder: &WorkingFolder,
) {
    let Some(edit) = read::record_of::<Edit<'_>>(input) else { return };
    for change in &edit.changes {
        let Some(path) = &change.path else { continue };
        write_file_diffs(list, path, &change.kind(), change.diff.as_ref(), folder);
    }
    let Some(path) = &edit.path else { return };
    let content = edit.content.as_ref().filter(|_| *kind == ToolKind::Write);
    if let Some(complete) = edit.complete.as_ref().or(content) {
        write_diff(list, path, None, complete, folder);
    } else if let (Some(old), Some(new)) = (&edit.old, &edit.new) {
        write_diff(list, path, Some(old), new, folder);
    } else if let Some(patch) = &edit.patch {
        write_patch_diffs(list, path, &FileChangeKind::Update, patch, folder);
    }
    for text_edit in &edit.edits {
        if let (Some(old), Some(new)) = (&text_edit.old, &text_edit.new) {
            write_diff(list, path, Some(old), new, folder);
        }
    }
}

/// Writes the diffs of a changed file, if the agent reports them.
pub(super) fn write_change_diffs(
    list: &mut Bytes,
    change: &FileChange<'_>,
    folder: &WorkingFolder,
) {
    write_file_diffs(list, &change.path, &change.kind, change.diff.as_ref(), folder);
}

impl Change<'_> {
    fn kind(&self) -> FileChangeKind {
        let Some(kind) = &self.kind else { return FileChangeKind::default() };
        let name = kind.as_text().map(|name| name.to_string());
        let in_object =
            || read::record_of::<ChangeKind<'_>>(kind)?.name.map(|name| name.to_string());
        name.or_else(in_object).map(|name| FileChangeKind::from(&*name)).unwrap_or_default()
    }
}

fn write_file_diffs(
    list: &mut Bytes,
    path: &Text<'_>,
    kind: &FileChangeKind,
    diff: Option<&Json<'_>>,
    folder: &WorkingFolder,
) {
    let Some(diff) = diff else { return };
    if let Some(text) = diff.as_text() {
        write_patch_diffs(list, path, kind, &text, folder);
    } else if let Some(hunks) = read::records_of::<HunkLines<'_>>(diff) {
        for hunk in hunks {
            let lines = hunk.lines.as_ref().and_then(Json::read::<Vec<Text<'_>>>);
            let hunk = lines.and_then(|lines| {
                let mut hunk = Hunk::default();
                lines.iter().all(|line| hunk.take(&line.to_plain())).then_some(hunk)
            });
            if let Some(hunk) = hunk {
                write_hunk(list, path, kind, &hunk, folder);
            }
        }
    } else if let Some(Texts { old, new: Some(new) }) = read::record_of::<Texts<'_>>(diff) {
        write_diff(list, path, old.as_ref(), &new, folder);
    }
}

/// Writes a diff that is text: a patch, or the complete text of an added or deleted file.
fn write_patch_diffs(
    list: &mut Bytes,
    path: &Text<'_>,
    kind: &FileChangeKind,
    text: &Text<'_>,
    folder: &WorkingFolder,
) {
    for hunk in Hunk::of_change(kind, &text.to_plain()) {
        write_hunk(list, path, kind, &hunk, folder);
    }
}

fn write_hunk(
    list: &mut Bytes,
    path: &Text<'_>,
    kind: &FileChangeKind,
    hunk: &Hunk,
    folder: &WorkingFolder,
) {
    let old = Text::plain(&hunk.old);
    let old = (*kind != FileChangeKind::Add).then_some(&old);
    write_diff(list, path, old, &Text::plain(&hunk.new), folder);
}

fn write_diff(
    list: &mut Bytes,
    path: &Text<'_>,
    old: Option<&Text<'_>>,
    new: &Text<'_>,
    folder: &WorkingFolder,
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
    fn an_added_file_that_contains_a_patch_is_not_parsed() {
        let (mut list, text) = (Bytes::new(), Text::plain("@@ -1 +1 @@\n-a\n+b\n"));
        let path = Text::plain("/a.patch");
        write_patch_diffs(&mut list, &path, &FileChangeKind::Add, &text, &WorkingFolder::default());
        let shown: serde_json::Value = serde_json::from_slice(&list).unwrap();
        assert_eq!(shown["newText"], "@@ -1 +1 @@\n-a\n+b\n");
        assert_eq!(shown.get("oldText"), None);
    }
}
