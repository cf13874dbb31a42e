//! Ensures that a turn starts once and ends once, and that its counts are its own.

use super::stream::{Emit, Stream};
use super::{Exit, RepairKind};
use crate::event::{
    Cost, Data, ErrorClass, Event, Outcome, Reason, Scope, TurnEnded, TurnStarted, Usage,
};
use crate::json::Text;

/// The number of errors of a turn that are kept for its end.
const MAX_ERRORS: usize = 100;

#[derive(Debug, Default)]
pub(super) struct Turns {
    open: Option<OpenTurn>,
    /// A live (not replayed) turn has started in this epoch, or since one was last expected.
    has_live_turn: bool,
    /// The times at which records arrive are those of the agent's work, since its host reads them.
    measures: bool,
    /// What the session had used at the end of the previous turn.
    usage_so_far: Usage<'static>,
    cost_so_far: f64,
}

#[derive(Debug, Default)]
struct OpenTurn {
    errors: Vec<TurnError>,
    /// The class of the last error.
    class: Option<ErrorClass>,
    interrupted: Option<Text<'static>>,
    implied: bool,
    replay: bool,
    /// The sequence number of its start.
    started_at: u64,
    /// When its start arrived.
    start_received_at: Option<u64>,
    /// What the requests of the main agent have used so far.
    requests: Option<Usage<'static>>,
    /// The totals of the turn for each model, where they are reported before its end.
    totals: Vec<Usage<'static>>,
}

/// An error in a turn.
#[derive(Debug)]
struct TurnError {
    text: Text<'static>,
    /// The request was retried, so the error does not count if the turn succeeds.
    retried: bool,
}

impl Turns {
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Whether the open turn is replayed.
    pub(super) fn is_replay(&self) -> bool {
        self.open.as_ref().is_some_and(|turn| turn.replay)
    }

    /// Whether a turn has to follow that has not started yet.
    pub(super) fn is_expected(&self) -> bool {
        !self.has_live_turn
    }

    /// Measures the duration of turns whose agent reports none.
    pub(super) fn measure(&mut self) {
        self.measures = true;
    }

    /// Sets whether a turn has to follow.
    pub(super) fn expect(&mut self, expected: bool) {
        self.has_live_turn = !expected;
    }

    pub(super) fn begin_epoch(&mut self) {
        self.has_live_turn = self.open.is_some();
    }

    /// Sets what the session had used before this stream.
    pub(super) fn set_usage_before(&mut self, usage: Usage<'_>) {
        self.usage_so_far = crate::event::own_usage(usage);
    }

    /// Adds the counts of a turn that an earlier process reported, for agents whose counts continue
    /// across processes.
    pub(super) fn add_counts(&mut self, ended: &TurnEnded<'_>) {
        if let Some(usage) = &ended.usage {
            self.usage_so_far = crate::event::own_usage(self.usage_so_far.clone().plus(usage));
        }
        if let Some(cost) = &ended.cost {
            self.cost_so_far += cost.usd;
        }
    }

    /// Resets the baselines of cumulative counts, because another session began.
    pub(super) fn forget_counts(&mut self) {
        self.usage_so_far = Usage::default();
        self.cost_so_far = 0.0;
    }

    /// Whether the open turn exists only because the input ended.
    pub(super) fn has_only_started(&self, stream: &Stream) -> bool {
        let only_started = |turn: &OpenTurn| turn.implied && turn.started_at + 1 == stream.sequence;
        self.open.as_ref().is_some_and(only_started)
    }

    pub(super) fn start(&mut self, event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        if let Some(open) = &self.open {
            // Some agents report the start of a turn twice, with nothing in between.
            if open.started_at + 1 < stream.sequence {
                stream.report_repair(RepairKind::TurnInTurn, || {
                    "a turn began before the one before it had ended".to_owned()
                });
            }
            stream.count_merged();
            return;
        }
        let replay = matches!(&event.data, Data::TurnStarted(started) if started.replay);
        self.begin(false, replay, stream);
        stream.emit_decoded(&mut { event }, emit);
    }

    pub(super) fn imply(&mut self, stream: &mut Stream, emit: Emit<'_>) {
        self.begin(true, false, stream);
        stream.emit_added(&mut Event::new(TurnStarted::default()), Reason::Implied, emit);
    }

    fn begin(&mut self, implied: bool, replay: bool, stream: &Stream) {
        self.has_live_turn |= !replay;
        let (started_at, start_received_at) = (stream.sequence, stream.received_at);
        let turn =
            OpenTurn { implied, replay, started_at, start_received_at, ..OpenTurn::default() };
        self.open = Some(turn);
    }

    /// Records what the end of the turn has to report.
    pub(super) fn record(&mut self, event: &Event<'_>) {
        let Some(turn) = &mut self.open else { return };
        match &event.data {
            Data::Retry(retry) => {
                if let Some(message) = &retry.message {
                    turn.record_error(message, true);
                }
            }
            Data::Error(error) => {
                turn.class = Some(error.class.clone());
                turn.record_error(&error.message, false);
            }
            Data::Interrupted(interrupted) => {
                let text = interrupted.text.clone().unwrap_or_default();
                turn.interrupted = Some(text.into_owned());
            }
            Data::MessageEnded(ended) if event.parent.is_none() => {
                turn.add_usage(ended.usage.as_ref())
            }
            Data::Usage(usage) if event.parent.is_none() => turn.add_usage(Some(usage)),
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
        let counts = |error: &&TurnError| failed || !error.retried;
        let texts = turn.errors.iter().filter(counts).map(|error| error.text.borrowed());
        let mut errors: Vec<_> = texts.collect();
        let last_error = errors.last().cloned();
        let reported = std::mem::take(&mut ended.errors).into_iter();
        let others: Vec<_> = reported.filter(|error| !errors.contains(error)).collect();
        errors.extend(others);
        ended.errors = errors;
        ended.replay = turn.replay;
        if ended.duration_ms.is_none() && self.measures {
            ended.duration_ms = turn.measured_duration(stream);
            ended.duration_measured = ended.duration_ms.is_some();
        }
        if ended.outcome != Outcome::Completed {
            let stopped = turn
                .interrupted
                .as_ref()
                .filter(|text| ended.outcome == Outcome::Cancelled && !text.is_empty());
            ended.cause = ended.cause.take().or_else(|| stopped.map(Text::borrowed)).or(last_error);
        }
        if ended.outcome == Outcome::Failed && ended.class.is_none() {
            ended.class = turn.class.filter(|class| *class != ErrorClass::Unspecified);
        }
        if ended.usage.is_none() {
            let reported = turn.totals.iter().cloned().reduce(|sum, usage| sum.plus(&usage));
            ended.usage = reported.map(|usage| Usage { model: None, ..usage });
            if ended.by_model.is_empty() {
                ended.by_model = turn.totals.into_iter().filter(|it| it.model.is_some()).collect();
            }
        }
        ended.usage = ended.usage.take().map(|usage| self.usage_of_turn(usage));
        ended.cost = ended.cost.take().map(|cost| self.cost_of_turn(cost));
        let mut event = Event::new(*ended).within(parent).at(time).because(synthetic);
        match event.synthetic.clone().filter(|_| added) {
            Some(reason) => stream.emit_added(&mut event, reason, emit),
            None => stream.emit_decoded(&mut event, emit),
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
        // Costs are rounded to a millionth of a cent, which removes floating-point noise.
        Cost { scope: Scope::Turn, usd: (usd * 1e8).round() / 1e8, ..cost }
    }

    /// The end of a turn whose agent did not report it. A success is never invented.
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
                format!("the agent exited with code {code} without reporting how its turn ended"),
                Reason::ProcessEnded,
            ),
            (None, None) if end.cut_off => (
                unless_stopped(Outcome::Failed),
                "the output was cut off in the middle of a record".to_owned(),
                Reason::InputEnded,
            ),
            (None, None) => (
                unless_stopped(Outcome::Failed),
                "the output ended without reporting how the turn ended".to_owned(),
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
    /// The class of the failure that the exit reports.
    pub(super) class: Option<ErrorClass>,
    /// By the protocol's contract, a stream that ends here has succeeded.
    pub(super) clean: bool,
    /// The stream ended in the middle of a record.
    pub(super) cut_off: bool,
    /// The agent was in the middle of a message.
    pub(super) mid_message: bool,
}

impl OpenTurn {
    fn record_error(&mut self, message: &Text<'_>, retried: bool) {
        if let Some(last) = self.errors.last_mut().filter(|last| last.text == *message) {
            last.retried &= retried;
        } else if self.errors.len() < MAX_ERRORS {
            self.errors.push(TurnError { text: message.clone().into_owned(), retried });
        }
    }

    /// The time between the arrival of its start and now. A replayed turn took place earlier.
    fn measured_duration(&self, stream: &Stream) -> Option<u64> {
        let start = self.start_received_at.filter(|_| !self.replay)?;
        stream.received_at?.checked_sub(start)
    }

    /// Adds the usage of a request, or keeps the total of the turn.
    fn add_usage(&mut self, usage: Option<&Usage<'_>>) {
        match usage {
            Some(usage) if usage.scope == Scope::Request => {
                let so_far = self.requests.take().unwrap_or_default();
                self.requests = Some(so_far.plus(usage));
            }
            Some(usage) if usage.scope == Scope::Turn => {
                // The last report for a model counts.
                self.totals.retain(|reported| reported.model != usage.model);
                self.totals.push(crate::event::own_usage(usage.clone()));
            }
            _ => {}
        }
    }

    /// The sum of its requests. It is an estimate if a message was cut off, whose usage is unknown.
    fn usage(&self, cut_off: bool) -> Option<Usage<'static>> {
        let reported = self.requests.clone()?;
        Some(Usage { scope: Scope::Turn, estimated: reported.estimated || cut_off, ..reported })
    }
}

/// The most informative line of standard error: the last that begins with "error", else the last.
/// Programs print a usage error first and their usage after it.
fn last_line(exit: &Exit) -> Option<String> {
    let lines = || exit.stderr.as_deref().unwrap_or_default().lines().rev().map(str::trim);
    let is_error = |line: &&str| {
        line.get(..5).is_some_and(|word| word.eq_ignore_ascii_case("error")) && line.len() > 6
    };
    let line = lines().find(is_error).or_else(|| lines().find(|line| !line.is_empty()));
    line.map(str::to_owned)
}

/// Whether a signal is a request to stop: SIGHUP, SIGINT, SIGQUIT or SIGTERM.
fn is_request_to_stop(signal: i64) -> bool {
    matches!(signal, 1 | 2 | 3 | 15)
}
