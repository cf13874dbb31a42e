//! The rules of ACP: of what the agent says, and of order. What the client says may stand between.
//!
//! They look at records as plain JSON and share nothing with the writer. Methods outside the
//! protocol's own name spaces are extensions, which it allows.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::check::{Findings, Rules};

/// The rules of `acp`.
#[derive(Debug, Default)]
pub(super) struct AcpRules {
    /// The calls that were made, and whether they were answered.
    calls: HashMap<String, Call>,
    /// What the client shows for each call.
    titles: HashMap<String, String>,
    requests: HashSet<String>,
    answers: HashSet<String>,
    /// The client's requests that wait for an answer, where the client's direction is there.
    asked: Option<HashSet<String>>,
    /// Something of a turn that happens now was said, and the prompt was not answered yet.
    in_turn: bool,
    /// Something that opens a session was seen: what was said before it is history.
    session_open: bool,
    /// The session that our own writer told. It tells one, and marks what is of the past.
    our_session: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Open,
    /// The client has to answer it, or it was only asked for.
    NeedsNoAnswer,
    Answered,
}

const UPDATES: &[&str] = &[
    "user_message_chunk",
    "agent_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
    "available_commands_update",
    "current_mode_update",
    "config_option_update",
    "session_info_update",
    "usage_update",
    "notice",
    "compaction_update",
    "compaction_summary_chunk",
];

const KINDS: &[&str] = &[
    "read",
    "edit",
    "delete",
    "move",
    "search",
    "execute",
    "think",
    "fetch",
    "switch_mode",
    "other",
];

const STOP_REASONS: &[&str] =
    &["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"];

/// The methods that an agent has, which its client calls.
const METHODS_OF_AGENT: &[&str] = &[
    "initialize",
    "authenticate",
    "logout",
    "session/new",
    "session/load",
    "session/resume",
    "session/prompt",
    "session/cancel",
    "session/set_mode",
    "session/set_config_option",
    "session/list",
    "session/delete",
    "session/close",
    "session/fork",
];

/// The methods that a client has, which its agent calls.
const METHODS_OF_CLIENT: &[&str] = &[
    "session/update",
    "session/request_permission",
    "fs/read_text_file",
    "fs/write_text_file",
    "terminal/create",
    "terminal/output",
    "terminal/release",
    "terminal/wait_for_exit",
    "terminal/kill",
    "elicitation/create",
    "elicitation/complete",
];

impl Rules for AcpRules {
    fn record(&mut self, record: &Value, findings: &mut Findings) {
        let version = record["jsonrpc"] == "2.0";
        findings.require(version, "json-rpc", "`jsonrpc` must be \"2.0\"");
        meta_is_object(record, findings);
        match record["method"].as_str() {
            Some("session/update") => self.update(record, findings),
            Some("session/request_permission") => self.permission(record, findings),
            Some("elicitation/create") => self.question(record, findings),
            Some(method) => self.method(method, record, findings),
            None => self.answer(record, findings),
        }
    }

    fn finish(&mut self, findings: &mut Findings) {
        findings.require(!self.in_turn, "prompt-answered", "the last prompt has no answer");
    }
}

impl AcpRules {
    fn method(&mut self, method: &str, record: &Value, findings: &mut Findings) {
        if METHODS_OF_AGENT.contains(&method) {
            self.request_id("client", record, findings);
            if let Some(id) = record.get("id") {
                self.asked.get_or_insert_default().insert(id.to_string());
            }
            return;
        }
        let own = ["session/", "fs/", "terminal/", "elicitation/"];
        if own.iter().any(|space| method.starts_with(space)) {
            let known = METHODS_OF_CLIENT.contains(&method);
            findings.require(known, "known-method", format!("`{method}` is no method"));
        }
        self.request_id("agent", record, findings);
    }

    fn request_id(&mut self, by: &str, record: &Value, findings: &mut Findings) {
        if let Some(id) = record.get("id") {
            let new = self.requests.insert(format!("{by} {id}"));
            findings.require(new, "request-id-unique", format!("request {id} was made before"));
        }
    }

    fn update(&mut self, record: &Value, findings: &mut Findings) {
        let params = &record["params"];
        let no_id = record.get("id").is_none();
        findings.require(no_id, "notification", "`session/update` is a notification: it has no id");
        named(params, "sessionId", "session-id", findings);
        self.same_session(params, findings);
        let update = &params["update"];
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        let known = UPDATES.contains(&kind);
        findings.require(known, "known-update", format!("`{kind}` is no update of a session"));
        let past = ours(update, "replay").is_some_and(|it| *it == true);
        match kind {
            "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" => {
                content_block(&update["content"], findings);
                optional_string(update, "messageId", "chunk-fields", findings);
                let echo = kind == "user_message_chunk" && !past && self.our_session.is_some();
                let message = "the client shows the prompt of a live turn already";
                findings.require(!echo, "prompt-echo", message);
                self.spoke(past, kind != "user_message_chunk" && says_something(update));
            }
            "tool_call" => {
                self.call_made(update, findings);
                self.spoke(past, true);
            }
            "tool_call_update" => self.call_updated(update, findings),
            "plan" => {
                plan(update, findings);
                self.spoke(past, true);
            }
            "usage_update" => {
                for field in ["used", "size"] {
                    let counted = update[field].is_u64();
                    let message = format!("`{field}` must be a number");
                    findings.require(counted, "usage-update-fields", message);
                }
            }
            "current_mode_update" => named(update, "currentModeId", "mode-fields", findings),
            "session_info_update" => {
                self.session_open |= update.get("_meta").is_some();
                if update.pointer("/_meta/interlingua").is_some() {
                    let id = params["sessionId"].as_str().unwrap_or_default();
                    self.our_session.get_or_insert_with(|| id.to_owned());
                }
            }
            _ => {}
        }
    }

    /// A client knows a session by its id: what comes under another one goes nowhere.
    fn same_session(&self, params: &Value, findings: &mut Findings) {
        let same = self.our_session.as_ref().is_none_or(|ours| params["sessionId"] == **ours);
        findings.require(same, "one-session", "the session had another id before");
    }

    /// Something was said. What comes before a session is open is history.
    fn spoke(&mut self, past: bool, of_agent: bool) {
        self.in_turn |= of_agent && !past && self.session_open;
    }

    fn call_made(&mut self, update: &Value, findings: &mut Findings) {
        named(update, "toolCallId", "tool-call-fields", findings);
        named(update, "title", "tool-call-fields", findings);
        call_fields(update, findings);
        let id = update["toolCallId"].as_str().unwrap_or_default();
        let before = self.calls.get(id);
        let new = before.is_none_or(|call| *call == Call::NeedsNoAnswer);
        findings.require(new, "tool-id-unique", format!("call {id} was made before"));
        let state = if ours(update, "executor").is_some_and(|it| *it == "client") {
            Call::NeedsNoAnswer
        } else {
            state_of(update)
        };
        self.calls.insert(id.to_owned(), state);
        self.shown_as(id, update);
    }

    /// Remembers the title of a call, if it says more than the name of the tool.
    fn shown_as(&mut self, id: &str, update: &Value) {
        if let Some(title) = update["title"].as_str().filter(|title| update["name"] != **title) {
            self.titles.insert(id.to_owned(), title.to_owned());
        }
    }

    fn call_updated(&mut self, update: &Value, findings: &mut Findings) {
        named(update, "toolCallId", "tool-call-fields", findings);
        optional_string(update, "title", "tool-call-fields", findings);
        call_fields(update, findings);
        let id = update["toolCallId"].as_str().unwrap_or_default();
        let Some(call) = self.calls.get_mut(id) else {
            findings.add("tool-known", format!("nobody made call {id}"));
            return;
        };
        let ends = state_of(update) == Call::Answered;
        let once = !ends || *call != Call::Answered;
        findings.require(once, "tool-answered-once", format!("call {id} was answered before"));
        if ends {
            *call = Call::Answered;
        }
        self.shown_as(id, update);
    }

    fn permission(&mut self, record: &Value, findings: &mut Findings) {
        let has_id = record.get("id").is_some_and(|id| !id.is_null());
        findings.require(has_id, "permission-fields", "a request must have an id");
        self.request_id("agent", record, findings);
        let params = &record["params"];
        named(params, "sessionId", "session-id", findings);
        let call = &params["toolCall"];
        named(call, "toolCallId", "permission-fields", findings);
        call_fields(call, findings);
        let options = params["options"].as_array();
        let kinds = ["allow_once", "allow_always", "reject_once", "reject_always"];
        let whole = |option: &Value| {
            let kind = option["kind"].as_str().unwrap_or_default();
            option["optionId"].is_string() && option["name"].is_string() && kinds.contains(&kind)
        };
        let offered = options.is_some_and(|options| !options.is_empty());
        findings.require(offered, "permission-options", "`options` must offer something");
        let whole = options.is_none_or(|options| options.iter().all(whole));
        let message = "an option has `optionId`, `name` and a known `kind`";
        findings.require(whole, "permission-options", message);
        self.same_session(params, findings);
        self.request_shows_call(call, findings);
        let id = call["toolCallId"].as_str().unwrap_or_default();
        self.calls.entry(id.to_owned()).or_insert(Call::NeedsNoAnswer);
        self.in_turn |= self.session_open;
    }

    /// The title in a request replaces the one that is shown: it must not be the tool's name alone.
    fn request_shows_call(&self, call: &Value, findings: &mut Findings) {
        let id = call["toolCallId"].as_str().unwrap_or_default();
        let shown = self.titles.get(id).filter(|shown| call["name"] != **shown);
        let hides = shown.is_some() && call["title"].is_string() && call["title"] == call["name"];
        let message = format!("the request hides what call {id} is about");
        findings.require(!hides, "permission-title", message);
    }

    fn question(&mut self, record: &Value, findings: &mut Findings) {
        self.request_id("agent", record, findings);
        let params = &record["params"];
        self.same_session(params, findings);
        named(params, "message", "question-fields", findings);
        let form = params["mode"] == "form";
        let asks = params.pointer("/requestedSchema/properties").is_some_and(Value::is_object);
        let whole = !form || asks;
        findings.require(whole, "question-fields", "a form says what may be answered");
    }

    fn answer(&mut self, record: &Value, findings: &mut Findings) {
        let Some(id) = record.get("id") else {
            findings.add("message-shape", "a message has a method, or the id that it answers");
            return;
        };
        let (result, error) = (record.get("result"), record.get("error"));
        let one = result.is_some() != error.is_some();
        findings.require(one, "message-shape", "an answer has either `result` or `error`");
        // Answers of the client have ids of the agent.
        let of_user = result.is_some_and(|result| result["outcome"].is_object());
        let asked = self.asked.as_mut().is_none_or(|asked| asked.remove(&id.to_string()));
        if of_user || !asked {
            return;
        }
        let new = id.is_null() || self.answers.insert(id.to_string());
        findings.require(new, "answer-id-unique", format!("request {id} was answered before"));
        if let Some(error) = error {
            let whole = error["code"].is_i64() && error["message"].is_string();
            findings.require(whole, "error-fields", "an error has a `code` and a `message`");
            self.turn_over(findings);
        }
        let Some(result) = result else { return };
        if let Some(stop) = result.get("stopReason") {
            let word = stop.as_str().unwrap_or_default();
            let known = STOP_REASONS.contains(&word);
            findings.require(known, "stop-reason", format!("{stop} is no stop reason"));
            usage(result, findings);
            self.turn_over(findings);
        }
        let opens = ["sessionId", "modes", "models", "configOptions"];
        self.session_open |= opens.iter().any(|field| result.get(field).is_some());
    }

    /// A turn is over: all its calls must be too.
    fn turn_over(&mut self, findings: &mut Findings) {
        self.in_turn = false;
        let mut open: Vec<_> = self.calls.iter().filter(|(_, call)| **call == Call::Open).collect();
        open.sort_unstable_by_key(|(id, _)| id.as_str());
        for (id, _) in open {
            findings.add("tool-answered", format!("call {id} has no answer"));
        }
        for call in self.calls.values_mut().filter(|call| **call == Call::Open) {
            *call = Call::Answered;
        }
    }
}

/// What an update says beyond the protocol.
fn ours<'v>(update: &'v Value, field: &str) -> Option<&'v Value> {
    update.pointer("/_meta/interlingua")?.get(field)
}

fn says_something(update: &Value) -> bool {
    let text = update.pointer("/content/text").and_then(Value::as_str);
    text.is_some_and(|text| !text.is_empty())
}

fn state_of(update: &Value) -> Call {
    match update["status"].as_str() {
        Some("completed" | "failed") => Call::Answered,
        _ => Call::Open,
    }
}

/// What a call and its updates have in common.
fn call_fields(update: &Value, findings: &mut Findings) {
    let word = |field: &str, words: &[&str]| {
        update.get(field).is_none_or(|it| it.as_str().is_some_and(|it| words.contains(&it)))
    };
    findings.require(word("kind", KINDS), "tool-kind", format!("`kind` is {}", update["kind"]));
    let statuses = ["pending", "in_progress", "completed", "failed"];
    let known = word("status", &statuses);
    findings.require(known, "tool-status", format!("`status` is {}", update["status"]));
    for part in update["content"].as_array().into_iter().flatten() {
        match part["type"].as_str() {
            Some("content") => content_block(&part["content"], findings),
            Some("diff") => {
                let texts = part["path"].is_string() && part["newText"].is_string();
                findings.require(texts, "diff-fields", "a diff has a `path` and a `newText`");
            }
            Some("terminal") => named(part, "terminalId", "tool-content", findings),
            _ => {
                findings.add("tool-content", "content of a call is `content`, `diff` or `terminal`")
            }
        }
    }
    let is_list = update.get("content").is_none_or(Value::is_array);
    findings.require(is_list, "tool-content", "the content of a call is a list");
    for place in update["locations"].as_array().into_iter().flatten() {
        named(place, "path", "tool-location", findings);
        let path = place["path"].as_str().unwrap_or_default();
        let absolute = path.starts_with(['/', '\\']) || path.get(1..2) == Some(":");
        let message = format!("`{path}` must be absolute");
        findings.require(absolute || path.is_empty(), "location-absolute", message);
    }
}

fn content_block(block: &Value, findings: &mut Findings) {
    let fields: &[&str] = match block["type"].as_str() {
        Some("text") => &["text"],
        Some("image" | "audio") => &["data", "mimeType"],
        Some("resource_link") => &["uri", "name"],
        Some("resource") => &[],
        _ => {
            findings.add("content-block", format!("{} is no type of content", block["type"]));
            return;
        }
    };
    for field in fields {
        let there = block[*field].is_string();
        findings.require(there, "content-block", format!("`{field}` must be a string"));
    }
}

fn plan(update: &Value, findings: &mut Findings) {
    let Some(entries) = update["entries"].as_array() else {
        findings.add("plan-entry", "a plan has `entries`");
        return;
    };
    for entry in entries {
        let is_one_of = |field: &str, words: &[&str]| {
            entry[field].as_str().is_some_and(|word| words.contains(&word))
        };
        let whole = entry["content"].is_string()
            && is_one_of("priority", &["high", "medium", "low"])
            && is_one_of("status", &["pending", "in_progress", "completed"]);
        let message = "an entry has `content`, a known `priority` and a known `status`";
        findings.require(whole, "plan-entry", message);
    }
}

fn usage(result: &Value, findings: &mut Findings) {
    let Some(usage) = result.get("usage").filter(|usage| !usage.is_null()) else { return };
    for field in ["totalTokens", "inputTokens", "outputTokens"] {
        let message = format!("`{field}` must be a number");
        findings.require(usage[field].is_u64(), "usage-fields", message);
    }
}

/// `_meta` is an object wherever it stands.
fn meta_is_object(value: &Value, findings: &mut Findings) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let is_object = name != "_meta" || value.is_object() || value.is_null();
                findings.require(is_object, "meta-object", "`_meta` must be an object");
                // What a tool was given or gave back is its own business.
                if !matches!(name.as_str(), "rawInput" | "rawOutput" | "_meta") {
                    meta_is_object(value, findings);
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| meta_is_object(value, findings)),
        _ => {}
    }
}

fn named(record: &Value, field: &str, rule: &'static str, findings: &mut Findings) {
    let there = record[field].as_str().is_some_and(|text| !text.is_empty());
    findings.require(there, rule, format!("`{field}` must be a string that says something"));
}

fn optional_string(record: &Value, field: &str, rule: &'static str, findings: &mut Findings) {
    let right = record.get(field).is_none_or(|value| value.is_string() || value.is_null());
    findings.require(right, rule, format!("`{field}` must be a string"));
}
