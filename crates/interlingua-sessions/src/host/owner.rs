//! The owner of a session: its loop, and how it stores what happens.

mod agent;
mod commands;
mod late;
mod retries;
mod room;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use interlingua::Batch;
use interlingua::event::Outcome;
use interlingua_agents::{Entries, Handle, InputRequest, Receipt};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};
use tokio::time::Instant;

use super::delivery::{self, QueuedPrompt, Turn};
use super::observation::{Changes, Observed};
use super::room::Pause;
use super::{GUARD_GRACE, Shared};
use crate::{
    Acknowledgement, CommandState, Commit, Error, Fence, IdempotencyKey, Patch, SessionId,
    SessionRecord, State,
};
use late::LateAnswer;
use retries::Retries;

/// The number of entries that are stored in one commit, if so many have arrived.
const MAX_BATCH: u64 = 4096;

/// Why an owner is woken.
#[derive(Debug)]
pub(super) enum Wake {
    /// A command was stored.
    Command { key: IdempotencyKey, acknowledged: oneshot::Sender<Result<Acknowledgement, Error>> },
    /// The host was started, and the session may have been left in the middle of a turn.
    Recover(oneshot::Sender<()>),
    /// The session is to be deleted.
    Delete(oneshot::Sender<Result<bool, Error>>),
    /// Another session needs the place of an agent that rests.
    MakeRoom,
}

/// Owns a session.
pub(super) struct Owner {
    pub(super) shared: Arc<Shared>,
    pub(super) id: SessionId,
    wakes: mpsc::UnboundedReceiver<Wake>,
    shutdown: watch::Receiver<bool>,
    pub(super) record: SessionRecord,
    fence: Fence,
    agent: Option<Live>,
    pub(super) observed: Observed,
    /// The prompts that wait.
    prompts: VecDeque<QueuedPrompt>,
    /// The prompt that is on its way to the agent, until its turn begins.
    current: Option<QueuedPrompt>,
    /// The late answers that were taken, until all calls that waited are answered.
    late: Vec<LateAnswer>,
    /// The commands that were taken and are not final.
    open: HashMap<IdempotencyKey, Acknowledgement>,
    waiters: Vec<(IdempotencyKey, oneshot::Sender<Result<Acknowledgement, Error>>)>,
    /// The commands before this position were taken.
    taken: u64,
    /// What the agent gets with its next prompt, because it has forgotten the session.
    history: Option<String>,
    /// The number of the next entry.
    pub(super) next: u64,
    /// The agent of an earlier owner that was lost may live until then.
    lost_agent: Option<Instant>,
}

/// A live agent.
struct Live {
    handle: Handle,
    entries: Entries,
    requests: mpsc::UnboundedReceiver<InputRequest>,
    /// Why and since when it can do without its process.
    pause: Option<(Pause, Instant)>,
    /// It was asked to end.
    ends: bool,
    _slot: OwnedSemaphorePermit,
}

/// What an owner waited for.
enum News {
    Wake(Wake),
    Entries(Option<Batch>),
    Request(InputRequest),
    /// An agent may be started.
    Slot(OwnedSemaphorePermit),
    /// The agent has rested long enough.
    Idle,
    /// The session has waited for its client for so long that it gives way to others.
    GivesWay,
    /// The agent of an earlier owner has ended.
    LostAgentEnded,
    Shutdown,
}

impl Owner {
    /// Owns a session until it rests.
    pub(super) async fn run(
        shared: Arc<Shared>,
        id: SessionId,
        mut wakes: mpsc::UnboundedReceiver<Wake>,
    ) {
        let mut retries = Retries::new(&shared);
        let (fence, record) = loop {
            match open(&shared, &id).await {
                Ok(opened) => break opened,
                // Senders that wait get the error now. The session is not given up: a turn may have to be closed.
                Err(error @ Error::Failed(_)) if !retries.is_shut_down() => {
                    answer_all(&mut wakes, &error);
                    retries.wait().await;
                }
                Err(error) => return refuse(&shared, &id, &mut wakes, &error),
            }
        };
        let mut owner = Self {
            shutdown: shared.shutdown.subscribe(),
            next: shared.store.watch(&id).borrow().next,
            shared,
            id,
            wakes,
            record,
            fence,
            agent: None,
            observed: Observed::resting(),
            prompts: VecDeque::new(),
            current: None,
            late: Vec::new(),
            open: HashMap::new(),
            waiters: Vec::new(),
            taken: 0,
            history: None,
            lost_agent: fence.follows_lost_owner().then(|| Instant::now() + GUARD_GRACE),
        };
        let served = owner.serve().await;
        if served.is_err() {
            owner.stop_agent().await;
        }
        // Another owner of this process may have taken the session already; its fence is newer, and
        // then this has no effect. If it fails, the session is free when this process ends; and so it is if
        // the next owner still has to wait for the end of a lost agent.
        if owner.lost_agent.is_none() {
            let _ = owner.shared.store.release(&owner.id, owner.fence).await;
        }
        if let Err(error) = served {
            for (_, waiter) in owner.waiters.drain(..) {
                let _ = waiter.send(Err(error.clone()));
            }
            refuse(&owner.shared, &owner.id, &mut owner.wakes, &error);
        }
    }

    async fn serve(&mut self) -> Result<(), Error> {
        self.recover().await?;
        self.take_commands().await?;
        loop {
            self.advance().await;
            self.note_pause();
            let shuts_down = *self.shutdown.borrow();
            let rests = !self.may_begin() || shuts_down;
            if self.agent.is_none() && rests {
                // A prompt that was refused has begun no turn, whose end would be stored.
                if self.record.state != State::Ended {
                    self.store_state().await?;
                }
                // The next owner would not know of a lost agent.
                let may_retire = self.lost_agent.is_none() || shuts_down;
                if may_retire && self.shared.retire(&self.id, &mut self.wakes) {
                    return Ok(());
                }
            }
            match self.wait().await {
                News::Wake(wake) => self.woken(wake).await?,
                News::Entries(Some(batch)) => self.append(batch).await?,
                News::Entries(None) => self.agent_ended().await?,
                News::Request(request) => {
                    self.observed.requested(request);
                    self.store_requests().await?;
                }
                News::Slot(slot) => self.start_agent(slot).await?,
                News::Idle => self.close_agent().await,
                // It is noted before the next news.
                News::GivesWay => {}
                News::LostAgentEnded => self.lost_agent = None,
                News::Shutdown => self.shut_down().await?,
            }
        }
    }

    async fn wait(&mut self) -> News {
        let shuts_down = *self.shutdown.borrow();
        let wants_agent = self.agent.is_none() && self.may_begin() && !shuts_down;
        if wants_agent {
            self.shared.wanting.fetch_add(1, Ordering::SeqCst);
            self.shared.make_room();
        }
        let (idle_at, gives_way_at) = (self.idle_at(), self.gives_way_at());
        let lost_agent = self.lost_agent.filter(|_| !wants_agent);
        let Self { agent, wakes, shutdown, shared, .. } = self;
        let slots = shared.slots.clone();
        let (entries, requests) = match agent {
            Some(live) => (Some(&mut live.entries), Some(&mut live.requests)),
            None => (None, None),
        };
        let news = tokio::select! {
            // Commands come first, so that their senders do not wait for an agent that is started; then the
            // shutdown, for which an agent that prints without a pause must not be waited.
            biased;
            Some(wake) = wakes.recv() => News::Wake(wake),
            _ = shutdown.wait_for(|shutdown| *shutdown) => News::Shutdown,
            batch = next(entries) => News::Entries(batch),
            request = next_request(requests) => News::Request(request),
            Ok(slot) = slots.acquire_owned(), if wants_agent => News::Slot(slot),
            () = until(idle_at) => News::Idle,
            () = until(gives_way_at) => News::GivesWay,
            () = until(lost_agent) => News::LostAgentEnded,
        };
        if wants_agent {
            self.shared.wanting.fetch_sub(1, Ordering::SeqCst);
        }
        news
    }

    async fn woken(&mut self, wake: Wake) -> Result<(), Error> {
        match wake {
            Wake::Command { key, acknowledged } => {
                self.waiters.push((key, acknowledged));
                self.take_commands().await?;
                self.answer_waiters();
            }
            Wake::Recover(recovered) => {
                // Recovery comes before everything else.
                let _ = recovered.send(());
            }
            Wake::Delete(deleted) => self.delete(deleted).await?,
            Wake::MakeRoom => self.give_way().await?,
        }
        Ok(())
    }

    /// Whether a prompt waits that can begin a turn.
    fn may_begin(&self) -> bool {
        !self.prompts.is_empty() && self.observed.may_begin()
    }

    /// Begins the delivery of the next prompt, if the session rests and its agent is there.
    async fn advance(&mut self) {
        if !self.may_begin() {
            return;
        }
        let Some(live) = self.agent.as_ref().filter(|live| !live.ends) else { return };
        let Some(prompt) = self.prompts.pop_front() else { return };
        if live.handle.emit(delivery::announcement(&prompt)).await.is_ok() {
            self.observed.turn = Turn::Announced(prompt.keys.clone());
            self.current = Some(prompt);
        } else {
            // The agent is ending; another one is started for the prompt.
            self.prompts.push_front(prompt);
            self.close_agent().await;
        }
    }

    /// Stores a batch of entries, with what it changes.
    async fn append(&mut self, batch: Batch) -> Result<(), Error> {
        let mut changes = Changes::default();
        self.observed.observe(&batch, &mut changes);
        if let Some(live) = &mut self.agent {
            while changes.commit.entries.len() < MAX_BATCH
                && let Some(more) = live.entries.try_next()
            {
                self.observed.observe(&more, &mut changes);
            }
        }
        self.forget_begun();
        changes.commit.patch.state = self.changed_state();
        let announced = changes.announced;
        self.commit(changes.into_commit(&*self.shared.launcher, &self.id)).await?;
        self.store_requests().await?;
        if announced {
            self.send_prompt().await?;
        }
        // The process that waited is gone. The agent is started anew when the client has answered.
        if self.awaits_late_answers() {
            self.close_agent().await;
        }
        Ok(())
    }

    /// Stores what the agent has emitted before an entry: whoever learns its number can read from there.
    async fn append_until(&mut self, entry: u64) -> Result<(), Error> {
        while self.next < entry
            && let Some(live) = &mut self.agent
            && let Some(batch) = live.entries.next().await
        {
            self.append(batch).await?;
        }
        Ok(())
    }

    /// Stores what the agent has emitted up to the end of a call that the client has answered. Whoever is told
    /// that the agent has the answer must find it in the log, also if this process is killed.
    async fn append_end_of(&mut self, call: &str) -> Result<(), Error> {
        while self.observed.client_calls.is_open(call)
            && let Some(live) = &mut self.agent
            && let Some(batch) = live.entries.next().await
        {
            self.append(batch).await?;
        }
        Ok(())
    }

    /// Stores what an agent still emits that takes no more prompts.
    async fn store_batch(&mut self, batch: &Batch) -> Result<(), Error> {
        let mut changes = Changes::default();
        self.observed.observe(batch, &mut changes);
        self.forget_begun();
        changes.commit.patch.state = self.changed_state();
        self.commit(changes.into_commit(&*self.shared.launcher, &self.id)).await
    }

    /// Forgets the current prompt once its turn has begun.
    fn forget_begun(&mut self) {
        if matches!(self.observed.turn, Turn::Resting | Turn::Running) {
            self.current = None;
        }
    }

    /// Sends the prompt whose intent is stored.
    async fn send_prompt(&mut self) -> Result<(), Error> {
        let (Some(prompt), Some(live)) = (&self.current, &self.agent) else { return Ok(()) };
        let receipt = Receipt::default();
        let (handle, mut given) = (live.handle.clone(), prompt.to_prompt().with_receipt(&receipt));
        if let Some(history) = self.history.take() {
            given = given.after(history);
        }
        let (keys, results) = (prompt.keys.clone(), prompt.results.clone());
        self.observed.turn = Turn::Sent { keys: keys.clone(), receipt };
        if let Err(refused) = handle.prompt(given).await {
            let reason = refused.to_string();
            self.current = None;
            self.observed.turn = Turn::Running;
            for event in delivery::turn_of(&results, Outcome::Failed, &reason) {
                if handle.emit(event).await.is_err() {
                    self.observed.turn = Turn::Resting;
                }
            }
            for key in keys {
                let state = CommandState::Refused { reason: reason.clone() };
                self.settle(key, state).await?;
            }
        }
        Ok(())
    }

    /// Stores that the session waits, once the entries that request something are stored.
    async fn store_requests(&mut self) -> Result<(), Error> {
        if self.observed.stored(self.next) {
            self.store_state().await?;
        }
        Ok(())
    }

    /// What the session is doing. One with a prompt that waits does not rest.
    pub(super) fn state(&self) -> State {
        match self.observed.state() {
            State::Idle if !self.prompts.is_empty() || self.current.is_some() => State::Starting,
            state => state,
        }
    }

    /// What the session is doing, if the record does not have it. The store appends entries fastest if
    /// nothing else changes.
    fn changed_state(&self) -> Option<State> {
        Some(self.state()).filter(|state| *state != self.record.state)
    }

    /// Stores what the session is doing, if that has changed.
    pub(super) async fn store_state(&mut self) -> Result<(), Error> {
        let state = self.changed_state();
        if state.is_none() {
            return Ok(());
        }
        let patch = Patch { state, ..Patch::default() };
        self.commit(Commit { patch, ..Commit::default() }).await
    }

    /// Waits until an agent that an earlier owner has lost was ended by its guard.
    pub(super) async fn until_lost_agent_ended(&mut self) {
        if let Some(ended) = self.lost_agent.take() {
            tokio::time::sleep_until(ended).await;
        }
    }
}

/// Takes the ownership of a session.
async fn open(shared: &Shared, id: &SessionId) -> Result<(Fence, SessionRecord), Error> {
    let fence = shared.store.claim(id).await?;
    let record = shared.store.load(id).await?;
    Ok((fence, record.ok_or_else(|| Error::NotFound(id.clone()))?))
}

/// Answers everyone who wakes an owner that cannot own its session, and lets it end.
fn refuse(
    shared: &Shared,
    id: &SessionId,
    wakes: &mut mpsc::UnboundedReceiver<Wake>,
    error: &Error,
) {
    loop {
        answer_all(wakes, error);
        if shared.retire(id, wakes) {
            return;
        }
    }
}

fn answer_all(wakes: &mut mpsc::UnboundedReceiver<Wake>, error: &Error) {
    while let Ok(wake) = wakes.try_recv() {
        match wake {
            Wake::Command { acknowledged, .. } => {
                let _ = acknowledged.send(Err(error.clone()));
            }
            Wake::Recover(done) => {
                let _ = done.send(());
            }
            // The sender deletes the session itself.
            Wake::Delete(_) | Wake::MakeRoom => {}
        }
    }
}

async fn next(entries: Option<&mut Entries>) -> Option<Batch> {
    match entries {
        Some(entries) => entries.next().await,
        None => std::future::pending().await,
    }
}

async fn next_request(
    requests: Option<&mut mpsc::UnboundedReceiver<InputRequest>>,
) -> InputRequest {
    if let Some(requests) = requests
        && let Some(request) = requests.recv().await
    {
        return request;
    }
    std::future::pending().await
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
