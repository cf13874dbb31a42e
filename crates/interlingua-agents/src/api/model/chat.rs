//! OpenAI's Chat Completions, and the many servers that are compatible with it.

use std::borrow::Cow;

use interlingua::json::RepeatedRecord;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::{
    AnswerEnd, ApiKind, Collected, Collector, ModelApi, NO_ANSWER, OptionalField, Piece,
    RequestSettings, acceptable_id, body_of, data_url, follows_no_answer, input, mentions, raw,
    result_id, set,
};
use crate::api::history::{Answer, AnswerCall, CallResult, Content, Item, Part};

pub(super) struct Chat;

#[derive(Serialize)]
struct Body<'r> {
    model: &'r str,
    messages: Vec<&'r RawValue>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'r str>,
}

impl ModelApi for Chat {
    fn path(&self, _model: &str) -> String {
        "/chat/completions".to_owned()
    }

    fn headers(&self, key: &str) -> Vec<(&'static str, String)> {
        bearer(key)
    }

    fn messages(&self, item: &Item, before: Option<&Item>, model: &str) -> Vec<Box<RawValue>> {
        match item {
            Item::User(parts) => {
                let between = json!({"role": "assistant", "content": NO_ANSWER});
                let between = raw(&between).filter(|_| follows_no_answer(item, before));
                let message = json!({"role": "user", "content": content(parts)});
                between.into_iter().chain(raw(&message)).collect()
            }
            Item::Answer(answer) => match answer.native_for(ApiKind::Chat, model) {
                Some(native) => native.to_vec(),
                None => foreign(answer, model).and_then(|it| raw(&it)).into_iter().collect(),
            },
            Item::Results(answers) => {
                let id = |it| result_id(it, before, ApiKind::Chat, model);
                let answers: Vec<_> = answers.iter().map(|it| (it, id(it))).collect();
                results(&answers).iter().filter_map(raw).collect()
            }
        }
    }

    fn body(&self, messages: &[Box<RawValue>], settings: &RequestSettings<'_>) -> String {
        let tools = settings.tools.iter().map(|tool| {
            let function = json!({
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.input_schema,
            });
            json!({"type": "function", "function": function})
        });
        let system = raw(&json!({"role": "system", "content": settings.system}));
        let all = system.iter().chain(messages).map(|message| &**message);
        let newer = settings.has(OptionalField::MaxCompletionTokens);
        let usage = json!({"include_usage": true});
        body_of(&Body {
            model: settings.model,
            messages: all.collect(),
            stream: true,
            stream_options: settings.has(OptionalField::StreamOptions).then_some(usage),
            tools: tools.collect(),
            max_completion_tokens: settings.max_tokens.filter(|_| newer),
            max_tokens: settings.max_tokens.filter(|_| !newer),
            reasoning_effort: settings.effort.filter(|_| settings.has(OptionalField::Reasoning)),
        })
    }

    fn collector(&self, number: u64) -> Box<dyn Collector> {
        Box::new(Message { number, ..Message::default() })
    }

    fn rejected_field(&self, message: &str) -> Option<OptionalField> {
        let fields = [
            (&["stream_options", "include_usage"][..], OptionalField::StreamOptions),
            (&["max_completion_tokens"], OptionalField::MaxCompletionTokens),
            (&["reasoning_effort"], OptionalField::Reasoning),
        ];
        fields.into_iter().find(|(names, _)| mentions(message, names)).map(|(_, field)| field)
    }
}

/// The header with the key. Local servers need none.
pub(super) fn bearer(key: &str) -> Vec<(&'static str, String)> {
    if key.is_empty() { Vec::new() } else { vec![("authorization", format!("Bearer {key}"))] }
}

/// Text alone is a string, which every server takes.
fn content(parts: &[Part]) -> Value {
    if let [Part::Text(text)] = parts {
        return text.clone().into();
    }
    let parts = parts.iter().map(|part| match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Image { media_type, data } => {
            json!({"type": "image_url", "image_url": {"url": data_url(media_type, data)}})
        }
        Part::Document { media_type, data, name } => json!({
            "type": "file",
            "file": {"filename": name, "file_data": data_url(media_type, data)},
        }),
    });
    parts.collect()
}

/// The answer of another model or API, or one without its reasoning.
fn foreign(answer: &Answer, model: &str) -> Option<Value> {
    let texts = answer.content.iter().filter_map(|content| match content {
        Content::Text(text) => Some(&**text),
        Content::Call(_) => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n\n");
    let calls: Vec<_> = answer.calls().map(call).collect();
    let mut message = json!({"role": "assistant"});
    if !text.is_empty() {
        set(&mut message, "content", text);
    } else if calls.is_empty() {
        return None;
    }
    if !calls.is_empty() {
        set(&mut message, "tool_calls", calls);
        // DeepSeek rejects a message with calls that has no reasoning; others do not know the field.
        if mentions(model, &["deepseek"]) {
            set(&mut message, "reasoning_content", "");
        }
    }
    Some(message)
}

fn call(call: &AnswerCall) -> Value {
    let function = json!({"name": call.name, "arguments": call.input.to_string()});
    json!({"id": acceptable_id(&call.id), "type": "function", "function": function})
}

/// The messages with the results of calls. They are text only, so files follow in the name of the
/// user, after all results.
fn results(results: &[(&CallResult, Cow<'_, str>)]) -> Vec<Value> {
    let mut messages = Vec::new();
    let mut files = Vec::new();
    for (result, call) in results {
        let attached = result.content.iter().filter(|part| !matches!(part, Part::Text(_)));
        let before = files.len();
        files.extend(attached.cloned());
        let mut text = result.text();
        if text.is_empty() && files.len() > before {
            text = "The file follows.".to_owned();
        }
        messages.push(json!({"role": "tool", "tool_call_id": call, "content": text}));
    }
    if !files.is_empty() {
        messages.push(json!({"role": "user", "content": content(&files)}));
    }
    messages
}

/// The message of a response.
#[derive(Default)]
struct Message {
    /// Distinguishes the response from all others of the session.
    number: u64,
    text: String,
    refusal: String,
    /// Reasoning, under the name of the field in which it was received.
    reasoning: Option<(&'static str, String)>,
    /// Signed pieces of reasoning.
    details: Vec<Value>,
    calls: Vec<StreamedCall>,
    /// The call of the last piece.
    current: usize,
    repeated: RepeatedRecord<TextField>,
}

/// A field of a chunk in which text is streamed.
#[derive(Debug, Clone, Copy)]
enum TextField {
    Content,
    /// Reasoning, with the name of the field.
    Reasoning(&'static str),
}

#[derive(Default)]
struct StreamedCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// Fields that only this server knows, such as signatures.
    extra: Map<String, Value>,
}

#[derive(serde::Deserialize)]
struct Chunk<'r> {
    #[serde(default, borrow)]
    choices: Vec<Choice<'r>>,
}

#[derive(serde::Deserialize)]
struct Choice<'r> {
    index: Option<u64>,
    #[serde(borrow)]
    delta: Option<Delta<'r>>,
    /// Only in responses that are not streamed, so it must not make chunks larger.
    #[serde(borrow)]
    message: Option<Box<Delta<'r>>>,
    finish_reason: Option<String>,
}

#[derive(serde::Deserialize)]
struct Delta<'r> {
    #[serde(borrow)]
    content: Option<&'r RawValue>,
    #[serde(borrow)]
    refusal: Option<Piece<'r>>,
    #[serde(borrow)]
    reasoning_content: Option<Piece<'r>>,
    #[serde(borrow)]
    reasoning: Option<Piece<'r>>,
    reasoning_details: Option<Vec<Value>>,
    tool_calls: Option<Vec<CallDelta>>,
    /// The older form of a call.
    function_call: Option<FunctionDelta>,
}

#[derive(Default, serde::Deserialize)]
struct CallDelta {
    index: Option<u64>,
    id: Option<String>,
    function: Option<FunctionDelta>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

#[derive(Default, serde::Deserialize)]
struct FunctionDelta {
    name: Option<String>,
    arguments: Option<Value>,
}

impl<'r> Chunk<'r> {
    /// The text of a chunk that contains nothing else of the answer, if it has no escapes.
    fn only_text(&self) -> Option<(&'r str, TextField)> {
        let [
            Choice {
                index: None | Some(0),
                delta: Some(delta),
                message: None,
                finish_reason: None,
            },
        ] = &*self.choices
        else {
            return None;
        };
        match delta {
            Delta {
                content: Some(content),
                refusal: None,
                reasoning_content: None,
                reasoning: None,
                reasoning_details: None,
                tool_calls: None,
                function_call: None,
            } => {
                let text = content.get().strip_prefix('"')?.strip_suffix('"')?;
                (!text.contains('\\')).then_some((text, TextField::Content))
            }
            Delta {
                content: None,
                refusal: None,
                reasoning_content: Some(Piece(Cow::Borrowed(text))),
                reasoning: None,
                reasoning_details: None,
                tool_calls: None,
                function_call: None,
            } => Some((text, TextField::Reasoning("reasoning_content"))),
            _ => None,
        }
    }
}

impl Collector for Message {
    fn record(&mut self, _event: &str, record: &str) {
        if let Some((text, &field)) = self.repeated.read(record) {
            return self.add_text(field, text.body());
        }
        let Ok(chunk) = serde_json::from_str::<Chunk<'_>>(record) else { return };
        if let Some((text, field)) = chunk.only_text() {
            self.repeated.learn(record, text, field);
        }
        for choice in chunk.choices.into_iter().filter(|it| it.index.unwrap_or(0) == 0) {
            if let Some(delta) = choice.delta.or(choice.message.map(|it| *it)) {
                self.add(delta);
            }
        }
    }

    fn answer(&mut self, end: AnswerEnd) -> Collected {
        let Self { number, text, refusal, reasoning, details, calls, .. } = std::mem::take(self);
        let complete_calls = if end == AnswerEnd::Complete { calls } else { Vec::new() };
        let made_up = |at: usize| format!("call_{number}_{at}");
        let calls = complete_calls.into_iter().enumerate().map(|(at, it)| it.finish(made_up(at)));
        let (calls, raw_calls): (Vec<_>, Vec<_>) = calls.unzip();
        let said = text + &*refusal;
        let is_plain = raw_calls.is_empty() && details.is_empty() && reasoning.is_none();
        if is_plain && !said.is_empty() {
            // It is sent back in the same form without a copy of it.
            return Collected::text(vec![Content::Text(said)]);
        }
        let mut message = json!({"role": "assistant"});
        if !said.is_empty() {
            set(&mut message, "content", said.clone());
        }
        if !raw_calls.is_empty() {
            set(&mut message, "tool_calls", raw_calls);
            // DeepSeek requires it with calls, even if it is empty; others ignore it.
            if let Some((field, reasoning)) = reasoning {
                set(&mut message, field, reasoning);
            }
        }
        if !details.is_empty() {
            set(&mut message, "reasoning_details", details);
        }
        let text = (!said.is_empty()).then_some(Content::Text(said));
        let content: Vec<_> =
            text.into_iter().chain(calls.into_iter().map(Content::Call)).collect();
        let has_content = end != AnswerEnd::Cut && !content.is_empty();
        let messages = raw(&message).filter(|_| has_content).into_iter().collect();
        Collected { answer: Answer { content, native: None }, messages, ..Collected::default() }
    }
}

impl Message {
    fn add(&mut self, delta: Delta<'_>) {
        if let Some(content) = delta.content {
            self.add_content(content.get());
        }
        if let Some(piece) = delta.refusal {
            self.refusal.push_str(&piece.0);
        }
        let reasoning =
            [("reasoning_content", delta.reasoning_content), ("reasoning", delta.reasoning)];
        for (field, piece) in reasoning {
            let Some(piece) = piece else { continue };
            self.add_text(TextField::Reasoning(field), &piece.0);
        }
        self.details.extend(delta.reasoning_details.into_iter().flatten());
        let function = delta
            .function_call
            .map(|function| CallDelta { function: Some(function), ..CallDelta::default() });
        for call in delta.tool_calls.into_iter().flatten().chain(function) {
            self.add_call(call);
        }
    }

    fn add_text(&mut self, field: TextField, piece: &str) {
        match field {
            TextField::Content => self.text.push_str(piece),
            TextField::Reasoning(field) => {
                let (kept, text) = self.reasoning.get_or_insert_with(|| (field, String::new()));
                if *kept == field {
                    text.push_str(piece);
                }
            }
        }
    }

    /// Adds text, which is a string, or parts at some servers.
    fn add_content(&mut self, content: &str) {
        if let Ok(piece) = serde_json::from_str::<Piece<'_>>(content) {
            self.add_text(TextField::Content, &piece.0);
        } else if let Ok(Value::Array(parts)) = serde_json::from_str(content) {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            texts.for_each(|text| self.text.push_str(text));
        }
    }

    fn add_call(&mut self, delta: CallDelta) {
        let at = self.place(&delta);
        self.current = at;
        let Some(call) = self.calls.get_mut(at) else { return };
        call.index = call.index.or(delta.index);
        if call.id.is_empty() {
            call.id = delta.id.unwrap_or_default();
        }
        let function = delta.function.unwrap_or_default();
        if let Some(name) = function.name.filter(|name| *name != call.name) {
            call.name.push_str(&name);
        }
        match function.arguments {
            Some(Value::String(piece)) => call.arguments.push_str(&piece),
            Some(Value::Null) | None => {}
            Some(whole) => call.arguments = whole.to_string(),
        }
        let extra = delta.extra.into_iter().filter(|(name, _)| name != "type");
        call.extra.extend(extra);
    }

    /// Finds the call that a piece belongs to, in the same way as the dialect: by its id, then by its
    /// index, then the current one. A piece that begins a call adds one.
    fn place(&mut self, delta: &CallDelta) -> usize {
        let id = delta.id.as_deref().filter(|id| !id.is_empty());
        let identified = id.and_then(|id| self.calls.iter().rposition(|call| call.id == id));
        if let Some(at) = identified {
            return at;
        }
        let numbered = delta
            .index
            .and_then(|index| self.calls.iter().rposition(|call| call.index == Some(index)));
        // The current call may get its index late.
        let is_open = |call: &&StreamedCall| delta.index.is_none() || call.index.is_none();
        let current = self.calls.get(self.current).filter(is_open).map(|_| self.current);
        let same_place = numbered.is_some() || delta.index.is_none();
        let continues = |call: &StreamedCall| {
            let is_other = id.is_some() && !call.id.is_empty();
            !is_other && !call.is_followed_by(delta.function.as_ref(), same_place)
        };
        let found = numbered.or(current);
        match found.filter(|at| self.calls.get(*at).is_some_and(continues)) {
            Some(at) => at,
            None => {
                self.calls.push(StreamedCall::default());
                self.calls.len() - 1
            }
        }
    }
}

impl StreamedCall {
    /// Whether a piece without a new id begins another call. Some servers give every call the same
    /// index, or none, and no id: then a name after complete arguments is that of the next call.
    fn is_followed_by(&self, function: Option<&FunctionDelta>, same_place: bool) -> bool {
        let Some(function) = function else { return false };
        let name = function.name.as_deref().filter(|name| !name.is_empty());
        let Some(name) = name else { return false };
        let has_arguments = function.arguments.as_ref().is_some_and(|it| *it != "");
        let other_name = !self.name.is_empty() && name != self.name;
        let begins_other = !same_place || (self.arguments.is_empty() && has_arguments);
        let is_complete = serde_json::from_str::<&RawValue>(&self.arguments).is_ok();
        is_complete || (other_name && begins_other)
    }

    /// The call, and its form in a message. `made_up` is its id if the server gave none: it is
    /// unique in the session, since a result is found by it.
    fn finish(self, made_up: String) -> (AnswerCall, Value) {
        let (input, malformed) = input(&self.arguments);
        let id = if self.id.is_empty() { made_up } else { self.id };
        // Chat templates parse them, so they have to be what the call was run with.
        let is_fine = serde_json::from_str::<Value>(&self.arguments).is_ok_and(|it| it.is_object());
        let arguments = if is_fine { self.arguments } else { input.to_string() };
        let function = json!({"name": self.name, "arguments": arguments});
        let mut message = self.extra;
        message.insert("id".to_owned(), id.clone().into());
        message.insert("type".to_owned(), "function".into());
        message.insert("function".to_owned(), function);
        let call = AnswerCall { id, unnamed: false, name: self.name, input, malformed };
        (call, Value::Object(message))
    }
}
