//! A tool that lists the files it changes, as the calls that Claude Code would have made.
//!
//! Codex applies one patch to any number of files in one call. Claude Code has a tool for one file at
//! a time, and the programs that show its stream draw a difference from the texts in its input: a new
//! file is a `Write` with its content, any other change an `Edit` with the text before and after it.
//! Texts come from the difference, where the agent gives one. Of several hunks the texts are joined by
//! a line of three dots, since an `Edit` has one text on each side.

use crate::dialect::patch::Hunk;
use crate::event::{FileChange, FileChangeKind, ToolKind};
use crate::json::read::{self, Fields};
use crate::json::write::Object;
use crate::json::{Json, Text, record};

/// What stands between the texts of two hunks.
const BETWEEN_HUNKS: &str = "...\n";

/// With what Codex ends the difference of a file that it moved.
const MOVED: &str = "\n\nMoved to: ";

/// What is done to one file, as a call of Claude's tool for it.
#[derive(Debug)]
pub(in crate::dialect) struct FileCall {
    /// `Write` or `Edit`.
    pub(in crate::dialect) name: &'static str,
    /// A JSON object.
    pub(in crate::dialect) input: Json<'static>,
    /// The file, without its difference.
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
    /// What is done to one file.
    struct Change<'a> {
        path: text "path",
        kind: json "kind",
        diff: text "diff" | "unified_diff",
        content: text "content",
        move_path: text "move_path",
    }
}

record! {
    /// What kind of change it is, where that is an object.
    struct Kind<'a> {
        word: text "type",
        move_path: text "move_path",
    }
}

/// The calls that Claude Code would have made, one a file; `None` for an input that does not list the
/// files to change.
pub(in crate::dialect) fn calls(
    kind: &ToolKind,
    input: Option<&Json<'_>>,
) -> Option<Vec<FileCall>> {
    let input = input.filter(|_| *kind == ToolKind::Edit)?;
    let Changes { file_path: None, changes: Some(list) } = read::record_of(input)? else {
        return None;
    };
    let list: Vec<Json<'_>> = list.read().filter(|list: &Vec<_>| !list.is_empty())?;
    list.iter().map(call).collect()
}

fn call(json: &Json<'_>) -> Option<FileCall> {
    let change = read::record_of::<Change<'_>>(json)?;
    let file = file(&change)?;
    let name = if file.kind == FileChangeKind::Add { "Write" } else { "Edit" };
    let input = Json::object(|fields| {
        fields.text("file_path", &file.path).string("kind", file.kind.as_str());
        fields.text_if("old_path", file.old_path.as_ref());
        write_texts(fields, &file.kind, change.diff.as_ref().or(change.content.as_ref()));
        write_rest(fields, json);
    });
    Some(FileCall { name, input, change: file })
}

/// Which file changes, and how; a file that is moved is named by its new path.
fn file(change: &Change<'_>) -> Option<FileChange<'static>> {
    let path = change.path.clone()?.into_owned();
    let inside = change.kind.as_ref().and_then(read::record_of::<Kind<'_>>).unwrap_or_default();
    let word = change.kind.as_ref().and_then(Json::as_text).or(inside.word);
    let kind = word.map(|word| FileChangeKind::from(&*word.to_plain())).unwrap_or_default();
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

/// Writes the texts before and after a change; a difference that cannot be read as it is.
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

/// Writes what else the agent says of the change.
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
        let calls = calls(&ToolKind::Edit, Some(&input)).unwrap_or_default();
        let value = |call: FileCall| (call.name, serde_json::from_str(call.input.get()).unwrap());
        calls.into_iter().map(value).collect()
    }

    #[test]
    fn a_new_file_is_written_and_others_are_edited() {
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
    fn several_hunks_are_one_text_on_each_side() {
        let diff = "@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@\n-y\n+z\n";
        let calls = written(&json!([{"path": "/a", "kind": "update", "diff": diff}]));
        assert_eq!(calls[0].1["old_string"], "a\n...\ny\n");
        assert_eq!(calls[0].1["new_string"], "b\n...\nz\n");
    }

    #[test]
    fn a_file_that_is_moved_has_both_paths() {
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
    fn what_cannot_be_read_stays_as_it_is() {
        let calls = written(&json!([{"path": "/a", "kind": "update", "diff": "?", "lines": 3}]));
        let input = json!({"file_path": "/a", "kind": "update", "diff": "?", "lines": 3});
        assert_eq!(calls, [("Edit", input)]);
        assert_eq!(written(&json!([{"kind": "update"}])), []);
        assert_eq!(written(&json!([])), []);
        assert_eq!(written(&json!({"/a": {}})), []);
    }
}
