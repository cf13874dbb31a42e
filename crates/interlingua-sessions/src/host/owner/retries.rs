//! What an owner stores and reads, which is tried again while the store fails.

use std::time::Duration;

use tokio::sync::watch;

use super::{Owner, Shared};
use crate::log::{self, StoredLog};
use crate::{Commit, Error, SessionId, SessionRecord, StoredCommand};

/// The delays before an operation that failed is tried again.
const FIRST_RETRY: Duration = Duration::from_millis(50);
const LONGEST_RETRY: Duration = Duration::from_secs(5);

impl Owner {
    /// Stores a change. A store that fails, because the disk is full for instance, is tried again, and
    /// the agent's output waits meanwhile.
    pub(in crate::host) async fn commit(&mut self, commit: Commit) -> Result<(), Error> {
        let mut retries = Retries::new(&self.shared);
        loop {
            let stored = self.shared.store.commit(&self.id, self.fence, commit.clone()).await;
            match stored {
                Ok(tail) => {
                    self.next = tail.next;
                    for update in &commit.commands {
                        if let Some(known) = self.open.get_mut(&update.key) {
                            known.state = update.state.clone();
                            known.sequence = update.sequence;
                        }
                        if update.state.is_final() {
                            self.open.remove(&update.key);
                        }
                    }
                    self.record.apply(&commit.patch);
                    return Ok(());
                }
                Err(Error::Failed(_)) if !retries.is_shut_down() => retries.wait().await,
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads the commands that are not final, again while the store fails: an owner that gave up would end its
    /// agent in the middle of a turn.
    pub(in crate::host) async fn open_commands(&self) -> Result<Vec<StoredCommand>, Error> {
        let mut retries = Retries::new(&self.shared);
        loop {
            match self.shared.store.open_commands(&self.id).await {
                Err(Error::Failed(_)) if !retries.is_shut_down() => retries.wait().await,
                read => return read,
            }
        }
    }

    /// Reads the record of a session, again while the store fails.
    pub(in crate::host) async fn loaded(
        &self,
        id: &SessionId,
    ) -> Result<Option<SessionRecord>, Error> {
        let mut retries = Retries::new(&self.shared);
        loop {
            match self.shared.store.load(id).await {
                Err(Error::Failed(_)) if !retries.is_shut_down() => retries.wait().await,
                read => return read,
            }
        }
    }

    /// Reads the log of a session, again while the store fails.
    pub(in crate::host) async fn stored_log(
        &self,
        record: &SessionRecord,
        keeps_lines: bool,
    ) -> Result<StoredLog, Error> {
        let mut retries = Retries::new(&self.shared);
        loop {
            match log::read(&*self.shared.store, record, keeps_lines).await {
                Err(Error::Failed(_)) if !retries.is_shut_down() => retries.wait().await,
                read => return read,
            }
        }
    }
}

/// The pauses after which a store that failed is tried again, until the host is shut down.
pub(super) struct Retries {
    delay: Duration,
    shutdown: watch::Receiver<bool>,
}

impl Retries {
    pub(super) fn new(shared: &Shared) -> Self {
        Self { delay: FIRST_RETRY, shutdown: shared.shutdown.subscribe() }
    }

    pub(super) fn is_shut_down(&self) -> bool {
        *self.shutdown.borrow()
    }

    pub(super) async fn wait(&mut self) {
        tokio::select! {
            () = tokio::time::sleep(self.delay) => {}
            _ = self.shutdown.wait_for(|shutdown| *shutdown) => {}
        }
        self.delay = (self.delay * 2).min(LONGEST_RETRY);
    }
}
