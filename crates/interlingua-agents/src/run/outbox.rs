//! What is still to be written to the consumer, who may be slow.
//!
//! A thread writes, so that nothing else waits for the consumer. There is room for a few pieces; when
//! it is full, no more is read of what the agent prints, which stays where it is.

use std::io::Write;

use tokio::sync::{mpsc, oneshot};

/// How many pieces may wait.
const ROOM: usize = 8;

/// What is new of the consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    /// It takes more.
    Room,
    /// It takes nothing any more.
    Gone,
}

pub(super) struct Outbox {
    pieces: Option<mpsc::Sender<Vec<u8>>>,
    /// Pieces for which there was no room.
    waiting: std::collections::VecDeque<Vec<u8>>,
    written: Option<oneshot::Receiver<()>>,
}

impl Outbox {
    pub(super) fn new(mut output: Box<dyn Write + Send>) -> Self {
        let (pieces, mut taken) = mpsc::channel::<Vec<u8>>(ROOM);
        let (done, written) = oneshot::channel();
        std::thread::spawn(move || {
            while let Some(piece) = taken.blocking_recv() {
                if output.write_all(&piece).and_then(|()| output.flush()).is_err() {
                    return;
                }
            }
            // Whoever waits for it may be gone.
            let _ = done.send(());
        });
        Self { pieces: Some(pieces), waiting: Default::default(), written: Some(written) }
    }

    /// Writes some bytes, when the consumer takes them.
    pub(super) fn put(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() && self.pieces.is_some() {
            self.waiting.push_back(bytes.to_vec());
            self.hand_over();
        }
    }

    /// Hands over as much as there is room for.
    fn hand_over(&mut self) {
        let Some(pieces) = &self.pieces else { return };
        while let Some(piece) = self.waiting.pop_front() {
            match pieces.try_send(piece) {
                Ok(()) => {}
                Err(mpsc::error::TrySendError::Full(piece)) => {
                    self.waiting.push_front(piece);
                    return;
                }
                Err(mpsc::error::TrySendError::Closed(_)) => return,
            }
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
