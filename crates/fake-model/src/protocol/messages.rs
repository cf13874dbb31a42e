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
    set(&mut message, "usage", usage(answer, Some(1)));
    let mut beats = vec![
        event(Mark::Frame, "message_start", json!({"message": message})),
        event(Mark::Frame, "ping", json!({})),
    ];
    let mut index = 0;
    for block in &answer.blocks {
        match &block.content {
            Content::Gates => beats.extend(block.gates()),
            // The text of a refusal is in the event that states why the model stopped.
            Content::Refusal | Content::Checkpoint(_) => beats.extend(block.gates()),
            _ => {
                stream_block(block, index, &mut beats);
                index += 1;
            }
        }
    }
    let mut delta = json!({"stop_reason": stop_reason(answer), "stop_sequence": null});
    if let Some(details) = stop_details(answer) {
        set(&mut delta, "stop_details", details);
    }
    let end =
        json!({"delta": delta, "usage": usage(answer, answer.usage.map(|usage| usage.output))});
    beats.push(event(Mark::End, "message_delta", end));
    beats.push(event(Mark::End, "message_stop", json!({})));
    beats
}

fn stream_block(block: &Block, index: usize, beats: &mut Vec<Beat>) {
    let (mark, start, kind, field) = match &block.content {
        Content::Reasoning => {
            let start = json!({"type": "thinking", "thinking": "", "signature": ""});
            (Mark::Delta, start, "thinking_delta", "thinking")
        }
        Content::Call(call) => {
            let start = json!({"type": "tool_use", "id": call.id, "name": call.name, "input": {}});
            (Mark::Call, start, "input_json_delta", "partial_json")
        }
        Content::Redacted => (Mark::Delta, redacted(block), "", ""),
        _ => (Mark::Text, json!({"type": "text", "text": ""}), "text_delta", "text"),
    };
    let start = json!({"index": index, "content_block": start});
    beats.push(event(Mark::Frame, "content_block_start", start));
    beats.extend(block.beats(|delta| {
        let delta = json!({"type": kind, field: delta});
        event(mark, "content_block_delta", json!({"index": index, "delta": delta}))
    }));
    if block.content == Content::Reasoning {
        let delta = json!({"type": "signature_delta", "signature": block.signature});
        beats.push(event(
            Mark::Frame,
            "content_block_delta",
            json!({"index": index, "delta": delta}),
        ));
    }
    let end = if mark == Mark::Call { Mark::CallEnd } else { Mark::Frame };
    beats.push(event(end, "content_block_stop", json!({"index": index})));
}

fn redacted(block: &Block) -> Value {
    json!({"type": "redacted_thinking", "data": block.signature})
}

pub(super) fn body(answer: &Answer) -> Value {
    let content = answer.blocks.iter().filter_map(|block| match &block.content {
        Content::Gates | Content::Checkpoint(_) | Content::Refusal => None,
        Content::Text => Some(json!({"type": "text", "text": block.text()})),
        Content::Redacted => Some(redacted(block)),
        Content::Reasoning => Some(
            json!({"type": "thinking", "thinking": block.text(), "signature": block.signature}),
        ),
        Content::Call(call) => {
            let input = call.input_object();
            Some(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input}))
        }
    });
    let content: Vec<Value> = content.collect();
    let mut message = head(answer);
    set(&mut message, "content", json!(content));
    set(&mut message, "stop_reason", json!(stop_reason(answer)));
    if let Some(details) = stop_details(answer) {
        set(&mut message, "stop_details", details);
    }
    set(&mut message, "usage", usage(answer, answer.usage.map(|usage| usage.output)));
    message
}

pub(super) fn error(error: &ApiError, request_id: &str) -> Value {
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
    json!({"type": "error", "error": error, "request_id": request_id})
}

pub(super) fn token_count(tokens: usize) -> Value {
    json!({"input_tokens": tokens})
}

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

fn stop_reason(answer: &Answer) -> &str {
    if let Some(reason) = &answer.forms.messages.stop_reason {
        return reason;
    }
    match answer.stop {
        Stop::Length => "max_tokens",
        Stop::Refusal => "refusal",
        Stop::Done if answer.refusal().is_some() => "refusal",
        Stop::Done if answer.has_calls() => "tool_use",
        Stop::Done => "end_turn",
    }
}

/// Why the model refused, if it did.
fn stop_details(answer: &Answer) -> Option<Value> {
    let refused = stop_reason(answer) == "refusal";
    refused.then(|| {
        let category = &answer.forms.messages.refusal_category;
        json!({"type": "refusal", "category": category, "explanation": answer.refusal()})
    })
}

/// The counts with this output; zeros if the answer reports none, since the field is required.
fn usage(answer: &Answer, output: Option<u64>) -> Value {
    let Some(usage) = answer.usage else {
        return json!({"input_tokens": 0, "output_tokens": 0});
    };
    let output = output.unwrap_or_default();
    let mut counts = json!({
        "input_tokens": usage.input.saturating_sub(usage.cached + usage.cache_write),
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cached,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write, "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": output,
    });
    if usage.reasoning > 0 && output > 1 {
        set(&mut counts, "output_tokens_details", json!({"thinking_tokens": usage.reasoning}));
    }
    counts
}
