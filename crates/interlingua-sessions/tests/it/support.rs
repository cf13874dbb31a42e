//! What several tests need: a clock that stands still, and entries.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use interlingua::event::{Event, Notice};
use interlingua::json::Text;
use interlingua::{Entry, Origin};
use interlingua_sessions::{
    Clock, Commit, Fence, IdempotencyKey, SessionId, SessionRecord, State, Store,
};

/// A clock that moves only when a test moves it.
#[derive(Debug, Clone)]
pub(crate) struct Hands(Arc<AtomicU64>);

impl Hands {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicU64::new(1_000_000)))
    }

    pub(crate) fn clock(&self) -> Clock {
        let hands = Arc::clone(&self.0);
        Arc::new(move || hands.load(Ordering::SeqCst))
    }

    pub(crate) fn advance(&self, milliseconds: u64) {
        self.0.fetch_add(milliseconds, Ordering::SeqCst);
    }

    pub(crate) fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

pub(crate) fn id(id: &str) -> SessionId {
    SessionId::new(id).unwrap()
}

pub(crate) fn key(key: &str) -> IdempotencyKey {
    IdempotencyKey::new(key).unwrap()
}

/// A record of a session that rests, and is kept for ten minutes.
pub(crate) fn record(name: &str, hands: &Hands) -> SessionRecord {
    let record = SessionRecord::new(id(name), "codex", hands.now());
    SessionRecord { state: State::Idle, ttl_ms: Some(600_000), ..record }
}

/// Creates a session, and takes its ownership.
pub(crate) async fn owned(store: &dyn Store, name: &str, hands: &Hands) -> (SessionId, Fence) {
    store.create(record(name, hands)).await.unwrap();
    let id = id(name);
    let fence = store.claim(&id).await.unwrap();
    (id, fence)
}

pub(crate) fn entry(sequence: u64, text: &str) -> Entry {
    let notice = Notice { text: Text::from(text.to_owned()), ..Notice::default() };
    Entry {
        sequence,
        received_at: Some(7),
        epoch: 0,
        origin: Origin::default(),
        event: Event::new(notice),
        raw: None,
    }
}

/// A commit of some entries, each of which contains its number.
pub(crate) fn entries(numbers: std::ops::Range<u64>) -> Commit {
    let entries = numbers.map(|number| entry(number, &format!("entry {number}"))).collect();
    Commit { entries, ..Commit::default() }
}

/// The entries of a page.
pub(crate) fn parsed(lines: &[u8]) -> Vec<Entry> {
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

/// The numbers of the entries of a page.
pub(crate) fn numbers(lines: &[u8]) -> Vec<u64> {
    parsed(lines).iter().map(|entry| entry.sequence).collect()
}
