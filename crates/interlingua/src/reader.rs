//! Turns the bytes of an agent into entries: framing, decoder and grammar in a row.
//!
//! A reader knows how the parts follow each other, and which dialect is being read. The dialect
//! knows what a record means, and the [grammar](crate::grammar) what makes a stream well-formed.

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

/// The dialect that a reader reads.
#[derive(Debug, Clone, Copy)]
pub enum Source {
    /// The dialect is recognised by the first records.
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
    /// The dialect with this name.
    pub fn named(name: &str) -> Result<Self, Error> {
        dialect::named(name).map(Self::Dialect)
    }
}

/// The options of a reader.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// The limits of a frame.
    pub limits: Limits,
    /// The framing, if it is not that of the dialect.
    pub framing: Option<FramingKind>,
    /// Record the types of records and the fields that the decoder does not know.
    pub explain_unknown: bool,
    /// What the session had used before this stream, for agents whose counts continue across runs,
    /// as those of a resumed Codex thread do.
    pub usage_before: Option<Usage<'static>>,
    /// The seed that distinguishes the ids of this session from those of every other one. Without
    /// it, a hash of the first frame is the seed, so the same input gives the same ids.
    pub id_seed: Option<u64>,
    /// The session was resumed, and the reader does not see its earlier runs. Generated ids then
    /// contain a tag, so that they do not repeat those of earlier runs.
    pub resumed: bool,
    /// Whether the agent's own records are kept in the entries.
    pub raw_records: RawRecords,
}

/// Whether the agent's own records are kept in the entries. If they are, a record that adds nothing
/// is an entry too, so a log with records has other sequence numbers than one without.
#[derive(Debug, Clone, Copy, Default)]
pub enum RawRecords {
    /// None are kept.
    #[default]
    Drop,
    /// All are kept. They may contain secrets that events leave out.
    Keep,
    /// Those in one dialect are kept, for a writer that passes them through.
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
    /// The framing that the caller chose, also for later streams.
    framing_kind: Option<FramingKind>,
    /// The current stream has ended.
    ended: bool,
    /// The consumer has stopped the stream.
    stopped: bool,
}

/// How a stream ends that may not be the last one of its session.
#[derive(Debug, Clone, Copy)]
pub enum StreamEnd<'e> {
    /// The agent's process ended in this way, and with it the turn.
    Exit(&'e Exit),
    /// The turn continues in the next stream, which is another response of a model API.
    TurnGoesOn,
}

/// The stream that is being read, whose dialect may not be known yet.
enum Stream {
    Known { dialect: &'static Dialect, decoder: Box<dyn Decoder>, begun: bool },
    Recognising(Recognition),
}

/// The state that all streams of the session share.
struct Core {
    grammar: Grammar,
    /// The dialect whose records are kept in the entries.
    kept: Option<&'static Dialect>,
    raw_records: RawRecords,
    explains: bool,
    explanation: Option<Explanation>,
    id_seed: Option<u64>,
    resumed: bool,
    /// The consumer has received the seed.
    begun: bool,
}

/// The report of a reader at the end of a session.
#[derive(Debug, Clone)]
pub struct ReadReport {
    /// The dialect that was read last, if it is known.
    pub dialect: Option<&'static Dialect>,
    /// The repairs of the input.
    pub repairs: Repairs,
    /// The fates of all frames and events.
    pub account: Account,
    /// What the decoder does not know of the input, if [`ReadOptions::explain_unknown`] is set.
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
            Source::Dialect(dialect) => core.set_dialect(dialect)?,
            Source::Recognise => Stream::Recognising(Recognition::default()),
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

    /// Takes the next bytes, in any split, and emits the entries of complete records. The caller
    /// gives the time, in milliseconds since 1970.
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

    /// Takes a whole record that was sent *to* the agent, at the time at which it was sent. In some
    /// protocols it contains what the agent's output does not: the prompt, and the decisions about
    /// permissions. It is never kept as a raw record.
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

    /// Emits an event of the caller, which the stream does not contain.
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

    /// Ends the current stream but not the session: reads the rest of the stream, and ends what is
    /// open. Another stream may follow.
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

    /// Begins another stream of the session, as a new epoch: another process of the agent, or
    /// another response of a model API. The previous stream must have been
    /// [ended](Self::end_stream).
    pub fn next_stream(&mut self, source: Source) -> Result<(), Error> {
        if !self.ended {
            return Err(Error::StreamNotEnded);
        }
        self.stream = match source {
            Source::Dialect(dialect) => self.core.set_dialect(dialect)?,
            Source::Recognise => Stream::Recognising(Recognition::default()),
        };
        self.framing = self.stream.framing(self.framing_kind).at_start(self.limits);
        self.core.grammar.begin_stream();
        self.ended = false;
        Ok(())
    }

    /// Ends the session, with the way in which the agent ended.
    pub fn finish<S: Sink>(
        mut self,
        exit: &Exit,
        now: Option<u64>,
        sink: &mut S,
    ) -> Result<ReadReport, S::Error> {
        self.with_outlet(now, sink, |reader, outlet| {
            let ending = reader.end_stream_input(outlet);
            if let Some(explanation) = &mut reader.core.explanation {
                explanation.count_unread_fields();
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

    /// The dialect that is read, if it is known yet.
    pub fn dialect(&self) -> Option<&'static Dialect> {
        match &self.stream {
            Stream::Known { dialect, .. } => Some(dialect),
            Stream::Recognising(_) => None,
        }
    }

    /// The repairs of the input so far.
    pub fn repairs(&self) -> &Repairs {
        self.core.grammar.repairs()
    }

    /// The fates of all frames and events so far.
    pub fn account(&self) -> &Account {
        self.core.grammar.account()
    }

    /// What the decoder does not know of the input, if [`ReadOptions::explain_unknown`] is set and
    /// the dialect is known.
    pub fn explanation(&self) -> Option<&Explanation> {
        self.core.explanation.as_ref()
    }

    /// Reads the rest of the current stream, and returns what its end means.
    fn end_stream_input(&mut self, outlet: &mut dyn SeededOutlet) -> Ending {
        let Self { framing, stream, core, mender, .. } = self;
        if self.ended {
            return Ending::Explicit;
        }
        framing.finish(&mut |frame| stream.take_frame(&frame, core, mender, outlet));
        core.begin("", outlet);
        stream.recognise(core, mender, outlet, true);
        match stream {
            Stream::Known { dialect, decoder, .. } => {
                decoder.finish(&mut Intake { core, outlet });
                dialect.ending
            }
            Stream::Recognising(recognition) => {
                recognition.drain(|frame| core.unrecognised(frame, outlet));
                Ending::Explicit
            }
        }
    }

    /// Runs an operation whose entries go to a consumer that may stop or fail.
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

/// An outlet that receives the seed of the session's ids first.
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
    /// The framing that the caller chose, else that of the dialect.
    fn framing(&self, chosen: Option<FramingKind>) -> FramingKind {
        chosen.unwrap_or(match self {
            Self::Known { dialect, .. } => dialect.framing,
            Self::Recognising(_) => FramingKind::LinesOrSse,
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
            Self::Recognising(recognition) => {
                recognition.hold(frame);
                self.recognise(core, mender, outlet, false);
            }
        }
    }

    /// Recognises the dialect, if possible, and reads the frames that were held back.
    fn recognise(
        &mut self,
        core: &mut Core,
        mender: &Mender,
        outlet: &mut dyn SeededOutlet,
        last: bool,
    ) {
        let Self::Recognising(recognition) = self else { return };
        let Some(dialect) = recognition.recognise(last) else {
            if recognition.is_full() {
                recognition.drain(|frame| core.unrecognised(frame, outlet));
            }
            return;
        };
        let mut recognition = std::mem::take(recognition);
        let Ok(known) = core.set_dialect(dialect) else { return };
        *self = known;
        recognition.drain(|frame| {
            frame.with(|frame| self.take_frame(frame, core, mender, outlet));
        });
    }
}

impl Core {
    /// Sets the dialect that is read from now on.
    fn set_dialect(&mut self, dialect: &'static Dialect) -> Result<Stream, Error> {
        let make = dialect.decoder.ok_or(Error::NotRead { dialect: dialect.name })?;
        self.explanation = self.explains.then(|| Explanation::of(dialect));
        self.kept = self.raw_records.keeps(dialect).then_some(dialect);
        self.grammar.set_dialect(dialect);
        Ok(Stream::Known { dialect, decoder: make(), begun: false })
    }

    /// Passes the seed of the session's ids to the consumer, before anything else.
    fn begin(&mut self, first: &str, outlet: &mut dyn SeededOutlet) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let of_first = || Fingerprint::of(first.as_bytes()).number();
        let seed = *self.id_seed.get_or_insert_with(of_first);
        self.grammar.set_id_tag(&self.id_tag(), self.resumed);
        outlet.begin(seed);
    }

    /// The tag that generated ids of this epoch contain.
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

    /// Emits a frame of a stream whose dialect was not recognised; its text is kept.
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

/// Receives the events of a decoder, and passes them to the grammar.
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

    fn has_unanswered_call(&self) -> bool {
        self.core.grammar.has_unanswered_call()
    }
}

/// Joins a record that may span several lines into one, because a raw record must not break a line
/// of the output. A string contains no line feed, so every one of them is insignificant.
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
