//! Reads the history of an earlier session from its entries, for any agent.

use interlingua::event::{Data, Event, Native, Outcome, ToolStatus};
use interlingua::json::Json;
use interlingua::{EntryRef, Exit, ReadOptions, Reader, Source};
use serde_json::Value;
use serde_json::value::RawValue;

use super::history::{Answer, AnswerCall, CallResult, Content, History, Item, NativeAnswer, Part};
use super::model::ApiKind;
use super::turns::Frozen;
use crate::error::Error;

/// What answers a call of which no result is known.
const UNKNOWN: &str = "The result of this call is not known: the program ended before it was stored. \
                       It may have been run or not.";

/// Stands for the prompt of a turn in which it was not recorded.
const NO_PROMPT: &str = "(The prompt for this part of the conversation was not recorded.)";

/// An earlier session.
#[derive(Debug, Clone, Default)]
pub struct Earlier {
    items: Vec<Item>,
    frozen: Option<Frozen>,
    /// Its id, if it is a session of a model API, which can be continued as the same session.
    id: Option<String>,
    /// Its model, the last one that was used.
    model: Option<String>,
    /// The model by the name by which it was requested, if it is known.
    requested_model: Option<String>,
    /// The API of its answers, if they are in the form of one.
    api: Option<ApiKind>,
    folder: Option<String>,
}

impl Earlier {
    /// Reads a session from its file: our own events, or the output of any agent.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(Source::Recognise, ReadOptions::default())?;
        let mut history = HistoryReader::default();
        let mut sink = |entry: EntryRef<'_>| history.entry(entry);
        let Ok(_) = reader.push(bytes, None, &mut sink);
        let Ok(_) = reader.finish(&Exit::default(), None, &mut sink);
        Ok(history.finish())
    }

    /// Whether it contains anything to continue from.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The model that was used last.
    pub fn model(&self) -> Option<&str> {
        self.requested_model.as_deref().or(self.model.as_deref())
    }

    /// The API of its answers, if it is a session of a model API.
    pub fn api(&self) -> Option<ApiKind> {
        self.api
    }

    /// The folder in which it worked.
    pub fn folder(&self) -> Option<&str> {
        self.folder.as_deref()
    }

    /// The same history, as the beginning of another session.
    #[must_use]
    pub fn forked(mut self) -> Self {
        self.id = None;
        self
    }

    pub(super) fn history(&self) -> History {
        let mut history = History::new(self.items.clone());
        history.close_calls(UNKNOWN);
        history
    }

    /// The id of the session, unless it could not be the name of a file.
    pub(super) fn continued_as(&self) -> Option<String> {
        let is_plain =
            |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
        self.id.clone().filter(|id| !id.is_empty() && id.chars().all(is_plain))
    }

    /// The system prompt and the tools, if the session is continued with the same API.
    pub(super) fn frozen(&self, api: ApiKind) -> Option<Frozen> {
        self.frozen.clone().filter(|_| self.api == Some(api) && self.id.is_some())
    }

    /// What the model of the continued session cannot take.
    pub(super) fn losses(&self, api: ApiKind, model: &str) -> Vec<String> {
        let is_native =
            |item: &&Item| matches!(item, Item::Answer(answer) if answer.native.is_some());
        let native = self.items.iter().filter(is_native);
        let lost = native.filter(|item| match item {
            Item::Answer(answer) => answer.native_for(api, model).is_none(),
            _ => false,
        });
        match lost.count() {
            0 => Vec::new(),
            count => vec![format!(
                "the reasoning of {count} earlier answers is dropped, because another model or API cannot take it"
            )],
        }
    }
}

/// Builds a history from events.
#[derive(Default)]
struct HistoryReader {
    earlier: Earlier,
    answer: Answer,
    /// The streamed text of the block that is open.
    text: String,
    /// The calls of the answer, by their emitted ids, in the order of their starts.
    results: Vec<(String, Option<CallResult>)>,
    names: Vec<(String, String)>,
    /// The ids of the provider for the calls of the answer.
    provider_ids: Option<Vec<ProviderId>>,
    /// The prompt of the current turn is known.
    is_prompted: bool,
}

impl HistoryReader {
    fn entry(&mut self, entry: EntryRef<'_>) {
        // The reader answers every call. Whether this one was run is not known.
        let is_made_up = entry.origin.added && matches!(entry.event.data, Data::ToolEnded(_));
        if !is_made_up {
            self.event(entry.event);
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        // What a sub-agent did is no part of the conversation.
        if event.parent.is_some() {
            return;
        }
        match &event.data {
            Data::SessionStarted(started) => {
                self.earlier.id = started.id.as_ref().map(ToString::to_string);
                self.earlier.folder = started.cwd.as_ref().map(ToString::to_string);
                self.set_model(started.model.as_ref().map(ToString::to_string));
            }
            Data::SessionUpdated(updated) => {
                self.set_model(updated.model.as_ref().map(ToString::to_string));
            }
            Data::UserMessage(message) => {
                self.flush();
                self.is_prompted = true;
                let text = message.text.to_string();
                self.earlier.items.push(Item::User(vec![Part::Text(text)]));
            }
            Data::BlockDelta(delta) if delta.kind.as_str() == "text" => {
                self.begin_answer();
                self.text.push_str(&delta.text.to_plain());
            }
            Data::Block(block) if block.kind.as_str() == "text" => {
                self.begin_answer();
                self.text.push_str(&block.text.to_plain());
                self.end_block();
            }
            Data::BlockEnded(_) => self.end_block(),
            Data::Withdrawn(_) => {
                self.text.clear();
                self.answer.content.retain(|content| matches!(content, Content::Call(_)));
            }
            Data::ToolStarted(started) => {
                self.names.push((started.call.to_string(), started.name.to_string()));
                if let Some(input) = &started.input {
                    self.call(started.call.to_string(), input);
                }
            }
            Data::ToolInput(input) => {
                if let Some(json) = &input.input {
                    self.call(input.call.to_string(), json);
                }
            }
            Data::ToolEnded(ended) => self.result(ended),
            Data::Compacted(compacted) => self.compacted(compacted.details.as_ref()),
            Data::Native(native) => self.native(native),
            Data::TurnEnded(ended) => {
                self.flush();
                self.is_prompted &= ended.outcome == Outcome::WaitingForClient;
            }
            _ => {}
        }
    }

    fn set_model(&mut self, model: Option<String>) {
        self.earlier.model = model.or(self.earlier.model.take());
    }

    /// What follows the results of the calls before, or an answer in the form of its provider,
    /// belongs to the next answer.
    fn begin_answer(&mut self) {
        let is_answered =
            !self.results.is_empty() && self.results.iter().all(|(_, result)| result.is_some());
        if is_answered || self.answer.native.is_some() {
            self.flush();
        }
    }

    fn end_block(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            self.answer.content.push(Content::Text(text));
        }
    }

    fn call(&mut self, id: String, input: &Json<'_>) {
        if self.results.iter().any(|(known, _)| *known == id) {
            return;
        }
        self.end_block();
        self.begin_answer();
        let name = self.names.iter().rev().find(|(call, _)| *call == id);
        let name = name.map(|(_, name)| name.clone()).unwrap_or_default();
        let input = serde_json::from_str(input.get()).ok().filter(Value::is_object);
        let input = input.unwrap_or_else(|| serde_json::json!({}));
        let call = AnswerCall { id: id.clone(), unnamed: false, name, input };
        self.answer.content.push(Content::Call(call));
        self.results.push((id, None));
    }

    fn result(&mut self, ended: &interlingua::event::ToolEnded<'_>) {
        let id = ended.call.to_string();
        let Some((_, result)) = self.results.iter_mut().find(|(call, _)| *call == id) else {
            return;
        };
        let error = ended.error.as_ref().map(ToString::to_string);
        let mut content = ended.output.as_ref().map(parts).unwrap_or_default();
        if content.is_empty() {
            content.push(Part::Text(error.unwrap_or_else(|| "(no output)".to_owned())));
        }
        let is_error = ended.status != ToolStatus::Completed;
        let name = ended.name.to_string();
        *result = Some(CallResult { call: id, unnamed: false, name, content, is_error });
    }

    fn native(&mut self, native: &Native<'_>) {
        let Some(raw) = &native.raw else { return };
        if native.name == *"attachments" {
            if let Some(Item::User(prompt)) = self.earlier.items.last_mut() {
                prompt.extend(parts(raw));
            }
        } else if native.name == *"conversation" {
            self.earlier.frozen = serde_json::from_str(raw.get()).ok();
        } else if native.name == *"answer"
            && let Ok(stored) = serde_json::from_str::<StoredAnswer>(raw.get())
            && let Some(api) = ApiKind::of_dialect(&stored.api)
        {
            self.end_block();
            self.earlier.api = Some(api);
            let StoredAnswer { model, messages, calls, .. } = stored;
            // The name by which the model was requested; the provider reports a more exact one.
            self.earlier.requested_model = Some(model.clone());
            self.provider_ids = Some(calls);
            self.answer.native = Some(NativeAnswer { api, model, messages });
        }
    }

    /// The older turns were replaced by a summary, if it is one of ours.
    fn compacted(&mut self, details: Option<&Json<'_>>) {
        let details = details.and_then(|details| serde_json::from_str::<Value>(details.get()).ok());
        let summary = details.as_ref().and_then(|details| details.get("summary")?.as_str());
        let Some(summary) = summary else { return };
        self.flush();
        let mut history = History::new(std::mem::take(&mut self.earlier.items));
        history.compact(summary);
        self.earlier.items = history.items().to_vec();
    }

    /// Completes the answer, with the results of its calls.
    fn flush(&mut self) {
        self.end_block();
        let mut answer = std::mem::take(&mut self.answer);
        let results = std::mem::take(&mut self.results);
        if answer.is_empty() {
            return;
        }
        let provider_ids = std::mem::take(&mut self.provider_ids);
        if let Some(ids) = &provider_ids {
            keep_calls(&mut answer, ids.len());
        }
        let provider_ids = provider_ids.unwrap_or_default();
        let calls: Vec<_> = answer.calls().cloned().collect();
        rename(&mut answer, &provider_ids);
        // Some agents do not print their prompts, but an API needs one before an answer.
        if !std::mem::replace(&mut self.is_prompted, true) {
            self.earlier.items.push(Item::User(vec![Part::Text(NO_PROMPT.to_owned())]));
        }
        self.earlier.items.push(Item::Answer(answer));
        if calls.is_empty() {
            return;
        }
        let results = calls.iter().enumerate().map(|(at, call)| {
            let known = results.iter().find(|(id, _)| *id == call.id);
            let result = known.and_then(|(_, result)| result.clone());
            let mut result = result.unwrap_or_else(|| CallResult::refused(call, UNKNOWN));
            if let Some(own) = provider_ids.get(at) {
                result.unnamed = own.unnamed;
                if !own.unnamed {
                    result.call.clone_from(&own.id);
                }
            }
            result
        });
        self.earlier.items.push(Item::Results(results.collect()));
    }

    fn finish(mut self) -> Earlier {
        self.flush();
        if self.earlier.frozen.is_none() {
            self.earlier.id = None;
        }
        self.earlier
    }
}

/// An answer as it is kept in the log of a session.
#[derive(serde::Serialize, serde::Deserialize)]
pub(super) struct StoredAnswer {
    pub(super) api: String,
    pub(super) model: String,
    pub(super) messages: Vec<Box<RawValue>>,
    pub(super) calls: Vec<ProviderId>,
}

/// The id that the provider gave to a call.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(super) struct ProviderId {
    pub(super) id: String,
    /// The provider gave none.
    #[serde(default)]
    pub(super) unnamed: bool,
}

/// Removes the calls that the provider's own form of the answer does not contain, because they were
/// cut off.
fn keep_calls(answer: &mut Answer, count: usize) {
    let mut calls = 0;
    answer.content.retain(|content| {
        let is_call = matches!(content, Content::Call(_));
        calls += usize::from(is_call);
        !is_call || calls <= count
    });
}

/// Gives the calls of an answer the ids of the provider.
fn rename(answer: &mut Answer, ids: &[ProviderId]) {
    let calls = answer.content.iter_mut().filter_map(|content| match content {
        Content::Call(call) => Some(call),
        Content::Text(_) => None,
    });
    for (call, own) in calls.zip(ids) {
        call.unnamed = own.unnamed;
        if !own.unnamed {
            call.id.clone_from(&own.id);
        }
    }
}

/// The parts of an output: a text, or a list of blocks.
fn parts(output: &Json<'_>) -> Vec<Part> {
    match serde_json::from_str(output.get()) {
        Ok(Value::String(text)) => vec![Part::Text(text)],
        Ok(Value::Array(blocks)) => blocks.iter().filter_map(part).collect(),
        Ok(Value::Null) | Err(_) => Vec::new(),
        Ok(other) => vec![Part::Text(other.to_string())],
    }
}

fn part(block: &Value) -> Option<Part> {
    let text = |value: &Value, name: &str| value.get(name)?.as_str().map(str::to_owned);
    if let Some(text) = text(block, "text") {
        return Some(Part::Text(text));
    }
    let source = block.get("source")?;
    let (media_type, data) = (text(source, "media_type")?, text(source, "data")?);
    match block.get("type")?.as_str()? {
        "image" => Some(Part::Image { media_type, data }),
        "document" => {
            let name = text(block, "title").unwrap_or_default();
            Some(Part::Document { media_type, data, name })
        }
        _ => None,
    }
}
