//! The rules of ACP, for the messages of the agent and their order. Messages of the client may be
//! in between.
//!
//! The rules check records as plain JSON, and share no code with the encoder. Methods outside the
//! protocol's own namespaces are extensions, which the protocol allows.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::check::{Findings, Rules};

/// The rules of `acp`.
#[derive(Debug, Default)]
pub(super) struct AcpRules {
    /// The calls that were started, and whether they were answered.
    calls: HashMap<String, CallState>,
    /// The title that the client shows for each call.
    titles: HashMap<String, String>,
    requests: HashSet<String>,
    answers: HashSet<String>,
    /// The client's requests that have no response yet, if the client's direction is logged.
    client_requests: Option<HashSet<String>>,
    /// The agent produced output in a live turn, and the prompt has no response yet.
    in_turn: bool,
    /// A session was opened. Output before this is replayed history.
    session_open: bool,
    /// The id of the session, if Interlingua's own encoder wrote the stream. It writes one session,
    /// and marks replayed history.
    our_session: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallState {
    Open,
    /// The client has to answer it, or only a permission request was about it.
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

/// The methods of an agent, which its client calls.
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
    "session/set_model",
    "session/set_config_option",
    "session/list",
    "session/delete",
    "session/close",
    "session/fork",
];

/// The methods of a client, which its agent calls.
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
        check_meta(record, findings);
        match record["method"].as_str() {
            Some("session/update") => self.check_update(record, findings),
            Some("session/request_permission") => self.check_permission(record, findings),
            Some("elicitation/create") => self.check_question(record, findings),
            Some(method) => self.check_method(method, record, findings),
            None => self.check_response(record, findings),
        }
    }

    fn finish(&mut self, findings: &mut Findings) {
        findings.require(!self.in_turn, "prompt-answered", "the last prompt has no response");
    }
}

impl AcpRules {
    fn check_method(&mut self, method: &str, record: &Value, findings: &mut Findings) {
        if METHODS_OF_AGENT.contains(&method) {
            self.check_request_id("client", record, findings);
            if let Some(id) = record.get("id") {
                self.client_requests.get_or_insert_default().insert(id.to_string());
            }
            return;
        }
        let namespaces = ["session/", "fs/", "terminal/", "elicitation/"];
        if namespaces.iter().any(|space| method.starts_with(space)) {
            let known = METHODS_OF_CLIENT.contains(&method);
            findings.require(
                known,
                "known-method",
                format!("`{method}` is not a method of the protocol"),
            );
        }
        self.check_request_id("agent", record, findings);
    }

    fn check_request_id(&mut self, by: &str, record: &Value, findings: &mut Findings) {
        if let Some(id) = record.get("id") {
            let new = self.requests.insert(format!("{by} {id}"));
            findings.require(
                new,
                "request-id-unique",
                format!("request {id} repeats an earlier id"),
            );
        }
    }

    fn check_update(&mut self, record: &Value, findings: &mut Findings) {
        let params = &record["params"];
        let no_id = record.get("id").is_none();
        findings.require(
            no_id,
            "notification",
            "`session/update` is a notification and must not have an id",
        );
        require_name(params, "sessionId", "session-id", findings);
        self.check_session(params, findings);
        let update = &params["update"];
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        let known = UPDATES.contains(&kind);
        findings.require(known, "known-update", format!("`{kind}` is not an update of a session"));
        let replay = ours(update, "replay").is_some_and(|it| *it == true);
        match kind {
            "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" => {
                check_content_block(&update["content"], findings);
                check_optional_string(update, "messageId", "chunk-fields", findings);
                let echo = kind == "user_message_chunk" && !replay && self.our_session.is_some();
                let message = "the client already shows the prompt of a live turn";
                findings.require(!echo, "prompt-echo", message);
                self.record_output(replay, kind != "user_message_chunk" && has_text(update));
            }
            "tool_call" => {
                self.start_call(update, findings);
                self.record_output(replay, true);
            }
            "tool_call_update" => self.update_call(update, findings),
            "plan" => {
                check_plan(update, findings);
                self.record_output(replay, true);
            }
            "usage_update" => {
                for field in ["used", "size"] {
                    let counted = update[field].is_u64();
                    let message = format!("`{field}` must be a number");
                    findings.require(counted, "usage-update-fields", message);
                }
            }
            "current_mode_update" => require_name(update, "currentModeId", "mode-fields", findings),
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

    /// Checks that the session keeps its id, by which the client knows it.
    fn check_session(&self, params: &Value, findings: &mut Findings) {
        let same = self.our_session.as_ref().is_none_or(|ours| params["sessionId"] == **ours);
        findings.require(same, "one-session", "the id of the session has changed");
    }

    /// Records output of a turn. Output before the session is open is replayed history.
    fn record_output(&mut self, replay: bool, of_agent: bool) {
        self.in_turn |= of_agent && !replay && self.session_open;
    }

    fn start_call(&mut self, update: &Value, findings: &mut Findings) {
        require_name(update, "toolCallId", "tool-call-fields", findings);
        require_name(update, "title", "tool-call-fields", findings);
        check_call_fields(update, findings);
        let id = update["toolCallId"].as_str().unwrap_or_default();
        let before = self.calls.get(id);
        let new = before.is_none_or(|call| *call == CallState::NeedsNoAnswer);
        findings.require(new, "tool-id-unique", format!("call {id} was started before"));
        let state = if ours(update, "executor").is_some_and(|it| *it == "client") {
            CallState::NeedsNoAnswer
        } else {
            state_of(update)
        };
        self.calls.insert(id.to_owned(), state);
        self.record_title(id, update);
    }

    /// Records the title of a call, unless it is only the name of the tool.
    fn record_title(&mut self, id: &str, update: &Value) {
        if let Some(title) = update["title"].as_str().filter(|title| update["name"] != **title) {
            self.titles.insert(id.to_owned(), title.to_owned());
        }
    }

    fn update_call(&mut self, update: &Value, findings: &mut Findings) {
        require_name(update, "toolCallId", "tool-call-fields", findings);
        check_optional_string(update, "title", "tool-call-fields", findings);
        check_call_fields(update, findings);
        let id = update["toolCallId"].as_str().unwrap_or_default();
        let Some(call) = self.calls.get_mut(id) else {
            findings.add("tool-known", format!("call {id} was never started"));
            return;
        };
        let ends = state_of(update) == CallState::Answered;
        let once = !ends || *call != CallState::Answered;
        findings.require(once, "tool-answered-once", format!("call {id} was answered before"));
        if ends {
            *call = CallState::Answered;
        }
        self.record_title(id, update);
    }

    fn check_permission(&mut self, record: &Value, findings: &mut Findings) {
        let has_id = record.get("id").is_some_and(|id| !id.is_null());
        findings.require(has_id, "permission-fields", "a request must have an id");
        self.check_request_id("agent", record, findings);
        let params = &record["params"];
        require_name(params, "sessionId", "session-id", findings);
        let call = &params["toolCall"];
        require_name(call, "toolCallId", "permission-fields", findings);
        check_call_fields(call, findings);
        let options = params["options"].as_array();
        let kinds = ["allow_once", "allow_always", "reject_once", "reject_always"];
        let complete = |option: &Value| {
            let kind = option["kind"].as_str().unwrap_or_default();
            option["optionId"].is_string() && option["name"].is_string() && kinds.contains(&kind)
        };
        let offered = options.is_some_and(|options| !options.is_empty());
        findings.require(offered, "permission-options", "`options` must not be empty");
        let complete = options.is_none_or(|options| options.iter().all(complete));
        let message = "an option must have `optionId`, `name` and a known `kind`";
        findings.require(complete, "permission-options", message);
        self.check_session(params, findings);
        self.check_request_title(call, findings);
        let id = call["toolCallId"].as_str().unwrap_or_default();
        self.calls.entry(id.to_owned()).or_insert(CallState::NeedsNoAnswer);
        self.in_turn |= self.session_open;
    }

    /// The title in a request replaces the shown one, so it must not be only the name of the tool.
    fn check_request_title(&self, call: &Value, findings: &mut Findings) {
        let id = call["toolCallId"].as_str().unwrap_or_default();
        let shown = self.titles.get(id).filter(|shown| call["name"] != **shown);
        let hides = shown.is_some() && call["title"].is_string() && call["title"] == call["name"];
        let message = format!("the title of the request hides the title of call {id}");
        findings.require(!hides, "permission-title", message);
    }

    fn check_question(&mut self, record: &Value, findings: &mut Findings) {
        self.check_request_id("agent", record, findings);
        let params = &record["params"];
        self.check_session(params, findings);
        require_name(params, "message", "question-fields", findings);
        let is_form = params["mode"] == "form";
        let has_schema =
            params.pointer("/requestedSchema/properties").is_some_and(Value::is_object);
        let complete = !is_form || has_schema;
        findings.require(
            complete,
            "question-fields",
            "a form must have `requestedSchema` with `properties`",
        );
    }

    fn check_response(&mut self, record: &Value, findings: &mut Findings) {
        let Some(id) = record.get("id") else {
            findings.add(
                "message-shape",
                "a message must have a `method`, or the `id` of the request that it answers",
            );
            return;
        };
        let (result, error) = (record.get("result"), record.get("error"));
        let one = result.is_some() != error.is_some();
        findings.require(one, "message-shape", "a response must have either `result` or `error`");
        // Responses of the client have ids of the agent.
        let of_user = result.is_some_and(|result| result["outcome"].is_object());
        let of_agent =
            self.client_requests.as_mut().is_none_or(|pending| pending.remove(&id.to_string()));
        if of_user || !of_agent {
            return;
        }
        let new = id.is_null() || self.answers.insert(id.to_string());
        findings.require(new, "answer-id-unique", format!("request {id} was answered before"));
        if let Some(error) = error {
            let complete = error["code"].is_i64() && error["message"].is_string();
            findings.require(
                complete,
                "error-fields",
                "an error must have a `code` and a `message`",
            );
            self.end_turn(findings);
        }
        let Some(result) = result else { return };
        if let Some(stop) = result.get("stopReason") {
            let word = stop.as_str().unwrap_or_default();
            let known = STOP_REASONS.contains(&word);
            findings.require(known, "stop-reason", format!("{stop} is not a stop reason"));
            check_usage(result, findings);
            self.end_turn(findings);
        }
        let opens = ["sessionId", "modes", "models", "configOptions"];
        self.session_open |= opens.iter().any(|field| result.get(field).is_some());
    }

    /// Ends a turn: all its calls must be answered.
    fn end_turn(&mut self, findings: &mut Findings) {
        self.in_turn = false;
        let mut open: Vec<_> =
            self.calls.iter().filter(|(_, call)| **call == CallState::Open).collect();
        open.sort_unstable_by_key(|(id, _)| id.as_str());
        for (id, _) in open {
            findings.add("tool-answered", format!("call {id} has no answer"));
        }
        for call in self.calls.values_mut().filter(|call| **call == CallState::Open) {
            *call = CallState::Answered;
        }
    }
}

/// A field of `_meta` that Interlingua's own encoder writes.
fn ours<'v>(update: &'v Value, field: &str) -> Option<&'v Value> {
    update.pointer("/_meta/interlingua")?.get(field)
}

fn has_text(update: &Value) -> bool {
    let text = update.pointer("/content/text").and_then(Value::as_str);
    text.is_some_and(|text| !text.is_empty())
}

fn state_of(update: &Value) -> CallState {
    match update["status"].as_str() {
        Some("completed" | "failed") => CallState::Answered,
        _ => CallState::Open,
    }
}

/// Checks the fields that a call and its updates have in common.
fn check_call_fields(update: &Value, findings: &mut Findings) {
    let word = |field: &str, words: &[&str]| {
        update.get(field).is_none_or(|it| it.as_str().is_some_and(|it| words.contains(&it)))
    };
    findings.require(
        word("kind", KINDS),
        "tool-kind",
        format!("{} is not a kind of tool", update["kind"]),
    );
    let statuses = ["pending", "in_progress", "completed", "failed"];
    let known = word("status", &statuses);
    findings.require(
        known,
        "tool-status",
        format!("{} is not a status of a call", update["status"]),
    );
    for part in update["content"].as_array().into_iter().flatten() {
        match part["type"].as_str() {
            Some("content") => check_content_block(&part["content"], findings),
            Some("diff") => {
                let texts = part["path"].is_string() && part["newText"].is_string();
                findings.require(texts, "diff-fields", "a diff must have a `path` and a `newText`");
            }
            Some("terminal") => require_name(part, "terminalId", "tool-content", findings),
            _ => findings.add(
                "tool-content",
                "the content of a call must be `content`, `diff` or `terminal`",
            ),
        }
    }
    let is_list = update.get("content").is_none_or(Value::is_array);
    findings.require(is_list, "tool-content", "the content of a call must be a list");
    for place in update["locations"].as_array().into_iter().flatten() {
        require_name(place, "path", "tool-location", findings);
        let path = place["path"].as_str().unwrap_or_default();
        let absolute = path.starts_with(['/', '\\']) || path.get(1..2) == Some(":");
        let message = format!("`{path}` must be absolute");
        findings.require(absolute || path.is_empty(), "location-absolute", message);
    }
}

fn check_content_block(block: &Value, findings: &mut Findings) {
    let fields: &[&str] = match block["type"].as_str() {
        Some("text") => &["text"],
        Some("image" | "audio") => &["data", "mimeType"],
        Some("resource_link") => &["uri", "name"],
        Some("resource") => &[],
        _ => {
            findings.add("content-block", format!("{} is not a type of content", block["type"]));
            return;
        }
    };
    for field in fields {
        let there = block[*field].is_string();
        findings.require(there, "content-block", format!("`{field}` must be a string"));
    }
}

fn check_plan(update: &Value, findings: &mut Findings) {
    let Some(entries) = update["entries"].as_array() else {
        findings.add("plan-entry", "a plan must have `entries`");
        return;
    };
    for entry in entries {
        let is_one_of = |field: &str, words: &[&str]| {
            entry[field].as_str().is_some_and(|word| words.contains(&word))
        };
        let complete = entry["content"].is_string()
            && is_one_of("priority", &["high", "medium", "low"])
            && is_one_of("status", &["pending", "in_progress", "completed"]);
        let message = "an entry must have `content`, a known `priority` and a known `status`";
        findings.require(complete, "plan-entry", message);
    }
}

fn check_usage(result: &Value, findings: &mut Findings) {
    let Some(usage) = result.get("usage").filter(|usage| !usage.is_null()) else { return };
    for field in ["totalTokens", "inputTokens", "outputTokens"] {
        let message = format!("`{field}` must be a number");
        findings.require(usage[field].is_u64(), "usage-fields", message);
    }
}

/// Checks that `_meta` is an object everywhere.
fn check_meta(value: &Value, findings: &mut Findings) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let is_object = name != "_meta" || value.is_object() || value.is_null();
                findings.require(is_object, "meta-object", "`_meta` must be an object");
                // The input and the output of a tool may contain any field.
                if !matches!(name.as_str(), "rawInput" | "rawOutput" | "_meta") {
                    check_meta(value, findings);
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| check_meta(value, findings)),
        _ => {}
    }
}

fn require_name(record: &Value, field: &str, rule: &'static str, findings: &mut Findings) {
    let there = record[field].as_str().is_some_and(|text| !text.is_empty());
    findings.require(there, rule, format!("`{field}` must be a string that is not empty"));
}

fn check_optional_string(record: &Value, field: &str, rule: &'static str, findings: &mut Findings) {
    let right = record.get(field).is_none_or(|value| value.is_string() || value.is_null());
    findings.require(right, rule, format!("`{field}` must be a string"));
}
