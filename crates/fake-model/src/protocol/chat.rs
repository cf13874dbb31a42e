//! OpenAI Chat Completions: `POST …/chat/completions`.
//!
//! A stream consists of chunks without event names, then the counts if the request includes them
//! (`stream_options.include_usage`), then `[DONE]`. Reasoning is `reasoning_content`, which the
//! official API does not have but most compatible servers do.

use serde_json::{Map, Value, json};

use super::{Answer, Content, data, set};
use crate::conversation::{Conversation, Entry, Role, Tool, content_text, items_at, text_at};
use crate::play::{Beat, Mark};
use crate::script::{ApiError, Stop};

pub(super) fn read(body: &Value) -> Conversation {
    let format = body.get("response_format").unwrap_or(&Value::Null);
    let mut conversation = Conversation {
        model: body.get("model").and_then(Value::as_str).map(str::to_owned),
        stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        wants_usage: body.pointer("/stream_options/include_usage") == Some(&Value::Bool(true)),
        forced_tool: body
            .pointer("/tool_choice/function/name")
            .and_then(Value::as_str)
            .map(str::to_owned),
        answer_schema: format.pointer("/json_schema/schema").cloned(),
        answer_json: text_at(format, "type").starts_with("json"),
        ..Conversation::default()
    };
    for message in items_at(body, "messages") {
        read_message(message, &mut conversation);
    }
    for tool in items_at(body, "tools") {
        let function = tool.get("function").unwrap_or(tool);
        conversation.tools.push(Tool {
            name: text_at(function, "name").to_owned(),
            schema: Some(function.get("parameters").cloned().unwrap_or(json!({"type": "object"}))),
        });
    }
    conversation
}

fn read_message(message: &Value, conversation: &mut Conversation) {
    let text = content_text(message.get("content").unwrap_or(&Value::Null));
    let role = match text_at(message, "role") {
        "system" | "developer" => {
            conversation.instructions.push_str(&text);
            Role::System
        }
        "user" => Role::User,
        "assistant" => Role::Model,
        "tool" => {
            let id = text_at(message, "tool_call_id").to_owned();
            return conversation.entries.push(Entry::Answer { id, text });
        }
        other => Role::Unknown(other.to_owned()),
    };
    let calls = items_at(message, "tool_calls");
    if calls.is_empty() || !text.is_empty() {
        conversation.entries.push(Entry::Message { role, text });
    }
    for call in calls {
        conversation.entries.push(Entry::Call {
            id: text_at(call, "id").to_owned(),
            name: call
                .pointer("/function/name")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
        });
    }
}

pub(super) fn stream(answer: &Answer) -> Vec<Beat> {
    let chunk = |mark, delta: Value| Beat::Event(mark, data(&chunk(answer, delta, Value::Null)));
    let mut beats = vec![chunk(Mark::Frame, json!({"role": "assistant", "content": ""}))];
    let mut index = 0;
    for block in &answer.blocks {
        match &block.content {
            Content::Gates => beats.extend(block.gates()),
            Content::Reasoning => beats.extend(
                block.beats(|delta| chunk(Mark::Delta, json!({"reasoning_content": delta}))),
            ),
            Content::Text => {
                beats.extend(block.beats(|delta| chunk(Mark::Text, json!({"content": delta}))))
            }
            Content::Call(call) => {
                beats.push(chunk(
                    Mark::Frame,
                    json!({"tool_calls": [{
                        "index": index, "id": call.id, "type": "function",
                        "function": {"name": call.name, "arguments": ""},
                    }]}),
                ));
                beats.extend(block.beats(|delta| {
                    let call = json!({"index": index, "function": {"arguments": delta}});
                    chunk(Mark::Delta, json!({"tool_calls": [call]}))
                }));
                index += 1;
            }
        }
    }
    let last = self::chunk(answer, json!({}), json!(finish_reason(answer)));
    beats.push(Beat::Event(Mark::End, data(&last)));
    if answer.wants_usage {
        let mut counts = head(answer, "chat.completion.chunk");
        counts.insert("choices".to_owned(), json!([]));
        counts.insert("usage".to_owned(), usage(answer));
        beats.push(Beat::Event(Mark::End, data(&Value::Object(counts))));
    }
    beats.push(Beat::Event(Mark::End, "data: [DONE]\n\n".to_owned()));
    beats
}

pub(super) fn body(answer: &Answer) -> Value {
    let (mut text, mut reasoning, mut calls) = (String::new(), String::new(), Vec::new());
    for block in &answer.blocks {
        match &block.content {
            Content::Gates => {}
            Content::Text => text.push_str(&block.text()),
            Content::Reasoning => reasoning.push_str(&block.text()),
            Content::Call(call) => calls.push(json!({
                "id": call.id, "type": "function",
                "function": {"name": call.name, "arguments": call.input_text()},
            })),
        }
    }
    let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { json!(text) };
    let mut message = json!({"role": "assistant", "content": content, "refusal": null});
    if !reasoning.is_empty() {
        set(&mut message, "reasoning_content", json!(reasoning));
    }
    if !calls.is_empty() {
        set(&mut message, "tool_calls", json!(calls));
    }
    let choice = json!({
        "index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(answer),
    });
    let mut body = head(answer, "chat.completion");
    body.insert("choices".to_owned(), json!([choice]));
    body.insert("usage".to_owned(), usage(answer));
    Value::Object(body)
}

/// The error form that all OpenAI protocols share.
pub(super) fn error(error: &ApiError) -> Value {
    let (kind, code) = match error.status {
        401 => ("invalid_request_error", json!("invalid_api_key")),
        403 => ("permission_error", Value::Null),
        429 => ("rate_limit_error", json!("rate_limit_exceeded")),
        400..=499 => ("invalid_request_error", Value::Null),
        _ => ("server_error", Value::Null),
    };
    json!({"error": {"message": error.message, "type": kind, "param": null, "code": code}})
}

pub(super) fn models() -> Value {
    let model = json!({"id": "fake-model", "object": "model", "created": 0, "owned_by": "fake"});
    json!({"object": "list", "data": [model]})
}

fn head(answer: &Answer, object: &str) -> Map<String, Value> {
    let head = json!({
        "id": format!("chatcmpl-{}", answer.number), "object": object, "created": 1_700_000_000,
        "model": answer.model, "system_fingerprint": null,
    });
    head.as_object().cloned().unwrap_or_default()
}

fn chunk(answer: &Answer, delta: Value, finish: Value) -> Value {
    let mut chunk = head(answer, "chat.completion.chunk");
    let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
    chunk.insert("choices".to_owned(), json!([choice]));
    if answer.wants_usage {
        chunk.insert("usage".to_owned(), Value::Null);
    }
    Value::Object(chunk)
}

fn finish_reason(answer: &Answer) -> &'static str {
    match answer.stop {
        Stop::Length => "length",
        Stop::Refusal => "content_filter",
        Stop::Done if answer.has_calls() => "tool_calls",
        Stop::Done => "stop",
    }
}

fn usage(answer: &Answer) -> Value {
    let usage = answer.usage;
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}
