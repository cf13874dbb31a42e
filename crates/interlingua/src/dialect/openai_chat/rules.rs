//! The rules of a stream of Chat Completions, as OpenAI documents it. Compatible servers break many
//! of them, and are read all the same.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::check::{Findings, Rules};

/// The reasons for which a choice stops.
const FINISH_REASONS: [&str; 5] =
    ["stop", "length", "tool_calls", "content_filter", "function_call"];

/// The rules of `openai-chat`.
#[derive(Debug, Default)]
pub(super) struct OpenAiChatRules {
    response: Response,
}

#[derive(Debug, Default)]
struct Response {
    id: Option<String>,
    choices: BTreeMap<u64, Choice>,
    counted: bool,
    /// It is one object, or an error, so no end follows.
    whole: bool,
    failed: bool,
    done: bool,
}

#[derive(Debug, Default)]
struct Choice {
    finished: bool,
    calls: BTreeMap<u64, Call>,
}

#[derive(Debug, Default)]
struct Call {
    id: String,
    arguments: String,
}

impl Rules for OpenAiChatRules {
    fn record(&mut self, record: &Value, findings: &mut Findings) {
        if self.response.done || self.response.whole {
            self.response.end(findings);
            self.response = Response::default();
        }
        if record.get("error").is_some_and(|error| !error.is_null()) {
            self.response.error(record, findings);
            return;
        }
        match record.get("object").and_then(Value::as_str).unwrap_or_default() {
            "chat.completion.chunk" => self.response.chunk(record, findings),
            "chat.completion" => self.response.whole(record, findings),
            other => findings.add("known-object", format!("{other:?} is no object of this API")),
        }
    }

    fn done(&mut self, findings: &mut Findings) {
        findings.require(!self.response.done, "done-once", "`[DONE]` was sent before");
        self.response.done = true;
    }

    fn finish(&mut self, findings: &mut Findings) {
        self.response.end(findings);
    }
}

impl Response {
    fn chunk(&mut self, chunk: &Value, findings: &mut Findings) {
        findings.require(!self.failed, "error-last", "a chunk follows an error");
        self.head(chunk, findings);
        let Some(choices) = chunk.get("choices").and_then(Value::as_array) else {
            findings.add("chunk-fields", "`choices` is not a list");
            return;
        };
        for choice in choices {
            self.choice(choice, findings);
        }
        let usage = chunk.get("usage").filter(|usage| !usage.is_null());
        if let Some(usage) = usage {
            findings.require(!self.counted, "usage-once", "the counts were sent before");
            findings.require(choices.is_empty(), "usage-apart", "a chunk with a choice has counts");
            self.counted = true;
            check_usage(usage, findings);
        }
    }

    fn head(&mut self, record: &Value, findings: &mut Findings) {
        for field in ["id", "model"] {
            let text = record.get(field).and_then(Value::as_str).unwrap_or_default();
            findings.require(!text.is_empty(), "chunk-fields", format!("`{field}` is missing"));
        }
        let id = record.get("id").and_then(Value::as_str).unwrap_or_default();
        let known = self.id.get_or_insert_with(|| id.to_owned());
        let message = format!("the id is {id:?} and was {known:?}");
        findings.require(*known == id, "same-id", message);
    }

    fn choice(&mut self, choice: &Value, findings: &mut Findings) {
        let index = choice.get("index").and_then(Value::as_u64);
        findings.require(index.is_some(), "choice-fields", "a choice has no `index`");
        let state = self.choices.entry(index.unwrap_or(0)).or_default();
        let delta = choice.get("delta").filter(|delta| delta.is_object());
        findings.require(delta.is_some(), "choice-fields", "a choice has no `delta`");
        let has = |name: &str| {
            let value = delta.and_then(|delta| delta.get(name)).unwrap_or(&Value::Null);
            !value.is_null() && value != ""
        };
        let content = ["content", "refusal", "tool_calls", "function_call"].into_iter().any(has);
        let message = "the choice continues after it stopped";
        findings.require(!(state.finished && content), "finish-last", message);
        let calls = delta.and_then(|delta| delta.get("tool_calls")).and_then(Value::as_array);
        for piece in calls.into_iter().flatten() {
            state.piece(piece, findings);
        }
        match choice.get("finish_reason") {
            Some(Value::String(reason)) => {
                let known = FINISH_REASONS.contains(&&**reason);
                findings.require(known, "finish-reason", format!("{reason:?} is not documented"));
                state.finish(reason, findings);
            }
            Some(Value::Null) => {}
            _ => findings.add("choice-fields", "`finish_reason` is neither a text nor null"),
        }
    }

    fn whole(&mut self, response: &Value, findings: &mut Findings) {
        self.whole = true;
        self.head(response, findings);
        let choices = response.get("choices").and_then(Value::as_array);
        findings.require(choices.is_some(), "chunk-fields", "`choices` is not a list");
        for choice in choices.into_iter().flatten() {
            let message = choice.get("message").is_some_and(Value::is_object);
            findings.require(message, "choice-fields", "a choice has no `message`");
            let reason = choice.get("finish_reason").is_some_and(Value::is_string);
            findings.require(
                reason,
                "finish-missing",
                "a choice has no reason for which it stopped",
            );
        }
        if let Some(usage) = response.get("usage") {
            check_usage(usage, findings);
        }
    }

    fn error(&mut self, record: &Value, findings: &mut Findings) {
        self.failed = true;
        let text = record.pointer("/error/message").is_some_and(Value::is_string);
        findings.require(text, "error-fields", "`error` has no message");
        let code = record.pointer("/error/code").unwrap_or(&Value::Null);
        let fits = code.is_null() || code.is_string();
        findings.require(fits, "error-fields", "the code of the error is not a text");
    }

    fn end(&mut self, findings: &mut Findings) {
        if self.whole || self.failed || self.id.is_none() {
            return;
        }
        for (index, _) in self.choices.iter().filter(|(_, choice)| !choice.finished) {
            findings.add("finish-missing", format!("choice {index} never stopped"));
        }
        findings.require(self.done, "done-missing", "`[DONE]` is missing");
    }
}

impl Choice {
    fn piece(&mut self, piece: &Value, findings: &mut Findings) {
        let index = piece.get("index").and_then(Value::as_u64);
        findings.require(index.is_some(), "call-index", "a piece of a call has no `index`");
        let index = index.unwrap_or(0);
        let id = piece.get("id").and_then(Value::as_str).unwrap_or_default();
        let new = !self.calls.contains_key(&index);
        let next = self.calls.len() as u64;
        let call = self.calls.entry(index).or_default();
        if new {
            findings.require(index == next, "call-index", format!("call {index} is not the next"));
            findings.require(!id.is_empty(), "call-id", format!("call {index} has no id"));
            let name = piece.pointer("/function/name").or(piece.pointer("/custom/name"));
            let named = name.and_then(Value::as_str).is_some_and(|name| !name.is_empty());
            findings.require(named, "call-name", format!("call {index} has no name"));
            call.id = id.to_owned();
        } else if !id.is_empty() {
            let message = format!("the id of call {index} is stated again");
            findings.require(call.id != id, "call-id", message);
            let message = format!("call {index} has two ids");
            findings.require(call.id == id, "call-index", message);
        }
        match piece.pointer("/function/arguments") {
            Some(Value::String(text)) => call.arguments.push_str(text),
            None => {}
            Some(_) => findings.add("call-arguments", "the arguments are not a text"),
        }
    }

    fn finish(&mut self, reason: &str, findings: &mut Findings) {
        self.finished = true;
        let for_calls = !self.calls.is_empty() && reason == "stop";
        findings.require(!for_calls, "finish-reason", "the reason is `stop`, but there are calls");
        if reason == "length" {
            return;
        }
        for (index, call) in self.calls.iter().filter(|(_, call)| !call.arguments.is_empty()) {
            let valid =
                serde_json::from_str::<Value>(&call.arguments).is_ok_and(|it| it.is_object());
            let message = format!("the arguments of call {index} are no JSON object");
            findings.require(valid, "call-arguments", message);
        }
    }
}

fn check_usage(usage: &Value, findings: &mut Findings) {
    let count = |path: &str| usage.pointer(path).and_then(Value::as_u64);
    let (prompt, completion) = (count("/prompt_tokens"), count("/completion_tokens"));
    let (Some(prompt), Some(completion)) = (prompt, completion) else {
        findings.add("usage-fields", "the counts lack `prompt_tokens` or `completion_tokens`");
        return;
    };
    let total =
        count("/total_tokens").is_none_or(|total| total == prompt.saturating_add(completion));
    findings.require(total, "usage-sum", "`total_tokens` is not the sum of the counts");
    let within = |part: &str, whole: u64| count(part).is_none_or(|part| part <= whole);
    let cached = within("/prompt_tokens_details/cached_tokens", prompt);
    findings.require(cached, "usage-sum", "more tokens were cached than there are");
    let reasoning = within("/completion_tokens_details/reasoning_tokens", completion);
    findings.require(reasoning, "usage-sum", "there is more reasoning than output");
}
