//! Folds the calls of Claude's task tools into the plan that they change.
//!
//! `TaskCreate` and `TaskUpdate` change one task each, and the id of a new task is only in the
//! answer. The plan lists all tasks, and is emitted after each answer.

use std::collections::BTreeMap;

use crate::dialect::tools;
use crate::event::{PlanItem, PlanStatus, PlanUpdated};
use crate::json::read;
use crate::json::{Json, Text, record};

/// The tasks, and the unanswered calls that change them.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    tasks: Vec<Task>,
    pending: BTreeMap<String, Change>,
}

#[derive(Debug, Clone)]
struct Task {
    id: String,
    subject: String,
    status: String,
    active_form: Option<String>,
}

#[derive(Debug)]
enum Change {
    Create { subject: String, active_form: Option<String> },
    Update { id: String, subject: Option<String>, status: Option<String> },
    List,
}

record! {
    struct TaskInput<'a> {
        subject: text "subject",
        active_form: text "activeForm",
        task_id: text "taskId",
        status: text "status",
    }
}

record! {
    struct TaskAnswer<'a> {
        task: record<CreatedTask> "task",
        tasks: json "tasks",
    }
}

record! {
    struct CreatedTask<'a> {
        id: text "id",
        _subject: text "subject",
    }
}

impl Tasks {
    /// Keeps the change that a call to a task tool requests, until the call is answered.
    pub(super) fn note_call(&mut self, call: &Text<'_>, name: &Text<'_>, input: Option<&Json<'_>>) {
        let kind = name.to_plain();
        if !matches!(&*kind, "TaskCreate" | "TaskUpdate" | "TaskList") {
            return;
        }
        let input = input.and_then(read::record_of::<TaskInput<'_>>).unwrap_or_default();
        let plain = |text: Option<Text<'_>>| text.map(|text| text.to_string());
        let change = match &*kind {
            "TaskCreate" => Change::Create {
                subject: plain(input.subject).unwrap_or_default(),
                active_form: plain(input.active_form),
            },
            "TaskUpdate" => Change::Update {
                id: plain(input.task_id).unwrap_or_default(),
                subject: plain(input.subject),
                status: plain(input.status),
            },
            _ => Change::List,
        };
        self.pending.insert(call.to_string(), change);
    }

    /// Applies the change of an answered call, and returns the plan if it changed.
    pub(super) fn apply_answer(
        &mut self,
        call: &Text<'_>,
        failed: bool,
        answer: Option<&Json<'_>>,
    ) -> Option<PlanUpdated<'static>> {
        if self.pending.is_empty() {
            return None;
        }
        let change = self.pending.remove(&*call.to_plain()).filter(|_| !failed)?;
        let answer = answer.and_then(read::record_of::<TaskAnswer<'_>>).unwrap_or_default();
        match change {
            Change::Create { subject, active_form } => {
                let id = answer.task.and_then(|task| task.id)?.to_string();
                let status = PlanStatus::Pending.as_str().to_owned();
                self.tasks.push(Task { id, subject, status, active_form });
            }
            Change::Update { id, subject, status } => self.update(&id, subject, status),
            Change::List => self.replace(&answer.tasks?),
        }
        Some(self.plan())
    }

    fn update(&mut self, id: &str, subject: Option<String>, status: Option<String>) {
        if status.as_deref() == Some("deleted") {
            self.tasks.retain(|task| task.id != id);
            return;
        }
        if let Some(task) = self.tasks.iter_mut().find(|task| task.id == id) {
            task.subject = subject.unwrap_or_else(|| std::mem::take(&mut task.subject));
            task.status = status.unwrap_or_else(|| std::mem::take(&mut task.status));
        }
    }

    fn replace(&mut self, list: &Json<'_>) {
        let Some(items) = tools::plan_items(list) else { return };
        let known = std::mem::take(&mut self.tasks);
        self.tasks = items
            .into_iter()
            .map(|item| {
                let id = item.id.map(|id| id.to_string()).unwrap_or_default();
                let active_form = known
                    .iter()
                    .find(|task| task.id == id)
                    .and_then(|task| task.active_form.clone());
                let status = item.status.as_str().to_owned();
                Task { id, subject: item.text.to_string(), status, active_form }
            })
            .collect();
    }

    fn plan(&self) -> PlanUpdated<'static> {
        let items = self.tasks.iter().cloned().map(|task| PlanItem {
            id: Some(Text::from(task.id)),
            text: Text::from(task.subject),
            status: PlanStatus::from(&*task.status),
            active_form: task.active_form.map(Text::from),
            ..PlanItem::default()
        });
        PlanUpdated { plan: Some(Text::plain("tasks")), call: None, items: items.collect() }
    }
}
