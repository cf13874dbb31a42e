//! Calls that the model generates again, because their response was requested again.

use super::Calls;
use super::call::{Call, Outcome, key};
use crate::event::{Data, Event, Reason};
use crate::grammar::stream::{Emit, Stream};
use crate::json::Text;

impl Calls {
    /// Lets a call that the model generates again, with the same name and at the same position of
    /// its response, keep its emitted id. `own_name` is the client's own name of its tool, under which
    /// it is emitted, if the client runs it.
    pub(in crate::grammar) fn reclaim(&mut self, event: &mut Event<'_>, own_name: Option<&str>) {
        let Data::ToolStarted(started) = &mut event.data else { return };
        let position = self.positions;
        self.positions += 1;
        let name = started.name.to_plain();
        let name = own_name.unwrap_or(&name);
        let is_same = |key: &u64| match self.calls.get(key) {
            Some(Call::Open(open)) => open.position == position && open.name == *name,
            _ => false,
        };
        let Some(at) = self.unclaimed.iter().position(is_same) else { return };
        let key = self.unclaimed.remove(at);
        let Some(Call::Open(open)) = self.calls.get_mut(&key) else { return };
        (open.epoch, open.reclaimed) = (self.epoch, true);
        let id = open.id.clone();
        if started.call.is_empty() {
            self.unnamed.push_back(id.clone());
            started.call = Text::from(id);
        } else if started.call != *id {
            self.renamed.insert(&started.call, id);
        }
    }

    /// Whether a call was generated again, so that its streamed input would be repeated.
    pub(in crate::grammar) fn is_reclaimed(&self, native: &Text<'_>) -> bool {
        match self.calls.get(&key(&self.renamed.emitted_as(native))) {
            Some(Call::Open(open)) => open.reclaimed,
            _ => false,
        }
    }

    /// Closes the calls that were not generated again.
    pub(in crate::grammar) fn abandon_unclaimed(
        &mut self,
        why: &'static str,
        reason: Reason,
        stream: &mut Stream,
        emit: Emit<'_>,
    ) {
        for key in std::mem::take(&mut self.unclaimed) {
            let open = self.calls.get_mut(&key).and_then(|call| call.end(Outcome::Abandoned, 0));
            if let Some(open) = open {
                self.abandon(*open, why, reason.clone(), stream, emit);
            }
        }
    }
}
