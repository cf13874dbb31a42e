//! The agent of a session: how it is started, and how it ends.

use interlingua_agents::{Session, Stop};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::{Live, Owner};
use crate::host::delivery::{self, Turn};
use crate::host::observation::Observed;
use crate::host::{Logs, Prepared};
use crate::{CommandState, CommandUpdate, Commit, Error, IdempotencyKey, Lines, Patch, State, log};

impl Owner {
    /// Starts the agent, because a prompt waits.
    pub(super) async fn start_agent(&mut self, slot: OwnedSemaphorePermit) -> Result<(), Error> {
        self.until_lost_agent_ended().await;
        let needs_log = self.shared.launcher.needs_log(&self.record);
        let stored = match log::read(&*self.shared.store, &self.record, needs_log).await {
            Err(damaged @ Error::Damaged { .. }) => return self.refuse_prompts(&damaged).await,
            read => read?,
        };
        let earlier = if needs_log { self.log_of_earlier().await } else { Ok(Vec::new()) };
        let earlier = match earlier {
            Err(damaged @ Error::Damaged { .. }) => {
                return self.fail_prompt(stored.reader, &damaged.to_string()).await;
            }
            read => read?,
        };
        let logs = Logs { own: stored.lines, earlier };
        match self.shared.launcher.prepare(&self.record, &logs) {
            Ok(prepared) => self.start(prepared, stored.reader, slot).await,
            Err(reason) => self.fail_prompt(stored.reader, &reason).await,
        }
    }

    /// The log of the session that this one continues.
    async fn log_of_earlier(&self) -> Result<Vec<u8>, Error> {
        let Some(earlier) = &self.record.continues else { return Ok(Vec::new()) };
        match self.shared.store.load(earlier).await? {
            Some(record) => Ok(log::read(&*self.shared.store, &record, true).await?.lines),
            None => Ok(Vec::new()),
        }
    }

    async fn start(
        &mut self,
        Prepared { agent, mut options }: Prepared,
        reader: interlingua::Reader,
        slot: OwnedSemaphorePermit,
    ) -> Result<(), Error> {
        let (sender, requests) = mpsc::unbounded_channel();
        options.input_requests = Some(sender).filter(|_| self.shared.limits.attended);
        options.read.id_seed = Some(self.record.id_seed);
        options.reader = Some(reader);
        match agent.start(options).await {
            Ok(Session { handle, entries, .. }) => {
                let (rests_since, ends) = (None, false);
                let live = Live { handle, entries, requests, rests_since, ends, _slot: slot };
                self.agent = Some(live);
                Ok(())
            }
            Err(error) => {
                let reason = error.to_string();
                let stored = log::read(&*self.shared.store, &self.record, false).await?;
                self.fail_prompt(stored.reader, &reason).await
            }
        }
    }

    /// Ends the turn of the next prompt, because the agent cannot be started.
    async fn fail_prompt(
        &mut self,
        reader: interlingua::Reader,
        reason: &str,
    ) -> Result<(), Error> {
        let Some(prompt) = self.prompts.pop_front() else { return Ok(()) };
        let entries = self.emitted(reader, delivery::failed_turn(reason));
        let state = CommandState::Refused { reason: reason.to_owned() };
        let patch = Patch { state: Some(self.state()), ..Patch::default() };
        let (key, sequence) = (prompt.key, Some(self.next));
        let update = CommandUpdate { key: key.clone(), state: state.clone(), sequence };
        self.commit(Commit { entries, patch, commands: vec![update] }).await?;
        self.answered(key, state, sequence);
        Ok(())
    }

    /// Refuses the prompts that wait, because their turns cannot be appended to a damaged log.
    async fn refuse_prompts(&mut self, damaged: &Error) -> Result<(), Error> {
        let keys: Vec<_> = self.prompts.drain(..).map(|prompt| prompt.key).collect();
        let (state, sequence) =
            (CommandState::Refused { reason: damaged.to_string() }, Some(self.next));
        let update = |key: &IdempotencyKey| {
            let (key, state) = (key.clone(), state.clone());
            CommandUpdate { key, state, sequence }
        };
        let commands = keys.iter().map(update).collect();
        let patch = Patch { state: Some(self.state()), ..Patch::default() };
        self.commit(Commit { patch, commands, ..Commit::default() }).await?;
        for key in keys {
            self.answered(key, state.clone(), sequence);
        }
        Ok(())
    }

    /// After the last entry of the agent's session.
    pub(super) async fn agent_ended(&mut self) -> Result<(), Error> {
        self.agent = None;
        self.note_rest();
        // The intent of this prompt was not stored, so it was not sent.
        if let Some(prompt) = self.current.take()
            && matches!(self.observed.turn, Turn::Announced(_))
        {
            self.prompts.push_front(prompt);
            self.observed.turn = Turn::Resting;
        }
        if self.observed.turn != Turn::Resting {
            self.close_turn("the agent's session ended in the middle of the turn").await?;
        }
        Ok(())
    }

    /// Ends the agent when its work is done.
    pub(super) async fn close_agent(&mut self) {
        if let Some(live) = &mut self.agent {
            live.ends = true;
            let _ = live.handle.finish().await;
        }
    }

    /// Ends the agent at once, and discards what it still emits.
    pub(super) async fn stop_agent(&mut self) {
        if let Some(Live { handle, entries, .. }) = self.agent.take() {
            let _ = handle.stop(Stop::ConsumerGone).await;
            drop(handle);
            entries.end().await;
        }
        self.note_rest();
    }

    /// Ends the agent, and deletes the session. If it cannot be deleted, it goes on without its agent.
    pub(super) async fn delete(
        &mut self,
        deleted: oneshot::Sender<Result<bool, Error>>,
    ) -> Result<(), Error> {
        let gone = Error::NotFound(self.id.clone());
        if deleted.is_closed() {
            // The sender gave up waiting, and tried to delete the session without its owner.
            return self.shared.store.load(&self.id).await?.map(drop).ok_or(gone);
        }
        self.stop_agent().await;
        let result = self.shared.store.delete(&self.id).await;
        let is_deleted = result.is_ok();
        let _ = deleted.send(result);
        if is_deleted {
            return Err(gone);
        }
        self.agent_ended().await
    }

    /// Closes the session: its agent and its log. The store refuses the commands that wait.
    pub(super) async fn close(&mut self, key: IdempotencyKey) -> Result<(), Error> {
        self.prompts.clear();
        self.current = None;
        if let Some(mut live) = self.agent.take() {
            let _ = live.handle.close().await;
            while let Some(batch) = live.entries.next().await {
                self.store_batch(&batch).await?;
            }
        } else {
            let entries = match log::read(&*self.shared.store, &self.record, false).await {
                Ok(stored) => self.finished(stored.reader),
                // Nothing is appended to a damaged log, not even its end.
                Err(Error::Damaged { .. }) => Lines::default(),
                Err(error) => return Err(error),
            };
            self.commit(Commit { entries, ..Commit::default() }).await?;
        }
        let (state, sequence) = (CommandState::Delivered, Some(self.next));
        let update = CommandUpdate { key: key.clone(), state: state.clone(), sequence };
        let patch = Patch { state: Some(State::Ended), ..Patch::default() };
        self.commit(Commit { patch, commands: vec![update], ..Commit::default() }).await?;
        self.observed = Observed::resting();
        self.answered(key, state, sequence);
        // Those who wait for other commands find in the store what became of them.
        self.open.clear();
        Ok(())
    }

    /// Ends the agent because the host is shut down. Prompts that wait are sent by the next host, and keep
    /// their session from resting until then.
    pub(super) async fn shut_down(&mut self) -> Result<(), Error> {
        if let Some(mut live) = self.agent.take() {
            let why = Stop::GaveUp("the server was shut down".to_owned());
            let _ = live.handle.stop(why).await;
            while let Some(batch) = live.entries.next().await {
                self.store_batch(&batch).await?;
            }
        }
        // A prompt that the agent was not given still waits.
        if let Some(prompt) = self.current.take()
            && !self.observed.turn.may_be_known()
        {
            self.observed.turn = Turn::Resting;
            let (key, state, sequence) = (prompt.key.clone(), CommandState::Accepted, None);
            self.prompts.push_front(prompt);
            let commands = vec![CommandUpdate { key, state, sequence }];
            let patch = Patch { state: Some(self.state()), ..Patch::default() };
            self.commit(Commit { patch, commands, ..Commit::default() }).await?;
        }
        self.note_rest();
        Ok(())
    }
}
