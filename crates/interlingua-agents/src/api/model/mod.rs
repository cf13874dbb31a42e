//! What each model API takes and returns, one file per API.
//!
//! A [`ModelApi`] turns a history into the body of a request, and a response into the answer that
//! the next request has to repeat. It does no I/O. What a response *means* is known to the dialects
//! of the crate `interlingua`; here is only what has to be sent back.

mod anthropic;
mod chat;
mod fields;
mod gemini;
mod ids;
mod responses;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use interlingua::dialect::{self, Dialect};
use interlingua::event::Outcome;
use interlingua::json::{mend_surrogates, on_one_line};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::history::{Answer, CallResult, Content, Item};
use fields::Fields;
pub(crate) use ids::CallIds;

/// A model API. It is stored by the name of its dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
pub enum ApiKind {
    /// Anthropic's Messages API.
    Anthropic,
    /// OpenAI's Responses API.
    Responses,
    /// OpenAI's Chat Completions, and servers that are compatible with it.
    Chat,
    /// Gemini's `generateContent` API.
    Gemini,
}

impl ApiKind {
    /// The name of the dialect of its responses.
    pub fn dialect_name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic-api",
            Self::Responses => "openai-responses",
            Self::Chat => "openai-chat",
            Self::Gemini => "gemini-api",
        }
    }

    /// The dialect of its responses.
    pub(crate) fn dialect(self) -> Result<&'static Dialect, interlingua::Error> {
        dialect::named(self.dialect_name())
    }

    pub(crate) fn api(self) -> &'static dyn ModelApi {
        match self {
            Self::Anthropic => &anthropic::Messages,
            Self::Responses => &responses::Responses,
            Self::Chat => &chat::Chat,
            Self::Gemini => &gemini::GenerateContent,
        }
    }
}

impl From<ApiKind> for &'static str {
    fn from(api: ApiKind) -> Self {
        api.dialect_name()
    }
}

impl TryFrom<String> for ApiKind {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let all = [Self::Anthropic, Self::Responses, Self::Chat, Self::Gemini];
        let found = all.into_iter().find(|api| api.dialect_name() == name);
        found.ok_or_else(|| format!("{name} is not a model API"))
    }
}

/// What a request contains apart from the history.
#[derive(Debug, Clone)]
pub(crate) struct RequestSettings<'r> {
    pub(crate) model: &'r str,
    pub(crate) system: &'r str,
    pub(crate) tools: &'r [OfferedTool],
    /// The limit of tokens that the answer may have.
    pub(crate) max_tokens: Option<u64>,
    /// How much the model should think, in the provider's words.
    pub(crate) effort: Option<&'r str>,
    /// Identifies the conversation, for caches.
    pub(crate) session: &'r str,
    /// Continues a response that was cut off, where the API can.
    pub(crate) continuation: Option<&'r str>,
    /// Optional fields that the server has rejected.
    pub(crate) rejected: &'r [OptionalField],
}

impl RequestSettings<'_> {
    fn has(&self, field: OptionalField) -> bool {
        !self.rejected.contains(&field)
    }
}

/// A tool that is offered to the model.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct OfferedTool {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) input_schema: Value,
}

/// A field of a request that some models or servers reject. It is left out of all further requests
/// once it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OptionalField {
    /// Asks for reasoning, or for its summary.
    Reasoning,
    /// Asks for counts in a stream.
    StreamOptions,
    /// The newer name of the limit of tokens.
    MaxCompletionTokens,
    /// Marks what is to be cached.
    Caching,
}

impl OptionalField {
    /// What the user has to know if it is left out: something that was asked for has no effect.
    pub(crate) fn notice(self) -> Option<&'static str> {
        match self {
            Self::Reasoning => {
                Some("the server does not take the settings of reasoning: --effort has no effect")
            }
            Self::StreamOptions | Self::MaxCompletionTokens | Self::Caching => None,
        }
    }
}

/// A model API.
pub(crate) trait ModelApi: Send + Sync {
    /// The path of a request, below the base address.
    fn path(&self, model: &str) -> String;

    /// The headers of a request, besides its type.
    fn headers(&self, key: &str) -> Vec<(&'static str, String)>;

    /// The messages that an item of the history becomes. `before` is the item before it.
    fn messages(&self, item: &Item, before: Option<&Item>, model: &str) -> Vec<Box<RawValue>>;

    /// The body of a request.
    fn body(&self, messages: &[Box<RawValue>], settings: &RequestSettings<'_>) -> String;

    /// Collects the answer of a response. `number` distinguishes it from all others of its session.
    fn collector(&self, number: u64) -> Box<dyn Collector>;

    /// Whether an error message is about the reasoning of earlier answers, which the provider binds
    /// to the conversation, and checks.
    fn rejects_reasoning(&self, message: &str) -> bool {
        mentions(message, &["signature", "encrypted_content", "encrypted content"])
    }

    /// The optional field that an error message is about.
    fn rejected_field(&self, message: &str) -> Option<OptionalField>;
}

/// Collects the answer of a response, record by record.
pub(crate) trait Collector: Send {
    /// Takes a record, with the name of its event.
    fn record(&mut self, event: &str, record: &str);

    /// Where the response can be continued, if it was cut off here.
    fn continuation(&self) -> Option<String> {
        None
    }

    /// The answer so far: complete calls, and text. Reasoning that was cut off is left out.
    fn answer(&mut self, end: AnswerEnd) -> Collected;
}

/// How an answer ended, as the dialect of its response reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerEnd {
    /// The model ended it.
    Complete,
    /// A limit ended it, so that its last part may be incomplete.
    AtLimit,
    /// It was interrupted or refused, so that it is not sent back as the provider wrote it.
    Cut,
}

impl AnswerEnd {
    /// The end of the answer of a response that ended properly.
    pub(crate) fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Refused => Self::Cut,
            Outcome::LimitReached => Self::AtLimit,
            _ => Self::Complete,
        }
    }
}

/// What a response contributes to the history.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    /// Its text and its calls.
    pub(crate) answer: Answer,
    /// The answer in the provider's own form; empty if it is not complete, or if its text is all that
    /// there is to it.
    pub(crate) messages: Vec<Box<RawValue>>,
    /// The provider interrupts the answer, and continues it in the next response.
    pub(crate) paused: bool,
}

impl Collected {
    /// An answer that its content describes completely.
    fn text(content: Vec<Content>) -> Self {
        Self { answer: Answer { content, native: None }, ..Self::default() }
    }
}

/// A piece of streamed text, which is borrowed from its record unless it contains escapes. Serde
/// borrows a `Cow` only as the direct field of a struct.
#[derive(serde::Deserialize)]
struct Piece<'r>(#[serde(borrow)] Cow<'r, str>);

/// A JSON value as raw text.
fn raw(value: &impl serde::Serialize) -> Option<Box<RawValue>> {
    serde_json::value::to_raw_value(value).ok()
}

/// Sets a field of an object.
fn set(object: &mut Value, name: &str, value: impl Into<Value>) {
    if let Value::Object(fields) = object {
        fields.insert(name.to_owned(), value.into());
    }
}

/// The arguments of a call as a JSON value: an empty text is an empty object, and what is not an
/// object is `None`.
///
/// It accepts what the dialects accept, so that both find the same calls: models also write `null`,
/// raw line feeds, and halves of surrogate pairs.
fn arguments(text: &str) -> Option<Value> {
    raw_arguments(text).and_then(|raw| serde_json::from_str(raw.get()).ok())
}

/// Like [`arguments`], but the model's own text. A value that is parsed may lose digits.
fn raw_arguments(text: &str) -> Option<Box<RawValue>> {
    let text = text.trim();
    let text = if text.is_empty() || text == "null" { "{}" } else { text };
    let text = mend_surrogates(text);
    let raw: Box<RawValue> = serde_json::from_str(&on_one_line(&text)).ok()?;
    let parsed: Value = serde_json::from_str(raw.get()).ok()?;
    parsed.is_object().then_some(raw)
}

/// The input of a call, and whether it is malformed. A call whose arguments are no object has an
/// empty input: not every server takes them back.
fn input(text: &str) -> (Value, bool) {
    match arguments(text) {
        Some(input) => (input, false),
        None => (json!({}), true),
    }
}

/// The id of a result, as the request has it for its call: that of the provider if the answer is sent
/// back as the provider wrote it, else one that every API accepts.
fn result_id<'r>(
    result: &'r CallResult,
    before: Option<&Item>,
    api: ApiKind,
    model: &str,
) -> Cow<'r, str> {
    let is_native = match before {
        Some(Item::Answer(answer)) => answer.native_for(api, model).is_some(),
        _ => false,
    };
    if is_native { Cow::Borrowed(&result.call) } else { acceptable_id(&result.call) }
}

/// A call id in the form that an API accepts: letters, digits, `_` and `-`, and not too long.
fn acceptable_id(id: &str) -> Cow<'_, str> {
    const LONGEST: usize = 64;
    let is_fine = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    if !id.is_empty() && id.len() <= LONGEST && id.chars().all(is_fine) {
        return Cow::Borrowed(id);
    }
    let cleaned: String = id.chars().map(|it| if is_fine(it) { it } else { '_' }).collect();
    // The end of an id is what distinguishes it.
    let start = cleaned.len().saturating_sub(LONGEST);
    let end = cleaned.get(start..).unwrap_or(&cleaned);
    Cow::Owned(if end.is_empty() { "call".to_owned() } else { end.to_owned() })
}

/// Stands between two messages of the user. Gemini, and the chat templates of many models, want them
/// to alternate with those of the model.
const NO_ANSWER: &str = "(This turn was stopped before there was an answer.)";

/// Whether an item is a prompt after a turn without an answer.
fn follows_no_answer(item: &Item, before: Option<&Item>) -> bool {
    let is_prompt = matches!(item, Item::User(_));
    is_prompt && matches!(before, Some(Item::User(_) | Item::Results(_)))
}

/// Serialises a body. Bodies consist of JSON only, so it cannot fail.
fn body_of(body: &impl serde::Serialize) -> String {
    serde_json::to_string(body).unwrap_or_default()
}

/// A data address with some content.
fn data_url(media_type: &str, data: &str) -> String {
    format!("data:{media_type};base64,{data}")
}

/// Whether a message is about one of some fields.
fn mentions(message: &str, names: &[&str]) -> bool {
    let message = message.to_ascii_lowercase();
    names.iter().any(|name| message.contains(name))
}
