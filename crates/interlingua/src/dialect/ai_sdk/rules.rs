//! The rules that consumers of stream parts rely on.
//!
//! The fields are those of the published types. The order is stricter than what any consumer
//! checks, since most of them check nothing and display something wrong instead.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::Specification;
use crate::check::fields::{Expected, RecordFields};
use crate::check::{Findings, Rules};
use crate::dialect::ai_parts::UNKNOWN_INPUT;

/// The rules of `ai-sdk` and `ai-sdk-v4`.
#[derive(Debug, Default)]
pub(super) struct AiSdkRules {
    specification: Specification,
    started: bool,
    finishes: u64,
    error_reported: bool,
    blocks: BTreeMap<String, Block>,
    inputs: BTreeMap<String, Input>,
    calls: BTreeMap<String, Call>,
}

#[derive(Debug)]
struct Block {
    family: &'static str,
    open: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Input {
    Open,
    Ended,
}

#[derive(Debug)]
struct Call {
    name: String,
    provider_executed: bool,
    /// It was answered, or waits for an approval.
    settled: bool,
}

/// The expected value of a field.
#[derive(Debug, Clone, Copy)]
enum Is {
    Text,
    Flag,
    Metadata,
    Warnings,
    /// Warnings of version 4, which has one more kind.
    WarningsOfV4,
    AnyButNull,
    Object,
    List,
    /// A file of version 4, which distinguishes data from a URL.
    FileOfV4,
    /// A kind with its namespace: `namespace.kind`.
    CustomKind,
}

type Fields = &'static [(&'static str, Is)];

/// The required and the optional fields of a part, or `None` for an unknown part.
fn fields_of(kind: &str) -> Option<(Fields, Fields)> {
    const ID: Fields = &[("id", Is::Text)];
    const ID_DELTA: Fields = &[("id", Is::Text), ("delta", Is::Text)];
    const METADATA: Fields = &[("providerMetadata", Is::Metadata)];
    Some(match kind {
        "stream-start" => (&[("warnings", Is::Warnings)], &[]),
        "response-metadata" => {
            (&[], &[("id", Is::Text), ("timestamp", Is::Text), ("modelId", Is::Text)])
        }
        "text-start" | "text-end" | "reasoning-start" | "reasoning-end" => (ID, METADATA),
        "text-delta" | "reasoning-delta" | "tool-input-delta" => (ID_DELTA, METADATA),
        "tool-input-start" => (
            &[("id", Is::Text), ("toolName", Is::Text)],
            &[
                ("inputEncoding", Is::Text),
                ("providerMetadata", Is::Metadata),
                ("providerExecuted", Is::Flag),
                ("dynamic", Is::Flag),
                ("title", Is::Text),
            ],
        ),
        "tool-input-end" => (ID, METADATA),
        "tool-call" => (
            &[("toolCallId", Is::Text), ("toolName", Is::Text), ("input", Is::Text)],
            &[
                ("providerExecuted", Is::Flag),
                ("dynamic", Is::Flag),
                ("providerMetadata", Is::Metadata),
            ],
        ),
        "tool-result" => (
            &[("toolCallId", Is::Text), ("toolName", Is::Text), ("result", Is::AnyButNull)],
            &[
                ("isError", Is::Flag),
                ("preliminary", Is::Flag),
                ("dynamic", Is::Flag),
                ("providerMetadata", Is::Metadata),
            ],
        ),
        "tool-approval-request" => {
            (&[("approvalId", Is::Text), ("toolCallId", Is::Text)], METADATA)
        }
        "file" => (&[("mediaType", Is::Text), ("data", Is::Text)], METADATA),
        "source" => (
            &[("sourceType", Is::Text), ("id", Is::Text)],
            &[
                ("url", Is::Text),
                ("mediaType", Is::Text),
                ("title", Is::Text),
                ("filename", Is::Text),
                ("providerMetadata", Is::Metadata),
            ],
        ),
        "finish" => (&[("usage", Is::Object), ("finishReason", Is::Object)], METADATA),
        "raw" => (&[("rawValue", Is::AnyButNull)], &[]),
        "error" => (&[("error", Is::AnyButNull)], &[]),
        _ => return None,
    })
}

/// As [`fields_of`], for the parts that version 4 added or changed.
fn fields_of_v4(kind: &str) -> Option<(Fields, Fields)> {
    const METADATA: Fields = &[("providerMetadata", Is::Metadata)];
    Some(match kind {
        "stream-start" => (&[("warnings", Is::WarningsOfV4)], &[]),
        "text-end" => {
            (&[("id", Is::Text)], &[("citations", Is::List), ("providerMetadata", Is::Metadata)])
        }
        "file" | "reasoning-file" => (&[("mediaType", Is::Text), ("data", Is::FileOfV4)], METADATA),
        "custom" => (&[("kind", Is::CustomKind)], METADATA),
        "ping" => (&[], &[]),
        _ => return None,
    })
}

impl Expected for Is {
    fn holds(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Flag => value.is_boolean(),
            Self::Object => value.is_object(),
            Self::List => value.is_array(),
            Self::AnyButNull => !value.is_null(),
            Self::Metadata => {
                value.as_object().is_some_and(|providers| providers.values().all(Value::is_object))
            }
            Self::Warnings => value.as_array().is_some_and(|list| list.iter().all(is_warning)),
            Self::WarningsOfV4 => value.as_array().is_some_and(|list| {
                list.iter().all(|warning| is_warning(warning) || is_deprecation(warning))
            }),
            Self::FileOfV4 => match text(value, "type") {
                kind @ ("data" | "url") => value.get(kind).is_some_and(Value::is_string),
                _ => false,
            },
            Self::CustomKind => value.as_str().is_some_and(|kind| kind.contains('.')),
        }
    }
}

fn is_deprecation(warning: &Value) -> bool {
    text(warning, "type") == "deprecated"
        && ["setting", "message"].iter().all(|field| warning[field].is_string())
}

fn is_warning(warning: &Value) -> bool {
    let field = match text(warning, "type") {
        "unsupported" | "compatibility" => "feature",
        "other" => "message",
        _ => return false,
    };
    warning.get(field).is_some_and(Value::is_string)
}

impl Rules for AiSdkRules {
    fn record(&mut self, part: &Value, findings: &mut Findings) {
        let kind = text(part, "type");
        self.order(kind, findings);
        let changed = fields_of_v4(kind).filter(|_| self.specification == Specification::V4);
        let Some((required, optional)) = changed.or_else(|| fields_of(kind)) else {
            findings.add("known-part", format!("`{kind}` is not a part; a consumer aborts here"));
            return;
        };
        if let Some(fields) = part.as_object() {
            RecordFields {
                kind,
                rule: "part-fields",
                required,
                optional,
                every: &[],
                envelope: &["type"],
            }
            .check(fields, findings);
        }
        match kind {
            "text-start" | "text-delta" | "text-end" => self.block("text", kind, part, findings),
            "reasoning-start" | "reasoning-delta" | "reasoning-end" => {
                self.block("reasoning", kind, part, findings);
            }
            "tool-input-start" | "tool-input-delta" | "tool-input-end" => {
                self.input(kind, text(part, "id"), findings);
            }
            "tool-call" => self.call(part, findings),
            "tool-result" => self.result(part, findings),
            "tool-approval-request" => self.approval(part, findings),
            "error" => self.error_reported = true,
            "finish" => self.finish_part(part, findings),
            _ => {}
        }
    }

    fn finish(&mut self, findings: &mut Findings) {
        findings.require(self.started, "stream-start-first", "there is no `stream-start`");
        findings.require(self.finishes > 0, "one-finish", "there is no `finish`");
    }
}

impl AiSdkRules {
    pub(super) fn new(specification: Specification) -> Self {
        Self { specification, ..Self::default() }
    }

    fn order(&mut self, kind: &str, findings: &mut Findings) {
        let start = kind == "stream-start";
        if start == self.started {
            let what = if start { "it is repeated" } else { "another part precedes it" };
            findings.add("stream-start-first", what);
        }
        self.started = true;
        if kind == "finish" {
            self.finishes += 1;
            findings.require(self.finishes == 1, "one-finish", "this is not the first `finish`");
        } else {
            let message = format!("`{kind}` follows `finish`");
            findings.require(self.finishes == 0, "finish-last", message);
        }
    }

    fn block(&mut self, family: &'static str, kind: &str, part: &Value, findings: &mut Findings) {
        let id = text(part, "id");
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

    fn input(&mut self, kind: &str, id: &str, findings: &mut Findings) {
        if kind == "tool-input-start" {
            let known = self.calls.contains_key(id)
                || self.inputs.insert(id.to_owned(), Input::Open).is_some();
            findings.require(!known, "fresh-call-id", format!("`{id}` was used before"));
            return;
        }
        match self.inputs.get_mut(id).filter(|input| **input == Input::Open) {
            Some(input) if kind == "tool-input-end" => *input = Input::Ended,
            Some(_) => {}
            None => findings.add("input-open", format!("no input of `{id}` is open")),
        }
    }

    fn call(&mut self, part: &Value, findings: &mut Findings) {
        let id = text(part, "toolCallId");
        let input = text(part, "input");
        let object = serde_json::from_str::<Value>(input).is_ok_and(|value| value.is_object());
        // The SDK answers such a call with an error instead of running it.
        let is_unknown = input == UNKNOWN_INPUT && !flag(part, "providerExecuted");
        findings.require(
            object || is_unknown,
            "call-input",
            format!("`{input}` is not a JSON object"),
        );
        let input_open = self.inputs.remove(id) == Some(Input::Open);
        findings.require(!input_open, "input-open", format!("the input of `{id}` has no end"));
        let call = Call {
            name: text(part, "toolName").to_owned(),
            provider_executed: flag(part, "providerExecuted"),
            settled: false,
        };
        let dynamic = flag(part, "dynamic") || !call.provider_executed;
        findings.require(dynamic, "dynamic-call", "a tool of the agent must be `dynamic`");
        let known = self.calls.insert(id.to_owned(), call).is_some();
        findings.require(!known, "fresh-call-id", format!("`{id}` was used before"));
    }

    fn result(&mut self, part: &Value, findings: &mut Findings) {
        let (id, name) = (text(part, "toolCallId"), text(part, "toolName"));
        let Some(call) = self.calls.get_mut(id) else {
            findings.add("result-of-a-call", format!("`{id}` was not called"));
            return;
        };
        let again = std::mem::replace(&mut call.settled, true);
        findings.require(!again, "one-result", format!("`{id}` was answered before"));
        let silent = flag(part, "isError") && part.get("result") == Some(&Value::from(""));
        findings.require(!silent, "failure-text", format!("`{id}` failed without a message"));
        let message = format!("`{id}` is a call to `{}`, not to `{name}`", call.name);
        findings.require(call.name == name, "result-of-a-call", message);
    }

    fn approval(&mut self, part: &Value, findings: &mut Findings) {
        let id = text(part, "toolCallId");
        match self.calls.get_mut(id) {
            Some(call) => call.settled = true,
            None => findings.add("result-of-a-call", format!("`{id}` was not called")),
        }
    }

    fn finish_part(&mut self, part: &Value, findings: &mut Findings) {
        for (id, block) in &self.blocks {
            findings.require(!block.open, "block-closed", format!("`{id}` is still open"));
        }
        for id in self.inputs.keys() {
            findings.add("input-called", format!("`{id}` has an input and no call"));
        }
        for (id, call) in &self.calls {
            let answered = call.settled || !call.provider_executed;
            findings.require(answered, "call-answered", format!("`{id}` has no result"));
        }
        self.reason(part, findings);
        usage(part, findings);
    }

    fn reason(&self, part: &Value, findings: &mut Findings) {
        const RULE: &str = "finish-reason";
        let Some(reason) = part.get("finishReason") else { return };
        let unified = text(reason, "unified");
        let known = ["stop", "length", "content-filter", "tool-calls", "error", "other"];
        let of_v4 = unified == "interrupted" && self.specification == Specification::V4;
        findings.require(
            of_v4 || known.contains(&unified),
            RULE,
            format!("`{unified}` is not a finish reason"),
        );
        let raw = reason.get("raw").is_none_or(Value::is_string);
        findings.require(raw, RULE, "`raw` must be a string if it is present");
        only(reason, &["unified", "raw"], RULE, findings);
        let waiting = self.calls.values().any(|call| !call.provider_executed && !call.settled);
        match unified {
            "tool-calls" => {
                findings.require(waiting, "tool-calls-pending", "no call waits for the client");
            }
            "stop" => {
                findings.require(!waiting, "tool-calls-pending", "a call waits for the client");
            }
            "error" => {
                findings.require(
                    self.error_reported,
                    "error-reported",
                    "no `error` part states why",
                );
            }
            _ => {}
        }
    }
}

/// Both objects are required; a count in them is a number or is left out.
fn usage(part: &Value, findings: &mut Findings) {
    const RULE: &str = "finish-usage";
    const INPUT: &[&str] = &["total", "noCache", "cacheRead", "cacheWrite"];
    const OUTPUT: &[&str] = &["total", "text", "reasoning"];
    let Some(usage) = part.get("usage") else { return };
    only(usage, &["inputTokens", "outputTokens", "raw"], RULE, findings);
    for (name, known) in [("inputTokens", INPUT), ("outputTokens", OUTPUT)] {
        match usage.get(name).and_then(Value::as_object) {
            Some(counts) => {
                let numbers = counts.values().all(Value::is_u64);
                findings.require(numbers, RULE, format!("a count of `{name}` is not a number"));
            }
            None => findings.add(RULE, format!("`{name}` must be an object")),
        }
        only(usage.get(name).unwrap_or(&Value::Null), known, RULE, findings);
    }
}

/// Requires that an object has only these fields.
fn only(object: &Value, known: &[&str], rule: &'static str, findings: &mut Findings) {
    for name in object.as_object().into_iter().flat_map(Map::keys) {
        findings.require(known.contains(&&**name), rule, format!("`{name}` is an unknown field"));
    }
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or("")
}

fn flag(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or(false)
}
