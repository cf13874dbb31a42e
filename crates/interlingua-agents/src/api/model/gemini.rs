//! Gemini's `generateContent` API.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{
    AnswerEnd, ApiKind, Collected, Collector, Fields, ModelApi, NO_ANSWER, OptionalField,
    RequestSettings, body_of, follows_no_answer, mentions, raw, set,
};
use crate::api::history::{Answer, AnswerCall, CallResult, Content, Item, Part};

/// Stands for the signature of a call that another model made. The API documents it for this.
const FOREIGN_SIGNATURE: &str = "context_engineering_is_the_way_to_go";

pub(super) struct GenerateContent;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'r> {
    contents: &'r [Box<RawValue>],
    system_instruction: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    generation_config: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    continuation_token: Option<&'r str>,
}

impl ModelApi for GenerateContent {
    fn path(&self, model: &str) -> String {
        let model = model.strip_prefix("models/").unwrap_or(model);
        format!("/v1beta/models/{model}:streamGenerateContent?alt=sse")
    }

    fn headers(&self, key: &str) -> Vec<(&'static str, String)> {
        if key.is_empty() { Vec::new() } else { vec![("x-goog-api-key", key.to_owned())] }
    }

    fn messages(&self, item: &Item, before: Option<&Item>, model: &str) -> Vec<Box<RawValue>> {
        match item {
            Item::User(parts) => {
                let stopped = follows_no_answer(item, before);
                let between = json!({"role": "model", "parts": [{"text": NO_ANSWER}]});
                let message = json!({"role": "user", "parts": content(parts)});
                let between = raw(&between).filter(|_| stopped);
                between.into_iter().chain(raw(&message)).collect()
            }
            Item::Answer(answer) => match answer.native_for(ApiKind::Gemini, model) {
                Some(native) => native.to_vec(),
                None => foreign(answer).and_then(|it| raw(&it)).into_iter().collect(),
            },
            Item::Results(results) => {
                let parts: Vec<_> = results.iter().map(response).collect();
                raw(&json!({"role": "user", "parts": parts})).into_iter().collect()
            }
        }
    }

    fn body(&self, messages: &[Box<RawValue>], settings: &RequestSettings<'_>) -> String {
        let declarations: Vec<_> = settings
            .tools
            .iter()
            .map(|tool| {
                json!({
                    "name": tool.name,
                    "description": tool.description,
                    "parametersJsonSchema": tool.input_schema,
                })
            })
            .collect();
        let tools = json!([{"functionDeclarations": declarations}]);
        let mut config = Map::new();
        if let Some(limit) = settings.max_tokens {
            config.insert("maxOutputTokens".to_owned(), limit.into());
        }
        if settings.has(OptionalField::Reasoning) {
            let mut thinking = json!({"includeThoughts": true});
            if let Some(effort) = settings.effort {
                set(&mut thinking, "thinkingLevel", effort.to_ascii_uppercase());
            }
            config.insert("thinkingConfig".to_owned(), thinking);
        }
        body_of(&Body {
            contents: messages,
            system_instruction: json!({"parts": [{"text": settings.system}]}),
            tools: (!settings.tools.is_empty()).then_some(tools),
            generation_config: config,
            continuation_token: settings.continuation,
        })
    }

    fn collector(&self, _number: u64) -> Box<dyn Collector> {
        Box::new(Parts::default())
    }

    fn rejected_field(&self, message: &str) -> Option<OptionalField> {
        let about_thinking = mentions(message, &["thinking"]) && !mentions(message, &["signature"]);
        about_thinking.then_some(OptionalField::Reasoning)
    }
}

fn content(parts: &[Part]) -> Vec<Value> {
    let parts = parts.iter().map(|part| match part {
        Part::Text(text) => json!({"text": text}),
        Part::Image { media_type, data } | Part::Document { media_type, data, .. } => {
            inline(media_type, data)
        }
    });
    parts.collect()
}

fn inline(media_type: &str, data: &str) -> Value {
    json!({"inlineData": {"mimeType": media_type, "data": data}})
}

/// The answer of another model or API.
fn foreign(answer: &Answer) -> Option<Value> {
    let parts = answer.content.iter().filter_map(|content| match content {
        Content::Text(text) if text.is_empty() => None,
        Content::Text(text) => Some(json!({"text": text})),
        Content::Call(call) => {
            let mut function = json!({"name": call.name, "args": call.input});
            // A call has an id exactly if its result has one.
            if !call.unnamed {
                set(&mut function, "id", call.id.clone());
            }
            Some(json!({"functionCall": function, "thoughtSignature": FOREIGN_SIGNATURE}))
        }
    });
    let parts: Vec<_> = parts.collect();
    (!parts.is_empty()).then(|| json!({"role": "model", "parts": parts}))
}

fn response(result: &CallResult) -> Value {
    let field = if result.is_error { "error" } else { "output" };
    let files = result.content.iter().filter_map(|part| match part {
        Part::Text(_) => None,
        Part::Image { media_type, data } | Part::Document { media_type, data, .. } => {
            Some(inline(media_type, data))
        }
    });
    let files: Vec<_> = files.collect();
    let mut text = result.text();
    if text.is_empty() && !files.is_empty() {
        text = "The file is attached.".to_owned();
    }
    let mut function = json!({"name": result.name, "response": {field: text}});
    if !result.unnamed {
        set(&mut function, "id", result.call.clone());
    }
    if !files.is_empty() {
        set(&mut function, "parts", files);
    }
    json!({"functionResponse": function})
}

/// An answer, as it is sent back.
#[derive(Serialize)]
struct NativeAnswer<'a> {
    role: &'static str,
    parts: &'a [AnswerPart],
}

/// The parts of a response.
#[derive(Default)]
struct Parts {
    parts: Vec<AnswerPart>,
    continuation: Option<String>,
    /// Content arrived after the last token, so that it would be repeated.
    beyond_token: bool,
}

/// A part of an answer, in the form in which it is sent back.
#[derive(Serialize)]
#[serde(untagged)]
enum AnswerPart {
    /// Text without anything else, which the next piece continues.
    Text { text: String },
    /// Any other part, as the provider wrote it.
    Other(Fields),
}

#[derive(serde::Deserialize)]
struct Chunk {
    #[serde(default)]
    candidates: Vec<Candidate>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    index: Option<u64>,
    content: Option<CandidateContent>,
    continuation_token: Option<String>,
}

#[derive(serde::Deserialize)]
struct CandidateContent {
    #[serde(default)]
    parts: Vec<Fields>,
}

impl Collector for Parts {
    fn record(&mut self, _event: &str, record: &str) {
        let Ok(chunk) = serde_json::from_str::<Chunk>(record) else { return };
        for candidate in chunk.candidates.into_iter().filter(|it| it.index.unwrap_or(0) == 0) {
            let parts = candidate.content.map(|content| content.parts).unwrap_or_default();
            self.beyond_token |= !parts.is_empty();
            parts.into_iter().for_each(|part| self.add(part));
            if let Some(token) = candidate.continuation_token {
                (self.continuation, self.beyond_token) = (Some(token), false);
            }
        }
    }

    fn answer(&mut self, end: AnswerEnd) -> Collected {
        let parts = std::mem::take(&mut self.parts);
        let mut content: Vec<Content> = Vec::new();
        let mut calls = 0;
        for part in &parts {
            let text = match part {
                AnswerPart::Text { text } => Some(text.clone()),
                AnswerPart::Other(fields) => {
                    if let Some(call) = fields.get("functionCall") {
                        calls += 1;
                        content.push(Content::Call(call_of(call, calls)));
                        continue;
                    }
                    fields.text("text")
                }
            };
            match (text, content.last_mut()) {
                (Some(text), Some(Content::Text(before))) => before.push_str(&text),
                (Some(text), _) => content.push(Content::Text(text)),
                (None, _) => {}
            }
        }
        content.retain(|content| !matches!(content, Content::Text(text) if text.is_empty()));
        let message = NativeAnswer { role: "model", parts: &parts };
        let messages = raw(&message).filter(|_| end != AnswerEnd::Cut && !parts.is_empty());
        Collected {
            answer: Answer { content, native: None },
            messages: messages.into_iter().collect(),
            paused: false,
        }
    }

    fn continuation(&self) -> Option<String> {
        self.continuation.clone().filter(|_| !self.beyond_token)
    }
}

impl Parts {
    /// Adds a part. Text without a signature continues the text before it; thoughts are not sent
    /// back.
    fn add(&mut self, part: Fields) {
        if part.get("thought").is_some_and(|it| it.get() == "true") {
            return;
        }
        let plain = part.text("text").filter(|_| part.len() == 1);
        match (plain, self.parts.last_mut()) {
            (Some(piece), _) if piece.is_empty() => {}
            (Some(piece), Some(AnswerPart::Text { text })) => text.push_str(&piece),
            (Some(text), _) => self.parts.push(AnswerPart::Text { text }),
            (None, _) => self.parts.push(AnswerPart::Other(part)),
        }
    }
}

fn call_of(call: &RawValue, number: usize) -> AnswerCall {
    let call: Value = serde_json::from_str(call.get()).unwrap_or_default();
    let text = |name: &str| call.get(name).and_then(Value::as_str).unwrap_or_default();
    let id = text("id");
    AnswerCall {
        id: if id.is_empty() { format!("call_{number}") } else { id.to_owned() },
        unnamed: id.is_empty(),
        name: text("name").to_owned(),
        input: call.get("args").cloned().filter(Value::is_object).unwrap_or_else(|| json!({})),
        malformed: false,
    }
}
