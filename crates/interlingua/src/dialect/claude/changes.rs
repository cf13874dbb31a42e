//! Translates a call that lists the files it changes into calls of Claude Code's tools.
//!
//! Codex applies one patch to any number of files in one call. Claude Code's tools change one file
//! each, and consumers display a diff of the texts in their input: a new file is a `Write` with its
//! content, any other change an `Edit` with the text before and after it. The texts are taken from
//! the agent's diff, if it has one. An `Edit` has one text on each side, so the texts of several
//! hunks are joined by a line of three dots.

use crate::dialect::patch::Hunk;
use crate::event::{FileChange, FileChangeKind, ToolKind};
use crate::json::read::{self, Fields};
use crate::json::write::Object;
use crate::json::{Json, Text, record};

/// The separator between the texts of two hunks.
const BETWEEN_HUNKS: &str = "...\n";

/// The text before the new path, at the end of Codex's diff of a moved file.
const MOVED: &str = "\n\nMoved to: ";

/// The change of one file, as a call of Claude's tool for it.
#[derive(Debug)]
pub(in crate::dialect) struct FileCall {
    /// `Write` or `Edit`.
    pub(in crate::dialect) name: &'static str,
    /// A JSON object.
    pub(in crate::dialect) input: Json<'static>,
    /// The change, without its diff.
    pub(in crate::dialect) change: FileChange<'static>,
}

record! {
    /// The input of a tool that lists its changes.
    struct Changes<'a> {
        file_path: json "file_path",
        changes: json "changes",
    }
}

record! {
    /// The change of one file.
    struct Change<'a> {
        path: text "path",
        kind: json "kind",
        diff: text "diff" | "unified_diff",
        content: text "content",
        move_path: text "move_path",
    }
}

record! {
    /// The kind of a change, in the form of an object.
    struct Kind<'a> {
        name: text "type",
        move_path: text "move_path",
    }
}

/// The calls that Claude Code would have made, one for each file; `None` if the input does not list
/// the files to change.
pub(in crate::dialect) fn translate_changes(
    kind: &ToolKind,
    input: Option<&Json<'_>>,
) -> Option<Vec<FileCall>> {
    let input = input.filter(|_| *kind == ToolKind::Edit)?;
    let Changes { file_path: None, changes: Some(list) } = read::record_of(input)? else {
        return None;
    };
    let list: Vec<Json<'_>> = list.read().filter(|list: &Vec<_>| !list.is_empty())?;
    list.iter().map(translate_change).collect()
}

fn translate_change(json: &Json<'_>) -> Option<FileCall> {
    let change = read::record_of::<Change<'_>>(json)?;
    let file = file_change(&change)?;
    let name = if file.kind == FileChangeKind::Add { "Write" } else { "Edit" };
    let input = Json::object(|fields| {
        fields.text("file_path", &file.path).string("kind", file.kind.as_str());
        fields.text_if("old_path", file.old_path.as_ref());
        write_texts(fields, &file.kind, change.diff.as_ref().or(change.content.as_ref()));
        write_rest(fields, json);
    });
    Some(FileCall { name, input, change: file })
}

/// The changed file and the kind of its change; a moved file is identified by its new path.
fn file_change(change: &Change<'_>) -> Option<FileChange<'static>> {
    let path = change.path.clone()?.into_owned();
    let inside = change.kind.as_ref().and_then(read::record_of::<Kind<'_>>).unwrap_or_default();
    let name = change.kind.as_ref().and_then(Json::as_text).or(inside.name);
    let kind = name.map(|name| FileChangeKind::from(&*name.to_plain())).unwrap_or_default();
    Some(match inside.move_path.or(change.move_path.clone()) {
        Some(new) => FileChange {
            path: new.into_owned(),
            old_path: Some(path),
            kind: FileChangeKind::Move,
            diff: None,
        },
        None => FileChange { path, old_path: None, kind, diff: None },
    })
}

/// Writes the texts before and after a change, or the diff itself if it cannot be parsed.
fn write_texts(fields: &mut Object<'_>, kind: &FileChangeKind, diff: Option<&Text<'_>>) {
    let Some(text) = diff else { return };
    let plain = text.to_plain();
    let patch = match plain.rsplit_once(MOVED) {
        Some((patch, _)) if *kind == FileChangeKind::Move => patch,
        _ => &plain,
    };
    let hunks = Hunk::of_change(kind, patch);
    let side = |of: fn(&Hunk) -> &str| hunks.iter().map(of).collect::<Vec<_>>().join(BETWEEN_HUNKS);
    let (old, new) = (side(|hunk| &hunk.old), side(|hunk| &hunk.new));
    if hunks.is_empty() {
        if !patch.is_empty() {
            fields.text("diff", text);
        }
    } else if *kind == FileChangeKind::Add {
        fields.string("content", &new);
    } else {
        fields.string("old_string", &old).string("new_string", &new);
    }
}

/// Writes the other fields of the change.
fn write_rest(fields: &mut Object<'_>, json: &Json<'_>) {
    let Fields(all) = read::record_of(json).unwrap_or_default();
    let known = ["path", "kind", "diff", "unified_diff", "content", "move_path"];
    for (name, value) in all.iter().filter(|(name, _)| !known.contains(&&**name)) {
        fields.escaped_name(name).extend_from_slice(value.get().as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn written(changes: &Value) -> Vec<(&'static str, Value)> {
        let input = Json::from_text(json!({ "changes": changes }).to_string()).unwrap();
        let calls = translate_changes(&ToolKind::Edit, Some(&input)).unwrap_or_default();
        let value = |call: FileCall| (call.name, serde_json::from_str(call.input.get()).unwrap());
        calls.into_iter().map(value).collect()
    }

    #[test]
    fn a_new_file_is_a_write_and_any_other_change_an_edit() {
        let calls = written(&json!([
            {"path": "/new", "kind": {"type": "add"}, "diff": "one\ntwo\n"},
            {"path": "/old", "kind": {"type": "update", "move_path": null}, "diff": "@@ -1 +1 @@\n-a\n+b\n"},
            {"path": "/gone", "kind": "delete", "diff": "bye\n"},
            {"path": "/bare", "kind": "update"},
        ]));
        let edit = |input| ("Edit", input);
        assert_eq!(
            calls,
            [
                ("Write", json!({"file_path": "/new", "kind": "add", "content": "one\ntwo\n"})),
                edit(json!({
                    "file_path": "/old", "kind": "update", "old_string": "a\n", "new_string": "b\n"
                })),
                edit(json!({
                    "file_path": "/gone", "kind": "delete", "old_string": "bye\n", "new_string": ""
                })),
                edit(json!({"file_path": "/bare", "kind": "update"})),
            ]
        );
    }

    #[test]
    fn several_hunks_are_joined_into_one_text_on_each_side() {
        let diff = "@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@\n-y\n+z\n";
        let calls = written(&json!([{"path": "/a", "kind": "update", "diff": diff}]));
        assert_eq!(calls[0].1["old_string"], "a\n...\ny\n");
        assert_eq!(calls[0].1["new_string"], "b\n...\nz\n");
    }

    #[test]
    fn a_moved_file_has_both_paths() {
        let kind = json!({"type": "update", "move_path": "/b"});
        let diff = "@@ -1 +1 @@\n-a\n+b\n\n\nMoved to: /b";
        let calls = written(&json!([{"path": "/a", "kind": kind, "diff": diff}]));
        let input = json!({
            "file_path": "/b", "kind": "move", "old_path": "/a",
            "old_string": "a\n", "new_string": "b\n",
        });
        assert_eq!(calls, [("Edit", input)]);
    }

    #[test]
    fn a_diff_that_cannot_be_parsed_is_written_unchanged() {
        let calls = written(&json!([{"path": "/a", "kind": "update", "diff": "?", "lines": 3}]));
        let input = json!({"file_path": "/a", "kind": "update", "diff": "?", "lines": 3});
        assert_eq!(calls, [("Edit", input)]);
        assert_eq!(written(&json!([{"kind": "update"}])), []);
        assert_eq!(written(&json!([])), []);
        assert_eq!(written(&json!({"/a": {}})), []);
    }
}
