//! The rules that clients of a UI message stream rely on.
//!
//! The fields are those of the strictest known client (`ai` 6.0.229). The order is stricter than
//! what any client checks, since most of them check little and display something wrong instead.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::check::fields::{Expected, RecordFields};
use crate::check::{Findings, Rules};

/// The rules of `ui-message`.
#[derive(Debug, Default)]
pub(super) struct UiMessageRules {
    started: bool,
    finishes: u64,
    in_step: bool,
    error_reported: bool,
    blocks: BTreeMap<String, Block>,
    calls: BTreeMap<String, Call>,
}

#[derive(Debug)]
struct Block {
    family: &'static str,
    open: bool,
}

#[derive(Debug)]
struct Call {
    flags: Flags,
    input_known: bool,
    /// The client must approve the call.
    needs_approval: bool,
    answered: bool,
}

/// Who runs a tool, and whether the client knows it. They are the same on every chunk of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Flags {
    provider_executed: bool,
    dynamic: bool,
}

/// The expected value of a field.
#[derive(Debug, Clone, Copy)]
enum Is {
    Text,
    Flag,
    Metadata,
    Object,
    Anything,
    FinishReason,
}

type Fields = &'static [(&'static str, Is)];

const METADATA: Fields = &[("providerMetadata", Is::Metadata)];
const OF_CALL: Fields = &[
    ("providerExecuted", Is::Flag),
    ("providerMetadata", Is::Metadata),
    ("toolMetadata", Is::Object),
    ("dynamic", Is::Flag),
    ("title", Is::Text),
];
const OF_ANSWER: Fields = &[
    ("providerExecuted", Is::Flag),
    ("providerMetadata", Is::Metadata),
    ("toolMetadata", Is::Object),
    ("dynamic", Is::Flag),
    ("preliminary", Is::Flag),
];

/// The required and the optional fields of a chunk, or `None` for an unknown chunk.
fn fields_of(kind: &str) -> Option<(Fields, Fields)> {
    Some(match kind {
        "start" => (&[], &[("messageId", Is::Text), ("messageMetadata", Is::Object)]),
        "start-step" | "finish-step" => (&[], &[]),
        "text-start" | "text-end" | "reasoning-start" | "reasoning-end" => {
            (&[("id", Is::Text)], METADATA)
        }
        "text-delta" | "reasoning-delta" => (&[("id", Is::Text), ("delta", Is::Text)], METADATA),
        "tool-input-start" => (&[("toolCallId", Is::Text), ("toolName", Is::Text)], OF_CALL),
        "tool-input-delta" => (&[("toolCallId", Is::Text), ("inputTextDelta", Is::Text)], &[]),
        "tool-input-available" => {
            (&[("toolCallId", Is::Text), ("toolName", Is::Text), ("input", Is::Anything)], OF_CALL)
        }
        "tool-input-error" => (
            &[
                ("toolCallId", Is::Text),
                ("toolName", Is::Text),
                ("input", Is::Anything),
                ("errorText", Is::Text),
            ],
            OF_CALL,
        ),
        "tool-output-available" => {
            (&[("toolCallId", Is::Text), ("output", Is::Anything)], OF_ANSWER)
        }
        "tool-output-error" => (&[("toolCallId", Is::Text), ("errorText", Is::Text)], OF_ANSWER),
        "tool-output-denied" => (&[("toolCallId", Is::Text)], &[]),
        "tool-approval-request" => {
            (&[("approvalId", Is::Text), ("toolCallId", Is::Text)], &[("signature", Is::Text)])
        }
        "source-url" => (
            &[("sourceId", Is::Text), ("url", Is::Text)],
            &[("title", Is::Text), ("providerMetadata", Is::Metadata)],
        ),
        "source-document" => (
            &[("sourceId", Is::Text), ("mediaType", Is::Text), ("title", Is::Text)],
            &[("filename", Is::Text), ("providerMetadata", Is::Metadata)],
        ),
        "file" => (&[("url", Is::Text), ("mediaType", Is::Text)], METADATA),
        "message-metadata" => (&[("messageMetadata", Is::Object)], &[]),
        "error" => (&[("errorText", Is::Text)], &[]),
        "abort" => (&[], &[("reason", Is::Text)]),
        "finish" => (&[("finishReason", Is::FinishReason)], &[("messageMetadata", Is::Object)]),
        data if data.starts_with("data-") => {
            (&[("data", Is::Anything)], &[("id", Is::Text), ("transient", Is::Flag)])
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
            Self::Metadata => {
                value.as_object().is_some_and(|providers| providers.values().all(Value::is_object))
            }
            Self::FinishReason => {
                let known = ["stop", "length", "content-filter", "tool-calls", "error", "other"];
                value.as_str().is_some_and(|reason| known.contains(&reason))
            }
        }
    }
}

impl Rules for UiMessageRules {
    fn record(&mut self, chunk: &Value, findings: &mut Findings) {
        let kind = text(chunk, "type");
        self.order(kind, findings);
        let Some((required, optional)) = fields_of(kind) else {
            findings.add("known-chunk", format!("`{kind}` is not a chunk; a client aborts here"));
            return;
        };
        if let Some(fields) = chunk.as_object() {
            RecordFields {
                kind,
                rule: "chunk-fields",
                required,
                optional,
                every: &[],
                envelope: &["type"],
            }
            .check(fields, findings);
        }
        findings.require(
            !names_a_prototype(chunk),
            "no-prototypes",
            "a field has the name of a prototype; a client aborts here",
        );
        match kind {
            "start-step" | "finish-step" => self.step(kind == "start-step", findings),
            "text-start" | "text-delta" | "text-end" => self.block("text", kind, chunk, findings),
            "reasoning-start" | "reasoning-delta" | "reasoning-end" => {
                self.block("reasoning", kind, chunk, findings);
            }
            "tool-input-start" | "tool-input-available" | "tool-input-error" => {
                self.call(kind, chunk, findings);
            }
            "tool-input-delta" => self.input(text(chunk, "toolCallId"), findings),
            "tool-output-available" | "tool-output-error" | "tool-output-denied" => {
                self.answer(chunk, findings);
            }
            "tool-approval-request" => {
                if let Some(call) = self.known_call(text(chunk, "toolCallId"), findings) {
                    call.needs_approval = true;
                }
            }
            "error" => self.error_reported = true,
            "finish" => self.finish_chunk(chunk, findings),
            _ => {}
        }
    }

    fn finish(&mut self, findings: &mut Findings) {
        findings.require(self.started, "start-first", "there is no `start`");
        findings.require(self.finishes > 0, "one-finish", "there is no `finish`");
    }
}

impl UiMessageRules {
    fn order(&mut self, kind: &str, findings: &mut Findings) {
        let start = kind == "start";
        if start == self.started {
            let what = if start { "it is repeated" } else { "another chunk precedes it" };
            findings.add("start-first", what);
        }
        self.started = true;
        if kind == "finish" {
            self.finishes += 1;
            findings.require(self.finishes == 1, "one-finish", "this is not the first `finish`");
        } else {
            let message = format!("`{kind}` follows `finish`");
            findings.require(self.finishes == 0, "finish-last", message);
        }
        let of_the_model = ["text-", "reasoning-", "tool-input-", "file"];
        if of_the_model.iter().any(|start| kind.starts_with(start)) {
            findings.require(self.in_step, "in-a-step", format!("`{kind}` is outside a step"));
        }
    }

    fn step(&mut self, starts: bool, findings: &mut Findings) {
        const RULE: &str = "steps-in-order";
        let message = if starts { "a step is already open" } else { "no step is open" };
        findings.require(self.in_step != starts, RULE, message);
        self.in_step = starts;
        self.require_closed(findings);
    }

    /// Requires that nothing is open, since clients forget it at the end of a step.
    fn require_closed(&self, findings: &mut Findings) {
        for (id, _) in self.blocks.iter().filter(|(_, block)| block.open) {
            findings.add("block-closed", format!("`{id}` is still open"));
        }
        for (id, _) in self.calls.iter().filter(|(_, call)| !call.input_known) {
            findings.add("input-known", format!("`{id}` has no `tool-input-available`"));
        }
        let waiting = |call: &Call| call.flags.provider_executed && !call.answered;
        for (id, _) in self.calls.iter().filter(|(_, call)| waiting(call)) {
            findings.add("call-answered", format!("`{id}` has no output"));
        }
    }

    fn block(&mut self, family: &'static str, kind: &str, chunk: &Value, findings: &mut Findings) {
        let id = text(chunk, "id");
        if kind.ends_with("-start") {
            let block = Block { family, open: true };
            let known = self.blocks.insert(id.to_owned(), block).is_some();
            findings.require(!known, "fresh-block-id", format!("`{id}` was used before"));
            return;
        }
        let open = self.blocks.get_mut(id).filter(|block| block.open && block.family == family);
        match open {
            Some(block) => block.open = kind.ends_with("-delta"),
            None => findings.add("block-open", format!("no {family} block `{id}` is open")),
        }
    }

    fn call(&mut self, kind: &str, chunk: &Value, findings: &mut Findings) {
        let id = text(chunk, "toolCallId");
        let flags = Flags::of(chunk);
        let both = flags.provider_executed == flags.dynamic;
        findings.require(both, "dynamic-call", "a tool of the agent must be `dynamic`");
        let starts = kind == "tool-input-start";
        match self.calls.get_mut(id) {
            Some(call) if !starts && !call.input_known => {
                call.input_known = true;
                let same = call.flags == flags;
                findings.require(same, "same-flags", format!("`{id}` began with other flags"));
            }
            Some(_) => findings.add("fresh-call-id", format!("`{id}` was used before")),
            None => {
                let call =
                    Call { flags, input_known: !starts, needs_approval: false, answered: false };
                self.calls.insert(id.to_owned(), call);
            }
        }
    }

    fn input(&mut self, id: &str, findings: &mut Findings) {
        let open = self.calls.get(id).is_some_and(|call| !call.input_known);
        findings.require(open, "input-open", format!("no input of `{id}` is open"));
    }

    fn known_call(&mut self, id: &str, findings: &mut Findings) -> Option<&mut Call> {
        let call = self.calls.get_mut(id).filter(|call| call.input_known);
        if call.is_none() {
            findings.add("answer-to-a-call", format!("`{id}` was not called"));
        }
        call
    }

    fn answer(&mut self, chunk: &Value, findings: &mut Findings) {
        let id = text(chunk, "toolCallId");
        let (kind, flags) = (text(chunk, "type"), Flags::of(chunk));
        let Some(call) = self.known_call(id, findings) else { return };
        let same = call.flags == flags || kind == "tool-output-denied";
        let preliminary = flag(chunk, "preliminary");
        let (again, needs_approval) = (call.answered, call.needs_approval);
        call.answered = !preliminary;
        findings.require(same, "same-flags", format!("`{id}` began with other flags"));
        findings.require(!again, "one-answer", format!("`{id}` was answered before"));
        // No chunk contains the decision, so a server that validates the message would reject it.
        let message = format!("`{id}` has an output, but no decision about its approval");
        findings.require(!needs_approval, "approval-waits", message);
    }

    fn finish_chunk(&mut self, chunk: &Value, findings: &mut Findings) {
        findings.require(!self.in_step, "steps-in-order", "a step is still open");
        self.require_closed(findings);
        let waiting =
            self.calls.values().any(|call| !call.flags.provider_executed && !call.answered);
        match text(chunk, "finishReason") {
            "tool-calls" => {
                findings.require(waiting, "tool-calls-pending", "no call waits for the client");
            }
            "stop" => {
                findings.require(!waiting, "tool-calls-pending", "a call waits for the client");
            }
            "error" => {
                findings.require(self.error_reported, "error-reported", "no `error` states why");
            }
            _ => {}
        }
    }
}

impl Flags {
    fn of(chunk: &Value) -> Self {
        Self { provider_executed: flag(chunk, "providerExecuted"), dynamic: flag(chunk, "dynamic") }
    }
}

/// Whether the AI SDK rejects a value to prevent prototype pollution.
fn names_a_prototype(value: &Value) -> bool {
    match value {
        Value::Object(fields) => {
            let constructor = fields.get("constructor").and_then(Value::as_object);
            fields.contains_key("__proto__")
                || constructor.is_some_and(|inner| inner.contains_key("prototype"))
                || fields.values().any(names_a_prototype)
        }
        Value::Array(values) => values.iter().any(names_a_prototype),
        _ => false,
    }
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or("")
}

fn flag(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or(false)
}
