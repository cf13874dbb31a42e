//! Which entries belong to which turn.
//!
//! The turns divide the log: a turn begins where the one before it ended, so that what precedes its
//! start belongs to it. Replayed turns are a part of the turn that follows them. Turns are counted
//! from 1.

use std::sync::{Arc, Mutex, PoisonError};

use interlingua_sessions::{SessionId, SessionRecord, Store};
use serde::Deserialize;

use super::records::lines;
use crate::error::ApiError;
use crate::lru::Lru;

/// How many bytes of a log are searched at a time.
const PAGE: usize = 256 * 1024;

/// The turns of a log, as far as it was searched.
#[derive(Debug, Clone, Default)]
struct Turns {
    /// The entries that were searched.
    searched: u64,
    /// The position after each turn that has ended.
    ends: Vec<u64>,
    /// A live turn is open.
    open: bool,
}

/// The entries of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// The first entry; as long as the turn before has not ended, the end of what was searched.
    pub(crate) start: u64,
    /// The position after the last entry, once the turn has ended.
    pub(crate) end: Option<u64>,
    /// The entries that were searched. To which turn later ones belong is not known yet.
    pub(crate) searched: u64,
}

/// The turns of the sessions that were searched last.
pub(crate) struct TurnIndex {
    known: Mutex<Lru<(SessionId, u64), Arc<Turns>>>,
}

#[derive(Deserialize)]
struct Boundary<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<std::borrow::Cow<'a, str>>,
    #[serde(default)]
    replay: bool,
}

impl TurnIndex {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { known: Mutex::new(Lru::new(capacity)) }
    }

    /// The entries of a turn, as far as the log reaches.
    pub(crate) async fn window(
        &self,
        store: &dyn Store,
        record: &SessionRecord,
        turn: u64,
    ) -> Result<Window, ApiError> {
        let key = (record.id.clone(), record.created_at);
        let known = self.lock().get_mut(&key).cloned().unwrap_or_default();
        let mut turns = (*known).clone();
        if !turns.contains(turn) {
            turns.search(store, &record.id, turn).await?;
            if turns.searched > known.searched {
                self.lock().insert(key, Arc::new(turns.clone()));
            }
        }
        Ok(turns.window(turn))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Lru<(SessionId, u64), Arc<Turns>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turns {
    fn contains(&self, turn: u64) -> bool {
        self.ends.len() as u64 >= turn
    }

    /// Searches the log until the end of a turn.
    async fn search(
        &mut self,
        store: &dyn Store,
        id: &SessionId,
        turn: u64,
    ) -> Result<(), ApiError> {
        while !self.contains(turn) {
            let page = store.read(id, self.searched, PAGE).await?;
            if page.lines.is_empty() {
                break;
            }
            for line in lines(&page.lines) {
                self.add(line);
            }
            tokio::task::consume_budget().await;
        }
        Ok(())
    }

    fn add(&mut self, line: &[u8]) {
        self.searched += 1;
        // Few lines name a turn, and only those are parsed.
        if memchr::memmem::find(line, b"turn_").is_none() {
            return;
        }
        let Ok(Boundary { kind: Some(kind), replay }) = serde_json::from_slice(line) else {
            return;
        };
        match (&*kind, replay) {
            ("turn_started", false) => self.open = true,
            ("turn_ended", false) if std::mem::take(&mut self.open) => {
                self.ends.push(self.searched)
            }
            _ => {}
        }
    }

    fn window(&self, turn: u64) -> Window {
        let end_of = |turn: u64| {
            let index = usize::try_from(turn.checked_sub(1)?).ok()?;
            self.ends.get(index).copied()
        };
        let start = if turn <= 1 { 0 } else { end_of(turn - 1).unwrap_or(self.searched) };
        Window { start, end: end_of(turn), searched: self.searched }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replayed_turn_belongs_to_the_next_one() {
        let mut turns = Turns::default();
        for line in [
            r#"{"type":"session_started"}"#,
            r#"{"type":"turn_started","replay":true}"#,
            r#"{"type":"turn_ended","replay":true}"#,
            r#"{"type":"turn_started"}"#,
            r#"{"type":"notice","text":"turn_ended"}"#,
            r#"{"type":"turn_ended","outcome":"completed"}"#,
            r#"{"type":"turn_ended","outcome":"completed"}"#,
            r#"{"type":"turn_started"}"#,
        ] {
            turns.add(line.as_bytes());
        }
        assert_eq!(turns.window(1), Window { start: 0, end: Some(6), searched: 8 });
        assert_eq!(turns.window(2), Window { start: 6, end: None, searched: 8 });
        assert_eq!(turns.window(3), Window { start: 8, end: None, searched: 8 });
    }
}
