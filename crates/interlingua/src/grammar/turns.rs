//! A turn starts once and ends once; its counts are its own.

use super::stream::{Emit, Stream};
use super::{Exit, RepairKind};
use crate::event::{
    Cost, Data, ErrorClass, Event, Outcome, Reason, Scope, TurnEnded, TurnStarted, Usage,
};
use crate::json::Text;

/// How many errors of a turn are kept for its end.
const ERRORS_KEPT: usize = 100;

#[derive(Debug, Default)]
pub(super) struct Turns {
    open: Option<OpenTurn>,
    /// A live (not replayed) turn has started in this epoch.
    has_live_turn: bool,
    /// What the session had used at the end of the turn before.
    usage_so_far: Usage<'static>,
    cost_so_far: f64,
}

#[derive(Debug, Default)]
struct OpenTurn {
    errors: Vec<Mishap>,
    /// What kind of thing the last error was.
    class: Option<ErrorClass>,
    interrupted: Option<Text<'static>>,
    implied: bool,
    replay: bool,
    started_at: u64,
    /// What the requests of the agent itself have used so far.
    requests: Option<Usage<'static>>,
    /// What the turn as a whole used, where that is told before its end.
    whole: Vec<Usage<'static>>,
}

/// Something that went wrong in a turn.
#[derive(Debug)]
struct Mishap {
    text: Text<'static>,
    /// It was tried again: where the turn went well, it is of no account.
    retried: bool,
}

impl Turns {
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether the open turn is of the past.
    pub(super) fn is_replay(&self) -> bool {
        self.open.as_ref().is_some_and(|turn| turn.replay)
    }

    /// Whether a live (not replayed) turn has started in this epoch.
    pub(super) fn has_live_turn(&self) -> bool {
        self.has_live_turn
    }

    pub(super) fn begin_epoch(&mut self) {
        self.has_live_turn = self.open.is_some();
    }

    /// What the session had used before this stream began.
    pub(super) fn set_usage_before(&mut self, usage: Usage<'_>) {
        self.usage_so_far = crate::event::own_usage(usage);
    }

    /// Counts that grow over a session start from nothing again: it is another one.
    pub(super) fn forget_counts(&mut self) {
        self.usage_so_far = Usage::default();
        self.cost_so_far = 0.0;
    }

    /// Whether the open turn exists only because the input ended.
    pub(super) fn nothing_said(&self, stream: &Stream) -> bool {
        let only_started = |turn: &OpenTurn| turn.implied && turn.started_at + 1 == stream.sequence;
        self.open.as_ref().is_some_and(only_started)
    }

    pub(super) fn start(&mut self, event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        if let Some(open) = &self.open {
            // Agents that say twice that a turn begins say it at once.
            if open.started_at + 1 < stream.sequence {
                stream.repaired(RepairKind::TurnInTurn, || {
                    "a turn began before the one before it had ended".to_owned()
                });
            }
            stream.merged();
            return;
        }
        let replay = matches!(&event.data, Data::TurnStarted(started) if started.replay);
        self.begin(false, replay, stream);
        stream.said(&mut { event }, emit);
    }

    pub(super) fn imply(&mut self, stream: &mut Stream, emit: Emit<'_>) {
        self.begin(true, false, stream);
        stream.added(&mut Event::new(TurnStarted::default()), Reason::Implied, emit);
    }

    fn begin(&mut self, implied: bool, replay: bool, stream: &Stream) {
        self.has_live_turn |= !replay;
        let started_at = stream.sequence;
        self.open = Some(OpenTurn { implied, replay, started_at, ..OpenTurn::default() });
    }

    /// Keeps what the end of the turn will have to tell.
    pub(super) fn note(&mut self, event: &Event<'_>) {
        let Some(turn) = &mut self.open else { return };
        match &event.data {
            Data::Retry(retry) => {
                if let Some(message) = &retry.message {
                    turn.went_wrong(message, true);
                }
            }
            Data::Error(error) => {
                turn.class = Some(error.class.clone());
                turn.went_wrong(&error.message, false);
            }
            Data::Interrupted(interrupted) => {
                let text = interrupted.text.clone().unwrap_or_default();
                turn.interrupted = Some(text.into_owned());
            }
            Data::MessageEnded(ended) if event.parent.is_none() => turn.used(ended.usage.as_ref()),
            Data::Usage(usage) if event.parent.is_none() => turn.used(Some(usage)),
            _ => {}
        }
    }

    pub(super) fn end(
        &mut self,
        event: Event<'_>,
        added: bool,
        stream: &mut Stream,
        emit: Emit<'_>,
    ) {
        let turn = self.open.take().unwrap_or_default();
        let Event { parent, time, synthetic, data } = event;
        let Data::TurnEnded(mut ended) = data else { return };
        let failed = matches!(ended.outcome, Outcome::Failed | Outcome::TimedOut);
        let counts = |mishap: &&Mishap| failed || !mishap.retried;
        let mishaps = turn.errors.iter().filter(counts).map(|mishap| mishap.text.borrowed());
        let mut errors: Vec<_> = mishaps.collect();
        let last_mishap = errors.last().cloned();
        let told = std::mem::take(&mut ended.errors).into_iter();
        let news: Vec<_> = told.filter(|error| !errors.contains(error)).collect();
        errors.extend(news);
        ended.errors = errors;
        ended.replay = turn.replay;
        if ended.outcome != Outcome::Completed {
            let stopped = turn
                .interrupted
                .as_ref()
                .filter(|text| ended.outcome == Outcome::Cancelled && !text.is_empty());
            ended.cause =
                ended.cause.take().or_else(|| stopped.map(Text::borrowed)).or(last_mishap);
        }
        if ended.outcome == Outcome::Failed && ended.class.is_none() {
            ended.class = turn.class.filter(|class| *class != ErrorClass::Unspecified);
        }
        if ended.usage.is_none() {
            let told = turn.whole.iter().cloned().reduce(|sum, usage| sum.plus(&usage));
            ended.usage = told.map(|usage| Usage { model: None, ..usage });
            if ended.by_model.is_empty() {
                ended.by_model = turn.whole.into_iter().filter(|it| it.model.is_some()).collect();
            }
        }
        ended.usage = ended.usage.take().map(|usage| self.usage_of_turn(usage));
        ended.cost = ended.cost.take().map(|cost| self.cost_of_turn(cost));
        let mut event = Event::new(*ended).within(parent).at(time).because(synthetic);
        match event.synthetic.clone().filter(|_| added) {
            Some(reason) => stream.added(&mut event, reason, emit),
            None => stream.said(&mut event, emit),
        }
    }

    fn usage_of_turn<'a>(&mut self, usage: Usage<'a>) -> Usage<'a> {
        if usage.scope != Scope::Session {
            return usage;
        }
        let so_far = Usage { model: None, ..usage.clone() };
        let turn = Usage { scope: Scope::Turn, ..usage.since(&self.usage_so_far) };
        self.usage_so_far = crate::event::own_usage(so_far);
        turn
    }

    fn cost_of_turn<'a>(&mut self, cost: Cost<'a>) -> Cost<'a> {
        let mut usd = cost.usd;
        if cost.scope == Scope::Session {
            let before = std::mem::replace(&mut self.cost_so_far, usd);
            usd = if usd >= before { usd - before } else { usd };
        }
        // Money is told to a millionth of a cent; what sums and differences leave behind it is noise.
        Cost { scope: Scope::Turn, usd: (usd * 1e8).round() / 1e8, ..cost }
    }

    /// How a turn ended whose agent did not say so. A success is never invented.
    pub(super) fn ending(&self, end: &End<'_>) -> (TurnEnded<'static>, Reason) {
        let turn = self.open.as_ref();
        let interrupted = turn.is_some_and(|turn| turn.interrupted.is_some());
        let usage = turn.and_then(|turn| turn.usage(end.mid_message));
        let unless_stopped = |outcome| if interrupted { Outcome::Cancelled } else { outcome };
        if let Some(stopped) = &end.exit.stopped {
            let ended = TurnEnded {
                outcome: stopped.outcome.clone(),
                cause: Some(Text::from(stopped.cause.clone())),
                usage,
                ..TurnEnded::default()
            };
            return (ended, Reason::Stopped);
        }
        let (outcome, what, reason) = match (end.exit.code, end.exit.signal) {
            (None | Some(0), None) if end.clean => {
                let outcome = Outcome::Completed;
                return (TurnEnded { outcome, usage, ..TurnEnded::default() }, Reason::StreamEnded);
            }
            (_, Some(signal)) => (
                if is_request_to_stop(signal) { Outcome::Cancelled } else { Outcome::Failed },
                format!("the agent was ended by signal {signal} before its turn was over"),
                Reason::ProcessEnded,
            ),
            (Some(code @ (129 | 130 | 143)), None) => (
                Outcome::Cancelled,
                format!("the agent was stopped (exit code {code}) before its turn was over"),
                Reason::ProcessEnded,
            ),
            (Some(code), None) if end.cut_off => (
                unless_stopped(Outcome::Failed),
                format!(
                    "the agent's output was cut off in the middle of a record (exit code {code})"
                ),
                Reason::ProcessEnded,
            ),
            (Some(code), None) if end.class == Some(ErrorClass::Authentication) => (
                unless_stopped(Outcome::Failed),
                format!("the agent could not sign in (exit code {code})"),
                Reason::ProcessEnded,
            ),
            (Some(code), None) => (
                unless_stopped(Outcome::Failed),
                format!("the agent exited with code {code} and did not say how its turn ended"),
                Reason::ProcessEnded,
            ),
            (None, None) if end.cut_off => (
                unless_stopped(Outcome::Failed),
                "the output was cut off in the middle of a record".to_owned(),
                Reason::InputEnded,
            ),
            (None, None) => (
                unless_stopped(Outcome::Failed),
                "the output ended and did not say how the turn ended".to_owned(),
                Reason::InputEnded,
            ),
        };
        let last_error = turn.and_then(|turn| turn.errors.last()).map(|it| it.text.to_string());
        let cause = match last_error.or_else(|| last_line(end.exit)) {
            Some(error) => format!("{what}; the last error was: {error}"),
            None => what,
        };
        let errors = end.exit.stderr.clone().filter(|tail| !tail.trim().is_empty());
        let class = end.class.clone().filter(|_| outcome == Outcome::Failed);
        let ended = TurnEnded {
            outcome,
            cause: Some(Text::from(cause)),
            class,
            errors: errors.map(Text::from).into_iter().collect(),
            usage,
            ..TurnEnded::default()
        };
        (ended, reason)
    }
}

/// What is known of the end of a stream.
pub(super) struct End<'e> {
    pub(super) exit: &'e Exit,
    /// What kind of failure the exit reports.
    pub(super) class: Option<ErrorClass>,
    /// By its own contract the stream says that all is well by ending here.
    pub(super) clean: bool,
    /// The stream ended in the middle of a record.
    pub(super) cut_off: bool,
    /// The agent was in the middle of a message.
    pub(super) mid_message: bool,
}

impl OpenTurn {
    fn went_wrong(&mut self, message: &Text<'_>, retried: bool) {
        if let Some(last) = self.errors.last_mut().filter(|last| last.text == *message) {
            last.retried &= retried;
        } else if self.errors.len() < ERRORS_KEPT {
            self.errors.push(Mishap { text: message.clone().into_owned(), retried });
        }
    }

    /// Adds what a request used, or keeps what the whole turn did.
    fn used(&mut self, usage: Option<&Usage<'_>>) {
        match usage {
            Some(usage) if usage.scope == Scope::Request => {
                let so_far = self.requests.take().unwrap_or_default();
                self.requests = Some(so_far.plus(usage));
            }
            Some(usage) if usage.scope == Scope::Turn => {
                // Of one model what was told last counts.
                self.whole.retain(|told| told.model != usage.model);
                self.whole.push(crate::event::own_usage(usage.clone()));
            }
            _ => {}
        }
    }

    /// What the turn used, as far as its requests told; of one that was cut off nothing is known.
    fn usage(&self, cut_off: bool) -> Option<Usage<'static>> {
        let told = self.requests.clone()?;
        Some(Usage { scope: Scope::Turn, estimated: told.estimated || cut_off, ..told })
    }
}

/// The line of standard error that says most: the last that calls itself an error, or else the last.
/// Programs that were called wrongly say what is wrong first, and then how to call them.
fn last_line(exit: &Exit) -> Option<String> {
    let lines = || exit.stderr.as_deref().unwrap_or_default().lines().rev().map(str::trim);
    let is_error = |line: &&str| {
        line.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("error")) && line.len() > 6
    };
    let line = lines().find(is_error).or_else(|| lines().find(|line| !line.is_empty()));
    line.map(str::to_owned)
}

/// Whether a signal is how people and supervisors ask a program to stop.
fn is_request_to_stop(signal: i64) -> bool {
    matches!(signal, 1 | 2 | 3 | 15)
}
