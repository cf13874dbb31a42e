//! The fast path for the change that happens most: an owner appends entries, and nothing else changes.
//!
//! It writes one row, to the page at which the log of the session ends. The record stays as it is: the
//! number of the next entry follows from the last row of the log, and the time of the last use, which
//! has an index of its own, may lag behind while the session cannot expire.

use rusqlite::{Connection, OptionalExtension, params};

use super::operations::{self, signed, unsigned};
use super::rows::{self, NEXT, ROW};
use super::{alone, failed};
use crate::{Commit, Error, Fence, SessionId, Tail};

/// How far the time of the last use may lag behind, in milliseconds.
const LAG: u64 = 1_000;

/// Stores a change of the owner, completely or not at all. Returns the end of the log.
pub(super) fn commit(
    connection: &Connection,
    id: &SessionId,
    fence: Fence,
    commit: &Commit,
    now: u64,
) -> Result<Tail, Error> {
    match entries_alone(connection, id, fence, commit, now)? {
        Some(tail) => Ok(tail),
        None => alone(connection, || operations::commit(connection, id, fence, commit, now)),
    }
}

/// Appends the entries of a commit if nothing else has to change; otherwise nothing is changed, and the
/// result is `None`. Only one statement changes something, so that a savepoint is not needed.
fn entries_alone(
    connection: &Connection,
    id: &SessionId,
    fence: Fence,
    commit: &Commit,
    now: u64,
) -> Result<Option<Tail>, Error> {
    let Commit { entries, patch, commands, queued } = commit;
    let has_commands = !commands.is_empty() || !queued.is_empty();
    if has_commands || !patch.is_empty() || !(1..=ROW).contains(&entries.size()) {
        return Ok(None);
    }
    let Some((session, tail)) = end(connection, id, fence, now)? else { return Ok(None) };
    let lines = entries.continuing(id, tail.next)?;
    rows::insert(connection, session, tail.next, entries.len(), lines)?;
    Ok(Some(Tail { next: tail.next + entries.len(), ..tail }))
}

/// The number of a session, and the end of its log, if its owner may append to it and its record does
/// not have to change.
fn end(
    connection: &Connection,
    id: &SessionId,
    fence: Fence,
    now: u64,
) -> Result<Option<(i64, Tail)>, Error> {
    let query = format!(
        "SELECT number, {NEXT}, commands FROM sessions WHERE id = ?1 AND fence = ?2 AND closed = 0 \
         AND expires_at IS NULL AND used_at > ?3"
    );
    let mut statement = connection.prepare_cached(&query).map_err(failed)?;
    let values = params![id.as_str(), signed(fence.token), signed(now) - signed(LAG)];
    let found = statement.query_row(values, |row| {
        let (next, commands) = (unsigned(row.get(1)?), unsigned(row.get(2)?));
        Ok((row.get(0)?, Tail { next, closed: false, commands }))
    });
    found.optional().map_err(failed)
}
