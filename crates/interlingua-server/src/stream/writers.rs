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
const PER_FORM: usize = 4;

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
            let before = writers.iter().enumerate().filter(|(_, it)| it.position <= position);
            let (at, _) = before.max_by_key(|(_, placed)| placed.position)?;
            // The last one is the one that was used last.
            let nearest = writers.remove(at);
            let found = Placed { position: nearest.position, writer: nearest.writer.clone() };
            writers.push(nearest);
            Some(found)
        });
        let is_hit = placed.as_ref().is_some_and(|placed| placed.position == position);
        metrics.writer_looked_up(is_hit);
        placed
    }

    /// Keeps a writer for the next reader. The one that was not used for the longest time makes room.
    pub(crate) fn keep(&self, key: &WriterKey, placed: Placed) {
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(writers) = cached.get_mut(key) else {
            cached.insert(key.clone(), vec![placed]);
            return;
        };
        writers.retain(|known| known.position != placed.position);
        writers.push(placed);
        if writers.len() > PER_FORM {
            writers.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use interlingua::dialect;

    use super::*;

    /// A reader that catches up part by part is behind those that follow the end.
    #[test]
    fn a_place_that_is_used_is_kept_whatever_it_is() {
        let record = SessionRecord::new(SessionId::new("s").unwrap(), "codex", 0);
        let dialect = dialect::named("text").unwrap();
        let key = WriterKey::new(&record, Form { dialect, partial: false, each_turn: false });
        let (writers, metrics) = (Writers::new(64), Metrics::default());
        let keep = |position| {
            let writer = key.first_writer(dialect).unwrap();
            writers.keep(&key, Placed { position, writer });
        };
        for position in 0..PER_FORM as u64 {
            keep(1000 + position);
        }
        for position in [10, 20, 30] {
            keep(position);
            let found = writers.nearest(&key, position, &metrics).unwrap();
            assert_eq!(found.position, position);
        }
    }
}
