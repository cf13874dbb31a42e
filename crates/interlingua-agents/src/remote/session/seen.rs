//! What the session has to know of the entries of a run, on their way to the consumer.

use std::collections::HashSet;
use std::convert::Infallible;

use interlingua::event::{Data, Executor, Outcome};
use interlingua::json::Text;
use interlingua::{Batch, EntryRef, Flow, Sink};

use crate::remote::RelayAccess;

/// Where entries go.
#[derive(Default)]
pub(super) struct Outlets {
    pub(super) batch: Batch,
    pub(super) seen: Seen,
    /// The number of the last entry.
    pub(super) last: u64,
}

/// What the entries contain that the session acts on.
#[derive(Default)]
pub(super) struct Seen {
    /// The calls that the service makes, and that the session has not taken yet.
    pub(super) calls: Vec<MadeCall>,
    /// The calls that the session has taken, and that the service has ended.
    pub(super) ended: Vec<String>,
    /// The calls that the agent runs itself.
    running: HashSet<String>,
    /// The relay of the run.
    pub(super) relay: Option<RelayAccess>,
    pub(super) session: Option<String>,
    pub(super) sandbox: Option<String>,
    /// A turn is running.
    pub(super) in_turn: bool,
    /// The outcome of the last turn.
    pub(super) outcome: Option<Outcome>,
    /// Nothing of the agent has followed its last call of the client.
    pub(super) pauses: bool,
    /// The agent has done something in this run besides calling the client.
    pub(super) works: bool,
}

/// A call of a tool of the client.
pub(super) struct MadeCall {
    pub(super) id: String,
    /// The id of the call at the service.
    pub(super) request: String,
    pub(super) tool: String,
    /// The input, as JSON.
    pub(super) input: String,
}

impl Sink for Outlets {
    type Error = Infallible;

    fn entry(&mut self, entry: EntryRef<'_>) -> Result<Flow, Infallible> {
        self.seen.observe(entry);
        self.last = entry.sequence;
        self.batch.push(entry);
        Ok(Flow::Continue)
    }
}

impl Seen {
    fn observe(&mut self, entry: EntryRef<'_>) {
        match &entry.event.data {
            Data::SessionStarted(started) => {
                self.session = started.id.as_ref().map(ToString::to_string).or(self.session.take());
            }
            Data::SessionUpdated(updated) => {
                let known = |new: &Option<Text<'_>>, old: &mut Option<String>| {
                    new.as_ref().map(ToString::to_string).or(old.take())
                };
                self.session = known(&updated.id, &mut self.session);
                self.sandbox = known(&updated.sandbox, &mut self.sandbox);
                self.relay = updated.relay.as_ref().and_then(RelayAccess::of).or(self.relay.take());
            }
            Data::ToolStarted(started) if started.executor == Executor::Client => {
                self.pauses = true;
                let id = started.call.to_string();
                let native = started.native_call.as_ref().map(ToString::to_string);
                self.calls.push(MadeCall {
                    request: native.unwrap_or_else(|| id.clone()),
                    id,
                    tool: started.name.to_string(),
                    input: started.input.as_ref().map_or("{}".to_owned(), |it| it.get().to_owned()),
                });
            }
            Data::ToolEnded(ended) if ended.executor == Executor::Client => self.end(&ended.call),
            Data::TurnStarted(_) => self.in_turn = true,
            Data::TurnEnded(ended) => {
                (self.in_turn, self.pauses) = (false, false);
                self.running.clear();
                self.outcome = Some(ended.outcome.clone());
            }
            Data::ToolStarted(started) => {
                self.running.insert(started.call.to_string());
                self.go_on();
            }
            Data::ToolEnded(ended) => {
                self.running.remove(&*ended.call.to_plain());
                self.go_on();
            }
            Data::BlockStarted(_)
            | Data::BlockDelta(_)
            | Data::Block(_)
            | Data::MessageStarted(_)
            | Data::Artifact(_)
            | Data::Error(_) => self.go_on(),
            _ => {}
        }
    }

    /// Whether the agent runs a tool, which may take long without any output.
    pub(super) fn tool_runs(&self) -> bool {
        !self.running.is_empty()
    }

    fn go_on(&mut self) {
        (self.works, self.pauses) = (true, false);
    }

    /// The service has ended a call of the client. One that it ends in the same bytes is never taken.
    fn end(&mut self, call: &Text<'_>) {
        let call = call.to_string();
        let made = self.calls.len();
        self.calls.retain(|it| it.id != call);
        if self.calls.len() == made {
            self.ended.push(call);
        }
    }
}
