//! The bounded stream of entries from a session to its consumer.
//!
//! Entries are passed on in batches: those of one read of the agent's output, since waking a task
//! for each of them costs more than everything else. While the stream is full, no more output is
//! read.

use std::collections::VecDeque;

use interlingua::Batch;
use tokio::sync::{mpsc, oneshot};

use super::Ended;

/// The capacity of the stream, in batches.
const CAPACITY: usize = 8;

/// The entries of a session, in order and without gaps.
#[derive(Debug)]
pub struct Entries {
    batches: mpsc::Receiver<Batch>,
    ended: oneshot::Receiver<Ended>,
}

impl Entries {
    /// The next entries, at least one; `None` at the end of the session.
    ///
    /// This is cancel safe: if the future is dropped, no entry is lost.
    pub async fn next(&mut self) -> Option<Batch> {
        self.batches.recv().await
    }

    /// The next entries, if some are there already.
    pub fn try_next(&mut self) -> Option<Batch> {
        self.batches.try_recv().ok()
    }

    /// Waits for the end of the session, and discards the entries that were not taken. Returns
    /// `None` if the session was aborted, because its runtime was shut down.
    pub async fn end(mut self) -> Option<Ended> {
        while self.next().await.is_some() {}
        self.ended.await.ok()
    }
}

/// A change in the state of the consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConsumerChange {
    /// It takes more entries.
    Ready,
    /// It takes no more entries.
    Closed,
}

/// The sending side of [`Entries`].
#[derive(Debug)]
pub(crate) struct Outbox {
    batches: Option<mpsc::Sender<Batch>>,
    ended: oneshot::Sender<Ended>,
    /// Batches for which the stream had no capacity.
    waiting: VecDeque<Batch>,
}

impl Outbox {
    pub(crate) fn new() -> (Self, Entries) {
        let (batches, received) = mpsc::channel(CAPACITY);
        let (sender, ended) = oneshot::channel();
        let outbox = Self { batches: Some(batches), ended: sender, waiting: VecDeque::new() };
        (outbox, Entries { batches: received, ended })
    }

    /// Queues entries for the consumer.
    pub(crate) fn put(&mut self, batch: Batch) {
        let Some(batches) = &self.batches else { return };
        if batch.is_empty() {
            return;
        }
        self.waiting.push_back(batch);
        while let Some(batch) = self.waiting.pop_front() {
            match batches.try_send(batch) {
                Ok(()) => {}
                Err(mpsc::error::TrySendError::Full(batch)) => {
                    self.waiting.push_front(batch);
                    return;
                }
                // The closed stream is reported by `changed`.
                Err(mpsc::error::TrySendError::Closed(_)) => return,
            }
        }
    }

    /// Whether more can be queued without waiting.
    pub(crate) fn has_room(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Waits until there is capacity again, or until the consumer has gone. After that, further
    /// entries are discarded.
    pub(crate) async fn changed(&mut self) -> ConsumerChange {
        let Some(batches) = &self.batches else { return std::future::pending().await };
        while !self.waiting.is_empty() {
            let Ok(permit) = batches.reserve().await else { break };
            if let Some(batch) = self.waiting.pop_front() {
                permit.send(batch);
            }
            if self.waiting.is_empty() {
                return ConsumerChange::Ready;
            }
        }
        batches.closed().await;
        self.batches = None;
        self.waiting.clear();
        ConsumerChange::Closed
    }

    /// Waits until the stream has accepted all entries, or the consumer has gone.
    pub(crate) async fn flush(&mut self) {
        let Some(batches) = &self.batches else { return };
        while let Some(batch) = self.waiting.pop_front() {
            if batches.send(batch).await.is_err() {
                return;
            }
        }
    }

    /// Ends the stream with the result of the session.
    pub(crate) fn end(self, ended: Ended) {
        // The consumer may have gone.
        let _ = self.ended.send(ended);
    }
}
