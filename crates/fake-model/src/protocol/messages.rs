//! Anthropic Messages: `POST …/messages`, `POST …/messages/count_tokens`.
//!
//! A stream consists of named events: `message_start`, for each block `content_block_start`,
//! `…_delta`, `…_stop`, then `message_delta` with the stop reason and the counts, and
//! `message_stop`. `input_tokens` does not include cached tokens.

use serde_json::{Value, json};

use super::{Answer, Block, Content, named, set};
use crate::conversation::{Conversation, Entry, Role, Tool, content_text, items_at, text_at};
use crate::play::{Beat, Mark};
use crate::script::{ApiError, Stop};

pub(super) fn read(body: &Value) -> Conversation {
    let choice = body.get("tool_choice").unwrap_or(&Value::Null);
    let format = body
        .pointer("/output_config/format")
        .or_else(|| body.get("output_format"))
        .unwrap_or(&Value::Null);
    let mut conversation = Conversation {
        model: body.get("model").and_then(Value::as_str).map(str::to_owned),
        stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        wants_usage: true,
        instructions: content_text(body.get("system").unwrap_or(&Value::Null)),
        forced_tool: (text_at(choice, "type") == "tool")
            .then(|| text_at(choice, "name").to_owned()),
        answer_schema: format.get("schema").cloned(),
        answer_json: text_at(format, "type").starts_with("json"),
        ..Conversation::default()
    };
    for message in items_at(body, "messages") {
        read_message(message, &mut conversation.entries);
    }
    // A tool with a `type` is one that the API runs or defines.
    for tool in items_at(body, "tools").iter().filter(|tool| runs_at_agent(tool)) {
        conversation.tools.push(Tool {
            name: text_at(tool, "name").to_owned(),
            schema: Some(tool.get("input_schema").cloned().unwrap_or(Value::Null)),
        });
    }
    conversation
}

fn runs_at_agent(tool: &Value) -> bool {
    matches!(tool.get("type").and_then(Value::as_str), None | Some("custom"))
}

fn read_message(message: &Value, entries: &mut Vec<Entry>) {
    let role = match text_at(message, "role") {
        "user" => Role::User,
        "assistant" => Role::Model,
        "system" => Role::System,
        other => Role::Unknown(other.to_owned()),
    };
    let content = message.get("content").unwrap_or(&Value::Null);
    let Some(blocks) = content.as_array().filter(|blocks| !blocks.is_empty()) else {
        return entries.push(Entry::Message { role, text: content_text(content) });
    };
    for block in blocks {
        entries.push(match text_at(block, "type") {
            "text" => {
                Entry::Message { role: role.clone(), text: text_at(block, "text").to_owned() }
            }
            "tool_use" => Entry::Call {
                id: text_at(block, "id").to_owned(),
                name: text_at(block, "name").to_owned(),
            },
            "tool_result" => Entry::Answer {
                id: text_at(block, "tool_use_id").to_owned(),
                text: content_text(block.get("content").unwrap_or(&Value::Null)),
            },
            _ => Entry::Other,
        });
    }
}

pub(super) fn stream(answer: &Answer) -> Vec<Beat> {
    let mut message = head(answer);
    set(&mut message, "usage", usage(answer, 1));
    let mut beats = vec![
        event(Mark::Frame, "message_start", json!({"message": message})),
        event(Mark::Frame, "ping", json!({})),
    ];
    let mut index = 0;
    for block in &answer.blocks {
        if block.content == Content::Gates {
            beats.extend(block.gates());
        } else {
            stream_block(block, index, &mut beats);
            index += 1;
        }
    }
    let delta = json!({"stop_reason": stop_reason(answer), "stop_sequence": null});
    let end = json!({"delta": delta, "usage": usage(answer, answer.usage.output)});
    beats.push(event(Mark::End, "message_delta", end));
    beats.push(event(Mark::End, "message_stop", json!({})));
    beats
}

fn stream_block(block: &Block, index: usize, beats: &mut Vec<Beat>) {
    let (mark, start, kind, field) = match &block.content {
        Content::Text | Content::Gates => {
            (Mark::Text, json!({"type": "text", "text": ""}), "text_delta", "text")
        }
        Content::Reasoning => {
            let start = json!({"type": "thinking", "thinking": "", "signature": ""});
            (Mark::Delta, start, "thinking_delta", "thinking")
        }
        Content::Call(call) => {
            let start = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}});
            (Mark::Delta, start, "input_json_delta", "partial_json")
        }
    };
    let start = json!({"index": index, "content_block": start});
    beats.push(event(Mark::Frame, "content_block_start", start));
    beats.extend(block.beats(|delta| {
        let delta = json!({"type": kind, field: delta});
        event(mark, "content_block_delta", json!({"index": index, "delta": delta}))
    }));
    if block.content == Content::Reasoning {
        let delta = json!({"type": "signature_delta", "signature": SIGNATURE});
        beats.push(event(
            Mark::Frame,
            "content_block_delta",
            json!({"index": index, "delta": delta}),
        ));
    }
    beats.push(event(Mark::Frame, "content_block_stop", json!({"index": index})));
}

pub(super) fn body(answer: &Answer) -> Value {
    let content = answer.blocks.iter().filter_map(|block| match &block.content {
        Content::Gates => None,
        Content::Text => Some(json!({"type": "text", "text": block.text()})),
        Content::Reasoning => {
            Some(json!({"type": "thinking", "thinking": block.text(), "signature": SIGNATURE}))
        }
        Content::Call(call) => {
            Some(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.input}))
        }
    });
    let content: Vec<Value> = content.collect();
    let mut message = head(answer);
    set(&mut message, "content", json!(content));
    set(&mut message, "stop_reason", json!(stop_reason(answer)));
    set(&mut message, "usage", usage(answer, answer.usage.output));
    message
}

pub(super) fn error(error: &ApiError) -> Value {
    let kind = match error.status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    };
    let error = json!({"type": kind, "message": error.message});
    json!({"type": "error", "error": error, "request_id": "req_fake"})
}

pub(super) fn token_count(tokens: usize) -> Value {
    json!({"input_tokens": tokens})
}

/// A placeholder for the signature of the API; agents send it back and do not read it.
const SIGNATURE: &str = "ZmFrZS1tb2RlbA==";

fn event(mark: Mark, name: &str, mut fields: Value) -> Beat {
    set(&mut fields, "type", json!(name));
    Beat::Event(mark, named(name, &fields))
}

fn head(answer: &Answer) -> Value {
    json!({
        "id": format!("msg_{:04}", answer.number), "type": "message", "role": "assistant",
        "model": answer.model, "content": [], "stop_reason": null, "stop_sequence": null,
    })
}

fn stop_reason(answer: &Answer) -> &'static str {
    match answer.stop {
        Stop::Length => "max_tokens",
        Stop::Refusal => "refusal",
        Stop::Done if answer.has_calls() => "tool_use",
        Stop::Done => "end_turn",
    }
}

fn usage(answer: &Answer, output: u64) -> Value {
    let usage = answer.usage;
    json!({
        "input_tokens": usage.input.saturating_sub(usage.cached),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": output,
    })
}
