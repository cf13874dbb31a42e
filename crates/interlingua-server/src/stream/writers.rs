//! Writers that have caught up, so that a reader who comes back does not replay the log.
//!
//! A writer that has written the first N entries serves every reader of the same session and form
//! that continues at N or later: it is cloned, and advanced if need be.

use std::sync::{Mutex, PoisonError};

use interlingua::dialect::{Dialect, EncodeOptions};
use interlingua::{Error, Writer};
use interlingua_sessions::{SessionId, SessionRecord};

use crate::lru::Lru;
use crate::metrics::Metrics;

/// How many writers of one session and form are kept, for readers at different places.
const PER_FORM: usize = 2;

/// What determines the output of a writer, except its entries.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct WriterKey {
    session: SessionId,
    /// An id may be used again after a session was deleted.
    created_at: u64,
    id_seed: u64,
    dialect: &'static str,
    partial: bool,
    each_turn: bool,
}

/// The form in which entries are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form {
    pub(crate) dialect: &'static Dialect,
    /// Deltas are written where they are optional.
    pub(crate) partial: bool,
    /// Each turn is a stream of its own.
    pub(crate) each_turn: bool,
}

impl WriterKey {
    pub(crate) fn new(record: &SessionRecord, form: Form) -> Self {
        Self {
            session: record.id.clone(),
            created_at: record.created_at,
            id_seed: record.id_seed,
            dialect: form.dialect.name,
            partial: form.partial,
            each_turn: form.each_turn,
        }
    }

    /// A writer at the beginning of the session.
    pub(crate) fn first_writer(&self, dialect: &'static Dialect) -> Result<Writer, Error> {
        let options = EncodeOptions {
            partial: self.partial,
            stream_each_turn: self.each_turn,
            id_seed: Some(self.id_seed),
            ..EncodeOptions::default()
        };
        Writer::new(dialect, &options)
    }
}

/// A writer, and how many entries it has written or skipped.
pub(crate) struct Placed {
    pub(crate) position: u64,
    pub(crate) writer: Writer,
}

/// The cache.
pub(crate) struct Writers {
    cached: Mutex<Lru<WriterKey, Vec<Placed>>>,
}

impl Writers {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { cached: Mutex::new(Lru::new(capacity / PER_FORM)) }
    }

    /// The writer that is nearest to a position, and not behind it.
    pub(crate) fn nearest(
        &self,
        key: &WriterKey,
        position: u64,
        metrics: &Metrics,
    ) -> Option<Placed> {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let placed = cached.get_mut(key).and_then(|writers| {
            let before = writers.iter().filter(|placed| placed.position <= position);
            let nearest = before.max_by_key(|placed| placed.position)?;
            Some(Placed { position: nearest.position, writer: nearest.writer.clone() })
        });
        let is_hit = placed.as_ref().is_some_and(|placed| placed.position == position);
        metrics.writer_looked_up(is_hit);
        placed
    }

    /// Keeps a writer for the next reader. The ones that are furthest behind make room for it.
    pub(crate) fn keep(&self, key: &WriterKey, placed: Placed) {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(writers) = cached.get_mut(key) else {
            cached.insert(key.clone(), vec![placed]);
            return;
        };
        if writers.iter().any(|known| known.position == placed.position) {
            return;
        }
        writers.push(placed);
        if writers.len() > PER_FORM {
            writers.sort_by_key(|placed| placed.position);
            writers.remove(0);
        }
    }
}
