//! What each command does, and who learns what became of it.

use interlingua_agents::Refused;
use interlingua_agents::permission::Decision;

use super::{Live, Owner};
use crate::host::client_calls;
use crate::host::command::{Command, DECLINED, Reaction, WhilePending};
use crate::host::delivery::{QueuedPrompt, Turn};
use crate::{
    Acknowledgement, CommandState, CommandUpdate, Commit, Error, IdempotencyKey, Patch, Queued,
    State, Waiting,
};

/// What the agent learns of a request that a new prompt supersedes.
pub(super) const SUPERSEDED: &str = "the user sent a new prompt instead of an answer";

/// The number of prompts that may wait in a session.
const MAX_QUEUED: usize = 100;

impl Owner {
    /// Executes the commands that were stored since the last call.
    pub(super) async fn take_commands(&mut self) -> Result<(), Error> {
        for command in self.open_commands().await? {
            // A session that was closed by one of them takes no more.
            if self.record.state == State::Ended {
                break;
            }
            if command.position < self.taken {
                continue;
            }
            self.taken = command.position + 1;
            let key = command.acknowledgement.key.clone();
            self.open.insert(key.clone(), command.acknowledgement);
            match (serde_json::from_value(command.body), command.supersedes) {
                (Ok(Command::Prompt { text, .. }), Some(supersedes)) => {
                    self.queue_again(QueuedPrompt::new(key, text), &supersedes).await?;
                }
                (Ok(command), _) => self.execute(key, command).await?,
                (Err(problem), _) => {
                    let reason = format!("this is not a command: {problem}");
                    self.settle(key, CommandState::Refused { reason }).await?;
                }
            }
        }
        Ok(())
    }

    async fn execute(&mut self, key: IdempotencyKey, command: Command) -> Result<(), Error> {
        if let Some((call, outcome)) = client_calls::outcome_of(&command) {
            if let Some(result) = self.late_result(call, outcome) {
                return self.answer_late(key, result).await;
            }
            if self.has_late_answer(call) {
                let reason = format!("the call `{call}` was answered already");
                return self.settle(key, CommandState::Refused { reason }).await;
            }
        }
        match command {
            Command::Interrupt if self.awaits_late_answers() => self.interrupt_late(key).await,
            Command::Prompt { text, joins: true, .. } if self.observed.turn == Turn::Running => {
                self.mark(&key, CommandState::Delivering, None).await?;
                let joined = match &self.agent {
                    Some(live) => live.handle.join(text).await,
                    None => Err(Refused::NoTurn),
                };
                self.settle_answered(key, joined).await
            }
            Command::Prompt { text, while_pending, .. } => {
                self.queue(key, text, while_pending).await
            }
            Command::Close => self.close(key).await,
            command => {
                self.mark(&key, CommandState::Delivering, None).await?;
                let answered = client_calls::outcome_of(&command)
                    .map(|(call, outcome)| (call.to_owned(), outcome));
                match (self.act(command).await, answered) {
                    (Ok(at), Some((call, _))) => {
                        self.append_until(at).await?;
                        self.append_end_of(&call).await?;
                        self.settle_at(key, CommandState::Delivered, at).await
                    }
                    (Err(refused), Some((call, outcome))) => {
                        self.answer_lost(key, &call, outcome, &refused).await
                    }
                    (answer, None) => self.settle_answered(key, answer).await,
                }
            }
        }
    }

    /// Queues a prompt, unless it may not wait for what is pending.
    async fn queue(
        &mut self,
        key: IdempotencyKey,
        text: String,
        while_pending: WhilePending,
    ) -> Result<(), Error> {
        if text.trim().is_empty() {
            let reason = Refused::EmptyPrompt.to_string();
            return self.settle(key, CommandState::Refused { reason }).await;
        }
        if self.prompts.len() >= MAX_QUEUED {
            let reason = format!("{MAX_QUEUED} prompts wait already: send it again later");
            return self.settle(key, CommandState::Refused { reason }).await;
        }
        let supersedes = match while_pending {
            WhilePending::Reject if !self.observed.waiting.is_empty() => {
                let reason = "the session waits for an answer: give it, or send the prompt with \
                              `whilePending` set to `queue` or `supersede`";
                return self.settle(key, refused_as(reason)).await;
            }
            WhilePending::Supersede => self.pending_requests(),
            WhilePending::Queue | WhilePending::Reject => Vec::new(),
        };
        self.prompts.push_back(QueuedPrompt::new(key.clone(), text));
        let is_late = self.awaits_late_answers();
        let refused = if is_late { self.supersede_late(&supersedes) } else { Vec::new() };
        // From here on, the prompt is neither refused, nor does it supersede what waits later.
        let queued = vec![Queued { key, supersedes: supersedes.clone() }];
        let patch = Patch { state: self.changed_state(), ..Patch::default() };
        self.end_superseded(refused, Commit { patch, queued, ..Commit::default() }).await?;
        if !is_late {
            self.supersede_live(&supersedes).await;
        }
        Ok(())
    }

    /// Queues a prompt that was queued by an earlier owner of the session.
    async fn queue_again(
        &mut self,
        prompt: QueuedPrompt,
        supersedes: &[String],
    ) -> Result<(), Error> {
        self.prompts.push_back(prompt);
        let refused = self.supersede_late(supersedes);
        let patch = Patch { state: self.changed_state(), ..Patch::default() };
        if refused.is_empty() && patch.is_empty() {
            return Ok(());
        }
        self.end_superseded(refused, Commit { patch, ..Commit::default() }).await
    }

    /// Stores that a prompt is queued, and that the answers are refused which it supersedes.
    async fn end_superseded(
        &mut self,
        refused: Vec<IdempotencyKey>,
        commit: Commit,
    ) -> Result<(), Error> {
        let (state, sequence) = (refused_as(SUPERSEDED), Some(self.next));
        self.end_commands(refused, &state, sequence, commit).await
    }

    /// Answers requests of a live agent as superseded.
    async fn supersede_live(&mut self, requests: &[String]) {
        let Some(live) = &self.agent else { return };
        let waiting = self.observed.waiting.iter();
        for waiting in waiting.filter(|it| requests.iter().any(|id| id == it.request())) {
            // What has been answered in the meantime does not matter.
            let _ = match waiting {
                Waiting::Decision { request } => {
                    let deny = Decision::Deny(SUPERSEDED.to_owned());
                    live.handle.decide(request, deny).await
                }
                waiting => live.handle.decline(waiting.request(), SUPERSEDED).await,
            };
        }
    }

    /// Does what a command asks for, at once. Returns the number of the first entry after that.
    async fn act(&mut self, command: Command) -> Result<u64, Refused> {
        let Some(Live { handle, .. }) = &self.agent else { return Err(Refused::NoTurn) };
        match command {
            Command::Decide { request, decision, reason } => match decision.reaction(reason) {
                Reaction::Decide(decision) => handle.decide(&request, decision).await,
                Reaction::Always(always) => handle.allow_always(&request, always).await,
            },
            Command::Answer { request, answer, decline } => {
                let is_call = self.observed.client_calls.is_open(&request);
                // A tool may return nothing, and nothing is no answer to a question.
                let may_be_null = is_call && decline.is_none();
                let reason = decline.unwrap_or_else(|| DECLINED.to_owned());
                match answer.filter(|answer| may_be_null || !answer.is_null()) {
                    Some(answer) => handle.answer(&request, answer).await,
                    None => handle.decline(&request, &reason).await,
                }
            }
            Command::Interrupt => handle.interrupt().await,
            Command::Prompt { .. } | Command::Close => Ok(self.next),
        }
    }

    /// Answers those who wait for a command that was taken.
    pub(super) fn answer_waiters(&mut self) {
        for (key, waiter) in std::mem::take(&mut self.waiters) {
            // A command that is final was answered, or was final before; the store has the answer.
            if let Some(acknowledgement) = self.open.get(&key) {
                let _ = waiter.send(Ok(acknowledgement.clone()));
            }
        }
    }

    /// Notes how far a command got, and at which entry it took effect.
    pub(super) async fn mark(
        &mut self,
        key: &IdempotencyKey,
        state: CommandState,
        sequence: Option<u64>,
    ) -> Result<(), Error> {
        let update = CommandUpdate { key: key.clone(), state, sequence };
        self.commit(Commit { commands: vec![update], ..Commit::default() }).await
    }

    /// Notes what became of a command in the end, and answers those who wait for it.
    pub(super) async fn settle(
        &mut self,
        key: IdempotencyKey,
        state: CommandState,
    ) -> Result<(), Error> {
        self.settle_at(key, state, self.next).await
    }

    /// The same for a command that the agent was given, which took effect at an entry or was refused.
    async fn settle_answered(
        &mut self,
        key: IdempotencyKey,
        answer: Result<u64, Refused>,
    ) -> Result<(), Error> {
        match answer {
            Ok(at) => {
                self.append_until(at).await?;
                self.settle_at(key, CommandState::Delivered, at).await
            }
            Err(refused) => self.settle(key, refused_as(&refused.to_string())).await,
        }
    }

    async fn settle_at(
        &mut self,
        key: IdempotencyKey,
        state: CommandState,
        at: u64,
    ) -> Result<(), Error> {
        self.mark(&key, state.clone(), Some(at)).await?;
        self.answered(key, state, Some(at));
        Ok(())
    }

    pub(super) fn answered(
        &mut self,
        key: IdempotencyKey,
        state: CommandState,
        sequence: Option<u64>,
    ) {
        self.open.remove(&key);
        let acknowledgement = Acknowledgement { key: key.clone(), state, sequence };
        let (answered, others) =
            std::mem::take(&mut self.waiters).into_iter().partition(|(waits, _)| *waits == key);
        self.waiters = others;
        let answered: Vec<_> = answered;
        for (_, waiter) in answered {
            let _ = waiter.send(Ok(acknowledgement.clone()));
        }
    }
}

/// What became of a command that is refused for this reason.
pub(super) fn refused_as(reason: &str) -> CommandState {
    CommandState::Refused { reason: reason.to_owned() }
}
