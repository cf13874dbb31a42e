//! Stores a session that is run in this process, without a host: `run` and `chat` with an agent that
//! has no memory of its own.
//!
//! The run passes on records of the dialect `events`. They are read as one more stream of the session,
//! so that a session which is resumed has one log, with numbers and ids that go on.

use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;

use interlingua::event::Data;
use interlingua::{EntryRef, Exit, Reader, Source, StreamEnd, dialect};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, TransactionBehavior};

use super::holder::Holder;
use super::{append, failed, open, operations, stopped};
use crate::log;
use crate::record::title;
use crate::store::system_clock;
use crate::{Commit, Error, Fence, Lines, Patch, SessionId, SessionRecord, State};

/// How many bytes of a log are read at once.
const PAGE: usize = 1 << 20;

/// How many pieces may wait to be stored. Beyond it, the run waits.
const CAPACITY: usize = 64;

/// The size of the write-ahead log, in pages of 4 KB, at which it is moved to the database.
const WAL_PAGES: u32 = 1_000;

/// Stores the entries of a session as they are emitted.
///
/// A thread of its own stores them: it takes all pieces that wait in one transaction, so that a run
/// that emits fast is not slowed down by the file.
#[derive(Debug)]
pub struct SessionRecorder {
    /// Absent only while it is dropped.
    pieces: Option<SyncSender<Piece>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread takes.
enum Piece {
    Records(Vec<u8>),
    /// Everything before it is to be stored. The session rests if the run has ended.
    Settle {
        run_ended: bool,
        answer: SyncSender<Result<(), Error>>,
    },
}

impl SessionRecorder {
    /// Stores a new session, or continues the one with the same id. A session that another process
    /// uses is rejected.
    pub fn open(path: &Path, record: SessionRecord) -> Result<Self, Error> {
        let mut recording = Recording::open(path, record)?;
        let (pieces, received) = mpsc::sync_channel(CAPACITY);
        let thread = std::thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || recording.run(&received))
            .map_err(|problem| Error::Failed(problem.to_string()))?;
        Ok(Self { pieces: Some(pieces), thread: Some(thread) })
    }

    /// Takes complete records of the dialect `events`, and stores them in the background.
    pub fn write(&mut self, records: Vec<u8>) -> Result<(), Error> {
        self.send(Piece::Records(records))
    }

    /// Waits until everything is stored that was taken. Returns why something is not.
    pub fn settle(&mut self) -> Result<(), Error> {
        self.ask(false)
    }

    /// The run has ended: the session rests, and can be continued.
    pub fn finish(self) -> Result<(), Error> {
        self.ask(true)
    }

    fn ask(&self, run_ended: bool) -> Result<(), Error> {
        let (answer, answered) = mpsc::sync_channel(1);
        self.send(Piece::Settle { run_ended, answer })?;
        answered.recv().unwrap_or_else(|_| Err(stopped()))
    }

    fn send(&self, piece: Piece) -> Result<(), Error> {
        let pieces = self.pieces.as_ref().ok_or_else(stopped)?;
        pieces.send(piece).map_err(|_| stopped())
    }
}

impl Drop for SessionRecorder {
    fn drop(&mut self) {
        // The thread ends once it has stored what it was given.
        drop(self.pieces.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The session, in the thread that stores it.
struct Recording {
    connection: Connection,
    id: SessionId,
    fence: Fence,
    reader: Reader,
    /// What was read and is not stored yet.
    entries: Lines,
    patch: Patch,
    /// Why the session is incomplete. Nothing is stored after a gap.
    failed: Option<Error>,
    /// Keeps other processes away from the session.
    _holder: Holder,
}

impl Recording {
    fn open(path: &Path, record: SessionRecord) -> Result<Self, Error> {
        let (mut connection, holder) = open(path)?;
        // The last process that closes a file moves its write-ahead log to the database, and waits for
        // the disk twice. A run need not wait for that: the next one finds the log. But it reads all
        // of it, so it has to stay small.
        let keep_log = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        connection.set_db_config(keep_log, true).map_err(failed)?;
        connection.pragma_update(None, "wal_autocheckpoint", WAL_PAGES).map_err(failed)?;
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
        let (entries, patch) = (Lines::default(), Patch::default());
        let mut recording =
            Self { connection, id, fence, reader, entries, patch, failed: None, _holder: holder };
        recording.end_stream(&Exit { stopped: Some(log::lost()), ..Exit::default() });
        recording.begin_stream()?;
        recording.patch.state = Some(State::Working);
        recording.commit()?;
        Ok(recording)
    }

    /// Stores what is received, until there is no sender any more.
    fn run(&mut self, received: &Receiver<Piece>) {
        while let Ok(first) = received.recv() {
            let waiting = std::iter::from_fn(|| received.try_recv().ok());
            for piece in std::iter::once(first).chain(waiting.take(CAPACITY)) {
                match piece {
                    Piece::Records(records) => self.read(&records),
                    Piece::Settle { run_ended, answer } => {
                        // The caller may not be interested any more.
                        let _ = answer.send(self.settle(run_ended));
                    }
                }
            }
            let _ = self.settle(false);
        }
    }

    /// Reads records of the run, which are stored with the next commit.
    fn read(&mut self, records: &[u8]) {
        let Self { reader, entries, patch, .. } = self;
        let mut keep = |entry: EntryRef<'_>| {
            if let Data::UserMessage(message) = &entry.event.data {
                patch.title.get_or_insert_with(|| title(&message.text.to_plain()));
            }
            entries.push(entry);
        };
        let Ok(_) = reader.push(records, None, &mut keep);
    }

    /// Stores what was read, and the end of the run. Returns why something is not stored.
    fn settle(&mut self, run_ended: bool) -> Result<(), Error> {
        if run_ended {
            self.end_stream(&Exit::default());
            self.patch.state = Some(State::Idle);
        }
        if self.failed.is_none() {
            self.failed = self.commit().err();
        }
        match (&self.failed, run_ended) {
            (Some(problem), _) => Err(problem.clone()),
            (None, true) => operations::release(&self.connection, &self.id, self.fence),
            (None, false) => Ok(()),
        }
    }

    /// Begins the stream of this run.
    fn begin_stream(&mut self) -> Result<(), Error> {
        let events = Source::Dialect(&dialect::events::DIALECT);
        self.reader.next_stream(events).map_err(|problem| Error::Failed(problem.to_string()))
    }

    /// Ends the stream of a run, and what it left open.
    fn end_stream(&mut self, exit: &Exit) {
        let Self { reader, entries, .. } = self;
        let mut keep = |entry: EntryRef<'_>| entries.push(entry);
        let now = Some(system_clock()());
        let Ok(_) = reader.end_stream(StreamEnd::Exit(exit), now, &mut keep);
    }

    /// Stores what was read.
    fn commit(&mut self) -> Result<(), Error> {
        let (entries, patch) = (std::mem::take(&mut self.entries), std::mem::take(&mut self.patch));
        if entries.is_empty() && patch.is_empty() {
            return Ok(());
        }
        let commit = Commit { entries, patch, ..Commit::default() };
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        let now = system_clock()();
        append::commit(&transaction, &self.id, self.fence, &commit, now)?;
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
