//! The rules of a stream of the Giselle API.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::check::{Findings, Rules};

/// The rules of `giselle`.
#[derive(Debug, Default)]
pub(super) struct GiselleRules {
    run: Run,
    calls: BTreeMap<String, Call>,
}

/// The position in a run. A run begins with the stream, and after a record that ends or suspends
/// the previous run.
#[derive(Debug, Default, PartialEq, Eq)]
enum Run {
    /// The run has no record of the agent yet.
    #[default]
    Begins,
    /// After the result of a run. Its artifacts may follow.
    AfterResult,
    /// After the last record of a run.
    AfterSnapshot,
    /// The run has a message or a call.
    Working,
}

/// The state of a call.
#[derive(Debug, PartialEq, Eq)]
enum Call {
    Open,
    /// A call that the client answers elsewhere.
    OfClient,
    Answered,
}

impl Rules for GiselleRules {
    fn record(&mut self, record: &Value, findings: &mut Findings) {
        let kind = record.get("type").and_then(Value::as_str).unwrap_or_default();
        self.order(kind, findings);
        match kind {
            "init" => {
                let fields = ["session_id", "modelId", "model"];
                let any = fields.into_iter().any(|field| is_text(record, field));
                findings.require(any, "init-fields", "`init` has neither session_id nor modelId");
            }
            "relay.session" => {
                for field in ["sessionId", "token", "relayUrl"] {
                    require_text(record, field, "relay-fields", findings);
                }
            }
            "sandbox" => require_text(record, "sandbox_id", "sandbox-fields", findings),
            "snapshot" => require_text(record, "snapshot_id", "snapshot-fields", findings),
            "message" => self.message(record, findings),
            "tool_use" => self.call(record, findings),
            "tool_result" => self.answer(record, findings),
            "snapshot_request" | "execute_request" => {
                require_text(record, "requestId", "request-fields", findings);
                self.started(record, "requestId", Call::OfClient, findings);
            }
            "result" => {
                let status = record.get("status").and_then(Value::as_str).unwrap_or_default();
                let known = matches!(status, "success" | "error");
                findings.require(known, "result-status", format!("status is {status:?}"));
            }
            "stderr" => require_text(record, "content", "stderr-fields", findings),
            "error" => {
                require_text(record, "message", "error-fields", findings);
                let severity = record.get("severity").and_then(Value::as_str);
                let known = matches!(severity, Some("warning" | "error"));
                findings.require(known, "error-fields", "severity is neither warning nor error");
            }
            "artifact" => require_text(record, "path", "artifact-fields", findings),
            other => findings.add("known-type", format!("{other:?} is not a type of this dialect")),
        }
    }

    fn finish(&mut self, findings: &mut Findings) {
        for (call, _) in self.calls.iter().filter(|(_, state)| **state == Call::Open) {
            findings.add("call-answered", format!("call {call} was never answered"));
        }
    }
}

impl GiselleRules {
    /// Checks the order of records in a run.
    fn order(&mut self, kind: &str, findings: &mut Findings) {
        let begins = matches!(kind, "relay.session" | "sandbox" | "init");
        let message = format!("`{kind}` follows `snapshot` and does not begin a run");
        findings.require(begins || self.run != Run::AfterSnapshot, "snapshot-last", message);
        if kind == "relay.session" {
            let message = "records of the agent precede `relay.session`";
            findings.require(self.run != Run::Working, "relay-first", message);
        }
        self.run = match (kind, &self.run) {
            ("result", _) => Run::AfterResult,
            ("artifact", Run::AfterResult) => Run::AfterResult,
            ("snapshot", _) => Run::AfterSnapshot,
            ("snapshot_request" | "execute_request", _) => Run::Begins,
            ("message" | "tool_use" | "tool_result" | "artifact", _) => Run::Working,
            (_, Run::AfterSnapshot) if begins => Run::Begins,
            _ => return,
        };
    }

    /// Notes that a call was started.
    fn started(&mut self, record: &Value, field: &str, call: Call, findings: &mut Findings) {
        let id = record.get(field).and_then(Value::as_str).unwrap_or_default();
        let before = self.calls.insert(id.to_owned(), call);
        findings.require(before.is_none(), "call-unique", format!("call {id} was started before"));
    }

    fn message(&mut self, record: &Value, findings: &mut Findings) {
        let role = record.get("role").and_then(Value::as_str).unwrap_or_default();
        let known = matches!(role, "user" | "assistant");
        findings.require(known, "message-fields", format!("role is {role:?}"));
        require_text(record, "content", "message-fields", findings);
        let delta = record.get("delta");
        let fits = delta.is_none_or(Value::is_boolean);
        findings.require(fits, "message-fields", "delta is neither true nor false");
    }

    fn call(&mut self, record: &Value, findings: &mut Findings) {
        require_text(record, "tool_name", "call-fields", findings);
        require_text(record, "tool_id", "call-fields", findings);
        let object = record.get("parameters").is_some_and(Value::is_object);
        findings.require(object, "call-fields", "parameters are not an object");
        self.started(record, "tool_id", Call::Open, findings);
    }

    fn answer(&mut self, record: &Value, findings: &mut Findings) {
        let id = record.get("tool_id").and_then(Value::as_str).unwrap_or_default();
        let status = record.get("status").and_then(Value::as_str).unwrap_or_default();
        let known = matches!(status, "success" | "error");
        findings.require(known, "answer-fields", format!("status is {status:?}"));
        match self.calls.insert(id.to_owned(), Call::Answered) {
            Some(Call::Open | Call::OfClient) => {}
            Some(Call::Answered) => {
                findings.add("answer-once", format!("call {id} was answered before"))
            }
            None => findings.add("answer-of-call", format!("call {id} was not started")),
        }
    }
}

fn is_text(record: &Value, field: &str) -> bool {
    record.get(field).is_some_and(Value::is_string)
}

fn require_text(record: &Value, field: &str, rule: &'static str, findings: &mut Findings) {
    findings.require(is_text(record, field), rule, format!("`{field}` is not a string"));
}
