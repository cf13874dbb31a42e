//! Turns entries into the bytes of one dialect.
//!
//! A writer knows what its target can express: it adapts the entries to that, encodes them, and
//! counts what is lost. Records that the agent wrote in the target's own dialect are passed through
//! unchanged. The output is a function of the entries alone, so a live stream and a log give the
//! same bytes, and a writer can join a stream anywhere.

use crate::dialect::{Dialect, EncodeOptions, Encoder, Losses, Output};
use crate::entry::{EntryRef, Origin, RawRef};
use crate::error::Error;
use crate::event::{Data, Reason};
use crate::fit::Fit;

/// Writes one dialect.
///
/// ```
/// use interlingua::{Entry, Writer, dialect};
/// use interlingua::dialect::EncodeOptions;
///
/// let log: Vec<Entry> = vec![/* … */];
/// let mut writer = Writer::new(dialect::named("ai-sdk")?, &EncodeOptions::default())?;
/// let (seen, rest) = log.split_at(log.len() / 2);
/// // A reader that has seen the first half joins here.
/// seen.iter().for_each(|entry| writer.advance(entry.borrowed()));
/// let mut bytes = Vec::new();
/// rest.iter().for_each(|entry| writer.write(entry.borrowed(), &mut bytes));
/// let losses = writer.finish(&mut bytes);
/// # assert!(losses.is_empty());
/// # Ok::<(), interlingua::Error>(())
/// ```
#[derive(Clone)]
pub struct Writer<E: Encoder = Box<dyn Encoder>> {
    encoder: E,
    fit: Fit,
    out: Output,
    pass_through: PassThrough,
}

/// How the agent's own records are passed through.
#[derive(Clone, Default)]
struct PassThrough {
    /// The dialect whose records are passed through.
    dialect: Option<&'static Dialect>,
    /// The last epoch with records in that dialect.
    epoch: Option<u64>,
    /// A record that is held back until the events that the grammar adds before it have been
    /// written, such as the end of an abandoned call before the end of its turn.
    held: String,
}

impl<E: Encoder> std::fmt::Debug for Writer<E> {
    /// Leaves out what is being written, since it may hold secrets.
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Writer").field("losses", self.out.losses()).finish_non_exhaustive()
    }
}

impl Writer {
    /// A writer at the beginning of a session.
    pub fn new(to: &'static Dialect, options: &EncodeOptions) -> Result<Self, Error> {
        let make = to.encoder.ok_or(Error::NotWritten { dialect: to.name })?;
        let mut writer = Self::with_encoder(make(options), options);
        writer.pass_through.dialect = Some(to);
        Ok(writer)
    }
}

impl<E: Encoder> Writer<E> {
    /// A writer with the caller's encoder, which may be one for a protocol of the caller's own. It
    /// passes no records through.
    pub fn with_encoder(encoder: E, options: &EncodeOptions) -> Self {
        Self {
            encoder,
            fit: Fit::default(),
            out: Output::new(options.id_seed.unwrap_or(0)),
            pass_through: PassThrough::default(),
        }
    }

    /// Sets the seed of this session's ids, before the first entry.
    pub fn set_id_seed(&mut self, id_seed: u64) {
        self.out.set_id_seed(id_seed);
    }

    /// The encoder.
    pub fn encoder(&mut self) -> &mut E {
        &mut self.encoder
    }

    /// Appends the records for one entry. There may be none, and they may be held back.
    pub fn write(&mut self, entry: EntryRef<'_>, bytes: &mut Vec<u8>) {
        std::mem::swap(self.out.bytes(), bytes);
        self.encode(entry);
        std::mem::swap(self.out.bytes(), bytes);
    }

    /// Advances over an entry that the consumer already has, without writing it or counting its
    /// losses.
    pub fn advance(&mut self, entry: EntryRef<'_>) {
        let was_muted = self.out.mute(true);
        self.encode(entry);
        self.out.mute(was_muted);
        self.out.bytes().clear();
    }

    /// Appends what was held back, and returns what could not be expressed.
    pub fn finish(mut self, bytes: &mut Vec<u8>) -> Losses {
        std::mem::swap(self.out.bytes(), bytes);
        self.pass_through.flush(&mut self.out);
        self.encoder.finish(&mut self.out);
        std::mem::swap(self.out.bytes(), bytes);
        self.out.losses().clone()
    }

    /// What could not be expressed so far.
    pub fn losses(&self) -> &Losses {
        self.out.losses()
    }

    #[inline]
    fn encode(&mut self, entry: EntryRef<'_>) {
        let Self { encoder, fit, out, pass_through } = self;
        if matches!(entry.event.data, Data::HostState(_)) && !encoder.writes_host_state() {
            return;
        }
        out.begin_entry(entry);
        match entry.raw.filter(|raw| pass_through.covers(raw)) {
            Some(raw) => pass_through.take(raw, entry.epoch, out),
            None if pass_through.epoch != Some(entry.epoch) => {
                out.set_passing(false);
                fit.pass(entry.event, encoder, out);
                return;
            }
            None => {}
        }
        pass_through.encode(entry, encoder, out);
    }
}

impl PassThrough {
    fn covers(&self, raw: &RawRef<'_>) -> bool {
        self.dialect.is_some_and(|dialect| dialect == raw.dialect)
    }

    /// Holds the next record, after writing the previous one.
    fn take(&mut self, raw: RawRef<'_>, epoch: u64, out: &mut Output) {
        self.flush(out);
        self.epoch = Some(epoch);
        self.held.push_str(raw.record);
    }

    /// Writes the held record.
    fn flush(&mut self, out: &mut Output) {
        if !self.held.is_empty() {
            out.bytes().extend_from_slice(self.held.as_bytes());
            out.bytes().push(b'\n');
            self.held.clear();
        }
    }

    /// Writes an event of a stream whose records are passed through: only events that no record
    /// contains, except added starts. The encoder still receives every event, so that it knows what
    /// is open.
    fn encode<E: Encoder>(&mut self, entry: EntryRef<'_>, encoder: &mut E, out: &mut Output) {
        let EntryRef { event, origin: Origin { added, .. }, .. } = entry;
        out.set_passing(true);
        let begins = matches!(
            event.data,
            Data::SessionStarted(_)
                | Data::TurnStarted(_)
                | Data::BlockStarted(_)
                | Data::PlanUpdated(_)
        );
        let elsewhere = event.synthetic == Some(Reason::Elsewhere);
        if *added && (!begins || elsewhere) {
            encoder.encode(event, out);
            return;
        }
        if !*added {
            self.flush(out);
        }
        let (length, was_muted) = (out.bytes().len(), out.mute(true));
        encoder.encode(event, out);
        out.mute(was_muted);
        out.bytes().truncate(length);
    }
}
