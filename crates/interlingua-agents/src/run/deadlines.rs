//! What takes too long, and what happens then. It knows the time only from its caller.

use std::time::{Duration, Instant};

use crate::process::Signal;

/// How long things may take.
#[derive(Debug, Clone)]
pub struct Deadlines {
    /// The whole run.
    pub run: Option<Duration>,
    /// Silence in a turn, while no tool runs and nobody is asked.
    pub silence: Option<Duration>,
    /// Failed requests to the model that are made again and again.
    pub retries: Option<Duration>,
    /// Silence after the turn is over, until the process ends by itself.
    pub lingering: Duration,
    /// The answer of a user.
    pub answer: Duration,
    /// The end of an agent that was told to stop, before it is asked by a signal.
    pub interrupt: Duration,
    /// The end of an agent that was asked by a signal, before it is killed.
    pub terminate: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            run: None,
            silence: Some(Duration::from_secs(600)),
            retries: Some(Duration::from_secs(600)),
            lingering: Duration::from_secs(30),
            answer: Duration::from_secs(300),
            interrupt: Duration::from_secs(5),
            terminate: Duration::from_secs(3),
        }
    }
}

/// Something that has to be done now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Due {
    /// A question was not answered.
    Unanswered(String),
    /// The run has to be stopped, for this reason.
    Stop(Why),
    /// The turn is over, and the process is not.
    Lingers,
    /// The next signal.
    Signal(Signal),
}

/// What took too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    Run,
    Silence,
    Retries,
}

/// What is going on, and since when.
#[derive(Debug)]
pub(super) struct Clock {
    deadlines: Deadlines,
    started: Instant,
    heard: Instant,
    /// The questions that nobody has answered yet.
    asked: Vec<(String, Instant)>,
    retrying: Option<Instant>,
    turn_over: bool,
    /// The next signal, once the process is to end.
    next_signal: Option<(Signal, Instant)>,
    lingered: bool,
}

impl Clock {
    pub(super) fn new(deadlines: Deadlines, now: Instant) -> Self {
        Self {
            deadlines,
            started: now,
            heard: now,
            asked: Vec::new(),
            retrying: None,
            turn_over: false,
            next_signal: None,
            lingered: false,
        }
    }

    pub(super) fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    pub(super) fn turn_started(&mut self) {
        self.turn_over = false;
    }

    pub(super) fn turn_ended(&mut self) {
        self.turn_over = true;
        self.retrying = None;
    }

    pub(super) fn retries(&mut self, now: Instant) {
        self.retrying.get_or_insert(now);
    }

    pub(super) fn works(&mut self) {
        self.retrying = None;
    }

    pub(super) fn asked(&mut self, request: String, now: Instant) {
        self.asked.push((request, now));
    }

    pub(super) fn settled(&mut self, request: &str) {
        self.asked.retain(|(asked, _)| asked != request);
    }

    /// The agent was told to stop.
    pub(super) fn stopping(&mut self, now: Instant) {
        self.lingered |= self.turn_over;
        let next = (Signal::Terminate, now + self.deadlines.interrupt);
        self.next_signal.get_or_insert(next);
    }

    /// The user does not want to wait.
    pub(super) fn hurry(&mut self, now: Instant) {
        if let Some((_, at)) = &mut self.next_signal {
            *at = now;
        }
    }

    pub(super) fn signalled(&mut self, signal: Signal, now: Instant) {
        let next = (Signal::Kill, now + self.deadlines.terminate);
        // One that was killed and is still there cannot be killed better.
        self.next_signal = (signal != Signal::Kill).then_some(next);
    }

    /// The process has ended.
    pub(super) fn over(&mut self) {
        self.next_signal = None;
    }

    /// Whether the process was ended after its turn was over.
    pub(super) fn ended_lingering(&self) -> bool {
        self.lingered
    }

    /// What will have to be done next, and when. An agent may be silent while a tool runs, or while
    /// nobody reads it.
    pub(super) fn next(&self, may_be_silent: bool) -> Option<(Due, Instant)> {
        if let Some((signal, at)) = self.next_signal {
            return Some((Due::Signal(signal), at));
        }
        let Deadlines { run, silence, retries, lingering, answer, .. } = &self.deadlines;
        let mut next: Option<(Due, Instant)> = None;
        let mut consider = |due: Due, at: Instant| {
            if next.as_ref().is_none_or(|(_, first)| at < *first) {
                next = Some((due, at));
            }
        };
        if let Some(run) = run {
            consider(Due::Stop(Why::Run), self.started + *run);
        }
        for (id, at) in &self.asked {
            consider(Due::Unanswered(id.clone()), *at + *answer);
        }
        if self.turn_over {
            consider(Due::Lingers, self.heard + *lingering);
        } else if let Some(silence) = silence.filter(|_| !may_be_silent && self.asked.is_empty()) {
            consider(Due::Stop(Why::Silence), self.heard + silence);
        }
        if let (Some(retries), Some(since)) = (retries, self.retrying) {
            consider(Due::Stop(Why::Retries), since + *retries);
        }
        next
    }

    /// What took too long, for a person to read.
    pub(super) fn in_words(&self, why: Why) -> String {
        let Deadlines { run, silence, retries, .. } = &self.deadlines;
        let time = |time: &Option<Duration>| words(time.unwrap_or_default());
        match why {
            Why::Run => format!("the run took longer than {}", time(run)),
            Why::Silence => {
                format!("the agent was silent for {} in the middle of its turn", time(silence))
            }
            Why::Retries => format!("the agent did nothing but try again for {}", time(retries)),
        }
    }
}

/// A time, for a person to read.
fn words(time: Duration) -> String {
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
    fn a_question_waits_for_its_own_deadline() {
        let (mut clock, now) = clock();
        clock.asked("r1".into(), now);
        let due = (Due::Unanswered("r1".into()), now + Duration::from_secs(300));
        assert_eq!(clock.next(false), Some(due));
        clock.settled("r1");
        assert!(matches!(clock.next(false), Some((Due::Stop(_), _))));
    }

    #[test]
    fn retries_are_counted_from_the_first_until_something_works() {
        let (mut clock, now) = clock();
        let later = now + Duration::from_secs(500);
        clock.retries(now);
        clock.heard(later);
        clock.retries(later);
        let (due, at) = clock.next(false).unwrap();
        assert_eq!(at, now + Duration::from_secs(600));
        assert_eq!(due, Due::Stop(Why::Retries));
        clock.works();
        assert_eq!(clock.next(false).unwrap().1, later + Duration::from_secs(600));
    }

    #[test]
    fn a_process_that_lingers_is_asked_and_then_killed() {
        let (mut clock, now) = clock();
        clock.turn_ended();
        assert_eq!(clock.next(false), Some((Due::Lingers, now + Duration::from_secs(30))));
        clock.stopping(now);
        assert!(clock.ended_lingering());
        assert_eq!(clock.next(false).unwrap().0, Due::Signal(Signal::Terminate));
        clock.signalled(Signal::Terminate, now);
        assert_eq!(clock.next(false).unwrap().0, Due::Signal(Signal::Kill));
        clock.signalled(Signal::Kill, now);
        assert!(!matches!(clock.next(false), Some((Due::Signal(_), _))));
    }
}
