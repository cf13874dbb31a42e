//! A session that another process holds takes no command, and none of those that were refused runs later.

use std::sync::Arc;
use std::time::Duration;

use interlingua::Entry;
use interlingua::event::{Event, Outcome, TurnStarted};
use interlingua_sessions::host::{HostLimits, NewSession, Received};
use interlingua_sessions::{
    Acknowledgement, Answer, CommandState, Commit, Counts, Durability, Error, Fence, Filter, Host,
    IdempotencyKey, Page, Patch, SessionId, SessionRecord, SqliteStore, State, Store,
    StoredCommand, Tail,
};
use rusqlite::Connection;
use serde_json::Value;
use tokio::sync::watch;

use crate::support::{entry, id, key};
use crate::talker::{Scripts, log, outcomes, prompt, texts, within};

/// Each store plays a process: it has a lock of its own.
fn processes() -> (tempfile::TempDir, SqliteStore, SqliteStore) {
    let folder = tempfile::tempdir().unwrap();
    let open = || SqliteStore::open(&folder.path().join("sessions.db"), Durability::default());
    let (one, other) = (open().unwrap(), open().unwrap());
    (folder, one, other)
}

async fn created(store: &dyn Store) -> SessionId {
    let record = SessionRecord { id_seed: 7, ..SessionRecord::new(id("held"), "talker", 1) };
    store.create(record).await.unwrap();
    id("held")
}

/// Waits until the session has so many turns; returns their texts.
async fn said(store: &dyn Store, session: &SessionId, turns: usize) -> Vec<String> {
    let mut tail = store.watch(session);
    loop {
        let log = log(store, session).await;
        if outcomes(&log).len() >= turns {
            return texts(&log);
        }
        within(tail.changed()).await.unwrap();
    }
}

#[tokio::test]
async fn a_command_for_a_session_of_another_process_is_not_stored() {
    let (_folder, one, other) = processes();
    let (store, scripts) = (Arc::new(one), Scripts::new(Received::Unknown));
    let session = created(&*store).await;
    let fence = other.claim(&session).await.unwrap();
    let host = Host::new(store.clone(), scripts.clone(), HostLimits::default());
    let held = Err(Error::Held(session.clone()));
    assert_eq!(within(host.command(&session, key("first"), prompt("first"))).await, held);
    assert_eq!(within(host.delete(&session)).await.map(drop), Err(Error::Held(session.clone())));
    assert_eq!(store.open_commands(&session).await, Ok(vec![]));
    other.release(&session, fence).await.unwrap();
    let sent = within(host.command(&session, key("second"), prompt("second"))).await.unwrap();
    assert_eq!(sent.state, CommandState::Accepted);
    assert_eq!(said(&*store, &session, 1).await, ["second"]);
    assert_eq!(scripts.times("first"), 0);
    within(host.shutdown()).await;
}

/// Another process takes the session after the command was stored, and before its owner takes it.
#[tokio::test]
async fn a_command_that_lost_the_session_to_another_process_is_withdrawn() {
    let (_folder, store, other) = processes();
    let session = created(&store).await;
    // It was acknowledged before, so it stays.
    let body = serde_json::to_value(prompt("known")).unwrap();
    store.submit(&session, key("known"), body).await.unwrap();
    let (store, scripts) = (Arc::new(Raced { store, other }), Scripts::new(Received::Unknown));
    let host = Host::new(store.clone(), scripts, HostLimits::default());
    let held = Err(Error::Held(session.clone()));
    assert_eq!(within(host.command(&session, key("new"), prompt("new"))).await, held);
    let known = within(host.command(&session, key("known"), prompt("known"))).await.unwrap();
    assert_eq!(known.state, CommandState::Accepted);
    let open = store.open_commands(&session).await.unwrap();
    let keys: Vec<_> = open.iter().map(|command| &command.acknowledgement.key).collect();
    assert_eq!(keys, [&key("known")]);
}

/// A session that was created, and whose first prompt could not be stored, is not left behind.
#[tokio::test]
async fn a_session_that_could_not_begin_is_removed() {
    let (_folder, store, other) = processes();
    let (store, scripts) = (Arc::new(Raced { store, other }), Scripts::new(Received::Unknown));
    let host = Host::new(store.clone(), scripts, HostLimits::default());
    let earlier = created(&*store).await;
    let new = NewSession {
        agent: "talker".to_owned(),
        prompt: Some("x".repeat(TOO_LONG)),
        ..NewSession::default()
    };
    let failed = within(host.create(new)).await;
    assert!(matches!(failed, Err(Error::Failed(_))), "{failed:?}");
    let left = store.list(&Filter::default()).await.unwrap();
    assert_eq!(left.iter().map(|record| &record.id).collect::<Vec<_>>(), [&earlier]);
}

/// A run may be killed while a server uses the same file.
#[tokio::test]
async fn a_session_whose_process_was_killed_is_closed_by_the_others() {
    let (_folder, store, other) = processes();
    let (store, scripts) = (Arc::new(store), Scripts::new(Received::Unknown));
    let limits = HostLimits { sweep: Duration::from_millis(10), ..HostLimits::default() };
    let host = within(Host::open(store.clone(), scripts, limits)).await.unwrap();
    let session = created(&*store).await;
    let fence = other.claim(&session).await.unwrap();
    assert_eq!(store.lost().await, Ok(vec![]));
    let event = Event::new(TurnStarted::default());
    let entries = [Entry { event, ..entry(0, "") }].into_iter().collect();
    let patch = Patch { state: Some(State::Working), ..Patch::default() };
    other.commit(&session, fence, Commit { entries, patch, ..Commit::default() }).await.unwrap();
    // Its lock ends with it.
    drop(other);
    said(&*store, &session, 1).await;
    assert_eq!(outcomes(&log(&*store, &session).await), [Outcome::Failed]);
    within(host.shutdown()).await;
}

/// The store appends entries fastest if the record of their session does not change.
#[tokio::test]
async fn the_record_of_a_working_session_is_not_written_with_every_entry() {
    let (folder, store, _other) = processes();
    let (store, scripts) = (Arc::new(store), Scripts::new(Received::Unknown));
    let counted = Connection::open(folder.path().join("sessions.db")).unwrap();
    let count = "CREATE TABLE writes (n); CREATE TRIGGER counts AFTER UPDATE OF record ON sessions BEGIN \
                 INSERT INTO writes VALUES (1); END;";
    counted.execute_batch(count).unwrap();
    let writes = || -> i64 {
        counted.query_row("SELECT count(*) FROM writes", [], |row| row.get(0)).unwrap()
    };
    let host = Host::new(store.clone(), scripts.clone(), HostLimits::default());
    let session = created(&*store).await;
    within(host.command(&session, key("k"), prompt("steps"))).await.unwrap();
    let mut tail = store.watch(&session);
    let mut before = 0;
    for step in 0..STEPS {
        // Each is a commit of its own, because the next one is made when it is stored.
        while texts(&log(&*store, &session).await).len() < step + 1 {
            within(tail.changed()).await.unwrap();
        }
        if step == 0 {
            before = writes();
        }
        std::fs::write(scripts.path("go"), "\n").unwrap();
    }
    said(&*store, &session, 1).await;
    // The time of the last use is written once a second, and the end of the turn changes the state.
    let written = writes() - before;
    assert!(written < STEPS as i64 / 2, "{written} of {STEPS}");
    within(host.shutdown()).await;
}

/// How often the script prints.
const STEPS: usize = 30;

/// The length of a command that the store of these tests does not store.
const TOO_LONG: usize = 10_000;

/// A store that another process is always a moment ahead of.
struct Raced {
    store: SqliteStore,
    other: SqliteStore,
}

impl Store for Raced {
    fn counts(&self) -> Answer<'_, Counts> {
        self.store.counts()
    }

    fn claim<'a>(&'a self, id: &'a SessionId) -> Answer<'a, Fence> {
        Box::pin(async move {
            self.other.claim(id).await?;
            self.store.claim(id).await
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

    fn release<'a>(&'a self, id: &'a SessionId, fence: Fence) -> Answer<'a, ()> {
        self.store.release(id, fence)
    }

    fn commit<'a>(&'a self, id: &'a SessionId, fence: Fence, commit: Commit) -> Answer<'a, Tail> {
        self.store.commit(id, fence, commit)
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
        match body.to_string().len() > TOO_LONG {
            true => Box::pin(async { Err(Error::Failed("the disk is full".to_owned())) }),
            false => self.store.submit(id, key, body),
        }
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
