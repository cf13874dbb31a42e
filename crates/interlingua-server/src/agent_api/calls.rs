//! The calls of the form tools in a log: which of them wait for the client, and since where.
//!
//! The log decides, since the state of the record is stored a moment later. A call can be answered
//! once the log states that the turn waits for it.

use std::collections::HashMap;

use interlingua::event::{Data, Event, Executor, Outcome, ToolStatus};
use interlingua_sessions::host::announced;
use interlingua_sessions::{SessionId, Store};
use serde_json::{Value, json};

use super::results::FormTool;
use crate::error::ApiError;
use crate::stream::feed::parse;
use crate::stream::records::lines;

/// How many bytes of a log are searched at a time.
const PAGE: usize = 256 * 1024;

/// What a line has in it that concerns calls. Other lines are not parsed.
const MARKS: [&[u8]; 4] = [b"turn_", b"suspended", b"\"client\"", b"host_state"];

/// The calls of a log, as far as it was read.
#[derive(Debug, Clone, Default)]
pub(super) struct Calls {
    /// The number of the next entry.
    pub(super) next: u64,
    /// The calls of the last turn that were not answered.
    open: Vec<Call>,
    /// The calls for which a turn has waited.
    paused: HashMap<String, Pause>,
    /// The last prompt, and where it was announced.
    prompt: Option<(String, u64)>,
    is_running: bool,
}

/// Where a turn has waited for a call.
#[derive(Debug, Clone, PartialEq)]
struct Pause {
    /// The number of the entry behind the one that first stated it.
    behind: u64,
    /// The entry that ends the call, once there is one.
    ended: Option<u64>,
    /// The client has answered it.
    is_answered: bool,
}

/// A call that was not answered.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) tool: FormTool,
    input: Value,
    /// The turn waits for it.
    waits: bool,
    /// The number of its first entry.
    pub(super) at: u64,
}

impl Calls {
    /// Reads a log from its beginning to its end.
    pub(super) async fn read(store: &dyn Store, id: &SessionId) -> Result<Self, ApiError> {
        let mut calls = Self::default();
        calls.read_on(store, id).await?;
        Ok(calls)
    }

    /// Reads what was appended. Returns whether the log is closed.
    pub(super) async fn read_on(
        &mut self,
        store: &dyn Store,
        id: &SessionId,
    ) -> Result<bool, ApiError> {
        loop {
            let page = store.read(id, self.next, PAGE).await?;
            if page.lines.is_empty() {
                return Ok(page.tail.closed);
            }
            for line in lines(&page.lines) {
                if MARKS.iter().any(|mark| memchr::memmem::find(line, mark).is_some()) {
                    self.observe(&parse(line, id, self.next)?.event);
                }
                self.next += 1;
            }
            tokio::task::consume_budget().await;
        }
    }

    /// The calls that wait for the client.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Call> {
        self.open.iter().filter(|call| call.waits)
    }

    /// Where the log first stated that a turn waits for a call, if it ever did.
    pub(super) fn paused_at(&self, call: &str) -> Option<u64> {
        self.paused.get(call).map(|pause| pause.behind)
    }

    /// Where a turn of the last prompt waited last, if that is this message.
    pub(super) fn last_pause(&self, message: &str) -> Option<u64> {
        let (_, at) = self.prompt.as_ref().filter(|_| self.is_last_prompt(message))?;
        self.paused.values().map(|pause| pause.behind).filter(|behind| behind > at).max()
    }

    /// Where the calls ended for which a turn waited before an entry; the end of the log, if one did not.
    pub(super) fn answered_at(&self, behind: u64) -> u64 {
        let pauses = self.paused.values().filter(|pause| pause.behind == behind);
        pauses.map(|pause| pause.ended.unwrap_or(self.next)).max().unwrap_or(self.next)
    }

    /// Where a turn of the last prompt waited last for calls that were all answered, if that is this message.
    pub(super) fn last_answered_pause(&self, message: &str) -> Option<u64> {
        let (_, at) = self.prompt.as_ref().filter(|_| self.is_last_prompt(message))?;
        let was_answered = |behind: &u64| {
            let mut pauses = self.paused.values().filter(|pause| pause.behind == *behind);
            pauses.all(|pause| pause.is_answered)
        };
        let pauses = self.paused.values().map(|pause| pause.behind);
        pauses.filter(|behind| behind > at).filter(was_answered).max()
    }

    /// Where the turn of a prompt waited last, if it runs or its calls still wait. Without a name, for any call.
    pub(super) fn pause_of_running(&self, prompt: &str, call: Option<&str>) -> Option<u64> {
        // The turn of a lost agent has ended, and goes on in another one once its calls were answered.
        let goes_on = self.is_running || self.waiting().next().is_some();
        let (_, at) = self.prompt.as_ref().filter(|_| goes_on && self.is_last_prompt(prompt))?;
        let named = self.paused.iter().filter(|(id, _)| call.is_none_or(|call| call == *id));
        named.map(|(_, pause)| pause.behind).filter(|behind| behind > at).max()
    }

    /// Whether a message is the last prompt, as far as the log repeats it.
    pub(super) fn is_last_prompt(&self, message: &str) -> bool {
        self.prompt.as_ref().is_some_and(|(text, _)| text == announced(message))
    }

    /// Takes the event of the next entry.
    fn observe(&mut self, event: &Event<'_>) {
        match &event.data {
            Data::HostState(state) => {
                let raw = state.raw.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok());
                let raw: Value = raw.unwrap_or_default();
                // A late answer is announced as a prompt without words.
                let text = raw.get("text").and_then(Value::as_str).filter(|text| !text.is_empty());
                if let Some(text) = text.filter(|_| state.name == *"prompt") {
                    self.prompt = Some((text.to_owned(), self.next));
                }
            }
            Data::TurnStarted(started) if !started.replay => {
                self.open.clear();
                self.is_running = true;
            }
            Data::ToolStarted(started) if started.executor == Executor::Client => {
                let Some(tool) = FormTool::find(&started.name.to_plain()) else { return };
                let id = started.call.to_string();
                let input = started.input.as_ref().map_or("", |input| input.get());
                let input = serde_json::from_str(input).unwrap_or_default();
                self.open.push(Call { id, tool, input, waits: false, at: self.next });
            }
            Data::ToolInput(given) if given.executor == Executor::Client => {
                let id = given.call.to_plain();
                let call = self.open.iter_mut().find(|call| call.id == id);
                if let Some((call, input)) = call.zip(given.input.as_ref()) {
                    call.input = serde_json::from_str(input.get()).unwrap_or_default();
                }
            }
            Data::ToolEnded(ended) if ended.executor == Executor::Client => {
                let id = ended.call.to_plain();
                self.open.retain(|call| call.id != id);
                if let Some(pause) = self.paused.get_mut(&*id) {
                    pause.ended.get_or_insert(self.next);
                    pause.is_answered =
                        matches!(ended.status, ToolStatus::Completed | ToolStatus::Failed);
                }
            }
            Data::Suspended(suspended) => {
                let ids: Vec<_> = suspended.calls.iter().map(ToString::to_string).collect();
                self.pause(|call| ids.contains(&call.id));
            }
            Data::TurnEnded(ended) if !ended.replay => {
                self.is_running = false;
                match ended.outcome == Outcome::WaitingForClient {
                    true => self.pause(|_| true),
                    false => self.open.clear(),
                }
            }
            _ => {}
        }
    }

    fn pause(&mut self, waits: impl Fn(&Call) -> bool) {
        let behind = self.next + 1;
        for call in self.open.iter_mut().filter(|call| waits(call)) {
            call.waits = true;
            let pause = Pause { behind, ended: None, is_answered: false };
            self.paused.entry(call.id.clone()).or_insert(pause);
        }
    }
}

impl Call {
    /// The request that a client of the relay gets.
    pub(super) fn request(&self) -> Value {
        let field = |name: &str| self.input.get(name).cloned();
        let list = |name: &str| field(name).unwrap_or_else(|| json!([]));
        let (kind, id) = (self.tool.request(), &self.id);
        match self.tool {
            FormTool::Snapshot => {
                let is_text = |it: &Value| it.as_str().is_some_and(|it| !it.is_empty());
                let instruction = field("instruction").filter(is_text);
                let instruction = instruction.unwrap_or_else(|| "snapshot".into());
                match field("document") {
                    Some(document) => json!({
                        "type": kind, "requestId": id, "instruction": instruction, "document": document,
                    }),
                    None => json!({"type": kind, "requestId": id, "instruction": instruction}),
                }
            }
            FormTool::Execute => json!({
                "type": kind, "requestId": id, "actions": list("actions"), "fields": list("fields"),
            }),
        }
    }
}
