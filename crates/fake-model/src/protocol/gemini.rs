//! Gemini: `POST …:streamGenerateContent?alt=sse`, `…:generateContent`, `…:countTokens`.
//!
//! A stream consists of complete responses without event names; the last one has the
//! `finishReason`. A call is sent at once, so a gate inside a call waits before it. Thoughts are
//! not part of `candidatesTokenCount`. Ids of calls are optional: if a request has none, calls and
//! answers are paired by name and order. The first call of an answer, or its last text part, has a
//! signature, which must come back on the same part.

use std::cell::Cell;
use std::collections::HashMap;

use serde_json::{Value, json};

use super::{Answer, Block, Content, SentCall, data, set};
use crate::conversation::{Conversation, Entry, Role, Tool, content_text, items_at, text_at};
use crate::play::{Beat, Mark};
use crate::script::{ApiError, SignaturePlace, Stop};

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
    if let Some(blocked) = blocked(answer) {
        return vec![Beat::Event(Mark::End, data(&blocked))];
    }
    let (sent, total) = (Cell::new(0), events(answer));
    let event = |mark, candidate: Value| {
        sent.set(sent.get() + 1);
        let counted =
            if mark == Mark::End { Counted::ALL } else { Counted { sent: sent.get(), total } };
        Beat::Event(mark, data(&response(answer, candidate, counted)))
    };
    let chunk =
        |mark, part: Value| event(mark, json!({"content": {"role": "model", "parts": [part]}}));
    let checkpoints =
        answer.blocks.iter().filter(|block| matches!(block.content, Content::Checkpoint(_)));
    let (mut left, mut beats) = (checkpoints.count(), Vec::new());
    for block in &answer.blocks {
        match &block.content {
            Content::Text => {
                let mut parts = text_parts(answer, block).into_iter();
                beats.extend(
                    block.beats(|_| chunk(Mark::Text, parts.next().unwrap_or(json!({"text": ""})))),
                );
            }
            Content::Reasoning => beats.extend(
                block.beats(|delta| chunk(Mark::Delta, json!({"text": delta, "thought": true}))),
            ),
            Content::Call(call) => {
                beats.extend(block.gates());
                if !call.sending.truncated {
                    beats.push(chunk(Mark::Call, call_part(answer, block, call)));
                }
            }
            Content::Checkpoint(token) => {
                left -= 1;
                let mut candidate = json!({"continuationToken": token});
                if left == 0 && answer.continued {
                    set(&mut candidate, "finishReason", json!("CONTINUATION"));
                    beats.push(event(Mark::End, candidate));
                    return beats;
                }
                beats.push(event(Mark::Checkpoint, candidate));
            }
            Content::Gates | Content::Refusal | Content::Redacted => beats.extend(block.gates()),
        }
    }
    beats.push(event(Mark::End, last_candidate(answer)));
    beats
}

/// The number of events of a stream.
fn events(answer: &Answer) -> u64 {
    let of_block = |block: &Block| match &block.content {
        Content::Text | Content::Reasoning => block.deltas().count() as u64,
        Content::Call(call) => u64::from(!call.sending.truncated),
        Content::Checkpoint(_) => 1,
        Content::Gates | Content::Refusal | Content::Redacted => 0,
    };
    answer.blocks.iter().map(of_block).sum::<u64>() + 1
}

/// How much of an answer is counted. The counts in a stream are a running total.
#[derive(Clone, Copy)]
struct Counted {
    sent: u64,
    total: u64,
}

impl Counted {
    const ALL: Self = Self { sent: 1, total: 1 };

    /// The part of a count.
    fn of(self, tokens: u64) -> u64 {
        tokens * self.sent / self.total
    }
}

pub(super) fn body(answer: &Answer) -> Value {
    if let Some(blocked) = blocked(answer) {
        return blocked;
    }
    let mut parts = Vec::new();
    for block in &answer.blocks {
        match &block.content {
            Content::Text => parts.push(whole_text(answer, block)),
            Content::Reasoning => parts.push(json!({"text": block.text(), "thought": true})),
            Content::Call(call) if !call.sending.truncated => {
                parts.push(call_part(answer, block, call));
            }
            _ => {}
        }
    }
    let mut candidate = last_candidate(answer);
    if at_end(answer) {
        parts.push(last_part(answer));
    }
    if !answer.forms.gemini.without_last_content {
        set(&mut candidate, "content", json!({"role": "model", "parts": parts}));
    }
    response(answer, candidate, Counted::ALL)
}

/// The parts of an answer without its thoughts, as they must come back.
pub(super) fn parts_to_return(answer: &Answer, streamed: bool) -> Vec<Value> {
    let mut parts = Vec::new();
    for block in &answer.blocks {
        match &block.content {
            Content::Text if !streamed => parts.push(whole_text(answer, block)),
            Content::Text => parts.extend(text_parts(answer, block)),
            Content::Call(call) if !call.sending.truncated => {
                parts.push(call_part(answer, block, call));
            }
            _ => {}
        }
    }
    if at_end(answer) {
        parts.push(last_part(answer));
    }
    parts
}

fn whole_text(answer: &Answer, block: &Block) -> Value {
    let mut part = json!({"text": block.text()});
    if !at_end(answer) {
        sign(&mut part, block);
    }
    part
}

/// The deltas of a text as parts, the last one with the signature of the block.
fn text_parts(answer: &Answer, block: &Block) -> Vec<Value> {
    let mut parts: Vec<Value> = block.deltas().map(|delta| json!({"text": delta})).collect();
    if let Some(last) = parts.last_mut().filter(|_| !at_end(answer)) {
        sign(last, block);
    }
    parts
}

/// Whether the signature of the text is on an empty part at the end.
fn at_end(answer: &Answer) -> bool {
    answer.forms.gemini.signature == SignaturePlace::EmptyPart && !answer.has_calls()
}

fn sign(part: &mut Value, block: &Block) {
    if let Some(signature) = &block.signature {
        set(part, "thoughtSignature", json!(signature));
    }
}

fn last_part(answer: &Answer) -> Value {
    let mut part = json!({"text": ""});
    let mut texts = answer.blocks.iter().rev().filter(|block| block.content == Content::Text);
    if let Some(block) = texts.next().filter(|_| at_end(answer)) {
        sign(&mut part, block);
    }
    part
}

/// The candidate that states why the model stopped.
fn last_candidate(answer: &Answer) -> Value {
    let form = &answer.forms.gemini;
    let mut candidate = json!({"finishReason": finish_reason(answer)});
    if !form.without_last_content {
        let content = json!({"role": "model", "parts": [last_part(answer)]});
        set(&mut candidate, "content", content);
    }
    if let Some(message) = form.finish_message.clone().or_else(|| answer.refusal()) {
        set(&mut candidate, "finishMessage", json!(message));
    }
    candidate
}

fn blocked(answer: &Answer) -> Option<Value> {
    let reason = answer.forms.gemini.block_reason.as_ref()?;
    let mut response = response(answer, Value::Null, Counted::ALL);
    set(&mut response, "promptFeedback", json!({"blockReason": reason}));
    Some(response)
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

fn call_part(answer: &Answer, block: &Block, call: &SentCall) -> Value {
    let mut function = json!({"name": call.name, "args": call.input_object()});
    if !answer.forms.gemini.without_call_ids {
        set(&mut function, "id", json!(call.id));
    }
    let mut part = json!({"functionCall": function});
    sign(&mut part, block);
    part
}

/// A response with a candidate, unless it is null.
fn response(answer: &Answer, mut candidate: Value, counted: Counted) -> Value {
    let mut response = json!({
        "modelVersion": answer.model, "responseId": format!("response-{}", answer.number),
    });
    if !candidate.is_null() {
        set(&mut candidate, "index", json!(0));
        set(&mut response, "candidates", json!([candidate]));
    }
    if let Some(usage) = usage(answer, counted) {
        set(&mut response, "usageMetadata", usage);
    }
    response
}

fn finish_reason(answer: &Answer) -> &str {
    if let Some(reason) = &answer.forms.gemini.finish_reason {
        return reason;
    }
    match answer.stop {
        Stop::Done if answer.refusal().is_some() => "SAFETY",
        Stop::Done => "STOP",
        Stop::Length => "MAX_TOKENS",
        Stop::Refusal => "SAFETY",
    }
}

fn usage(answer: &Answer, counted: Counted) -> Option<Value> {
    let usage = answer.usage?;
    let candidates = counted.of(usage.output.saturating_sub(usage.reasoning));
    let thoughts = counted.of(usage.reasoning);
    let mut counts = json!({
        "promptTokenCount": usage.input,
        "candidatesTokenCount": candidates,
        "totalTokenCount": usage.input + candidates + thoughts,
    });
    if usage.cached > 0 {
        set(&mut counts, "cachedContentTokenCount", json!(usage.cached));
    }
    if thoughts > 0 {
        set(&mut counts, "thoughtsTokenCount", json!(thoughts));
    }
    Some(counts)
}
