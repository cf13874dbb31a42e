//! What is still to be written to the consumer, who may be slow.
//!
//! A thread writes, so that nothing else waits for the consumer. There is room for a few pieces; when
//! it is full, no more is read of what the agent prints, which stays where it is. A short piece for a
//! consumer that is ready for it is written at once: most pieces are, and waking a thread for each
//! costs more than all the rest.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::{mpsc, oneshot};

/// How many pieces may wait.
const ROOM: usize = 8;

/// How many bytes a consumer must take at once when it says that it is ready.
const SHORT: usize = 4096;

/// Who takes what is written.
pub trait Consumer: Write + Send {
    /// Whether 4096 bytes can be written now without waiting.
    fn is_ready(&self) -> bool {
        false
    }
}

/// What is new of the consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// It takes more.
    Room,
    /// It takes nothing any more.
    Gone,
}

pub(super) struct Outbox {
    consumer: Arc<Mutex<Box<dyn Consumer>>>,
    pieces: Option<mpsc::Sender<Vec<u8>>>,
    /// How many pieces the thread has not written yet.
    in_flight: Arc<AtomicUsize>,
    /// Pieces for which there was no room.
    waiting: VecDeque<Vec<u8>>,
    written: Option<oneshot::Receiver<()>>,
}

impl Outbox {
    pub(super) fn new(consumer: Box<dyn Consumer>) -> Self {
        let consumer = Arc::new(Mutex::new(consumer));
        let in_flight = Arc::new(AtomicUsize::new(0));
        let (pieces, mut taken) = mpsc::channel::<Vec<u8>>(ROOM);
        let (done, written) = oneshot::channel();
        let (output, count) = (consumer.clone(), in_flight.clone());
        std::thread::spawn(move || {
            while let Some(piece) = taken.blocking_recv() {
                if !write(&output, &piece) {
                    return;
                }
                count.fetch_sub(1, Ordering::Release);
            }
            // Whoever waits for it may be gone.
            let _ = done.send(());
        });
        let (pieces, written) = (Some(pieces), Some(written));
        Self { consumer, pieces, in_flight, waiting: VecDeque::new(), written }
    }

    /// Writes some bytes, when the consumer takes them.
    pub(super) fn put(&mut self, bytes: &[u8]) {
        if bytes.is_empty() || self.pieces.is_none() || self.written_at_once(bytes) {
            return;
        }
        self.waiting.push_back(bytes.to_vec());
        self.hand_over();
    }

    /// Writes a short piece now, if nothing is before it and the consumer is ready.
    fn written_at_once(&self, bytes: &[u8]) -> bool {
        let first = self.waiting.is_empty() && self.in_flight.load(Ordering::Acquire) == 0;
        if !first || bytes.len() > SHORT {
            return false;
        }
        let ready = self.consumer.lock().is_ok_and(|consumer| consumer.is_ready());
        // One that cannot take it after all is found out by the thread.
        ready && write(&self.consumer, bytes)
    }

    /// Hands over as much as there is room for.
    fn hand_over(&mut self) {
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

    /// Whether more can be written without waiting.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Waits until there is room where there was none, or until the consumer is gone: then what is
    /// still put here goes nowhere.
    pub(super) async fn news(&mut self) -> Sign {
        let Some(pieces) = &self.pieces else { return std::future::pending().await };
        while !self.waiting.is_empty() {
            let Ok(permit) = pieces.reserve().await else { break };
            if let Some(piece) = self.waiting.pop_front() {
                self.in_flight.fetch_add(1, Ordering::AcqRel);
                permit.send(piece);
            }
            if self.waiting.is_empty() {
                return Sign::Room;
            }
        }
        pieces.closed().await;
        self.pieces = None;
        self.waiting.clear();
        Sign::Gone
    }

    /// Waits until all was written, or the consumer is gone.
    pub(super) async fn emptied(&mut self) {
        let Some(pieces) = self.pieces.take() else { return };
        for piece in self.waiting.drain(..) {
            if pieces.send(piece).await.is_err() {
                return;
            }
        }
        drop(pieces);
        if let Some(written) = self.written.take() {
            // An error says that the thread has ended without having written all: the same to us.
            let _ = written.await;
        }
    }
}

fn write(consumer: &Mutex<Box<dyn Consumer>>, piece: &[u8]) -> bool {
    let Ok(mut consumer) = consumer.lock() else { return false };
    consumer.write_all(piece).and_then(|()| consumer.flush()).is_ok()
}
