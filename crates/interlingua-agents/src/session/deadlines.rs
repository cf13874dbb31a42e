//! Deadlines, and what follows when they expire. The caller supplies the time.

use std::time::{Duration, Instant};

use crate::process::Signal;

/// The time limits of a run.
#[derive(Debug, Clone)]
pub struct Deadlines {
    /// For the whole session.
    pub run: Option<Duration>,
    /// For silence during a turn, while no tool runs and no permission request is pending.
    pub silence: Option<Duration>,
    /// For failed requests to the model that are retried repeatedly.
    pub retries: Option<Duration>,
    /// For the process to exit when it has nothing left to do, measured from when it was asked to, or
    /// from its last output after that.
    pub exit_after_turn: Duration,
    /// For the user to decide a permission request, or to answer a question.
    pub answer: Duration,
    /// For the client to run one of its tools. A person may be involved.
    pub client_tool: Duration,
    /// For the agent to exit after an interrupt, before SIGTERM is sent.
    pub interrupt: Duration,
    /// For the agent to exit after SIGTERM, before SIGKILL is sent.
    pub terminate: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            run: None,
            silence: Some(Duration::from_secs(600)),
            retries: Some(Duration::from_secs(600)),
            exit_after_turn: Duration::from_secs(30),
            answer: Duration::from_secs(300),
            client_tool: Duration::from_hours(24),
            interrupt: Duration::from_secs(5),
            terminate: Duration::from_secs(3),
        }
    }
}

/// An action that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Due {
    /// A request was not answered in time.
    Unanswered(String),
    /// The session has to be stopped, because this limit was exceeded.
    Stop(Limit),
    /// The work has ended, but the process has not exited.
    ExitOverdue,
    /// The next signal of the escalation.
    Signal(Signal),
}

/// The limit that was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    Run,
    Silence,
    Retries,
}

/// The state of the session that deadlines depend on.
#[derive(Debug)]
pub(crate) struct Clock {
    deadlines: Deadlines,
    started: Instant,
    last_output: Instant,
    /// The requests that wait for the user, since when, and for how long.
    pending: Vec<(String, Instant, Duration)>,
    retrying: Option<Instant>,
    phase: Phase,
    /// The next signal, once the turn or the process has to end.
    next_signal: Option<(Signal, Instant)>,
    exit_overdue: bool,
    /// Since when the session is suspended.
    suspended: Option<Instant>,
}

/// What the agent is expected to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// To wait for a prompt.
    Idle,
    /// To work on a turn.
    InTurn,
    /// To exit.
    Exiting,
}

impl Clock {
    pub(crate) fn new(deadlines: Deadlines, now: Instant) -> Self {
        Self {
            deadlines,
            started: now,
            last_output: now,
            pending: Vec::new(),
            retrying: None,
            phase: Phase::Idle,
            next_signal: None,
            exit_overdue: false,
            suspended: None,
        }
    }

    /// The run was suspended: nothing is due until it is resumed.
    pub(crate) fn suspended(&mut self, now: Instant) {
        self.suspended.get_or_insert(now);
    }

    pub(crate) fn is_suspended(&self) -> bool {
        self.suspended.is_some()
    }

    /// The run continues: everything is due later by the time between.
    pub(crate) fn resumed(&mut self, now: Instant) {
        let Some(since) = self.suspended.take() else { return };
        let pause = now.saturating_duration_since(since);
        let pending = self.pending.iter_mut().map(|(_, at, _)| at);
        let signal = self.next_signal.iter_mut().map(|(_, at)| at);
        let times = [&mut self.started, &mut self.last_output].into_iter();
        for time in times.chain(&mut self.retrying).chain(pending).chain(signal) {
            *time += pause;
        }
    }

    pub(crate) fn output_seen(&mut self, now: Instant) {
        self.last_output = now;
    }

    /// A prompt was sent, or the agent began a turn by itself.
    pub(crate) fn turn_started(&mut self, now: Instant) {
        if self.phase != Phase::InTurn {
            self.last_output = now;
            self.phase = Phase::InTurn;
        }
    }

    /// The turn has ended. An interrupt that it was asked for has had its effect.
    pub(crate) fn turn_ended(&mut self) {
        self.retrying = None;
        if self.phase == Phase::InTurn {
            self.phase = Phase::Idle;
            self.next_signal = None;
        }
    }

    /// The agent has ended its work, and has to exit. It may have rested for a long time before.
    pub(crate) fn exit_expected(&mut self, now: Instant) {
        self.phase = Phase::Exiting;
        self.last_output = now;
    }

    pub(crate) fn retried(&mut self, now: Instant) {
        self.retrying.get_or_insert(now);
    }

    pub(crate) fn progressed(&mut self) {
        self.retrying = None;
    }

    pub(crate) fn requested(&mut self, request: String, now: Instant) {
        self.pending.push((request, now, self.deadlines.answer));
    }

    /// A call waits for the client, which may be shorter than usual for an agent with a limit of its own.
    pub(crate) fn called_client(&mut self, call: String, limit: Option<Duration>, now: Instant) {
        let usual = self.deadlines.client_tool;
        self.pending.push((call, now, limit.map_or(usual, |limit| limit.min(usual))));
    }

    /// A request was answered, or is not needed any more. The silence of the agent begins only now.
    pub(crate) fn resolved(&mut self, request: &str, now: Instant) {
        let before = self.pending.len();
        self.pending.retain(|(pending, ..)| pending != request);
        if self.pending.len() < before {
            self.last_output = now;
        }
    }

    /// The agent was asked to stop its turn, or to exit.
    pub(crate) fn stopping(&mut self, now: Instant) {
        self.exit_overdue |= self.phase == Phase::Exiting;
        let next = (Signal::Terminate, now + self.deadlines.interrupt);
        self.next_signal.get_or_insert(next);
    }

    /// SIGTERM is sent to a process that does not exit by itself, perhaps repeatedly. SIGKILL follows
    /// the first one.
    pub(crate) fn terminating(&mut self, now: Instant) {
        if !matches!(self.next_signal, Some((Signal::Kill, _))) {
            self.signalled(Signal::Terminate, now);
        }
    }

    /// Makes the next signal due at once.
    pub(crate) fn escalate_now(&mut self, now: Instant) {
        if let Some((_, at)) = &mut self.next_signal {
            *at = now;
        } else if self.phase == Phase::Exiting {
            self.next_signal = Some((Signal::Terminate, now));
        }
    }

    pub(crate) fn signalled(&mut self, signal: Signal, now: Instant) {
        let next = (Signal::Kill, now + self.deadlines.terminate);
        // SIGKILL is the last step of the escalation.
        self.next_signal = (signal != Signal::Kill).then_some(next);
    }

    /// The process has ended.
    pub(crate) fn process_ended(&mut self) {
        self.next_signal = None;
        self.retrying = None;
        self.pending.clear();
        self.phase = Phase::Idle;
    }

    /// Whether the process was terminated after its turn had ended.
    pub(crate) fn exit_was_overdue(&self) -> bool {
        self.exit_overdue
    }

    /// The next action, and when it is due. An agent may be silent while a tool runs, or while its
    /// output is not being read.
    pub(crate) fn next(&self, may_be_silent: bool) -> Option<(Due, Instant)> {
        if self.suspended.is_some() {
            return None;
        }
        if let Some((signal, at)) = self.next_signal {
            return Some((Due::Signal(signal), at));
        }
        let Deadlines { run, silence, retries, exit_after_turn, .. } = &self.deadlines;
        let mut next: Option<(Due, Instant)> = None;
        let mut consider = |due: Due, since: Instant, limit: Duration| {
            // A limit that is beyond the clock never expires.
            if let Some(at) = since.checked_add(limit)
                && next.as_ref().is_none_or(|(_, first)| at < *first)
            {
                next = Some((due, at));
            }
        };
        if let Some(run) = run {
            // After the last turn, only the process is late.
            let exiting = self.phase == Phase::Exiting;
            let due = if exiting { Due::ExitOverdue } else { Due::Stop(Limit::Run) };
            consider(due, self.started, *run);
        }
        for (id, at, within) in &self.pending {
            consider(Due::Unanswered(id.clone()), *at, *within);
        }
        let silence = silence.filter(|_| !may_be_silent && self.pending.is_empty());
        match (self.phase, silence) {
            (Phase::Exiting, _) => consider(Due::ExitOverdue, self.last_output, *exit_after_turn),
            (Phase::InTurn, Some(silence)) => {
                consider(Due::Stop(Limit::Silence), self.last_output, silence);
            }
            (Phase::InTurn | Phase::Idle, _) => {}
        }
        if let (Some(retries), Some(since)) = (retries, self.retrying) {
            consider(Due::Stop(Limit::Retries), since, *retries);
        }
        next
    }

    /// Describes the exceeded limit for the user.
    pub(crate) fn describe(&self, limit: Limit) -> String {
        let Deadlines { run, silence, retries, .. } = &self.deadlines;
        let time = |time: &Option<Duration>| format_duration(time.unwrap_or_default());
        match limit {
            Limit::Run => format!("the run took longer than {}", time(run)),
            Limit::Silence => {
                format!("the agent was silent for {} during its turn", time(silence))
            }
            Limit::Retries => {
                format!("the agent only retried failed requests for {}", time(retries))
            }
        }
    }
}

/// Formats a duration for the user.
fn format_duration(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{} s", time.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> (Clock, Instant) {
        let now = Instant::now();
        let mut clock = Clock::new(Deadlines::default(), now);
        clock.turn_started(now);
        (clock, now)
    }

    #[test]
    fn a_running_tool_may_be_silent() {
        let (clock, _) = clock();
        assert!(matches!(clock.next(false), Some((Due::Stop(_), _))));
        assert_eq!(clock.next(true), None);
    }

    #[test]
    fn a_permission_request_has_its_own_deadline() {
        let (mut clock, now) = clock();
        clock.requested("r1".into(), now);
        let due = (Due::Unanswered("r1".into()), now + Duration::from_secs(300));
        assert_eq!(clock.next(false), Some(due));
        clock.resolved("r1", now);
        assert!(matches!(clock.next(false), Some((Due::Stop(_), _))));
    }

    #[test]
    fn a_suspended_run_has_more_time() {
        let (mut clock, now) = clock();
        let (_, due) = clock.next(false).unwrap();
        clock.suspended(now);
        assert_eq!(clock.next(false), None);
        clock.resumed(now + Duration::from_secs(3600));
        assert_eq!(clock.next(false).unwrap().1, due + Duration::from_secs(3600));
    }

    #[test]
    fn a_limit_beyond_the_clock_never_expires() {
        let deadlines =
            Deadlines { run: Some(Duration::MAX), silence: None, ..Deadlines::default() };
        assert_eq!(Clock::new(deadlines, Instant::now()).next(false), None);
    }

    #[test]
    fn a_turn_that_ends_needs_no_signal() {
        let (mut clock, now) = clock();
        clock.stopping(now);
        assert!(matches!(clock.next(false), Some((Due::Signal(Signal::Terminate), _))));
        clock.turn_ended();
        assert_eq!(clock.next(false), None);
    }

    #[test]
    fn retries_are_timed_from_the_first_until_there_is_progress() {
        let (mut clock, now) = clock();
        let later = now + Duration::from_secs(500);
        clock.retried(now);
        clock.output_seen(later);
        clock.retried(later);
        let (due, at) = clock.next(false).unwrap();
        assert_eq!(at, now + Duration::from_secs(600));
        assert_eq!(due, Due::Stop(Limit::Retries));
        clock.progressed();
        assert_eq!(clock.next(false).unwrap().1, later + Duration::from_secs(600));
    }

    #[test]
    fn repeated_terminations_do_not_delay_the_kill() {
        let (mut clock, now) = clock();
        clock.turn_ended();
        clock.exit_expected(now);
        clock.terminating(now);
        clock.terminating(now + Duration::from_secs(1));
        let kill = (Due::Signal(Signal::Kill), now + Duration::from_secs(3));
        assert_eq!(clock.next(false), Some(kill));
        assert!(!clock.exit_was_overdue());
    }

    /// An agent that had rested for longer than the limit was terminated as soon as it was asked to exit.
    #[test]
    fn an_agent_that_has_rested_has_all_the_time_to_exit() {
        let (mut clock, now) = clock();
        clock.turn_ended();
        let later = now + Duration::from_secs(3600);
        clock.exit_expected(later);
        assert_eq!(clock.next(false), Some((Due::ExitOverdue, later + Duration::from_secs(30))));
        clock.escalate_now(later);
        assert_eq!(clock.next(false), Some((Due::Signal(Signal::Terminate), later)));
    }

    #[test]
    fn a_process_that_does_not_exit_is_terminated_and_then_killed() {
        let (mut clock, now) = clock();
        clock.turn_ended();
        assert_eq!(clock.next(false), None, "it waits for a prompt");
        clock.exit_expected(now);
        assert_eq!(clock.next(false), Some((Due::ExitOverdue, now + Duration::from_secs(30))));
        clock.stopping(now);
        assert!(clock.exit_was_overdue());
        assert_eq!(clock.next(false).unwrap().0, Due::Signal(Signal::Terminate));
        clock.signalled(Signal::Terminate, now);
        assert_eq!(clock.next(false).unwrap().0, Due::Signal(Signal::Kill));
        clock.signalled(Signal::Kill, now);
        assert!(!matches!(clock.next(false), Some((Due::Signal(_), _))));
    }
}
