//! OpenAI Responses: `POST …/responses`.
//!
//! A stream consists of named events with a running `sequence_number`: the response is created,
//! each item of its output is added, filled and done, and the response is completed (or incomplete,
//! or failed) with all of its output and the counts. A tool takes either JSON (`function_call`) or
//! free text (`custom_tool_call`).

use serde_json::{Value, json};

use super::{Answer, Block, Content, ErrorAnswer, SentCall, named, set};
use crate::conversation::{Conversation, Entry, Role, Tool, content_text, items_at, text_at};
use crate::play::{Beat, Mark, first_half};
use crate::script::{ErrorEvent, Stop};

pub(super) fn read(body: &Value) -> Conversation {
    let choice = body.get("tool_choice").unwrap_or(&Value::Null);
    let format = body.pointer("/text/format").unwrap_or(&Value::Null);
    let mut conversation = Conversation {
        model: body.get("model").and_then(Value::as_str).map(str::to_owned),
        stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        wants_usage: true,
        instructions: text_at(body, "instructions").to_owned(),
        forced_tool: choice.get("name").and_then(Value::as_str).map(str::to_owned),
        answer_schema: format.get("schema").cloned(),
        answer_json: text_at(format, "type").starts_with("json"),
        ..Conversation::default()
    };
    if let Some(text) = body.get("input").and_then(Value::as_str) {
        conversation.entries.push(Entry::Message { role: Role::User, text: text.to_owned() });
    }
    conversation.entries.extend(items_at(body, "input").iter().map(read_item));
    conversation.tools = items_at(body, "tools").iter().filter_map(read_tool).collect();
    conversation
}

fn read_item(item: &Value) -> Entry {
    match text_at(item, "type") {
        "message" | "" => Entry::Message {
            role: match text_at(item, "role") {
                "system" | "developer" => Role::System,
                "user" => Role::User,
                "assistant" => Role::Model,
                other => Role::Unknown(other.to_owned()),
            },
            text: content_text(item.get("content").unwrap_or(&Value::Null)),
        },
        "function_call" | "custom_tool_call" => Entry::Call {
            id: text_at(item, "call_id").to_owned(),
            name: text_at(item, "name").to_owned(),
        },
        "function_call_output" | "custom_tool_call_output" => Entry::Answer {
            id: text_at(item, "call_id").to_owned(),
            text: content_text(item.get("output").unwrap_or(&Value::Null)),
        },
        _ => Entry::Other,
    }
}

fn read_tool(tool: &Value) -> Option<Tool> {
    let name = text_at(tool, "name").to_owned();
    match text_at(tool, "type") {
        "function" => {
            let schema = tool.get("parameters").cloned().unwrap_or(json!({"type": "object"}));
            Some(Tool { name, schema: Some(schema) })
        }
        "custom" => Some(Tool { name, schema: None }),
        _ => None,
    }
}

pub(super) fn stream(answer: &Answer) -> Vec<Beat> {
    let mut writer = Writer::default();
    let start = response(answer, "in_progress", &[]);
    writer.event(Mark::Frame, "response.created", json!({"response": start}));
    writer.event(Mark::Frame, "response.in_progress", json!({"response": start}));
    let mut output = Vec::new();
    for (position, block) in answer.blocks.iter().enumerate() {
        if !is_item(block) {
            writer.beats.extend(block.gates());
            continue;
        }
        let place = Place { index: output.len(), id: item_id(answer, output.len(), block) };
        let shape = Shape { answer, position, block, id: &place.id };
        writer.event(
            Mark::Frame,
            "response.output_item.added",
            json!({"output_index": place.index, "item": shape.item(None)}),
        );
        match &block.content {
            Content::Call(call) => writer.call(block, call, &place),
            Content::Reasoning => writer.reasoning(block, &place),
            Content::Refusal => writer.refusal(block, &place),
            Content::Redacted => {}
            _ => writer.text(block, &place),
        }
        let done = shape.item(Some(&block.text()));
        let mark =
            if matches!(block.content, Content::Call(_)) { Mark::CallEnd } else { Mark::Frame };
        writer.event(
            mark,
            "response.output_item.done",
            json!({"output_index": place.index, "item": done}),
        );
        output.push(done);
    }
    let (status, name) = match answer.stop {
        Stop::Done => ("completed", "response.completed"),
        Stop::Length | Stop::Refusal => ("incomplete", "response.incomplete"),
    };
    let end = response(answer, status, &output);
    writer.event(Mark::End, name, json!({"response": end}));
    writer.beats
}

pub(super) fn body(answer: &Answer) -> Value {
    let blocks = answer.blocks.iter().enumerate().filter(|(_, block)| is_item(block));
    let output: Vec<Value> = blocks
        .enumerate()
        .map(|(index, (position, block))| {
            let id = item_id(answer, index, block);
            Shape { answer, position, block, id: &id }.item(Some(&block.text()))
        })
        .collect();
    let status = if answer.stop == Stop::Done { "completed" } else { "incomplete" };
    response(answer, status, &output)
}

fn is_item(block: &Block) -> bool {
    !matches!(block.content, Content::Gates | Content::Checkpoint(_))
}

/// The error that replaces the end of a stream.
pub(super) fn error_event(error: &ErrorAnswer, form: ErrorEvent) -> String {
    let given = error.body.get("error").unwrap_or(&Value::Null);
    let message = given.get("message").unwrap_or(&Value::Null);
    let code = match (given.get("code").and_then(Value::as_str), error.status) {
        (Some(code), _) => code,
        (None, 429) => "rate_limit_exceeded",
        (None, 503 | 529) => "server_is_overloaded",
        (None, 400..=499) => "invalid_prompt",
        (None, _) => "server_error",
    };
    let fields = match form {
        ErrorEvent::Flat => json!({
            "type": "error", "code": code, "message": message, "param": null, "sequence_number": 0,
        }),
        ErrorEvent::Nested => json!({"type": "error", "error": given, "sequence_number": 0}),
        ErrorEvent::Failed => json!({"type": "response.failed", "response": {
            "id": "resp_failed", "object": "response", "status": "failed", "output": [],
            "error": {"code": code, "message": message}, "usage": null,
        }}),
    };
    named(text_at(&fields, "type"), &fields)
}

/// The position of an item in the output.
struct Place {
    index: usize,
    id: String,
}

/// Writes events and numbers them.
#[derive(Default)]
struct Writer {
    beats: Vec<Beat>,
    /// The number of the next event.
    number: usize,
}

impl Writer {
    fn event(&mut self, mark: Mark, name: &str, mut fields: Value) {
        set(&mut fields, "type", json!(name));
        set(&mut fields, "sequence_number", json!(self.number));
        self.number += 1;
        self.beats.push(Beat::Event(mark, named(name, &fields)));
    }

    /// Writes the deltas of a block as events of one name.
    fn deltas(&mut self, block: &Block, mark: Mark, name: &str, fields: &Value) {
        let beats = block.beats(|delta| {
            let mut fields = fields.clone();
            set(&mut fields, "type", json!(name));
            set(&mut fields, "sequence_number", json!(self.number));
            set(&mut fields, "delta", json!(delta));
            self.number += 1;
            Beat::Event(mark, named(name, &fields))
        });
        self.beats.extend(beats);
    }

    fn text(&mut self, block: &Block, place: &Place) {
        let at = json!({"item_id": place.id, "output_index": place.index, "content_index": 0});
        let with = |field: &str, value: Value| {
            let mut fields = at.clone();
            set(&mut fields, field, value);
            fields
        };
        let text = block.text();
        let name = |end: &str| format!("response.{end}");
        self.event(Mark::Frame, &name("content_part.added"), with("part", text_part("")));
        let mut delta = at.clone();
        set(&mut delta, "logprobs", json!([]));
        self.deltas(block, Mark::Text, &name("output_text.delta"), &delta);
        self.event(Mark::Frame, &name("output_text.done"), with("text", json!(text)));
        self.event(Mark::Frame, &name("content_part.done"), with("part", text_part(&text)));
    }

    fn refusal(&mut self, block: &Block, place: &Place) {
        let at = json!({"item_id": place.id, "output_index": place.index, "content_index": 0});
        let with = |field: &str, value: Value| {
            let mut fields = at.clone();
            set(&mut fields, field, value);
            fields
        };
        let text = block.text();
        let name = |end: &str| format!("response.{end}");
        self.event(Mark::Frame, &name("content_part.added"), with("part", refusal_part("")));
        self.deltas(block, Mark::Text, &name("refusal.delta"), &at);
        self.event(Mark::Frame, &name("refusal.done"), with("refusal", json!(text)));
        self.event(Mark::Frame, &name("content_part.done"), with("part", refusal_part(&text)));
    }

    fn reasoning(&mut self, block: &Block, place: &Place) {
        let at = json!({"item_id": place.id, "output_index": place.index, "summary_index": 0});
        let with = |field: &str, value: Value| {
            let mut fields = at.clone();
            set(&mut fields, field, value);
            fields
        };
        let text = block.text();
        let name = |end: &str| format!("response.reasoning_summary_{end}");
        self.event(Mark::Frame, &name("part.added"), with("part", summary_part("")));
        self.deltas(block, Mark::Delta, &name("text.delta"), &at);
        self.event(Mark::Frame, &name("text.done"), with("text", json!(text)));
        self.event(Mark::Frame, &name("part.done"), with("part", summary_part(&text)));
    }

    fn call(&mut self, block: &Block, call: &SentCall, place: &Place) {
        let (name, field) = if call.free_text {
            ("response.custom_tool_call_input", "input")
        } else {
            ("response.function_call_arguments", "arguments")
        };
        let at = json!({"item_id": place.id, "output_index": place.index});
        self.deltas(block, Mark::Call, &format!("{name}.delta"), &at);
        let mut done = at;
        set(&mut done, field, json!(block.text()));
        self.event(Mark::Frame, &format!("{name}.done"), done);
    }
}

fn item_id(answer: &Answer, index: usize, block: &Block) -> String {
    let kind = match &block.content {
        Content::Reasoning | Content::Redacted => "rs",
        Content::Call(call) if call.free_text => "ctc",
        Content::Call(_) => "fc",
        _ => "msg",
    };
    format!("{kind}_{}_{index}", answer.number)
}

/// Writes a block as an item of the output.
struct Shape<'a> {
    answer: &'a Answer,
    /// The place of the block in the answer.
    position: usize,
    block: &'a Block,
    id: &'a str,
}

impl Shape<'_> {
    /// The item with a text; without one, the item as it is added.
    fn item(&self, text: Option<&str>) -> Value {
        let (id, filled) = (self.id, text.is_some());
        let text = text.unwrap_or_default();
        let status = if filled { "completed" } else { "in_progress" };
        match &self.block.content {
            Content::Reasoning | Content::Redacted => self.reasoning(text, filled),
            Content::Call(call) => self.call(call, text, status),
            content => {
                let part = match content {
                    Content::Refusal => refusal_part(text),
                    _ => text_part(text),
                };
                let content = if filled { json!([part]) } else { json!([]) };
                let mut item = json!({
                    "type": "message", "id": id, "role": "assistant", "status": status,
                    "content": content,
                });
                if self.answer.forms.responses.phases {
                    set(&mut item, "phase", json!(self.phase()));
                }
                item
            }
        }
    }

    /// A reasoning item. When it is added, its encrypted content is not complete yet.
    fn reasoning(&self, text: &str, filled: bool) -> Value {
        let shown = filled && self.block.content == Content::Reasoning;
        let summary = if shown { json!([summary_part(text)]) } else { json!([]) };
        let hidden = self.block.signature.as_deref().unwrap_or_default();
        let hidden = if filled { hidden } else { first_half(hidden) };
        json!({
            "type": "reasoning", "id": self.id, "summary": summary, "encrypted_content": hidden,
        })
    }

    fn call(&self, call: &SentCall, text: &str, status: &str) -> Value {
        let truncated = call.sending.truncated && status == "completed";
        let status = if truncated { "incomplete" } else { status };
        if call.free_text {
            return json!({
                "type": "custom_tool_call", "id": self.id, "call_id": call.id, "name": call.name,
                "input": text, "status": status,
            });
        }
        // `namespace/tool` is a tool of a namespace, as Codex offers those of MCP servers.
        let (namespace, name) = match call.name.split_once('/') {
            Some((namespace, name)) => (Some(namespace), name),
            None => (None, &*call.name),
        };
        let mut item = json!({
            "type": "function_call", "id": self.id, "call_id": call.id, "name": name,
            "arguments": text, "status": status,
        });
        if let Some(namespace) = namespace {
            set(&mut item, "namespace", json!(namespace));
        }
        item
    }

    /// Whether a message accompanies calls or is the answer.
    fn phase(&self) -> &'static str {
        let mut rest = self.answer.blocks.iter().skip(self.position);
        if rest.any(|block| matches!(block.content, Content::Call(_))) {
            "commentary"
        } else {
            "final_answer"
        }
    }
}

fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn refusal_part(text: &str) -> Value {
    json!({"type": "refusal", "refusal": text})
}

fn summary_part(text: &str) -> Value {
    json!({"type": "summary_text", "text": text})
}

fn response(answer: &Answer, status: &str, output: &[Value]) -> Value {
    let reason = match (status, answer.stop) {
        ("incomplete", Stop::Refusal) => json!({"reason": "content_filter"}),
        ("incomplete", _) => json!({"reason": "max_output_tokens"}),
        _ => Value::Null,
    };
    let usage = if status == "in_progress" { Value::Null } else { usage(answer) };
    json!({
        "id": format!("resp_{:04}", answer.number), "object": "response",
        "created_at": 1_700_000_000, "status": status, "error": null,
        "incomplete_details": reason, "model": answer.model, "output": output, "usage": usage,
    })
}

fn usage(answer: &Answer) -> Value {
    let Some(usage) = answer.usage else { return Value::Null };
    let mut details = json!({"cached_tokens": usage.cached});
    if usage.cache_write > 0 {
        set(&mut details, "cache_write_tokens", json!(usage.cache_write));
    }
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": details,
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    })
}
