//! The stream at hand: passes its frames to the decoder, and the events of the decoder to the
//! grammar.

use std::borrow::Cow;

use super::options::RawRecords;
use super::recognition::{HeldFrame, Recognition};
use crate::dialect::{Decoder, Dialect, EventSink, FramingKind};
use crate::error::Error;
use crate::event::{
    Data, Event, Log, LogStream, Notice, Severity, TextFlaw, ToolEnded, ToolStarted, Unparsed,
};
use crate::explain::Explanation;
use crate::fingerprint::{Fingerprint, of_words};
use crate::framing::{Body, Frame, FrameText};
use crate::grammar::{Grammar, Outlet};
use crate::json::{Mender, Text};

/// The rule by which `[DONE]` is left out.
const END_OF_EVENTS: &str = "the end of a stream of server-sent events";

/// The stream that is being read, whose dialect may not be known yet.
pub(super) enum Stream {
    Known { dialect: &'static Dialect, decoder: Box<dyn Decoder>, begun: bool },
    Recognising(Recognition),
}

/// The state that all streams of the session share.
pub(super) struct Core {
    pub(super) grammar: Grammar,
    /// The dialect whose records are kept in the entries.
    pub(super) kept: Option<&'static Dialect>,
    pub(super) raw_records: RawRecords,
    pub(super) explains: bool,
    pub(super) explanation: Option<Explanation>,
    pub(super) id_seed: Option<u64>,
    pub(super) resumed: bool,
    /// The log of an earlier process is continued.
    pub(super) continues: bool,
    /// The consumer has received the seed.
    pub(super) begun: bool,
}

/// An outlet that receives the seed of the session's ids first, and the frames of the input.
pub(super) trait SeededOutlet: Outlet {
    fn begin(&mut self, id_seed: u64);

    fn frame(&mut self, frame: &FrameText<'_>);
}

impl Stream {
    /// The framing that the caller chose, else that of the dialect.
    pub(super) fn framing(&self, chosen: Option<FramingKind>) -> FramingKind {
        chosen.unwrap_or(match self {
            Self::Known { dialect, .. } => dialect.framing,
            Self::Recognising(_) => FramingKind::LinesOrSse,
        })
    }

    pub(super) fn take_frame(
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
    pub(super) fn recognise(
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
    pub(super) fn set_dialect(&mut self, dialect: &'static Dialect) -> Result<Stream, Error> {
        let make = dialect.decoder.ok_or(Error::NotRead { dialect: dialect.name })?;
        self.explanation = self.explains.then(|| Explanation::of(dialect));
        self.kept = self.raw_records.keeps(dialect).then_some(dialect);
        self.grammar.set_dialect(dialect);
        Ok(Stream::Known { dialect, decoder: make(), begun: false })
    }

    /// Passes the seed of the session's ids to the consumer, before anything else.
    pub(super) fn begin(&mut self, first: &str, outlet: &mut dyn SeededOutlet) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let of_first = || Fingerprint::of(first.as_bytes()).number();
        let seed = *self.id_seed.get_or_insert_with(of_first);
        if !self.continues {
            self.grammar.set_id_tag(&self.id_tag(), self.resumed);
        }
        outlet.begin(seed);
    }

    /// Continues a log: ids that are generated from now on differ from those of its last epoch.
    pub(super) fn continue_log(&mut self) {
        self.continues = true;
        let tag = self.id_tag_of(self.grammar.epoch() + 1);
        self.grammar.set_id_tag(&tag, true);
    }

    /// The tag that generated ids of this epoch contain.
    fn id_tag(&self) -> String {
        self.id_tag_of(self.grammar.epoch())
    }

    fn id_tag_of(&self, epoch: u64) -> String {
        let number = of_words([self.id_seed.unwrap_or(0), epoch]);
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
            Body::Text(text) => {
                let mended = mender.mend(text.text);
                outlet.frame(&FrameText { text: &mended, ..text.clone() });
                self.decode(decoder, text, mended, outlet);
            }
            Body::TooLong { length, limit } => {
                Intake { core: self, outlet }.unreadable(too_long(*length, *limit));
            }
            Body::Done => {
                self.grammar.ignored(END_OF_EVENTS);
                decoder.done(&mut Intake { core: self, outlet });
            }
        }
        self.grammar.end_frame(outlet);
    }

    /// Decodes a frame, whose text without lone surrogates is `mended`.
    pub(super) fn decode(
        &mut self,
        decoder: &mut dyn Decoder,
        frame: &FrameText<'_>,
        mended: Cow<'_, str>,
        outlet: &mut dyn SeededOutlet,
    ) {
        let mut intake = Intake { core: self, outlet };
        if !frame.noise.is_empty() {
            let log = Log { stream: LogStream::Output, text: Text::plain(frame.noise) };
            intake.event(Event::new(log));
        }
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
    pub(super) fn unrecognised(&mut self, frame: &HeldFrame, outlet: &mut dyn SeededOutlet) {
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
pub(super) struct Intake<'r> {
    pub(super) core: &'r mut Core,
    pub(super) outlet: &'r mut dyn SeededOutlet,
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
