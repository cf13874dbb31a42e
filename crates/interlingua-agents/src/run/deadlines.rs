//! Deadlines, and what follows when they expire. The caller supplies the time.

use std::time::{Duration, Instant};

use crate::process::Signal;

/// The time limits of a run.
#[derive(Debug, Clone)]
pub struct Deadlines {
    /// For the whole run.
    pub run: Option<Duration>,
    /// For silence during a turn, while no tool runs and no permission request is pending.
    pub silence: Option<Duration>,
    /// For failed requests to the model that are retried repeatedly.
    pub retries: Option<Duration>,
    /// For the process to exit, measured from its last output after the end of the turn.
    pub exit_after_turn: Duration,
    /// For the user to answer a permission request.
    pub answer: Duration,
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
            interrupt: Duration::from_secs(5),
            terminate: Duration::from_secs(3),
        }
    }
}

/// An action that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Due {
    /// A permission request was not answered in time.
    Unanswered(String),
    /// The run has to be stopped, because this limit was exceeded.
    Stop(Limit),
    /// The turn has ended, but the process has not exited.
    ExitOverdue,
    /// The next signal of the escalation.
    Signal(Signal),
}

/// The limit that was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    Run,
    Silence,
    Retries,
}

/// The state of the run that deadlines depend on.
#[derive(Debug)]
pub(super) struct Clock {
    deadlines: Deadlines,
    started: Instant,
    last_output: Instant,
    /// The pending permission requests.
    pending: Vec<(String, Instant)>,
    retrying: Option<Instant>,
    turn_ended: bool,
    /// The next signal, once the process has to end.
    next_signal: Option<(Signal, Instant)>,
    exit_overdue: bool,
    /// Since when the run is suspended.
    suspended: Option<Instant>,
}

impl Clock {
    pub(super) fn new(deadlines: Deadlines, now: Instant) -> Self {
        Self {
            deadlines,
            started: now,
            last_output: now,
            pending: Vec::new(),
            retrying: None,
            turn_ended: false,
            next_signal: None,
            exit_overdue: false,
            suspended: None,
        }
    }

    /// The run was suspended: nothing is due until it is resumed.
    pub(super) fn suspended(&mut self, now: Instant) {
        self.suspended.get_or_insert(now);
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.suspended.is_some()
    }

    /// The run continues: everything is due later by the time between.
    pub(super) fn resumed(&mut self, now: Instant) {
        let Some(since) = self.suspended.take() else { return };
        let pause = now.saturating_duration_since(since);
        let pending = self.pending.iter_mut().map(|(_, at)| at);
        let signal = self.next_signal.iter_mut().map(|(_, at)| at);
        let times = [&mut self.started, &mut self.last_output].into_iter();
        for time in times.chain(&mut self.retrying).chain(pending).chain(signal) {
            *time += pause;
        }
    }

    pub(super) fn output_seen(&mut self, now: Instant) {
        self.last_output = now;
    }

    pub(super) fn turn_started(&mut self) {
        self.turn_ended = false;
    }

    pub(super) fn turn_ended(&mut self) {
        self.turn_ended = true;
        self.retrying = None;
    }

    pub(super) fn retried(&mut self, now: Instant) {
        self.retrying.get_or_insert(now);
    }

    pub(super) fn progressed(&mut self) {
        self.retrying = None;
    }

    pub(super) fn permission_requested(&mut self, request: String, now: Instant) {
        self.pending.push((request, now));
    }

    pub(super) fn permission_resolved(&mut self, request: &str) {
        self.pending.retain(|(pending, _)| pending != request);
    }

    /// The agent was asked to stop.
    pub(super) fn stopping(&mut self, now: Instant) {
        self.exit_overdue |= self.turn_ended;
        let next = (Signal::Terminate, now + self.deadlines.interrupt);
        self.next_signal.get_or_insert(next);
    }

    /// Makes the next signal due at once.
    pub(super) fn escalate_now(&mut self, now: Instant) {
        if let Some((_, at)) = &mut self.next_signal {
            *at = now;
        }
    }

    pub(super) fn signalled(&mut self, signal: Signal, now: Instant) {
        let next = (Signal::Kill, now + self.deadlines.terminate);
        // SIGKILL is the last step of the escalation.
        self.next_signal = (signal != Signal::Kill).then_some(next);
    }

    /// The process has ended.
    pub(super) fn closed(&mut self) {
        self.next_signal = None;
    }

    /// Whether the process was terminated after its turn had ended.
    pub(super) fn exit_was_overdue(&self) -> bool {
        self.exit_overdue
    }

    /// The next action, and when it is due. An agent may be silent while a tool runs, or while its
    /// output is not being read.
    pub(super) fn next(&self, may_be_silent: bool) -> Option<(Due, Instant)> {
        if self.suspended.is_some() {
            return None;
        }
        if let Some((signal, at)) = self.next_signal {
            return Some((Due::Signal(signal), at));
        }
        let Deadlines { run, silence, retries, exit_after_turn, answer, .. } = &self.deadlines;
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
            // After a completed turn, only the process is late.
            let due = if self.turn_ended { Due::ExitOverdue } else { Due::Stop(Limit::Run) };
            consider(due, self.started, *run);
        }
        for (id, at) in &self.pending {
            consider(Due::Unanswered(id.clone()), *at, *answer);
        }
        if self.turn_ended {
            consider(Due::ExitOverdue, self.last_output, *exit_after_turn);
        } else if let Some(silence) = silence.filter(|_| !may_be_silent && self.pending.is_empty())
        {
            consider(Due::Stop(Limit::Silence), self.last_output, silence);
        }
        if let (Some(retries), Some(since)) = (retries, self.retrying) {
            consider(Due::Stop(Limit::Retries), since, *retries);
        }
        next
    }

    /// Describes the exceeded limit for the user.
    pub(super) fn describe(&self, limit: Limit) -> String {
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
        (Clock::new(Deadlines::default(), now), now)
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
        clock.permission_requested("r1".into(), now);
        let due = (Due::Unanswered("r1".into()), now + Duration::from_secs(300));
        assert_eq!(clock.next(false), Some(due));
        clock.permission_resolved("r1");
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
    fn a_process_that_does_not_exit_is_terminated_and_then_killed() {
        let (mut clock, now) = clock();
        clock.turn_ended();
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
