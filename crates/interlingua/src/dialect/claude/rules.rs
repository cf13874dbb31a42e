//! What a stream of Claude Code must keep.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::check::{Findings, Rules};

/// The rules of `claude`.
#[derive(Debug, Default)]
pub(super) struct ClaudeRules {
    uuids: BTreeSet<String>,
    /// Calls that were made, and whether they were answered.
    calls: BTreeMap<String, bool>,
    results: u64,
    waiting: bool,
    session: Option<String>,
}

/// Records that belong to the control protocol and carry neither session nor id.
const CONTROL: &[&str] =
    &["control_request", "control_response", "control_cancel_request", "keep_alive"];

impl Rules for ClaudeRules {
    fn record(&mut self, record: &Value, findings: &mut Findings) {
        let kind = record.get("type").and_then(Value::as_str).unwrap_or_default();
        findings.require(!kind.is_empty(), "type", "the record has no type");
        for flat in ["text", "tool_use", "tool_result", "usage", "message_stop", "thinking"] {
            let message = format!("`{flat}` is never a record of its own");
            findings.require(kind != flat, "nested", message);
        }
        if !CONTROL.contains(&kind) {
            self.stamped(record, findings);
        }
        match kind {
            "system" => system(record, findings),
            "assistant" => self.assistant(record, findings),
            "user" => self.user(record, findings),
            "result" => self.result(record, findings),
            "stream_event" => {
                let event = record.pointer("/event/type").is_some_and(Value::is_string);
                findings.require(event, "stream-event", "`event` has no type");
            }
            _ => {}
        }
    }

    fn finish(&mut self, findings: &mut Findings) {
        findings.require(self.results > 0, "result-last", "there is no `result`");
        let open = self.calls.iter().filter(|(_, answered)| !**answered && !self.waiting);
        for (call, _) in open {
            findings.add("call-answered", format!("call {call} has no tool_result"));
        }
    }
}

impl ClaudeRules {
    fn stamped(&mut self, record: &Value, findings: &mut Findings) {
        self.session(record, findings);
        match record.get("uuid").and_then(Value::as_str) {
            Some(uuid) => {
                let fresh = self.uuids.insert(uuid.to_owned());
                findings.require(fresh, "uuid-unique", format!("uuid {uuid} was used before"));
                findings.require(is_uuid(uuid), "uuid-form", format!("{uuid} is not a UUID"));
            }
            None => findings.add("uuid-unique", "the record has no uuid"),
        }
    }

    /// Every record names the one session; another one begins with an `init` after a `result`.
    fn session(&mut self, record: &Value, findings: &mut Findings) {
        let Some(id) = record.get("session_id").and_then(Value::as_str) else {
            findings.add("session-id", "`session_id` is not a string");
            return;
        };
        let init = record.get("subtype").and_then(Value::as_str) == Some("init");
        if self.session.is_none() || (init && self.results > 0) {
            self.session = Some(id.to_owned());
        }
        let same = self.session.as_deref() == Some(id);
        findings.require(same, "one-session", format!("{id} is not the session at hand"));
    }

    fn assistant(&mut self, record: &Value, findings: &mut Findings) {
        for (field, expected) in [("type", "message"), ("role", "assistant")] {
            let told = record.pointer(&format!("/message/{field}")).and_then(Value::as_str);
            let message = format!("message.{field} is not {expected:?}");
            findings.require(told == Some(expected), "message", message);
        }
        for field in ["id", "model"] {
            let text = record.pointer(&format!("/message/{field}")).is_some_and(Value::is_string);
            findings.require(text, "message", format!("message.{field} is not a string"));
        }
        let Some(blocks) = record.pointer("/message/content").and_then(Value::as_array) else {
            findings.add("content", "message.content is not an array");
            return;
        };
        findings.require(blocks.len() == 1, "one-block-a-line", "not exactly one content block");
        for block in blocks {
            self.block(block, findings);
        }
    }

    fn block(&mut self, block: &Value, findings: &mut Findings) {
        let text = |field: &str| block.get(field).is_some_and(Value::is_string);
        match block.get("type").and_then(Value::as_str).unwrap_or_default() {
            "text" => findings.require(text("text"), "content", "a text block without text"),
            "thinking" => {
                findings.require(text("thinking"), "content", "a thinking block without text");
            }
            "tool_use" => {
                findings.require(text("name"), "tool-use", "a tool_use without a name");
                let input = block.get("input").is_some_and(Value::is_object);
                findings.require(input, "tool-use", "the input of a tool_use is not an object");
                let id = block.get("id").and_then(Value::as_str).unwrap_or_default();
                findings.require(!id.is_empty(), "tool-use", "a tool_use without an id");
                let fresh = self.calls.insert(id.to_owned(), false).is_none();
                findings.require(fresh, "call-unique", format!("call {id} was made before"));
            }
            "" => findings.add("content", "a content block without a type"),
            _ => {}
        }
    }

    fn user(&mut self, record: &Value, findings: &mut Findings) {
        let role = record.pointer("/message/role").and_then(Value::as_str);
        findings.require(role == Some("user"), "message", "message.role is not \"user\"");
        let content = record.pointer("/message/content");
        let Some(blocks) = content.and_then(Value::as_array) else {
            let text = content.is_some_and(Value::is_string);
            findings.require(text, "content", "message.content is neither text nor blocks");
            return;
        };
        for block in blocks {
            if block.get("type").and_then(Value::as_str) != Some("tool_result") {
                continue;
            }
            let id = block.get("tool_use_id").and_then(Value::as_str).unwrap_or_default();
            match self.calls.insert(id.to_owned(), true) {
                Some(false) => {}
                Some(true) => findings.add("answer-once", format!("call {id} was answered before")),
                None => findings.add("answer-of-call", format!("nobody made call {id}")),
            }
            let content = block.get("content");
            let fits = content.is_none_or(|content| content.is_string() || content.is_array());
            findings.require(fits, "content", "the content of a tool_result is of no known form");
        }
    }

    fn result(&mut self, record: &Value, findings: &mut Findings) {
        self.results += 1;
        // A turn may rest until the client has answered what is open.
        self.waiting = record.get("stop_reason").and_then(Value::as_str) == Some("tool_use");
        for (field, fits) in [
            ("subtype", record.get("subtype").is_some_and(Value::is_string)),
            ("is_error", record.get("is_error").is_some_and(Value::is_boolean)),
            ("num_turns", record.get("num_turns").is_some_and(Value::is_u64)),
            ("usage", record.get("usage").is_some_and(Value::is_object)),
            ("modelUsage", record.get("modelUsage").is_some_and(Value::is_object)),
            ("total_cost_usd", record.get("total_cost_usd").is_some_and(Value::is_number)),
            ("duration_ms", record.get("duration_ms").is_some_and(Value::is_u64)),
            ("permission_denials", record.get("permission_denials").is_some_and(Value::is_array)),
        ] {
            findings.require(
                fits,
                "result-fields",
                format!("`{field}` is missing or of another type"),
            );
        }
        let success = record.get("subtype").and_then(Value::as_str) == Some("success");
        let said = record.get("result").is_some_and(Value::is_string);
        findings.require(!success || said, "result-fields", "a success without `result`");
        let errors = record.get("errors").is_some_and(Value::is_array);
        findings.require(success || errors, "result-fields", "a failure without `errors`");
        findings.require(!success || !errors, "result-fields", "a success with `errors`");
        model_usage(record, findings);
    }
}

/// What is told of every model, as a number.
const MODEL_COUNTS: &[&str] = &[
    "inputTokens",
    "outputTokens",
    "cacheReadInputTokens",
    "cacheCreationInputTokens",
    "webSearchRequests",
    "costUSD",
    "contextWindow",
];

fn model_usage(record: &Value, findings: &mut Findings) {
    for (model, counts) in record["modelUsage"].as_object().into_iter().flatten() {
        for field in MODEL_COUNTS.iter().filter(|field| !counts[**field].is_number()) {
            findings.add("model-usage", format!("`{field}` of {model} is not a number"));
        }
    }
}

fn system(record: &Value, findings: &mut Findings) {
    let subtype = record.get("subtype").and_then(Value::as_str).unwrap_or_default();
    findings.require(!subtype.is_empty(), "subtype", "a system record without a subtype");
    if subtype == "init" {
        for field in ["cwd", "model", "permissionMode"] {
            let text = record.get(field).is_some_and(Value::is_string);
            findings.require(text, "init-fields", format!("`{field}` is not a string"));
        }
        let tools = record.get("tools").is_some_and(Value::is_array);
        findings.require(tools, "init-fields", "`tools` is not an array");
    }
    if subtype == "api_retry" {
        for field in ["attempt", "max_retries", "retry_delay_ms"] {
            let number = record.get(field).is_some_and(Value::is_number);
            findings.require(number, "retry-fields", format!("`{field}` is not a number"));
        }
        let code = record.get("error").and_then(Value::as_str).unwrap_or_default();
        let word = !code.is_empty() && !code.contains(char::is_whitespace);
        findings.require(word, "retry-fields", "`error` is not a code");
    }
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    groups == [8, 4, 4, 4, 12] && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}
