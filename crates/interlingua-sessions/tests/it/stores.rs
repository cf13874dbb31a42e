//! All stores, for tests that every one of them passes.

use std::sync::Arc;

use interlingua_sessions::{Durability, MemoryStore, SqliteStore, Store};

use crate::support::Hands;

/// A store, with what it needs to live.
pub(crate) struct Kept {
    pub(crate) store: Arc<dyn Store>,
    _folder: Option<tempfile::TempDir>,
}

fn memory(hands: &Hands) -> Kept {
    Kept { store: Arc::new(MemoryStore::with_clock(hands.clock())), _folder: None }
}

fn sqlite(hands: &Hands) -> Kept {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let store = SqliteStore::open_with_clock(&path, Durability::default(), hands.clock()).unwrap();
    Kept { store: Arc::new(store), _folder: Some(folder) }
}

pub(crate) const STORES: [fn(&Hands) -> Kept; 2] = [memory, sqlite];

/// Runs a test for every store.
macro_rules! for_every_store {
    ($(#[$meta:meta])* $name:ident($store:ident, $hands:ident) $body:block) => {
        $(#[$meta])*
        #[tokio::test]
        async fn $name() {
            for make in $crate::stores::STORES {
                let $hands = $crate::support::Hands::new();
                let kept = make(&$hands);
                let $store = std::sync::Arc::clone(&kept.store);
                $body
            }
        }
    };
}
