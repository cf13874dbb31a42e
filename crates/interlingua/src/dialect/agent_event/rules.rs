//! The rules that consumers of `AgentEvent` streams rely on.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::check::fields::{Expected, RecordFields};
use crate::check::{Findings, Rules};

/// The tools whose calls appear only as `todo_list`.
const TODO_TOOLS: &[&str] =
    &["TodoWrite", "write_todos", "TaskCreate", "TaskUpdate", "TaskGet", "TaskList"];

/// The fields of the envelope.
const ENVELOPE: &[&str] = &["type", "eventId", "agentId", "agentType", "teamMetadata", "timestamp"];

/// The rules of `agent-event`.
#[derive(Debug, Default)]
pub(super) struct AgentEventRules {
    started: bool,
    ids: BTreeSet<String>,
    /// The calls, and whether each was answered.
    calls: BTreeMap<String, bool>,
    /// A turn has begun and not ended.
    in_turn: bool,
    /// An error was reported since the last turn ended.
    error_reported: bool,
    /// The last list.
    list: Option<Value>,
}

/// The fields of a type: the required and the optional ones.
type Fields = (&'static [(&'static str, Is)], &'static [(&'static str, Is)]);

#[derive(Debug, Clone, Copy)]
enum Is {
    Text,
    Object,
    List,
    OneOf(&'static [&'static str]),
}

impl Expected for Is {
    fn holds(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Object => value.is_object(),
            Self::List => value.is_array(),
            Self::OneOf(words) => value.as_str().is_some_and(|word| words.contains(&word)),
        }
    }
}

fn fields_of(kind: &str) -> Option<Fields> {
    Some(match kind {
        "session.started" => (&[], &[]),
        "text" => (
            &[("text", Is::Text)],
            &[("role", Is::OneOf(&["assistant", "system"])), ("category", Is::Text)],
        ),
        "tool.started" => {
            (&[("toolName", Is::Text), ("toolId", Is::Text), ("input", Is::Object)], &[])
        }
        "tool.completed" => (
            &[("toolId", Is::Text)],
            &[("toolName", Is::Text), ("output", Is::Text), ("error", Is::Text)],
        ),
        "turn.completed" => {
            const REASONS: &[&str] = &["done", "error", "cancelled", "timeout"];
            (&[("finishReason", Is::OneOf(REASONS))], &[])
        }
        "error" => (&[("error", Is::Text)], &[("code", Is::Text), ("stack", Is::Text)]),
        "todo_list" => (&[("todoId", Is::Text), ("items", Is::List)], &[]),
        _ => return None,
    })
}

impl Rules for AgentEventRules {
    fn record(&mut self, record: &Value, findings: &mut Findings) {
        let kind = text(record, "type");
        self.envelope(record, findings);
        let Some((required, optional)) = fields_of(kind) else {
            findings.add("known-type", format!("`{kind}` is not a type of this dialect"));
            return;
        };
        if let Some(fields) = record.as_object() {
            RecordFields {
                kind,
                rule: "fields",
                required,
                optional,
                every: &[],
                envelope: ENVELOPE,
            }
            .check(fields, findings);
        }
        self.order(kind, findings);
        match kind {
            "tool.started" => self.call(record, findings),
            "tool.completed" => self.answer(record, findings),
            "todo_list" => self.todo_list(record, findings),
            "error" => self.error_reported = true,
            "turn.completed" => self.turn_completed(record, findings),
            _ => {}
        }
    }

    fn finish(&mut self, findings: &mut Findings) {
        let message = "records follow the last `turn.completed`";
        findings.require(!self.in_turn, "turn-completed-last", message);
    }
}

impl AgentEventRules {
    fn envelope(&mut self, record: &Value, findings: &mut Findings) {
        const RULE: &str = "envelope";
        for name in ["eventId", "agentId", "agentType"] {
            let there = !text(record, name).is_empty();
            findings.require(there, RULE, format!("`{name}` must be a string"));
        }
        let team = record.get("teamMetadata").is_some_and(Value::is_object);
        findings.require(team, RULE, "`teamMetadata` must be an object");
        let time = record.get("timestamp").is_some_and(Value::is_u64);
        findings.require(time, RULE, "`timestamp` must be a number of milliseconds");
        let id = text(record, "eventId");
        let fresh = self.ids.insert(id.to_owned());
        findings.require(fresh, "fresh-event-id", format!("`{id}` was used before"));
    }

    fn order(&mut self, kind: &str, findings: &mut Findings) {
        match kind {
            "session.started" => self.started = true,
            // Unreadable input before the session is reported as an error.
            "error" => {}
            _ => {
                let message = format!("`{kind}` precedes `session.started`");
                findings.require(self.started, "session-first", message);
                self.started = true;
                self.in_turn = kind != "turn.completed";
            }
        }
    }

    fn call(&mut self, record: &Value, findings: &mut Findings) {
        let (id, name) = (text(record, "toolId"), text(record, "toolName"));
        no_todo_tool(name, findings);
        let known = self.calls.insert(id.to_owned(), false).is_some();
        findings.require(!known, "fresh-tool-id", format!("`{id}` was used before"));
    }

    fn answer(&mut self, record: &Value, findings: &mut Findings) {
        let id = text(record, "toolId");
        no_todo_tool(text(record, "toolName"), findings);
        match self.calls.get_mut(id) {
            Some(answered) => {
                let again = std::mem::replace(answered, true);
                findings.require(
                    !again,
                    "tool-answered-once",
                    format!("`{id}` was answered before"),
                );
            }
            None => findings.add("tool-started-first", format!("`{id}` was not started")),
        }
    }

    fn todo_list(&mut self, record: &Value, findings: &mut Findings) {
        todo_items(record, findings);
        let list = json!([record.get("todoId"), record.get("items")]);
        let repeats = self.list.as_ref() == Some(&list);
        findings.require(!repeats, "todo-list-changed", "the list repeats the previous one");
        self.list = Some(list);
    }

    fn turn_completed(&mut self, record: &Value, findings: &mut Findings) {
        let reported = std::mem::take(&mut self.error_reported);
        let failed = text(record, "finishReason") == "error";
        let message = "no `error` states why the turn failed";
        findings.require(reported || !failed, "error-reported", message);
        for (id, answered) in &mut self.calls {
            let open = !std::mem::replace(answered, true);
            findings.require(!open, "tool-answered", format!("`{id}` was never completed"));
        }
    }
}

fn no_todo_tool(name: &str, findings: &mut Findings) {
    let todo = TODO_TOOLS.contains(&name);
    let message = format!("`{name}` may appear only as `todo_list`");
    findings.require(!todo, "todo-tool-hidden", message);
}

fn todo_items(record: &Value, findings: &mut Findings) {
    const RULE: &str = "todo-items";
    let statuses = ["pending", "in_progress", "completed", "cancelled"];
    for item in record.get("items").and_then(Value::as_array).into_iter().flatten() {
        let (words, status) = (text(item, "text"), text(item, "status"));
        findings.require(!words.trim().is_empty(), RULE, "an item has no text");
        findings.require(statuses.contains(&status), RULE, format!("`{status}` is not a status"));
        let size = item.as_object().map_or(0, Map::len);
        findings.require(
            size == 2,
            RULE,
            "an item must have a text and a status, and no other field",
        );
    }
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or("")
}
