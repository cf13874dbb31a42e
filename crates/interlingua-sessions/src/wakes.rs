//! Wakes those who wait for the end of a log to move.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

use crate::{SessionId, Tail};

/// The watched sessions. A session that no one watches takes no memory.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    watched: Mutex<HashMap<SessionId, watch::Sender<Tail>>>,
}

impl Wakes {
    pub(crate) fn watch(&self, id: &SessionId) -> watch::Receiver<Tail> {
        let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.retain(|_, tail| tail.receiver_count() > 0);
        watched.entry(id.clone()).or_default().subscribe()
    }

    pub(crate) fn moved(&self, id: &SessionId, tail: Tail) {
        let watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = watched.get(id) {
            sender.send_replace(tail);
        }
    }
}
