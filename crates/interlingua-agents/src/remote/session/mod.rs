//! A session with a remote agent.
//!
//! The event loop waits for whatever comes first: bytes of a run, the answer of the relay, a command, a
//! deadline, capacity at the consumer. A run is an *epoch* of the session, and a turn has one or more of them.

mod calls;
mod commands;
mod runs;
mod seen;
#[cfg(test)]
pub(super) mod testing;

use std::sync::Arc;
use std::time::{Duration, Instant};

use interlingua::event::{Event, Interrupted, Notice, Outcome, SessionStarted, Severity};
use interlingua::json::Text;
use interlingua::{Exit, HostFacts, Reader, Stopped, StreamEnd, TurnOwner, dialect};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::contract::GivenResult;
use super::{Access, Contract, RemoteSettings};
use crate::api::http::{Client, Received, without_secrets};
use crate::error::Error;
use crate::record::Recorder;
use crate::redaction::Redactor;
use crate::secret;
use crate::session::{
    Clock, Commands, ConsumerChange, Due, Ended, InputRequest, LateResult, Options, Outbox,
    PendingRequests, PromptQueue, Sent, Session, Stop, fresh_seed, no_user, now_ms, stopped_again,
    until,
};
use calls::{OpenCall, Relayed};
use runs::Work;
use seen::Outlets;

/// The event loop of a session.
pub(super) struct Live {
    settings: Arc<RemoteSettings>,
    client: Client,
    access: Access,
    reader: Reader,
    /// The session continues a stored log.
    continues: bool,
    stream: StreamState,
    outlets: Outlets,
    outbox: Outbox,
    commands: Commands,
    has_caller: bool,
    prompts: PromptQueue,
    work: Work,
    /// The prompt of the turn, which the contract repeats.
    message: String,
    /// The results that the next run sends.
    results: Vec<GivenResult>,
    /// The results on their way to the relay, also those of earlier turns.
    relayed: JoinSet<Relayed>,
    /// The number of the results of this turn that are on their way.
    in_flight: usize,
    /// The number of turns that have ended.
    turn: u64,
    /// What was known of a session that the service does not know, until another one has begun.
    forgotten: Option<Access>,
    /// How many runs of the turn in a row have ended before the agent used the results that it had.
    unused: u32,
    finishing: bool,
    stop: Option<Stop>,
    input_requests: Option<mpsc::UnboundedSender<InputRequest>>,
    pending: PendingRequests,
    /// The calls that wait for the client.
    open: Vec<OpenCall>,
    record: Option<Recorder>,
    redactor: Redactor,
    clock: Clock,
}

/// How long the end of a session waits for results that are on their way to the relay.
const LAST_RESULTS: Duration = Duration::from_secs(10);

/// Whether the reader can take another run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamState {
    Fresh,
    Used,
    Ended,
}

/// What the event loop waited for.
enum Wake {
    Command(Option<Sent>),
    Consumer(ConsumerChange),
    Received(Received),
    Relayed(Relayed),
    WorkDue,
    NoUser,
    Due(Due),
}

impl Live {
    pub(super) fn new(
        settings: Arc<RemoteSettings>,
        options: Options,
    ) -> Result<(Self, Session), Error> {
        let Options { mut read, reader, deadlines, input_requests, record, .. } = options;
        let id_seed = *read.id_seed.get_or_insert_with(fresh_seed);
        let mut access = settings.access.clone();
        read.resumed = access.session.is_some();
        let dialect = dialect::named("giselle")?;
        let continues = reader.is_some();
        let stream = if continues { StreamState::Ended } else { StreamState::Fresh };
        let mut reader = reader.map_or_else(|| Reader::new(dialect.into(), read), Ok)?;
        reader.expect_turn(false);
        reader.suspend_turns();
        let mut host = HostFacts::default();
        if settings.contract == Contract::Results {
            // The client names the chat.
            host.id = Some(access.session.get_or_insert_with(crate::api::new_id).clone());
        }
        reader.set_host(host, TurnOwner::Stream);
        let client = Client::new(settings.connection.clone())?;
        let mut redactor = Redactor::default();
        redactor.add_key("the token of the service", client.key());
        for (name, value) in client.headers() {
            for value in secret::in_header(name, value) {
                redactor.add_key("a header of the service", value);
            }
        }
        let (handle, commands) = Commands::new();
        let (outbox, entries) = Outbox::new();
        let mut live = Self {
            message: settings.message.clone().unwrap_or_default(),
            settings,
            client,
            access,
            reader,
            continues,
            stream,
            outlets: Outlets::default(),
            outbox,
            commands,
            has_caller: true,
            prompts: PromptQueue::default(),
            work: Work::Idle,
            results: Vec::new(),
            relayed: JoinSet::new(),
            in_flight: 0,
            turn: 0,
            forgotten: None,
            unused: 0,
            finishing: false,
            stop: None,
            input_requests,
            pending: PendingRequests::default(),
            open: Vec::new(),
            record,
            redactor,
            clock: Clock::new(deadlines, Instant::now()),
        };
        live.announce();
        Ok((live, Session { handle, entries, id_seed }))
    }

    /// Emits the start of the session, with what is not enforced.
    fn announce(&mut self) {
        let id = self.access.session.clone().map(Text::from);
        let agent = Some(Text::plain("giselle"));
        self.emit(SessionStarted { id, agent, ..SessionStarted::default() });
        let service = without_secrets(&self.settings.connection.base_url);
        self.notify(
            Severity::Info,
            &format!(
                "the agent runs at {service}, where neither the permission mode nor the rules of this session apply"
            ),
        );
    }

    /// Runs the session to its end.
    pub(super) async fn run(mut self) {
        loop {
            self.advance();
            self.outbox.put(self.outlets.batch.take());
            if self.has_ended() {
                return self.end().await;
            }
            let wake = self.wait().await;
            self.handle(wake);
        }
    }

    /// Begins the next turn, if there is a prompt for it.
    fn advance(&mut self) {
        if !matches!(self.work, Work::Idle) || self.stop.is_some() {
            return;
        }
        let Some(prompt) = self.prompts.next(self.reader.next_sequence()) else { return };
        let resumes = prompt.only_resumes();
        let events = prompt.results.iter().map(LateResult::to_event).collect();
        self.reader.answer_with_next_turn(events);
        self.reader.expect_turn(true);
        self.clock.turn_started(Instant::now());
        self.unused = 0;
        if resumes {
            return self.resume(&prompt.results);
        }
        self.message = prompt.written().into_owned();
        self.send_run(true);
    }

    fn has_ended(&self) -> bool {
        let wanted = self.stop.is_some() || (self.finishing && self.prompts.is_empty());
        wanted && matches!(self.work, Work::Idle)
    }

    /// Waits for the next event.
    async fn wait(&mut self) -> Wake {
        let room = self.outbox.has_room();
        let is_working = matches!(self.work, Work::Running(_)) && !self.outlets.seen.tool_runs();
        let may_be_silent = !is_working || !room;
        let due = self.clock.next(may_be_silent);
        let Self { work, outbox, commands, has_caller, input_requests, relayed, .. } = self;
        let work_due = work.due();
        tokio::select! {
            biased;
            command = commands.next(), if *has_caller => Wake::Command(command),
            change = outbox.changed() => Wake::Consumer(change),
            received = runs::next(work), if room => Wake::Received(received),
            Some(relayed) = relayed.join_next() => match relayed {
                Ok(relayed) => Wake::Relayed(relayed),
                // A task that was aborted has nothing to report.
                Err(_) => Wake::WorkDue,
            },
            () = no_user(input_requests.as_ref()) => Wake::NoUser,
            () = until(work_due), if work_due.is_some() => Wake::WorkDue,
            () = until(due.as_ref().map(|(_, at)| *at)), if due.is_some() => {
                due.map_or(Wake::WorkDue, |(due, _)| Wake::Due(due))
            }
        }
    }

    fn handle(&mut self, wake: Wake) {
        match wake {
            Wake::Command(Some(sent)) => self.command(sent),
            Wake::Command(None) => (self.has_caller, self.finishing) = (false, true),
            Wake::Consumer(ConsumerChange::Closed) => self.stop(Stop::ConsumerGone),
            Wake::Consumer(ConsumerChange::Ready) => {}
            Wake::Received(received) => self.received(received),
            Wake::Relayed(relayed) => self.was_relayed(relayed),
            Wake::WorkDue => self.send_again(),
            Wake::NoUser => {
                self.input_requests = None;
                self.fail_client_calls();
            }
            Wake::Due(Due::Unanswered(call)) => self.client_overdue(&call),
            Wake::Due(Due::Stop(limit)) => {
                let what = self.clock.describe(limit);
                self.stop(Stop::TimedOut(what));
            }
            // There is no process that could be late.
            Wake::Due(Due::ExitOverdue | Due::Signal(_)) => self.clock.turn_ended(),
        }
    }

    /// Ends the running turn before its work has ended. The service may go on with it.
    fn abort_turn(&mut self, outcome: Outcome, cause: &str) {
        match std::mem::replace(&mut self.work, Work::Idle) {
            Work::Idle => return,
            Work::Running(_) | Work::Paused | Work::Waiting { .. } => {}
        }
        self.release_calls(cause);
        if outcome == Outcome::Cancelled {
            self.emit(Interrupted { text: Some(Text::from(cause.to_owned())) });
        }
        self.end_turn(Some(Stopped { outcome, cause: cause.to_owned() }));
        if self.outlets.seen.outcome == Some(Outcome::Cancelled) {
            let text = "the contract of the service cannot interrupt a run: it may go on there";
            self.notify(Severity::Warning, text);
        }
    }

    /// Ends the stream of the run, and with it the turn.
    fn end_turn(&mut self, stopped: Option<Stopped>) {
        let exit = Exit { stopped, ..Exit::default() };
        if self.stream == StreamState::Ended {
            // A turn that was expected ends in a stream of its own.
            self.begin_stream();
        }
        let (end, now) = (StreamEnd::Exit(&exit), Some(now_ms()));
        let Ok(_) = self.reader.end_stream(end, now, &mut self.outlets);
        self.stream = StreamState::Ended;
        self.work = Work::Idle;
        self.results.clear();
        self.forget_calls();
        self.clock.turn_ended();
    }

    fn stop(&mut self, why: Stop) {
        if self.stop.is_none() {
            let stopped = why.to_stopped();
            let suspends = why == Stop::Suspended;
            self.stop = Some(why);
            if !suspends {
                return self.abort_turn(stopped.outcome, &stopped.cause);
            }
            if !matches!(self.work, Work::Idle) {
                self.end_turn(Some(stopped));
            }
        }
    }

    /// Ends the session.
    async fn end(mut self) {
        self.finish_relaying().await;
        for redacted in self.redactor.take_unreported() {
            self.notify(Severity::Warning, &redacted.to_string());
        }
        let exit = Exit { stopped: self.stop.as_ref().map(Stop::to_stopped), ..Exit::default() };
        let goes_on = self.continues && self.stop != Some(Stop::Closed);
        let Self { mut reader, mut outlets, mut outbox, record, mut commands, .. } = self;
        if !goes_on {
            let Ok(_) = reader.finish(&exit, Some(now_ms()), &mut outlets);
        } else if self.stream != StreamState::Ended {
            let end = StreamEnd::Exit(&exit);
            let Ok(_) = reader.end_stream(end, Some(now_ms()), &mut outlets);
        }
        outbox.put(outlets.batch.take());
        tokio::select! {
            () = outbox.flush() => {}
            () = stopped_again(&mut commands) => {}
        }
        commands.close();
        outbox.end(Ended {
            outcome: outlets.seen.outcome,
            exit,
            stop: self.stop,
            exit_overdue: false,
            silent: false,
            truncated: false,
            orphans: 0,
            redacted: self.redactor.redacted(),
            recording: record.and_then(Recorder::finish),
        });
    }

    /// Waits until the relay has the results that are on their way, since the program may end then.
    async fn finish_relaying(&mut self) {
        let Self { relayed, commands, .. } = self;
        let all = async { while relayed.join_next().await.is_some() {} };
        tokio::select! {
            () = all => {}
            () = tokio::time::sleep(LAST_RESULTS) => {}
            () = stopped_again(commands) => {}
        }
    }

    fn emit<'a>(&mut self, data: impl Into<interlingua::event::Data<'a>>) {
        let Ok(_) = self.reader.emit(Event::new(data), Some(now_ms()), &mut self.outlets);
    }

    fn notify(&mut self, severity: Severity, text: &str) {
        let text = self.redactor.redact_text(text).into_owned();
        self.emit(Notice { severity, text: Text::from(text) });
    }
}
