//! OpenAI's Responses API, without storage at the provider.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{
    AnswerEnd, ApiKind, Collected, Collector, ModelApi, OptionalField, RequestSettings,
    acceptable_id, body_of, data_url, input, mentions, raw, result_id, set,
};
use crate::api::history::{Answer, AnswerCall, CallResult, Content, Item, Part, text_of};

pub(super) struct Responses;

#[derive(Serialize)]
struct Body<'r> {
    model: &'r str,
    instructions: &'r str,
    input: &'r [Box<RawValue>],
    stream: bool,
    store: bool,
    include: [&'static str; 1],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
}

impl ModelApi for Responses {
    fn path(&self, _model: &str) -> String {
        "/responses".to_owned()
    }

    fn headers(&self, key: &str) -> Vec<(&'static str, String)> {
        super::chat::bearer(key)
    }

    fn messages(&self, item: &Item, before: Option<&Item>, model: &str) -> Vec<Box<RawValue>> {
        match item {
            Item::User(parts) => {
                let message = json!({"type": "message", "role": "user", "content": content(parts)});
                raw(&message).into_iter().collect()
            }
            Item::Answer(answer) => match answer.native_for(ApiKind::Responses, model) {
                Some(native) => native.to_vec(),
                None => {
                    answer.content.iter().filter_map(foreign).filter_map(|it| raw(&it)).collect()
                }
            },
            Item::Results(results) => {
                let id = |it| result_id(it, before, ApiKind::Responses, model);
                results.iter().filter_map(|it| raw(&output(it, &id(it)))).collect()
            }
        }
    }

    fn body(&self, messages: &[Box<RawValue>], settings: &RequestSettings<'_>) -> String {
        let tools = settings.tools.iter().map(|tool| {
            json!({
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.input_schema,
                "strict": false,
            })
        });
        let mut reasoning = json!({"summary": "auto"});
        if let Some(effort) = settings.effort {
            set(&mut reasoning, "effort", effort);
        }
        let padding = json!({"include_obfuscation": false});
        body_of(&Body {
            model: settings.model,
            instructions: settings.system,
            input: messages,
            stream: true,
            store: false,
            include: ["reasoning.encrypted_content"],
            tools: tools.collect(),
            max_output_tokens: settings.max_tokens,
            reasoning: settings.has(OptionalField::Reasoning).then_some(reasoning),
            prompt_cache_key: Some(settings.session)
                .filter(|_| settings.has(OptionalField::Caching)),
            stream_options: settings.has(OptionalField::StreamOptions).then_some(padding),
        })
    }

    fn collector(&self, _number: u64) -> Box<dyn Collector> {
        Box::new(Items::default())
    }

    fn rejected_field(&self, message: &str) -> Option<OptionalField> {
        let fields = [
            (&["stream_options", "include_obfuscation"][..], OptionalField::StreamOptions),
            (&["prompt_cache_key"], OptionalField::Caching),
            (&["reasoning.summary", "reasoning.effort", "'reasoning'"], OptionalField::Reasoning),
        ];
        fields.into_iter().find(|(names, _)| mentions(message, names)).map(|(_, field)| field)
    }
}

fn content(parts: &[Part]) -> Vec<Value> {
    let parts = parts.iter().map(|part| match part {
        Part::Text(text) => json!({"type": "input_text", "text": text}),
        Part::Image { media_type, data } => {
            json!({"type": "input_image", "detail": "auto", "image_url": data_url(media_type, data)})
        }
        Part::Document { media_type, data, name } => {
            json!({"type": "input_file", "filename": name, "file_data": data_url(media_type, data)})
        }
    });
    parts.collect()
}

/// A piece of the answer of another model or API.
fn foreign(content: &Content) -> Option<Value> {
    match content {
        Content::Text(text) if text.is_empty() => None,
        Content::Text(text) => {
            Some(json!({"type": "message", "role": "assistant", "content": text}))
        }
        Content::Call(call) => Some(json!({
            "type": "function_call",
            "call_id": acceptable_id(&call.id),
            "name": call.name,
            "arguments": call.input.to_string(),
        })),
    }
}

fn output(result: &CallResult, id: &str) -> Value {
    let has_files = result.content.iter().any(|part| !matches!(part, Part::Text(_)));
    let output = if has_files {
        content(&result.content).into()
    } else {
        Value::from(text_of(&result.content))
    };
    json!({"type": "function_call_output", "call_id": id, "output": output})
}

/// The items of a response.
#[derive(Default)]
struct Items {
    /// The complete items, as the provider wrote them, by their positions.
    done: Vec<(u64, Box<RawValue>)>,
    /// The text of the message that is not complete.
    partial: String,
}

#[derive(serde::Deserialize)]
struct Record<'r> {
    #[serde(rename = "type", default)]
    kind: &'r str,
    output_index: Option<u64>,
    item: Option<Box<RawValue>>,
    delta: Option<String>,
    response: Option<Response>,
    output: Option<Vec<Box<RawValue>>>,
}

#[derive(serde::Deserialize)]
struct Response {
    #[serde(default)]
    output: Vec<Box<RawValue>>,
}

#[derive(serde::Deserialize)]
struct ItemFields {
    #[serde(rename = "type", default)]
    kind: String,
    status: Option<String>,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    #[serde(default)]
    content: Vec<ContentPart>,
}

/// What decides whether reasoning is sent back.
#[derive(serde::Deserialize)]
struct Reasoning {
    #[serde(rename = "type", default)]
    kind: String,
    encrypted_content: Option<String>,
}

#[derive(serde::Deserialize)]
struct ContentPart {
    text: Option<String>,
    refusal: Option<String>,
}

impl Collector for Items {
    fn record(&mut self, event: &str, record: &str) {
        let Ok(record) = serde_json::from_str::<Record<'_>>(record) else { return };
        match if record.kind.is_empty() { event } else { record.kind } {
            "response.output_text.delta" => {
                self.partial.push_str(record.delta.as_deref().unwrap_or_default());
            }
            "response.output_item.done" => {
                if let Some(item) = record.item {
                    let at = record.output_index.unwrap_or(self.done.len() as u64);
                    self.done.push((at, item));
                    self.partial.clear();
                }
            }
            "response.completed" | "response.incomplete" | "response.done" => {
                let output = record.response.map(|response| response.output).unwrap_or_default();
                self.take_whole(output);
            }
            // A response that was not streamed.
            "" => self.take_whole(record.output.unwrap_or_default()),
            _ => {}
        }
    }

    fn answer(&mut self, end: AnswerEnd) -> Collected {
        self.done.sort_by_key(|(at, _)| *at);
        let mut answer = Answer::default();
        let mut messages = Vec::new();
        for (_, item) in std::mem::take(&mut self.done) {
            if let Some(Kept { item, content, is_rewritten }) = kept(item) {
                answer.content.extend(content);
                if is_rewritten {
                    drop_last_reasoning(&mut messages);
                }
                messages.push(item);
            }
        }
        drop_last_reasoning(&mut messages);
        if !self.partial.is_empty() {
            answer.content.push(Content::Text(std::mem::take(&mut self.partial)));
        }
        let messages = if end == AnswerEnd::Cut { Vec::new() } else { messages };
        Collected { answer, messages, ..Collected::default() }
    }
}

impl Items {
    /// The last event repeats all items. Some compatible servers leave them out there, or the
    /// encrypted content of reasoning.
    fn take_whole(&mut self, output: Vec<Box<RawValue>>) {
        if !output.is_empty() {
            let before = std::mem::take(&mut self.done);
            let item = |(at, item): (u64, Box<RawValue>)| match before
                .iter()
                .find(|(known, _)| *known == at)
            {
                Some((_, known))
                    if kind_of(known) == "reasoning"
                        && can_be_sent_back(known)
                        && !can_be_sent_back(&item) =>
                {
                    (at, known.clone())
                }
                _ => (at, item),
            };
            self.done = (0..).zip(output).map(item).collect();
            self.partial.clear();
        }
    }
}

/// Reasoning has to be followed by what it led to, as the provider wrote it.
fn drop_last_reasoning(messages: &mut Vec<Box<RawValue>>) {
    while messages.last().is_some_and(|item| kind_of(item) == "reasoning") {
        messages.pop();
    }
}

/// Whether an item is no reasoning, or reasoning with its encrypted content. Without it, the provider
/// would look for what it has stored, and nothing is.
fn can_be_sent_back(item: &RawValue) -> bool {
    let Ok(fields) = serde_json::from_str::<Reasoning>(item.get()) else { return true };
    fields.kind != "reasoning" || fields.encrypted_content.is_some_and(|it| !it.is_empty())
}

fn kind_of(item: &RawValue) -> String {
    serde_json::from_str(item.get()).map(|fields: Reasoning| fields.kind).unwrap_or_default()
}

/// An item in the form in which it is sent back.
struct Kept {
    item: Box<RawValue>,
    content: Option<Content>,
    /// It is not as the provider wrote it.
    is_rewritten: bool,
}

impl Kept {
    fn unchanged(item: Box<RawValue>, content: Option<Content>) -> Self {
        Self { item, content, is_rewritten: false }
    }

    fn rewritten(content: Content) -> Option<Self> {
        let item = raw(&foreign(&content)?)?;
        Some(Self { item, content: Some(content), is_rewritten: true })
    }
}

/// What is kept of an item; `None` if nothing is, because it is not complete.
fn kept(item: Box<RawValue>) -> Option<Kept> {
    if !can_be_sent_back(&item) {
        return None;
    }
    let Ok(fields) = serde_json::from_str::<ItemFields>(item.get()) else {
        return Some(Kept::unchanged(item, None));
    };
    let is_complete = fields.status.as_deref().is_none_or(|status| status == "completed");
    match &*fields.kind {
        "message" => {
            let parts = fields.content.into_iter();
            let text: String = parts.filter_map(|part| part.text.or(part.refusal)).collect();
            let content = Content::Text(text);
            // A text that the limit of tokens cut off is sent back as plain text.
            if is_complete {
                Some(Kept::unchanged(item, Some(content)))
            } else {
                Kept::rewritten(content)
            }
        }
        _ if !is_complete => None,
        "function_call" => {
            let (input, malformed) = input(fields.arguments.as_deref().unwrap_or_default());
            let id = fields.call_id.unwrap_or_default();
            let name = fields.name.unwrap_or_default();
            let call = AnswerCall { id, unnamed: false, name, input, malformed };
            let content = Content::Call(call);
            if malformed {
                Kept::rewritten(content)
            } else {
                Some(Kept::unchanged(item, Some(content)))
            }
        }
        _ => Some(Kept::unchanged(item, None)),
    }
}
