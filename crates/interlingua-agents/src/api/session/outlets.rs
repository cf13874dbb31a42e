//! The destinations of a session's entries: they are observed, stored, and
//! collected for the consumer.

use std::convert::Infallible;

use interlingua::event::{Data, Executor, Scope, Usage};
use interlingua::json::{Json, Text};
use interlingua::{Batch, EntryRef, Flow, Sink};
use serde_json::Value;

use crate::api::store::RunRecorder;
use crate::api::turns::MadeCall;
use crate::session::Outbox;

/// The consumers of entries.
#[derive(Debug)]
pub(super) struct Outlets {
    batch: Batch,
    recorder: Option<RunRecorder>,
    pub(super) seen: Seen,
    /// The sequence number of the last entry.
    pub(super) last: u64,
}

/// What was emitted of the current response.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The calls that the model made, in the order in which their inputs became known.
    pub(super) calls: Vec<MadeCall>,
    /// The ids of those whose tools the client runs. Their names are the client's.
    pub(super) of_client: Vec<String>,
    /// The ids of the calls whose input is streamed.
    streamed: Vec<String>,
    /// The tokens of the request.
    pub(super) usage: Option<Usage<'static>>,
    /// The tokens that the provider reported when the response began.
    pub(super) begun: Option<Usage<'static>>,
    /// The response is one of this API.
    pub(super) message: bool,
    /// Something of the response has arrived that is not counted yet. A response that is continued
    /// is counted after each of its requests.
    uncounted: bool,
    /// The last request has added something to the response.
    advanced: bool,
    /// Something was shown that has to be withdrawn if the request is sent again.
    pub(super) content: bool,
    /// The text, the reasoning and the inputs of calls, in case that they have to be counted.
    pub(super) text: String,
    /// The details of the error that the response reported.
    pub(super) error_details: Option<String>,
    /// What is not a record of this API.
    pub(super) unreadable: Option<String>,
}

impl Outlets {
    pub(super) fn new(recorder: Option<RunRecorder>) -> Self {
        Self { batch: Batch::default(), recorder, seen: Seen::default(), last: 0 }
    }

    /// Passes on the entries since the last call. If a run acts on them, they are stored before.
    pub(super) fn pass_on(&mut self, outbox: &mut Outbox, acts: bool) {
        if let Some(recorder) = &mut self.recorder {
            recorder.flush(acts);
        }
        outbox.put(self.batch.take());
    }

    /// Passes on the last entries; returns why the stored session is incomplete, if it is.
    pub(super) fn finish(mut self, outbox: &mut Outbox) -> Option<String> {
        self.pass_on(outbox, false);
        self.recorder.and_then(RunRecorder::finish)
    }
}

impl Sink for Outlets {
    type Error = Infallible;

    fn entry(&mut self, entry: EntryRef<'_>) -> Result<Flow, Infallible> {
        self.seen.observe(entry);
        self.last = entry.sequence;
        if let Some(recorder) = &mut self.recorder {
            recorder.write(entry);
        }
        self.batch.push(entry);
        Ok(Flow::Continue)
    }
}

impl Seen {
    /// Takes the counts of the provider. Some servers report zeros instead of none.
    pub(super) fn take_reported(&mut self) -> Option<Usage<'static>> {
        self.usage.take().filter(|usage| usage.all() > 0)
    }

    /// Takes the calls in the order of the response, which is given by their ids. Inputs can become
    /// known in another one.
    pub(super) fn take_calls(&mut self, order: &[String]) -> Vec<MadeCall> {
        let mut calls = std::mem::take(&mut self.calls);
        let place = |call: &MadeCall| order.iter().position(|id| *id == call.id);
        calls.sort_by_key(|call| place(call).unwrap_or(usize::MAX));
        calls
    }

    /// The provider has begun to answer the last request, so that it costs something.
    pub(super) fn has_begun(&self) -> bool {
        self.uncounted
    }

    /// Another request continues the response.
    pub(super) fn continued(&mut self) {
        self.advanced = false;
    }

    /// Whether the last request has added text or a call to the response.
    pub(super) fn has_advanced(&self) -> bool {
        self.advanced
    }

    /// The tokens of the last request are counted. A request that continues the response has tokens
    /// of its own.
    pub(super) fn counted(&mut self) {
        self.uncounted = false;
        (self.usage, self.begun) = (None, None);
        self.text.clear();
    }

    pub(super) fn observe(&mut self, entry: EntryRef<'_>) {
        match &entry.event.data {
            Data::BlockDelta(delta) => {
                (self.content, self.uncounted) = (true, true);
                self.advanced |= !delta.text.is_empty();
                self.text.push_str(&delta.text.to_plain());
            }
            Data::Block(block) => {
                (self.content, self.uncounted) = (true, true);
                self.advanced |= !block.text.is_empty();
                self.text.push_str(&block.text.to_plain());
            }
            Data::MessageStarted(started) => {
                self.message = true;
                let usage = started.usage.as_ref().filter(|usage| usage.scope == Scope::Request);
                if let Some(usage) = usage.filter(|usage| usage.all() > 0) {
                    self.begun = Some(owned(usage));
                    self.uncounted = true;
                }
            }
            Data::MessageEnded(ended) => {
                let usage = ended.usage.as_ref().filter(|usage| usage.scope == Scope::Request);
                if let Some(usage) = usage {
                    self.usage = Some(owned(usage));
                }
            }
            // A call that is not streamed has its input from the start.
            Data::ToolStarted(started) if started.executor != Executor::Provider => {
                (self.uncounted, self.advanced) = (true, true);
                self.note_executor(&started.call, &started.executor);
                self.made(&started.call, &started.name, started.input.as_ref());
            }
            Data::ToolInputDelta(delta) => {
                self.uncounted = true;
                if self.streamed.iter().all(|id| delta.call != **id) {
                    self.streamed.push(delta.call.to_string());
                }
                self.text.push_str(&delta.text.to_plain());
            }
            Data::ToolInput(input) if input.executor != Executor::Provider => {
                // A call that is generated again does not start again.
                self.note_executor(&input.call, &input.executor);
                self.made(&input.call, &input.name, input.input.as_ref());
            }
            // A call that the grammar has closed is not run.
            Data::ToolEnded(ended) => self.calls.retain(|call| ended.call != *call.id),
            Data::Native(native) if native.name == *"error.details" => {
                self.error_details = native.raw.as_ref().map(|raw| raw.get().to_owned());
            }
            Data::Unparsed(unparsed) => {
                let text = unparsed.text.as_ref().map(ToString::to_string);
                self.unreadable.get_or_insert(text.unwrap_or_default());
            }
            _ => {}
        }
    }

    fn note_executor(&mut self, id: &Text<'_>, executor: &Executor) {
        if *executor == Executor::Client {
            self.of_client.push(id.to_string());
        }
    }

    /// Notes a call of the model, once its input is known.
    fn made(&mut self, id: &Text<'_>, name: &Text<'_>, input: Option<&Json<'_>>) {
        let id = id.to_string();
        let Some(input) = input.filter(|_| self.calls.iter().all(|call| call.id != id)) else {
            return;
        };
        if !self.streamed.contains(&id) {
            self.text.push_str(input.get());
        }
        let name = name.to_string();
        let input = serde_json::from_str(input.get()).unwrap_or(Value::Null);
        self.calls.push(MadeCall { id, name, input });
    }
}

/// A copy of the counts.
pub(super) fn owned(usage: &Usage<'_>) -> Usage<'static> {
    Usage {
        scope: usage.scope.clone(),
        model: None,
        input: usage.input,
        cache_read: usage.cache_read,
        cache_write: usage.cache_write,
        output: usage.output,
        reasoning: usage.reasoning,
        total: usage.total,
        estimated: usage.estimated,
    }
}
