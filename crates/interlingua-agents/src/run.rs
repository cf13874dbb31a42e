//! One run of an agent, from its start to the end of its last process.
//!
//! The event loop waits for whatever comes first: more output, capacity at the consumer, a
//! decision, an interrupt, a deadline, the end of the process. It never waits for the consumer
//! while the agent needs an answer, and it never reads faster than the consumer accepts.

mod deadlines;
mod ending;
mod outbox;
mod outlets;
mod record;
mod sidecar;
mod steps;

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::process::ExitStatus;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use interlingua::dialect::Dialect;
use interlingua::event::Outcome;
use interlingua::{Exit, Flow, RawRecords, Reader, Stopped};
use tokio::sync::mpsc;

use crate::agent::Launch;
use crate::driver::Driver;
use crate::error::Error;
use crate::permission::{Decision, PermissionRequest, Policy, Verdict};
use crate::process::{Process, Signal, Spool};
use crate::watch::Observation;
pub use deadlines::Deadlines;
use deadlines::{Clock, Due, Limit};
pub use outbox::Consumer;
use outbox::{ConsumerChange, Outbox};
use outlets::Outlets;
pub use record::Recorder;

use sidecar::SidecarReader;

/// The minimum interval between two reads of the output. An agent that prints fast is read in
/// larger chunks, which is much cheaper; output after a pause is read at once.
const READ_INTERVAL: Duration = Duration::from_millis(1);

/// How often the size of the unread output is checked while the consumer accepts nothing.
const UNREAD_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The options of a run.
#[derive(Debug)]
pub struct Options {
    /// The dialect to write.
    pub to: &'static Dialect,
    /// The options for reading and writing.
    pub translate: interlingua::Options,
    /// What the agent may do.
    pub policy: Policy,
    /// The time limits.
    pub deadlines: Deadlines,
    /// Receives the permission requests that the user has to decide; without it, they are denied.
    pub questions: Option<mpsc::UnboundedSender<Question>>,
    /// Records the agent's own bytes.
    pub record: Option<Recorder>,
    /// The limit, in bytes, of unread output; beyond it, the agent is stopped.
    pub max_unread: u64,
}

impl Options {
    /// Options for a run that writes this dialect, and in which no user can be asked.
    pub fn new(to: &'static Dialect) -> Self {
        Self {
            to,
            translate: interlingua::Options::default(),
            policy: Policy::default(),
            deadlines: Deadlines::default(),
            questions: None,
            record: None,
            max_unread: 4 << 30,
        }
    }
}

/// A permission request that the user has to decide.
#[derive(Debug, Clone)]
pub struct Question {
    /// The request.
    pub request: PermissionRequest,
    /// Alive for as long as the run waits for a decision.
    pending: Weak<()>,
}

impl Question {
    /// Whether the run still waits for a decision: the request may time out, or be withdrawn.
    pub fn is_pending(&self) -> bool {
        self.pending.strong_count() > 0
    }
}

/// A command from the caller to a run.
#[derive(Debug, Clone)]
pub enum Control {
    /// Stop the run. A second command escalates at once.
    Stop(Stop),
    /// Suspend all processes of the run, until it is resumed. The sender is notified once they are.
    Suspend(mpsc::Sender<()>),
    /// Resume them. Time limits do not include the time between.
    Resume,
    /// The user decided a permission request.
    Decide {
        /// The id of the request.
        request: String,
        /// The decision.
        decision: Decision,
    },
}

/// Why a run is stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The user interrupted it.
    Interrupted,
    /// The consumer accepts no more output.
    ConsumerGone,
    /// The output could not be written; why.
    OutputFailed(String),
    /// A time limit was exceeded; which one.
    TimedOut(String),
    /// The agent cannot do what was requested; why.
    GaveUp(String),
}

impl Stop {
    fn to_stopped(&self) -> Stopped {
        let (outcome, cause) = match self {
            Self::Interrupted => (Outcome::Cancelled, "the run was interrupted".to_owned()),
            Self::ConsumerGone => (Outcome::Cancelled, "the consumer closed the output".to_owned()),
            Self::OutputFailed(why) => {
                (Outcome::Failed, format!("the output could not be written: {why}"))
            }
            Self::TimedOut(what) => (Outcome::TimedOut, what.clone()),
            Self::GaveUp(why) => (Outcome::Failed, why.clone()),
        };
        Stopped { outcome, cause }
    }
}

/// The result of a run.
#[derive(Debug, Clone)]
pub struct Ended {
    /// The outcome of the last turn.
    pub outcome: Outcome,
    /// How the process ended.
    pub exit: Exit,
    /// Why the run was stopped, if it was.
    pub stop: Option<Stop>,
    /// The process did not exit in time after its turn had ended, and was terminated.
    pub exit_overdue: bool,
    /// The agent printed nothing at all.
    pub silent: bool,
    /// Some of the agent's output may be missing: the agent truncated it, or the disk is full.
    pub truncated: bool,
    /// The number of processes that the agent left behind; they were killed.
    pub orphans: usize,
    /// Why the recording is incomplete, if it is.
    pub recording: Option<String>,
}

impl Ended {
    /// The exit code for this result: 0 completed, 1 failed, 124 timed out, 130 interrupted.
    pub fn code(&self) -> u8 {
        match (&self.stop, &self.outcome) {
            (Some(Stop::TimedOut(_)), _) | (_, Outcome::TimedOut) => 124,
            (Some(Stop::Interrupted | Stop::ConsumerGone), _) => 130,
            (Some(Stop::OutputFailed(_)), _) => 1,
            (_, Outcome::Completed | Outcome::WaitingForClient) if !self.contradicts() => 0,
            _ => 1,
        }
    }

    /// Whether there was a failure although the stream reports success.
    fn contradicts(&self) -> bool {
        let failed = self.exit.signal.is_some() || self.exit.code.is_some_and(|code| code != 0);
        self.truncated
            || self.recording.is_some()
            || (self.stop.is_none() && !self.exit_overdue && failed)
    }
}

/// Runs an agent to its end, and writes its output to the consumer as it arrives.
pub async fn run(
    launch: Launch,
    options: Options,
    output: Box<dyn Consumer>,
    mut controls: mpsc::Receiver<Control>,
) -> Result<Ended, Error> {
    let mut options = options;
    let seed = options.translate.read.id_seed.unwrap_or_else(fresh_seed);
    options.translate.read.id_seed = Some(seed);
    options.translate.encode.id_seed = Some(seed);
    // Records of the target dialect are passed through.
    options.translate.read.raw_records = RawRecords::KeepOf(options.to);
    let outlets = Outlets::new(&options, &launch.command)?;
    let reader = Reader::new(launch.dialect.into(), options.translate.read)?;
    launch.prepare()?;
    let (process, spool) = launch.command.start().await.map_err(|problem| {
        let program = launch.command.program.display().to_string();
        Error::NotStarted { program, problem }
    })?;
    let mut run = Run {
        process,
        spool,
        driver: launch.driver,
        reader,
        outlets,
        outbox: Outbox::new(output),
        policy: options.policy,
        questions: options.questions,
        pending: HashMap::new(),
        record: options.record,
        max_unread: options.max_unread,
        clock: Clock::new(options.deadlines, Instant::now()),
        stop: None,
        outcome: Outcome::Failed,
        sidecar: SidecarReader::default(),
        driver_called_at: Instant::now(),
        _scratch: launch.scratch,
    };
    run.call_driver(|driver, steps| driver.start(steps));
    let status = run.until_exit(&mut controls).await;
    Ok(run.end(status, &mut controls).await)
}

struct Run {
    process: Process,
    spool: Spool,
    driver: Box<dyn Driver>,
    reader: Reader,
    outlets: Outlets,
    outbox: Outbox,
    policy: Policy,
    questions: Option<mpsc::UnboundedSender<Question>>,
    /// The questions that the user has not answered yet, by the ids of their requests.
    pending: HashMap<String, Arc<()>>,
    record: Option<Recorder>,
    max_unread: u64,
    clock: Clock,
    stop: Option<Stop>,
    outcome: Outcome,
    sidecar: SidecarReader,
    /// When the driver was last called.
    driver_called_at: Instant,
    /// A temporary folder, deleted with the run.
    _scratch: Option<tempfile::TempDir>,
}

impl Run {
    /// Runs the event loop until the process has exited.
    async fn until_exit(&mut self, controls: &mut mpsc::Receiver<Control>) -> Option<ExitStatus> {
        // The spool does not report output from before the first wait.
        let (mut printed, mut not_before) = (true, Instant::now());
        loop {
            let mut room = self.outbox.has_room();
            if printed && room && Instant::now() >= not_before {
                printed = self.read_some().await;
                room = self.outbox.has_room();
                if !printed {
                    not_before = Instant::now() + READ_INTERVAL;
                }
            }
            // An agent whose output is not being read does not count as silent.
            let may_be_silent = self.outlets.watch.tool_running() || !room;
            let due = self.clock.next(may_be_silent);
            let wake = self.driver.wake_after().map(|period| self.driver_called_at + period);
            tokio::select! {
                biased;
                status = self.process.ended() => return status.ok(),
                // If the caller drops its sender, the run continues.
                Some(control) = controls.recv() => self.control(control).await,
                change = self.outbox.changed() => {
                    if change == ConsumerChange::Closed && self.stop.is_none() {
                        let stop = self.consumer_closed();
                        self.stop(stop).await;
                    }
                }
                () = tokio::time::sleep_until(not_before.into()), if printed && room => {}
                () = self.spool.grown(), if !printed => printed = true,
                // The size of the unread output is checked periodically while the consumer is
                // stalled.
                () = tokio::time::sleep(UNREAD_CHECK_INTERVAL), if !room => {}
                () = until(wake), if wake.is_some() => self.wake_driver().await,
                () = until(due.as_ref().map(|(_, at)| *at)), if due.is_some() => {
                    self.due(due.map(|(due, _)| due)).await;
                }
            }
            if !room && self.stop.is_none() && self.spool.unread() > self.max_unread {
                let what = format!(
                    "the consumer is too slow: more than {} bytes of output are unread",
                    self.max_unread
                );
                self.stop(Stop::TimedOut(what)).await;
            }
        }
    }

    /// Reads a chunk of the output and acts on it. Returns whether there may be more.
    async fn read_some(&mut self) -> bool {
        let Ok(piece) = self.spool.read() else { return false };
        if piece.is_empty() {
            return false;
        }
        let (now, length) = (Instant::now(), piece.len());
        self.clock.output_seen(now);
        self.driver_called_at = now;
        let mut steps = Vec::new();
        self.driver.output(piece, &mut steps);
        match &mut self.record {
            Some(record) if self.outlets.records_entries() => record.shown(piece),
            Some(record) => record.printed(piece),
            None => {}
        }
        if !self.driver.holds_back() {
            let Ok(_) = self.reader.push(piece, Some(now_ms()), &mut self.outlets);
            self.outlets.take(self.record.as_mut(), |bytes| self.outbox.put(bytes));
        }
        self.execute(steps);
        self.handle_observations().await;
        self.spool.may_have_more(length)
    }

    /// Feeds the reader, and passes the resulting bytes to the consumer.
    fn read(&mut self, read: impl FnOnce(&mut Reader, &mut Outlets) -> Result<Flow, Infallible>) {
        let Ok(_) = read(&mut self.reader, &mut self.outlets);
        self.outlets.take(self.record.as_mut(), |bytes| self.outbox.put(bytes));
    }

    /// Wakes the driver after a period without any call.
    async fn wake_driver(&mut self) {
        self.driver_called_at = Instant::now();
        self.call_driver(|driver, steps| driver.woken(steps));
        self.handle_observations().await;
    }

    async fn handle_observations(&mut self) {
        for observation in self.outlets.watch.take_observations() {
            match observation {
                Observation::PermissionRequested(request) => {
                    self.permission_requested(request).await
                }
                Observation::PermissionResolved(request) => self.permission_resolved(&request),
                Observation::TurnStarted => self.clock.turn_started(),
                Observation::TurnEnded(outcome) => {
                    self.outcome = outcome;
                    self.clock.turn_ended();
                    self.call_driver(|driver, steps| driver.turn_ended(steps));
                }
                Observation::Retrying => self.clock.retried(Instant::now()),
                Observation::Progress => self.clock.progressed(),
            }
        }
    }

    /// Decides a permission request, or asks the user.
    async fn permission_requested(&mut self, request: PermissionRequest) {
        let id = request.id.clone();
        let verdict = if self.stop.is_some() {
            Verdict::Decided(Decision::Deny("the run is being stopped".to_owned()))
        } else {
            self.policy.judge(&request)
        };
        let decision = match (verdict, &self.questions) {
            (Verdict::Decided(decision), _) => decision,
            (Verdict::AskUser { .. }, Some(questions)) => {
                let pending = Arc::new(());
                let question = Question { request, pending: Arc::downgrade(&pending) };
                if questions.send(question).is_ok() {
                    self.clock.permission_requested(id.clone(), Instant::now());
                    self.pending.insert(id, pending);
                    return;
                }
                no_user()
            }
            (Verdict::AskUser { .. }, None) => no_user(),
        };
        self.decide(&id, &decision).await;
    }

    fn permission_resolved(&mut self, request: &str) {
        self.clock.permission_resolved(request);
        self.pending.remove(request);
    }

    async fn decide(&mut self, request: &str, decision: &Decision) {
        self.permission_resolved(request);
        self.call_driver(|driver, steps| driver.decide(request, decision, steps));
        // The decision may have completed an event, for example the end of a turn.
        Box::pin(self.handle_observations()).await;
    }

    async fn control(&mut self, control: Control) {
        match control {
            Control::Decide { request, decision } => self.decide(&request, &decision).await,
            Control::Stop(stop) => self.stop(stop).await,
            Control::Suspend(done) => {
                self.process.signal(Signal::Suspend);
                self.clock.suspended(Instant::now());
                // Whoever waits for it may have ended.
                let _ = done.try_send(());
            }
            Control::Resume => self.resume(),
        }
    }

    fn resume(&mut self) {
        self.process.signal(Signal::Resume);
        self.clock.resumed(Instant::now());
    }

    /// Stops the agent: first in its own way, then by signals of increasing severity.
    async fn stop(&mut self, why: Stop) {
        let first = self.stop.is_none();
        self.stop.get_or_insert(why);
        if !first {
            self.clock.escalate_now(Instant::now());
            return;
        }
        if self.clock.is_suspended() {
            // A suspended process would not notice.
            self.resume();
        }
        self.clock.stopping(Instant::now());
        let (mut steps, mut interrupted) = (Vec::new(), false);
        if !matches!(self.stop, Some(Stop::GaveUp(_))) {
            interrupted = self.driver.interrupt(&mut steps);
        }
        self.execute(steps);
        if !interrupted {
            self.send_signal(Signal::Interrupt);
        }
    }

    /// Why the consumer accepts no more output.
    fn consumer_closed(&self) -> Stop {
        self.outbox.failure().map_or(Stop::ConsumerGone, Stop::OutputFailed)
    }

    /// Handles a deadline that has expired.
    async fn due(&mut self, due: Option<Due>) {
        match due {
            Some(Due::Unanswered(request)) => {
                let why = "the permission request was not answered in time".to_owned();
                self.decide(&request, &Decision::Deny(why)).await;
            }
            Some(Due::Stop(why)) => {
                let what = self.clock.describe(why);
                self.stop(Stop::TimedOut(what)).await;
                if why == Limit::Run {
                    // The limit includes everything but the last period of grace.
                    self.process.signal(Signal::Terminate);
                    self.clock.signalled(Signal::Terminate, Instant::now());
                }
            }
            Some(Due::ExitOverdue) => {
                // The output is complete; only the process has not exited.
                self.clock.stopping(Instant::now());
                self.process.close_input();
                self.process.signal(Signal::Terminate);
            }
            Some(Due::Signal(signal)) => {
                self.process.signal(signal);
                self.clock.signalled(signal, Instant::now());
            }
            None => {}
        }
    }
}

fn no_user() -> Decision {
    Decision::Deny("no user is available to allow it".to_owned())
}

/// Sleeps until an instant; without one, forever.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

/// A seed for the ids of a run, different for every run.
fn fresh_seed() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(now_ms());
    hasher.finish()
}

/// The current time in milliseconds since 1970.
fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
