//! What only a file can lose.

use interlingua_sessions::{
    CommandState, CommandUpdate, Commit, Durability, Error, Filter, Patch, ServerLock, SqliteStore,
    State, Store,
};
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
fn a_file_has_one_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/sessions.db");
    let server = ServerLock::acquire(&path).unwrap();
    let second = ServerLock::acquire(&path).unwrap_err();
    assert_eq!(second, Error::InUse(path.display().to_string()));
    assert!(second.to_string().contains("--server"));
    drop(server);
    ServerLock::acquire(&path).unwrap();
}

/// Each store plays a process: it has a lock of its own.
#[tokio::test]
async fn a_session_has_one_process() {
    let (hands, folder) = (Hands::new(), tempfile::tempdir().unwrap());
    let path = folder.path().join("sessions.db");
    let open =
        || SqliteStore::open_with_clock(&path, Durability::default(), hands.clock()).unwrap();
    let (one, other) = (open(), open());
    let (session, fence) = owned(&one, "shared", &hands).await;
    let held = Err(Error::Held(session.clone()));
    assert_eq!(other.claim(&session).await.map(drop), held);
    assert_eq!(other.delete(&session).await.map(drop), held);
    // What the one writes, the other reads.
    one.commit(&session, fence, entries(0..2)).await.unwrap();
    assert_eq!(numbers(&other.read(&session, 0, 10_000).await.unwrap().lines), [0, 1]);
    one.release(&session, fence).await.unwrap();
    let next = other.claim(&session).await.unwrap();
    assert_eq!(
        one.commit(&session, fence, entries(2..3)).await,
        Err(Error::StaleOwner(session.clone()))
    );
    // A release that comes too late has no effect.
    one.release(&session, fence).await.unwrap();
    assert_eq!(one.claim(&session).await.map(drop), held);
    other.commit(&session, next, entries(2..3)).await.unwrap();
    // A process that ends releases everything, however it ends.
    drop(other);
    one.claim(&session).await.unwrap();
}

/// An answer may be a password. The log hides it, and the file of the store must not contain it.
#[tokio::test]
async fn the_content_of_a_command_that_is_final_is_not_kept() {
    let (hands, folder) = (Hands::new(), tempfile::tempdir().unwrap());
    let path = folder.path().join("sessions.db");
    let store = SqliteStore::open_with_clock(&path, Durability::default(), hands.clock()).unwrap();
    let (session, fence) = owned(&store, "secret", &hands).await;
    let body = json!({"type": "answer", "answer": "open sesame"});
    store.submit(&session, key("k"), body.clone()).await.unwrap();
    let update = CommandUpdate { key: key("k"), state: CommandState::Delivered, sequence: None };
    let commit = Commit { commands: vec![update], ..Commit::default() };
    store.commit(&session, fence, commit).await.unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    let kept: String =
        connection.query_row("SELECT body FROM commands", [], |row| row.get(0)).unwrap();
    assert!(kept.starts_with("\"sha256:"), "{kept}");
    assert!(!store.submit(&session, key("k"), body).await.unwrap().1);
}

/// The problem is logged, and sent to callers.
#[tokio::test]
async fn a_command_that_cannot_be_read_is_named_and_not_quoted() {
    let (hands, folder) = (Hands::new(), tempfile::tempdir().unwrap());
    let path = folder.path().join("sessions.db");
    let store = SqliteStore::open_with_clock(&path, Durability::default(), hands.clock()).unwrap();
    let (session, _) = owned(&store, "damaged", &hands).await;
    let body = json!({"type": "answer", "answer": "open sesame"});
    for name in ["zero", "one"] {
        store.submit(&session, key(name), body.clone()).await.unwrap();
    }
    let connection = rusqlite::Connection::open(&path).unwrap();
    let damage = "UPDATE commands SET state = '\"open sesame\"' WHERE key = 'one'";
    assert_eq!(connection.execute(damage, []).unwrap(), 1);
    let problem = store.submit(&session, key("one"), body).await.unwrap_err();
    assert_eq!(problem, Error::Failed("command 1 cannot be read".to_owned()));
}

/// The lock of a process that was killed is gone, and its name is not.
#[tokio::test]
async fn a_session_of_a_killed_process_is_recognised() {
    let (hands, folder) = (Hands::new(), tempfile::tempdir().unwrap());
    let path = folder.path().join("sessions.db");
    let store = SqliteStore::open_with_clock(&path, Durability::default(), hands.clock()).unwrap();
    let (session, _) = owned(&store, "killed", &hands).await;
    drop(store);
    let store = SqliteStore::open_with_clock(&path, Durability::default(), hands.clock()).unwrap();
    assert!(store.claim(&session).await.unwrap().follows_lost_owner());
}

#[tokio::test]
async fn an_older_schema_is_migrated() {
    let schemas =
        [include_str!("schema-1.sql"), include_str!("schema-2.sql"), include_str!("schema-3.sql")];
    for schema in schemas {
        let (hands, folder) = (Hands::new(), tempfile::tempdir().unwrap());
        let path = folder.path().join("sessions.db");
        rusqlite::Connection::open(&path).unwrap().execute_batch(schema).unwrap();
        let open =
            || SqliteStore::open_with_clock(&path, Durability::default(), hands.clock()).unwrap();
        let (store, session) = (open(), id("old"));
        assert_eq!(store.load(&session).await.unwrap().unwrap().agent, "codex");
        assert_eq!(numbers(&store.read(&session, 0, 10_000).await.unwrap().lines), [0, 1]);
        let commands = store.open_commands(&session).await.unwrap();
        // A prompt that was accepted is not refused later.
        assert_eq!((commands.len(), &commands[0].supersedes), (1, &Some(Vec::new())));
        let fence = store.claim(&session).await.unwrap();
        assert_eq!(store.commit(&session, fence, entries(2..3)).await.unwrap().next, 3);
        drop(store);
        let version = "PRAGMA user_version";
        let connection = rusqlite::Connection::open(&path).unwrap();
        assert_eq!(connection.query_row(version, [], |row| row.get(0)), Ok(4));
        // What the earlier version appended is read with what this one appends.
        assert_eq!(numbers(&open().read(&session, 0, 10_000).await.unwrap().lines), [0, 1, 2]);
    }
}

/// A line that is still a line, and even an entry, is not served if it is not the one that was appended.
#[tokio::test]
async fn an_entry_that_has_changed_is_not_served() {
    let (hands, folder) = (Hands::new(), tempfile::tempdir().unwrap());
    let path = folder.path().join("sessions.db");
    let open =
        || SqliteStore::open_with_clock(&path, Durability::default(), hands.clock()).unwrap();
    let store = open();
    let (session, fence) = owned(&store, "changed", &hands).await;
    let (other, of_other) = owned(&store, "fine", &hands).await;
    for numbers in [0..3, 3..6, 6..9] {
        store.commit(&session, fence, entries(numbers.clone())).await.unwrap();
        store.commit(&other, of_other, entries(numbers)).await.unwrap();
    }
    drop(store);
    let connection = rusqlite::Connection::open(&path).unwrap();
    let change = "UPDATE log SET lines = CAST(replace(CAST(lines AS TEXT), ?1, ?2) AS BLOB) \
                  WHERE place >> 32 = 1";
    for (was, is) in [("entry 4", "entry 5"), ("\"received_at\":7", "\"received_at\":6")] {
        connection.execute(change, [was, is]).unwrap();
        let store = open();
        let damaged = store.read(&session, 0, 10_000).await.unwrap_err().to_string();
        assert!(damaged.contains("of the session changed is lost or changed"), "{damaged}");
        assert_eq!(store.read(&other, 0, 10_000).await.unwrap().next, 9);
        drop(store);
        connection.execute(change, [is, was]).unwrap();
    }
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
    let locks = folder.path().join("sessions/sessions.db.locks");
    for folder in [path.parent().unwrap(), &locks] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            assert_eq!(mode(&path) & 0o077, 0, "{path:?}");
        }
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

/// Each page that an append changes is written to the disk.
#[tokio::test]
async fn an_append_alone_changes_the_log_and_nothing_else() {
    let (hands, folder) = (Hands::new(), tempfile::tempdir().unwrap());
    let path = folder.path().join("sessions.db");
    let store = SqliteStore::open_with_clock(&path, Durability::default(), hands.clock()).unwrap();
    let (session, fence) = owned(&store, "working", &hands).await;
    let patch = Patch { state: Some(State::Working), ..Patch::default() };
    let working = Commit { patch, ..entries(0..1) };
    store.commit(&session, fence, working).await.unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    let query = "SELECT least_next, used_at FROM sessions";
    let columns = || -> (i64, i64) {
        connection.query_row(query, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap()
    };
    let before = columns();
    hands.advance(999);
    assert_eq!(store.commit(&session, fence, entries(1..2)).await.unwrap().next, 2);
    assert_eq!(columns(), before);
    // The time of the last use does not lag behind for long.
    hands.advance(1);
    assert_eq!(store.commit(&session, fence, entries(2..3)).await.unwrap().next, 3);
    assert_eq!(columns(), (3, hands.now() as i64));
    let repeated = store.commit(&session, fence, entries(2..3)).await.unwrap_err();
    assert!(matches!(repeated, Error::Gap { expected: 3, found: 2, .. }), "{repeated}");
    let later = store.claim(&session).await.unwrap();
    let stale = store.commit(&session, fence, entries(3..4)).await.unwrap_err();
    assert_eq!(stale, Error::StaleOwner(session.clone()));
    assert_eq!(store.commit(&session, later, entries(3..4)).await.unwrap().next, 4);
    let page = store.read(&session, 0, 10_000).await.unwrap();
    assert_eq!((numbers(&page.lines), page.tail.next), (vec![0, 1, 2, 3], 4));
}
