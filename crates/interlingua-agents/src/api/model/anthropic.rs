//! Anthropic's Messages API.

use std::borrow::Cow;

use interlingua::json::RepeatedRecord;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{
    AnswerEnd, Collected, Collector, Fields, ModelApi, OptionalField, Piece, RequestSettings,
    acceptable_id, body_of, mentions, raw, raw_arguments, result_id,
};
use crate::api::history::{Answer, AnswerCall, CallResult, Content, Item, Part};
use crate::api::model::ApiKind;

/// The version of the API.
const VERSION: &str = "2026-10-21";

/// The limit of tokens of an answer, which the API requires.
const DEFAULT_MAX_TOKENS: u64 = 32_000;

pub(super) struct Messages;

#[derive(Serialize)]
struct Body<'r> {
    model: &'r str,
    max_tokens: u64,
    stream: bool,
    system: Value,
    messages: &'r [Box<RawValue>],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<Value>,
}

impl ModelApi for Messages {
    fn path(&self, _model: &str) -> String {
        "/v1/messages".to_owned()
    }

    fn headers(&self, key: &str) -> Vec<(&'static str, String)> {
        let version = ("anthropic-version", VERSION.to_owned());
        if key.is_empty() { vec![version] } else { vec![version, ("x-api-key", key.to_owned())] }
    }

    fn messages(&self, item: &Item, before: Option<&Item>, model: &str) -> Vec<Box<RawValue>> {
        let message = match item {
            Item::User(parts) => json!({"role": "user", "content": content(parts)}),
            Item::Answer(answer) => match answer.native_for(ApiKind::Anthropic, model) {
                Some(native) => return native.to_vec(),
                None => match answer_content(answer) {
                    blocks if blocks.is_empty() => return Vec::new(),
                    blocks => json!({"role": "assistant", "content": blocks}),
                },
            },
            Item::Results(results) => {
                let id = |it| result_id(it, before, ApiKind::Anthropic, model);
                let blocks: Vec<_> = results.iter().map(|it| result(it, &id(it))).collect();
                json!({"role": "user", "content": blocks})
            }
        };
        raw(&message).into_iter().collect()
    }

    fn body(&self, messages: &[Box<RawValue>], settings: &RequestSettings<'_>) -> String {
        let tools = settings.tools.iter().map(|tool| {
            json!({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema})
        });
        // Without a summary, current models are silent between calls.
        let thinking = json!({"type": "adaptive", "display": "summarized"});
        body_of(&Body {
            model: settings.model,
            max_tokens: settings.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
            stream: true,
            system: json!([{"type": "text", "text": settings.system}]),
            messages,
            tools: tools.collect(),
            cache_control: settings
                .has(OptionalField::Caching)
                .then(|| json!({"type": "ephemeral"})),
            thinking: settings.has(OptionalField::Reasoning).then_some(thinking),
            output_config: settings.effort.map(|effort| json!({"effort": effort})),
        })
    }

    fn collector(&self, _number: u64) -> Box<dyn Collector> {
        Box::new(Blocks::default())
    }

    fn rejected_field(&self, message: &str) -> Option<OptionalField> {
        // A block of reasoning that does not fit its conversation is another problem.
        if mentions(message, &["thinking"]) && !mentions(message, &["signature", "block"]) {
            return Some(OptionalField::Reasoning);
        }
        mentions(message, &["cache_control"]).then_some(OptionalField::Caching)
    }
}

/// Parts as content blocks. The API rejects empty text.
fn content(parts: &[Part]) -> Vec<Value> {
    let blocks = parts.iter().filter_map(|part| match part {
        Part::Text(text) if text.trim().is_empty() => None,
        Part::Text(text) => Some(json!({"type": "text", "text": text})),
        Part::Image { media_type, data } => Some(json!({
            "type": "image",
            "source": {"type": "base64", "media_type": media_type, "data": data},
        })),
        Part::Document { media_type, data, name } => Some(json!({
            "type": "document",
            "title": name,
            "source": {"type": "base64", "media_type": media_type, "data": data},
        })),
    });
    let blocks: Vec<_> = blocks.collect();
    if blocks.is_empty() { vec![json!({"type": "text", "text": "(empty)"})] } else { blocks }
}

/// The answer of another model or API.
fn answer_content(answer: &Answer) -> Vec<Value> {
    let is_text = |content: &&Content| matches!(content, Content::Text(_));
    // Nothing may follow a call but another call.
    let texts = answer.content.iter().filter(is_text);
    let calls = answer.content.iter().filter(|content| !is_text(content));
    let blocks = texts.chain(calls).filter_map(|content| match content {
        Content::Text(text) if text.trim().is_empty() => None,
        Content::Text(text) => Some(json!({"type": "text", "text": text})),
        Content::Call(call) => Some(json!({
            "type": "tool_use",
            "id": acceptable_id(&call.id),
            "name": call.name,
            "input": call.input,
        })),
    });
    blocks.collect()
}

fn result(result: &CallResult, id: &str) -> Value {
    json!({
        "type": "tool_result",
        "tool_use_id": id,
        "content": content(&result.content),
        "is_error": result.is_error,
    })
}

/// An answer, as it is sent back.
#[derive(Serialize)]
struct NativeAnswer<'a> {
    role: &'static str,
    content: &'a [Fields],
}

/// The blocks of a response.
#[derive(Default)]
struct Blocks {
    blocks: Vec<Block>,
    stop_reason: Option<String>,
    /// A delta of text or reasoning of the block with this index.
    repeated: RepeatedRecord<Option<u64>>,
}

/// A block, whose streamed parts are apart until it is complete.
struct Block {
    index: u64,
    fields: Fields,
    streamed: String,
    input: Option<String>,
    citations: Vec<Box<RawValue>>,
    complete: bool,
}

impl Block {
    fn new(index: u64, fields: Fields, complete: bool) -> Self {
        let (streamed, input, citations) = (String::new(), None, Vec::new());
        Self { index, fields, streamed, input, citations, complete }
    }
}

impl Collector for Blocks {
    fn record(&mut self, _event: &str, record: &str) {
        if let Some((text, &index)) = self.repeated.read(record) {
            if let Some(block) = self.open(index) {
                block.streamed.push_str(text.body());
            }
            return;
        }
        let text = record;
        let Ok(record) = serde_json::from_str::<Record<'_>>(text) else { return };
        if let Some(piece) = record.only_text() {
            self.repeated.learn(text, piece, record.index);
        }
        match record.kind {
            "content_block_start" => self.start(record),
            "content_block_delta" => self.add(record),
            "content_block_stop" => {
                if let Some(block) = self.open(record.index) {
                    block.complete = true;
                }
            }
            "message_delta" => {
                let reason = record.delta.and_then(|delta| delta.stop_reason);
                self.stop_reason = reason.or(self.stop_reason.take());
            }
            "message" => self.take_whole(record),
            _ => {}
        }
    }

    fn answer(&mut self, end: AnswerEnd) -> Collected {
        let paused = self.stop_reason.as_deref() == Some("pause_turn");
        let given = std::mem::take(&mut self.blocks);
        if given.iter().all(Block::is_plain_text) {
            // They are sent back in the same form without a copy of them.
            let texts = given.into_iter().map(Block::into_text);
            let texts = texts.filter(|text| !text.trim().is_empty()).map(Content::Text);
            return Collected { paused, ..Collected::text(texts.collect()) };
        }
        let (mut blocks, mut content) = (Vec::new(), Vec::new());
        let last = given.len().saturating_sub(1);
        for (at, block) in given.into_iter().enumerate() {
            let is_cut = !block.complete || (end != AnswerEnd::Complete && at == last);
            if let Some((value, said)) = block.finish(is_cut) {
                content.extend(said);
                blocks.push(value);
            }
        }
        // The API rejects a message that ends with reasoning: what it led to was cut off.
        while blocks.last().is_some_and(is_reasoning) {
            blocks.pop();
        }
        let answer = Answer { content, native: None };
        let has_blocks = end != AnswerEnd::Cut && !blocks.is_empty();
        let message = NativeAnswer { role: "assistant", content: &blocks };
        let messages = raw(&message).filter(|_| has_blocks).into_iter().collect();
        Collected { answer, messages, paused }
    }
}

fn is_reasoning(block: &Fields) -> bool {
    matches!(block.text("type").as_deref(), Some("thinking" | "redacted_thinking"))
}

impl Blocks {
    fn start(&mut self, record: Record<'_>) {
        let index = record.index.unwrap_or(self.blocks.len() as u64);
        let block = record.content_block.map(RawValue::get).unwrap_or("{}");
        let fields = serde_json::from_str(block).unwrap_or_default();
        self.blocks.push(Block::new(index, fields, false));
    }

    fn open(&mut self, index: Option<u64>) -> Option<&mut Block> {
        let open = |block: &&mut Block| index.is_none_or(|index| block.index == index);
        self.blocks.iter_mut().rev().find(open)
    }

    fn add(&mut self, record: Record<'_>) {
        let (Some(delta), index) = (record.delta, record.index) else { return };
        let Some(block) = self.open(index) else { return };
        if let Some(piece) = delta.text.or(delta.thinking) {
            block.streamed.push_str(&piece.0);
        }
        if let Some(piece) = delta.partial_json {
            block.input.get_or_insert_default().push_str(&piece.0);
        }
        if let Some(signature) = delta.signature {
            block.fields.set("signature", &signature);
        }
        block.citations.extend(delta.citation.map(ToOwned::to_owned));
    }

    fn take_whole(&mut self, record: Record<'_>) {
        let content = record.content.map(RawValue::get).unwrap_or("[]");
        let blocks: Vec<Fields> = serde_json::from_str(content).unwrap_or_default();
        self.stop_reason = record.stop_reason;
        let blocks = (0..).zip(blocks);
        self.blocks = blocks.map(|(index, fields)| Block::new(index, fields, true)).collect();
    }
}

impl Block {
    /// Whether it has nothing but text.
    fn is_plain_text(&self) -> bool {
        self.fields.text("type").as_deref() == Some("text")
            && self.fields.get("text").is_some()
            && self.fields.len() == 2
            && self.citations.is_empty()
    }

    fn into_text(self) -> String {
        match self.fields.text("text") {
            Some(before) if !before.is_empty() => before + &*self.streamed,
            _ => self.streamed,
        }
    }

    /// The block as it is sent back, and its text or call; `None` if it cannot be sent back.
    fn finish(self, is_cut: bool) -> Option<(Fields, Option<Content>)> {
        let Self { mut fields, streamed, input, citations, .. } = self;
        if !citations.is_empty() {
            let before = fields.get("citations").map(RawValue::get).unwrap_or("[]");
            let mut all: Vec<Box<RawValue>> = serde_json::from_str(before).unwrap_or_default();
            all.extend(citations);
            fields.set("citations", &all);
        }
        let kind = fields.text("type").unwrap_or_default();
        let mut append = |name: &str| {
            let text = fields.text(name).unwrap_or_default() + &*streamed;
            fields.set(name, &text);
            text
        };
        match &*kind {
            "text" => {
                let text = append("text");
                // The API returns empty text, and rejects it.
                if text.trim().is_empty() {
                    return None;
                }
                Some((fields, Some(Content::Text(text))))
            }
            "thinking" => {
                append("thinking");
                // Without its signature, it is not accepted.
                let signed = fields.get("signature").is_some_and(|it| it.get() != "\"\"");
                (signed && !is_cut).then_some((fields, None))
            }
            "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                if is_cut {
                    return None;
                }
                let mut malformed = false;
                if let Some(text) = input.filter(|text| !text.trim().is_empty()) {
                    match raw_arguments(&text) {
                        Some(input) => fields.set("input", &input),
                        None => {
                            fields.set("input", &json!({}));
                            malformed = true;
                        }
                    }
                }
                let input = fields.get("input").and_then(|it| serde_json::from_str(it.get()).ok());
                let call = AnswerCall {
                    id: fields.text("id").unwrap_or_default(),
                    unnamed: false,
                    name: fields.text("name").unwrap_or_default(),
                    input: input.unwrap_or_else(|| json!({})),
                    malformed,
                };
                let call = (kind == "tool_use").then_some(Content::Call(call));
                Some((fields, call))
            }
            _ if is_cut => None,
            _ => Some((fields, None)),
        }
    }
}

#[derive(serde::Deserialize)]
struct Record<'r> {
    #[serde(rename = "type", default)]
    kind: &'r str,
    index: Option<u64>,
    #[serde(borrow)]
    content_block: Option<&'r RawValue>,
    delta: Option<Delta<'r>>,
    #[serde(borrow)]
    content: Option<&'r RawValue>,
    stop_reason: Option<String>,
}

impl<'r> Record<'r> {
    /// The text of a delta that contains nothing else, if it has no escapes.
    fn only_text(&self) -> Option<&'r str> {
        match (self.kind, &self.delta) {
            (
                "content_block_delta",
                Some(
                    Delta {
                        text: Some(Piece(Cow::Borrowed(text))),
                        thinking: None,
                        partial_json: None,
                        signature: None,
                        citation: None,
                        ..
                    }
                    | Delta {
                        text: None,
                        thinking: Some(Piece(Cow::Borrowed(text))),
                        partial_json: None,
                        signature: None,
                        citation: None,
                        ..
                    },
                ),
            ) => Some(text),
            _ => None,
        }
    }
}

#[derive(serde::Deserialize)]
struct Delta<'r> {
    #[serde(borrow)]
    text: Option<Piece<'r>>,
    #[serde(borrow)]
    thinking: Option<Piece<'r>>,
    #[serde(borrow)]
    partial_json: Option<Piece<'r>>,
    signature: Option<String>,
    #[serde(borrow)]
    citation: Option<&'r RawValue>,
    stop_reason: Option<String>,
}
