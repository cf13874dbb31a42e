//! Late answers: what the client answers to calls whose agent was lost while it waited.

use interlingua::event::Outcome;
use interlingua_agents::{CallOutcome, LateResult};

use super::Owner;
use crate::host::delivery::{self, QueuedPrompt, Turn};
use crate::{CommandState, Commit, Error, IdempotencyKey, Patch, State, Waiting, log};

/// What an interrupted call ends with.
const INTERRUPTED: &str = "the user interrupted the turn";

/// An answer that was taken. Its command stays accepted until the agent gets it.
pub(super) struct LateAnswer {
    key: IdempotencyKey,
    result: LateResult,
}

impl Owner {
    /// The late answer to a call that still waits for one.
    pub(super) fn late_result(&self, call: &str, outcome: CallOutcome) -> Option<LateResult> {
        let rests = self.observed.turn == Turn::Resting;
        let waits = rests && self.observed.waiting.iter().any(|it| it.request() == call);
        self.observed.client_calls.late(call, outcome).filter(|_| waits)
    }

    /// Whether a call has a late answer that its agent did not get yet.
    pub(super) fn has_late_answer(&self, call: &str) -> bool {
        let queued = self.prompts.iter().chain(&self.current).flat_map(|prompt| &prompt.results);
        let mut taken = self.late.iter().map(|late| &late.result).chain(queued);
        taken.any(|result| result.call == call)
    }

    /// Whether calls wait whose agent was lost.
    pub(super) fn awaits_late_answers(&self) -> bool {
        self.observed.turn == Turn::Resting && !self.observed.waiting.is_empty()
    }

    /// Takes a late answer. When no other call waits, the agent is given all of them.
    pub(super) async fn answer_late(
        &mut self,
        key: IdempotencyKey,
        result: LateResult,
    ) -> Result<(), Error> {
        self.observed.waiting.retain(|waiting| waiting.request() != result.call);
        self.late.push(LateAnswer { key, result });
        if self.observed.waiting.is_empty() {
            let answers = std::mem::take(&mut self.late).into_iter();
            let (keys, results) = answers.map(|late| (late.key, late.result)).unzip();
            self.prompts.push_front(QueuedPrompt { keys, text: String::new(), results });
        }
        self.store_state().await
    }

    /// Ends all calls that wait, and refuses the answers that were taken. Returns the ends of the calls.
    pub(super) async fn end_late_calls(
        &mut self,
        outcome: &CallOutcome,
    ) -> Result<Vec<LateResult>, Error> {
        let calls = self.observed.waiting.iter().filter_map(|waiting| match waiting {
            Waiting::ClientTool { request, .. } => {
                self.observed.client_calls.late(request, outcome.clone())
            }
            _ => None,
        });
        let mut results: Vec<_> = calls.collect();
        self.observed.waiting.clear();
        for LateAnswer { key, result } in std::mem::take(&mut self.late) {
            results.push(LateResult { outcome: outcome.clone(), ..result });
            let reason = outcome.text().0.into_owned();
            self.settle(key, CommandState::Refused { reason }).await?;
        }
        Ok(results)
    }

    /// Interrupts a turn that waits for late answers.
    pub(super) async fn interrupt_late(&mut self, key: IdempotencyKey) -> Result<(), Error> {
        let outcome = CallOutcome::Cancelled(INTERRUPTED.to_owned());
        let results = self.end_late_calls(&outcome).await?;
        let events = delivery::turn_of(&results, Outcome::Cancelled, INTERRUPTED);
        // Until it has ended, it numbers the entries.
        self.until_agent_ended().await?;
        let stored = log::read(&*self.shared.store, &self.record, false).await?;
        let entries = self.emitted(stored.reader, events);
        let patch = Patch { state: Some(State::Idle), ..Patch::default() };
        self.commit(Commit { entries, patch, ..Commit::default() }).await?;
        self.settle(key, CommandState::Delivered).await
    }
}
