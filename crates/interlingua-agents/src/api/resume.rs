//! Reads the history of an earlier session from its entries, for any agent.
//!
//! The log of a model API contains the [records](super::history::Record) of its history. For any
//! other agent, the history is made of its events: text, calls and results.

mod omitted;

use interlingua::event::{Data, Event, HostState, Outcome, ToolStatus, Withdrawn};
use interlingua::json::Json;
use interlingua::{EntryRef, Exit, ReadOptions, Reader, Source};
use serde_json::Value;

use super::client_tools::ClientTools;
use super::history::{Answer, AnswerCall, CallResult, Content, History, Part, Record};
use super::model::{ApiKind, OfferedTool};
use super::turns::Frozen;
use crate::error::Error;
use omitted::Omitted;

/// The name of the events that carry the records of the history.
pub(super) const HISTORY: &str = "history";

/// The name of the event that carries a [`Conversation`].
pub(super) const CONVERSATION: &str = "conversation";

/// What answers a call of which no result is known.
pub(super) const UNKNOWN: &str = "The result of this call is not known: the program ended before it was stored. \
                       It may have been run or not.";

/// Stands for the prompt of a turn in which it was not recorded.
const NO_PROMPT: &str = "(The prompt for this part of the conversation was not recorded.)";

/// What all requests of a session have in common, as it is stored whenever that changes.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub(super) struct Conversation {
    pub(super) api: ApiKind,
    /// The model by the name by which it was requested; the provider reports a more exact one.
    pub(super) model: String,
    pub(super) frozen: Frozen,
}

/// An earlier session.
#[derive(Debug, Clone, Default)]
pub struct Earlier {
    history: History,
    /// The history is made of its records.
    is_recorded: bool,
    /// The records that could not be read.
    unreadable: usize,
    /// What the history does not contain, if it is made of events.
    omitted: Omitted,
    /// The starts of the session, if it is one of a model API.
    conversations: Vec<Conversation>,
    /// Its id, if it is a session of a model API, which can be continued as the same session.
    id: Option<String>,
    /// Its model, the last one that was used.
    model: Option<String>,
    folder: Option<String>,
}

/// How an earlier session goes on.
pub(super) struct Continued {
    pub(super) history: History,
    /// The id of the session, if it stays the same one.
    pub(super) id: Option<String>,
    /// What stays the same for all requests, if it is known.
    pub(super) frozen: Option<Frozen>,
    /// What the model does not learn of it.
    pub(super) losses: Vec<String>,
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
        self.history.items().is_empty()
    }

    /// The model that was used last.
    pub fn model(&self) -> Option<&str> {
        let requested = self.conversations.last().map(|last| &*last.model);
        requested.or(self.model.as_deref())
    }

    /// The API of its answers, if it is a session of a model API.
    pub fn api(&self) -> Option<ApiKind> {
        self.conversations.last().map(|last| last.api)
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

    /// Continues the session with a model. `added` are tools that it has to offer. Calls of the client's
    /// tools stay open.
    pub(super) fn continued(
        self,
        api: ApiKind,
        model: &str,
        added: &[OfferedTool],
        client_tools: &ClientTools,
    ) -> Continued {
        let Self { mut history, is_recorded, unreadable, omitted, conversations, id, .. } = self;
        // It becomes the name of a file.
        let is_plain =
            |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
        let id = id.filter(|id| !id.is_empty() && id.chars().all(is_plain));
        // Reasoning is bound to the system prompt and the tools of its own API.
        let own = conversations.into_iter().rev().find(|it| it.api == api);
        let mut frozen = own.map(|it| it.frozen).filter(|_| id.is_some());
        let mut is_bound = frozen.is_some();
        for added in added {
            if let Some(frozen) = frozen.as_mut().filter(|it| !it.tools.contains(added)) {
                frozen.tools.retain(|tool| tool.name != added.name);
                frozen.tools.push(added.clone());
                is_bound = false;
            }
        }
        if !is_recorded || id.is_none() {
            history.store_all();
        }
        let mut losses = if is_recorded { Vec::new() } else { omitted.losses() };
        if unreadable > 0 {
            losses.push(format!(
                "{unreadable} steps of the stored conversation could not be read, and are left out"
            ));
        }
        let is_kept = |answer: &Answer| is_bound && answer.native_for(api, model).is_some();
        let dropped = history.native_answers().filter(|answer| !is_kept(answer)).count();
        if dropped > 0 {
            losses.push(format!(
                "the reasoning of {dropped} earlier answers is dropped, because it is bound to another model, API, \
                 system prompt or list of tools"
            ));
        }
        if !is_bound && dropped > 0 {
            history.record(Record::ReasoningDropped);
        }
        // The client can still answer the calls of its tools. What is made of events has no such calls.
        let has = |tool: &str| client_tools.own_name(tool).is_some();
        history.close_calls_unless(UNKNOWN, |call| !call.malformed && has(&call.name));
        Continued { history, id, frozen, losses }
    }
}

/// Builds a history from events.
#[derive(Default)]
struct HistoryReader {
    earlier: Earlier,
    recorded: Option<History>,
    answer: Answer,
    /// The blocks of the texts of the answer, in the same order.
    blocks: Vec<u64>,
    /// The streamed text of the block that is open.
    text: String,
    /// The results of the calls of the answer, in the order in which the calls were made.
    results: Vec<(String, Option<CallResult>)>,
    names: Vec<(String, String)>,
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
        if let Some(parent) = &event.parent {
            self.earlier.omitted.sub_agent(parent.to_string());
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
                self.prompt(message.text.to_string());
            }
            Data::BlockDelta(delta) if delta.kind.as_str() == "text" => {
                self.begin_answer();
                self.text.push_str(&delta.text.to_plain());
            }
            Data::Block(block) if block.kind.as_str() == "text" => {
                self.begin_answer();
                self.text.push_str(&block.text.to_plain());
                self.end_block(block.block);
            }
            Data::Block(block) => self.earlier.omitted.block(block),
            Data::BlockEnded(ended) => {
                self.end_block(ended.block);
                self.earlier.omitted.ended(ended);
            }
            Data::Withdrawn(withdrawn) => {
                self.withdraw(withdrawn);
                self.earlier.omitted.withdrawn(withdrawn);
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
            Data::HostState(state) => self.state(state),
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

    fn prompt(&mut self, text: String) {
        self.earlier.history.apply(Record::User(vec![Part::Text(text)]));
    }

    /// What follows the results of the calls before belongs to the next answer.
    fn begin_answer(&mut self) {
        let is_answered =
            !self.results.is_empty() && self.results.iter().all(|(_, result)| result.is_some());
        if is_answered {
            self.flush();
        }
    }

    fn end_block(&mut self, block: u64) {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            self.answer.content.push(Content::Text(text));
            self.blocks.push(block);
        }
    }

    /// Removes the text that is generated again.
    fn withdraw(&mut self, withdrawn: &Withdrawn<'_>) {
        self.text.clear();
        let mut blocks = self.blocks.iter();
        let is_withdrawn =
            |block: &u64| withdrawn.blocks.iter().any(|withdrawn| withdrawn.block == *block);
        self.answer.content.retain(|content| match content {
            Content::Text(_) => !blocks.next().is_some_and(is_withdrawn),
            Content::Call(_) => true,
        });
        self.blocks.retain(|block| !is_withdrawn(block));
    }

    fn call(&mut self, id: String, input: &Json<'_>) {
        if self.results.iter().any(|(known, _)| *known == id) {
            return;
        }
        self.begin_answer();
        let name = self.names.iter().rev().find(|(call, _)| *call == id);
        let name = name.map(|(_, name)| name.clone()).unwrap_or_default();
        let input = serde_json::from_str(input.get()).ok().filter(Value::is_object);
        let input = input.unwrap_or_else(|| serde_json::json!({}));
        let call = AnswerCall { id: id.clone(), unnamed: false, name, input, malformed: false };
        self.answer.content.push(Content::Call(call));
        self.results.push((id, None));
    }

    fn result(&mut self, ended: &interlingua::event::ToolEnded<'_>) {
        let id = ended.call.to_string();
        let Some((_, result)) = self.results.iter_mut().find(|(call, _)| *call == id) else {
            return;
        };
        let error = ended.error.as_ref().map(ToString::to_string);
        let omitted = &mut self.earlier.omitted;
        let mut content =
            ended.output.as_ref().map(|output| parts(output, omitted)).unwrap_or_default();
        if content.is_empty() {
            content.push(Part::Text(error.unwrap_or_else(|| "(no output)".to_owned())));
        }
        let is_error = ended.status != ToolStatus::Completed;
        let name = ended.name.to_string();
        *result = Some(CallResult { call: id, unnamed: false, name, content, is_error });
    }

    fn state(&mut self, state: &HostState<'_>) {
        let Some(raw) = &state.raw else { return };
        if state.name == *HISTORY {
            match serde_json::from_str(raw.get()) {
                Ok(record) => self.recorded.get_or_insert_default().apply(record),
                Err(_) => self.earlier.unreadable += 1,
            }
        } else if state.name == *CONVERSATION {
            self.earlier.conversations.extend(serde_json::from_str::<Conversation>(raw.get()));
        }
    }

    /// Completes the answer, with the results of its calls.
    fn flush(&mut self) {
        self.end_block(0);
        self.blocks.clear();
        let answer = std::mem::take(&mut self.answer);
        let results = std::mem::take(&mut self.results);
        if answer.is_empty() {
            return;
        }
        // Some agents do not print their prompts, but an API needs one before an answer.
        if !std::mem::replace(&mut self.is_prompted, true) {
            self.prompt(NO_PROMPT.to_owned());
        }
        let calls: Vec<_> = answer.calls().cloned().collect();
        self.earlier.history.apply(Record::Answer(answer));
        for (call, (_, result)) in calls.iter().zip(results) {
            let result = result.unwrap_or_else(|| CallResult::refused(call, UNKNOWN));
            self.earlier.history.apply(Record::Result(result));
        }
    }

    fn finish(mut self) -> Earlier {
        self.flush();
        if self.earlier.conversations.is_empty() {
            self.earlier.id = None;
        }
        if let Some(history) = self.recorded {
            self.earlier.history = history;
            self.earlier.is_recorded = true;
        }
        self.earlier
    }
}

/// The parts of an output: a text, or a list of blocks.
fn parts(output: &Json<'_>, omitted: &mut Omitted) -> Vec<Part> {
    let kept = |block: &Value| {
        let kept = part(block);
        if kept.is_none() {
            omitted.part(block);
        }
        kept
    };
    match serde_json::from_str(output.get()) {
        Ok(Value::String(text)) => vec![Part::Text(text)],
        Ok(Value::Array(blocks)) => blocks.iter().filter_map(kept).collect(),
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
