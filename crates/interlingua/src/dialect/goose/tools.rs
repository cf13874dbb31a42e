//! The tools of goose: their kinds, and the plan that they write. A tool of an extension is named
//! `extension__tool`, except goose's own developer tools.

use super::wire::PlanInput;
use crate::dialect::tools;
use crate::event::{PlanItem, PlanStatus, ToolKind};
use crate::json::read;
use crate::json::{Json, Text};

/// The kind of a tool.
pub(super) fn kind_of(name: &Text<'_>) -> ToolKind {
    let name = name.to_plain();
    let (extension, tool) = name.split_once("__").unwrap_or(("", &name));
    match (extension, tool) {
        ("" | "developer", "shell") => ToolKind::Execute,
        ("" | "developer", "write") => ToolKind::Write,
        ("" | "developer", "edit" | "text_editor") => ToolKind::Edit,
        ("" | "developer", "tree") => ToolKind::List,
        ("" | "developer", "read_image" | "image_processor") => ToolKind::Read,
        ("todo", "todo_write" | "todo_read") => ToolKind::Plan,
        ("" | "summon" | "subagent" | "dynamic_task", "delegate" | "subagent" | "execute_task") => {
            ToolKind::Task
        }
        ("", _) => tools::kind_of(&Text::plain(&name)),
        _ => ToolKind::Mcp,
    }
}

/// The plan that a call writes: a Markdown list of check boxes.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) items: Vec<PlanItem<'static>>,
    /// The input of the call. The steps are added as a list, as in the todo tools of other agents,
    /// since consumers do not parse the Markdown.
    pub(super) input: Json<'static>,
}

/// The plan that a call writes, if it writes one.
pub(super) fn plan_written(name: &Text<'_>, input: &Json<'_>) -> Option<Plan> {
    if *name != "todo__todo_write" {
        return None;
    }
    let list = read::record_of::<PlanInput<'_>>(input)?.content?;
    let items: Vec<_> = list.to_plain().lines().filter_map(step).collect();
    let input = Json::object(|fields| {
        fields.text("content", &list);
        fields.objects("todos", &items, |todo, item| {
            todo.text("content", &item.text).string("status", item.status.as_str());
        });
    });
    Some(Plan { items, input })
}

/// Parses a step: `- [x] Fix the test`.
fn step(line: &str) -> Option<PlanItem<'static>> {
    let item = line.trim_start().strip_prefix(['-', '*', '+'])?.trim_start();
    let (mark, text) = item.strip_prefix('[')?.split_once(']')?;
    let status = match mark.trim() {
        "" => PlanStatus::Pending,
        "x" | "X" => PlanStatus::Completed,
        "-" | "~" | "/" => PlanStatus::InProgress,
        _ => return None,
    };
    Some(PlanItem { text: Text::from(text.trim().to_owned()), status, ..PlanItem::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checked_box_is_a_completed_step() {
        let texts: Vec<_> = "# Plan\n- [x] one\n  * [ ] two\n- plain\n- [link](there)"
            .lines()
            .filter_map(step)
            .map(|item| (item.text.to_string(), item.status))
            .collect();
        let expected =
            [("one".to_owned(), PlanStatus::Completed), ("two".to_owned(), PlanStatus::Pending)];
        assert_eq!(texts, expected);
    }
}
