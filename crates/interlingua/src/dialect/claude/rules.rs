//! The rules that a stream of Claude Code must keep.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::check::{Findings, Rules};

/// The rules of `claude`.
#[derive(Debug, Default)]
pub(super) struct ClaudeRules {
    uuids: BTreeSet<String>,
    /// The calls, and whether they were answered.
    calls: BTreeMap<String, bool>,
    /// The name of the tool of each call.
    tools: BTreeMap<String, String>,
    /// The calls that were open when the current turn was interrupted.
    interrupted: BTreeSet<String>,
    results: u64,
    /// The turn waits for the client to answer its calls.
    waiting: bool,
    session: Option<String>,
    /// The `init` marks its session id as unknown, so the first `result` may have another one.
    session_id_generated: bool,
}

/// The records of the control protocol, which have neither a session nor an id.
const CONTROL: &[&str] =
    &["control_request", "control_response", "control_cancel_request", "keep_alive"];

/// The stop reasons of the model, and those of a turn whose call the host has deferred.
const STOP_REASONS: &[&str] = &[
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
    "tool_deferred",
    "tool_deferred_unavailable",
];

/// The permission modes; the newest versions call the first one by the last name.
const PERMISSION_MODES: &[&str] =
    &["default", "acceptEdits", "bypassPermissions", "plan", "dontAsk", "auto", "manual"];

impl Rules for ClaudeRules {
    fn record(&mut self, record: &Value, findings: &mut Findings) {
        let kind = record.get("type").and_then(Value::as_str).unwrap_or_default();
        findings.require(!kind.is_empty(), "type", "the record has no type");
        for flat in ["text", "tool_use", "tool_result", "usage", "message_stop", "thinking"] {
            let message = format!("`{flat}` is never a record of its own");
            findings.require(kind != flat, "nested", message);
        }
        if !CONTROL.contains(&kind) {
            self.check_stamp(record, findings);
        }
        match kind {
            "system" => {
                check_system(record, findings);
                self.check_open_tool_name(record, findings);
            }
            "control_request" => self.check_control_request(record, findings),
            "tool_progress" => {
                let name = record.get("tool_name").is_some_and(Value::is_string);
                findings.require(name, "tool-progress", "`tool_name` is not a string");
                let time = record.get("elapsed_time_seconds").is_some_and(Value::is_number);
                findings.require(time, "tool-progress", "no `elapsed_time_seconds`");
            }
            "assistant" => self.check_assistant(record, findings),
            "user" => self.check_user(record, findings),
            "result" => self.check_result(record, findings),
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
    fn check_stamp(&mut self, record: &Value, findings: &mut Findings) {
        self.check_session(record, findings);
        match record.get("uuid").and_then(Value::as_str) {
            Some(uuid) => {
                let fresh = self.uuids.insert(uuid.to_owned());
                findings.require(fresh, "uuid-unique", format!("uuid {uuid} was used before"));
                findings.require(is_uuid(uuid), "uuid-form", format!("{uuid} is not a UUID"));
            }
            None => findings.add("uuid-unique", "the record has no uuid"),
        }
    }

    /// Checks that a request about a tool has all that the host needs for its decision.
    fn check_control_request(&mut self, record: &Value, findings: &mut Findings) {
        let request = record.get("request").unwrap_or(&Value::Null);
        // A resumed program asks for a call that it has made, and deferred, in an earlier process.
        if let Some(call) = request.pointer("/input/tool_use_id").and_then(Value::as_str) {
            self.calls.entry(call.to_owned()).or_insert(false);
        }
        if request.get("subtype").and_then(Value::as_str) != Some("can_use_tool") {
            return;
        }
        let name = request.get("tool_name").and_then(Value::as_str).unwrap_or_default();
        findings.require(!name.is_empty(), "permission-request", "a request has no `tool_name`");
        let input = request.get("input").is_some_and(Value::is_object);
        findings.require(input, "permission-request", "the input of a request is not an object");
        let offered = request.get("permission_suggestions").and_then(Value::as_array);
        let updates = offered.into_iter().flatten().all(|it| it["type"].is_string());
        findings.require(updates, "permission-request", "a suggestion is not a permission update");
        if name == "AskUserQuestion" {
            let questions = request.pointer("/input/questions").is_some_and(Value::is_array);
            findings.require(questions, "permission-request", "a question has no `questions`");
        } else {
            self.check_open_tool_name(request, findings);
        }
    }

    /// As [`ClaudeRules::check_tool_name`], but only while the call is open; records about an
    /// answered call are not checked.
    fn check_open_tool_name(&self, about: &Value, findings: &mut Findings) {
        let call = about.get("tool_use_id").and_then(Value::as_str).unwrap_or_default();
        if self.calls.get(call) == Some(&false) {
            self.check_tool_name(about, findings);
        }
    }

    /// Checks that a record about a call has the name of the call's tool.
    fn check_tool_name(&self, about: &Value, findings: &mut Findings) {
        let call = about.get("tool_use_id").and_then(Value::as_str).unwrap_or_default();
        let name = about.get("tool_name").and_then(Value::as_str);
        if let (Some(tool), Some(name)) = (self.tools.get(call), name) {
            let message = format!("call {call} is a call of {tool}, not of {name}");
            // A call whose start is missing has an unknown name, which a later record may state.
            findings.require(tool == name || tool == "unknown", "tool-named", message);
        }
    }

    /// Checks that every record has the id of the current session. Another session may start with
    /// an `init` after a `result`, and the first `result` may replace an id that its `init` marks
    /// as unknown.
    fn check_session(&mut self, record: &Value, findings: &mut Findings) {
        let Some(id) = record.get("session_id").and_then(Value::as_str) else {
            findings.add("session-id", "`session_id` is not a string");
            return;
        };
        let init = record.get("subtype").and_then(Value::as_str) == Some("init");
        if self.session.is_none() || (init && self.results > 0) {
            self.session = Some(id.to_owned());
            let unknown = record.get("unknown_fields").and_then(Value::as_array);
            self.session_id_generated =
                unknown.is_some_and(|names| names.contains(&"session_id".into()));
        }
        let ends = record.get("type").and_then(Value::as_str) == Some("result");
        if ends && std::mem::take(&mut self.session_id_generated) {
            self.session = Some(id.to_owned());
        }
        let same = self.session.as_deref() == Some(id);
        findings.require(same, "one-session", format!("{id} is not the current session"));
    }

    fn check_assistant(&mut self, record: &Value, findings: &mut Findings) {
        for (field, expected) in [("type", "message"), ("role", "assistant")] {
            let value = record.pointer(&format!("/message/{field}")).and_then(Value::as_str);
            let message = format!("message.{field} is not {expected:?}");
            findings.require(value == Some(expected), "message", message);
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
            self.check_block(block, findings);
        }
    }

    fn check_block(&mut self, block: &Value, findings: &mut Findings) {
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
                let name = block.get("name").and_then(Value::as_str).unwrap_or_default();
                self.tools.insert(id.to_owned(), name.to_owned());
                let fresh = self.calls.insert(id.to_owned(), false).is_none();
                findings.require(fresh, "call-unique", format!("call {id} was started before"));
            }
            "" => findings.add("content", "a content block without a type"),
            _ => {}
        }
    }

    fn check_user(&mut self, record: &Value, findings: &mut Findings) {
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
                self.note_interrupt(block);
                continue;
            }
            let id = block.get("tool_use_id").and_then(Value::as_str).unwrap_or_default();
            match self.calls.insert(id.to_owned(), true) {
                Some(false) => {}
                Some(true) => findings.add("answer-once", format!("call {id} was answered before")),
                None => findings.add("answer-of-call", format!("call {id} was never started")),
            }
            let in_order = !self.interrupted.contains(id);
            let message = format!("call {id} is answered after the turn was interrupted");
            findings.require(in_order, "interrupt-last", message);
            let content = block.get("content");
            let failed = block.get("is_error") == Some(&Value::Bool(true));
            let empty = content.is_none_or(|content| content == "");
            findings.require(!failed || !empty, "error-text", "an error has no text");
            let fits = content.is_none_or(|content| content.is_string() || content.is_array());
            let message = "the content of a tool_result is neither text nor blocks";
            findings.require(fits, "content", message);
        }
    }

    /// Remembers the open calls if a block of the user reports an interrupt: an interrupt is
    /// written after all answers.
    fn note_interrupt(&mut self, block: &Value) {
        let text = block.get("text").and_then(Value::as_str).unwrap_or_default();
        if text.starts_with("[Request interrupted by user") {
            let open = self.calls.iter().filter(|(_, answered)| !**answered);
            self.interrupted.extend(open.map(|(call, _)| call.clone()));
        }
    }

    fn check_result(&mut self, record: &Value, findings: &mut Findings) {
        self.results += 1;
        self.interrupted.clear();
        for denial in record["permission_denials"].as_array().into_iter().flatten() {
            self.check_tool_name(denial, findings);
        }
        let stop = &record["stop_reason"];
        let known = stop.as_str().map_or(stop.is_null(), |stop| STOP_REASONS.contains(&stop));
        findings.require(known, "stop-reason", format!("{stop} is not a stop reason"));
        // A turn may wait until the client has answered the open calls.
        self.waiting = matches!(stop.as_str(), Some("tool_use" | "tool_deferred"));
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
        let text = record.get("result").is_some_and(Value::is_string);
        findings.require(!success || text, "result-fields", "a success without `result`");
        let errors = record.get("errors").is_some_and(Value::is_array);
        findings.require(success || errors, "result-fields", "a failure without `errors`");
        findings.require(!success || !errors, "result-fields", "a success with `errors`");
        check_model_usage(record, findings);
    }
}

/// The numbers that every model has in `modelUsage`.
const MODEL_COUNTS: &[&str] = &[
    "inputTokens",
    "outputTokens",
    "cacheReadInputTokens",
    "cacheCreationInputTokens",
    "webSearchRequests",
    "costUSD",
    "contextWindow",
];

fn check_model_usage(record: &Value, findings: &mut Findings) {
    for (model, counts) in record["modelUsage"].as_object().into_iter().flatten() {
        for field in MODEL_COUNTS.iter().filter(|field| !counts[**field].is_number()) {
            findings.add("model-usage", format!("`{field}` of {model} is not a number"));
        }
    }
}

fn check_system(record: &Value, findings: &mut Findings) {
    let subtype = record.get("subtype").and_then(Value::as_str).unwrap_or_default();
    findings.require(!subtype.is_empty(), "subtype", "a system record without a subtype");
    if subtype == "init" {
        for field in ["cwd", "model", "permissionMode"] {
            let text = record.get(field).is_some_and(Value::is_string);
            findings.require(text, "init-fields", format!("`{field}` is not a string"));
        }
        let mode = record.get("permissionMode").and_then(Value::as_str).unwrap_or("default");
        let message = format!("{mode} is not a permission mode");
        findings.require(PERMISSION_MODES.contains(&mode), "permission-mode", message);
        let tools = record.get("tools").is_some_and(Value::is_array);
        findings.require(tools, "init-fields", "`tools` is not an array");
    }
    if subtype == "api_retry" {
        for field in ["attempt", "max_retries", "retry_delay_ms"] {
            let number = record.get(field).is_some_and(Value::is_number);
            findings.require(number, "retry-fields", format!("`{field}` is not a number"));
        }
        let code = record.get("error").and_then(Value::as_str).unwrap_or_default();
        let is_code = !code.is_empty() && !code.contains(char::is_whitespace);
        findings.require(is_code, "retry-fields", "`error` is not a code");
    }
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    groups == [8, 4, 4, 4, 12] && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}
