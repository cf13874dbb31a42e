//! Wakes those who wait for the end of a log to move.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

use crate::{SessionId, Tail};

/// The watched sessions. What no one watches any more is removed when the number of sessions has
/// doubled, so that watching one does not depend on how many others are watched.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    watched: Mutex<Watched>,
}

#[derive(Debug, Default)]
struct Watched {
    tails: HashMap<SessionId, watch::Sender<Tail>>,
    /// How many sessions there may be before those without a watcher are removed.
    limit: usize,
}

impl Wakes {
    pub(crate) fn watch(&self, id: &SessionId) -> watch::Receiver<Tail> {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if watched.tails.len() >= watched.limit {
            watched.tails.retain(|_, tail| tail.receiver_count() > 0);
            watched.limit = 2 * watched.tails.len() + 16;
        }
        watched.tails.entry(id.clone()).or_default().subscribe()
    }

    pub(crate) fn moved(&self, id: &SessionId, tail: Tail) {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        // A new watcher must not wake all others, so what has not changed is not sent.
        if let Some(sender) = watched.tails.get(id) {
            sender.send_if_modified(|known| std::mem::replace(known, tail) != tail);
        }
    }
}
