//! The rules that a response of the Messages API must keep.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::check::{Findings, Rules};

/// The stop reasons of the model.
const STOP_REASONS: &[&str] = &[
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
];

/// The rules of `anthropic-api`.
#[derive(Debug, Default)]
pub(super) struct AnthropicApiRules {
    /// A message has started and not ended.
    open: bool,
    /// A response or an error was read.
    any: bool,
    /// The open blocks: their type, and the text of their input.
    blocks: BTreeMap<u64, (String, String)>,
    next_index: u64,
    stop_reason: Option<String>,
    output_tokens: u64,
    /// A call of this message whose input is not a whole object.
    broken_call: Option<String>,
    calls: Vec<String>,
}

impl Rules for AnthropicApiRules {
    fn record(&mut self, record: &Value, findings: &mut Findings) {
        match text(record, "type") {
            "message_start" => self.check_start(record, findings),
            "content_block_start" => self.check_block_start(record, findings),
            "content_block_delta" => self.check_delta(record, findings),
            "content_block_stop" => self.check_block_stop(record, findings),
            "message_delta" => self.check_message_delta(record, findings),
            "message_stop" => self.check_stop(findings),
            "message" => self.check_whole(record, findings),
            "error" => {
                for field in ["type", "message"] {
                    let there = record.pointer(&format!("/error/{field}"));
                    let message = format!("`error.{field}` is not a string");
                    findings.require(there.is_some_and(Value::is_string), "error-fields", message);
                }
                // An error may occur anywhere, and is the end.
                (self.open, self.any) = (false, true);
            }
            "" => findings.add("type", "the record has no type"),
            _ => {}
        }
    }

    fn finish(&mut self, findings: &mut Findings) {
        let message = "the stream ends without `message_stop`";
        findings.require(!self.open, "message-stop-last", message);
        findings.require(self.any, "message-start-first", "there is no response");
    }
}

impl AnthropicApiRules {
    fn check_start(&mut self, record: &Value, findings: &mut Findings) {
        let message = "a message starts before the one before it has stopped";
        findings.require(!self.open, "message-stop-last", message);
        *self = Self { open: true, any: true, ..Self::default() };
        let message = record.get("message").unwrap_or(&Value::Null);
        check_message(message, findings);
    }

    fn check_block_start(&mut self, record: &Value, findings: &mut Findings) {
        self.require_open(findings);
        let index = index(record, findings);
        let expected = self.next_index;
        let message = format!("block {index} follows block {}", expected.wrapping_sub(1));
        findings.require(index == expected, "block-index", message);
        self.next_index = index.saturating_add(1);
        let block = record.get("content_block").unwrap_or(&Value::Null);
        check_block(block, &mut self.calls, findings);
        let before = self.blocks.insert(index, (text(block, "type").to_owned(), String::new()));
        let message = format!("block {index} starts twice");
        findings.require(before.is_none(), "block-open", message);
    }

    fn check_delta(&mut self, record: &Value, findings: &mut Findings) {
        let (index, delta) = (index(record, findings), record.get("delta").unwrap_or(&Value::Null));
        let Some((block, input)) = self.blocks.get_mut(&index) else {
            findings.add("block-open", format!("a delta of block {index}, which is not open"));
            return;
        };
        let kind = text(delta, "type");
        let (field, fits) = match kind {
            "text_delta" => ("text", block == "text"),
            "citations_delta" => ("", block == "text"),
            "thinking_delta" => ("thinking", block == "thinking"),
            "signature_delta" => ("signature", block == "thinking"),
            "input_json_delta" => ("partial_json", block.ends_with("tool_use")),
            _ => return,
        };
        findings.require(fits, "delta-type", format!("a {kind} in a block of type {block}"));
        let there = field.is_empty() || delta.get(field).is_some_and(Value::is_string);
        findings.require(there, "delta-type", format!("a {kind} without `{field}`"));
        input.push_str(text(delta, "partial_json"));
    }

    fn check_block_stop(&mut self, record: &Value, findings: &mut Findings) {
        let index = index(record, findings);
        let Some((block, input)) = self.blocks.remove(&index) else {
            findings.add("block-open", format!("block {index} stops, and is not open"));
            return;
        };
        let whole = input.trim().is_empty()
            || serde_json::from_str::<Value>(&input).is_ok_and(|input| input.is_object());
        if block.ends_with("tool_use") && !whole {
            self.broken_call = Some(input);
        }
    }

    fn check_message_delta(&mut self, record: &Value, findings: &mut Findings) {
        self.require_open(findings);
        if let Some(reason) = record.pointer("/delta/stop_reason").and_then(Value::as_str) {
            check_stop_reason(reason, findings);
            self.stop_reason = Some(reason.to_owned());
        }
        match record.pointer("/usage/output_tokens").and_then(Value::as_u64) {
            Some(output) => {
                let message = "`output_tokens` is less than before, and it is cumulative";
                findings.require(output >= self.output_tokens, "usage", message);
                self.output_tokens = output;
            }
            None => findings.add("usage", "`message_delta` has no `output_tokens`"),
        }
    }

    fn check_stop(&mut self, findings: &mut Findings) {
        self.require_open(findings);
        self.open = false;
        for index in std::mem::take(&mut self.blocks).keys() {
            findings.add("block-open", format!("block {index} never stopped"));
        }
        let reason = self.stop_reason.take();
        findings.require(reason.is_some(), "stop-reason", "no `message_delta` has a stop reason");
        let cut = ["max_tokens", "model_context_window_exceeded", "refusal"];
        let cut = reason.is_some_and(|reason| cut.contains(&&*reason));
        if let Some(input) = self.broken_call.take().filter(|_| !cut) {
            findings.add("call-input", format!("the input of a call is no object: {input}"));
        }
    }

    fn check_whole(&mut self, record: &Value, findings: &mut Findings) {
        findings.require(!self.open, "message-stop-last", "a whole message inside a stream");
        *self = Self { any: true, ..Self::default() };
        check_message(record, findings);
        match record.get("content").and_then(Value::as_array) {
            Some(blocks) => {
                blocks.iter().for_each(|block| check_block(block, &mut self.calls, findings));
            }
            None => findings.add("message", "`content` is not an array"),
        }
        match record.get("stop_reason").and_then(Value::as_str) {
            Some(reason) => check_stop_reason(reason, findings),
            None => findings.add("stop-reason", "`stop_reason` is not a string"),
        }
    }

    fn require_open(&mut self, findings: &mut Findings) {
        let message = "no message has started";
        findings.require(self.open, "message-start-first", message);
        // It is reported once.
        (self.open, self.any) = (true, true);
    }
}

fn check_message(message: &Value, findings: &mut Findings) {
    for field in ["id", "model"] {
        let there = message.get(field).is_some_and(Value::is_string);
        findings.require(there, "message", format!("`{field}` of the message is not a string"));
    }
    let assistant = text(message, "role") == "assistant";
    findings.require(assistant, "message", "the role of the message is not \"assistant\"");
    for field in ["input_tokens", "output_tokens"] {
        let count = message.get("usage").and_then(|usage| usage.get(field));
        let there = count.is_some_and(Value::is_u64);
        findings.require(there, "usage", format!("`usage.{field}` is not a number"));
    }
}

fn check_block(block: &Value, calls: &mut Vec<String>, findings: &mut Findings) {
    let kind = text(block, "type");
    let required: &[&str] = match kind {
        "" => &["type"],
        "text" => &["text"],
        "thinking" => &["thinking"],
        "redacted_thinking" => &["data"],
        "tool_use" | "server_tool_use" | "mcp_tool_use" => &["id", "name"],
        kind if kind.ends_with("_tool_result") => &["tool_use_id"],
        _ => &[],
    };
    for field in required {
        let there = block.get(field).is_some_and(Value::is_string);
        findings.require(there, "block-fields", format!("`{kind}` has no `{field}`"));
    }
    if kind.ends_with("tool_use") {
        let input = block.get("input").is_some_and(Value::is_object);
        findings.require(input, "call-input", "the input of a call is not an object");
        let id = text(block, "id").to_owned();
        let fresh = !calls.contains(&id);
        findings.require(fresh, "call-unique", format!("call {id} was started before"));
        calls.push(id);
    } else if kind.ends_with("_tool_result") {
        let id = text(block, "tool_use_id");
        let known = calls.iter().any(|call| call == id);
        findings.require(known, "answer-of-call", format!("call {id} was not started"));
    }
}

fn check_stop_reason(reason: &str, findings: &mut Findings) {
    let known = STOP_REASONS.contains(&reason);
    findings.require(known, "stop-reason", format!("{reason} is not a stop reason"));
}

fn index(record: &Value, findings: &mut Findings) -> u64 {
    let index = record.get("index").and_then(Value::as_u64);
    findings.require(index.is_some(), "block-index", "`index` is not a number");
    index.unwrap_or(0)
}

fn text<'v>(record: &'v Value, field: &str) -> &'v str {
    record.get(field).and_then(Value::as_str).unwrap_or_default()
}
