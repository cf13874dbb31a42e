//! What only a file can lose.

use interlingua_sessions::{Durability, Error, Filter, SqliteStore, Store};
use serde_json::json;

use crate::support::{Hands, entries, id, key, numbers, owned};

#[tokio::test]
async fn a_file_keeps_everything() {
    let (hands, folder) = (Hands::new(), tempfile::tempdir().unwrap());
    let path = folder.path().join("deep/sessions.db");
    let store = SqliteStore::open_with_clock(&path, Durability::default(), hands.clock()).unwrap();
    let (session, fence) = owned(&store, "kept", &hands).await;
    store.commit(&session, fence, entries(0..3)).await.unwrap();
    store.submit(&session, key("k"), json!({"type": "prompt"})).await.unwrap();
    let before = store.load(&session).await.unwrap();
    drop(store);
    let store = SqliteStore::open_with_clock(&path, Durability::default(), hands.clock()).unwrap();
    assert_eq!(store.load(&session).await.unwrap(), before);
    let page = store.read(&session, 0, 10_000).await.unwrap();
    assert_eq!(numbers(&page.lines), [0, 1, 2]);
    assert_eq!(store.open_commands(&session).await.unwrap().len(), 1);
    // A new owner goes on behind the last entry.
    let next = store.claim(&session).await.unwrap();
    assert!(next > fence);
    assert_eq!(store.commit(&session, next, entries(3..4)).await.unwrap().next, 4);
}

/// A reader that read 64 KB at a time from a row of 900 KB read all of it each time.
#[tokio::test]
async fn a_row_is_not_larger_than_what_is_read_at_once() {
    let (hands, folder) = (Hands::new(), tempfile::tempdir().unwrap());
    let path = folder.path().join("sessions.db");
    let store = SqliteStore::open_with_clock(&path, Durability::default(), hands.clock()).unwrap();
    let (session, fence) = owned(&store, "large", &hands).await;
    store.commit(&session, fence, entries(0..4000)).await.unwrap();
    drop(store);
    let connection = rusqlite::Connection::open(&path).unwrap();
    let query = "SELECT count(*), sum(count), max(length(lines)) FROM log";
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let (rows, count, longest): (i64, i64, i64) = connection.query_row(query, [], row).unwrap();
    assert_eq!(count, 4000);
    assert!(rows > 8 && longest <= 32 << 10, "{rows} rows of up to {longest} bytes");
}

#[test]
fn a_file_has_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let store = SqliteStore::open(&path, Durability::default()).unwrap();
    let second = SqliteStore::open(&path, Durability::default()).unwrap_err();
    assert_eq!(second, Error::InUse(path.display().to_string()));
    assert!(second.to_string().contains("--server"));
    drop(store);
    SqliteStore::open(&path, Durability::default()).unwrap();
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_a_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions/sessions.db");
    let _store = SqliteStore::open(&path, Durability::default()).unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(path.parent().unwrap()) & 0o777, 0o700);
    for entry in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path) & 0o077, 0, "{path:?}");
    }
}

#[test]
fn a_newer_schema_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    drop(SqliteStore::open(&path, Durability::default()).unwrap());
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let refused = SqliteStore::open(&path, Durability::default()).unwrap_err().to_string();
    assert!(refused.contains("version 99") && refused.contains("update"), "{refused}");
}

#[test]
fn what_is_no_database_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    std::fs::write(&path, "this is not a database, but it is long enough to look like one")
        .unwrap();
    let refused = SqliteStore::open(&path, Durability::default()).unwrap_err().to_string();
    assert!(refused.contains("not a database"), "{refused}");
}

/// A record that cannot be read is absent, and does not hide the others.
#[tokio::test]
async fn a_corrupted_record_reads_as_absent() {
    let (hands, folder) = (Hands::new(), tempfile::tempdir().unwrap());
    let path = folder.path().join("sessions.db");
    let store = SqliteStore::open_with_clock(&path, Durability::default(), hands.clock()).unwrap();
    owned(&store, "broken", &hands).await;
    owned(&store, "fine", &hands).await;
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute("UPDATE sessions SET record = '{\"id\":' WHERE id = 'broken'", []).unwrap();
    assert_eq!(store.load(&id("broken")).await, Ok(None));
    let listed = store.list(&Filter::default()).await.unwrap();
    assert_eq!(listed.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), ["fine"]);
    // Its id can be used again.
    owned(&store, "broken", &hands).await;
    assert!(store.load(&id("broken")).await.unwrap().is_some());
}
