//! The type that people use: bytes of one protocol in, bytes of another out.

use std::borrow::Cow;

use crate::dialect::{
    self, Confidence, Decoder, Dialect, EncodeOptions, Encoder, Ending, FramingKind, Losses,
    Output, Probe,
};
use crate::event::{
    Data, Event, Log, LogStream, Notice, Severity, Sink, TextFlaw, Unparsed, Usage,
};
use crate::explain::Explanation;
use crate::fit::Fit;
use crate::framing::{Body, Frame, FrameText, Framing, Limits};
use crate::grammar::{Exit, Grammar, Repairs};
use crate::json::{Mender, Text};

/// How many records are looked at before a stream counts as not recognised.
const RECORDS_PROBED: usize = 64;

/// How many bytes of them are held back.
const BYTES_PROBED: usize = 1 << 20;

/// What the caller decides.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// What one frame may cost.
    pub limits: Limits,
    /// How records are cut out of bytes, where it is not as the dialect says.
    pub framing: Option<FramingKind>,
    /// What the writer is told.
    pub encode: EncodeOptions,
    /// Take note of record types and fields that the reader does not know.
    pub explain_unknown: bool,
    /// What the session had used before this stream, where its counts go on from there: those of a
    /// resumed thread of Codex do.
    pub usage_before: Option<Usage<'static>>,
}

/// Why a translator cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CannotTranslate {
    /// The dialect has no reader.
    #[error("`{0}` can be written, but not read")]
    NotRead(&'static str),
    /// The dialect has no writer.
    #[error("`{0}` can be read, but not written")]
    NotWritten(&'static str),
}

/// Reads one protocol and writes another.
///
/// ```
/// use interlingua::{Exit, Options, Translator, dialect};
///
/// let codex = dialect::find("codex").unwrap();
/// let giselle = dialect::find("giselle").unwrap();
/// let mut translator = Translator::new(Some(codex), giselle, Options::default())?;
/// let line = br#"{"type":"message.output_text.delta","delta":"Hello"}"#;
/// let mut written = translator.push(line).to_vec();
/// written.extend_from_slice(translator.push(b"\n"));
/// written.extend_from_slice(translator.finish(&Exit::default()));
/// let first = written.split(|byte| *byte == b'\n').next().unwrap();
/// assert_eq!(first, br#"{"type":"message","role":"assistant","content":"Hello","delta":true}"#);
/// # Ok::<(), interlingua::CannotTranslate>(())
/// ```
pub struct Translator<E: Encoder = Box<dyn Encoder>> {
    framing: Box<dyn Framing + Send>,
    reader: Reader,
    pipe: Pipe<E>,
    mender: Mender,
}

/// Which protocol is read, as soon as that is known.
enum Reader {
    Known { dialect: &'static Dialect, decoder: Box<dyn Decoder> },
    Guessing(Vec<HeldFrame>),
}

/// A frame that is held back until the protocol is known.
struct HeldFrame {
    line: u64,
    bytes: std::ops::Range<u64>,
    body: HeldBody,
}

enum HeldBody {
    Text { text: String, noise: String, event: String, replaced: bool, unterminated: bool },
    TooLong { length: u64, limit: usize },
}

/// From events to the output.
struct Pipe<E> {
    grammar: Grammar,
    encoder: E,
    to: &'static str,
    out: Output,
    /// What stands between a source that takes back what it said, or tells the past, and a target
    /// that cannot.
    fit: Fit,
    /// Where the same protocol is read and written: the record at hand, which is passed on as it is.
    identity: Option<PassedRecord>,
    /// What is read was said to the agent, not by it.
    sent: bool,
    /// What the reader does not know, where the caller wants to know it.
    explains: bool,
    explanation: Option<Explanation>,
}

#[derive(Default)]
struct PassedRecord {
    text: String,
    written: bool,
}

impl PassedRecord {
    /// Passes the record on, unless that was done.
    fn pass(&mut self, out: &mut Output) {
        if !std::mem::replace(&mut self.written, true) {
            out.bytes().extend_from_slice(self.text.as_bytes());
            out.bytes().push(b'\n');
        }
    }
}

impl<E: Encoder> std::fmt::Debug for Translator<E> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Translator")
            .field("from", &self.from().map(|dialect| dialect.name))
            .field("to", &self.pipe.to)
            .finish_non_exhaustive()
    }
}

impl Translator {
    /// A translator from one protocol to another; from `None`, the protocol is recognised.
    pub fn new(
        from: Option<&'static Dialect>,
        to: &'static Dialect,
        options: Options,
    ) -> Result<Self, CannotTranslate> {
        let make_encoder = to.encoder.ok_or(CannotTranslate::NotWritten(to.name))?;
        Self::with_encoder(from, to.name, make_encoder(&options.encode), &options)
    }
}

impl<E: Encoder> Translator<E> {
    /// A translator into a protocol of the caller's own, or with a writer that the caller set up.
    pub fn with_encoder(
        from: Option<&'static Dialect>,
        to: &'static str,
        encoder: E,
        options: &Options,
    ) -> Result<Self, CannotTranslate> {
        let kind = options.framing.or(from.map(|dialect| dialect.framing));
        let kind = kind.unwrap_or(FramingKind::LinesOrSse);
        let framing = kind.at_start(options.limits);
        let (mut grammar, out) = (Grammar::default(), Output::default());
        if let Some(usage) = &options.usage_before {
            grammar.set_usage_before(usage.clone());
        }
        let mut pipe = Pipe {
            grammar,
            encoder,
            to,
            out,
            fit: Fit::default(),
            identity: None,
            sent: false,
            explains: options.explain_unknown,
            explanation: None,
        };
        let reader = match from {
            Some(dialect) => pipe.reading(dialect)?,
            None => Reader::Guessing(Vec::new()),
        };
        Ok(Self { framing, reader, pipe, mender: Mender::default() })
    }

    /// The writer.
    pub fn encoder(&mut self) -> &mut E {
        &mut self.pipe.encoder
    }

    /// Takes the next bytes, in any split; gives the records that are now known.
    pub fn push(&mut self, chunk: &[u8]) -> &[u8] {
        self.pipe.out.bytes().clear();
        let Self { framing, reader, pipe, mender } = self;
        framing.push(chunk, &mut |frame| take_frame(&frame, reader, pipe, mender));
        self.pipe.out.bytes()
    }

    /// Takes a record that was said *to* the agent, whole and at the time at which it was said. Of some
    /// protocols that tells more than the agent's side alone: the prompt, and what was decided. It is
    /// never passed on.
    pub fn push_sent(&mut self, record: &str) -> &[u8] {
        self.pipe.out.bytes().clear();
        let Self { reader: Reader::Known { decoder, .. }, pipe, mender, .. } = self else {
            return &[];
        };
        let frame = FrameText {
            text: record.trim_ascii(),
            noise: "",
            replaced: false,
            unterminated: false,
            several_lines: false,
            event: "",
        };
        pipe.sent = true;
        pipe.decode(decoder.as_mut(), &frame, mender);
        pipe.sent = false;
        self.pipe.out.bytes()
    }

    /// Takes an event that the caller knows of and the stream does not tell.
    pub fn tell(&mut self, event: Event<'_>) -> &[u8] {
        self.pipe.out.bytes().clear();
        self.pipe.event(event);
        self.pipe.out.bytes()
    }

    /// As [`Translator::push`], with the caller's time in milliseconds since 1970.
    pub fn push_at(&mut self, chunk: &[u8], now_ms: u64) -> &[u8] {
        self.pipe.out.set_now(Some(now_ms));
        self.push(chunk)
    }

    /// Says that no more bytes will come, and how the agent ended; gives the last records.
    pub fn finish(&mut self, exit: &Exit) -> &[u8] {
        self.pipe.out.bytes().clear();
        let Self { framing, reader, pipe, mender } = self;
        framing.finish(&mut |frame| take_frame(&frame, reader, pipe, mender));
        settle(reader, pipe, true);
        let mut ending = Ending::Told;
        match reader {
            Reader::Known { dialect, decoder } => {
                ending = dialect.ending;
                decoder.finish(pipe);
            }
            Reader::Guessing(held) => {
                for frame in held.drain(..) {
                    pipe.unrecognised(&frame);
                }
            }
        }
        pipe.finish(exit, ending);
        self.pipe.out.bytes()
    }

    /// The protocol that is read, as soon as it is known.
    pub fn from(&self) -> Option<&'static Dialect> {
        match &self.reader {
            Reader::Known { dialect, .. } => Some(dialect),
            Reader::Guessing(_) => None,
        }
    }

    /// What the target could not say so far.
    pub fn losses(&self) -> &Losses {
        self.pipe.out.losses()
    }

    /// What of the input the reader does not know, if [`Options::explain_unknown`] asked for it and
    /// the protocol is known.
    pub fn explanation(&self) -> Option<&Explanation> {
        self.pipe.explanation.as_ref()
    }

    /// What of the input had to be repaired so far.
    pub fn repairs(&self) -> &Repairs {
        self.pipe.grammar.repairs()
    }
}

fn take_frame<E: Encoder>(
    frame: &Frame<'_>,
    reader: &mut Reader,
    pipe: &mut Pipe<E>,
    mender: &Mender,
) {
    match reader {
        Reader::Known { decoder, .. } => {
            pipe.grammar.at(frame.line, frame.bytes.clone());
            match &frame.body {
                Body::Text(text) => pipe.decode(decoder.as_mut(), text, mender),
                Body::TooLong { length, limit } => pipe.unreadable(too_long(*length, *limit)),
                Body::Done => {}
            }
        }
        Reader::Guessing(held) => {
            held.extend(HeldFrame::of(frame));
            settle(reader, pipe, false);
        }
    }
}

/// Recognises the protocol, if it can be, and reads what was held back.
fn settle<E: Encoder>(reader: &mut Reader, pipe: &mut Pipe<E>, last: bool) {
    let Reader::Guessing(held) = reader else { return };
    let Some(dialect) = recognise(held, last) else {
        // These speak for no dialect: they are told as they are, so that a stream that nobody
        // recognises costs neither memory nor a second look, and a later record may still be sure.
        if held.len() >= RECORDS_PROBED
            || held.iter().map(HeldFrame::len).sum::<usize>() > BYTES_PROBED
        {
            held.drain(..).for_each(|frame| pipe.unrecognised(&frame));
        }
        return;
    };
    let held = std::mem::take(held);
    let Ok(known) = pipe.reading(dialect) else { return };
    *reader = known;
    let mender = Mender::default();
    for frame in &held {
        frame.with(|frame| take_frame(frame, reader, pipe, &mender));
    }
}

/// The dialect that the first records speak for: the first that is sure, else the likeliest.
fn recognise(held: &[HeldFrame], last: bool) -> Option<&'static Dialect> {
    let newest = held.last().and_then(HeldFrame::probe);
    let readable = || dialect::ALL.iter().copied().filter(|dialect| dialect.decoder.is_some());
    if let Some(probe) = newest
        && let Some(sure) =
            readable().find(|dialect| (dialect.recognise)(&probe) == Confidence::Sure)
    {
        return Some(sure);
    }
    if !last && held.len() < RECORDS_PROBED {
        return None;
    }
    let likely = |dialect: &&'static Dialect| {
        held.iter()
            .filter_map(HeldFrame::probe)
            .filter(|probe| (dialect.recognise)(probe) > Confidence::No)
            .count()
    };
    let best = readable().map(|dialect| (likely(&dialect), dialect)).rev().max_by_key(|it| it.0)?;
    (best.0 > 0).then_some(best.1)
}

impl HeldFrame {
    fn of(frame: &Frame<'_>) -> Option<Self> {
        let body = match &frame.body {
            Body::Text(text) => HeldBody::Text {
                text: text.text.to_owned(),
                noise: text.noise.to_owned(),
                event: text.event.to_owned(),
                replaced: text.replaced,
                unterminated: text.unterminated,
            },
            Body::TooLong { length, limit } => HeldBody::TooLong { length: *length, limit: *limit },
            Body::Done => return None,
        };
        Some(Self { line: frame.line, bytes: frame.bytes.clone(), body })
    }

    fn len(&self) -> usize {
        match &self.body {
            HeldBody::Text { text, .. } => text.len(),
            HeldBody::TooLong { .. } => 0,
        }
    }

    fn probe(&self) -> Option<Probe<'_>> {
        match &self.body {
            HeldBody::Text { text, .. } => Probe::of(text),
            HeldBody::TooLong { .. } => None,
        }
    }

    fn with(&self, take: impl FnOnce(&Frame<'_>)) {
        let body = match &self.body {
            HeldBody::Text { text, noise, event, replaced, unterminated } => {
                Body::Text(FrameText {
                    text,
                    noise,
                    replaced: *replaced,
                    unterminated: *unterminated,
                    // Whether it does was not kept.
                    several_lines: true,
                    event,
                })
            }
            HeldBody::TooLong { length, limit } => Body::TooLong { length: *length, limit: *limit },
        };
        take(&Frame { line: self.line, bytes: self.bytes.clone(), body });
    }
}

impl<E: Encoder> Sink for Pipe<E> {
    #[inline]
    fn event(&mut self, event: Event<'_>) {
        let Self { grammar, encoder, out, fit, identity, explanation, .. } = self;
        if let (Some(explanation), Data::Unknown(unknown)) = (explanation, &event.data) {
            explanation.unknown(unknown, grammar.line());
        }
        // Our own events may say that they were added before: they are there already.
        let added_before = event.source.synthetic.is_some();
        grammar.push(event, &mut |event| match identity {
            None => fit.pass(event, encoder, out),
            Some(record) => {
                let added = event.source.synthetic.is_some() && !added_before;
                pass_on(event, added, encoder, record, out);
            }
        });
    }

    fn unreadable(&mut self, unparsed: Unparsed<'_>) {
        self.grammar.unreadable(&unparsed);
        self.event(Event::new(unparsed));
    }

    fn record(&mut self, text: &str) {
        if let Some(explanation) = &mut self.explanation {
            explanation.record(text, self.grammar.line());
        }
        if let Some(record) = &mut self.identity {
            record.pass(&mut self.out);
            record.text.clear();
            record.text.push_str(text);
            record.written = self.sent;
        }
    }
}

/// Writes an event of a stream whose records are passed on as they are: only what the grammar added
/// is written, and of that only what answers or ends something. The encoder is told all the same, so
/// that it knows what is open.
fn pass_on(
    event: &Event<'_>,
    added: bool,
    encoder: &mut dyn Encoder,
    record: &mut PassedRecord,
    out: &mut Output,
) {
    let begins = matches!(
        event.data,
        Data::SessionStarted(_)
            | Data::TurnStarted(_)
            | Data::BlockStarted(_)
            | Data::PlanUpdated(_)
    );
    if added && !begins {
        encoder.encode(event, out);
        return;
    }
    if !added {
        record.pass(out);
    }
    out.muted(|out| encoder.encode(event, out));
}

impl<E: Encoder> Pipe<E> {
    /// Settles which protocol is read.
    fn reading(&mut self, dialect: &'static Dialect) -> Result<Reader, CannotTranslate> {
        let make = dialect.decoder.ok_or(CannotTranslate::NotRead(dialect.name))?;
        self.encoder.reading(dialect);
        self.grammar.set_exit_class(dialect.exit_class);
        let same = dialect.name == self.to;
        self.explanation = self.explains.then(|| Explanation::of(dialect));
        self.identity = same.then(|| PassedRecord { text: String::new(), written: true });
        Ok(Reader::Known { dialect, decoder: make() })
    }

    fn decode(&mut self, decoder: &mut dyn Decoder, frame: &FrameText<'_>, mender: &Mender) {
        if !frame.noise.is_empty() {
            let log = Log { stream: LogStream::Output, text: Text::plain(frame.noise) };
            self.event(Event::new(log));
        }
        let mended = mender.mend(frame.text);
        if frame.replaced {
            self.warn("bytes that are not UTF-8 were replaced in this line");
        }
        if matches!(mended, Cow::Owned(_)) {
            self.warn("half of a surrogate pair was replaced in this line");
        }
        let text = if frame.several_lines { on_one_line(&mended) } else { Cow::Borrowed(&*mended) };
        let frame = FrameText { text: &text, ..frame.clone() };
        decoder.decode(&frame, self);
        if let Some(record) = &mut self.identity {
            record.pass(&mut self.out);
        }
    }

    fn warn(&mut self, text: &'static str) {
        let notice = Notice { severity: Severity::Warning, text: Text::plain(text) };
        self.event(Event::new(notice));
    }

    /// A line of a stream that nobody recognised: it is kept as it is.
    fn unrecognised(&mut self, frame: &HeldFrame) {
        self.grammar.at(frame.line, frame.bytes.clone());
        match &frame.body {
            HeldBody::Text { text, noise, .. } => self.unreadable(Unparsed {
                flaw: TextFlaw::NotJson,
                message: Text::plain("no dialect that can be read looks like this"),
                text: Some(Text::from(format!("{noise}{text}"))),
            }),
            HeldBody::TooLong { length, limit } => self.unreadable(too_long(*length, *limit)),
        }
    }

    fn finish(&mut self, exit: &Exit, ending: Ending) {
        if let Some(explanation) = &mut self.explanation {
            explanation.settle();
        }
        let Self { grammar, encoder, out, fit, identity, .. } = self;
        grammar.finish(exit, ending, &mut |event| match identity {
            None => fit.pass(event, encoder, out),
            Some(record) => pass_on(event, true, encoder, record, out),
        });
        encoder.finish(out);
    }
}

/// The text of a record that may stand on several lines, on one: what is passed on as it stood must
/// not break a line of the output. A line feed is never inside a string, so it means nothing.
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
