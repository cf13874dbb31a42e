//! The known tools of agents, by name: their kinds, and the plans that they write.
//!
//! A tool whose name is not listed is of an unspecified kind, never an error.

use crate::event::{PlanItem, PlanStatus, ToolKind};
use crate::json::read::{self, Field, Flaw, Record};
use crate::json::{Json, Text};

/// The kind of a tool, by its name.
pub(crate) fn kind_of(name: &Text<'_>) -> ToolKind {
    let name = name.to_plain();
    match &*name {
        "Bash" | "command_execution" | "run_shell_command" | "bash" | "shell" => ToolKind::Execute,
        "Read" | "NotebookRead" | "read_file" | "read_many_files" | "file_read" => ToolKind::Read,
        "Write" | "write_file" => ToolKind::Write,
        "Edit" | "MultiEdit" | "NotebookEdit" | "replace" | "edit_file" | "file_change" => {
            ToolKind::Edit
        }
        "Grep" | "grep" | "grep_search" | "search_file_content" => ToolKind::Search,
        "Glob" | "glob" => ToolKind::Glob,
        "LS" | "ls" | "list_directory" => ToolKind::List,
        "WebFetch" | "web_fetch" => ToolKind::Fetch,
        "WebSearch" | "web_search" | "google_web_search" => ToolKind::WebSearch,
        "TodoWrite" | "write_todos" | "todo_write" | "TaskCreate" | "TaskUpdate" | "TaskGet"
        | "TaskList" | "update_plan" => ToolKind::Plan,
        "Agent" | "Task" | "invoke_agent" | "collab_tool_call" => ToolKind::Task,
        "StructuredOutput" | "structured_output" => ToolKind::Answer,
        name if name.starts_with("mcp__") => ToolKind::Mcp,
        _ => ToolKind::Unspecified,
    }
}

/// The complete plan that a call writes, if its tool updates the plan and the list can be read.
/// Tools that change a single step have no list.
pub(crate) fn plan_written<'a>(kind: &ToolKind, input: &'a Json<'_>) -> Option<Vec<PlanItem<'a>>> {
    if *kind != ToolKind::Plan {
        return None;
    }
    let list = read::record_of::<PlanInput<'_>>(input)?;
    Some(list.todos?.into_iter().map(PlanEntry::into_item).collect())
}

/// The steps of a list that is given as a JSON value.
pub(crate) fn plan_items<'a>(list: &'a Json<'_>) -> Option<Vec<PlanItem<'a>>> {
    let entries = read::records_of::<PlanEntry<'_>>(list)?;
    Some(entries.into_iter().map(PlanEntry::into_item).collect())
}

/// The input of a tool that writes the complete plan.
#[derive(Debug, Clone, Default)]
struct PlanInput<'a> {
    todos: Option<Vec<PlanEntry<'a>>>,
}

impl<'a> Record<'a> for PlanInput<'a> {
    fn field(&mut self, name: &str, value: Field<'_, 'a>) -> Result<(), Flaw> {
        match name {
            "todos" | "plan" | "items" => {
                let mut shape = read::Shaped::Other;
                value.shape(&mut shape)?;
                if let read::Shaped::List(list) = shape {
                    self.todos = Some(list);
                }
                Ok(())
            }
            _ => value.skip(),
        }
    }
}

/// A step, under any of the names that agents give its fields.
#[derive(Debug, Clone, Default)]
struct PlanEntry<'a> {
    id: Option<Text<'a>>,
    text: Option<Text<'a>>,
    status: Option<Json<'a>>,
    completed: Option<Json<'a>>,
    active_form: Option<Text<'a>>,
    priority: Option<Text<'a>>,
}

impl<'a> PlanEntry<'a> {
    fn into_item(self) -> PlanItem<'a> {
        let (status, raw_status) = match (self.status, self.completed) {
            (Some(status), _) => (status_of(&status), Some(status)),
            (None, Some(done)) if done.get() == "true" => (PlanStatus::Completed, Some(done)),
            (None, done) => (PlanStatus::Pending, done),
        };
        PlanItem {
            id: self.id,
            text: self.text.unwrap_or_default(),
            status,
            raw_status,
            active_form: self.active_form,
            priority: self.priority,
        }
    }
}

fn status_of(raw: &Json<'_>) -> PlanStatus {
    let Some(word) = raw.as_text() else { return PlanStatus::Pending };
    PlanStatus::from(&*word.to_plain())
}

impl<'a> Record<'a> for PlanEntry<'a> {
    fn field(&mut self, name: &str, value: Field<'_, 'a>) -> Result<(), Flaw> {
        match name {
            "id" => self.id = value.text()?,
            "content" | "description" | "text" | "step" | "subject" => self.text = value.text()?,
            "status" => self.status = value.json()?,
            "completed" => self.completed = value.json()?,
            "activeForm" | "active_form" => self.active_form = value.text()?,
            "priority" => self.priority = value.text()?,
            _ => value.skip()?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_keeps_its_priority() {
        let list = r#"[{"content":"A","status":"pending","priority":"high"},{"content":"B"}]"#;
        let list = Json::from_text(list.to_owned()).unwrap();
        let items = plan_items(&list).unwrap();
        assert_eq!(items[0].priority, Some("high".into()));
        assert_eq!(items[1].priority, None);
    }
}
