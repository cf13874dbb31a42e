//! The log of a session, from which its reader is rebuilt.

use interlingua::event::Data;
use interlingua::{Continuation, Entry, ReadOptions, Reader};
use memchr::memchr_iter;

use super::delivery;
use crate::{Error, SessionId, SessionRecord, Store};

/// The number of bytes that are read at once.
const PAGE: usize = 1 << 20;

/// The state at the end of a session's log.
pub(super) struct StoredLog {
    /// A reader at the end of the log.
    pub(super) reader: Reader,
    /// A turn has not ended.
    pub(super) has_open_turn: bool,
    /// The prompt that was about to be sent last, if no turn has begun since: its key.
    pub(super) intent: Option<String>,
    /// The entries, one per line, if they are kept.
    pub(super) lines: Vec<u8>,
}

/// Reads the log of a session.
pub(super) async fn read(
    store: &dyn Store,
    record: &SessionRecord,
    keeps_lines: bool,
) -> Result<StoredLog, Error> {
    let options = ReadOptions { id_seed: Some(record.id_seed), ..ReadOptions::default() };
    let failed = |problem: interlingua::Error| Error::Failed(problem.to_string());
    let mut continuation = Continuation::new(options).map_err(failed)?;
    let (mut intent, mut kept, mut from) = (None, Vec::new(), 0);
    loop {
        let page = store.read(&record.id, from, PAGE).await?;
        for line in lines(&page.lines) {
            let entry = entry(&record.id, line)?;
            match &entry.event.data {
                Data::TurnStarted(started) if !started.replay => intent = None,
                Data::HostState(state) => {
                    intent = delivery::intent(state).or(intent);
                }
                _ => {}
            }
            continuation.push(entry.borrowed());
        }
        if keeps_lines {
            kept.extend_from_slice(&page.lines);
        }
        if page.next >= page.tail.next {
            break;
        }
        from = page.next;
    }
    let has_open_turn = continuation.has_open_turn();
    Ok(StoredLog { reader: continuation.into_reader(), has_open_turn, intent, lines: kept })
}

/// The lines of a page, without their ends.
fn lines(page: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    memchr_iter(b'\n', page).map(move |end| {
        let line = page.get(start..end).unwrap_or_default();
        start = end + 1;
        line
    })
}

fn entry(id: &SessionId, line: &[u8]) -> Result<Entry, Error> {
    serde_json::from_slice(line)
        .map_err(|problem| Error::Failed(format!("the log of the session {id}: {problem}")))
}
