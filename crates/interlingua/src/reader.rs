//! Bytes of an agent in, entries out: framing, decoder and grammar in a row.
//!
//! A reader knows how the parts follow each other, and which dialect is being read. What a record means
//! is known by its dialect, and what makes a stream well-formed by the [grammar](crate::grammar).

mod recognition;

use std::borrow::Cow;

use crate::account::Account;
use crate::dialect::{self, Decoder, Dialect, Ending, EventSink, FramingKind};
use crate::entry::{EntryRef, Flow, Sink};
use crate::error::Error;
use crate::event::{
    Data, Event, Log, LogStream, Notice, Severity, TextFlaw, ToolEnded, ToolStarted, Unparsed,
    Usage,
};
use crate::explain::Explanation;
use crate::fingerprint::{Fingerprint, of_words};
use crate::framing::{Body, Frame, FrameText, Framing, Limits};
use crate::grammar::{Exit, Grammar, Outlet, Repairs};
use crate::json::{Mender, Text};
use recognition::{HeldFrame, Recognition};

/// The rule by which `[DONE]` is left out.
const END_OF_EVENTS: &str = "the end of a stream of server-sent events";

/// What a reader reads.
#[derive(Debug, Clone, Copy)]
pub enum Source {
    /// The dialect that the first records turn out to be in.
    Recognise,
    /// This dialect.
    Dialect(&'static Dialect),
}

impl From<&'static Dialect> for Source {
    fn from(dialect: &'static Dialect) -> Self {
        Self::Dialect(dialect)
    }
}

impl Source {
    /// The dialect of some name.
    pub fn named(name: &str) -> Result<Self, Error> {
        dialect::named(name).map(Self::Dialect)
    }
}

/// What the caller of a reader decides.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// What one frame may cost.
    pub limits: Limits,
    /// How records are cut out of bytes, where it is not as the dialect says.
    pub framing: Option<FramingKind>,
    /// Take note of record types and fields that the decoder does not know.
    pub explain_unknown: bool,
    /// What the session had used before this stream, where its counts go on from there: those of a
    /// resumed thread of Codex do.
    pub usage_before: Option<Usage<'static>>,
    /// What makes the ids of this session differ from those of every other one. Without it, a hash of
    /// the first frame does, so that the same input gives the same ids.
    pub id_seed: Option<u64>,
    /// The session was resumed, and the reader does not see its earlier runs. Ids that are made up are
    /// then not counted from one.
    pub resumed: bool,
    /// Whether the agent's own records are kept in the entries.
    pub raw_records: RawRecords,
}

/// Whether the agent's own records are kept in the entries. Where they are, a record that adds nothing
/// is an entry too, so that a log with records has other sequence numbers than one without.
#[derive(Debug, Clone, Copy, Default)]
pub enum RawRecords {
    /// They are not kept.
    #[default]
    Drop,
    /// All of them are. They may hold secrets that events leave out.
    Keep,
    /// Those in one dialect are, for a writer that passes them through.
    KeepOf(&'static Dialect),
}

impl RawRecords {
    fn keeps(self, dialect: &'static Dialect) -> bool {
        match self {
            Self::Drop => false,
            Self::Keep => true,
            Self::KeepOf(kept) => kept == dialect,
        }
    }
}

/// Reads the streams of one session.
///
/// ```
/// use interlingua::{EntryRef, Exit, ReadOptions, Reader, Source};
///
/// let mut reader = Reader::new(Source::named("codex")?, ReadOptions::default())?;
/// let mut kinds = Vec::new();
/// let mut sink = |entry: EntryRef<'_>| kinds.push(entry.event.data.kind());
/// reader.push(b"{\"type\":\"thread.started\",\"thread_id\":\"t1\"}\n", None, &mut sink)?;
/// reader.finish(&Exit::default(), None, &mut sink)?;
/// assert_eq!(kinds, ["session_started", "turn_started", "turn_ended", "session_ended"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Reader {
    framing: Box<dyn Framing + Send>,
    stream: Stream,
    core: Core,
    mender: Mender,
    limits: Limits,
    /// The caller's own framing, for streams to come too.
    framing_kind: Option<FramingKind>,
    /// The current stream was ended.
    ended: bool,
    /// The consumer wants nothing more.
    stopped: bool,
}

/// How a stream ends that is not the last one of its session.
#[derive(Debug, Clone, Copy)]
pub enum StreamEnd<'e> {
    /// The agent's process ended so, and with it the turn.
    Exit(&'e Exit),
    /// The turn goes on with the next stream: it is one of several responses of a model API.
    TurnGoesOn,
}

/// The stream that is being read, as soon as its dialect is known.
enum Stream {
    Known { dialect: &'static Dialect, decoder: Box<dyn Decoder>, begun: bool },
    Guessing(Recognition),
}

/// What is common to all streams of the session.
struct Core {
    grammar: Grammar,
    /// The dialect whose records are kept in the entries.
    kept: Option<&'static Dialect>,
    raw_records: RawRecords,
    explains: bool,
    explanation: Option<Explanation>,
    id_seed: Option<u64>,
    resumed: bool,
    /// The consumer was given the seed.
    begun: bool,
}

/// What a reader reports when it is done.
#[derive(Debug, Clone)]
pub struct ReadReport {
    /// The dialect that was read last, if it is known.
    pub dialect: Option<&'static Dialect>,
    /// What of the input had to be repaired.
    pub repairs: Repairs,
    /// What became of all frames and events.
    pub account: Account,
    /// What of the input the decoder does not know, if [`ReadOptions::explain_unknown`] asked for it.
    pub explanation: Option<Explanation>,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Reader")
            .field("dialect", &self.dialect().map(|dialect| dialect.name))
            .finish_non_exhaustive()
    }
}

impl Reader {
    /// A reader at the beginning of a session.
    pub fn new(source: Source, options: ReadOptions) -> Result<Self, Error> {
        let mut grammar = Grammar::default();
        if let Some(usage) = options.usage_before {
            grammar.set_usage_before(usage);
        }
        let mut core = Core {
            grammar,
            kept: None,
            raw_records: options.raw_records,
            explains: options.explain_unknown,
            explanation: None,
            id_seed: options.id_seed,
            resumed: options.resumed,
            begun: false,
        };
        let stream = match source {
            Source::Dialect(dialect) => core.reading(dialect)?,
            Source::Recognise => Stream::Guessing(Recognition::default()),
        };
        let framing = stream.framing(options.framing).at_start(options.limits);
        Ok(Self {
            framing,
            stream,
            core,
            mender: Mender::default(),
            limits: options.limits,
            framing_kind: options.framing,
            ended: false,
            stopped: false,
        })
    }

    /// Takes the next bytes, in any split, and emits what is now known. The time is the caller's, in
    /// milliseconds since 1970.
    pub fn push<S: Sink>(
        &mut self,
        chunk: &[u8],
        now: Option<u64>,
        sink: &mut S,
    ) -> Result<Flow, S::Error> {
        self.with_outlet(now, sink, |reader, outlet| {
            let Self { framing, stream, core, mender, .. } = reader;
            framing.push(chunk, &mut |frame| stream.take_frame(&frame, core, mender, outlet));
        })
    }

    /// Takes a record that was sent *to* the agent, whole and at the time at which it was sent. In some
    /// protocols that reveals more than the agent's side alone: the prompt, and what was decided. It is
    /// never kept as a raw record.
    pub fn push_sent<S: Sink>(
        &mut self,
        record: &str,
        now: Option<u64>,
        sink: &mut S,
    ) -> Result<Flow, S::Error> {
        self.with_outlet(now, sink, |reader, outlet| {
            let Self { stream: Stream::Known { decoder, .. }, core, mender, .. } = reader else {
                return;
            };
            let frame = FrameText {
                text: record.trim_ascii(),
                noise: "",
                replaced: false,
                unterminated: false,
                several_lines: false,
                event: "",
            };
            core.begin(record, outlet);
            let kept = core.kept.take();
            core.decode(decoder.as_mut(), &frame, mender, outlet);
            core.kept = kept;
        })
    }

    /// Takes an event that the caller knows of and the stream does not contain.
    pub fn emit<S: Sink>(
        &mut self,
        event: Event<'_>,
        now: Option<u64>,
        sink: &mut S,
    ) -> Result<Flow, S::Error> {
        self.with_outlet(now, sink, |reader, outlet| {
            reader.core.begin("", outlet);
            reader.core.grammar.push_from_caller(event, outlet);
        })
    }

    /// Ends the current stream, and not the session: reads what is left of it, and ends what is open.
    /// Another stream may follow.
    pub fn end_stream<S: Sink>(
        &mut self,
        end: StreamEnd<'_>,
        now: Option<u64>,
        sink: &mut S,
    ) -> Result<Flow, S::Error> {
        self.with_outlet(now, sink, |reader, outlet| {
            let ending = reader.end_stream_input(outlet);
            reader.ended = true;
            let exit = match end {
                StreamEnd::Exit(exit) => Some(exit),
                StreamEnd::TurnGoesOn => None,
            };
            reader.core.grammar.end_stream(exit, ending, outlet);
        })
    }

    /// Begins another stream of the session, as a new epoch: another process of the agent, or another
    /// response of a model API. The one before must have been [ended](Self::end_stream).
    pub fn next_stream(&mut self, source: Source) -> Result<(), Error> {
        if !self.ended {
            return Err(Error::StreamNotEnded);
        }
        self.stream = match source {
            Source::Dialect(dialect) => self.core.reading(dialect)?,
            Source::Recognise => Stream::Guessing(Recognition::default()),
        };
        self.framing = self.stream.framing(self.framing_kind).at_start(self.limits);
        self.core.grammar.begin_stream();
        self.ended = false;
        Ok(())
    }

    /// Ends the session: no more bytes will come, and this is how the agent ended.
    pub fn finish<S: Sink>(
        mut self,
        exit: &Exit,
        now: Option<u64>,
        sink: &mut S,
    ) -> Result<ReadReport, S::Error> {
        self.with_outlet(now, sink, |reader, outlet| {
            let ending = reader.end_stream_input(outlet);
            if let Some(explanation) = &mut reader.core.explanation {
                explanation.settle();
            }
            reader.core.grammar.finish(exit, ending, outlet);
        })?;
        Ok(ReadReport {
            dialect: self.dialect(),
            repairs: self.core.grammar.repairs().clone(),
            account: *self.core.grammar.account(),
            explanation: self.core.explanation,
        })
    }

    /// The dialect that is read, as soon as it is known.
    pub fn dialect(&self) -> Option<&'static Dialect> {
        match &self.stream {
            Stream::Known { dialect, .. } => Some(dialect),
            Stream::Guessing(_) => None,
        }
    }

    /// What of the input had to be repaired so far.
    pub fn repairs(&self) -> &Repairs {
        self.core.grammar.repairs()
    }

    /// What became of all frames and events so far.
    pub fn account(&self) -> &Account {
        self.core.grammar.account()
    }

    /// What of the input the decoder does not know, if [`ReadOptions::explain_unknown`] asked for it and
    /// the dialect is known.
    pub fn explanation(&self) -> Option<&Explanation> {
        self.core.explanation.as_ref()
    }

    /// Reads what is left of the current stream; gives what its end means.
    fn end_stream_input(&mut self, outlet: &mut dyn SeededOutlet) -> Ending {
        let Self { framing, stream, core, mender, .. } = self;
        if self.ended {
            return Ending::Told;
        }
        framing.finish(&mut |frame| stream.take_frame(&frame, core, mender, outlet));
        core.begin("", outlet);
        stream.settle(core, mender, outlet, true);
        match stream {
            Stream::Known { dialect, decoder, .. } => {
                decoder.finish(&mut Intake { core, outlet });
                dialect.ending
            }
            Stream::Guessing(recognition) => {
                recognition.drain(|frame| core.unrecognised(frame, outlet));
                Ending::Told
            }
        }
    }

    /// Does some work whose entries go to a consumer that may stop or fail.
    fn with_outlet<S: Sink>(
        &mut self,
        now: Option<u64>,
        sink: &mut S,
        work: impl FnOnce(&mut Self, &mut dyn SeededOutlet),
    ) -> Result<Flow, S::Error> {
        if self.stopped {
            return Ok(Flow::Stop);
        }
        self.core.grammar.set_time(now);
        let mut outlet = SinkOutlet { sink, state: Ok(Flow::Continue) };
        work(self, &mut outlet);
        let state = outlet.state;
        self.stopped = !matches!(state, Ok(Flow::Continue));
        state
    }
}

/// An outlet that is given the seed of the session's ids first.
trait SeededOutlet: Outlet {
    fn begin(&mut self, id_seed: u64);
}

/// A [`Sink`] that remembers whether it stopped or failed.
struct SinkOutlet<'s, S: Sink> {
    sink: &'s mut S,
    state: Result<Flow, S::Error>,
}

impl<S: Sink> SeededOutlet for SinkOutlet<'_, S> {
    fn begin(&mut self, id_seed: u64) {
        self.state = self.sink.begin(id_seed);
    }
}

impl<S: Sink> Outlet for SinkOutlet<'_, S> {
    #[inline]
    fn emit(&mut self, entry: EntryRef<'_>) {
        if matches!(self.state, Ok(Flow::Continue)) {
            self.state = self.sink.entry(entry);
        }
    }
}

impl Stream {
    /// How its records are cut out of bytes, unless the caller knows better.
    fn framing(&self, chosen: Option<FramingKind>) -> FramingKind {
        chosen.unwrap_or(match self {
            Self::Known { dialect, .. } => dialect.framing,
            Self::Guessing(_) => FramingKind::LinesOrSse,
        })
    }

    fn take_frame(
        &mut self,
        frame: &Frame<'_>,
        core: &mut Core,
        mender: &Mender,
        outlet: &mut dyn SeededOutlet,
    ) {
        let text = match &frame.body {
            Body::Text(text) => text.text,
            Body::TooLong { .. } | Body::Done => "",
        };
        core.begin(text, outlet);
        match self {
            Self::Known { decoder, begun, .. } => {
                if !std::mem::replace(begun, true) {
                    decoder.set_id_tag(&core.id_tag());
                }
                core.frame(frame, decoder.as_mut(), mender, outlet);
            }
            Self::Guessing(recognition) => {
                recognition.hold(frame);
                self.settle(core, mender, outlet, false);
            }
        }
    }

    /// Recognises the dialect, if it can be, and reads what was held back.
    fn settle(
        &mut self,
        core: &mut Core,
        mender: &Mender,
        outlet: &mut dyn SeededOutlet,
        last: bool,
    ) {
        let Self::Guessing(recognition) = self else { return };
        let Some(dialect) = recognition.recognise(last) else {
            if recognition.is_full() {
                recognition.drain(|frame| core.unrecognised(frame, outlet));
            }
            return;
        };
        let mut recognition = std::mem::take(recognition);
        let Ok(known) = core.reading(dialect) else { return };
        *self = known;
        recognition.drain(|frame| {
            frame.with(|frame| self.take_frame(frame, core, mender, outlet));
        });
    }
}

impl Core {
    /// Settles which dialect is read from now on.
    fn reading(&mut self, dialect: &'static Dialect) -> Result<Stream, Error> {
        let make = dialect.decoder.ok_or(Error::NotRead { dialect: dialect.name })?;
        self.explanation = self.explains.then(|| Explanation::of(dialect));
        self.kept = self.raw_records.keeps(dialect).then_some(dialect);
        self.grammar.set_dialect(dialect);
        Ok(Stream::Known { dialect, decoder: make(), begun: false })
    }

    /// Gives the consumer the seed of the session's ids, before anything else.
    fn begin(&mut self, first: &str, outlet: &mut dyn SeededOutlet) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let of_first = || Fingerprint::of(first.as_bytes()).number();
        let seed = *self.id_seed.get_or_insert_with(of_first);
        self.grammar.set_id_tag(&self.id_tag(), self.resumed);
        outlet.begin(seed);
    }

    /// What ids that are made up in this epoch have to contain.
    fn id_tag(&self) -> String {
        let number = of_words([self.id_seed.unwrap_or(0), self.grammar.epoch()]);
        format!("{:08x}", number & 0xffff_ffff)
    }

    fn frame(
        &mut self,
        frame: &Frame<'_>,
        decoder: &mut dyn Decoder,
        mender: &Mender,
        outlet: &mut dyn SeededOutlet,
    ) {
        self.grammar.begin_frame(frame.line, frame.bytes.clone());
        match &frame.body {
            Body::Text(text) => self.decode(decoder, text, mender, outlet),
            Body::TooLong { length, limit } => {
                Intake { core: self, outlet }.unreadable(too_long(*length, *limit));
            }
            Body::Done => self.grammar.ignored(END_OF_EVENTS),
        }
        self.grammar.end_frame(outlet);
    }

    fn decode(
        &mut self,
        decoder: &mut dyn Decoder,
        frame: &FrameText<'_>,
        mender: &Mender,
        outlet: &mut dyn SeededOutlet,
    ) {
        let mut intake = Intake { core: self, outlet };
        if !frame.noise.is_empty() {
            let log = Log { stream: LogStream::Output, text: Text::plain(frame.noise) };
            intake.event(Event::new(log));
        }
        let mended = mender.mend(frame.text);
        if frame.replaced {
            intake.warn("bytes that are not UTF-8 were replaced in this line");
        }
        if matches!(mended, Cow::Owned(_)) {
            intake.warn("half of a surrogate pair was replaced in this line");
        }
        let text = if frame.several_lines { on_one_line(&mended) } else { Cow::Borrowed(&*mended) };
        decoder.decode(&FrameText { text: &text, ..frame.clone() }, &mut intake);
    }

    /// A frame of a stream that no dialect was recognised in: it is kept as it is.
    fn unrecognised(&mut self, frame: &HeldFrame, outlet: &mut dyn SeededOutlet) {
        frame.with(|frame| {
            self.grammar.begin_frame(frame.line, frame.bytes.clone());
            let mut intake = Intake { core: self, outlet };
            match &frame.body {
                Body::Text(text) => intake.unreadable(Unparsed {
                    flaw: TextFlaw::NotJson,
                    message: Text::plain("no dialect that can be read looks like this"),
                    text: Some(Text::from(format!("{}{}", text.noise, text.text))),
                }),
                Body::TooLong { length, limit } => intake.unreadable(too_long(*length, *limit)),
                Body::Done => intake.ignored(END_OF_EVENTS),
            }
            self.grammar.end_frame(outlet);
        });
    }
}

/// Takes what a decoder reads, and passes it through the grammar.
struct Intake<'r> {
    core: &'r mut Core,
    outlet: &'r mut dyn SeededOutlet,
}

impl Intake<'_> {
    fn warn(&mut self, text: &'static str) {
        let notice = Notice { severity: Severity::Warning, text: Text::plain(text) };
        self.event(Event::new(notice));
    }
}

impl EventSink for Intake<'_> {
    #[inline]
    fn event(&mut self, event: Event<'_>) {
        let Core { grammar, explanation, .. } = &mut *self.core;
        if let (Some(explanation), Data::Unknown(unknown)) = (explanation, &event.data) {
            explanation.unknown(unknown, grammar.line());
        }
        grammar.push(event, self.outlet);
    }

    fn unreadable(&mut self, unparsed: Unparsed<'_>) {
        self.core.grammar.unreadable(&unparsed);
        self.event(Event::new(unparsed));
    }

    fn record(&mut self, text: &str) {
        let Core { grammar, explanation, kept, .. } = &mut *self.core;
        if let Some(explanation) = explanation {
            explanation.record(text, grammar.line());
        }
        if let Some(dialect) = kept {
            grammar.begin_record(dialect, text, self.outlet);
        }
    }

    fn ignored(&mut self, rule: &'static str) {
        self.core.grammar.ignored(rule);
    }

    fn deferred(&mut self) {
        self.core.grammar.deferred();
    }

    fn repeats(&mut self, started: &ToolStarted<'_>, ended: &ToolEnded<'_>) -> bool {
        self.core.grammar.repeats(started, ended)
    }
}

/// The text of a record that may stand on several lines, on one: a raw record must not break a line of
/// the output. A line feed is never inside a string, so it means nothing.
fn on_one_line(text: &str) -> Cow<'_, str> {
    match memchr::memchr(b'\n', text.as_bytes()) {
        Some(_) => Cow::Owned(text.replace(['\n', '\r'], " ")),
        None => Cow::Borrowed(text),
    }
}

fn too_long(length: u64, limit: usize) -> Unparsed<'static> {
    let message = format!("this line has {length} bytes, which is over the limit of {limit}");
    Unparsed { flaw: TextFlaw::TooLong, message: Text::from(message), text: None }
}
