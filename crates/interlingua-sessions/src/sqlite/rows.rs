//! The rows of the logs.
//!
//! The key of a row is its place: the number of its session, and the number of its first entry. It is
//! the key of SQLite's own, so that the log of a session is in one place of the file, and rows are
//! compared without reading them. With a key of two columns, SQLite read whole rows to compare them,
//! and an entry may have megabytes.

use memchr::{memchr, memchr_iter, memrchr};
use rusqlite::{Connection, ErrorCode, params};

use super::failed;
use super::operations::{execute, signed, unsigned};
use crate::{Error, Page, SessionId};

/// The size of a row. A reader may begin anywhere in it, and SQLite reads rows as a whole.
pub(super) const ROW: usize = 32 << 10;

/// The bits of a place that number entries.
const ENTRY_BITS: u32 = 32;

/// The number of the next entry of a session. Its column is not moved by every append, so the last row
/// of the log counts; but if rows at the end were lost, the column shows it.
pub(super) const NEXT: &str = "max(least_next, coalesce((SELECT (place & 4294967295) + count FROM log \
     WHERE place BETWEEN number << 32 AND number << 32 | 4294967295 ORDER BY place DESC LIMIT 1), 0))";

/// The place of an entry. There are 2³¹ sessions and 2³² entries of each.
fn place(session: i64, entry: u64) -> Result<i64, Error> {
    let (session, entry) = (u32::try_from(session).ok(), u32::try_from(entry).ok());
    let place = session
        .zip(entry)
        .map(|(session, entry)| i64::from(session) << ENTRY_BITS | i64::from(entry));
    place.filter(|place| *place >= 0).ok_or_else(|| {
        Error::Failed("the store has no place for more sessions, or entries of this one".to_owned())
    })
}

/// The places of the entries of a session.
fn places(session: i64) -> Result<(i64, i64), Error> {
    Ok((place(session, 0)?, place(session, u32::MAX.into())?))
}

/// Appends lines to a log, in rows of limited size.
pub(super) fn append(
    connection: &Connection,
    session: i64,
    next: u64,
    lines: &[u8],
) -> Result<(), Error> {
    let (mut first, mut rest) = (next, lines);
    while !rest.is_empty() {
        let (row, after) = rest.split_at(end_of_row(rest));
        let count = memchr_iter(b'\n', row).count() as u64;
        insert(connection, session, first, count, row)?;
        (first, rest) = (first + count, after);
    }
    Ok(())
}

/// Appends a row to a log.
pub(super) fn insert(
    connection: &Connection,
    session: i64,
    first: u64,
    count: u64,
    lines: &[u8],
) -> Result<(), Error> {
    // A reader adds the count to the place.
    place(session, first.saturating_add(count))?;
    let place = place(session, first)?;
    let insert = "INSERT INTO log (place, count, checksum, lines) VALUES (?1, ?2, ?3, ?4)";
    let row = params![place, signed(count), checksum(first, lines), lines];
    execute(connection, insert, row).map(drop)
}

/// Deletes the log of a session.
pub(super) fn delete(connection: &Connection, session: i64) -> Result<(), Error> {
    let (first, last) = places(session)?;
    let delete = "DELETE FROM log WHERE place BETWEEN ?1 AND ?2";
    execute(connection, delete, params![first, last]).map(drop)
}

/// Detects damage of a row that SQLite does not notice, such as a bit that has changed on the disk.
fn checksum(first: u64, lines: &[u8]) -> i64 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&first.to_le_bytes());
    hasher.update(lines);
    hasher.finalize().into()
}

/// The length of the lines that are stored in one row: not more than [`ROW`], but at least one.
fn end_of_row(lines: &[u8]) -> usize {
    if lines.len() <= ROW {
        return lines.len();
    }
    let within = lines.get(..ROW).and_then(|within| memrchr(b'\n', within));
    let end = within.or_else(|| memchr(b'\n', lines));
    end.map_or(lines.len(), |end| end + 1)
}

/// Adds the entries from the next one of a page on, within a limit, but at least one.
pub(super) fn read(
    connection: &Connection,
    id: &SessionId,
    session: i64,
    limit: usize,
    page: &mut Page,
) -> Result<(), Error> {
    // A row has several entries, so the one that contains the first may begin before it.
    let query = "SELECT place & 4294967295, count, checksum, lines FROM log WHERE place >= \
                 (SELECT max(place) FROM log WHERE place BETWEEN ?1 AND ?2) AND place <= ?3 \
                 ORDER BY place";
    let mut statement = connection.prepare_cached(query).map_err(failed)?;
    let (first, last) = places(session)?;
    let from = params![first, place(session, page.next)?, last];
    let mut rows = statement.query(from).map_err(failed)?;
    while let Some(row) = rows.next().map_err(|problem| unreadable(id, page.next, problem))? {
        // A column with a value of another type is damaged as well.
        let wrong = |_| damaged(id, page.next);
        let first = unsigned(row.get(0).map_err(wrong)?);
        let count = unsigned(row.get(1).map_err(wrong)?);
        let known: Option<i64> = row.get(2).map_err(wrong)?;
        let lines = row.get_ref(3).and_then(|lines| Ok(lines.as_blob()?)).map_err(wrong)?;
        let is_whole = lines.ends_with(b"\n")
            && memchr_iter(b'\n', lines).count() as u64 == count
            && known.is_none_or(|known| known == checksum(first, lines));
        if first > page.next || !is_whole {
            return Err(damaged(id, page.next));
        }
        let lines = after_lines(lines, page.next.saturating_sub(first));
        if page.lines.len() + lines.len() <= limit {
            page.lines.extend_from_slice(lines);
            page.next = page.next.max(first + count);
        } else {
            take_lines(lines, limit, page);
            return Ok(());
        }
    }
    match page.next < page.tail.next {
        true => Err(damaged(id, page.next)),
        false => Ok(()),
    }
}

/// Why a row cannot be read. Of a page of the file that is damaged, another attempt would not succeed either.
fn unreadable(id: &SessionId, entry: u64, problem: rusqlite::Error) -> Error {
    match problem.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => damaged(id, entry),
        _ => failed(problem),
    }
}

fn damaged(id: &SessionId, entry: u64) -> Error {
    Error::Damaged { id: id.clone(), entry }
}

/// What follows some lines.
fn after_lines(lines: &[u8], count: u64) -> &[u8] {
    let last = usize::try_from(count).unwrap_or(usize::MAX).checked_sub(1);
    let end = last.map_or(Some(0), |last| Some(memchr_iter(b'\n', lines).nth(last)? + 1));
    end.and_then(|end| lines.get(end..)).unwrap_or_default()
}

/// Adds lines to a page within a limit, but at least one if the page has none.
fn take_lines(lines: &[u8], limit: usize, page: &mut Page) {
    let mut taken = 0;
    for end in memchr_iter(b'\n', lines).map(|end| end + 1) {
        let is_first = page.lines.is_empty() && taken == 0;
        if !is_first && page.lines.len() + end > limit {
            break;
        }
        taken = end;
        page.next += 1;
    }
    page.lines.extend_from_slice(lines.get(..taken).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use interlingua::event::{Event, Notice};
    use interlingua::json::Text;
    use interlingua::{Entry, Origin};

    use crate::sqlite::{Durability, SqliteStore};
    use crate::{Commit, Error, SessionId, SessionRecord, Store};

    fn notice(sequence: u64, text: &str) -> Entry {
        let notice = Notice { text: Text::from(text.to_owned()), ..Notice::default() };
        let (origin, event) = (Origin::default(), Event::new(notice));
        Entry { sequence, received_at: None, epoch: 0, origin, event, raw: None }
    }

    /// A reader that took it for a failure of the moment tried again for ever.
    #[tokio::test]
    async fn a_damaged_page_of_the_file_is_a_damaged_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        let id = SessionId::new("one").unwrap();
        {
            let store = SqliteStore::open(&path, Durability::Always).unwrap();
            store.create(SessionRecord::new(id.clone(), "codex", 1)).await.unwrap();
            let fence = store.claim(&id).await.unwrap();
            for number in 0..60 {
                let entries =
                    vec![notice(number, &format!("needle-{number} {}", "x".repeat(20_000)))];
                let commit = Commit { entries: entries.into(), ..Commit::default() };
                store.commit(&id, fence, commit).await.unwrap();
            }
        }
        let mut bytes = std::fs::read(&path).unwrap();
        let page = memchr::memmem::find(&bytes, b"needle-30 ").unwrap() / 4096 * 4096;
        bytes[page..page + 8].fill(0);
        std::fs::write(&path, bytes).unwrap();
        let store = SqliteStore::open(&path, Durability::Always).unwrap();
        assert!(store.read(&id, 0, 1000).await.unwrap().next > 0, "the beginning is whole");
        let read = store.read(&id, 30, usize::MAX).await;
        assert!(matches!(&read, Err(Error::Damaged { .. })), "{read:?}");
    }
}
