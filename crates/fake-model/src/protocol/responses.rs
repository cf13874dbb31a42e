//! OpenAI Responses: `POST …/responses`.
//!
//! A stream consists of named events with a running `sequence_number`: the response is created,
//! each item of its output is added, filled and done, and the response is completed (or incomplete,
//! or failed) with all of its output and the counts. A tool takes either JSON (`function_call`) or
//! free text (`custom_tool_call`).

use serde_json::{Value, json};

use super::{Answer, Block, Content, SentCall, named, set};
use crate::conversation::{Conversation, Entry, Role, Tool, content_text, items_at, text_at};
use crate::play::{Beat, Mark};
use crate::script::{ApiError, Stop};

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
    for block in &answer.blocks {
        if block.content == Content::Gates {
            writer.beats.extend(block.gates());
            continue;
        }
        let place = Place { index: output.len(), id: item_id(answer, output.len(), block) };
        let empty = item(block, &place.id, None);
        writer.event(
            Mark::Frame,
            "response.output_item.added",
            json!({"output_index": place.index, "item": empty}),
        );
        match &block.content {
            Content::Call(call) => writer.call(block, call, &place),
            Content::Reasoning => writer.reasoning(block, &place),
            Content::Text | Content::Gates => writer.text(block, &place),
        }
        let done = item(block, &place.id, Some(&block.text()));
        writer.event(
            Mark::Frame,
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
    let blocks = answer.blocks.iter().filter(|block| block.content != Content::Gates);
    let output: Vec<Value> = blocks
        .enumerate()
        .map(|(index, block)| item(block, &item_id(answer, index, block), Some(&block.text())))
        .collect();
    let status = if answer.stop == Stop::Done { "completed" } else { "incomplete" };
    response(answer, status, &output)
}

/// The error that replaces the end of a stream.
pub(super) fn error_event(error: &ApiError) -> String {
    let code = match error.status {
        429 => "rate_limit_exceeded",
        503 | 529 => "server_is_overloaded",
        400..=499 => "invalid_prompt",
        _ => "server_error",
    };
    let response = json!({
        "id": "resp_failed", "object": "response", "status": "failed", "output": [],
        "error": {"code": code, "message": error.message}, "usage": null,
    });
    named("response.failed", &json!({"type": "response.failed", "response": response}))
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
        self.deltas(block, Mark::Delta, &format!("{name}.delta"), &at);
        let mut done = at;
        set(&mut done, field, json!(block.text()));
        self.event(Mark::Frame, &format!("{name}.done"), done);
    }
}

fn item_id(answer: &Answer, index: usize, block: &Block) -> String {
    let kind = match &block.content {
        Content::Reasoning => "rs",
        Content::Text | Content::Gates => "msg",
        Content::Call(call) if call.free_text => "ctc",
        Content::Call(_) => "fc",
    };
    format!("{kind}_{}_{index}", answer.number)
}

/// An item of the output; without a text, it is the item as it is added.
fn item(block: &Block, id: &str, text: Option<&str>) -> Value {
    let filled = text.is_some();
    let text = text.unwrap_or_default();
    let status = if filled { "completed" } else { "in_progress" };
    match &block.content {
        Content::Reasoning => {
            let summary = if filled { json!([summary_part(text)]) } else { json!([]) };
            let hidden = if filled { json!("ZmFrZS1tb2RlbA==") } else { Value::Null };
            json!({"type": "reasoning", "id": id, "summary": summary, "encrypted_content": hidden})
        }
        Content::Text | Content::Gates => {
            let content = if filled { json!([text_part(text)]) } else { json!([]) };
            json!({
                "type": "message", "id": id, "role": "assistant", "status": status,
                "content": content,
            })
        }
        Content::Call(call) if call.free_text => json!({
            "type": "custom_tool_call", "id": id, "call_id": call.id, "name": call.name,
            "input": text, "status": status,
        }),
        Content::Call(call) => {
            // `namespace/tool` is a tool of a namespace, as Codex offers those of MCP servers.
            let (namespace, name) = match call.name.split_once('/') {
                Some((namespace, name)) => (Some(namespace), name),
                None => (None, &*call.name),
            };
            let mut item = json!({
                "type": "function_call", "id": id, "call_id": call.id, "name": name,
                "arguments": text, "status": status,
            });
            if let Some(namespace) = namespace {
                set(&mut item, "namespace", json!(namespace));
            }
            item
        }
    }
}

fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
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
    let usage = answer.usage;
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    })
}
