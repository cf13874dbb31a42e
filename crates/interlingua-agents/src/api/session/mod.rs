//! An agent that is a model API: one session with it.
//!
//! The event loop waits for whatever comes first: bytes of a response, the end of a tool, a command,
//! a deadline, capacity at the consumer. What happens next is decided by the
//! [loop](super::turns::AgentLoop); this module does the I/O.
//!
//! A response is an *epoch* of the session, and a turn has one or more of them.

mod calls;
mod client_calls;
mod commands;
mod compaction;
mod outlets;
mod progress;
mod responses;
mod results;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use interlingua::event::{
    ErrorClass, Event, HostState, Interrupted, Notice, Outcome, SessionStarted, Severity,
    TurnEnded, TurnStarted, UserMessage,
};
use interlingua::json::{Json, Text};
use interlingua::{Exit, HostFacts, Reader, StreamEnd, TurnOwner};
use tokio::sync::mpsc;

use super::agent::ApiSettings;
use super::attachment;
use super::failure::Failure;
use super::history::Part;
use super::http::{Client, Received};
use super::mcp::Servers;
use super::model::AnswerEnd;
use super::resume::{CONVERSATION, HISTORY};
use super::turns::{AgentLoop, Next};
use crate::error::Error;
use crate::permission::Policy;
use crate::record::Recorder;
use crate::redaction::Redactor;
use crate::secret;
use crate::session::{
    Clock, Commands, ConsumerChange, Due, Ended, InputRequest, Options, Outbox, PendingRequests,
    PromptQueue, Sent, Session, Stop, fresh_seed, no_user, now_ms, stopped_again, until,
};
use calls::Calls;
use compaction::Compaction;
use outlets::Outlets;
use responses::{Asked, Response};

/// The event loop of a session.
pub(super) struct Live {
    agent: AgentLoop,
    client: Client,
    /// The folder in which the agent works.
    folder: PathBuf,
    reader: Reader,
    /// The session continues a stored log.
    continues: bool,
    /// A response was read, which has to be ended before the next one.
    stream: StreamState,
    outlets: Outlets,
    outbox: Outbox,
    commands: Commands,
    has_caller: bool,
    prompts: PromptQueue,
    work: Work,
    calls: Calls,
    finishing: bool,
    stop: Option<Stop>,
    policy: Policy,
    input_requests: Option<mpsc::UnboundedSender<InputRequest>>,
    pending: PendingRequests,
    record: Option<Recorder>,
    redactor: Redactor,
    clock: Clock,
    outcome: Option<Outcome>,
}

/// What the session is doing.
enum Work {
    /// Waits for a prompt.
    Idle,
    /// Reads a response.
    Responding(Box<Response>),
    /// Waits before a request is sent again.
    Waiting(Instant, Again),
    /// Runs tools.
    Running,
    /// Waits for a summary of what is older.
    Compacting(Box<Compaction>),
}

/// What is sent again.
enum Again {
    /// The request. A response that is continued keeps its parts.
    Request(Option<Box<Response>>),
    /// The request for a summary, which this failure made necessary.
    Summary(Failure),
}

impl Work {
    /// When it goes on without anything from outside.
    fn due(&self) -> Option<Instant> {
        match self {
            Self::Waiting(at, _) => Some(*at),
            Self::Responding(response) => response.closes_at,
            Self::Compacting(compaction) => compaction.closes_at(),
            Self::Idle | Self::Running => None,
        }
    }
}

/// Whether the reader can take another response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamState {
    /// It waits for the first bytes of a response.
    Fresh,
    /// It waits for the first bytes of what continues the response before.
    Continuing,
    /// It has read some.
    Used,
    /// The response has ended.
    Ended,
}

/// What the event loop waited for.
enum Wake {
    Command(Option<Sent>),
    Consumer(ConsumerChange),
    Received(Received),
    Call(calls::CallNews),
    /// The delay before a request has passed, or a response that has ended was not closed.
    WorkDue,
    NoUser,
    Due(Due),
}

impl Live {
    /// `servers` are the started MCP servers, and notices about the others; `secrets` are those of all.
    pub(super) fn new(
        mut settings: ApiSettings,
        servers: (Servers, Vec<String>),
        secrets: &[String],
        options: Options,
    ) -> Result<(Self, Session), Error> {
        let Options { mut read, reader, policy, deadlines, input_requests, record, .. } = options;
        let id_seed = *read.id_seed.get_or_insert_with(fresh_seed);
        read.resumed = settings.is_resumed();
        let dialect = settings.api.dialect()?;
        let continues = reader.is_some();
        let stream = if continues { StreamState::Ended } else { StreamState::Fresh };
        let mut reader = reader.map_or_else(|| Reader::new(dialect.into(), read), Ok)?;
        reader.expect_turn(false);
        let client = Client::new(settings.connection.clone())?;
        let mut redactor = Redactor::default();
        redactor.add_key("the key of the model API", client.key());
        for (name, value) in client.headers() {
            for value in secret::in_header(name, value) {
                redactor.add_key("a header of the model API", value);
            }
        }
        for value in secrets {
            redactor.add_key("a header or a variable of an MCP server", value);
        }
        settings.system = redactor.redact_text(&settings.system).into_owned();
        let (handle, commands) = Commands::new();
        let (outbox, entries) = Outbox::new();
        let folder = settings.folder.canonicalize().unwrap_or_else(|_| settings.folder.clone());
        // The session knows when a turn begins and ends, so its duration is measured.
        let cwd = Some(folder.display().to_string());
        reader.set_host(HostFacts { cwd, ..HostFacts::default() }, TurnOwner::Caller);
        let prepared = settings.prepare(servers, &folder, id_seed)?;
        reader.set_client_tools(prepared.client_tools.to_reader());
        let mut live = Self {
            agent: prepared.agent,
            client,
            folder,
            reader,
            continues,
            stream,
            outlets: Outlets::new(prepared.recorder),
            outbox,
            commands,
            has_caller: true,
            prompts: PromptQueue::default(),
            work: Work::Idle,
            calls: Calls::new(prepared.tools, prepared.client_tools, prepared.schema),
            finishing: false,
            stop: None,
            policy,
            input_requests,
            pending: PendingRequests::default(),
            record,
            redactor,
            clock: Clock::new(deadlines, Instant::now()),
            outcome: None,
        };
        live.announce(prepared.name, &prepared.runnable, &prepared.notices);
        live.reopen_calls();
        Ok((live, Session { handle, entries, id_seed }))
    }

    /// Emits the start of the session, with what is enforced.
    fn announce(&mut self, name: &str, tools: &[String], notices: &[String]) {
        let settings = self.agent.settings();
        let (id, model) = (settings.session.clone(), settings.model.clone());
        let started = SessionStarted {
            id: Some(Text::from(id)),
            agent: Some(Text::from(name.to_owned())),
            version: Some(Text::plain(env!("CARGO_PKG_VERSION"))),
            model: Some(Text::from(model)),
            cwd: Some(Text::from(self.folder.display().to_string())),
            permission_mode: Some(Text::plain(self.policy.mode.as_str())),
            tools: Json::from_serialize(tools),
            ..SessionStarted::default()
        };
        self.emit(started);
        self.store_conversation();
        self.store_history();
        for notice in notices {
            self.notify(Severity::Info, notice);
        }
    }

    /// Runs the session to its end.
    pub(super) async fn run(mut self) {
        loop {
            self.advance();
            self.store_history();
            // A call begins to run when this task waits.
            self.outlets.pass_on(&mut self.outbox, self.calls.any());
            if self.has_ended() {
                return self.end().await;
            }
            let wake = self.wait().await;
            self.handle(wake).await;
        }
    }

    /// Begins the next turn, if there is a prompt for it.
    fn advance(&mut self) {
        if matches!(self.work, Work::Idle)
            && self.stop.is_none()
            && let Some(prompt) = self.prompts.next(self.reader.next_sequence())
        {
            if prompt.only_resumes() && self.resume_calls(&prompt.results) {
                return;
            }
            self.close_open_calls(&prompt.results);
            self.clock.turn_started(Instant::now());
            self.emit(TurnStarted::default());
            let text = self.redactor.redact_text(&prompt.written()).into_owned();
            self.emit(UserMessage { text: Text::plain(&text), ..UserMessage::default() });
            let files = self.read_files(&prompt.files);
            let text = std::iter::once(Part::Text(text));
            let next = self.agent.begin(text.chain(files).collect());
            self.follow(next);
        }
    }

    /// The files of a prompt. One that has disappeared since the prompt was accepted is reported.
    fn read_files(&mut self, paths: &[PathBuf]) -> Vec<Part> {
        let mut files = Vec::new();
        for path in paths {
            match attachment::read(path) {
                Ok(Part::Text(text)) => {
                    files.push(Part::Text(self.redactor.redact_text(&text).into_owned()));
                }
                Ok(file) => files.push(file),
                Err(problem) => self.notify(Severity::Warning, &problem.to_string()),
            }
        }
        files
    }

    fn has_ended(&self) -> bool {
        let wanted = self.stop.is_some() || (self.finishing && self.prompts.is_empty());
        wanted && matches!(self.work, Work::Idle)
    }

    /// Waits for the next event.
    async fn wait(&mut self) -> Wake {
        let room = self.outbox.has_room();
        // Tools and pauses have limits of their own.
        let reads = matches!(self.work, Work::Responding(_) | Work::Compacting(_));
        let may_be_silent = !reads || !room;
        let due = self.clock.next(may_be_silent);
        let Self { work, outbox, commands, has_caller, input_requests, calls, .. } = self;
        let work_due = work.due();
        tokio::select! {
            biased;
            command = commands.next(), if *has_caller => Wake::Command(command),
            change = outbox.changed() => Wake::Consumer(change),
            received = responses::next(work), if room => Wake::Received(received),
            // What calls print would pile up behind a consumer that does not read.
            news = calls.next(), if room => Wake::Call(news),
            () = no_user(input_requests.as_ref()) => Wake::NoUser,
            () = until(work_due), if work_due.is_some() => Wake::WorkDue,
            () = until(due.as_ref().map(|(_, at)| *at)), if due.is_some() => {
                due.map_or(Wake::WorkDue, |(due, _)| Wake::Due(due))
            }
        }
    }

    async fn handle(&mut self, wake: Wake) {
        match wake {
            Wake::Command(Some(sent)) => self.command(sent),
            Wake::Command(None) => (self.has_caller, self.finishing) = (false, true),
            Wake::Consumer(ConsumerChange::Closed) => self.stop(Stop::ConsumerGone),
            Wake::Consumer(ConsumerChange::Ready) => {}
            Wake::Received(received) => self.received(received).await,
            Wake::Call(news) => self.call_news(news),
            Wake::WorkDue => match self.work {
                Work::Waiting(..) => self.send_again(),
                _ => self.received(Received::Ended).await,
            },
            Wake::NoUser => {
                self.input_requests = None;
                self.deny_all("no user is available to allow it");
                self.fail_client_calls();
            }
            Wake::Due(due) => self.due(due),
        }
    }

    fn due(&mut self, due: Due) {
        match due {
            Due::Unanswered(id) if self.is_client_call(&id) => self.client_overdue(&id),
            Due::Unanswered(id) => {
                let why = "the permission request was not answered in time";
                self.decide(&id, crate::permission::Decision::Deny(why.to_owned()));
            }
            Due::Stop(limit) => {
                let what = self.clock.describe(limit);
                self.stop(Stop::TimedOut(what));
            }
            // There is no process that could be late.
            Due::ExitOverdue | Due::Signal(_) => self.clock.turn_ended(),
        }
    }

    /// Does what the loop decided.
    fn follow(&mut self, next: Next) {
        match next {
            Next::Request => self.send_request(None),
            Next::Remind(text) => {
                let text = Text::plain(text);
                self.emit(UserMessage { text, injected: true, ..UserMessage::default() });
                self.send_request(None);
            }
            Next::Retry(retry) => self.retry(retry),
            Next::Adapted { failure, notice, attempt, of } => {
                self.withdraw(&failure.message);
                self.send_adapted(&failure, notice, attempt, of);
            }
            Next::Run(calls) => {
                self.work = Work::Running;
                self.run_calls(calls);
            }
            Next::Compact(failure) => {
                self.withdraw(&failure.message);
                self.compact(failure);
            }
            Next::Shorten(shortening) => self.shorten(*shortening),
            Next::End(ended) => self.end_turn(*ended),
            Next::Fail(failure) => self.fail(&failure),
        }
    }

    /// Adds what all requests have in common to the log.
    pub(super) fn store_conversation(&mut self) {
        let raw = Json::from_serialize(&self.agent.conversation());
        let raw = raw.and_then(|raw| self.without_keys(raw));
        self.emit(HostState { name: Text::plain(CONVERSATION), raw });
    }

    /// Adds what is new in the history to the log, from which the session can be resumed.
    pub(super) fn store_history(&mut self) {
        for raw in self.agent.take_unstored() {
            let raw = self.without_keys(raw);
            self.emit(HostState { name: Text::plain(HISTORY), raw });
        }
    }

    fn end_turn(&mut self, ended: TurnEnded<'static>) {
        self.work = Work::Idle;
        self.agent.forget_continuation();
        self.store_history();
        self.clock.turn_ended();
        self.outcome = Some(ended.outcome.clone());
        self.emit(ended);
    }

    /// Ends the running turn before its work has ended.
    fn abort_turn(&mut self, outcome: Outcome, cause: &str) {
        let (mut response, begun) = match std::mem::replace(&mut self.work, Work::Idle) {
            Work::Idle => return,
            Work::Responding(mut response) => {
                self.end_stream(Some(&mut *response));
                let seen = std::mem::take(&mut self.outlets.seen);
                (Some(response), Some((seen, Asked::Answer)))
            }
            Work::Waiting(_, Again::Request(response)) => (response, None),
            Work::Compacting(compaction) => (None, Some((compaction.seen, Asked::Summary))),
            Work::Waiting(..) | Work::Running => (None, None),
        };
        self.end_stream(None);
        let collected = response.as_mut().map(|response| response.collect(AnswerEnd::Cut));
        if let Some((seen, asked)) = begun {
            self.count_interrupted(seen, asked);
        }
        self.cancel_calls(cause);
        self.keep_partial(collected);
        if outcome == Outcome::Cancelled {
            self.emit(Interrupted { text: Some(Text::from(cause.to_owned())) });
        }
        let class = (outcome == Outcome::TimedOut).then_some(ErrorClass::TimedOut);
        if let Some(class) = class.clone() {
            self.emit(Failure::new(class, cause).to_error());
        }
        let ended = TurnEnded {
            outcome,
            class,
            cause: Some(Text::from(cause.to_owned())),
            ..TurnEnded::default()
        };
        let ended = self.agent.ended(ended);
        self.end_turn(ended);
    }

    fn stop(&mut self, why: Stop) {
        if self.stop.is_none() {
            let stopped = why.to_stopped();
            if why == Stop::Suspended {
                // The history keeps the open calls, and the end of the stream is that of the turn.
                self.work = Work::Idle;
            }
            self.stop = Some(why);
            self.abort_turn(stopped.outcome, &stopped.cause);
        }
    }

    /// Ends the session.
    async fn end(mut self) {
        self.calls.close().await;
        for redacted in self.redactor.take_unreported() {
            self.notify(Severity::Warning, &redacted.to_string());
        }
        self.end_stream(None);
        let exit = Exit { stopped: self.stop.as_ref().map(Stop::to_stopped), ..Exit::default() };
        let goes_on = self.continues && self.stop != Some(Stop::Closed);
        let Self { mut reader, mut outlets, mut outbox, record, mut commands, .. } = self;
        if goes_on {
            let end = StreamEnd::Exit(&exit);
            let Ok(_) = reader.end_stream(end, Some(now_ms()), &mut outlets);
        } else {
            let Ok(_) = reader.finish(&exit, Some(now_ms()), &mut outlets);
        }
        let file = outlets.finish(&mut outbox);
        tokio::select! {
            () = outbox.flush() => {}
            () = stopped_again(&mut commands) => {}
        }
        commands.close();
        outbox.end(Ended {
            outcome: self.outcome,
            exit,
            stop: self.stop,
            exit_overdue: false,
            silent: false,
            truncated: false,
            orphans: 0,
            redacted: self.redactor.redacted(),
            recording: record.and_then(Recorder::finish).or(file),
        });
    }

    /// Emits an event of the session. It is passed on with all others of the same step.
    fn emit<'a>(&mut self, data: impl Into<interlingua::event::Data<'a>>) {
        let Ok(_) = self.reader.emit(Event::new(data), Some(now_ms()), &mut self.outlets);
    }

    fn notify(&mut self, severity: Severity, text: &str) {
        let text = self.redactor.redact_text(text).into_owned();
        self.emit(Notice { severity, text: Text::from(text) });
    }
}

/// A number between 0 and 1, to spread the requests of many clients.
fn jitter() -> f64 {
    let mut bytes = [0; 2];
    // Without randomness, all of them wait for the longest time.
    if getrandom::fill(&mut bytes).is_err() {
        return 0.0;
    }
    f64::from(u16::from_le_bytes(bytes)) / f64::from(u16::MAX)
}

/// The time from now on at which a delay has passed.
fn after(delay: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(delay).unwrap_or(now)
}
