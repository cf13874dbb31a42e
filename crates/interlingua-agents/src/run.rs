//! One run of an agent, from its start to the last of its processes.
//!
//! The loop waits for whatever comes first: more output, room at the consumer, a decision, an
//! interrupt, a deadline, the end of the process. It never waits for the consumer while the agent
//! has something to be answered, and it never reads faster than the consumer takes.

mod beside;
mod deadlines;
mod ending;
mod outbox;
mod outlets;
mod record;
mod steps;

use std::convert::Infallible;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use interlingua::dialect::Dialect;
use interlingua::event::Outcome;
use interlingua::{Exit, Flow, RawRecords, Reader, Stopped};
use tokio::sync::mpsc;

use crate::agent::Launch;
use crate::driver::Driver;
use crate::error::Error;
use crate::permission::{Decision, Policy, Verdict, Wish};
use crate::process::{Process, Signal, Spool};
use crate::watch::Note;
pub use deadlines::Deadlines;
use deadlines::{Clock, Due};
pub use outbox::Consumer;
use outbox::{Outbox, Sign};
use outlets::Outlets;
pub use record::Recorder;

use beside::Reading;

/// The least time between two looks at what was printed. An agent that prints fast is read in larger
/// pieces, which costs a fraction; what comes after a pause is read at once.
const PACE: Duration = Duration::from_millis(1);

/// How often it is measured how much nobody has taken yet.
const MEASURE: Duration = Duration::from_millis(100);

/// How a run is to be.
#[derive(Debug)]
pub struct Options {
    /// The protocol to write.
    pub to: &'static Dialect,
    /// How to write it.
    pub translate: interlingua::Options,
    /// What the agent may do.
    pub policy: Policy,
    /// What takes too long.
    pub deadlines: Deadlines,
    /// Where questions for the user go; without one, the answer is no.
    pub questions: Option<mpsc::UnboundedSender<Question>>,
    /// Where the agent's own bytes are kept.
    pub record: Option<Recorder>,
    /// How much unread output is kept before the agent is stopped.
    pub most_unread: u64,
}

impl Options {
    /// A run that is written as one protocol, and in which nobody can be asked.
    pub fn new(to: &'static Dialect) -> Self {
        Self {
            to,
            translate: interlingua::Options::default(),
            policy: Policy::default(),
            deadlines: Deadlines::default(),
            questions: None,
            record: None,
            most_unread: 4 << 30,
        }
    }
}

/// Something that the user has to decide.
#[derive(Debug, Clone)]
pub struct Question {
    /// What the agent wants to do.
    pub wish: Wish,
}

/// What the caller says to a run.
#[derive(Debug, Clone)]
pub enum Control {
    /// The run is to be stopped. Said again, it is stopped faster.
    Stop(Stop),
    /// The user decided.
    Decide {
        /// The request.
        request: String,
        /// What was decided.
        decision: Decision,
    },
}

/// Why a run is stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The user wants it.
    Interrupted,
    /// Nobody takes the output any more.
    ConsumerGone,
    /// Something took too long: what.
    TimedOut(String),
    /// The agent cannot do what it was asked to do: why.
    GaveUp(String),
}

impl Stop {
    fn told(&self) -> Stopped {
        let (outcome, cause) = match self {
            Self::Interrupted => (Outcome::Cancelled, "the run was interrupted".to_owned()),
            Self::ConsumerGone => {
                (Outcome::Cancelled, "nobody took the output any more".to_owned())
            }
            Self::TimedOut(what) => (Outcome::TimedOut, what.clone()),
            Self::GaveUp(why) => (Outcome::Failed, why.clone()),
        };
        Stopped { outcome, cause }
    }
}

/// How a run ended.
#[derive(Debug, Clone)]
pub struct Ended {
    /// How its last turn ended.
    pub outcome: Outcome,
    /// How the process ended.
    pub exit: Exit,
    /// Why it was stopped, if it was.
    pub stop: Option<Stop>,
    /// Its turn was over, and it did not end by itself.
    pub lingered: bool,
    /// It printed nothing at all.
    pub silent: bool,
    /// How many processes it left behind, which were ended.
    pub left_behind: usize,
}

impl Ended {
    /// The exit code that tells it: 0 completed, 1 failed, 124 timed out, 130 interrupted.
    pub fn code(&self) -> u8 {
        match (&self.stop, &self.outcome) {
            (Some(Stop::TimedOut(_)), _) | (_, Outcome::TimedOut) => 124,
            (Some(Stop::Interrupted | Stop::ConsumerGone), _) => 130,
            (_, Outcome::Completed | Outcome::WaitingForClient) if !self.contradicts() => 0,
            _ => 1,
        }
    }

    /// Whether the process says that it failed, and the stream that all is well.
    fn contradicts(&self) -> bool {
        self.stop.is_none()
            && !self.lingered
            && (self.exit.signal.is_some() || self.exit.code.is_some_and(|code| code != 0))
    }
}

/// Runs an agent to its end. What it says is written to the output as it comes.
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
    // Records in the dialect that is written are passed through.
    options.translate.read.raw_records = RawRecords::KeepOf(options.to);
    let outlets = Outlets::new(&options, launch.command.terminal.is_some())?;
    let reader = Reader::new(launch.dialect.into(), options.translate.read)?;
    let (process, spool) = launch.start()?;
    let mut run = Run {
        process,
        spool,
        driver: launch.driver,
        reader,
        outlets,
        outbox: Outbox::new(output),
        policy: options.policy,
        questions: options.questions,
        record: options.record,
        most_unread: options.most_unread,
        clock: Clock::new(options.deadlines, Instant::now()),
        stop: None,
        outcome: Outcome::Failed,
        beside: Reading::default(),
        told_driver: Instant::now(),
        _scratch: launch.scratch,
    };
    run.say(|driver, steps| driver.start(steps));
    let status = run.until_the_end(&mut controls).await;
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
    record: Option<Recorder>,
    most_unread: u64,
    clock: Clock,
    stop: Option<Stop>,
    outcome: Outcome,
    beside: Reading,
    /// When the driver was last told something.
    told_driver: Instant,
    /// A folder that is gone when the run is over.
    _scratch: Option<tempfile::TempDir>,
}

impl Run {
    /// Goes on until the process has ended.
    async fn until_the_end(
        &mut self,
        controls: &mut mpsc::Receiver<Control>,
    ) -> Option<ExitStatus> {
        // What was printed before we looked is not told.
        let (mut printed, mut not_before) = (true, Instant::now());
        loop {
            let mut room = self.outbox.has_room();
            if printed && room && Instant::now() >= not_before {
                printed = self.read_some().await;
                room = self.outbox.has_room();
                if !printed {
                    not_before = Instant::now() + PACE;
                }
            }
            // An agent that is not read is not silent.
            let may_be_silent = self.outlets.watch.tool_runs() || !room;
            let due = self.clock.next(may_be_silent);
            let wake = self.driver.wake_after().map(|patience| self.told_driver + patience);
            tokio::select! {
                biased;
                status = self.process.ended() => return status.ok(),
                // A caller that controls nothing any more lets the run go on.
                Some(control) = controls.recv() => self.control(control).await,
                sign = self.outbox.news() => {
                    if sign == Sign::Gone && self.stop.is_none() {
                        self.stop(Stop::ConsumerGone).await;
                    }
                }
                () = tokio::time::sleep_until(not_before.into()), if printed && room => {}
                () = self.spool.grown(), if !printed => printed = true,
                // What grows while nobody takes it is measured now and then.
                () = tokio::time::sleep(MEASURE), if !room => {}
                () = until(wake), if wake.is_some() => self.wake_driver().await,
                () = until(due.as_ref().map(|(_, at)| *at)), if due.is_some() => {
                    self.due(due.map(|(due, _)| due)).await;
                }
            }
            if !room && self.stop.is_none() && self.spool.unread() > self.most_unread {
                let what = "the agent printed more than may be kept for a reader that is so slow";
                self.stop(Stop::TimedOut(what.to_owned())).await;
            }
        }
    }

    /// Reads what the agent printed and acts on it; gives whether there may be more.
    async fn read_some(&mut self) -> bool {
        let Ok(piece) = self.spool.read() else { return false };
        if piece.is_empty() {
            return false;
        }
        let (now, length) = (Instant::now(), piece.len());
        self.clock.heard(now);
        self.told_driver = now;
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
        self.take_steps(steps);
        self.take_notes().await;
        self.spool.may_have_more(length)
    }

    /// Reads something, and hands on what was written of it.
    fn read(&mut self, read: impl FnOnce(&mut Reader, &mut Outlets) -> Result<Flow, Infallible>) {
        let Ok(_) = read(&mut self.reader, &mut self.outlets);
        self.outlets.take(self.record.as_mut(), |bytes| self.outbox.put(bytes));
    }

    /// Tells the driver that there was no news for as long as it has patience.
    async fn wake_driver(&mut self) {
        self.told_driver = Instant::now();
        self.say(|driver, steps| driver.woken(steps));
        self.take_notes().await;
    }

    async fn take_notes(&mut self) {
        for note in self.outlets.watch.notes() {
            match note {
                Note::Asks(wish) => self.asked(wish).await,
                Note::Settled(request) => self.clock.settled(&request),
                Note::TurnStarted => self.clock.turn_started(),
                Note::TurnEnded(outcome) => {
                    self.outcome = outcome;
                    self.clock.turn_ended();
                    self.say(|driver, steps| driver.turn_ended(steps));
                }
                Note::Retries => self.clock.retries(Instant::now()),
                Note::Works => self.clock.works(),
            }
        }
    }

    /// Decides what the agent asked for, or asks the user.
    async fn asked(&mut self, wish: Wish) {
        let request = wish.request.clone();
        let verdict = if self.stop.is_some() {
            Verdict::Decided(Decision::Deny("the run is being stopped".to_owned()))
        } else {
            self.policy.judge(&wish)
        };
        let decision = match (verdict, &self.questions) {
            (Verdict::Decided(decision), _) => decision,
            (Verdict::AskUser, Some(questions)) if questions.send(Question { wish }).is_ok() => {
                self.clock.asked(request, Instant::now());
                return;
            }
            (Verdict::AskUser, _) => {
                Decision::Deny("nobody is there who could allow it".to_owned())
            }
        };
        self.decide(&request, &decision).await;
    }

    async fn decide(&mut self, request: &str, decision: &Decision) {
        self.clock.settled(request);
        self.say(|driver, steps| driver.decide(request, decision, steps));
        // What was decided may be all that was still to be known.
        Box::pin(self.take_notes()).await;
    }

    async fn control(&mut self, control: Control) {
        match control {
            Control::Decide { request, decision } => self.decide(&request, &decision).await,
            Control::Stop(stop) => self.stop(stop).await,
        }
    }

    /// Stops the agent: in its own way, then by signals that it can refuse less and less.
    async fn stop(&mut self, why: Stop) {
        let first = self.stop.is_none();
        self.stop.get_or_insert(why);
        if !first {
            self.clock.hurry(Instant::now());
            return;
        }
        self.clock.stopping(Instant::now());
        let (mut steps, mut told) = (Vec::new(), false);
        if !matches!(self.stop, Some(Stop::GaveUp(_))) {
            told = self.driver.interrupt(&mut steps);
        }
        self.take_steps(steps);
        if !told {
            self.send_signal(Signal::Interrupt);
        }
    }

    /// Something took too long.
    async fn due(&mut self, due: Option<Due>) {
        match due {
            Some(Due::Unanswered(request)) => {
                let why = "nobody answered in time".to_owned();
                self.decide(&request, &Decision::Deny(why)).await;
            }
            Some(Due::Stop(why)) => {
                let what = self.clock.in_words(why);
                self.stop(Stop::TimedOut(what)).await;
            }
            Some(Due::Lingers) => {
                // All was said: it only does not end by itself.
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

/// Waits for a time, where there is one.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

/// What the ids of a run are made of: no two runs have the same.
fn fresh_seed() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(now_ms());
    hasher.finish()
}

/// The time in milliseconds since 1970.
fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
