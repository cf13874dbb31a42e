//! Late answers: what the client answers to calls whose agent was lost while it waited.

use interlingua::event::Outcome;
use interlingua_agents::{CallOutcome, LateResult, Refused};

use super::Owner;
use super::commands::{SUPERSEDED, refused_as};
use crate::host::delivery::{self, QueuedPrompt, Turn};
use crate::{CommandState, CommandUpdate, Commit, Error, IdempotencyKey, Patch, Waiting};

/// What an interrupted call ends with.
const INTERRUPTED: &str = "the user interrupted the turn";

/// The end of a call, of which the agent learns when no other one waits.
pub(super) struct LateAnswer {
    /// The command that answers it, which stays accepted until then. A call that a prompt supersedes has none.
    key: Option<IdempotencyKey>,
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

    /// What waits for an answer, and the calls whose late answers were taken.
    pub(super) fn pending_requests(&self) -> Vec<String> {
        let waiting = self.observed.waiting.iter().map(Waiting::request);
        let taken = self.late.iter().map(|late| &*late.result.call);
        waiting.chain(taken).map(str::to_owned).collect()
    }

    /// Takes a late answer.
    pub(super) async fn answer_late(
        &mut self,
        key: IdempotencyKey,
        result: LateResult,
    ) -> Result<(), Error> {
        self.observed.waiting.retain(|waiting| waiting.request() != result.call);
        self.late.push(LateAnswer { key: Some(key), result });
        self.give_late_answers();
        self.store_state().await
    }

    /// Takes an answer that the agent has refused. If it was lost in this moment, and the end of its turn was not
    /// stored yet, the answer is late.
    pub(super) async fn answer_lost(
        &mut self,
        key: IdempotencyKey,
        call: &str,
        outcome: CallOutcome,
        refused: &Refused,
    ) -> Result<(), Error> {
        if self.observed.client_calls.is_open(call) {
            if *refused == Refused::Ended {
                self.until_agent_ended().await?;
                self.agent_ended().await?;
            }
            // What it emits from now on is not awaited: it may be in the middle of a turn.
            while let Some(batch) = self.agent.as_mut().and_then(|live| live.entries.try_next()) {
                self.append(batch).await?;
            }
        }
        match self.late_result(call, outcome) {
            Some(result) => {
                self.mark(&key, CommandState::Accepted, None).await?;
                self.answer_late(key, result).await
            }
            None => self.settle(key, refused_as(&refused.to_string())).await,
        }
    }

    /// Ends calls that wait for late answers, because a queued prompt supersedes them. Returns the commands whose
    /// answers it supersedes, too.
    pub(super) fn supersede_late(&mut self, requests: &[String]) -> Vec<IdempotencyKey> {
        let outcome = CallOutcome::Denied(SUPERSEDED.to_owned());
        let refused = self.end_late_calls(&outcome, |call| requests.iter().any(|it| it == call));
        self.give_late_answers();
        refused
    }

    /// When no call waits any more, the agent is given all answers: with a prompt of their own, or with the
    /// next one if it has superseded them all.
    fn give_late_answers(&mut self) {
        if !self.observed.waiting.is_empty() || self.late.is_empty() {
            return;
        }
        let answers = std::mem::take(&mut self.late).into_iter();
        let (keys, results): (Vec<_>, Vec<_>) = answers.map(|late| (late.key, late.result)).unzip();
        let keys: Vec<_> = keys.into_iter().flatten().collect();
        match self.prompts.front_mut() {
            Some(next) if keys.is_empty() => next.results.extend(results),
            _ => self.prompts.push_front(QueuedPrompt { keys, text: String::new(), results }),
        }
    }

    /// Ends calls with an outcome, whether they wait or have a late answer. Returns the commands whose
    /// answers are not given.
    fn end_late_calls(
        &mut self,
        outcome: &CallOutcome,
        ends: impl Fn(&str) -> bool,
    ) -> Vec<IdempotencyKey> {
        let (mut ended, mut refused) = (Vec::new(), Vec::new());
        let calls = &self.observed.client_calls;
        self.observed.waiting.retain(|waiting| {
            let result = calls.late(waiting.request(), outcome.clone());
            let ended_now = result.filter(|_| ends(waiting.request()));
            let stays = ended_now.is_none();
            ended.extend(ended_now.map(|result| LateAnswer { key: None, result }));
            stays
        });
        for late in self.late.iter_mut().filter(|late| ends(&late.result.call)) {
            refused.extend(late.key.take());
            late.result.outcome = outcome.clone();
        }
        self.late.splice(0..0, ended);
        refused
    }

    /// Interrupts a turn that waits for late answers.
    pub(super) async fn interrupt_late(&mut self, key: IdempotencyKey) -> Result<(), Error> {
        // Until it has ended, it numbers the entries.
        self.until_agent_ended().await?;
        let stored = self.stored_log(&self.record, false).await?;
        let outcome = CallOutcome::Cancelled(INTERRUPTED.to_owned());
        let refused = self.end_late_calls(&outcome, |_| true);
        let results: Vec<_> =
            std::mem::take(&mut self.late).into_iter().map(|late| late.result).collect();
        let events = delivery::turn_of(&results, Outcome::Cancelled, INTERRUPTED);
        let entries = self.emitted(stored.reader, events);
        let patch = Patch { state: Some(self.state()), ..Patch::default() };
        // It takes effect with the first of the entries, in the same commit.
        let (state, at) = (CommandState::Delivered, self.next);
        let interrupt =
            CommandUpdate { key: key.clone(), state: state.clone(), sequence: Some(at) };
        let commit = Commit { entries, patch, commands: vec![interrupt], ..Commit::default() };
        self.end_commands(refused, &refused_as(INTERRUPTED), Some(at), commit).await?;
        self.answered(key, state, Some(at));
        Ok(())
    }
}
