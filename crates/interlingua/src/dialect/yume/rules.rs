//! The rules of the flat contract.
//!
//! They look at records as plain JSON and share nothing with the writer. A line's length is that of
//! the record as compact JSON.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use crate::check::{Findings, Rules};

/// The rules of `yume`.
#[derive(Debug, Default)]
pub(super) struct YumeRules {
    begun: bool,
    init: bool,
    /// The call that waits for its answer.
    open: Option<String>,
    /// Calls of the client that wait, and what came since they were made: if the turn rests, that is
    /// as it should be.
    of_client: Vec<String>,
    meanwhile: Vec<String>,
    calls: HashSet<String>,
    /// Calls that the client will answer in a later turn.
    left: HashSet<String>,
    lines: HashSet<u64>,
    turn: TurnState,
}

/// Where a turn is.
#[derive(Debug, Default)]
struct TurnState {
    /// Something was said or done in it.
    content: bool,
    usages: u64,
    interrupts: u64,
    /// It was interrupted, and nothing was said since.
    stopped: bool,
    /// The record before was `usage`.
    after_usage: bool,
    /// The record before was `result`.
    after_result: bool,
}

/// What may be done without asking.
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
        let kind = word(record, "type");
        let text = record.to_string();
        self.order(kind, record, findings);
        length(&text, findings);
        let parent = record.get("parent_tool_use_id");
        let parent = parent.is_none_or(|parent| parent.is_string() || parent.is_null());
        findings.require(parent, "parent-fields", "`parent_tool_use_id` must be a string");
        match kind {
            "system" => self.system(record, findings),
            "text" => require_string(record, "content", "text-fields", findings),
            "thinking" => require_string(record, "thought", "thinking-fields", findings),
            "tool_use" => self.call(record, findings),
            "tool_result" => self.answer(record, findings),
            "usage" => usage_fields(record.get("usage").unwrap_or(record), findings),
            "result" => self.result(record, findings),
            "error" => {
                require_string(record, "message", "error-fields", findings);
                let code = record.get("code").is_none_or(Value::is_string);
                findings.require(code, "error-fields", "`code` must be a string");
            }
            "interrupt" => {
                self.turn.interrupts += 1;
                let once = self.turn.interrupts == 1;
                findings.require(once, "interrupt-once", "a turn is interrupted once");
            }
            "message_stop" | "assistant" | "user" | "stream_event" => {}
            other => findings.add("known-type", format!("`{other}` is no type of the contract")),
        }
        let is_error = word(record, "subtype") == "error";
        match kind {
            // Nobody misses the second one.
            "usage" | "message_stop" | "interrupt" => {}
            "system" if !is_error => {}
            _ => self.twice(kind, &text, findings),
        }
        self.remember(kind);
    }

    fn finish(&mut self, findings: &mut Findings) {
        for id in self.open.iter().chain(&self.of_client) {
            findings.add("tool-answered", format!("call {id} has no `tool_result`"));
        }
        findings.require(!self.turn.after_result, "message-stop", "`message_stop` is missing");
        findings.require(!self.turn.content, "result-told", "the last turn has no `result`");
        findings.require(self.init, "init-first", "there is no `system` `init`");
    }
}

impl YumeRules {
    /// What may come after what.
    fn order(&mut self, kind: &str, record: &Value, findings: &mut Findings) {
        let is_init = kind == "system" && word(record, "subtype") == "init";
        if is_init {
            findings.require(!self.init, "init-once", "`init` comes once");
        } else if !self.begun {
            findings.add("init-first", "the first record must be `system` `init`");
            // Told once.
            self.init = true;
        }
        self.begun = true;
        self.init |= is_init;
        let open = self.open.as_ref().or(self.of_client.last());
        if let Some(open) = open.filter(|open| !answers(record, open)) {
            let message = format!("`{kind}` stands between call {open} and its `tool_result`");
            if self.open.is_some() {
                findings.add("tool-serial", message);
            } else {
                self.meanwhile.push(message);
            }
        }
        if kind == "message_stop" {
            let last = self.turn.after_result;
            findings.require(last, "message-stop", "`message_stop` comes right after `result`");
        } else if self.turn.after_result {
            let message = format!("`{kind}` stands between `result` and `message_stop`");
            findings.add("result-last", message);
        }
    }

    fn system(&mut self, record: &Value, findings: &mut Findings) {
        match word(record, "subtype") {
            "init" => {
                for field in ["session_id", "model", "cwd", "permissionMode"] {
                    require_string(record, field, "init-fields", findings);
                }
                let mode = word(record, "permissionMode");
                let message = format!("`{mode}` is no mode of the contract or of Claude");
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
                findings.add("system-subtype", format!("`{other}` is no subtype of the contract"));
            }
        }
    }

    fn call(&mut self, record: &Value, findings: &mut Findings) {
        let (id, name) = (word(record, "id"), word(record, "name"));
        findings.require(!id.is_empty(), "tool-use-fields", "`id` must be a string");
        findings.require(!name.is_empty(), "tool-use-fields", "`name` must be a string");
        let input = record.get("input").and_then(Value::as_object);
        findings.require(input.is_some(), "tool-use-fields", "`input` must be an object");
        let for_files = matches!(name, "Read" | "Write" | "Edit" | "MultiEdit");
        let path = input.is_none_or(|input| input.contains_key("file_path"));
        findings.require(!for_files || path, "file-path", format!("{name} has no `file_path`"));
        if name == "TodoWrite" {
            todo_words(input.and_then(|input| input.get("todos")), findings);
        }
        let new = self.calls.insert(id.to_owned());
        findings.require(new, "tool-id-unique", format!("call {id} was made before"));
        if word(record, "executor") == "client" {
            self.of_client.push(id.to_owned());
        } else if self.open.is_none() {
            self.open = Some(id.to_owned());
        }
    }

    /// Tells what stood between a call of the client and its answer: the turn did not rest.
    fn did_not_rest(&mut self, findings: &mut Findings) {
        for message in self.meanwhile.drain(..) {
            findings.add("tool-serial", message);
        }
    }

    fn answer(&mut self, record: &Value, findings: &mut Findings) {
        let id = word(record, "tool_use_id");
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
        let silent = record.get("content").is_some_and(|content| content == "");
        findings.require(!failed || !silent, "error-says-why", "an error without a word");
        let open = self.open.as_deref() == Some(id);
        let of_client = self.of_client.iter().position(|call| call == id);
        let waits = open || of_client.is_some() || self.left.remove(id);
        findings.require(waits, "tool-result-open", format!("call {id} does not wait"));
        let whole = record.get("partial") != Some(&Value::Bool(true));
        if open && whole {
            self.open = None;
        }
        if let Some(at) = of_client.filter(|_| whole) {
            self.of_client.remove(at);
            self.did_not_rest(findings);
        }
    }

    fn result(&mut self, record: &Value, findings: &mut Findings) {
        if word(record, "subtype") == "waiting_for_client" {
            self.meanwhile.clear();
            self.left.extend(self.of_client.drain(..));
        }
        self.did_not_rest(findings);
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
            usage_fields(usage, findings);
            let marked = |mark: Option<&Value>| mark == Some(&Value::Bool(true));
            let marks = (marked(usage.get("estimated")), marked(record.get("usage_estimated")));
            let message = "an estimate is marked in `usage` and by `usage_estimated`";
            findings.require(marks.0 == marks.1, "usage-marked", message);
        }
        model_usage(record.get("modelUsage"), findings);
        let completed = failed == Some(false) && word(record, "subtype") == "success";
        let zero = |field: &str| usage.and_then(|usage| usage.get(field)?.as_u64()) == Some(0);
        let none = zero("input_tokens") && zero("output_tokens");
        let message = "Yume takes a result without tokens for a compaction";
        findings.require(!completed || !none, "usage-not-zero", message);
        let told = self.turn.usages > 0;
        let message = "a turn that completed has a `usage` before its `result`";
        findings.require(!completed || told, "usage-told", message);
        let right_before = !told || self.turn.after_usage;
        findings.require(right_before, "usage-told", "`usage` comes right before `result`");
        let rests = word(record, "subtype") == "waiting_for_client";
        let stopped = failed == Some(true) || rests || word(record, "subtype") == "cancelled";
        let message = "right after `interrupt`, `result` is an error or cancelled";
        findings.require(!self.turn.stopped || stopped, "interrupt-result", message);
    }

    /// Yume drops a line that it has seen before: what must not get lost is never the same twice.
    fn twice(&mut self, kind: &str, text: &str, findings: &mut Findings) {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let new = self.lines.insert(hasher.finish());
        findings.require(new, "text-unique", format!("the same `{kind}` came before"));
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
                turn.stopped = true;
                turn.content = true;
            }
            "tool_result" => turn.content = true,
            "text" | "thinking" | "tool_use" | "assistant" => {
                turn.stopped = false;
                turn.content = true;
            }
            _ => {}
        }
    }
}

/// Whether a record is the answer to a call.
fn answers(record: &Value, call: &str) -> bool {
    word(record, "type") == "tool_result" && word(record, "tool_use_id") == call
}

fn word<'r>(record: &'r Value, field: &str) -> &'r str {
    record.get(field).and_then(Value::as_str).unwrap_or("")
}

fn require_string(record: &Value, field: &str, rule: &'static str, findings: &mut Findings) {
    let is_string = record.get(field).is_some_and(Value::is_string);
    findings.require(is_string, rule, format!("`{field}` must be a string"));
}

/// The words that Yume draws a step with.
fn todo_words(todos: Option<&Value>, findings: &mut Findings) {
    for todo in todos.and_then(Value::as_array).into_iter().flatten() {
        let status = todo.get("status").and_then(Value::as_str);
        let drawn = matches!(status, None | Some("pending" | "in_progress" | "completed"));
        findings.require(drawn, "todo-status", format!("a step is {status:?}"));
    }
}

fn usage_fields(usage: &Value, findings: &mut Findings) {
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

/// The counts of each model, under the names that Claude gives them.
fn model_usage(models: Option<&Value>, findings: &mut Findings) {
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
            findings.require(number, "model-usage", format!("`{field}` of {model} is no number"));
        }
        let cost = usage.get("costUSD").is_none_or(Value::is_number);
        findings.require(cost, "model-usage", format!("`costUSD` of {model} is no number"));
    }
}

/// One line stays below what Yume's parser keeps.
fn length(text: &str, findings: &mut Findings) {
    const LIMIT: usize = 100_000;
    let length = text.len();
    let message = format!("{length} bytes; a line must stay below {LIMIT}");
    findings.require(length < LIMIT, "line-length", message);
}
