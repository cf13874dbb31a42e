//! Any agent's tool, as Claude Code would have called it.
//!
//! Programs that show Claude's stream know its tools by name: `Bash`, `Read`, `Edit`, `TodoWrite`.
//! A tool of another agent that does the same work is given the same name, and a file's path the
//! name `file_path`; everything else of the input stays as it was. A tool that Claude has no
//! counterpart for keeps its own name.

use std::borrow::Cow;

use crate::dialect::tools;
use crate::event::{PlanItem, ToolKind};
use crate::json::read::{self, Fields};
use crate::json::write::Object;
use crate::json::{Json, Text, record};

/// The names under which agents give a file's path.
const PATH_NAMES: &[&str] = &["path", "filePath", "absolute_path", "notebook_path"];

/// The name of a tool in Claude's stream.
pub(in crate::dialect) fn name<'a>(name: &Text<'a>, kind: &ToolKind) -> Text<'a> {
    let own = match (kind, &*name.to_plain()) {
        (ToolKind::Execute, _) => "Bash",
        (ToolKind::Read, "NotebookRead") => "NotebookRead",
        (ToolKind::Read, _) => "Read",
        (ToolKind::Write, _) => "Write",
        (ToolKind::Edit, "MultiEdit") => "MultiEdit",
        (ToolKind::Edit, "NotebookEdit") => "NotebookEdit",
        (ToolKind::Edit, _) => "Edit",
        (ToolKind::Search, _) => "Grep",
        (ToolKind::Glob, _) => "Glob",
        (ToolKind::List, _) => "LS",
        (ToolKind::Fetch, _) => "WebFetch",
        (ToolKind::WebSearch, _) => "WebSearch",
        (ToolKind::Plan, "write_todos" | "todo_write" | "update_plan") => "TodoWrite",
        (ToolKind::Task, "invoke_agent") => "Task",
        _ => return name.clone(),
    };
    Text::plain(own)
}

/// The input of a tool in Claude's stream; always an object.
pub(in crate::dialect) fn input<'a>(
    name: &Text<'_>,
    kind: &ToolKind,
    input: Option<&'a Json<'_>>,
) -> Cow<'a, str> {
    let Some(input) = input.filter(|input| input.is_object()) else { return Cow::Borrowed("{}") };
    let changed = match kind {
        ToolKind::Plan if *name != "TodoWrite" => {
            tools::plan_written(name, input).map(|items| todo_input(&items))
        }
        ToolKind::Read | ToolKind::Write | ToolKind::Edit => with_file_path(input),
        _ => None,
    };
    match changed {
        Some(json) => Cow::Owned(json.get().to_owned()),
        None => Cow::Borrowed(input.get()),
    }
}

/// The input with which `TodoWrite` writes a plan.
pub(in crate::dialect) fn todo_input(items: &[PlanItem<'_>]) -> Json<'static> {
    Json::object(|fields| {
        fields.objects("todos", items, |todo, item| {
            todo.text("content", &item.text);
            todo.string("status", item.status.as_str());
            todo.text("activeForm", item.active_form.as_ref().unwrap_or(&item.text));
        });
    })
}

record! {
    /// One file of a change that has several.
    struct Change<'a> {
        path: json "path",
    }
}

/// The input with its path under the name that Claude gives it; `None` where it has that already.
fn with_file_path(input: &Json<'_>) -> Option<Json<'static>> {
    let Fields(fields) = read::record_of(input)?;
    if fields.iter().any(|(name, _)| &**name == "file_path") {
        return None;
    }
    let named = fields.iter().position(|(name, _)| PATH_NAMES.contains(&&**name));
    let path = match named {
        Some(at) => fields.get(at).map(|(_, path)| path.clone().into_owned()),
        None => fields.iter().find(|(name, _)| &**name == "changes").and_then(|(_, changes)| {
            let changes = read::records_of::<Change<'_>>(changes)?;
            changes.into_iter().next()?.path.map(Json::into_owned)
        }),
    }?;
    Some(Json::object(|object: &mut Object<'_>| {
        object.json("file_path", &path);
        for (at, (name, value)) in fields.iter().enumerate() {
            if named != Some(at) {
                let out = object.escaped_name(name);
                out.extend_from_slice(value.get().as_bytes());
            }
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn as_claude(kind: ToolKind, given: &str) -> String {
        let json = Json::from_text(given.to_owned()).unwrap();
        input(&Text::plain("tool"), &kind, Some(&json)).into_owned()
    }

    #[test]
    fn a_path_gets_the_name_that_claude_gives_it() {
        let given = r#"{"path":"a.txt","limit":3}"#;
        assert_eq!(as_claude(ToolKind::Read, given), r#"{"file_path":"a.txt","limit":3}"#);
    }

    #[test]
    fn the_first_file_of_a_change_is_its_path() {
        let given = r#"{"changes":[{"path":"/a","kind":"add"},{"path":"/b"}]}"#;
        let expected = r#"{"file_path":"/a","changes":[{"path":"/a","kind":"add"},{"path":"/b"}]}"#;
        assert_eq!(as_claude(ToolKind::Edit, given), expected);
    }

    #[test]
    fn an_input_that_is_no_object_is_an_empty_one() {
        assert_eq!(as_claude(ToolKind::Execute, r#""text""#), "{}");
    }
}
