//! The schema of the database, and how older ones become the newest.

use std::path::Path;

use rusqlite::Connection;

use crate::Error;

/// The steps from an empty database to the newest schema. The version of a database is the number of
/// steps that it has. A step that was published never changes.
const STEPS: &[&str] = &[
    // 1
    "CREATE TABLE sessions (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        owner TEXT,
        record TEXT NOT NULL,
        fence INTEGER NOT NULL DEFAULT 0,
        next INTEGER NOT NULL DEFAULT 0,
        closed INTEGER NOT NULL DEFAULT 0,
        commands INTEGER NOT NULL DEFAULT 0,
        used_at INTEGER NOT NULL,
        expires_at INTEGER
    ) STRICT;
    CREATE INDEX sessions_used ON sessions (used_at);
    CREATE INDEX sessions_expiring ON sessions (expires_at) WHERE expires_at IS NOT NULL;
    CREATE TABLE log (
        session INTEGER NOT NULL,
        first INTEGER NOT NULL,
        count INTEGER NOT NULL,
        lines BLOB NOT NULL,
        PRIMARY KEY (session, first)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE commands (
        session INTEGER NOT NULL,
        position INTEGER NOT NULL,
        key TEXT NOT NULL,
        body TEXT NOT NULL,
        state TEXT NOT NULL,
        final INTEGER NOT NULL DEFAULT 0,
        sequence INTEGER,
        PRIMARY KEY (session, key)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX commands_open ON commands (session, position) WHERE final = 0;
    CREATE TABLE fences (last INTEGER NOT NULL) STRICT;
    INSERT INTO fences VALUES (0);",
    // 2: the process that holds a session
    "ALTER TABLE sessions ADD COLUMN holder TEXT;",
    // 3: an append changes one page only, since it does not move the number of the next entry; rows of
    // the log are found without reading others, and have a checksum, except for those from before
    "ALTER TABLE sessions RENAME COLUMN next TO least_next;
    ALTER TABLE log RENAME TO log_before;
    CREATE TABLE log (
        place INTEGER PRIMARY KEY,
        count INTEGER NOT NULL,
        checksum INTEGER,
        lines BLOB NOT NULL
    ) STRICT;
    INSERT INTO log SELECT session << 32 | first, count, NULL, lines FROM log_before;
    DROP TABLE log_before;",
    // 4: what a queued prompt supersedes. All that were stored before were queued, since they are not refused
    // any more
    "ALTER TABLE commands ADD COLUMN supersedes TEXT;
    UPDATE commands SET supersedes = '[]' WHERE final = 0;",
];

/// The newest version.
pub(super) const NEWEST: i64 = STEPS.len() as i64;

/// Brings a database to the newest version, in one transaction.
pub(super) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), Error> {
    let version = "PRAGMA user_version";
    let found: i64 = connection.query_row(version, [], |row| row.get(0)).map_err(super::failed)?;
    if found > NEWEST {
        let path = path.display().to_string();
        return Err(Error::NewerSchema { path, found, known: NEWEST });
    }
    let done = usize::try_from(found).unwrap_or_default();
    let missing = STEPS.get(done..).unwrap_or_default();
    if missing.is_empty() {
        return Ok(());
    }
    let transaction = connection.transaction().map_err(super::failed)?;
    for step in missing {
        transaction.execute_batch(step).map_err(super::failed)?;
    }
    transaction.pragma_update(None, "user_version", NEWEST).map_err(super::failed)?;
    transaction.commit().map_err(super::failed)
}
