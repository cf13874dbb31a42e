//! Gemini: `POST …:streamGenerateContent?alt=sse`, `…:generateContent`, `…:countTokens`.
//!
//! A stream consists of complete responses without event names; the last one has the
//! `finishReason`. A call is sent at once, so a gate inside a call waits before it. Thoughts are
//! not part of `candidatesTokenCount`. Ids of calls are optional: if a request has none, calls and
//! answers are paired by name and order.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{Answer, Content, data, set};
use crate::conversation::{Conversation, Entry, Role, Tool, content_text, items_at, text_at};
use crate::play::{Beat, Mark};
use crate::script::{ApiError, Stop};

pub(super) fn read(path: &str, body: &Value) -> Conversation {
    let path = path.split('?').next().unwrap_or_default();
    let last = path.rsplit('/').next().unwrap_or_default();
    let (model, method) = last.rsplit_once(':').unwrap_or((last, ""));
    let config = body.get("generationConfig").unwrap_or(&Value::Null);
    let mut conversation = Conversation {
        model: Some(model.to_owned()).filter(|model| !model.is_empty()),
        stream: method == "streamGenerateContent",
        wants_usage: true,
        instructions: body
            .pointer("/systemInstruction/parts")
            .map(content_text)
            .unwrap_or_default(),
        forced_tool: body
            .pointer("/toolConfig/functionCallingConfig/allowedFunctionNames/0")
            .and_then(Value::as_str)
            .map(str::to_owned),
        answer_schema: config
            .get("responseJsonSchema")
            .or_else(|| config.get("responseSchema"))
            .cloned(),
        answer_json: text_at(config, "responseMimeType") == "application/json",
        ..Conversation::default()
    };
    let mut calls = Ids::default();
    let mut answers = Ids::default();
    for content in items_at(body, "contents") {
        read_content(content, &mut calls, &mut answers, &mut conversation.entries);
    }
    for declaration in
        items_at(body, "tools").iter().flat_map(|tool| items_at(tool, "functionDeclarations"))
    {
        let schema =
            declaration.get("parametersJsonSchema").or_else(|| declaration.get("parameters"));
        conversation.tools.push(Tool {
            name: text_at(declaration, "name").to_owned(),
            schema: Some(schema.cloned().unwrap_or(json!({"type": "object"}))),
        });
    }
    conversation
}

/// Generates ids for calls, or for answers, that have none.
#[derive(Default)]
struct Ids(HashMap<String, usize>);

impl Ids {
    fn of(&mut self, part: &Value) -> String {
        let name = text_at(part, "name");
        if let Some(id) = part.get("id").and_then(Value::as_str) {
            return id.to_owned();
        }
        let count = self.0.entry(name.to_owned()).or_default();
        *count += 1;
        format!("{name}#{count}")
    }
}

fn read_content(content: &Value, calls: &mut Ids, answers: &mut Ids, entries: &mut Vec<Entry>) {
    let role = match text_at(content, "role") {
        "user" | "function" | "" => Role::User,
        "model" => Role::Model,
        other => Role::Unknown(other.to_owned()),
    };
    let parts = items_at(content, "parts");
    if parts.is_empty() {
        entries.push(Entry::Message { role, text: String::new() });
        return;
    }
    for part in parts {
        entries.push(if let Some(call) = part.get("functionCall") {
            Entry::Call { id: calls.of(call), name: text_at(call, "name").to_owned() }
        } else if let Some(answer) = part.get("functionResponse") {
            Entry::Answer { id: answers.of(answer), text: answer_text(answer) }
        } else if let (Some(text), None) = (part.get("text"), part.get("thought")) {
            Entry::Message { role: role.clone(), text: content_text(text) }
        } else {
            Entry::Other
        });
    }
}

fn answer_text(answer: &Value) -> String {
    let response = answer.get("response").unwrap_or(&Value::Null);
    ["output", "error"]
        .iter()
        .find_map(|field| response.get(field)?.as_str())
        .map_or_else(|| response.to_string(), str::to_owned)
}

pub(super) fn stream(answer: &Answer) -> Vec<Beat> {
    let chunk = |mark, part: Value| Beat::Event(mark, data(&response(answer, vec![part], None)));
    let mut beats = Vec::new();
    for block in &answer.blocks {
        match &block.content {
            Content::Text | Content::Gates => {
                beats.extend(block.beats(|delta| chunk(Mark::Text, json!({"text": delta}))));
            }
            Content::Reasoning => beats.extend(
                block.beats(|delta| chunk(Mark::Delta, json!({"text": delta, "thought": true}))),
            ),
            Content::Call(call) => {
                beats.extend(block.gates());
                beats.push(chunk(Mark::Delta, call_part(call)));
            }
        }
    }
    let last = response(answer, vec![json!({"text": ""})], Some(finish_reason(answer)));
    beats.push(Beat::Event(Mark::End, data(&last)));
    beats
}

pub(super) fn body(answer: &Answer) -> Value {
    let parts = answer.blocks.iter().filter_map(|block| match &block.content {
        Content::Gates => None,
        Content::Text => Some(json!({"text": block.text()})),
        Content::Reasoning => Some(json!({"text": block.text(), "thought": true})),
        Content::Call(call) => Some(call_part(call)),
    });
    response(answer, parts.collect(), Some(finish_reason(answer)))
}

pub(super) fn error(error: &ApiError) -> Value {
    let status = match error.status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        400..=499 => "INVALID_ARGUMENT",
        503 | 529 => "UNAVAILABLE",
        _ => "INTERNAL",
    };
    let mut body = json!({"code": error.status, "message": error.message, "status": status});
    if let Some(seconds) = error.retry_after {
        let kind = "type.googleapis.com/google.rpc.RetryInfo";
        set(&mut body, "details", json!([{"@type": kind, "retryDelay": format!("{seconds}s")}]));
    }
    json!({"error": body})
}

pub(super) fn token_count(tokens: usize) -> Value {
    json!({"totalTokens": tokens})
}

pub(super) fn models() -> Value {
    json!({"models": [{
        "name": "models/fake-model", "displayName": "fake-model",
        "inputTokenLimit": 1_000_000, "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent", "countTokens"],
    }]})
}

fn call_part(call: &super::SentCall) -> Value {
    let function = json!({"id": call.id, "name": call.name, "args": call.input});
    json!({"functionCall": function, "thoughtSignature": "ZmFrZS1tb2RlbA=="})
}

fn response(answer: &Answer, parts: Vec<Value>, finish: Option<&str>) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    if let Some(finish) = finish {
        set(&mut candidate, "finishReason", json!(finish));
    }
    json!({
        "candidates": [candidate], "usageMetadata": usage(answer), "modelVersion": answer.model,
        "responseId": format!("response-{}", answer.number),
    })
}

fn finish_reason(answer: &Answer) -> &'static str {
    match answer.stop {
        Stop::Done => "STOP",
        Stop::Length => "MAX_TOKENS",
        Stop::Refusal => "SAFETY",
    }
}

fn usage(answer: &Answer) -> Value {
    let usage = answer.usage;
    let mut counts = json!({
        "promptTokenCount": usage.input,
        "candidatesTokenCount": usage.output.saturating_sub(usage.reasoning),
        "totalTokenCount": usage.input + usage.output,
    });
    if usage.cached > 0 {
        set(&mut counts, "cachedContentTokenCount", json!(usage.cached));
    }
    if usage.reasoning > 0 {
        set(&mut counts, "thoughtsTokenCount", json!(usage.reasoning));
    }
    counts
}
