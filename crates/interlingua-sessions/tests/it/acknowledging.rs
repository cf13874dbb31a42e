//! The number in an acknowledgement can be read from, also if the store is slower than the agent.

use std::sync::Arc;

use interlingua_sessions::host::{Command, HostLimits, Received};
use interlingua_sessions::{
    Acknowledgement, Answer, Commit, Error, Fence, Filter, Host, IdempotencyKey, MemoryStore, Page,
    Patch, SessionId, SessionRecord, Store, StoredCommand, Tail,
};
use serde_json::Value;
use tokio::sync::{Semaphore, watch};

use crate::support::key;
use crate::talker::{Fixture, Scripts, kinds, texts, within};

/// What the agent had printed before an interrupt was still on its way to the log: reading from the number was an
/// error, and after a crash another entry had it.
#[tokio::test]
async fn a_command_is_acknowledged_with_an_entry_that_the_log_has_reached() {
    let (store, scripts) = (Arc::new(MemoryStore::default()), Scripts::new(Received::Unknown));
    let gate = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
    let slow = Slow { store: store.clone(), gate: Arc::clone(&gate) };
    let host = Host::open(Arc::new(slow), scripts.clone(), HostLimits::default()).await.unwrap();
    let fixture = Fixture { host, store, scripts };
    let id = fixture.create("flood").await;
    fixture.until(&id, |log| !texts(log).is_empty()).await;
    gate.forget_permits(Semaphore::MAX_PERMITS);
    // All of it is printed, and the owner of the session waits for its store with the first part.
    within(async {
        while !fixture.scripts.path("flooded").exists() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let sending = fixture.host.command(&id, key("stop"), Command::Interrupt);
    let mut sending = std::pin::pin!(sending);
    // It is stored, and waits for the owner.
    within(async {
        while fixture.store.acknowledged(&id, &key("stop")).await.unwrap().is_none() {
            tokio::select! {
                answered = &mut sending => panic!("{answered:?}"),
                () = tokio::task::yield_now() => {}
            }
        }
    })
    .await;
    gate.add_permits(Semaphore::MAX_PERMITS);
    let interrupted = within(sending).await.unwrap();
    let stored = fixture.store.watch(&id).borrow().next;
    let at = interrupted.sequence.unwrap();
    assert!(at <= stored, "entry {at} of {stored}");
    let log = fixture.until_turns(&id, 1).await;
    let end = kinds(&log).iter().position(|kind| *kind == "turn_ended").unwrap() as u64;
    assert!(at <= end, "{at}: {:?}", kinds(&log));
}

/// A store that appends when the test lets it.
struct Slow {
    store: Arc<MemoryStore>,
    gate: Arc<Semaphore>,
}

impl Store for Slow {
    fn commit<'a>(&'a self, id: &'a SessionId, fence: Fence, commit: Commit) -> Answer<'a, Tail> {
        Box::pin(async move {
            let gate = self.gate.acquire().await;
            drop(gate.map_err(|closed| Error::Failed(closed.to_string()))?);
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

    fn claim<'a>(&'a self, id: &'a SessionId) -> Answer<'a, Fence> {
        self.store.claim(id)
    }

    fn release<'a>(&'a self, id: &'a SessionId, fence: Fence) -> Answer<'a, ()> {
        self.store.release(id, fence)
    }

    fn read<'a>(&'a self, id: &'a SessionId, from: u64, limit: usize) -> Answer<'a, Page> {
        self.store.read(id, from, limit)
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
        self.store.open_commands(id)
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
