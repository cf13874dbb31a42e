//! A reader that continues the log of a session whose own reader is gone, because its process ended.

use super::{HostFacts, ReadOptions, Reader, Source, TurnOwner};
use crate::dialect;
use crate::entry::EntryRef;
use crate::error::Error;
use crate::grammar::Outlet;

/// Rebuilds the [`Reader`] of a session from the session's log.
///
/// The log is read to its end; then the reader is as the one that wrote it was, but for the decoder
/// of the stream that was cut off. [End that stream](Reader::end_stream) with what is known of its
/// end, which closes the turn and the calls that it left open, and continue with the
/// [next stream](Reader::next_stream).
///
/// ```
/// use interlingua::{Continuation, Entry, EntryRef, Exit, ReadOptions, Reader, Source, StreamEnd};
///
/// let options = ReadOptions { id_seed: Some(7), ..ReadOptions::default() };
/// let mut log: Vec<Entry> = Vec::new();
/// let mut reader = Reader::new(Source::named("codex")?, options.clone())?;
/// reader.push(b"{\"type\":\"turn.started\"}\n", None, &mut |entry: EntryRef<'_>| {
///     log.push(entry.to_owned());
/// })?;
/// drop(reader);
///
/// let mut continuation = Continuation::new(options)?;
/// log.iter().for_each(|entry| continuation.push(entry.borrowed()));
/// let mut reader = continuation.into_reader();
/// let exit = Exit::default();
/// reader.end_stream(StreamEnd::Exit(&exit), None, &mut |entry: EntryRef<'_>| {
///     log.push(entry.to_owned());
/// })?;
/// let kinds: Vec<_> = log.iter().map(|entry| entry.event.data.kind()).collect();
/// assert_eq!(kinds, ["session_started", "turn_started", "turn_ended"]);
/// assert!(log.iter().map(|entry| entry.sequence).eq(0..3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Continuation {
    reader: Reader,
    turns: TurnOwner,
    host: HostFacts,
}

/// What the grammar emits of a log is in the log.
struct InTheLog;

impl Outlet for InTheLog {
    fn emit(&mut self, _entry: EntryRef<'_>) {}
}

impl Continuation {
    /// At the beginning of a log. The options are those of the session; its
    /// [seed](ReadOptions::id_seed) has to be the one with which the log was written.
    pub fn new(mut options: ReadOptions) -> Result<Self, Error> {
        // The start of the session is in the log, with what the host knew then, and so are the turns.
        let turns = std::mem::take(&mut options.turns);
        let host = std::mem::take(&mut options.host);
        let reader = Reader::new(Source::Dialect(&dialect::events::DIALECT), options)?;
        Ok(Self { reader, turns, host })
    }

    /// Reads the next entry of the log.
    pub fn push(&mut self, entry: EntryRef<'_>) {
        self.reader.core.grammar.restore(entry, &mut InTheLog);
    }

    /// The number of entries that were read.
    pub fn entries(&self) -> u64 {
        self.reader.core.grammar.sequence()
    }

    /// Whether a turn is open.
    pub fn has_open_turn(&self) -> bool {
        self.reader.core.grammar.has_open_turn()
    }

    /// The reader at the end of the log.
    pub fn into_reader(self) -> Reader {
        let Self { mut reader, turns, host } = self;
        reader.ended = true;
        reader.core.continue_log();
        reader.expect_turn(false);
        reader.set_host(host, turns);
        reader
    }
}
