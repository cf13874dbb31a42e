//! A store in memory that stores when a test lets it, and that cannot be read as often as a test says.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use interlingua_sessions::{
    Acknowledgement, Answer, Commit, Counts, Error, Fence, Filter, IdempotencyKey, MemoryStore,
    Page, Patch, SessionId, SessionRecord, Store, StoredCommand, Tail,
};
use serde_json::Value;
use tokio::sync::{Semaphore, watch};

/// A store that does not always work.
pub(crate) struct Unsteady {
    store: Arc<MemoryStore>,
    /// Every commit takes one.
    pub(crate) commits: Semaphore,
    /// How often reading a log fails.
    pub(crate) unread_logs: AtomicUsize,
    /// How often reading the commands fails.
    pub(crate) unread_commands: AtomicUsize,
}

impl Unsteady {
    pub(crate) fn new(store: Arc<MemoryStore>) -> Self {
        let commits = Semaphore::new(Semaphore::MAX_PERMITS);
        let (unread_logs, unread_commands) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self { store, commits, unread_logs, unread_commands }
    }

    fn check(failures: &AtomicUsize) -> Result<(), Error> {
        let fewer = |failures: usize| failures.checked_sub(1);
        match failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer) {
            Ok(_) => Err(Error::Failed("disk I/O error".to_owned())),
            Err(_) => Ok(()),
        }
    }
}

impl Store for Unsteady {
    fn commit<'a>(&'a self, id: &'a SessionId, fence: Fence, commit: Commit) -> Answer<'a, Tail> {
        Box::pin(async move {
            let permit = self.commits.acquire().await;
            permit.map_err(|closed| Error::Failed(closed.to_string()))?.forget();
            self.store.commit(id, fence, commit).await
        })
    }

    fn create(&self, record: SessionRecord) -> Answer<'_, ()> {
        self.store.create(record)
    }

    fn load<'a>(&'a self, id: &'a SessionId) -> Answer<'a, Option<SessionRecord>> {
        self.store.load(id)
    }

    fn update<'a>(&'a self, id: &'a SessionId, patch: Patch) -> Answer<'a, SessionRecord> {
        self.store.update(id, patch)
    }

    fn touch<'a>(&'a self, id: &'a SessionId) -> Answer<'a, ()> {
        self.store.touch(id)
    }

    fn delete<'a>(&'a self, id: &'a SessionId) -> Answer<'a, bool> {
        self.store.delete(id)
    }

    fn list<'a>(&'a self, filter: &'a Filter) -> Answer<'a, Vec<SessionRecord>> {
        self.store.list(filter)
    }

    fn counts(&self) -> Answer<'_, Counts> {
        self.store.counts()
    }

    fn claim<'a>(&'a self, id: &'a SessionId) -> Answer<'a, Fence> {
        self.store.claim(id)
    }

    fn release<'a>(&'a self, id: &'a SessionId, fence: Fence) -> Answer<'a, ()> {
        self.store.release(id, fence)
    }

    fn read<'a>(&'a self, id: &'a SessionId, from: u64, limit: usize) -> Answer<'a, Page> {
        match Self::check(&self.unread_logs) {
            Ok(()) => self.store.read(id, from, limit),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn submit<'a>(
        &'a self,
        id: &'a SessionId,
        key: IdempotencyKey,
        body: Value,
    ) -> Answer<'a, (Acknowledgement, bool)> {
        self.store.submit(id, key, body)
    }

    fn acknowledged<'a>(
        &'a self,
        id: &'a SessionId,
        key: &'a IdempotencyKey,
    ) -> Answer<'a, Option<Acknowledgement>> {
        self.store.acknowledged(id, key)
    }

    fn withdraw<'a>(&'a self, id: &'a SessionId, key: &'a IdempotencyKey) -> Answer<'a, bool> {
        self.store.withdraw(id, key)
    }

    fn open_commands<'a>(&'a self, id: &'a SessionId) -> Answer<'a, Vec<StoredCommand>> {
        match Self::check(&self.unread_commands) {
            Ok(()) => self.store.open_commands(id),
            Err(error) => Box::pin(async { Err(error) }),
        }
    }

    fn watch(&self, id: &SessionId) -> watch::Receiver<Tail> {
        self.store.watch(id)
    }

    fn sweep(&self) -> Answer<'_, usize> {
        self.store.sweep()
    }

    fn probe(&self) -> Answer<'_, ()> {
        self.store.probe()
    }
}
