//! Any agent's tool, as Claude Code would have called it.
//!
//! Programs that show Claude's stream know its tools by name: `Bash`, `Read`, `Edit`, `TodoWrite`.
//! A tool of another agent that does the same work is given the same name, and what Claude's own is
//! given too the name that it has there (`file_path`, `old_string`); everything else of the input
//! stays as it was. A tool that Claude has no
//! counterpart for, or that is not told what Claude's own cannot do without, keeps its own name.

use std::borrow::Cow;

use super::changes::{self, FileCall};
use crate::dialect::tools;
use crate::event::{FileChangeKind, PlanItem, PlanStatus, ToolKind, ToolStatus};
use crate::json::read::{self, Fields};
use crate::json::write::{Bytes, Object};
use crate::json::{Json, Text, record};

/// What agents call a field of an input, and what Claude calls it. The first that is there counts.
type OtherNames = &'static [(&'static str, &'static str)];

const NAMES_IN_READ: OtherNames = &[
    ("path", "file_path"),
    ("filePath", "file_path"),
    ("absolute_path", "file_path"),
    ("notebook_path", "file_path"),
];
const NAMES_IN_WRITE: OtherNames = &[
    ("path", "file_path"),
    ("filePath", "file_path"),
    ("absolute_path", "file_path"),
    ("file_text", "content"),
];
const NAMES_IN_EDIT: OtherNames = &[
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
const NAMES_IN_LIST: OtherNames = &[("dir_path", "path")];
const NAMES_IN_TASK: OtherNames =
    &[("agent_name", "subagent_type"), ("agent_type", "subagent_type")];

/// A call in Claude's stream: the name of the tool, and its input.
pub(in crate::dialect) fn call<'a>(
    tool: &Text<'a>,
    kind: &ToolKind,
    given: Option<&'a Json<'_>>,
) -> (Text<'a>, Cow<'a, str>) {
    if let Some(file) = one_changed_file(kind, given) {
        return (Text::plain(file.name), Cow::Owned(file.input.get().to_owned()));
    }
    let (own, input) = (name(tool, kind), input(tool, kind, given));
    if own == *tool {
        return (own, input);
    }
    if needed(own.body()).is_none_or(|field| has(&input, field)) {
        return (own, input);
    }
    match given.filter(|given| given.is_object()) {
        Some(given) => (tool.clone(), Cow::Borrowed(given.get())),
        None => (tool.clone(), input),
    }
}

/// What is done to a file, where it is one file, and it is still there afterwards.
fn one_changed_file(kind: &ToolKind, given: Option<&Json<'_>>) -> Option<FileCall> {
    let mut files = changes::calls(kind, given)?;
    let file = files.pop().filter(|_| files.is_empty())?;
    Some(file).filter(|file| file.change.kind != FileChangeKind::Delete)
}

/// What a tool of Claude's cannot do without.
fn needed(tool: &str) -> Option<&'static str> {
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

/// Whether an object has a field; most have the one that matters first.
fn has(object: &str, field: &str) -> bool {
    let first = object.strip_prefix("{\"").and_then(|rest| rest.strip_prefix(field));
    if first.is_some_and(|rest| rest.starts_with("\":")) {
        return true;
    }
    let mut fields = Fields::default();
    read::record(object, &mut fields).is_ok() && fields.0.iter().any(|(name, _)| **name == *field)
}

/// The name of a tool in Claude's stream, whatever its input.
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

/// The input of a tool in Claude's stream; always an object.
pub(in crate::dialect) fn input<'a>(
    name: &Text<'_>,
    kind: &ToolKind,
    input: Option<&'a Json<'_>>,
) -> Cow<'a, str> {
    let Some(input) = input.filter(|input| input.is_object()) else { return Cow::Borrowed("{}") };
    let changed = match kind {
        ToolKind::Plan if *name != "TodoWrite" => {
            tools::plan_written(kind, input).map(|items| todo_input(&items))
        }
        ToolKind::Read => renamed(input, NAMES_IN_READ),
        ToolKind::Write => renamed(input, NAMES_IN_WRITE),
        ToolKind::Edit => renamed(input, NAMES_IN_EDIT),
        ToolKind::List => renamed(input, NAMES_IN_LIST),
        ToolKind::Task => renamed(input, NAMES_IN_TASK),
        _ => None,
    };
    match changed {
        Some(json) => Cow::Owned(json.get().to_owned()),
        None => Cow::Borrowed(input.get()),
    }
}

/// The input with which `TodoWrite` writes a plan. Claude's steps are pending, in progress or
/// completed: one that was given up is over, and says so in words; any other is not begun.
pub(in crate::dialect) fn todo_input(items: &[PlanItem<'_>]) -> Json<'static> {
    Json::object(|fields| {
        fields.objects("todos", items, |todo, item| {
            let text = match item.status {
                PlanStatus::Cancelled => &Text::from(format!("{} (cancelled)", item.text)),
                _ => &item.text,
            };
            let status = match &item.status {
                PlanStatus::Cancelled => PlanStatus::Completed.as_str(),
                status if has_word_for(status) => status.as_str(),
                _ => PlanStatus::Pending.as_str(),
            };
            todo.text("content", text).string("status", status);
            todo.text("activeForm", item.active_form.as_ref().unwrap_or(text));
        });
    })
}

/// Whether Claude's plan can say how far a step is.
pub(in crate::dialect) fn has_word_for(status: &PlanStatus) -> bool {
    matches!(status, PlanStatus::Pending | PlanStatus::InProgress | PlanStatus::Completed)
}

/// The input with its fields under the names that Claude gives them, these in front; `None` where it
/// has them already, or has none of them.
fn renamed(input: &Json<'_>, names: OtherNames) -> Option<Json<'static>> {
    let Fields(fields) = read::record_of(input)?;
    let place = |wanted: &str| fields.iter().position(|(name, _)| **name == *wanted);
    let mut found: Vec<(usize, &str)> = Vec::new();
    for (other, own) in names {
        let told = || found.iter().any(|(_, known)| known == own) || place(own).is_some();
        if let Some(at) = place(other)
            && !told()
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

/// The names of an agent's tools as its calls will have them, each once. `init` knows `Agent` by its
/// older name alone.
pub(in crate::dialect) fn names(list: &Json<'_>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for tool in list.read::<Vec<Json<'_>>>().unwrap_or_default() {
        let Some(tool) = tool.as_text() else { continue };
        let own = name(&tool, &tools::kind_of(&tool));
        let own = if own == "Agent" { "Task".to_owned() } else { own.to_plain().into_owned() };
        if !names.contains(&own) {
            names.push(own);
        }
    }
    names
}

record! {
    /// A call that was refused, in the list at the end of a turn.
    struct Denial<'a> {
        name: text "tool_name",
        call: text "tool_use_id",
        input: json "tool_input",
    }
}

/// Whether a list of refused calls has the names under which they were told.
pub(super) fn names_denials<'t>(
    list: &Json<'_>,
    told: impl Fn(&Text<'_>) -> Option<Text<'t>>,
) -> bool {
    let denials = read::records_of::<Denial<'_>>(list).unwrap_or_default();
    denials.iter().all(|denial| {
        let told = denial.call.as_ref().and_then(&told);
        told.is_none_or(|told| denial.name.as_ref().is_some_and(|name| *name == told))
    })
}

/// A list of refused calls, with the names under which they were told, or that Claude gives to their
/// tools.
pub(super) fn denials<'t>(list: &Json<'_>, told: impl Fn(&Text<'_>) -> Option<Text<'t>>) -> Bytes {
    let denials = read::records_of::<Denial<'_>>(list).unwrap_or_default();
    let mut out = Bytes::from(*b"[");
    for (at, denial) in denials.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let tool = denial.name.clone().unwrap_or_default();
        let (name, input) = call(&tool, &tools::kind_of(&tool), denial.input.as_ref());
        let told = denial.call.as_ref().and_then(&told);
        let name = told.as_ref().unwrap_or(&name);
        let mut object = Object::open(&mut out);
        object.text("tool_name", name).text_if("tool_use_id", denial.call.as_ref());
        object.raw("tool_input", &input);
        object.close();
    }
    out.push(b']');
    out
}

/// What Claude says of a tool that may not be used.
pub(in crate::dialect) fn refusal(tool: &Text<'_>) -> Text<'static> {
    Text::from(format!("Permission to use {tool} has been denied."))
}

/// The answer of a call that did not go well where the agent has no words for it: the model's API
/// takes no error without any.
pub(in crate::dialect) fn unsaid(status: &ToolStatus, tool: &Text<'_>) -> Text<'static> {
    Text::plain(match status {
        ToolStatus::Denied => return refusal(tool),
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
        input(&Text::plain("tool"), &kind, Some(&json)).into_owned()
    }

    #[test]
    fn a_path_gets_the_name_that_claude_gives_it() {
        let given = r#"{"path":"a.txt","limit":3}"#;
        assert_eq!(as_claude(ToolKind::Read, given), r#"{"file_path":"a.txt","limit":3}"#);
    }

    #[test]
    fn the_one_file_of_a_change_is_its_path() {
        let called = |given: &str| {
            let json = Json::from_text(given.to_owned()).unwrap();
            let (name, input) = call(&Text::plain("file_change"), &ToolKind::Edit, Some(&json));
            (name.to_string(), input.into_owned())
        };
        let given = r#"{"changes":[{"path":"/a","kind":"add","diff":"x"}]}"#;
        let input = r#"{"file_path":"/a","kind":"add","content":"x"}"#;
        assert_eq!(called(given), ("Write".to_owned(), input.to_owned()));
        let several = r#"{"changes":[{"path":"/a","kind":"update"},{"path":"/b"}]}"#;
        assert_eq!(called(several), ("file_change".to_owned(), several.to_owned()));
    }

    #[test]
    fn an_input_that_is_no_object_is_an_empty_one() {
        assert_eq!(as_claude(ToolKind::Execute, r#""text""#), "{}");
    }
}
