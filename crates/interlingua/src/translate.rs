//! Translates the bytes of one dialect into those of another: a [`Reader`] and a [`Writer`] in a
//! row.

use std::convert::Infallible;

use crate::account::Account;
use crate::dialect::{Dialect, EncodeOptions, Encoder, Losses};
use crate::entry::{EntryRef, Flow, Sink};
use crate::error::Error;
use crate::event::Event;
use crate::explain::Explanation;
use crate::grammar::{Exit, Repairs};
use crate::reader::{RawRecords, ReadOptions, Reader, Source};
use crate::writer::Writer;

/// The options of a translator.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The options of the reader. Its seed is also that of the writer's ids.
    pub read: ReadOptions,
    /// The options of the writer.
    pub encode: EncodeOptions,
}

/// Reads one dialect and writes another.
///
/// ```
/// use interlingua::{Exit, Options, Source, Translator, dialect};
///
/// let giselle = dialect::named("giselle")?;
/// let mut translator = Translator::new(Source::named("codex")?, giselle, Options::default())?;
/// let line = br#"{"type":"message.output_text.delta","delta":"Hello"}"#;
/// let mut written = translator.push(line, None).to_vec();
/// written.extend_from_slice(translator.push(b"\n", None));
/// written.extend_from_slice(&translator.finish(&Exit::default(), None).bytes);
/// let first = written.split(|byte| *byte == b'\n').next().unwrap();
/// assert_eq!(first, br#"{"type":"message","role":"assistant","content":"Hello","delta":true}"#);
/// # Ok::<(), interlingua::Error>(())
/// ```
#[derive(Debug)]
pub struct Translator<E: Encoder = Box<dyn Encoder>> {
    reader: Reader,
    target: Target<E>,
}

/// The report of a translator at the end of a session.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Finished {
    /// The last records.
    pub bytes: Vec<u8>,
    /// The dialect that was read, if it was recognised.
    pub from: Option<&'static Dialect>,
    /// What the target could not express.
    pub losses: Losses,
    /// The repairs of the input.
    pub repairs: Repairs,
    /// The fates of all frames and events.
    pub account: Account,
    /// What the decoder does not know of the input, if [`ReadOptions::explain_unknown`] is set.
    pub explanation: Option<Explanation>,
}

/// The writer, and what it has written since the last call.
#[derive(Debug)]
struct Target<E: Encoder> {
    writer: Writer<E>,
    bytes: Vec<u8>,
}

impl Translator {
    /// A translator from one dialect to another.
    pub fn new(from: Source, to: &'static Dialect, options: Options) -> Result<Self, Error> {
        let Options { mut read, mut encode } = options;
        read.id_seed = read.id_seed.or(encode.id_seed);
        encode.id_seed = read.id_seed;
        // Records in the target's own dialect are passed through.
        read.raw_records = RawRecords::KeepOf(to);
        let writer = Writer::new(to, &encode)?;
        Ok(Self::with_writer(Reader::new(from, read)?, writer))
    }
}

impl<E: Encoder> Translator<E> {
    /// A translator with the caller's reader and writer.
    pub fn with_writer(reader: Reader, writer: Writer<E>) -> Self {
        Self { reader, target: Target { writer, bytes: Vec::new() } }
    }

    /// The reader.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// The writer.
    pub fn writer(&mut self) -> &mut Writer<E> {
        &mut self.target.writer
    }

    /// Takes the next bytes, in any split, and returns the records that are now complete. The
    /// caller gives the time, in milliseconds since 1970.
    pub fn push(&mut self, chunk: &[u8], now: Option<u64>) -> &[u8] {
        self.target.bytes.clear();
        let Ok(_) = self.reader.push(chunk, now, &mut self.target);
        &self.target.bytes
    }

    /// Takes a record that was sent *to* the agent; see [`Reader::push_sent`].
    pub fn push_sent(&mut self, record: &str, now: Option<u64>) -> &[u8] {
        self.target.bytes.clear();
        let Ok(_) = self.reader.push_sent(record, now, &mut self.target);
        &self.target.bytes
    }

    /// Emits an event of the caller, which the stream does not contain.
    pub fn emit(&mut self, event: Event<'_>, now: Option<u64>) -> &[u8] {
        self.target.bytes.clear();
        let Ok(_) = self.reader.emit(event, now, &mut self.target);
        &self.target.bytes
    }

    /// Ends the session, with the way in which the agent ended.
    pub fn finish(self, exit: &Exit, now: Option<u64>) -> Finished {
        let Self { reader, mut target } = self;
        target.bytes.clear();
        let Ok(report) = reader.finish(exit, now, &mut target);
        let Target { writer, mut bytes } = target;
        let losses = writer.finish(&mut bytes);
        Finished {
            bytes,
            from: report.dialect,
            losses,
            repairs: report.repairs,
            account: report.account,
            explanation: report.explanation,
        }
    }
}

impl<E: Encoder> Sink for Target<E> {
    type Error = Infallible;

    fn begin(&mut self, id_seed: u64) -> Result<Flow, Infallible> {
        self.writer.set_id_seed(id_seed);
        Ok(Flow::Continue)
    }

    #[inline]
    fn entry(&mut self, entry: EntryRef<'_>) -> Result<Flow, Infallible> {
        self.writer.write(entry, &mut self.bytes);
        Ok(Flow::Continue)
    }
}
