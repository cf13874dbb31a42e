//! The queue of bytes for the consumer, which may be slow.
//!
//! A thread writes, so that nothing else waits for the consumer. The queue holds a few chunks;
//! while it is full, no more output of the agent is read, and it stays in its spool. A short chunk
//! for a consumer that is ready is written directly: most chunks are short, and waking a thread for
//! each of them costs more than everything else.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use tokio::sync::{mpsc, oneshot};

/// The capacity of the queue, in chunks.
const CAPACITY: usize = 8;

/// The number of bytes that a ready consumer must accept without blocking.
const SHORT: usize = 4096;

/// Receives the output of a run.
pub trait Consumer: Write + Send {
    /// Whether 4096 bytes can be written now without blocking.
    fn is_ready(&self) -> bool {
        false
    }
}

/// A change in the state of the consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConsumerChange {
    /// It accepts more output.
    Ready,
    /// It accepts no more output.
    Closed,
}

pub(super) struct Outbox {
    consumer: Arc<Mutex<Box<dyn Consumer>>>,
    pieces: Option<mpsc::Sender<Vec<u8>>>,
    /// The number of chunks that the thread has not written yet.
    in_flight: Arc<AtomicUsize>,
    /// Chunks for which the queue had no capacity.
    waiting: VecDeque<Vec<u8>>,
    written: Option<oneshot::Receiver<()>>,
    /// Why the thread stopped writing.
    problem: Arc<OnceLock<io::Error>>,
}

impl Outbox {
    pub(super) fn new(consumer: Box<dyn Consumer>) -> Self {
        let consumer = Arc::new(Mutex::new(consumer));
        let in_flight = Arc::new(AtomicUsize::new(0));
        let (pieces, mut taken) = mpsc::channel::<Vec<u8>>(CAPACITY);
        let (done, written) = oneshot::channel();
        let (output, count) = (consumer.clone(), in_flight.clone());
        let problem = Arc::new(OnceLock::new());
        let failure = problem.clone();
        std::thread::spawn(move || {
            while let Some(piece) = taken.blocking_recv() {
                if let Err(why) = write(&output, &piece) {
                    let _ = failure.set(why);
                    return;
                }
                count.fetch_sub(1, Ordering::Release);
            }
            // The receiver may have been dropped.
            let _ = done.send(());
        });
        let (pieces, written) = (Some(pieces), Some(written));
        Self { consumer, pieces, in_flight, waiting: VecDeque::new(), written, problem }
    }

    /// Why the consumer is closed, unless it closed itself.
    pub(super) fn failure(&self) -> Option<String> {
        let problem = self.problem.get()?;
        (problem.kind() != io::ErrorKind::BrokenPipe).then(|| problem.to_string())
    }

    /// Queues bytes for the consumer.
    pub(super) fn put(&mut self, bytes: &[u8]) {
        if bytes.is_empty() || self.pieces.is_none() || self.try_write_now(bytes) {
            return;
        }
        self.waiting.push_back(bytes.to_vec());
        self.send_waiting();
    }

    /// Writes a short chunk directly, if the queue is empty and the consumer is ready.
    fn try_write_now(&self, bytes: &[u8]) -> bool {
        let first = self.waiting.is_empty() && self.in_flight.load(Ordering::Acquire) == 0;
        if !first || bytes.len() > SHORT {
            return false;
        }
        let ready = self.consumer.lock().is_ok_and(|consumer| consumer.is_ready());
        // If the write fails after all, the thread detects it.
        ready && write(&self.consumer, bytes).is_ok()
    }

    /// Queues as many waiting chunks as there is capacity for.
    fn send_waiting(&mut self) {
        let Some(pieces) = &self.pieces else { return };
        while let Some(piece) = self.waiting.pop_front() {
            self.in_flight.fetch_add(1, Ordering::AcqRel);
            let Err(refused) = pieces.try_send(piece) else { continue };
            self.in_flight.fetch_sub(1, Ordering::AcqRel);
            if let mpsc::error::TrySendError::Full(piece) = refused {
                self.waiting.push_front(piece);
            }
            return;
        }
    }

    /// Whether more can be queued without waiting.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Waits until there is capacity again, or until the consumer is closed. After that, further
    /// output is discarded.
    pub(super) async fn changed(&mut self) -> ConsumerChange {
        let Some(pieces) = &self.pieces else { return std::future::pending().await };
        while !self.waiting.is_empty() {
            let Ok(permit) = pieces.reserve().await else { break };
            if let Some(piece) = self.waiting.pop_front() {
                self.in_flight.fetch_add(1, Ordering::AcqRel);
                permit.send(piece);
            }
            if self.waiting.is_empty() {
                return ConsumerChange::Ready;
            }
        }
        pieces.closed().await;
        self.pieces = None;
        self.waiting.clear();
        ConsumerChange::Closed
    }

    /// Waits until everything was written, or the consumer is closed.
    pub(super) async fn drained(&mut self) {
        let Some(pieces) = self.pieces.take() else { return };
        for piece in self.waiting.drain(..) {
            if pieces.send(piece).await.is_err() {
                return;
            }
        }
        drop(pieces);
        if let Some(written) = self.written.take() {
            // An error means that the thread ended early; there is nothing left to wait for either
            // way.
            let _ = written.await;
        }
    }
}

fn write(consumer: &Mutex<Box<dyn Consumer>>, piece: &[u8]) -> io::Result<()> {
    let poisoned = |_| io::Error::other("the consumer panicked");
    let mut consumer = consumer.lock().map_err(poisoned)?;
    consumer.write_all(piece).and_then(|()| consumer.flush())
}
