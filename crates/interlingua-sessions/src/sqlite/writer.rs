//! The thread that writes: it runs the changes that wait in one transaction, and decides when the disk
//! has to have them.

use std::time::Instant;

use rusqlite::{Connection, TransactionBehavior};
use tokio::sync::mpsc;

use super::{Done, Durability, GROUP, Operation, failed};
use crate::Error;

/// The memory for pages, in kilobytes: those that the appends of a thousand sessions change. With the
/// default of 2 MB, many of them were read from the file again.
const CACHE: i32 = 8 << 10;

/// Runs the changes, group by group.
pub(super) fn write(connection: Connection, received: mpsc::Receiver<Operation>, sync: Durability) {
    // A negative number is a size. A cache that stays small is only slower.
    let _ = connection.pragma_update(None, "cache_size", -CACHE);
    // It only waits, for changes and for the time at which the disk has to have them.
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() else {
        return;
    };
    runtime.block_on(Writer { connection, sync, syncs: false, unsynced: None }.run(received));
}

struct Writer {
    connection: Connection,
    sync: Durability,
    /// The connection waits for the disk at the end of a transaction.
    syncs: bool,
    /// Since when there is something that the disk may not have.
    unsynced: Option<Instant>,
}

impl Writer {
    async fn run(mut self, mut received: mpsc::Receiver<Operation>) {
        while let Some(first) = self.next(&mut received).await {
            let waiting = std::iter::from_fn(|| received.try_recv().ok());
            let group: Vec<_> = std::iter::once(first).chain(waiting).take(GROUP).collect();
            let (done, stored) = self.store(group);
            done.into_iter().for_each(|done| done(stored.clone()));
        }
        self.checkpoint();
    }

    /// The next change. While none arrives, what is unsynced is brought to the disk in time.
    async fn next(&mut self, received: &mut mpsc::Receiver<Operation>) -> Option<Operation> {
        let due = self.due();
        let Some(due) = due else { return received.recv().await };
        let due = tokio::time::Instant::from_std(due);
        match tokio::time::timeout_at(due, received.recv()).await {
            Ok(operation) => operation,
            Err(_) => {
                self.checkpoint();
                received.recv().await
            }
        }
    }

    /// When the disk has to have everything.
    fn due(&self) -> Option<Instant> {
        match self.sync {
            Durability::Always => None,
            Durability::Within(time) => self.unsynced?.checked_add(time),
        }
    }

    /// Brings everything to the disk. What fails now is tried again with the next change.
    fn checkpoint(&mut self) {
        if self.unsynced.is_none() {
            return;
        }
        let columns = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
        let done = self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], columns);
        let (busy, all, moved): (i64, i64, i64) = done.unwrap_or((1, 0, 0));
        let is_complete = busy == 0 && all == moved;
        if is_complete || self.sync_log().is_ok() {
            self.unsynced = None;
        }
    }

    /// Brings the write-ahead log to the disk. A reader of an old state keeps a checkpoint from what was written
    /// after it, but not a commit that waits for the disk.
    fn sync_log(&mut self) -> Result<(), Error> {
        self.set_sync(true)?;
        touch(&self.connection)
    }

    /// Stores a group of changes.
    fn store(&mut self, group: Vec<Operation>) -> (Vec<Done>, Result<(), Error>) {
        let is_due = self.due().is_some_and(|due| due <= Instant::now());
        let wants = group.iter().any(|operation| operation.syncs);
        let syncs = self.sync == Durability::Always || wants || is_due;
        let begun = self.set_sync(syncs).and_then(|()| {
            self.connection
                .transaction_with_behavior(TransactionBehavior::Immediate)
                .map_err(failed)
        });
        let transaction = match begun {
            Ok(transaction) => transaction,
            Err(problem) => {
                let refuse = |operation: Operation| (operation.run)(Err(problem.clone()));
                return (group.into_iter().map(refuse).collect(), Ok(()));
            }
        };
        // If the disk is full, SQLite may undo the whole transaction. What follows would then be
        // committed on its own.
        let check = || match transaction.is_autocommit() {
            true => Err(Error::Failed("the transaction was undone by the database".to_owned())),
            false => Ok(()),
        };
        let run = |operation: Operation| (operation.run)(check().map(|()| &*transaction));
        // A transaction that has changed nothing brings nothing to the disk.
        let before = (syncs && self.unsynced.is_some()).then(|| changes(&transaction));
        let done = group.into_iter().map(run).collect();
        let is_idle = before.is_some_and(|before| changes(&transaction) == before);
        let touched = if is_idle { touch(&transaction) } else { Ok(()) };
        let committed = check().and(touched);
        let stored = committed.and_then(|()| transaction.commit().map_err(failed));
        if stored.is_ok() {
            // A commit that waits for the disk brings all earlier ones there, too.
            let since = self.unsynced.take().unwrap_or_else(Instant::now);
            self.unsynced = (!syncs).then_some(since);
        }
        (done, stored)
    }

    fn set_sync(&mut self, syncs: bool) -> Result<(), Error> {
        if self.syncs != syncs {
            let level = if syncs { "FULL" } else { "NORMAL" };
            self.connection.pragma_update(None, "synchronous", level).map_err(failed)?;
            self.syncs = syncs;
        }
        Ok(())
    }
}

/// Changes a page. SQLite does not write a row that stays the same; fences may skip numbers.
fn touch(connection: &Connection) -> Result<(), Error> {
    connection.execute("UPDATE fences SET last = last + 1", []).map(drop).map_err(failed)
}

/// How many rows the connection has changed.
fn changes(connection: &Connection) -> i64 {
    connection.query_row("SELECT total_changes()", [], |row| row.get(0)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::mpsc;
    use std::time::Duration;

    use interlingua::event::{Event, Notice};
    use interlingua::json::Text;
    use interlingua::{Entry, Origin};

    use super::*;
    use crate::sqlite::{Changed, SqliteStore};
    use crate::{
        CommandState, CommandUpdate, Commit, Fence, IdempotencyKey, Queued, SessionId,
        SessionRecord, Store,
    };

    fn commit(sequence: u64, text: &str) -> Commit {
        let notice = Notice { text: Text::from(text.to_owned()), ..Notice::default() };
        let (origin, event) = (Origin::default(), Event::new(notice));
        let entry = Entry { sequence, received_at: None, epoch: 0, origin, event, raw: None };
        Commit { entries: vec![entry].into(), ..Commit::default() }
    }

    async fn owned(store: &SqliteStore, name: &str) -> (SessionId, Fence) {
        let id = SessionId::new(name).unwrap();
        store.create(SessionRecord::new(id.clone(), "codex", 1)).await.unwrap();
        let fence = store.claim(&id).await.unwrap();
        (id, fence)
    }

    /// Lets the file grow by so many pages of 4 KB.
    async fn limit(store: &SqliteStore, pages: i64) {
        let change = move |connection: &Connection, _| {
            let count = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
            let now = connection.query_row("PRAGMA page_count", [], count).map_err(failed)?;
            connection.pragma_update(None, "max_page_count", now + pages).map_err(failed)?;
            Ok(Changed::still(()))
        };
        store.change(change).await.unwrap();
    }

    fn open(path: &Path) -> SqliteStore {
        SqliteStore::open(path, Durability::default()).unwrap()
    }

    /// Lets the writer wait within a change, so that those that follow it are one group.
    async fn as_one_group<T>(store: &SqliteStore, group: impl Future<Output = T>) -> T {
        let (running, is_running) = mpsc::channel();
        let (go_on, goes_on) = mpsc::channel::<()>();
        let wait = store.change_with(false, move |_, _| {
            let _ = running.send(());
            let _ = goes_on.recv();
            Ok(Changed::still(()))
        });
        let (mut wait, mut group) = (std::pin::pin!(wait), std::pin::pin!(group));
        std::future::poll_fn(|context| {
            assert!(wait.as_mut().poll(context).is_pending());
            is_running.recv().unwrap();
            assert!(group.as_mut().poll(context).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
        go_on.send(()).unwrap();
        wait.await.unwrap();
        group.await
    }

    /// Whether a transaction waits for the disk, as the database knows it.
    fn level(connection: &Connection) -> i64 {
        connection.query_row("PRAGMA synchronous", [], |row| row.get(0)).unwrap()
    }

    const NORMAL: i64 = 1;
    const FULL: i64 = 2;

    /// The level at which a commit is stored.
    async fn level_of(store: &SqliteStore, id: &SessionId, fence: Fence, commit: Commit) -> i64 {
        let group = async {
            let level = |connection: &Connection, _| Ok(Changed::still(level(connection)));
            tokio::join!(store.commit(id, fence, commit), store.change_with(false, level))
        };
        let (stored, level) = as_one_group(store, group).await;
        stored.unwrap();
        level.unwrap()
    }

    #[tokio::test]
    async fn the_disk_has_changes_of_commands_before_they_are_acknowledged() {
        let folder = tempfile::tempdir().unwrap();
        let hour = Durability::Within(Duration::from_secs(3600));
        for (sync, of_entries) in [(hour, NORMAL), (Durability::Always, FULL)] {
            let path = folder.path().join(format!("{of_entries}.db"));
            let store = SqliteStore::open(&path, sync).unwrap();
            let (id, fence) = owned(&store, "one").await;
            let key = IdempotencyKey::new("k").unwrap();
            store.submit(&id, key.clone(), serde_json::json!({"type": "prompt"})).await.unwrap();
            assert_eq!(
                level_of(&store, &id, fence, commit(0, "one")).await,
                of_entries,
                "{sync:?}"
            );
            let queued = vec![Queued { key: key.clone(), supersedes: Vec::new() }];
            let queues = Commit { queued, ..Commit::default() };
            assert_eq!(level_of(&store, &id, fence, queues).await, FULL, "{sync:?}");
            assert_eq!(
                level_of(&store, &id, fence, commit(1, "two")).await,
                of_entries,
                "{sync:?}"
            );
            let state = CommandState::Delivering;
            let commands = vec![CommandUpdate { key, state, sequence: Some(2) }];
            let delivers = Commit { commands, ..commit(2, "three") };
            assert_eq!(level_of(&store, &id, fence, delivers).await, FULL, "{sync:?}");
        }
    }

    /// A writer of a new file, as the thread has it.
    fn writer(path: &Path, sync: Durability) -> Writer {
        let (connection, _) = crate::sqlite::open(path).unwrap();
        Writer { connection, sync, syncs: false, unsynced: None }
    }

    /// A change that stores a fence and notes at which level.
    fn change(syncs: bool, levels: &mpsc::Sender<i64>) -> Operation {
        let levels = levels.clone();
        let run = move |connection: Result<&Connection, Error>| -> Done {
            let connection = connection.unwrap();
            connection.execute("UPDATE fences SET last = last + 1", []).unwrap();
            levels.send(level(connection)).unwrap();
            Box::new(|stored| stored.unwrap())
        };
        Operation { run: Box::new(run), syncs }
    }

    /// The last fence in the file itself, without its write-ahead log.
    fn on_disk(path: &Path) -> i64 {
        let copy = path.with_extension("copy");
        std::fs::copy(path, &copy).unwrap();
        let connection = Connection::open(&copy).unwrap();
        connection.query_row("SELECT last FROM fences", [], |row| row.get(0)).unwrap()
    }

    #[tokio::test]
    async fn the_disk_has_everything_within_the_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        let (levels, level) = mpsc::channel();
        let mut writer = writer(&path, Durability::Within(Duration::ZERO));
        // The schema is in the file, and nothing else is.
        writer.unsynced = Some(Instant::now());
        writer.checkpoint();
        assert!(writer.store(vec![change(false, &levels)]).1.is_ok());
        assert_eq!((level.recv().unwrap(), on_disk(&path)), (NORMAL, 0));
        assert!(writer.unsynced.is_some());
        // No other change arrives, so the time passes while the writer waits for one.
        let (operations, mut received) = tokio::sync::mpsc::channel(1);
        {
            let mut next = std::pin::pin!(writer.next(&mut received));
            let waits = tokio::time::timeout(Duration::from_millis(50), next.as_mut()).await;
            assert!(waits.is_err());
        }
        assert!(writer.unsynced.is_none());
        assert_eq!(on_disk(&path), 1);
        // While others arrive, the first one after the time waits for the disk, and all earlier ones with it.
        assert!(writer.store(vec![change(false, &levels)]).1.is_ok());
        assert!(writer.unsynced.is_some());
        assert!(writer.store(vec![change(false, &levels)]).1.is_ok());
        assert!(writer.unsynced.is_none());
        assert_eq!([level.recv().unwrap(), level.recv().unwrap()], [NORMAL, FULL]);
        drop(operations);
    }

    /// A backup, for example, reads one state for a long time.
    #[tokio::test]
    async fn a_reader_does_not_keep_changes_from_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        let (levels, _level) = mpsc::channel();
        let mut writer = writer(&path, Durability::Within(Duration::ZERO));
        writer.unsynced = Some(Instant::now());
        writer.checkpoint();
        assert!(writer.unsynced.is_none() && !writer.syncs, "a checkpoint was enough");
        let reader = Connection::open(&path).unwrap();
        reader.execute_batch("BEGIN; SELECT * FROM fences").unwrap();
        assert!(writer.store(vec![change(false, &levels)]).1.is_ok());
        let before = changes(&writer.connection);
        writer.checkpoint();
        assert!(writer.unsynced.is_none() && writer.syncs, "the log was synchronized");
        assert_eq!(changes(&writer.connection), before + 1, "a commit without a change is none");
        reader.execute_batch("ROLLBACK").unwrap();
    }

    /// When there is no space for a row, SQLite undoes the whole transaction: what was changed before is
    /// undone, and what follows would be committed on its own.
    #[tokio::test]
    async fn a_group_whose_transaction_is_undone_fails_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(&folder.path().join("sessions.db"));
        let (before, on_before) = owned(&store, "before").await;
        let (large, on_large) = owned(&store, "large").await;
        let (after, on_after) = owned(&store, "after").await;
        limit(&store, 8).await;
        let group = async {
            tokio::join!(
                store.commit(&before, on_before, commit(0, "before")),
                store.commit(&large, on_large, commit(0, &"x".repeat(200_000))),
                store.commit(&after, on_after, commit(0, "after")),
            )
        };
        let (first, second, third) = as_one_group(&store, group).await;
        for failed in [&first, &second, &third] {
            assert!(matches!(failed, Err(Error::Failed(_))), "{failed:?}");
        }
        assert!(second.unwrap_err().to_string().contains("full"));
        // Nothing of it is stored, and the next group is.
        for (id, fence) in [(&before, on_before), (&after, on_after)] {
            assert_eq!(store.read(id, 0, 1000).await.unwrap().next, 0, "{id}");
            assert_eq!(store.commit(id, fence, commit(0, "again")).await.unwrap().next, 1, "{id}");
        }
        limit(&store, 1000).await;
        let stored = store.commit(&large, on_large, commit(0, &"x".repeat(200_000))).await;
        assert_eq!(stored.unwrap().next, 1);
    }
}
