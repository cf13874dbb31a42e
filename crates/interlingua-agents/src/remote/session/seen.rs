//! What the session has to know of the entries of a run, on their way to the consumer.

use std::convert::Infallible;

use interlingua::event::{Data, Executor, Outcome};
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
    /// The calls that the service has ended.
    pub(super) ended: Vec<String>,
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
                let known = |new: &Option<interlingua::json::Text<'_>>,
                             old: &mut Option<String>| {
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
            Data::ToolEnded(ended) if ended.executor == Executor::Client => {
                self.ended.push(ended.call.to_string());
            }
            Data::TurnStarted(_) => self.in_turn = true,
            Data::TurnEnded(ended) => {
                (self.in_turn, self.pauses) = (false, false);
                self.outcome = Some(ended.outcome.clone());
            }
            Data::BlockStarted(_)
            | Data::BlockDelta(_)
            | Data::Block(_)
            | Data::MessageStarted(_)
            | Data::ToolStarted(_)
            | Data::ToolEnded(_)
            | Data::Artifact(_)
            | Data::Error(_) => self.pauses = false,
            _ => {}
        }
    }
}
