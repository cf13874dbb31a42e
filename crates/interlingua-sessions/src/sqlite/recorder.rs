//! Stores a session that is run in this process, without a host: `run` and `chat` with an agent that
//! has no memory of its own.
//!
//! The run passes on records of the dialect `events`. They are read as one more stream of the session,
//! so that a session which is resumed has one log, with numbers and ids that go on.

use std::path::Path;

use interlingua::event::Data;
use interlingua::{EntryRef, Exit, Reader, Source, StreamEnd, dialect};
use rusqlite::{Connection, TransactionBehavior};

use super::holder::Holder;
use super::{failed, open, operations};
use crate::log;
use crate::record::title;
use crate::store::system_clock;
use crate::{Commit, Error, Fence, Lines, Patch, SessionId, SessionRecord, State};

/// How many bytes of a log are read at once.
const PAGE: usize = 1 << 20;

/// Stores the entries of a session as they are emitted.
pub struct SessionRecorder {
    connection: Connection,
    id: SessionId,
    fence: Fence,
    reader: Reader,
    /// Keeps other processes away from the session.
    _holder: Holder,
}

impl std::fmt::Debug for SessionRecorder {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("SessionRecorder").field("id", &self.id).finish_non_exhaustive()
    }
}

impl SessionRecorder {
    /// Stores a new session, or continues the one with the same id. A session that another process
    /// uses is rejected.
    pub fn open(path: &Path, record: SessionRecord) -> Result<Self, Error> {
        let (mut connection, holder) = open(path)?;
        let id = record.id.clone();
        let now = system_clock()();
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
        let record = match operations::find(&transaction, &id, now)? {
            Some(found) => found.record,
            None => {
                operations::create(&transaction, &record, now)?;
                record
            }
        };
        let fence = operations::claim(&transaction, &id, &holder, now)?;
        let reader = reader_at_end(&transaction, &record, now)?;
        transaction.commit().map_err(failed)?;
        let mut recorder = Self { connection, id, fence, reader, _holder: holder };
        let lost = recorder.end_stream(&Exit { stopped: Some(log::lost()), ..Exit::default() });
        recorder.begin_stream()?;
        recorder.commit(lost, Patch { state: Some(State::Working), ..Patch::default() })?;
        Ok(recorder)
    }

    /// Stores complete records of the dialect `events`.
    pub fn write(&mut self, records: &[u8]) -> Result<(), Error> {
        let (mut entries, mut patch) = (Lines::default(), Patch::default());
        let mut keep = |entry: EntryRef<'_>| {
            if let Data::UserMessage(message) = &entry.event.data {
                patch.title.get_or_insert_with(|| title(&message.text.to_plain()));
            }
            entries.push(entry);
        };
        let Ok(_) = self.reader.push(records, None, &mut keep);
        self.commit(entries, patch)
    }

    /// The run has ended: the session rests, and can be continued.
    pub fn finish(mut self) -> Result<(), Error> {
        let entries = self.end_stream(&Exit::default());
        self.commit(entries, Patch { state: Some(State::Idle), ..Patch::default() })?;
        operations::release(&self.connection, &self.id, self.fence)
    }

    /// Begins the stream of this run.
    fn begin_stream(&mut self) -> Result<(), Error> {
        let events = Source::Dialect(&dialect::events::DIALECT);
        self.reader.next_stream(events).map_err(|problem| Error::Failed(problem.to_string()))
    }

    /// Ends the stream of a run, and what it left open.
    fn end_stream(&mut self, exit: &Exit) -> Lines {
        let mut entries = Lines::default();
        let mut keep = |entry: EntryRef<'_>| entries.push(entry);
        let now = Some(system_clock()());
        let Ok(_) = self.reader.end_stream(StreamEnd::Exit(exit), now, &mut keep);
        entries
    }

    fn commit(&mut self, entries: Lines, patch: Patch) -> Result<(), Error> {
        let commit = Commit { entries, patch, ..Commit::default() };
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        let now = system_clock()();
        operations::commit(&transaction, &self.id, self.fence, &commit, now)?;
        transaction.commit().map_err(failed)
    }
}

/// A reader at the end of a session's log.
fn reader_at_end(
    connection: &Connection,
    record: &SessionRecord,
    now: u64,
) -> Result<Reader, Error> {
    let mut rebuilt = log::Rebuilt::new(record)?;
    loop {
        let page = operations::read(connection, &record.id, rebuilt.next(), PAGE, now)?;
        if !rebuilt.push(&page)? {
            return Ok(rebuilt.into_reader());
        }
    }
}
