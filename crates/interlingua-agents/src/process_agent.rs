//! An agent that is a process: one session with it, from the first prompt to the end of its last
//! process.
//!
//! The event loop waits for whatever comes first: more output, capacity at the consumer, a command,
//! a deadline, the end of the process. It never waits for the consumer while the agent needs an
//! answer, and it never reads faster than the consumer takes entries.
//!
//! A process is an *epoch* of the session. An agent that takes one prompt per process, that exited,
//! or that has to be restarted for a change, is started again with its own session id.

mod client_calls;
mod commands;
mod ending;
mod epoch;
mod long_results;
mod outlets;
mod redactions;
mod requests;
mod sidecar;
mod starting;
mod steps;

use std::convert::Infallible;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use interlingua::event::{Event, Notice, Outcome, Severity};
use interlingua::json::Text;
use interlingua::{Exit, Flow, HostFacts, Reader, TurnOwner};
use tokio::sync::mpsc;

use crate::agent::{Launch, Relaunch, absolute};
use crate::client_tool::ClientToolOffer;
use crate::error::Error;
use crate::permission::Policy;
use crate::process::Signal;
use crate::record::Recorder;
use crate::redaction::Redactor;
use crate::session::{
    Agent, Clock, Commands, ConsumerChange, Due, InputRequest, Limit, Options, Outbox,
    PendingRequests, PromptQueue, Sent, Session, Starting, Stop, fresh_seed, no_user, now_ms,
    until,
};
use crate::watch::Observation;
use client_calls::{CallMessage, ClientCalls};
use epoch::Epoch;
use long_results::LongResults;
use outlets::Outlets;

/// How often the size of the unread output is checked while the consumer takes nothing.
const UNREAD_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// An agent that is a process.
pub struct ProcessAgent {
    first: Launch,
    /// How it is started again, and what the first launch was requested with.
    relaunch: Option<(Relaunch, Relauncher)>,
    client_tools: Option<Arc<ClientToolOffer>>,
}

type Relauncher = Box<dyn FnMut(&Relaunch) -> Result<Launch, Error> + Send>;

impl std::fmt::Debug for ProcessAgent {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ProcessAgent").field("first", &self.first).finish_non_exhaustive()
    }
}

impl ProcessAgent {
    /// An agent that is started once. After it has exited, it takes no more prompts.
    pub fn new(launch: Launch) -> Self {
        Self { first: launch, relaunch: None, client_tools: None }
    }

    /// The same agent, started again whenever a prompt needs it. `first` is what its first launch was
    /// requested with.
    #[must_use]
    pub fn relaunched(
        mut self,
        first: Relaunch,
        launch: impl FnMut(&Relaunch) -> Result<Launch, Error> + Send + 'static,
    ) -> Self {
        self.relaunch = Some((first, Box::new(launch)));
        self
    }

    /// The same agent with tools that the client runs, which its launches configure.
    #[must_use]
    pub fn with_client_tools(mut self, tools: Option<Arc<ClientToolOffer>>) -> Self {
        self.client_tools = tools;
        self
    }
}

impl Agent for ProcessAgent {
    fn start(self: Box<Self>, options: Options) -> Starting {
        Box::pin(async move {
            let starts_now = self.first.takes_many_prompts();
            let (mut live, session) = Live::new(*self, options)?;
            if starts_now {
                live.start_epoch(None).await?;
            }
            tokio::spawn(live.run());
            Ok(session)
        })
    }
}

/// The event loop of a session.
struct Live {
    /// The launch of the next epoch, if it is prepared already.
    prepared: Option<Launch>,
    relaunch: Option<Relauncher>,
    /// What the next launch needs: the agent's own session id, the model, the mode.
    settings: Relaunch,
    /// A change of the settings needs a restart.
    restarts: bool,
    epoch: Option<Epoch>,
    epochs: u64,
    reader: Reader,
    /// What the reader adds to what the agent reports.
    host: HostFacts,
    /// The session continues a stored log.
    continues: bool,
    outlets: Outlets,
    outbox: Outbox,
    commands: Commands,
    /// A caller can still send commands.
    has_caller: bool,
    prompts: PromptQueue,
    /// A prompt was sent whose turn has not ended, or the agent works by itself.
    in_turn: bool,
    /// The running turn was interrupted.
    interrupted: bool,
    /// The session ends when all prompts have had their turn.
    finishing: bool,
    stop: Option<Stop>,
    policy: Policy,
    input_requests: Option<mpsc::UnboundedSender<InputRequest>>,
    pending: PendingRequests,
    client_calls: Option<ClientCalls>,
    long_results: LongResults,
    record: Option<Recorder>,
    redactor: Redactor,
    max_unread: u64,
    read_interval: Duration,
    clock: Clock,
    outcome: Option<Outcome>,
    exit: Exit,
    silent: bool,
    truncated: bool,
    orphans: usize,
}

/// What the event loop waited for.
enum Wake {
    Exited(Option<ExitStatus>),
    Command(Option<Sent>),
    Consumer(ConsumerChange),
    Output,
    Driver,
    /// The user is not available any more.
    NoUser,
    /// The agent calls a tool of the client, or does not wait for it any more.
    Tool(CallMessage),
    /// The agent has not listed the tools of the client in time.
    NoTools,
    Due(Due),
    /// Something has to be looked at again.
    Again,
}

impl Live {
    fn new(agent: ProcessAgent, options: Options) -> Result<(Self, Session), Error> {
        let Options {
            mut read,
            reader,
            policy,
            deadlines,
            input_requests,
            record,
            max_unread,
            read_interval,
        } = options;
        let id_seed = *read.id_seed.get_or_insert_with(fresh_seed);
        let launch = agent.first;
        let (handle, commands) = Commands::new();
        let (outbox, entries) = Outbox::new();
        let host = HostFacts {
            cwd: Some(absolute(&launch.command.folder)),
            model: launch.model.clone(),
            permission_mode: Some(policy.mode.to_string()),
            ..HostFacts::default()
        };
        let continues = reader.is_some();
        let mut reader = reader.map_or_else(|| Reader::new(launch.dialect.into(), read), Ok)?;
        reader.set_host(host.clone(), TurnOwner::Stream);
        reader.expect_turn(false);
        let (client_tools, mut redactor) = (agent.client_tools, Redactor::default());
        if let Some(tools) = &client_tools {
            reader.set_client_tools(tools.to_reader());
            redactor.add_key("the token of the client's tools", tools.token());
        }
        let (settings, relaunch) = agent.relaunch.unzip();
        let live = Self {
            outlets: Outlets::new(&launch.command, launch.dialect, id_seed)?,
            settings: Relaunch { mode: policy.mode, ..settings.unwrap_or_default() },
            prepared: Some(launch),
            relaunch,
            restarts: false,
            epoch: None,
            epochs: 0,
            reader,
            host,
            continues,
            outbox,
            commands,
            has_caller: true,
            prompts: PromptQueue::default(),
            in_turn: false,
            interrupted: false,
            finishing: false,
            stop: None,
            policy,
            input_requests,
            pending: PendingRequests::default(),
            client_calls: client_tools.map(ClientCalls::new).transpose()?,
            long_results: LongResults::default(),
            record,
            redactor,
            max_unread,
            read_interval,
            clock: Clock::new(deadlines, Instant::now()),
            outcome: None,
            exit: Exit::default(),
            silent: true,
            truncated: false,
            orphans: 0,
        };
        Ok((live, Session { handle, entries, id_seed }))
    }

    /// Runs the session to its end.
    async fn run(mut self) {
        loop {
            self.advance().await;
            if self.has_ended() {
                return self.end().await;
            }
            let wake = self.wait().await;
            self.handle(wake).await;
        }
    }

    /// Takes the next step that needs no event: sends a prompt, starts or closes the agent.
    async fn advance(&mut self) {
        if self.in_turn {
            return;
        }
        let exiting = self.epoch.as_ref().is_some_and(|epoch| epoch.exiting);
        if self.stop.is_none() && !self.prompts.is_empty() {
            match &self.epoch {
                None => {
                    if let Err(error) = self.start_for_prompt().await {
                        self.fail_turn(&error).await;
                    }
                }
                Some(_) if exiting => {}
                Some(_) if self.restarts => self.close_epoch(),
                Some(_) if self.awaits_tools() => {}
                Some(_) => self.send_prompt().await,
            }
        } else if (self.stop.is_some() || self.finishing) && !exiting && self.epoch.is_some() {
            self.close_epoch();
        }
    }

    fn has_ended(&self) -> bool {
        let wanted = self.stop.is_some() || (self.finishing && self.prompts.is_empty());
        wanted && self.epoch.is_none() && !self.in_turn
    }

    /// Waits for the next event.
    async fn wait(&mut self) -> Wake {
        let room = self.outbox.has_room();
        // An agent whose output is not being read does not count as silent.
        let may_be_silent = self.outlets.watch.tool_running() || !room;
        let due = self.clock.next(may_be_silent);
        let Self { epoch, outbox, commands, has_caller, input_requests, client_calls, .. } = self;
        let epoch = epoch.as_mut();
        if epoch.as_ref().is_some_and(|epoch| epoch.is_readable() && room) {
            return Wake::Output;
        }
        let wake = epoch.as_ref().and_then(|epoch| epoch.wake_at());
        tokio::select! {
            biased;
            wake = epoch::wait(epoch, room) => wake,
            command = commands.next(), if *has_caller => {
                Wake::Command(command)
            }
            wake = client_calls::wait(client_calls.as_mut()) => wake,
            change = outbox.changed() => Wake::Consumer(change),
            () = no_user(input_requests.as_ref()) => Wake::NoUser,
            // The size of the unread output is checked periodically while the consumer is stalled.
            () = tokio::time::sleep(UNREAD_CHECK_INTERVAL), if !room => Wake::Again,
            () = until(wake), if wake.is_some() => Wake::Driver,
            () = until(due.as_ref().map(|(_, at)| *at)), if due.is_some() => {
                due.map_or(Wake::Again, |(due, _)| Wake::Due(due))
            }
        }
    }

    async fn handle(&mut self, wake: Wake) {
        match wake {
            Wake::Exited(status) => self.epoch_ended(status).await,
            Wake::Command(Some(sent)) => self.command(sent).await,
            Wake::Command(None) => (self.has_caller, self.finishing) = (false, true),
            Wake::Consumer(ConsumerChange::Closed) if self.stop.is_none() => {
                self.stop(Stop::ConsumerGone).await;
            }
            Wake::Output => self.read_some().await,
            Wake::Driver => self.wake_driver().await,
            Wake::NoUser => {
                self.input_requests = None;
                self.decline_all().await;
            }
            Wake::Tool(message) => self.tool_message(message).await,
            Wake::NoTools => self.tools_overdue(),
            Wake::Due(due) => self.due(due).await,
            Wake::Consumer(_) | Wake::Again => {}
        }
        if self.outbox.has_room() || self.stop.is_some() {
            return;
        }
        let unread = self.epoch.as_ref().map_or(0, Epoch::unread);
        if unread > self.max_unread {
            let what = format!(
                "the consumer is too slow: more than {} bytes of output are unread",
                self.max_unread
            );
            self.stop(Stop::TimedOut(what)).await;
        }
    }

    /// Reads a chunk of the output and acts on it.
    async fn read_some(&mut self) {
        let Self { epoch: Some(epoch), clock, redactor, record, reader, outlets, .. } = self else {
            return;
        };
        let mut steps = Vec::new();
        epoch.read(|driver, piece, held_back| {
            clock.output_seen(Instant::now());
            if outlets.records_entries() {
                // A screen is drawn in pieces, in which no key could be found.
                driver.output(piece, &mut steps);
                record.iter_mut().for_each(|record| record.shown(piece));
                return;
            }
            // A driver that answers the agent repeats what the agent printed, so it needs the keys.
            if !driver.holds_back() {
                driver.output(piece, &mut steps);
            }
            let redacted = redactor.redact_chunk(piece, held_back);
            if redacted.is_empty() {
                return;
            }
            record.iter_mut().for_each(|record| record.printed(&redacted));
            if driver.holds_back() {
                driver.output(&redacted, &mut steps);
            } else {
                let Ok(_) = reader.push(&redacted, Some(now_ms()), outlets);
            }
        });
        self.outlets.pass_on(self.record.as_mut(), &mut self.outbox);
        self.execute(steps);
        self.handle_observations().await;
    }

    /// Feeds the reader, and passes the resulting entries to the consumer.
    fn read(&mut self, read: impl FnOnce(&mut Reader, &mut Outlets) -> Result<Flow, Infallible>) {
        let Ok(_) = read(&mut self.reader, &mut self.outlets);
        self.outlets.pass_on(self.record.as_mut(), &mut self.outbox);
    }

    /// Emits an event that is not part of the agent's output.
    fn emit(&mut self, event: Event<'_>) {
        self.read(|reader, outlets| reader.emit(event, Some(now_ms()), outlets));
    }

    fn warn(&mut self, text: &str) {
        let text = Text::from(text.to_owned());
        self.emit(Event::new(Notice { severity: Severity::Warning, text }));
    }

    /// Wakes the driver after a period without any call.
    async fn wake_driver(&mut self) {
        self.call_driver(|driver, steps| driver.woken(steps));
        self.handle_observations().await;
    }

    async fn handle_observations(&mut self) {
        for observation in self.outlets.watch.take_observations() {
            match observation {
                Observation::Wanted(wanted, sequence) => self.requested(*wanted, sequence).await,
                Observation::Resolved(request) => self.forget_request(&request),
                Observation::TurnStarted => {
                    self.in_turn = true;
                    self.clock.turn_started(Instant::now());
                }
                Observation::TurnEnded(outcome) => self.turn_ended(outcome),
                Observation::SessionId(id) => self.settings.resume = Some(id),
                Observation::Retrying => self.clock.retried(Instant::now()),
                Observation::Progress => self.clock.progressed(),
            }
        }
    }

    fn turn_ended(&mut self, outcome: Outcome) {
        self.outcome = Some(outcome);
        (self.in_turn, self.interrupted) = (false, false);
        self.report_redactions();
        self.clock.turn_ended();
        self.call_driver(|driver, steps| driver.turn_ended(steps));
        if let Some(epoch) = self.epoch.as_mut().filter(|epoch| !epoch.takes_many_prompts) {
            epoch.exiting = true;
            let now = Instant::now();
            if self.stop.is_some() {
                self.clock.stopping(now);
            }
            self.clock.exit_expected(now);
        }
    }

    /// Stops the session: the turn in the agent's own way, then by signals of increasing severity.
    async fn stop(&mut self, why: Stop) {
        let first = self.stop.is_none();
        self.stop.get_or_insert(why);
        if !first {
            self.clock.escalate_now(Instant::now());
            return;
        }
        self.prompts.clear();
        match &self.stop {
            Some(Stop::Suspended) => self.suspend_turn(),
            _ if self.in_turn => self.interrupt_turn(),
            _ => {}
        }
    }

    /// Interrupts the running turn. If it does not end in time, the agent is terminated.
    fn interrupt_turn(&mut self) {
        if self.clock.is_suspended() {
            // A suspended process would not notice.
            self.resume();
        }
        self.clock.stopping(Instant::now());
        let Some(epoch) = &mut self.epoch else { return };
        let mut steps = Vec::new();
        let interrupted = epoch.driver.interrupt(&mut steps);
        self.execute(steps);
        if !interrupted {
            self.send_signal(Signal::Interrupt);
        }
    }

    fn resume(&mut self) {
        self.signal(Signal::Resume);
        self.clock.resumed(Instant::now());
    }

    /// Handles a deadline that has expired.
    async fn due(&mut self, due: Due) {
        let now = Instant::now();
        match due {
            Due::Unanswered(request) => self.unanswered(&request).await,
            Due::Stop(why) => {
                let what = self.clock.describe(why);
                self.stop(Stop::TimedOut(what)).await;
                if why == Limit::Run && self.epoch.is_some() {
                    // The limit includes everything but the last period of grace.
                    self.signal(Signal::Terminate);
                    self.clock.signalled(Signal::Terminate, now);
                }
            }
            Due::ExitOverdue => {
                // The output is complete; only the process has not exited.
                self.clock.stopping(now);
                if let Some(epoch) = &mut self.epoch {
                    epoch.process.close_input();
                }
                self.signal(Signal::Terminate);
            }
            Due::Signal(signal) => {
                self.signal(signal);
                self.clock.signalled(signal, now);
            }
        }
    }
}
