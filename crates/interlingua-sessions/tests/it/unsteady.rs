//! A store in memory that appends when a test lets it, and that cannot be read as often as a test says.

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
    /// Whoever appends needs one for a moment.
    pub(crate) appends: Semaphore,
    /// How often reading fails.
    pub(crate) failures: AtomicUsize,
}

impl Unsteady {
    pub(crate) fn new(store: Arc<MemoryStore>) -> Self {
        let appends = Semaphore::new(Semaphore::MAX_PERMITS);
        Self { store, appends, failures: AtomicUsize::new(0) }
    }

    fn check_reading(&self) -> Result<(), Error> {
        let fewer = |failures: usize| failures.checked_sub(1);
        match self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer) {
            Ok(_) => Err(Error::Failed("disk I/O error".to_owned())),
            Err(_) => Ok(()),
        }
    }
}

impl Store for Unsteady {
    fn commit<'a>(&'a self, id: &'a SessionId, fence: Fence, commit: Commit) -> Answer<'a, Tail> {
        Box::pin(async move {
            let append = self.appends.acquire().await;
            drop(append.map_err(|closed| Error::Failed(closed.to_string()))?);
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
        match self.check_reading() {
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
        match self.check_reading() {
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
