//! A store in one SQLite file.
//!
//! One thread writes. It takes all operations that wait, runs them in one transaction, and answers
//! them when it is on the disk, so that many small appends cost one `fsync` together. An operation
//! that fails changes nothing, and the others of its group are not affected: it is one statement, or a
//! savepoint.
//! Readers have a connection of their own; in the mode WAL they do not wait for the writer.
//!
//! Several processes may use a file: at most one server, and runs that store their sessions in it. A
//! session has one of them at a time ([`holder`]). A process is only woken by its own changes.

mod append;
mod holder;
mod import;
mod operations;
mod recorder;
mod rows;
mod schema;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

pub use holder::ServerLock;
pub use import::import_session_files;
pub use recorder::SessionRecorder;

use crate::store::system_clock;
use crate::wakes::Wakes;
use crate::{
    Acknowledgement, Answer, Clock, Commit, Counts, Error, Fence, Filter, IdempotencyKey, Page,
    Patch, SessionId, SessionRecord, Store, StoredCommand, Tail,
};
use holder::Holder;

/// The number of operations that are run in one transaction at most.
const GROUP: usize = 512;

/// The number of operations that may wait. Beyond it, callers wait.
const CAPACITY: usize = 4096;

/// How long a change waits for those of other processes.
const BUSY: Duration = Duration::from_secs(10);

/// The size of the write-ahead log, in pages of 4 KB, at which its pages are moved to the database while
/// changes go on. Under load, the appends of many sessions change the same pages again and again, and
/// each move waits for the disk twice.
const WAL_PAGES: u32 = 16_384;

/// When a change is on the disk, so that it survives a machine that loses its power. Every change
/// survives the end of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Before it is acknowledged.
    Always,
    /// Changes of commands before they are acknowledged, so that none is executed twice; entries
    /// within this time. Readers see them at once.
    Within(Duration),
}

impl Default for Durability {
    fn default() -> Self {
        Self::Within(Duration::from_millis(100))
    }
}

/// Keeps sessions in a SQLite file.
pub struct SqliteStore {
    path: PathBuf,
    shared: Arc<Shared>,
    /// Absent only while the store is dropped.
    operations: Option<mpsc::Sender<Operation>>,
    writer: Option<JoinHandle<()>>,
    reader: Mutex<Connection>,
}

struct Shared {
    clock: Clock,
    wakes: Wakes,
    holder: Holder,
}

/// A change, and whether it has to be on the disk before it is acknowledged.
struct Operation {
    run: RunChange,
    syncs: bool,
}

/// A change: it is run within a transaction, or learns why there is none.
type RunChange = Box<dyn FnOnce(Result<&Connection, Error>) -> Done + Send>;

/// Reports the result of a change, once its transaction is on the disk, or is not.
type Done = Box<dyn FnOnce(Result<(), Error>) + Send>;

/// The result of a change, and the end of the log that it moved.
struct Changed<T> {
    result: T,
    moved: Option<(SessionId, Tail)>,
}

impl<T> Changed<T> {
    fn still(result: T) -> Self {
        Self { result, moved: None }
    }
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("SqliteStore").finish_non_exhaustive()
    }
}

impl SqliteStore {
    /// Opens a file, or creates it. Only its owner can read it.
    pub fn open(path: &Path, sync: Durability) -> Result<Self, Error> {
        Self::open_with_clock(path, sync, system_clock())
    }

    /// Opens a file, with a clock of the caller's own.
    pub fn open_with_clock(path: &Path, sync: Durability, clock: Clock) -> Result<Self, Error> {
        let (connection, holder) = open(path)?;
        let reader = connect(path)?;
        let shared = Arc::new(Shared { clock, wakes: Wakes::default(), holder });
        let (operations, received) = mpsc::channel(CAPACITY);
        let writer = std::thread::Builder::new()
            .name("sessions".to_owned())
            .spawn(move || writer::write(connection, received, sync))
            .map_err(|problem| Error::Failed(problem.to_string()))?;
        Ok(Self {
            path: path.to_owned(),
            shared,
            operations: Some(operations),
            writer: Some(writer),
            reader: Mutex::new(reader),
        })
    }

    /// Lets the writer run a change, and waits until its result is on the disk.
    fn change<'a, T: Send + 'static>(
        &'a self,
        change: impl FnOnce(&Connection, u64) -> Result<Changed<T>, Error> + Send + 'static,
    ) -> Answer<'a, T> {
        self.change_with(true, change)
    }

    /// Lets the writer run a change, and waits until its result is stored.
    fn change_with<'a, T: Send + 'static>(
        &'a self,
        syncs: bool,
        change: impl FnOnce(&Connection, u64) -> Result<Changed<T>, Error> + Send + 'static,
    ) -> Answer<'a, T> {
        self.run(syncs, move |connection, now| alone(connection, || change(connection, now)))
    }

    /// Lets the writer run a change that undoes itself if it fails.
    fn run<'a, T: Send + 'static>(
        &'a self,
        syncs: bool,
        change: impl FnOnce(&Connection, u64) -> Result<Changed<T>, Error> + Send + 'static,
    ) -> Answer<'a, T> {
        let (answer, answered) = oneshot::channel();
        let shared = Arc::clone(&self.shared);
        let run: RunChange = Box::new(move |connection| {
            let changed = connection.and_then(|connection| change(connection, (shared.clock)()));
            Box::new(move |stored: Result<(), Error>| {
                // Why the change itself failed comes first.
                let result = changed.and_then(|Changed { result, moved }| {
                    stored?;
                    if let Some((id, tail)) = moved {
                        shared.wakes.moved(&id, tail);
                    }
                    Ok(result)
                });
                // The caller may not be interested any more.
                let _ = answer.send(result);
            })
        });
        let operations = self.operations.clone();
        Box::pin(async move {
            let operations = operations.ok_or_else(stopped)?;
            operations.send(Operation { run, syncs }).await.map_err(|_| stopped())?;
            answered.await.unwrap_or_else(|_| Err(stopped()))
        })
    }

    /// Runs a query. Reads are short, so they need no thread of their own.
    fn query<'a, T: Send + 'a>(
        &self,
        query: impl FnOnce(&Connection, u64) -> Result<T, Error>,
    ) -> Answer<'a, T> {
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let result = query(&reader, (self.shared.clock)());
        Box::pin(std::future::ready(result))
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // The writer ends once it has stored what it was given.
        drop(self.operations.take());
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

fn stopped() -> Error {
    Error::Failed("the store was closed".to_owned())
}

fn failed(problem: rusqlite::Error) -> Error {
    Error::Failed(problem.to_string())
}

/// Opens a store, and creates or migrates it if need be.
fn open(path: &Path) -> Result<(Connection, Holder), Error> {
    let _opening = holder::lock_opening(path)?;
    if !path.exists() {
        // SQLite would create it with the permissions of the process.
        let created = holder::private(path);
        created.map_err(|problem| Error::Failed(format!("{}: {problem}", path.display())))?;
    }
    let mut connection = connect(path)?;
    schema::migrate(&mut connection, path)?;
    Ok((connection, Holder::new(path)?))
}

fn connect(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(BUSY).map_err(failed)?;
    connection.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
    connection.pragma_update(None, "synchronous", "NORMAL").map_err(failed)?;
    connection.pragma_update(None, "wal_autocheckpoint", WAL_PAGES).map_err(failed)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Runs a change so that it is undone if it fails.
fn alone<T>(
    connection: &Connection,
    change: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    let run = |statement: &str| {
        let prepared = connection.prepare_cached(statement);
        prepared.and_then(|mut statement| statement.execute([])).map_err(failed)
    };
    run("SAVEPOINT change")?;
    let changed = change();
    if changed.is_err() {
        // SQLite may have undone the whole transaction, and the savepoint with it.
        if connection.is_autocommit() {
            return changed;
        }
        run("ROLLBACK TO change")?;
    }
    run("RELEASE change")?;
    changed
}

impl Store for SqliteStore {
    fn create(&self, record: SessionRecord) -> Answer<'_, ()> {
        self.change(move |connection, now| {
            operations::create(connection, &record, now).map(Changed::still)
        })
    }

    fn load<'a>(&'a self, id: &'a SessionId) -> Answer<'a, Option<SessionRecord>> {
        self.query(|connection, now| {
            let found = operations::find(connection, id, now)?;
            Ok(found.map(|found| found.record))
        })
    }

    fn update<'a>(&'a self, id: &'a SessionId, patch: Patch) -> Answer<'a, SessionRecord> {
        let id = id.clone();
        self.change(move |connection, now| {
            operations::update(connection, &id, patch.clone(), now).map(Changed::still)
        })
    }

    fn touch<'a>(&'a self, id: &'a SessionId) -> Answer<'a, ()> {
        let id = id.clone();
        self.change_with(false, move |connection, now| {
            operations::touch(connection, &id, now).map(Changed::still)
        })
    }

    fn delete<'a>(&'a self, id: &'a SessionId) -> Answer<'a, bool> {
        let (id, shared) = (id.clone(), Arc::clone(&self.shared));
        self.change(move |connection, now| {
            let tail = operations::delete(connection, &id, &shared.holder, now)?;
            let closed = |tail| Tail { closed: true, ..tail };
            Ok(Changed { result: tail.is_some(), moved: tail.map(|tail| (id, closed(tail))) })
        })
    }

    fn list<'a>(&'a self, filter: &'a Filter) -> Answer<'a, Vec<SessionRecord>> {
        self.query(|connection, now| operations::list(connection, filter, now))
    }

    /// The records of all sessions are read, on a connection of its own: readers of logs do not wait for it.
    fn counts(&self) -> Answer<'_, Counts> {
        let (path, now) = (self.path.clone(), (self.shared.clock)());
        let count = move || operations::counts(&connect(&path)?, now);
        Box::pin(async move {
            let counted = tokio::task::spawn_blocking(count).await;
            counted.unwrap_or_else(|problem| Err(Error::Failed(problem.to_string())))
        })
    }

    fn claim<'a>(&'a self, id: &'a SessionId) -> Answer<'a, Fence> {
        let (id, shared) = (id.clone(), Arc::clone(&self.shared));
        self.change(move |connection, now| {
            operations::claim(connection, &id, &shared.holder, now).map(Changed::still)
        })
    }

    fn release<'a>(&'a self, id: &'a SessionId, fence: Fence) -> Answer<'a, ()> {
        let id = id.clone();
        self.change_with(false, move |connection, _| {
            operations::release(connection, &id, fence).map(Changed::still)
        })
    }

    fn commit<'a>(&'a self, id: &'a SessionId, fence: Fence, commit: Commit) -> Answer<'a, Tail> {
        let id = id.clone();
        let syncs = !commit.commands.is_empty() || !commit.queued.is_empty();
        self.run(syncs, move |connection, now| {
            let tail = append::commit(connection, &id, fence, &commit, now)?;
            Ok(Changed { result: tail, moved: Some((id, tail)) })
        })
    }

    fn read<'a>(&'a self, id: &'a SessionId, from: u64, limit: usize) -> Answer<'a, Page> {
        self.query(|connection, now| operations::read(connection, id, from, limit, now))
    }

    fn submit<'a>(
        &'a self,
        id: &'a SessionId,
        key: IdempotencyKey,
        body: Value,
    ) -> Answer<'a, (Acknowledgement, bool)> {
        let (id, shared) = (id.clone(), Arc::clone(&self.shared));
        self.change(move |connection, now| {
            let holder = &shared.holder;
            let submitted = operations::submit(connection, &id, key, &body, holder, now)?;
            let (acknowledgement, tail) = submitted;
            let moved = tail.map(|tail| (id, tail));
            Ok(Changed { result: (acknowledgement, moved.is_some()), moved })
        })
    }

    fn acknowledged<'a>(
        &'a self,
        id: &'a SessionId,
        key: &'a IdempotencyKey,
    ) -> Answer<'a, Option<Acknowledgement>> {
        self.query(|connection, now| operations::acknowledged(connection, id, key, now))
    }

    fn withdraw<'a>(&'a self, id: &'a SessionId, key: &'a IdempotencyKey) -> Answer<'a, bool> {
        let (id, key) = (id.clone(), key.clone());
        self.change(move |connection, now| {
            operations::withdraw(connection, &id, &key, now).map(Changed::still)
        })
    }

    fn open_commands<'a>(&'a self, id: &'a SessionId) -> Answer<'a, Vec<StoredCommand>> {
        self.query(|connection, now| operations::open_commands(connection, id, now))
    }

    fn watch(&self, id: &SessionId) -> watch::Receiver<Tail> {
        let receiver = self.shared.wakes.watch(id);
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        if let Ok(Some(found)) = operations::find(&reader, id, (self.shared.clock)()) {
            self.shared.wakes.moved(id, found.tail());
        }
        receiver
    }

    fn sweep(&self) -> Answer<'_, usize> {
        self.change_with(false, |connection, now| {
            operations::sweep(connection, now).map(Changed::still)
        })
    }

    fn lost(&self) -> Answer<'_, Vec<SessionId>> {
        let shared = Arc::clone(&self.shared);
        self.query(move |connection, _| operations::lost(connection, &shared.holder))
    }

    fn probe(&self) -> Answer<'_, ()> {
        let shared = Arc::clone(&self.shared);
        self.change(move |connection, _| {
            shared.holder.check_space()?;
            operations::probe(connection).map(Changed::still)
        })
    }
}
