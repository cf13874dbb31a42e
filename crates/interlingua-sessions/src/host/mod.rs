//! Owns live sessions: takes commands, starts agents for them, and appends what they emit to the log.
//!
//! Every session that is in use has an *owner*, a task that holds the session's fence. All commands
//! reach it through the store, in which they were stored first, so that it makes no difference
//! whether the owner existed when a command was sent. The owner ends when the session rests and its
//! agent was closed; the next command begins another one.
//!
//! | module | what it knows |
//! |---|---|
//! | `command` | what can be asked of a session |
//! | `creation` | how a session is created, once for each request |
//! | `client_calls` | the calls of the client's tools that can be answered late |
//! | `launcher` | what a host needs to know of agents |
//! | `owner` | the owner of a session: its loop, and what each command does |
//! | `delivery` | how a prompt reaches an agent at most once |
//! | `history` | what is given to an agent that has forgotten its session |
//! | `observation` | what the entries of an agent change in the record |
//! | `recovery` | how a session goes on whose owner was lost |
//! | `room` | which sessions give the places of their agents to others |

mod client_calls;
mod command;
mod creation;
mod delivery;
mod history;
mod launcher;
mod observation;
mod owner;
mod recovery;
mod room;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::Instant;

pub(crate) use client_calls::ClientCalls;
pub use command::{Command, Verdict, WhilePending};
pub use creation::NewSession;
pub use delivery::announced;
pub use launcher::{Launcher, Logs, Prepared, Received};
pub use observation::RELAY;

use crate::{
    Acknowledgement, CommandState, Error, Filter, IdempotencyKey, SessionId, State, Store,
};
use owner::{Owner, Wake};
use room::{Pause, Room};

/// How long the guard of a lost agent needs to end it. No agent is started before.
const GUARD_GRACE: Duration = Duration::from_secs(2);

/// How long a host waits for the recovery of its sessions. It goes on without it: a store that fails
/// now, because the disk is full for instance, can still be read.
const RECOVERY_PATIENCE: Duration = Duration::from_secs(5);

/// How long a prompt waits for the owner of its session, which may refuse it, before it is acknowledged.
const PROMPT_PATIENCE: Duration = Duration::from_secs(5);

/// How long the owner of a session may take to end its agent and to delete it.
const DELETE_PATIENCE: Duration = Duration::from_secs(10);

/// The limits of a host.
#[derive(Debug, Clone)]
pub struct HostLimits {
    /// The number of agents that are live at once. Further prompts wait until an agent rests, or a session has
    /// waited for its client for a while.
    pub live: usize,
    /// How long the agent of a session that rests is kept.
    pub idle: Duration,
    /// How long a session is kept after its last use, unless its creator sets another time.
    pub ttl: Option<Duration>,
    /// Someone answers the requests of agents. Otherwise they are declined at once.
    pub attended: bool,
    /// How often expired sessions are deleted, and sessions are recovered whose process was killed.
    pub sweep: Duration,
}

impl Default for HostLimits {
    fn default() -> Self {
        let week = Duration::from_secs(7 * 24 * 60 * 60);
        let (idle, sweep) = (Duration::from_secs(600), Duration::from_secs(60));
        Self { live: 64, idle, ttl: Some(week), attended: true, sweep }
    }
}

/// Owns live sessions.
#[derive(Clone)]
pub struct Host {
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Host").field("live", &self.live()).finish_non_exhaustive()
    }
}

/// What all owners share.
struct Shared {
    store: Arc<dyn Store>,
    launcher: Arc<dyn Launcher>,
    limits: HostLimits,
    owners: Mutex<HashMap<SessionId, mpsc::UnboundedSender<Wake>>>,
    /// The agents that may be started.
    slots: Arc<Semaphore>,
    /// The number of sessions that wait for the place of an agent.
    wanting: AtomicUsize,
    /// The sessions whose agents can give way.
    room: Mutex<Room>,
    /// The host is shut down.
    shutdown: watch::Sender<bool>,
}

impl Host {
    /// A host of the sessions in a store. A session is recovered when the first command for it arrives.
    pub fn new(store: Arc<dyn Store>, launcher: Arc<dyn Launcher>, limits: HostLimits) -> Self {
        let slots = Arc::new(Semaphore::new(limits.live));
        let shared = Arc::new(Shared {
            store,
            launcher,
            limits,
            owners: Mutex::default(),
            slots,
            wanting: AtomicUsize::new(0),
            room: Mutex::default(),
            shutdown: watch::Sender::new(false),
        });
        Self { shared }
    }

    /// The host of all sessions in a store. Sessions whose owner was lost are closed truthfully,
    /// prompts that wait are sent, and what has expired is deleted from now on.
    pub async fn open(
        store: Arc<dyn Store>,
        launcher: Arc<dyn Launcher>,
        limits: HostLimits,
    ) -> Result<Self, Error> {
        let host = Self::new(store, launcher, limits);
        host.recover().await?;
        tokio::spawn(sweep(host.shared.clone()));
        Ok(host)
    }

    /// Begins owners for all sessions that were not at rest, and waits for their recovery.
    async fn recover(&self) -> Result<(), Error> {
        let store = &self.shared.store;
        let mut recovering = Vec::new();
        for record in store.list(&Filter::default()).await? {
            let needs_owner = match record.state {
                State::Ended => false,
                // A session that has expired meanwhile, or cannot be read, affects no other.
                State::Idle => {
                    let open = store.open_commands(&record.id).await;
                    open.is_ok_and(|commands| !commands.is_empty())
                }
                _ => true,
            };
            if needs_owner {
                let (recovered, waits) = oneshot::channel();
                self.shared.wake(&record.id, Wake::Recover(recovered));
                recovering.push(waits);
            }
        }
        let all = async {
            for recovered in recovering {
                let _ = recovered.await;
            }
        };
        let _ = tokio::time::timeout(RECOVERY_PATIENCE, all).await;
        Ok(())
    }

    /// The store of the sessions.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// The number of live agents.
    pub fn live(&self) -> usize {
        self.shared.limits.live.saturating_sub(self.shared.slots.available_permits())
    }

    /// Sends a command. A prompt is acknowledged when it is stored; everything else when it took
    /// effect, or was refused. The same command with the same key has the same acknowledgement.
    pub async fn command(
        &self,
        id: &SessionId,
        key: IdempotencyKey,
        command: Command,
    ) -> Result<Acknowledgement, Error> {
        let (host, id) = (self.clone(), id.clone());
        detached(async move { host.command_now(&id, key, command).await }).await
    }

    async fn command_now(
        &self,
        id: &SessionId,
        key: IdempotencyKey,
        command: Command,
    ) -> Result<Acknowledgement, Error> {
        let body = serde_json::to_value(&command).map_err(|it| Error::Failed(it.to_string()))?;
        let (stored, is_new) = self.shared.store.submit(id, key.clone(), body.clone()).await?;
        if stored.state.is_final() {
            return Ok(stored);
        }
        let (acknowledged, acknowledgement) = oneshot::channel();
        self.shared.wake(id, Wake::Command { key: key.clone(), acknowledged });
        if matches!(command, Command::Prompt { .. }) && stored.state != CommandState::Accepted {
            return Ok(stored);
        }
        // The owner answers at once: with the state, if that is all that happens now.
        let is_prompt = matches!(command, Command::Prompt { .. });
        let patience = if is_prompt { PROMPT_PATIENCE } else { Duration::MAX };
        match tokio::time::timeout(patience, acknowledgement).await {
            // Another process has taken the session after the command was stored. The sender learns that
            // it is refused, so it must not be executed later, unless it was acknowledged before.
            Ok(Ok(Err(held @ Error::Held(_)))) => {
                match is_new && self.shared.store.withdraw(id, &key).await? {
                    true => Err(held),
                    false => Ok(self.shared.store.submit(id, key, body).await?.0),
                }
            }
            Ok(Ok(acknowledgement)) => acknowledgement,
            // It has ended. What became of the command is stored.
            Ok(Err(_)) => Ok(self.shared.store.submit(id, key, body).await?.0),
            // It waits for its store. The prompt is stored, and will be delivered.
            Err(_) => Ok(stored),
        }
    }

    /// Deletes a session, and ends its agent. Returns whether there was one.
    pub async fn delete(&self, id: &SessionId) -> Result<bool, Error> {
        let (host, id) = (self.clone(), id.clone());
        detached(async move {
            let (sender, deleted) = oneshot::channel();
            if host.shared.wake_owner(&id, Wake::Delete(sender))
                && let Ok(Ok(deleted)) = tokio::time::timeout(DELETE_PATIENCE, deleted).await
            {
                return deleted;
            }
            // There is no owner, or it cannot store anything and does not listen. It ends when it finds
            // that its session is gone.
            host.shared.store.delete(&id).await
        })
        .await
    }

    /// Ends all agents. Their turns end truthfully, and sessions can be continued by another host.
    pub async fn shutdown(&self) {
        self.shared.shutdown.send_replace(true);
        let owners: Vec<_> = self.shared.lock().values().cloned().collect();
        for owner in owners {
            owner.closed().await;
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, mpsc::UnboundedSender<Wake>>> {
        self.owners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the owner of a session, and begins one if there is none.
    fn wake(self: &Arc<Self>, id: &SessionId, wake: Wake) {
        let mut owners = self.lock();
        let wake = match owners.get(id) {
            Some(owner) => match owner.send(wake) {
                Ok(()) => return,
                Err(mpsc::error::SendError(wake)) => wake,
            },
            None => wake,
        };
        let (owner, wakes) = mpsc::unbounded_channel();
        let _ = owner.send(wake);
        owners.insert(id.clone(), owner);
        drop(owners);
        tokio::spawn(Owner::run(self.clone(), id.clone(), wakes));
    }

    /// Begins owners for the sessions of other processes that were killed.
    async fn recover_lost(self: &Arc<Self>) {
        // A store that fails now may work the next time.
        for id in self.store.lost().await.unwrap_or_default() {
            let (recovered, _) = oneshot::channel();
            self.wake(&id, Wake::Recover(recovered));
        }
    }

    /// Wakes the owner of a session, if there is one.
    fn wake_owner(&self, id: &SessionId, wake: Wake) -> bool {
        self.lock().get(id).is_some_and(|owner| owner.send(wake).is_ok())
    }

    /// Lets an owner end, unless it was woken in the meantime.
    fn retire(&self, id: &SessionId, wakes: &mut mpsc::UnboundedReceiver<Wake>) -> bool {
        let mut owners = self.lock();
        if !wakes.is_empty() {
            return false;
        }
        owners.remove(id);
        wakes.close();
        true
    }

    fn room(&self) -> MutexGuard<'_, Room> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes why and since when the agent of a session can give way, if it can, and whether it is ending.
    fn note_pause(&self, id: &SessionId, pause: Option<(Pause, Instant)>, ends: bool) {
        self.room().note(id, pause, ends);
        if pause.is_some() {
            self.make_room();
        }
    }

    /// Asks the agent that can do best without its place to give way, if another session needs it.
    fn make_room(&self) {
        let wanting = self.wanting.load(Ordering::SeqCst);
        if wanting == 0 || self.slots.available_permits() > 0 {
            return;
        }
        let next = self.room().next(wanting);
        if let Some(id) = next
            && !self.wake_owner(&id, Wake::MakeRoom)
        {
            self.room().note(&id, None, false);
        }
    }
}

/// Completes what has begun, also if its caller is gone: a command that is stored has to be executed.
async fn detached<T: Send + 'static>(
    work: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::spawn(work).await;
    done.unwrap_or_else(|problem| Err(Error::Failed(problem.to_string())))
}

pub(crate) fn random_seed() -> Result<u64, Error> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|problem| Error::NoRandomness(problem.to_string()))?;
    // JSON numbers are exact up to here.
    Ok(u64::from_le_bytes(bytes) >> 11)
}

/// Deletes what has expired, and closes what other processes have left open, until the host is shut down.
async fn sweep(shared: Arc<Shared>) {
    let mut shutdown = shared.shutdown.subscribe();
    loop {
        tokio::select! {
            () = tokio::time::sleep(shared.limits.sweep) => {}
            _ = shutdown.wait_for(|shutdown| *shutdown) => return,
        }
        // A store that fails now may work the next time.
        let _ = shared.store.sweep().await;
        shared.recover_lost().await;
    }
}
