//! The rules that AG-UI clients rely on.
//!
//! The fields are those of the schemas of protocol 1.0, without any that a client would strip. The
//! order is that of the client's verifier, and stricter where the client would only display
//! something wrong.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::check::fields::{Expected, RecordFields};
use crate::check::{Findings, Rules};

/// The rules of `ag-ui`.
#[derive(Debug, Default)]
pub(super) struct AgUiRules {
    run: Option<Run>,
    ended: bool,
    /// The ids of runs and of messages, which a client keeps forever.
    ids: BTreeSet<String>,
    calls: BTreeSet<String>,
}

/// What is open in the current run.
#[derive(Debug, Default)]
struct Run {
    id: String,
    thread: String,
    steps: BTreeSet<String>,
    /// Messages, reasoning and reasoning messages, each with the sub-agent that it belongs to.
    open: BTreeMap<(Kind, String), String>,
    inputs: BTreeMap<String, String>,
    /// The calls without a result.
    waiting: BTreeSet<String>,
    /// Those of them that the agent runs itself.
    unanswered: BTreeSet<String>,
    subagents: BTreeMap<String, bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Text,
    Reasoning,
    ReasoningMessage,
}

/// The expected value of a field.
#[derive(Debug, Clone, Copy)]
enum Is {
    Text,
    Flag,
    Object,
    Anything,
    AnyButNull,
    Role(&'static str),
    Outcome,
    SubagentOutcome,
    Usage,
    Patch,
}

type Fields = &'static [(&'static str, Is)];

const ID: Fields = &[("messageId", Is::Text)];
const ID_DELTA: Fields = &[("messageId", Is::Text), ("delta", Is::Text)];
const CALL: Fields = &[("toolCallId", Is::Text)];
const RUN: Fields = &[("threadId", Is::Text), ("runId", Is::Text)];

/// The required and the optional fields of an event, or `None` for an unknown event.
fn fields_of(kind: &str) -> Option<(Fields, Fields)> {
    Some(match kind {
        "RUN_STARTED" => (RUN, &[("parentRunId", Is::Text)]),
        "RUN_FINISHED" => {
            (RUN, &[("result", Is::AnyButNull), ("outcome", Is::Outcome), ("usage", Is::Usage)])
        }
        "RUN_ERROR" => (&[("message", Is::Text)], &[("code", Is::Text), ("usage", Is::Usage)]),
        "STEP_STARTED" | "STEP_FINISHED" => (&[("stepName", Is::Text)], &[]),
        "TEXT_MESSAGE_START" => (ID, &[("role", Is::Role("assistant")), ("name", Is::Text)]),
        "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT" => (ID_DELTA, &[]),
        "REASONING_MESSAGE_START" => {
            (&[("messageId", Is::Text), ("role", Is::Role("reasoning"))], &[])
        }
        "TEXT_MESSAGE_END" | "REASONING_START" | "REASONING_MESSAGE_END" | "REASONING_END" => {
            (ID, &[])
        }
        "REASONING_ENCRYPTED_VALUE" => {
            (&[("subtype", Is::Text), ("entityId", Is::Text), ("encryptedValue", Is::Text)], &[])
        }
        "TOOL_CALL_START" => (
            &[("toolCallId", Is::Text), ("toolCallName", Is::Text)],
            &[("parentMessageId", Is::Text)],
        ),
        "TOOL_CALL_ARGS" => (&[("toolCallId", Is::Text), ("delta", Is::Text)], &[]),
        "TOOL_CALL_END" => (CALL, &[]),
        "TOOL_CALL_RESULT" => (
            &[("messageId", Is::Text), ("toolCallId", Is::Text), ("content", Is::Text)],
            &[("role", Is::Role("tool"))],
        ),
        "STATE_SNAPSHOT" => (&[("snapshot", Is::Anything)], &[]),
        "STATE_DELTA" => (&[("delta", Is::Patch)], &[]),
        "ACTIVITY_SNAPSHOT" => (
            &[("messageId", Is::Text), ("activityType", Is::Text), ("content", Is::Object)],
            &[("replace", Is::Flag)],
        ),
        "RAW" => (&[("event", Is::Anything)], &[("source", Is::Text)]),
        "CUSTOM" => (&[("name", Is::Text), ("value", Is::Anything)], &[]),
        "SUBAGENT_STARTED" => (
            &[("subagentRunId", Is::Text), ("name", Is::Text)],
            &[
                ("description", Is::Text),
                ("parentSubagentRunId", Is::Text),
                ("parentToolCallId", Is::Text),
                ("parentMessageId", Is::Text),
            ],
        ),
        "SUBAGENT_FINISHED" => (
            &[("subagentRunId", Is::Text)],
            &[("result", Is::AnyButNull), ("outcome", Is::SubagentOutcome)],
        ),
        "SUBAGENT_ERROR" => {
            (&[("subagentRunId", Is::Text), ("message", Is::Text)], &[("code", Is::Text)])
        }
        _ => return None,
    })
}

impl Expected for Is {
    fn holds(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Flag => value.is_boolean(),
            Self::Object => value.is_object(),
            Self::Anything => true,
            Self::AnyButNull => !value.is_null(),
            Self::Role(role) => value == role,
            Self::Outcome => ["success", "cancelled"].contains(&text(value, "type")),
            Self::SubagentOutcome => ["success", "suspended"].contains(&text(value, "type")),
            Self::Usage => {
                value.as_array().is_some_and(|entries| entries.iter().all(is_usage_entry))
            }
            Self::Patch => value.as_array().is_some_and(|changes| changes.iter().all(is_change)),
        }
    }
}

fn is_usage_entry(entry: &Value) -> bool {
    const LABELS: &[&str] = &["provider", "model"];
    const COUNTS: &[&str] = &[
        "inputTokens",
        "outputTokens",
        "totalTokens",
        "reasoningTokens",
        "cachedInputTokens",
        "cacheWriteInputTokens",
    ];
    let is_known = |(name, value): (&String, &Value)| {
        (LABELS.contains(&&**name) && value.is_string())
            || (COUNTS.contains(&&**name) && value.as_u64().is_some_and(|count| count < 1 << 53))
    };
    entry.as_object().is_some_and(|entry| entry.iter().all(is_known))
}

/// Whether this is a change of a JSON patch that applies to any state.
fn is_change(change: &Value) -> bool {
    text(change, "op") == "add"
        && text(change, "path").starts_with('/')
        && change.get("value").is_some()
}

impl Rules for AgUiRules {
    fn record(&mut self, event: &Value, findings: &mut Findings) {
        let kind = text(event, "type");
        let Some((required, optional)) = fields_of(kind) else {
            findings.add(
                "known-event",
                format!("`{kind}` is not an event of the protocol; a client drops it"),
            );
            return;
        };
        if let Some(fields) = event.as_object() {
            // The bounds of a run belong to no sub-agent.
            let every: Fields = if kind.starts_with("RUN_") {
                &[("metadata", Is::Object)]
            } else {
                &[("metadata", Is::Object), ("subagentRunId", Is::Text)]
            };
            RecordFields {
                kind,
                rule: "event-fields",
                required,
                optional,
                every,
                envelope: &["type"],
            }
            .check(fields, findings);
        }
        if kind == "RUN_STARTED" {
            self.run_started(event, findings);
            return;
        }
        let Some(run) = &mut self.run else {
            findings.add("in-a-run", format!("`{kind}` is outside a run"));
            return;
        };
        match kind {
            "STEP_STARTED" | "STEP_FINISHED" => run.step(kind, event, findings),
            "TEXT_MESSAGE_START" | "REASONING_START" | "REASONING_MESSAGE_START" => {
                // Reasoning may have the same id as the message in it.
                let id = text(event, "messageId");
                let fresh = kind == "REASONING_START" || self.ids.insert(id.to_owned());
                findings.require(fresh, "fresh-id", format!("`{id}` was used before"));
                run.open(kind, event, findings);
            }
            "TEXT_MESSAGE_CONTENT"
            | "TEXT_MESSAGE_END"
            | "REASONING_END"
            | "REASONING_MESSAGE_CONTENT"
            | "REASONING_MESSAGE_END" => {
                run.continue_message(kind, event, findings);
            }
            "REASONING_ENCRYPTED_VALUE" => {
                let known = text(event, "subtype") == "message"
                    && self.ids.contains(text(event, "entityId"));
                findings.require(known, "value-of-a-message", "no message has this id");
            }
            "TOOL_CALL_START" => {
                let id = text(event, "toolCallId");
                let fresh = self.calls.insert(id.to_owned());
                findings.require(fresh, "fresh-call-id", format!("`{id}` was used before"));
                run.call(event);
            }
            "TOOL_CALL_ARGS" | "TOOL_CALL_END" => run.input(kind, event, findings),
            "TOOL_CALL_RESULT" => {
                let id = text(event, "messageId");
                let fresh = self.ids.insert(id.to_owned());
                findings.require(fresh, "fresh-id", format!("`{id}` was used before"));
                run.answer(event, findings);
            }
            "STATE_SNAPSHOT" => {
                findings.add("state-kept", "it replaces the state of the application");
            }
            "SUBAGENT_STARTED" | "SUBAGENT_FINISHED" | "SUBAGENT_ERROR" => {
                run.subagent(kind, event, findings);
            }
            "RUN_FINISHED" | "RUN_ERROR" => self.run_ended(kind, event, findings),
            _ => {}
        }
    }

    fn finish(&mut self, findings: &mut Findings) {
        findings.require(self.run.is_none(), "run-ended", "the run has no end");
        findings.require(self.run.is_some() || self.ended, "in-a-run", "there is no run");
    }
}

impl AgUiRules {
    fn run_started(&mut self, event: &Value, findings: &mut Findings) {
        findings.require(self.run.is_none(), "run-ended", "the previous run has no end");
        let id = text(event, "runId").to_owned();
        let fresh = self.ids.insert(id.clone());
        findings.require(fresh, "fresh-id", format!("`{id}` was used before"));
        let thread = text(event, "threadId").to_owned();
        self.run = Some(Run { id, thread, ..Run::default() });
    }

    fn run_ended(&mut self, kind: &str, event: &Value, findings: &mut Findings) {
        let Some(run) = self.run.take() else { return };
        self.ended = true;
        if kind == "RUN_FINISHED" {
            let same = run.id == text(event, "runId") && run.thread == text(event, "threadId");
            findings.require(same, "same-run", "the run began with other ids");
        }
        run.require_closed(findings);
    }
}

impl Run {
    fn step(&mut self, kind: &str, event: &Value, findings: &mut Findings) {
        let name = text(event, "stepName").to_owned();
        let known = match kind {
            "STEP_STARTED" => self.steps.insert(name.clone()),
            _ => self.steps.remove(&name),
        };
        let state = if kind == "STEP_STARTED" { "already open" } else { "not open" };
        findings.require(known, "steps-in-order", format!("step `{name}` is {state}"));
    }

    fn open(&mut self, event_kind: &str, event: &Value, findings: &mut Findings) {
        let id = text(event, "messageId").to_owned();
        if event_kind == "REASONING_MESSAGE_START" {
            let inside = self.open.contains_key(&(Kind::Reasoning, id.clone()));
            findings.require(inside, "message-open", format!("no reasoning `{id}` is open"));
        }
        self.open.insert((Kind::of(event_kind), id), text(event, "subagentRunId").to_owned());
    }

    fn continue_message(&mut self, event_kind: &str, event: &Value, findings: &mut Findings) {
        let key = (Kind::of(event_kind), text(event, "messageId").to_owned());
        let Some(owner) = self.open.get(&key) else {
            findings.add("message-open", format!("no message `{}` is open", key.1));
            return;
        };
        let same = owner == text(event, "subagentRunId");
        findings.require(same, "same-subagent", format!("`{}` belongs to another agent", key.1));
        if event_kind.ends_with("_END") {
            self.open.remove(&key);
        }
    }

    fn call(&mut self, event: &Value) {
        let (id, owner) = (text(event, "toolCallId"), text(event, "subagentRunId"));
        self.inputs.insert(id.to_owned(), owner.to_owned());
        self.waiting.insert(id.to_owned());
        if event.get("metadata").is_none_or(|metadata| text(metadata, "executor") != "client") {
            self.unanswered.insert(id.to_owned());
        }
    }

    fn input(&mut self, kind: &str, event: &Value, findings: &mut Findings) {
        let id = text(event, "toolCallId");
        match self.inputs.get(id) {
            Some(owner) => {
                let same = owner == text(event, "subagentRunId");
                findings.require(same, "same-subagent", format!("`{id}` belongs to another agent"));
            }
            None => findings.add("input-open", format!("no input of `{id}` is open")),
        }
        if kind == "TOOL_CALL_END" {
            self.inputs.remove(id);
        }
    }

    fn answer(&mut self, event: &Value, findings: &mut Findings) {
        let id = text(event, "toolCallId");
        let open = self.inputs.contains_key(id);
        findings.require(!open, "input-open", format!("the input of `{id}` has no end"));
        let waits = self.waiting.remove(id);
        self.unanswered.remove(id);
        findings.require(waits, "one-answer", format!("no call `{id}` waits for an answer"));
    }

    fn subagent(&mut self, kind: &str, event: &Value, findings: &mut Findings) {
        const RULE: &str = "subagent-once";
        let id = text(event, "subagentRunId").to_owned();
        if kind == "SUBAGENT_STARTED" {
            let fresh = self.subagents.insert(id.clone(), true).is_none();
            findings.require(fresh, RULE, format!("`{id}` was started before"));
            let above = event.get("parentSubagentRunId").and_then(Value::as_str);
            let known = above.is_none_or(|above| self.subagents.contains_key(above));
            findings.require(known, RULE, "its parent sub-agent was not started");
            return;
        }
        let running = self.subagents.insert(id.clone(), false) == Some(true);
        findings.require(running, RULE, format!("`{id}` is not running"));
    }

    fn require_closed(&self, findings: &mut Findings) {
        for (_, id) in self.open.keys() {
            findings.add("message-closed", format!("`{id}` is still open"));
        }
        for id in self.inputs.keys() {
            findings.add("input-closed", format!("the input of `{id}` is still open"));
        }
        for step in &self.steps {
            findings.add("steps-in-order", format!("step `{step}` is still open"));
        }
        for (id, _) in self.subagents.iter().filter(|(_, running)| **running) {
            findings.add("subagent-once", format!("`{id}` is still running"));
        }
        for id in &self.unanswered {
            findings.add("call-answered", format!("`{id}` has no result"));
        }
    }
}

impl Kind {
    fn of(event: &str) -> Self {
        match event {
            "REASONING_START" | "REASONING_END" => Self::Reasoning,
            text if text.starts_with("TEXT_") => Self::Text,
            _ => Self::ReasoningMessage,
        }
    }
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or("")
}
