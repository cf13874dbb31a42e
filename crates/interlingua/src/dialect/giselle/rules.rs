//! What a stream of the Giselle API must keep.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::check::{Findings, Rules};

/// The rules of `giselle`.
#[derive(Debug, Default)]
pub(super) struct GiselleRules {
    snapshot_taken: bool,
    /// Calls that were made, and whether they were answered.
    calls: BTreeMap<String, bool>,
}

impl Rules for GiselleRules {
    fn record(&mut self, record: &Value, findings: &mut Findings) {
        let kind = record.get("type").and_then(Value::as_str).unwrap_or_default();
        findings.require(!self.snapshot_taken, "snapshot-last", "a record follows `snapshot`");
        match kind {
            "init" => {
                let told = is_text(record, "session_id") || is_text(record, "modelId");
                let told = told || is_text(record, "model");
                findings.require(told, "init-fields", "`init` has neither session_id nor modelId");
            }
            "relay.session" => {
                for field in ["sessionId", "token", "relayUrl"] {
                    require_text(record, field, "relay-fields", findings);
                }
            }
            "sandbox" => require_text(record, "sandbox_id", "sandbox-fields", findings),
            "snapshot" => {
                require_text(record, "snapshot_id", "snapshot-fields", findings);
                self.snapshot_taken = true;
            }
            "message" => self.message(record, findings),
            "tool_use" => self.call(record, findings),
            "tool_result" => self.answer(record, findings),
            "snapshot_request" | "execute_request" => {
                require_text(record, "requestId", "request-fields", findings);
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
            other => findings.add("known-type", format!("no record is called {other:?}")),
        }
    }

    fn finish(&mut self, findings: &mut Findings) {
        for (call, _) in self.calls.iter().filter(|(_, answered)| !**answered) {
            findings.add("call-answered", format!("call {call} was never answered"));
        }
    }
}

impl GiselleRules {
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
        let id = record.get("tool_id").and_then(Value::as_str).unwrap_or_default();
        let before = self.calls.insert(id.to_owned(), false);
        findings.require(before.is_none(), "call-unique", format!("call {id} was made before"));
    }

    fn answer(&mut self, record: &Value, findings: &mut Findings) {
        let id = record.get("tool_id").and_then(Value::as_str).unwrap_or_default();
        let status = record.get("status").and_then(Value::as_str).unwrap_or_default();
        let known = matches!(status, "success" | "error");
        findings.require(known, "answer-fields", format!("status is {status:?}"));
        match self.calls.insert(id.to_owned(), true) {
            Some(false) => {}
            Some(true) => findings.add("answer-once", format!("call {id} was answered before")),
            None => findings.add("answer-of-call", format!("nobody made call {id}")),
        }
    }
}

fn is_text(record: &Value, field: &str) -> bool {
    record.get(field).is_some_and(Value::is_string)
}

fn require_text(record: &Value, field: &str, rule: &'static str, findings: &mut Findings) {
    findings.require(is_text(record, field), rule, format!("`{field}` is not a string"));
}
