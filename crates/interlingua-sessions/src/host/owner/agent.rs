//! The agent of a session: how it is started, and how it ends.

use interlingua::event::{Event, Notice, Outcome, Severity};
use interlingua::json::Text;
use interlingua_agents::{Session, Stop};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

use super::{Live, Owner};
use crate::host::delivery::{self, Turn};
use crate::host::observation::{Observed, updates};
use crate::host::{Logs, Prepared, history};
use crate::{CommandState, CommandUpdate, Commit, Error, IdempotencyKey, Lines, Patch, State};

impl Owner {
    /// Starts the agent, because a prompt waits.
    pub(super) async fn start_agent(&mut self, slot: OwnedSemaphorePermit) -> Result<(), Error> {
        self.until_lost_agent_ended().await;
        let launcher = self.shared.launcher.clone();
        let needs_log = launcher.needs_log(&self.record);
        let remembers =
            self.record.native_ids.is_empty() || launcher.remembers(&self.record) != Some(false);
        let keeps_lines = needs_log || !remembers;
        let stored = match self.stored_log(&self.record, keeps_lines).await {
            Err(damaged @ Error::Damaged { .. }) => return self.refuse_prompts(&damaged).await,
            read => read?,
        };
        // What the agent has forgotten began in the session that this one continues.
        let earlier = if keeps_lines { self.log_of_earlier().await } else { Ok(Vec::new()) };
        let earlier = match earlier {
            Err(damaged @ Error::Damaged { .. }) => {
                return self.fail_prompt(stored.reader, &damaged.to_string()).await;
            }
            read => read?,
        };
        let logs = Logs { own: stored.lines, earlier };
        let mut record = self.record.clone();
        if !remembers {
            self.history = Some(history::of(&record, &logs)?);
            record.native_ids.clear();
        }
        match launcher.prepare(&record, &logs) {
            Ok(prepared) => self.start(prepared, stored.reader, slot).await?,
            Err(reason) => return self.fail_prompt(stored.reader, &reason).await,
        }
        if let Some(live) = self.agent.as_ref().filter(|_| !remembers) {
            // A session that is ending takes no more.
            let _ = live.handle.emit(forgotten()).await;
        }
        Ok(())
    }

    /// The log of the session that this one continues.
    async fn log_of_earlier(&self) -> Result<Vec<u8>, Error> {
        let Some(earlier) = &self.record.continues else { return Ok(Vec::new()) };
        match self.loaded(earlier).await? {
            Some(record) => Ok(self.stored_log(&record, true).await?.lines),
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
                let (pause, ends) = (None, false);
                let live = Live { handle, entries, requests, pause, ends, _slot: slot };
                self.agent = Some(live);
                Ok(())
            }
            Err(error) => {
                let reason = error.to_string();
                let stored = self.stored_log(&self.record, false).await?;
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
        let events = delivery::turn_of(&prompt.results, Outcome::Failed, reason);
        let entries = self.emitted(reader, events);
        let state = CommandState::Refused { reason: reason.to_owned() };
        let patch = Patch { state: Some(self.state()), ..Patch::default() };
        let (sequence, commit) = (Some(self.next), Commit { entries, patch, ..Commit::default() });
        self.end_commands(prompt.keys, &state, sequence, commit).await
    }

    /// Refuses the prompts that wait, because their turns cannot be appended to a damaged log.
    async fn refuse_prompts(&mut self, damaged: &Error) -> Result<(), Error> {
        let keys: Vec<_> = self.prompts.drain(..).flat_map(|prompt| prompt.keys).collect();
        let state = CommandState::Refused { reason: damaged.to_string() };
        let patch = Patch { state: Some(self.state()), ..Patch::default() };
        let (sequence, commit) = (Some(self.next), Commit { patch, ..Commit::default() });
        self.end_commands(keys, &state, sequence, commit).await
    }

    /// Stores a change with what became of commands in the end, and answers those who wait for them.
    pub(super) async fn end_commands(
        &mut self,
        keys: Vec<IdempotencyKey>,
        state: &CommandState,
        sequence: Option<u64>,
        mut commit: Commit,
    ) -> Result<(), Error> {
        commit.commands.extend(updates(&keys, state, sequence));
        self.commit(commit).await?;
        for key in keys {
            self.answered(key, state.clone(), sequence);
        }
        Ok(())
    }

    /// After the last entry of the agent's session.
    pub(super) async fn agent_ended(&mut self) -> Result<(), Error> {
        self.agent = None;
        self.note_pause();
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

    /// Stores what an agent still emits that was asked to end.
    pub(super) async fn until_agent_ended(&mut self) -> Result<(), Error> {
        if let Some(mut live) = self.agent.take() {
            while let Some(batch) = live.entries.next().await {
                self.store_batch(&batch).await?;
            }
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
        self.note_pause();
    }

    /// Ends the agent, and deletes the session. If it cannot be deleted, it goes on without its agent.
    pub(super) async fn delete(
        &mut self,
        deleted: oneshot::Sender<Result<bool, Error>>,
    ) -> Result<(), Error> {
        let gone = Error::NotFound(self.id.clone());
        if deleted.is_closed() {
            // The sender gave up waiting, and tried to delete the session without its owner.
            return self.loaded(&self.id).await?.map(drop).ok_or(gone);
        }
        self.stop_agent().await;
        // The session that it continues can be continued by another one at once.
        self.until_lost_agent_ended().await;
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
        // A session that continues this one begins with the agent's own session at once.
        self.until_lost_agent_ended().await;
        self.prompts.clear();
        self.late.clear();
        self.current = None;
        if let Some(live) = &self.agent {
            let _ = live.handle.close().await;
            self.until_agent_ended().await?;
        } else {
            let entries = match self.stored_log(&self.record, false).await {
                Ok(stored) => self.finished(stored.reader),
                // Nothing is appended to a damaged log, not even its end.
                Err(Error::Damaged { .. }) => Lines::default(),
                Err(error) => return Err(error),
            };
            self.commit(Commit { entries, ..Commit::default() }).await?;
        }
        // It took effect with the last entry, which ends the session.
        let (state, sequence) = (CommandState::Delivered, Some(self.next.saturating_sub(1)));
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
        if let Some(live) = &self.agent {
            // A turn that waits for the client goes on with the next host.
            let why = match self.observed.waits_for_client() {
                true => Stop::Suspended,
                false => Stop::GaveUp("the server was shut down".to_owned()),
            };
            let _ = live.handle.stop(why).await;
            self.until_agent_ended().await?;
        }
        // A prompt that the agent was not given still waits.
        if let Some(prompt) = self.current.take()
            && !self.observed.turn.may_be_known()
        {
            self.observed.turn = Turn::Resting;
            let commands = updates(&prompt.keys, &CommandState::Accepted, None).collect();
            self.prompts.push_front(prompt);
            let patch = Patch { state: Some(self.state()), ..Patch::default() };
            self.commit(Commit { patch, commands, ..Commit::default() }).await?;
        }
        self.note_pause();
        Ok(())
    }
}

/// The notice that the agent has forgotten the session.
fn forgotten() -> Event<'static> {
    let text = Text::plain(
        "the agent has lost its own record of this session, so a new one of its own begins, with the history that this log knows",
    );
    Event::new(Notice { severity: Severity::Warning, text })
}
