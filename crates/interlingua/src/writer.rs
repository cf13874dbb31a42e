//! Entries in, bytes of one dialect out.
//!
//! A writer knows what its target can express: it fits the entries to that, encodes them, and counts
//! what is lost. Records that the agent wrote in the target's own dialect are passed through as they
//! are. It asks nobody where the entries come from, so that a live stream and a log give the same
//! bytes, and it can join a stream anywhere: what it writes is a function of the entries alone.

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
#[derive(Debug, Clone)]
pub struct Writer<E: Encoder = Box<dyn Encoder>> {
    encoder: E,
    fit: Fit,
    out: Output,
    passage: Passage,
}

/// How the agent's own records are passed through.
#[derive(Debug, Clone, Default)]
struct Passage {
    /// The dialect whose records are passed through.
    dialect: Option<&'static Dialect>,
    /// The epoch whose records were last seen to be in that dialect.
    epoch: Option<u64>,
    /// A record that waits until what it makes the grammar add, an abandoned call before the end of
    /// its turn for instance, has been written.
    waiting: String,
}

impl Writer {
    /// A writer at the beginning of a session.
    pub fn new(to: &'static Dialect, options: &EncodeOptions) -> Result<Self, Error> {
        let make = to.encoder.ok_or(Error::NotWritten { dialect: to.name })?;
        let mut writer = Self::with_encoder(make(options), options);
        writer.passage.dialect = Some(to);
        Ok(writer)
    }
}

impl<E: Encoder> Writer<E> {
    /// A writer into a protocol of the caller's own, or with an encoder that the caller set up. It
    /// passes no records through.
    pub fn with_encoder(encoder: E, options: &EncodeOptions) -> Self {
        Self {
            encoder,
            fit: Fit::default(),
            out: Output::new(options.id_seed.unwrap_or(0)),
            passage: Passage::default(),
        }
    }

    /// Sets what the ids of this session are made of, before the first entry.
    pub fn set_id_seed(&mut self, id_seed: u64) {
        self.out.set_id_seed(id_seed);
    }

    /// The encoder.
    pub fn encoder(&mut self) -> &mut E {
        &mut self.encoder
    }

    /// Appends what one entry is in this dialect; it may be nothing, and it may be held back.
    pub fn write(&mut self, entry: EntryRef<'_>, bytes: &mut Vec<u8>) {
        std::mem::swap(self.out.bytes(), bytes);
        self.encode(entry);
        std::mem::swap(self.out.bytes(), bytes);
    }

    /// Takes note of an entry that the consumer has already, without writing it or counting what is
    /// lost of it.
    pub fn advance(&mut self, entry: EntryRef<'_>) {
        let was_muted = self.out.mute(true);
        self.encode(entry);
        self.out.mute(was_muted);
        self.out.bytes().clear();
    }

    /// Appends what was held back; gives what could not be written.
    pub fn finish(mut self, bytes: &mut Vec<u8>) -> Losses {
        std::mem::swap(self.out.bytes(), bytes);
        self.passage.flush(&mut self.out);
        self.encoder.finish(&mut self.out);
        std::mem::swap(self.out.bytes(), bytes);
        self.out.losses().clone()
    }

    /// What could not be written so far.
    pub fn losses(&self) -> &Losses {
        self.out.losses()
    }

    #[inline]
    fn encode(&mut self, entry: EntryRef<'_>) {
        let Self { encoder, fit, out, passage } = self;
        out.begin_entry(entry);
        match entry.raw.filter(|raw| passage.covers(raw)) {
            Some(raw) => passage.take(raw, entry.epoch, out),
            None if passage.epoch != Some(entry.epoch) => {
                out.set_passing(false);
                fit.pass(entry.event, encoder, out);
                return;
            }
            None => {}
        }
        passage.encode(entry, encoder, out);
    }
}

impl Passage {
    fn covers(&self, raw: &RawRef<'_>) -> bool {
        self.dialect.is_some_and(|dialect| dialect == raw.dialect)
    }

    /// Takes the next record, after the one before it was written.
    fn take(&mut self, raw: RawRef<'_>, epoch: u64, out: &mut Output) {
        self.flush(out);
        self.epoch = Some(epoch);
        self.waiting.push_str(raw.record);
    }

    /// Writes the record that waits.
    fn flush(&mut self, out: &mut Output) {
        if !self.waiting.is_empty() {
            out.bytes().extend_from_slice(self.waiting.as_bytes());
            out.bytes().push(b'\n');
            self.waiting.clear();
        }
    }

    /// Writes an event of a stream whose records are passed through: only what is not in any record,
    /// and of that only what does not merely begin something. The encoder follows along all the same,
    /// so that it knows what is open.
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
