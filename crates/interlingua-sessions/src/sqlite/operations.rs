//! What each operation does in the database. None of them knows of threads or groups.

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;

use super::failed;
use super::holder::Holder;
use super::rows::{self, NEXT};
use crate::store::check_continuation;
use crate::{
    Acknowledgement, CommandState, CommandUpdate, Commit, Counts, Error, Fence, Filter,
    IdempotencyKey, Page, Patch, Queued, SessionId, SessionRecord, State, StoredCommand, Tail,
};

/// A session that exists.
pub(super) struct Found {
    number: i64,
    fence: i64,
    next: i64,
    closed: bool,
    commands: i64,
    holder: Option<String>,
    pub(super) record: SessionRecord,
}

impl Found {
    pub(super) fn tail(&self) -> Tail {
        Tail { next: unsigned(self.next), closed: self.closed, commands: unsigned(self.commands) }
    }

    /// Rejects a session that another process holds.
    fn check_holder(&self, holder: &Holder) -> Result<(), Error> {
        match &self.holder {
            Some(other) if holder.is_other(other) => Err(Error::Held(self.record.id.clone())),
            _ => Ok(()),
        }
    }
}

/// The columns of [`found`]. A list of sessions does not need the next entry of each.
fn columns(next: &str) -> String {
    format!("number, fence, {next}, closed, commands, used_at, record, holder")
}

/// A row of the table of sessions; `None` if its record cannot be read, or has expired.
fn found(row: &Row<'_>, now: u64) -> rusqlite::Result<Option<Found>> {
    let record = serde_json::from_slice::<SessionRecord>(row.get_ref(6)?.as_bytes()?);
    let Ok(record) = record else { return Ok(None) };
    let record = SessionRecord { used_at: unsigned(row.get(5)?), ..record };
    if record.is_expired(now) {
        return Ok(None);
    }
    let (number, fence, next) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let (closed, commands, holder) = (row.get(3)?, row.get(4)?, row.get(7)?);
    Ok(Some(Found { number, fence, next, closed, commands, holder, record }))
}

/// Finds a session. One that has expired, or whose record cannot be read, is absent.
pub(super) fn find(
    connection: &Connection,
    id: &SessionId,
    now: u64,
) -> Result<Option<Found>, Error> {
    let query = format!("SELECT {} FROM sessions WHERE id = ?1", columns(NEXT));
    let mut statement = connection.prepare_cached(&query).map_err(failed)?;
    let row = statement.query_row([id.as_str()], |row| found(row, now)).optional();
    Ok(row.map_err(failed)?.flatten())
}

fn existing(connection: &Connection, id: &SessionId, now: u64) -> Result<Found, Error> {
    find(connection, id, now)?.ok_or_else(|| Error::NotFound(id.clone()))
}

pub(super) fn create(
    connection: &Connection,
    record: &SessionRecord,
    now: u64,
) -> Result<(), Error> {
    if find(connection, &record.id, now)?.is_some() {
        return Err(Error::Exists(record.id.clone()));
    }
    // What has expired, or cannot be read, gives way.
    remove(connection, "id = ?1", record.id.as_str())?;
    let insert = "INSERT INTO sessions (id, owner, record, used_at, expires_at, closed) \
                  VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let closed = record.state == State::Ended;
    let row = params![
        record.id.as_str(),
        record.owner,
        json(record)?,
        signed(record.used_at),
        expires_at(record),
        closed
    ];
    execute(connection, insert, row).map(drop)
}

pub(super) fn update(
    connection: &Connection,
    id: &SessionId,
    patch: Patch,
    now: u64,
) -> Result<SessionRecord, Error> {
    let Found { number, mut record, .. } = existing(connection, id, now)?;
    if let Some(by) = &patch.continued_by {
        let load = |id: &_| Ok(find(connection, id, now)?.map(|found| found.record));
        check_continuation(&record, by, load)?;
    }
    record.apply(&Patch { state: None, ..patch });
    record.updated_at = record.updated_at.max(now);
    record.used_at = record.used_at.max(now);
    let update = "UPDATE sessions SET record = ?2, used_at = ?3, expires_at = ?4 WHERE number = ?1";
    let row = params![number, json(&record)?, signed(record.used_at), expires_at(&record)];
    execute(connection, update, row)?;
    Ok(record)
}

pub(super) fn touch(connection: &Connection, id: &SessionId, now: u64) -> Result<(), Error> {
    let Found { number, mut record, .. } = existing(connection, id, now)?;
    record.used_at = record.used_at.max(now);
    let update = "UPDATE sessions SET used_at = ?2, expires_at = ?3 WHERE number = ?1";
    let row = params![number, signed(record.used_at), expires_at(&record)];
    execute(connection, update, row).map(drop)
}

/// Deletes a session; returns the end of its log, if there was one.
pub(super) fn delete(
    connection: &Connection,
    id: &SessionId,
    holder: &Holder,
    now: u64,
) -> Result<Option<Tail>, Error> {
    let found = find(connection, id, now)?;
    found.as_ref().map_or(Ok(()), |found| found.check_holder(holder))?;
    remove(connection, "id = ?1", id.as_str())?;
    Ok(found.map(|found| found.tail()))
}

/// Deletes the sessions for which a condition holds, with all that belongs to them.
fn remove(
    connection: &Connection,
    condition: &str,
    value: impl rusqlite::ToSql,
) -> Result<usize, Error> {
    let query = format!("SELECT number FROM sessions WHERE {condition}");
    let mut statement = connection.prepare_cached(&query).map_err(failed)?;
    let numbers = statement.query_map(params![value], |row| row.get(0)).map_err(failed)?;
    for number in numbers.collect::<Result<Vec<i64>, _>>().map_err(failed)? {
        rows::delete(connection, number)?;
        execute(connection, "DELETE FROM commands WHERE session = ?1", [number])?;
    }
    execute(connection, &format!("DELETE FROM sessions WHERE {condition}"), params![value])
}

pub(super) fn sweep(connection: &Connection, now: u64) -> Result<usize, Error> {
    remove(connection, "expires_at <= ?1", signed(now))
}

pub(super) fn list(
    connection: &Connection,
    filter: &Filter,
    now: u64,
) -> Result<Vec<SessionRecord>, Error> {
    let query = format!(
        "SELECT {} FROM sessions WHERE (?1 IS NULL OR owner = ?1) AND used_at <= ?2 \
         AND (used_at < ?2 OR id > ?3) ORDER BY used_at DESC, id",
        columns("least_next")
    );
    let mut statement = connection.prepare_cached(&query).map_err(failed)?;
    // Without a place, the list begins before the newest session.
    let (used_at, after) = match &filter.after {
        Some(place) => (signed(place.used_at), place.id.as_str()),
        None => (i64::MAX, ""),
    };
    let values = params![filter.owner, used_at, after];
    let rows = statement.query_map(values, |row| found(row, now)).map_err(failed)?;
    let found = rows.filter_map(|row| row.map_err(failed).transpose());
    let records = found.map(|found| found.map(|found| found.record));
    records.take(filter.limit.unwrap_or(usize::MAX)).collect()
}

pub(super) fn counts(connection: &Connection, now: u64) -> Result<Counts, Error> {
    // A record that cannot be read is absent.
    let sessions = "SELECT CASE WHEN json_valid(record) THEN json_extract(record, '$.state.state') END AS state, \
                    count(*) FROM sessions WHERE expires_at IS NULL OR expires_at > ?1 \
                    GROUP BY state HAVING state IS NOT NULL";
    let mut statement = connection.prepare_cached(sessions).map_err(failed)?;
    let rows = statement.query_map([signed(now)], |row| Ok((row.get(0)?, unsigned(row.get(1)?))));
    let sessions = rows.map_err(failed)?.collect::<Result<_, _>>().map_err(failed)?;
    let waiting = "SELECT count(*) FROM commands \
                   WHERE final = 0 AND supersedes IS NOT NULL AND state = ?1";
    let mut statement = connection.prepare_cached(waiting).map_err(failed)?;
    let accepted = json(&CommandState::Accepted)?;
    let waiting = statement.query_row([accepted], |row| row.get(0)).map_err(failed)?;
    Ok(Counts { sessions, waiting_prompts: unsigned(waiting) })
}

/// The sessions that are held by processes which have ended.
pub(super) fn lost(connection: &Connection, holder: &Holder) -> Result<Vec<SessionId>, Error> {
    let query = "SELECT id, holder FROM sessions WHERE holder IS NOT NULL AND holder <> ?1";
    let mut statement = connection.prepare_cached(query).map_err(failed)?;
    let rows = statement.query_map([holder.name()], |row| Ok((row.get(0)?, row.get(1)?)));
    let held =
        rows.map_err(failed)?.collect::<Result<Vec<(String, String)>, _>>().map_err(failed)?;
    let lost = held.into_iter().filter(|(_, name)| !holder.is_other(name));
    Ok(lost.filter_map(|(id, _)| SessionId::new(&id).ok()).collect())
}

pub(super) fn claim(
    connection: &Connection,
    id: &SessionId,
    holder: &Holder,
    now: u64,
) -> Result<Fence, Error> {
    let found = existing(connection, id, now)?;
    found.check_holder(holder)?;
    // Also an owner in this process may have failed while the agent of an earlier one was still ending.
    let follows_lost_owner = found.holder.is_some();
    let next = "UPDATE fences SET last = last + 1 RETURNING last";
    let mut statement = connection.prepare_cached(next).map_err(failed)?;
    let fence: i64 = statement.query_row([], |row| row.get(0)).map_err(failed)?;
    let update = "UPDATE sessions SET fence = ?2, holder = ?3 WHERE number = ?1";
    execute(connection, update, params![found.number, fence, holder.name()])?;
    Ok(Fence { token: unsigned(fence), follows_lost_owner })
}

pub(super) fn release(connection: &Connection, id: &SessionId, fence: Fence) -> Result<(), Error> {
    let update = "UPDATE sessions SET holder = NULL WHERE id = ?1 AND fence = ?2";
    execute(connection, update, params![id.as_str(), signed(fence.token)]).map(drop)
}

pub(super) fn commit(
    connection: &Connection,
    id: &SessionId,
    fence: Fence,
    commit: &Commit,
    now: u64,
) -> Result<Tail, Error> {
    let found = existing(connection, id, now)?;
    if unsigned(found.fence) != fence.token {
        return Err(Error::StaleOwner(id.clone()));
    }
    if found.closed {
        return Err(Error::Closed(id.clone()));
    }
    let Found { number, next, commands, mut record, .. } = found;
    let lines = commit.entries.continuing(id, unsigned(next))?;
    rows::append(connection, number, unsigned(next), lines)?;
    let count = signed(commit.entries.len());
    for CommandUpdate { key, state, sequence } in &commit.commands {
        if let Some(mut command) = command(connection, number, key)?
            && !command.acknowledgement.state.is_final()
        {
            command.update(state.clone(), *sequence);
            update_command(connection, number, &command)?;
        }
    }
    for Queued { key, supersedes } in &commit.queued {
        let queue = "UPDATE commands SET supersedes = ?3 \
                     WHERE session = ?1 AND key = ?2 AND supersedes IS NULL";
        execute(connection, queue, params![number, key.as_str(), json(supersedes)?])?;
    }
    record.apply(&commit.patch);
    record.updated_at = record.updated_at.max(now);
    record.used_at = record.used_at.max(now);
    let closed = record.state == State::Ended;
    let update = "UPDATE sessions SET record = ?2, least_next = ?3, closed = ?4, used_at = ?5, \
                  expires_at = ?6 WHERE number = ?1";
    let next = next + count;
    let used_at = signed(record.used_at);
    let row = params![number, json(&record)?, next, closed, used_at, expires_at(&record)];
    execute(connection, update, row)?;
    if closed {
        close_commands(connection, number, unsigned(next))?;
    }
    Ok(Tail { next: unsigned(next), closed, commands: unsigned(commands) })
}

pub(super) fn read(
    connection: &Connection,
    id: &SessionId,
    from: u64,
    limit: usize,
    now: u64,
) -> Result<Page, Error> {
    let found = existing(connection, id, now)?;
    let mut page = Page { next: from, tail: found.tail(), ..Page::default() };
    if from >= page.tail.next {
        return Ok(page);
    }
    rows::read(connection, id, found.number, limit, &mut page)?;
    Ok(page)
}

/// Stores a command, unless it is known. Returns the end of the log if it is new.
pub(super) fn submit(
    connection: &Connection,
    id: &SessionId,
    key: IdempotencyKey,
    body: &Value,
    holder: &Holder,
    now: u64,
) -> Result<(Acknowledgement, Option<Tail>), Error> {
    let found = existing(connection, id, now)?;
    if let Some(known) = command(connection, found.number, &key)? {
        return match known.is_for(body) {
            true => Ok((known.acknowledgement, None)),
            false => Err(Error::KeyReused(key.into())),
        };
    }
    if found.closed {
        return Err(Error::Closed(id.clone()));
    }
    found.check_holder(holder)?;
    let insert = "INSERT INTO commands (session, position, key, body, state) \
                  VALUES (?1, ?2, ?3, ?4, ?5)";
    let state = CommandState::Accepted;
    let (number, position) = (found.number, found.commands);
    let row = params![number, position, key.as_str(), json(body)?, json(&state)?];
    execute(connection, insert, row)?;
    let update = "UPDATE sessions SET commands = ?2 WHERE number = ?1";
    execute(connection, update, params![number, position + 1])?;
    touch(connection, id, now)?;
    let tail = Tail { commands: unsigned(position + 1), ..found.tail() };
    Ok((Acknowledgement { key, state, sequence: None }, Some(tail)))
}

pub(super) fn acknowledged(
    connection: &Connection,
    id: &SessionId,
    key: &IdempotencyKey,
    now: u64,
) -> Result<Option<Acknowledgement>, Error> {
    let found = existing(connection, id, now)?;
    let known = command(connection, found.number, key)?;
    Ok(known.map(|known| known.acknowledgement))
}

/// Removes a command that has not begun. Returns whether there was one.
pub(super) fn withdraw(
    connection: &Connection,
    id: &SessionId,
    key: &IdempotencyKey,
    now: u64,
) -> Result<bool, Error> {
    let found = existing(connection, id, now)?;
    let known = command(connection, found.number, key)?;
    if known.is_none_or(|known| known.acknowledgement.state != CommandState::Accepted) {
        return Ok(false);
    }
    let delete = "DELETE FROM commands WHERE session = ?1 AND key = ?2";
    execute(connection, delete, params![found.number, key.as_str()])?;
    Ok(true)
}

pub(super) fn open_commands(
    connection: &Connection,
    id: &SessionId,
    now: u64,
) -> Result<Vec<StoredCommand>, Error> {
    let found = existing(connection, id, now)?;
    commands_without_end(connection, found.number)
}

/// The commands that are not final. One that cannot be read is absent: it is not executed, and does
/// not keep others from it.
fn commands_without_end(
    connection: &Connection,
    session: i64,
) -> Result<Vec<StoredCommand>, Error> {
    let query = format!(
        "SELECT {COMMAND} FROM commands WHERE session = ?1 AND final = 0 ORDER BY position"
    );
    let mut statement = connection.prepare_cached(&query).map_err(failed)?;
    let rows = statement.query_map([session], stored_command).map_err(failed)?;
    rows.filter_map(|row| row.map_err(failed).map(Result::ok).transpose()).collect()
}

/// Notes what becomes of commands when their session is closed.
fn close_commands(connection: &Connection, session: i64, next: u64) -> Result<(), Error> {
    for mut command in commands_without_end(connection, session)? {
        if let Some(state) = command.acknowledgement.state.at_close() {
            command.update(state, Some(next));
            update_command(connection, session, &command)?;
        }
    }
    Ok(())
}

fn command(
    connection: &Connection,
    session: i64,
    key: &IdempotencyKey,
) -> Result<Option<StoredCommand>, Error> {
    let query = format!("SELECT {COMMAND} FROM commands WHERE session = ?1 AND key = ?2");
    let mut statement = connection.prepare_cached(&query).map_err(failed)?;
    let known = statement.query_row(params![session, key.as_str()], stored_command);
    known.optional().map_err(failed)?.transpose()
}

fn update_command(
    connection: &Connection,
    session: i64,
    command: &StoredCommand,
) -> Result<(), Error> {
    let change = "UPDATE commands SET body = ?3, state = ?4, final = ?5, sequence = ?6 \
                  WHERE session = ?1 AND key = ?2";
    let Acknowledgement { key, state, sequence } = &command.acknowledgement;
    let (body, is_final) = (json(&command.body)?, state.is_final());
    let row = params![session, key.as_str(), body, json(state)?, is_final, sequence.map(signed)];
    execute(connection, change, row).map(drop)
}

/// Changes something, and nothing.
pub(super) fn probe(connection: &Connection) -> Result<(), Error> {
    execute(connection, "UPDATE fences SET last = last", []).map(drop)
}

/// The columns of [`stored_command`].
const COMMAND: &str = "position, key, body, state, sequence, supersedes";

/// A row of the table of commands. The problem names its number alone: the parser's own words may quote the
/// command, and errors are logged.
fn stored_command(row: &Row<'_>) -> rusqlite::Result<Result<StoredCommand, Error>> {
    let (position, key): (i64, String) = (row.get(0)?, row.get(1)?);
    let (body, state): (String, String) = (row.get(2)?, row.get(3)?);
    let (sequence, supersedes): (Option<i64>, Option<String>) = (row.get(4)?, row.get(5)?);
    let command = || {
        let key = IdempotencyKey::new(key).ok()?;
        let state = serde_json::from_str(&state).ok()?;
        let acknowledgement = Acknowledgement { key, state, sequence: sequence.map(unsigned) };
        let body = serde_json::from_str(&body).ok()?;
        let supersedes = supersedes.map(|it| serde_json::from_str(&it)).transpose().ok()?;
        Some(StoredCommand { position: unsigned(position), body, acknowledgement, supersedes })
    };
    Ok(command().ok_or_else(|| Error::Failed(format!("command {position} cannot be read"))))
}

pub(super) fn execute(
    connection: &Connection,
    statement: &str,
    values: impl rusqlite::Params,
) -> Result<usize, Error> {
    let prepared = connection.prepare_cached(statement);
    prepared.and_then(|mut statement| statement.execute(values)).map_err(failed)
}

fn json(value: &impl serde::Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|problem| Error::Failed(problem.to_string()))
}

/// When a session expires, unless it is used before.
fn expires_at(record: &SessionRecord) -> Option<i64> {
    let ttl = record.ttl_ms.filter(|_| record.state.may_expire())?;
    Some(signed(record.used_at.saturating_add(ttl)))
}

/// SQLite has no unsigned numbers. Those here count milliseconds and entries, which fit.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
