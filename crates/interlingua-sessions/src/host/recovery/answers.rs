//! What became of answers to calls of the client that an agent was being given when it was lost.
//!
//! A *live* answer is for an agent that waits, a *late* one for an agent that was lost while it did. Neither is
//! given twice.

use interlingua::event::Event;
use interlingua_agents::{CallOutcome, LateResult};

use crate::host::Received;
use crate::host::client_calls;
use crate::host::command::Command;
use crate::host::owner::Owner;
use crate::log::{Intent, StoredLog};
use crate::{CommandState, IdempotencyKey, StoredCommand};

/// The cause of a turn of whose agent it is not known whether it has an answer.
const UNKNOWN: &str = "delivery unknown: the process that ran the agent ended while the agent was given the answer to a \
                       call, and the agent's own files do not decide whether it was received";

/// What became of a live answer.
pub(super) struct LiveAnswer {
    pub(super) state: CommandState,
    pub(super) sequence: Option<u64>,
    /// The end of the call that the log does not have.
    pub(super) ended: Option<Event<'static>>,
}

impl LiveAnswer {
    /// Why the turn ends, if it is not known whether the agent has the answer.
    pub(super) fn cause(&self) -> Option<&'static str> {
        matches!(self.state, CommandState::Unknown { .. }).then_some(UNKNOWN)
    }
}

impl Owner {
    /// What became of an answer that a live agent was being given. `None` if the command is something else, or for a
    /// call that has ended with another answer.
    pub(super) fn live_answer(&self, command: &Command, stored: &StoredLog) -> Option<LiveAnswer> {
        let (call, outcome) = client_calls::outcome_of(command)?;
        let (calls, sequence) = (&stored.client_calls, Some(self.next));
        // The answer was stored, and only what became of its command was not.
        if calls.has_ended_with(call, &outcome) {
            return Some(LiveAnswer { state: CommandState::Delivered, sequence, ended: None });
        }
        if !calls.is_open(call) {
            return None;
        }
        // What ended the turn was emitted before the answer was given, or the log would have the end of the call.
        let received = match stored.has_open_turn {
            true => self.received_result(&outcome, calls.made_at(call)),
            false => Received::No,
        };
        let ended = Some(client_calls::end_of(call, &outcome));
        Some(match received {
            Received::No => {
                LiveAnswer { state: CommandState::Accepted, sequence: None, ended: None }
            }
            Received::Yes => LiveAnswer { state: CommandState::Delivered, sequence, ended },
            Received::Unknown => {
                let state = CommandState::Unknown { reason: UNKNOWN.to_owned() };
                LiveAnswer { state, sequence, ended }
            }
        })
    }

    /// Whether the agent received the result of a call after a time.
    fn received_result(&self, outcome: &CallOutcome, since: Option<u64>) -> Received {
        let launcher = &self.shared.launcher;
        since.map_or(Received::Unknown, |at| launcher.received(&self.record, &outcome.trace(), at))
    }

    /// Whether the agent received a prompt, or the late results that it gives, which some agents take in the
    /// places of their calls.
    pub(super) fn received_as(
        &self,
        prompt: &str,
        late: &[LateResult],
        intent: Option<&Intent>,
    ) -> Received {
        let received = self.received(prompt, intent);
        if received != Received::No {
            return received;
        }
        let since = intent.and_then(|intent| intent.at);
        let placed: Vec<_> =
            late.iter().map(|result| self.received_result(&result.outcome, since)).collect();
        let most_certain = [Received::Yes, Received::Unknown].into_iter();
        most_certain.into_iter().find(|it| placed.contains(it)).unwrap_or(Received::No)
    }
}

/// Answers to calls of the client whose agent was lost before it got them.
#[derive(Default)]
pub(super) struct LateAnswers {
    pub(super) keys: Vec<IdempotencyKey>,
    pub(super) results: Vec<LateResult>,
    /// They were about to be given to the agent.
    pub(super) intent: Option<Intent>,
}

impl LateAnswers {
    /// The results that were given with a command, if it is one of them.
    pub(super) fn of_key(&self, key: &IdempotencyKey) -> &[LateResult] {
        if self.keys.contains(key) { &self.results } else { &[] }
    }

    /// The answers among the commands that were being executed.
    pub(super) fn of(delivering: &[StoredCommand], stored: &StoredLog) -> Self {
        let mut late = Self::default();
        for command in delivering {
            let read = serde_json::from_value::<Command>(command.body.clone()).ok();
            let answer = read.as_ref().and_then(client_calls::outcome_of);
            let Some((call, outcome)) = answer else { continue };
            if stored.client_calls.is_open(call) {
                late.keys.push(command.acknowledgement.key.clone());
                late.results.extend(stored.client_calls.late(call, outcome));
            }
        }
        let is_theirs = |intent: &&Intent| late.keys.iter().any(|key| key.as_str() == intent.key);
        late.intent = stored.intent.as_ref().filter(is_theirs).cloned();
        late
    }
}
