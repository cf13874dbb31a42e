//! The rules of the flat contract.
//!
//! They examine records as JSON values and share no code with the encoder. The length of a line is
//! that of the record as compact JSON.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use crate::check::{Findings, Rules};

/// The rules of `yume`.
#[derive(Debug, Default)]
pub(super) struct YumeRules {
    started: bool,
    init: bool,
    /// The unanswered call of the agent.
    open: Option<String>,
    /// The unanswered calls of the client.
    of_client: Vec<String>,
    /// The findings about records that follow an unanswered call of the client. They are discarded
    /// if the turn waits for the client.
    meanwhile: Vec<String>,
    calls: HashSet<String>,
    /// The calls that the client may answer in a later turn.
    deferred: HashSet<String>,
    lines: HashSet<u64>,
    turn: TurnState,
}

/// The state of a turn.
#[derive(Debug, Default)]
struct TurnState {
    /// It has content.
    content: bool,
    usages: u64,
    interrupts: u64,
    /// It was interrupted, and no output followed.
    interrupted: bool,
    /// The previous record is a `usage`.
    after_usage: bool,
    /// The previous record is a `result`.
    after_result: bool,
}

/// The permission modes of the contract and of Claude.
const PERMISSION_MODES: &[&str] = &[
    "default",
    "interactive",
    "auto",
    "deny",
    "acceptEdits",
    "bypassPermissions",
    "plan",
    "dontAsk",
];

impl Rules for YumeRules {
    fn record(&mut self, record: &Value, findings: &mut Findings) {
        let kind = string_field(record, "type");
        let text = record.to_string();
        self.check_order(kind, record, findings);
        check_length(&text, findings);
        let parent = record.get("parent_tool_use_id");
        let parent = parent.is_none_or(|parent| parent.is_string() || parent.is_null());
        findings.require(parent, "parent-fields", "`parent_tool_use_id` must be a string");
        match kind {
            "system" => self.check_system(record, findings),
            "text" => require_string(record, "content", "text-fields", findings),
            "thinking" => require_string(record, "thought", "thinking-fields", findings),
            "tool_use" => self.check_call(record, findings),
            "tool_result" => self.check_answer(record, findings),
            "usage" => check_usage(record.get("usage").unwrap_or(record), findings),
            "result" => self.check_result(record, findings),
            "error" => {
                require_string(record, "message", "error-fields", findings);
                let code = record.get("code").is_none_or(Value::is_string);
                findings.require(code, "error-fields", "`code` must be a string");
            }
            "interrupt" => {
                self.turn.interrupts += 1;
                let once = self.turn.interrupts == 1;
                findings.require(once, "interrupt-once", "a turn has more than one `interrupt`");
            }
            "message_stop" | "assistant" | "user" | "stream_event" => {}
            other => {
                findings.add("known-type", format!("`{other}` is not a type of the contract"));
            }
        }
        let is_error = string_field(record, "subtype") == "error";
        match kind {
            // A repeated record of these types may be dropped.
            "usage" | "message_stop" | "interrupt" => {}
            "system" if !is_error => {}
            _ => self.check_unique(kind, &text, findings),
        }
        self.remember(kind);
    }

    fn finish(&mut self, findings: &mut Findings) {
        for id in self.open.iter().chain(&self.of_client) {
            findings.add("tool-answered", format!("call {id} has no `tool_result`"));
        }
        findings.require(!self.turn.after_result, "message-stop", "`message_stop` is missing");
        findings.require(!self.turn.content, "result-present", "the last turn has no `result`");
        findings.require(self.init, "init-first", "there is no `system` `init`");
    }
}

impl YumeRules {
    /// Checks the order of records.
    fn check_order(&mut self, kind: &str, record: &Value, findings: &mut Findings) {
        let is_init = kind == "system" && string_field(record, "subtype") == "init";
        if is_init {
            findings.require(!self.init, "init-once", "there is more than one `init`");
        } else if !self.started {
            findings.add("init-first", "the first record must be `system` `init`");
            // A missing `init` is reported once.
            self.init = true;
        }
        self.started = true;
        self.init |= is_init;
        let open = self.open.as_ref().or(self.of_client.last());
        if let Some(open) = open.filter(|open| !is_answer_to(record, open)) {
            let message = format!("`{kind}` is between call {open} and its `tool_result`");
            if self.open.is_some() {
                findings.add("tool-serial", message);
            } else {
                self.meanwhile.push(message);
            }
        }
        if kind == "message_stop" {
            let last = self.turn.after_result;
            let message = "`message_stop` must directly follow `result`";
            findings.require(last, "message-stop", message);
        } else if self.turn.after_result {
            let message = format!("`{kind}` is between `result` and `message_stop`");
            findings.add("result-last", message);
        }
    }

    fn check_system(&mut self, record: &Value, findings: &mut Findings) {
        match string_field(record, "subtype") {
            "init" => {
                for field in ["session_id", "model", "cwd", "permissionMode"] {
                    require_string(record, field, "init-fields", findings);
                }
                let mode = string_field(record, "permissionMode");
                let message = format!("`{mode}` is not a mode of the contract or of Claude");
                let known = mode.is_empty() || PERMISSION_MODES.contains(&mode);
                findings.require(known, "permission-mode", message);
                let names = record.get("tools").and_then(Value::as_array);
                let named = names.is_some_and(|names| names.iter().all(Value::is_string));
                findings.require(named, "init-fields", "`tools` must be an array of names");
            }
            "session_id" => require_string(record, "session_id", "session-id-fields", findings),
            "error" => require_string(record, "message", "system-error-fields", findings),
            "compact_boundary" => {
                let metadata = record.get("compact_metadata").is_none_or(Value::is_object);
                let message = "`compact_metadata` must be an object";
                findings.require(metadata, "compact-fields", message);
            }
            other => {
                let message = format!("`{other}` is not a subtype of the contract");
                findings.add("system-subtype", message);
            }
        }
    }

    fn check_call(&mut self, record: &Value, findings: &mut Findings) {
        let (id, name) = (string_field(record, "id"), string_field(record, "name"));
        findings.require(!id.is_empty(), "tool-use-fields", "`id` must be a string");
        findings.require(!name.is_empty(), "tool-use-fields", "`name` must be a string");
        let input = record.get("input").and_then(Value::as_object);
        findings.require(input.is_some(), "tool-use-fields", "`input` must be an object");
        let for_files = matches!(name, "Read" | "Write" | "Edit" | "MultiEdit");
        let path = input.is_none_or(|input| input.contains_key("file_path"));
        findings.require(!for_files || path, "file-path", format!("{name} has no `file_path`"));
        if name == "TodoWrite" {
            check_todo_statuses(input.and_then(|input| input.get("todos")), findings);
        }
        let new = self.calls.insert(id.to_owned());
        findings.require(new, "tool-id-unique", format!("call {id} was started before"));
        if string_field(record, "executor") == "client" {
            self.of_client.push(id.to_owned());
        } else if self.open.is_none() {
            self.open = Some(id.to_owned());
        }
    }

    /// Reports the records between a call of the client and its answer, since the turn did not wait
    /// for the client.
    fn report_meanwhile(&mut self, findings: &mut Findings) {
        for message in self.meanwhile.drain(..) {
            findings.add("tool-serial", message);
        }
    }

    fn check_answer(&mut self, record: &Value, findings: &mut Findings) {
        let id = string_field(record, "tool_use_id");
        findings.require(!id.is_empty(), "tool-result-fields", "`tool_use_id` must be a string");
        let content = match record.get("content") {
            Some(Value::String(_)) => true,
            Some(Value::Object(fields)) => {
                fields.contains_key("content") || fields.contains_key("output")
            }
            _ => false,
        };
        let message = "`content` must be a string, or an object with `content` or `output`";
        findings.require(content, "tool-result-fields", message);
        for flag in ["is_error", "partial"] {
            let is_flag = record.get(flag).is_none_or(Value::is_boolean);
            let message = format!("`{flag}` must be true or false");
            findings.require(is_flag, "tool-result-fields", message);
        }
        let failed = record.get("is_error") == Some(&Value::Bool(true));
        let empty = record.get("content").is_some_and(|content| content == "");
        findings.require(!failed || !empty, "error-text", "an error has no text");
        let open = self.open.as_deref() == Some(id);
        let of_client = self.of_client.iter().position(|call| call == id);
        let waits = open || of_client.is_some() || self.deferred.remove(id);
        findings.require(waits, "tool-result-open", format!("call {id} is not open"));
        let is_last = record.get("partial") != Some(&Value::Bool(true));
        if open && is_last {
            self.open = None;
        }
        if let Some(at) = of_client.filter(|_| is_last) {
            self.of_client.remove(at);
            self.report_meanwhile(findings);
        }
    }

    fn check_result(&mut self, record: &Value, findings: &mut Findings) {
        if string_field(record, "subtype") == "waiting_for_client" {
            self.meanwhile.clear();
            self.deferred.extend(self.of_client.drain(..));
        }
        self.report_meanwhile(findings);
        let failed = record.get("is_error").and_then(Value::as_bool);
        findings.require(failed.is_some(), "result-fields", "`is_error` must be true or false");
        let subtype = record.get("subtype").is_none_or(Value::is_string);
        findings.require(subtype, "result-fields", "`subtype` must be a string");
        if let Some(errors) = record.get("errors") {
            let list = errors.as_array();
            let strings = list.is_some_and(|list| list.iter().all(Value::is_string));
            findings.require(strings, "result-fields", "`errors` must be an array of strings");
        }
        for field in ["duration_ms", "duration_api_ms", "num_turns"] {
            let number = record.get(field).is_none_or(Value::is_u64);
            findings.require(number, "result-fields", format!("`{field}` must be a number"));
        }
        let cost = record.get("total_cost_usd").is_none_or(Value::is_number);
        findings.require(cost, "result-fields", "`total_cost_usd` must be a number");
        let usage = record.get("usage");
        if let Some(usage) = usage {
            check_usage(usage, findings);
            let marked = |mark: Option<&Value>| mark == Some(&Value::Bool(true));
            let marks = (marked(usage.get("estimated")), marked(record.get("usage_estimated")));
            let message = "an estimate must be marked in `usage` and by `usage_estimated`";
            findings.require(marks.0 == marks.1, "usage-marked", message);
        }
        check_model_usage(record.get("modelUsage"), findings);
        let completed = failed == Some(false) && string_field(record, "subtype") == "success";
        let zero = |field: &str| usage.and_then(|usage| usage.get(field)?.as_u64()) == Some(0);
        let none = zero("input_tokens") && zero("output_tokens");
        let message = "Yume interprets a result without tokens as a compaction";
        findings.require(!completed || !none, "usage-not-zero", message);
        let has_usage = self.turn.usages > 0;
        let message = "a completed turn must have a `usage` before its `result`";
        findings.require(!completed || has_usage, "usage-reported", message);
        let right_before = !has_usage || self.turn.after_usage;
        findings.require(right_before, "usage-reported", "`usage` must directly precede `result`");
        let waits_for_client = string_field(record, "subtype") == "waiting_for_client";
        let stopped = failed == Some(true)
            || waits_for_client
            || string_field(record, "subtype") == "cancelled";
        let message = "directly after `interrupt`, `result` must be an error or cancelled";
        findings.require(!self.turn.interrupted || stopped, "interrupt-result", message);
    }

    /// Checks that a record is unique, since Yume drops a line that it has already received.
    fn check_unique(&mut self, kind: &str, text: &str, findings: &mut Findings) {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let new = self.lines.insert(hasher.finish());
        findings.require(new, "text-unique", format!("the same `{kind}` was written before"));
    }

    fn remember(&mut self, kind: &str) {
        let turn = &mut self.turn;
        turn.after_usage = kind == "usage";
        turn.after_result = kind == "result";
        match kind {
            "result" => {
                *turn = TurnState { after_result: true, ..TurnState::default() };
            }
            "usage" => {
                turn.usages += 1;
                turn.content = true;
            }
            "interrupt" => {
                turn.interrupted = true;
                turn.content = true;
            }
            "tool_result" => turn.content = true,
            "text" | "thinking" | "tool_use" | "assistant" => {
                turn.interrupted = false;
                turn.content = true;
            }
            _ => {}
        }
    }
}

/// Whether a record is the answer to a call.
fn is_answer_to(record: &Value, call: &str) -> bool {
    string_field(record, "type") == "tool_result" && string_field(record, "tool_use_id") == call
}

fn string_field<'r>(record: &'r Value, field: &str) -> &'r str {
    record.get(field).and_then(Value::as_str).unwrap_or("")
}

fn require_string(record: &Value, field: &str, rule: &'static str, findings: &mut Findings) {
    let is_string = record.get(field).is_some_and(Value::is_string);
    findings.require(is_string, rule, format!("`{field}` must be a string"));
}

/// Checks that the steps of a plan have a status that Yume displays.
fn check_todo_statuses(todos: Option<&Value>, findings: &mut Findings) {
    for todo in todos.and_then(Value::as_array).into_iter().flatten() {
        let status = todo.get("status").and_then(Value::as_str);
        let displayed = matches!(status, None | Some("pending" | "in_progress" | "completed"));
        findings.require(displayed, "todo-status", format!("a step has the status {status:?}"));
    }
}

fn check_usage(usage: &Value, findings: &mut Findings) {
    for field in ["input_tokens", "output_tokens"] {
        let number = usage.get(field).is_some_and(Value::is_u64);
        findings.require(number, "usage-fields", format!("`{field}` must be a number"));
    }
    for field in ["cache_creation_input_tokens", "cache_read_input_tokens"] {
        let number = usage.get(field).is_none_or(Value::is_u64);
        findings.require(number, "usage-fields", format!("`{field}` must be a number"));
    }
    let estimated = usage.get("estimated").is_none_or(Value::is_boolean);
    findings.require(estimated, "usage-fields", "`estimated` must be true or false");
}

/// Checks the counts of each model, which have Claude's field names.
fn check_model_usage(models: Option<&Value>, findings: &mut Findings) {
    let Some(models) = models else { return };
    let all = models.as_object();
    findings.require(all.is_some(), "model-usage", "`modelUsage` must be an object");
    let counts =
        ["inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens"];
    for (model, usage) in all.into_iter().flatten() {
        let message = format!("the counts of {model} must be an object");
        findings.require(usage.is_object(), "model-usage", message);
        for field in counts {
            let number = usage.get(field).is_none_or(Value::is_u64);
            let message = format!("`{field}` of {model} is not a number");
            findings.require(number, "model-usage", message);
        }
        let cost = usage.get("costUSD").is_none_or(Value::is_number);
        findings.require(cost, "model-usage", format!("`costUSD` of {model} is not a number"));
    }
}

/// Checks that a line is shorter than the limit of Yume's parser.
fn check_length(text: &str, findings: &mut Findings) {
    const LIMIT: usize = 100_000;
    let length = text.len();
    let message = format!("{length} bytes; a line must stay below {LIMIT}");
    findings.require(length < LIMIT, "line-length", message);
}
