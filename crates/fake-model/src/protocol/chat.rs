//! OpenAI Chat Completions: `POST …/chat/completions`.
//!
//! A stream consists of chunks without event names, then the counts if the request includes them
//! (`stream_options.include_usage`), then `[DONE]`. Reasoning is `reasoning_content`, which the
//! official API does not have but most compatible servers do. The form of a reply selects the
//! deviations of compatible servers.

use serde_json::{Map, Value, json};

use super::{Answer, Bit, Block, Content, SentCall, data, set};
use crate::conversation::{Conversation, Entry, Role, Tool, content_text, items_at, text_at};
use crate::play::{Beat, Mark};
use crate::script::{ApiError, CallArguments, CallIndex, Stop};

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
    let mut calls = 0;
    for (place, block) in answer.blocks.iter().enumerate() {
        match &block.content {
            Content::Gates => beats.extend(block.gates()),
            Content::Checkpoint(_) => {}
            Content::Reasoning | Content::Redacted => {
                beats.extend(block.beats(|delta| {
                    chunk(Mark::Delta, reasoning_delta(answer, place, block, delta))
                }));
                let signed = details(answer, place, block, "");
                beats
                    .extend(signed.map(|details| {
                        chunk(Mark::Delta, json!({"reasoning_details": [details]}))
                    }));
            }
            Content::Text => {
                beats.extend(block.beats(|delta| chunk(Mark::Text, json!({"content": delta}))));
            }
            Content::Refusal => {
                beats.extend(block.beats(|delta| chunk(Mark::Text, json!({"refusal": delta}))));
            }
            Content::Call(call) => {
                let pieces = call_pieces(answer, block, call, calls);
                beats.extend(pieces.into_iter().map(|piece| match piece {
                    CallPiece::Gate(name) => Beat::Gate(name),
                    CallPiece::Start(call) => chunk(Mark::Frame, json!({"tool_calls": [call]})),
                    CallPiece::Delta(call) => chunk(Mark::Call, json!({"tool_calls": [call]})),
                }));
                calls += 1;
            }
        }
    }
    let last = self::chunk(answer, json!({}), json!(finish_reason(answer)));
    beats.push(Beat::Event(Mark::End, data(&last)));
    if let (true, Some(usage)) = (answer.wants_usage, usage(answer)) {
        let mut counts = head(answer, "chat.completion.chunk");
        counts.insert("choices".to_owned(), json!([]));
        counts.insert("usage".to_owned(), usage);
        beats.push(Beat::Event(Mark::End, data(&Value::Object(counts))));
    }
    if !answer.forms.chat.without_done {
        beats.push(Beat::Event(Mark::End, "data: [DONE]\n\n".to_owned()));
    }
    beats
}

fn reasoning_delta(answer: &Answer, place: usize, block: &Block, delta: &str) -> Value {
    let mut fields = json!({&answer.forms.chat.reasoning_field: delta});
    if answer.forms.chat.reasoning_details && block.content == Content::Reasoning {
        let details = json!({
            "type": "reasoning.text", "text": delta, "format": "unknown", "index": place,
        });
        set(&mut fields, "reasoning_details", json!([details]));
    }
    fields
}

/// The signed entry of `reasoning_details`, if the form has it.
fn details(answer: &Answer, place: usize, block: &Block, text: &str) -> Option<Value> {
    let signature = block.signature.as_ref().filter(|_| answer.forms.chat.reasoning_details)?;
    Some(match block.content {
        Content::Redacted => json!({
            "type": "reasoning.encrypted", "data": signature, "format": "unknown", "index": place,
        }),
        _ => json!({
            "type": "reasoning.text", "text": text, "signature": signature, "format": "unknown",
            "index": place,
        }),
    })
}

enum CallPiece {
    Gate(String),
    Start(Value),
    Delta(Value),
}

/// The pieces in which a call is sent, as the form of the reply defines it.
fn call_pieces(answer: &Answer, block: &Block, call: &SentCall, number: usize) -> Vec<CallPiece> {
    let form = &answer.forms.chat;
    let indexed = |mut piece: Value| {
        match form.index {
            CallIndex::Counted => set(&mut piece, "index", json!(number)),
            CallIndex::Zero => set(&mut piece, "index", json!(0)),
            CallIndex::Missing => {}
        }
        piece
    };
    let start = |arguments: Value| {
        let function = json!({"name": call.name, "arguments": arguments});
        indexed(json!({"id": call.id, "type": "function", "function": function}))
    };
    let gates = block.bits.iter().filter_map(|bit| match bit {
        Bit::Gate(name) => Some(CallPiece::Gate(name.clone())),
        Bit::Delta(_) => None,
    });
    if form.arguments == CallArguments::Object {
        return gates.chain([CallPiece::Delta(start(call.input.clone()))]).collect();
    }
    if form.whole_calls {
        return gates.chain([CallPiece::Delta(start(json!(block.text())))]).collect();
    }
    let mut pieces = vec![CallPiece::Start(start(json!("")))];
    pieces.extend(block.bits.iter().map(|bit| match bit {
        Bit::Gate(name) => CallPiece::Gate(name.clone()),
        Bit::Delta(delta) => {
            let mut piece = indexed(json!({"function": {"arguments": delta}}));
            if form.repeated_ids {
                set(&mut piece, "id", json!(call.id));
            }
            CallPiece::Delta(piece)
        }
    }));
    pieces
}

pub(super) fn body(answer: &Answer) -> Value {
    let choice = json!({
        "index": 0, "message": message(answer), "logprobs": null,
        "finish_reason": finish_reason(answer),
    });
    let mut body = head(answer, "chat.completion");
    body.insert("choices".to_owned(), json!([choice]));
    body.extend(usage(answer).map(|usage| ("usage".to_owned(), usage)));
    Value::Object(body)
}

/// The complete message of an answer.
pub(super) fn message(answer: &Answer) -> Value {
    let (mut text, mut reasoning, mut calls) = (String::new(), None, Vec::new());
    let mut signed = Vec::new();
    for (place, block) in answer.blocks.iter().enumerate() {
        match &block.content {
            Content::Gates | Content::Checkpoint(_) | Content::Refusal => {}
            Content::Text => text.push_str(&block.text()),
            Content::Reasoning => {
                reasoning.get_or_insert_with(String::new).push_str(&block.text());
                signed.extend(details(answer, place, block, &block.text()));
            }
            Content::Redacted => signed.extend(details(answer, place, block, "")),
            Content::Call(call) => calls.push(json!({
                "id": call.id, "type": "function",
                "function": {"name": call.name, "arguments": block.text()},
            })),
        }
    }
    let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { json!(text) };
    let refusal = answer.refusal();
    let mut message = json!({"role": "assistant", "content": content, "refusal": refusal});
    if let Some(reasoning) = reasoning {
        set(&mut message, &answer.forms.chat.reasoning_field, json!(reasoning));
    }
    if !signed.is_empty() {
        set(&mut message, "reasoning_details", json!(signed));
    }
    if !calls.is_empty() {
        set(&mut message, "tool_calls", json!(calls));
    }
    message
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
    if answer.forms.chat.usage_in_every_chunk {
        chunk.extend(usage(answer).map(|usage| ("usage".to_owned(), usage)));
    } else if answer.wants_usage {
        chunk.insert("usage".to_owned(), Value::Null);
    }
    Value::Object(chunk)
}

fn finish_reason(answer: &Answer) -> &str {
    if let Some(reason) = &answer.forms.chat.finish_reason {
        return reason;
    }
    match answer.stop {
        Stop::Length => "length",
        Stop::Refusal => "content_filter",
        Stop::Done if answer.has_calls() => "tool_calls",
        Stop::Done => "stop",
    }
}

fn usage(answer: &Answer) -> Option<Value> {
    let usage = answer.usage?;
    let mut details = json!({"cached_tokens": usage.cached});
    if usage.cache_write > 0 {
        set(&mut details, "cache_write_tokens", json!(usage.cache_write));
    }
    Some(json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": details,
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }))
}
