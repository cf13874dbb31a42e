//! Translates the tool calls of any agent into those of Claude Code.
//!
//! Consumers of Claude's stream know its tools by name: `Bash`, `Read`, `Edit`, `TodoWrite`. A tool
//! of another agent that does the same work gets the same name, and the fields of its input get the
//! names that Claude's tool has (`file_path`, `old_string`); other fields are unchanged. A tool
//! without a counterpart, or whose input lacks a field that Claude's tool requires, keeps its name.

use std::borrow::Cow;

use super::changes::{self, FileCall};
use crate::dialect::tools;
use crate::event::{FileChangeKind, PlanItem, PlanStatus, ToolKind, ToolStatus};
use crate::json::read::{self, Fields};
use crate::json::write::{Bytes, Object};
use crate::json::{Json, Text, record};

/// The names that agents have for a field of an input, each with Claude's name for it. Of several
/// that occur, the first is used.
type FieldNames = &'static [(&'static str, &'static str)];

const FIELDS_OF_READ: FieldNames = &[
    ("path", "file_path"),
    ("filePath", "file_path"),
    ("absolute_path", "file_path"),
    ("notebook_path", "file_path"),
];
const FIELDS_OF_WRITE: FieldNames = &[
    ("path", "file_path"),
    ("filePath", "file_path"),
    ("absolute_path", "file_path"),
    ("file_text", "content"),
];
const FIELDS_OF_EDIT: FieldNames = &[
    ("path", "file_path"),
    ("filePath", "file_path"),
    ("absolute_path", "file_path"),
    ("notebook_path", "file_path"),
    ("oldString", "old_string"),
    ("oldText", "old_string"),
    ("old_str", "old_string"),
    ("newString", "new_string"),
    ("newText", "new_string"),
    ("new_str", "new_string"),
    ("replaceAll", "replace_all"),
];
const FIELDS_OF_LIST: FieldNames = &[("dir_path", "path")];
const FIELDS_OF_TASK: FieldNames =
    &[("agent_name", "subagent_type"), ("agent_type", "subagent_type")];

/// The name and the input of a call in Claude's stream.
pub(in crate::dialect) fn translate_call<'a>(
    tool: &Text<'a>,
    kind: &ToolKind,
    given: Option<&'a Json<'_>>,
) -> (Text<'a>, Cow<'a, str>) {
    if let Some(file) = one_changed_file(kind, given) {
        return (Text::plain(file.name), Cow::Owned(file.input.get().to_owned()));
    }
    let (own, input) = (translate_name(tool, kind), translate_input(tool, kind, given));
    if own == *tool {
        return (own, input);
    }
    if required_field(own.body()).is_none_or(|field| has_field(&input, field)) {
        return (own, input);
    }
    match given.filter(|given| given.is_object()) {
        Some(given) => (tool.clone(), Cow::Borrowed(given.get())),
        None => (tool.clone(), input),
    }
}

/// The change of a call that changes one file and does not delete it.
fn one_changed_file(kind: &ToolKind, given: Option<&Json<'_>>) -> Option<FileCall> {
    let mut files = changes::translate_changes(kind, given)?;
    let file = files.pop().filter(|_| files.is_empty())?;
    Some(file).filter(|file| file.change.kind != FileChangeKind::Delete)
}

/// The field that a tool of Claude's requires.
fn required_field(tool: &str) -> Option<&'static str> {
    Some(match tool {
        "Bash" => "command",
        "Read" | "Write" | "Edit" => "file_path",
        "Grep" | "Glob" => "pattern",
        "LS" => "path",
        "WebFetch" => "url",
        "WebSearch" => "query",
        "TodoWrite" => "todos",
        "Agent" => "prompt",
        "AskUserQuestion" => "questions",
        _ => return None,
    })
}

/// Whether an object has a field. Mostly it is the first one, so that is checked without parsing.
fn has_field(object: &str, field: &str) -> bool {
    let first = object.strip_prefix("{\"").and_then(|rest| rest.strip_prefix(field));
    if first.is_some_and(|rest| rest.starts_with("\":")) {
        return true;
    }
    let mut fields = Fields::default();
    read::record(object, &mut fields).is_ok() && fields.0.iter().any(|(name, _)| **name == *field)
}

/// The name of a tool in Claude's stream, without regard to its input.
pub(in crate::dialect) fn translate_name<'a>(name: &Text<'a>, kind: &ToolKind) -> Text<'a> {
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
        (ToolKind::Plan, own) if !own.starts_with("Task") => "TodoWrite",
        (ToolKind::Task, "invoke_agent" | "spawn_agent" | "task" | "agent") => "Agent",
        (
            ToolKind::Unspecified,
            "question" | "ask_user" | "ask_user_question" | "request_user_input",
        ) => "AskUserQuestion",
        _ => return name.clone(),
    };
    Text::plain(own)
}

/// The input of a tool in Claude's stream, which is always an object.
pub(in crate::dialect) fn translate_input<'a>(
    name: &Text<'_>,
    kind: &ToolKind,
    input: Option<&'a Json<'_>>,
) -> Cow<'a, str> {
    let Some(input) = input.filter(|input| input.is_object()) else { return Cow::Borrowed("{}") };
    let changed = match kind {
        ToolKind::Plan if *name != "TodoWrite" => {
            tools::plan_written(kind, input).map(|items| todo_input(&items))
        }
        ToolKind::Read => rename_fields(input, FIELDS_OF_READ),
        ToolKind::Write => rename_fields(input, FIELDS_OF_WRITE),
        ToolKind::Edit => rename_fields(input, FIELDS_OF_EDIT),
        ToolKind::List => rename_fields(input, FIELDS_OF_LIST),
        ToolKind::Task => rename_fields(input, FIELDS_OF_TASK),
        _ => None,
    };
    match changed {
        Some(json) => Cow::Owned(json.get().to_owned()),
        None => Cow::Borrowed(input.get()),
    }
}

/// The input of a `TodoWrite` that writes a plan. Claude's steps are pending, in progress or
/// completed: a cancelled step is completed, with a note in its text; any other is pending.
pub(in crate::dialect) fn todo_input(items: &[PlanItem<'_>]) -> Json<'static> {
    Json::object(|fields| {
        fields.objects("todos", items, |todo, item| {
            let text = match item.status {
                PlanStatus::Cancelled => &Text::from(format!("{} (cancelled)", item.text)),
                _ => &item.text,
            };
            let status = match &item.status {
                PlanStatus::Cancelled => PlanStatus::Completed.as_str(),
                status if can_express_status(status) => status.as_str(),
                _ => PlanStatus::Pending.as_str(),
            };
            todo.text("content", text).string("status", status);
            todo.text("activeForm", item.active_form.as_ref().unwrap_or(text));
        });
    })
}

/// Whether Claude's plans have this status.
pub(in crate::dialect) fn can_express_status(status: &PlanStatus) -> bool {
    matches!(status, PlanStatus::Pending | PlanStatus::InProgress | PlanStatus::Completed)
}

/// The input with Claude's names for its fields; the renamed fields are first. `None` if no field
/// needs another name.
fn rename_fields(input: &Json<'_>, names: FieldNames) -> Option<Json<'static>> {
    let Fields(fields) = read::record_of(input)?;
    let position = |wanted: &str| fields.iter().position(|(name, _)| **name == *wanted);
    let mut found: Vec<(usize, &str)> = Vec::new();
    for (other, own) in names {
        let has_own = || found.iter().any(|(_, known)| known == own) || position(own).is_some();
        if let Some(at) = position(other)
            && !has_own()
        {
            found.push((at, own));
        }
    }
    if found.is_empty() {
        return None;
    }
    Some(Json::object(|object: &mut Object<'_>| {
        for (at, own) in &found {
            fields.get(*at).into_iter().for_each(|(_, value)| {
                object.json(own, value);
            });
        }
        for (at, (name, value)) in fields.iter().enumerate() {
            if found.iter().all(|(renamed, _)| *renamed != at) {
                object.escaped_name(name).extend_from_slice(value.get().as_bytes());
            }
        }
    }))
}

/// The names of an agent's tools in its translated calls, without repeats. In `init`, `Agent` has
/// its older name `Task`.
pub(in crate::dialect) fn translate_names(list: &Json<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for tool in list.read::<Vec<Json<'_>>>().unwrap_or_default() {
        let Some(tool) = tool.as_text() else { continue };
        let own = translate_name(&tool, &tools::kind_of(&tool));
        let own = if own == "Agent" { "Task".to_owned() } else { own.to_plain().into_owned() };
        if !names.contains(&own) {
            names.push(own);
        }
    }
    names
}

record! {
    /// A denied call, in the list at the end of a turn.
    struct Denial<'a> {
        name: text "tool_name",
        call: text "tool_use_id",
        input: json "tool_input",
    }
}

/// Whether a list of denied calls has the names with which they were written.
pub(super) fn uses_written_names<'t>(
    list: &Json<'_>,
    written_name: impl Fn(&Text<'_>) -> Option<Text<'t>>,
) -> bool {
    let denials = read::records_of::<Denial<'_>>(list).unwrap_or_default();
    denials.iter().all(|denial| {
        let written = denial.call.as_ref().and_then(&written_name);
        written.is_none_or(|written| denial.name.as_ref().is_some_and(|name| *name == written))
    })
}

/// Writes a list of denied calls, each with the name with which it was written, or else with
/// Claude's name for its tool.
pub(super) fn write_denials<'t>(
    list: &Json<'_>,
    written_name: impl Fn(&Text<'_>) -> Option<Text<'t>>,
) -> Bytes {
    let denials = read::records_of::<Denial<'_>>(list).unwrap_or_default();
    let mut out = Bytes::from(*b"[");
    for (at, denial) in denials.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let tool = denial.name.clone().unwrap_or_default();
        let (name, input) = translate_call(&tool, &tools::kind_of(&tool), denial.input.as_ref());
        let written = denial.call.as_ref().and_then(&written_name);
        let name = written.as_ref().unwrap_or(&name);
        let mut object = Object::open(&mut out);
        object.text("tool_name", name).text_if("tool_use_id", denial.call.as_ref());
        object.raw("tool_input", &input);
        object.close();
    }
    out.push(b']');
    out
}

/// Claude's message for a denied call of a tool.
pub(in crate::dialect) fn denial_message(tool: &Text<'_>) -> Text<'static> {
    Text::from(format!("Permission to use {tool} has been denied."))
}

/// The answer of a call that did not complete and has no text: the model's API rejects an error
/// without text.
pub(in crate::dialect) fn default_answer(status: &ToolStatus, tool: &Text<'_>) -> Text<'static> {
    Text::plain(match status {
        ToolStatus::Denied => return denial_message(tool),
        ToolStatus::Cancelled => "The call was stopped.",
        ToolStatus::TimedOut => "The call took too long.",
        ToolStatus::Abandoned => "The call was never answered.",
        _ => "The call failed.",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn as_claude(kind: ToolKind, given: &str) -> String {
        let json = Json::from_text(given.to_owned()).unwrap();
        translate_input(&Text::plain("tool"), &kind, Some(&json)).into_owned()
    }

    #[test]
    fn a_path_gets_the_name_that_claude_gives_it() {
        let given = r#"{"path":"a.txt","limit":3}"#;
        assert_eq!(as_claude(ToolKind::Read, given), r#"{"file_path":"a.txt","limit":3}"#);
    }

    #[test]
    fn a_change_of_one_file_is_a_call_for_that_file() {
        let called = |given: &str| {
            let json = Json::from_text(given.to_owned()).unwrap();
            let (name, input) =
                translate_call(&Text::plain("file_change"), &ToolKind::Edit, Some(&json));
            (name.to_string(), input.into_owned())
        };
        let given = r#"{"changes":[{"path":"/a","kind":"add","diff":"x"}]}"#;
        let input = r#"{"file_path":"/a","kind":"add","content":"x"}"#;
        assert_eq!(called(given), ("Write".to_owned(), input.to_owned()));
        let several = r#"{"changes":[{"path":"/a","kind":"update"},{"path":"/b"}]}"#;
        assert_eq!(called(several), ("file_change".to_owned(), several.to_owned()));
    }

    #[test]
    fn an_input_that_is_not_an_object_becomes_an_empty_object() {
        assert_eq!(as_claude(ToolKind::Execute, r#""text""#), "{}");
    }
}
