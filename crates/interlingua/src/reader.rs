//! Turns the bytes of an agent into entries: framing, decoder and grammar in a row.
//!
//! A reader knows how the parts follow each other, and which dialect is being read. The dialect
//! knows what a record means, and the [grammar](crate::grammar) what makes a stream well-formed.

mod continued;
mod options;
mod recognition;
mod stream;

use crate::account::Account;
use crate::dialect::{Dialect, Ending, FramingKind};
use crate::entry::{EntryRef, Flow, Sink};
use crate::error::Error;
use crate::event::{Event, TurnEnded};
use crate::explain::Explanation;
use crate::framing::{FrameText, Framing, Limits};
use crate::grammar::{Exit, Grammar, Outlet, Repairs};
use crate::json::Mender;
pub use continued::Continuation;
pub use options::{ClientCall, ClientTools, HostFacts, RawRecords, ReadOptions, Source, TurnOwner};
use recognition::Recognition;
use stream::{Core, Intake, SeededOutlet, Stream};

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
        grammar.set_host(options.host);
        if options.turns == TurnOwner::Caller {
            grammar.set_turns_of_caller();
        }
        let mut core = Core {
            grammar,
            kept: None,
            raw_records: options.raw_records,
            explains: options.explain_unknown,
            explanation: None,
            id_seed: options.id_seed,
            resumed: options.resumed,
            continues: false,
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
            core.decode(decoder.as_mut(), &frame, mender.mend(frame.text), outlet);
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

    /// Sets what the host knows of the session, and who begins and ends turns from now on. A reader
    /// that continues a log needs it, because the log does not contain it.
    pub fn set_host(&mut self, host: HostFacts, turns: TurnOwner) {
        self.core.grammar.set_host(host);
        if turns == TurnOwner::Caller {
            self.core.grammar.set_turns_of_caller();
        }
    }

    /// Sets the tools that the client of the session runs. What the agent reports of them from now on
    /// is reported under the client's names for them, and as calls that the client has to answer.
    pub fn set_client_tools(&mut self, tools: ClientTools) {
        self.core.grammar.set_client_tools(tools);
    }

    /// States that the caller answers the calls of the client while the stream is read. A turn that waits
    /// for the client is then suspended instead of ended.
    pub fn suspend_turns(&mut self) {
        self.core.grammar.suspend_turns();
    }

    /// Takes a call that the server of the client's tools received, and emits it unless the agent's
    /// stream has reported it. Returns its emitted id; `None` if the call has ended already. The caller
    /// [emits](Self::emit) the answer.
    pub fn client_call<S: Sink>(
        &mut self,
        call: &ClientCall<'_>,
        now: Option<u64>,
        sink: &mut S,
    ) -> Result<Option<String>, S::Error> {
        let mut id = None;
        self.with_outlet(now, sink, |reader, outlet| {
            reader.core.begin("", outlet);
            id = reader.core.grammar.client_call(call, outlet);
        })?;
        Ok(id)
    }

    /// Emits that the turn is [suspended](crate::event::Suspended), if a call of the client is open.
    /// Returns whether one is.
    pub fn suspend<S: Sink>(&mut self, now: Option<u64>, sink: &mut S) -> Result<bool, S::Error> {
        let mut suspended = false;
        self.with_outlet(now, sink, |reader, outlet| {
            suspended = reader.core.grammar.suspend(outlet);
        })?;
        Ok(suspended)
    }

    /// Sets the answers, as [`ToolEnded`](crate::event::ToolEnded), to calls of the client that were open when
    /// the process that had made them was lost. They are emitted when the next turn begins, because the
    /// agent receives them with the prompt of that turn.
    pub fn answer_with_next_turn(&mut self, answers: Vec<Event<'static>>) {
        self.core.grammar.answer_with_next_turn(answers);
    }

    /// Sets whether the agent owes a turn. It owes one from the start of a stream, and from then on
    /// whenever the caller has sent it another prompt. If the stream ends before that turn has
    /// started, the turn is added, and it has failed. An agent that waits for its first prompt owes
    /// nothing.
    pub fn expect_turn(&mut self, expected: bool) {
        self.core.grammar.expect_turn(expected);
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

    /// Whether the current response has reported its end, so that nothing of it is awaited any more.
    pub fn has_response_end(&self) -> bool {
        self.core.grammar.has_response_end()
    }

    /// Takes the end of the current response, where the caller ends the turns
    /// ([`TurnOwner::Caller`]): its outcome, with the error if it failed. `None` if the response
    /// has not reported its end, which means that it was cut off if its stream has ended.
    pub fn take_response_end(&mut self) -> Option<TurnEnded<'static>> {
        self.core.grammar.take_response_end()
    }

    /// The ids of the calls of the current response, in its order, where the caller ends the turns
    /// ([`TurnOwner::Caller`]). A call that is generated again, because its response was requested
    /// again, has started before: the order of the events is not that of the response.
    pub fn response_calls(&self) -> &[String] {
        self.core.grammar.response_calls()
    }

    /// Begins another stream of the session, as a new epoch: another process of the agent, or
    /// another response of a model API. The previous stream must have been
    /// [ended](Self::end_stream).
    pub fn next_stream(&mut self, source: Source) -> Result<(), Error> {
        self.begin_stream(source)?;
        self.core.grammar.begin_stream();
        Ok(())
    }

    /// Begins a stream that continues the response of the [ended](Self::end_stream) one, as a new
    /// epoch. Calls of both are calls of one response, whose inputs are held back until it ends
    /// properly.
    pub fn continue_response(&mut self, source: Source) -> Result<(), Error> {
        self.begin_stream(source)?;
        self.core.grammar.continue_response();
        Ok(())
    }

    fn begin_stream(&mut self, source: Source) -> Result<(), Error> {
        if !self.ended {
            return Err(Error::StreamNotEnded);
        }
        self.stream = match source {
            Source::Dialect(dialect) => self.core.set_dialect(dialect)?,
            Source::Recognise => Stream::Recognising(Recognition::default()),
        };
        self.framing = self.stream.framing(self.framing_kind).at_start(self.limits);
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

    /// The number of the next entry.
    pub fn next_sequence(&self) -> u64 {
        self.core.grammar.sequence()
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

/// A [`Sink`] that remembers whether it stopped or failed.
struct SinkOutlet<'s, S: Sink> {
    sink: &'s mut S,
    state: Result<Flow, S::Error>,
}

impl<S: Sink> SeededOutlet for SinkOutlet<'_, S> {
    fn begin(&mut self, id_seed: u64) {
        self.state = self.sink.begin(id_seed);
    }

    #[inline]
    fn frame(&mut self, frame: &FrameText<'_>) {
        if matches!(self.state, Ok(Flow::Continue)) {
            self.sink.frame(frame);
        }
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
