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
        let checkpoint = "PRAGMA wal_checkpoint(PASSIVE)";
        if self.unsynced.is_some() && self.connection.query_row(checkpoint, [], |_| Ok(())).is_ok()
        {
            self.unsynced = None;
        }
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
        let run = |operation: Operation| {
            let lost = || Error::Failed("the transaction was undone by the database".to_owned());
            let connection =
                if transaction.is_autocommit() { Err(lost()) } else { Ok(&*transaction) };
            (operation.run)(connection)
        };
        let done = group.into_iter().map(run).collect();
        let stored = transaction.commit().map_err(failed);
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
