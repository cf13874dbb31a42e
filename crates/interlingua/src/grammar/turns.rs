//! A turn starts once and ends once; its counts are its own.

use super::{Emit, Exit, Stream};
use crate::event::{Cost, Data, Event, Outcome, Reason, Scope, TurnEnded, TurnStarted, Usage};
use crate::json::Text;

/// How many errors of a turn are kept for its end.
const ERRORS_KEPT: usize = 100;

#[derive(Debug, Default)]
pub(super) struct Turns {
    open: Option<OpenTurn>,
    count: u64,
    usage_so_far: Usage<'static>,
    cost_so_far: f64,
}

#[derive(Debug, Default)]
struct OpenTurn {
    errors: Vec<Text<'static>>,
    interrupted: bool,
    implied: bool,
    started_at: u64,
}

impl Turns {
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// How many turns there were, the open one included.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Whether the open turn exists only because the input ended.
    pub(super) fn nothing_said(&self, stream: &Stream) -> bool {
        let only_started = |turn: &OpenTurn| turn.implied && turn.started_at + 1 == stream.sequence;
        self.open.as_ref().is_some_and(only_started)
    }

    pub(super) fn start(&mut self, event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        if self.open.is_none() {
            self.begin(false, stream);
            stream.said(&mut { event }, emit);
        }
    }

    pub(super) fn imply(&mut self, stream: &mut Stream, emit: Emit<'_>) {
        self.begin(true, stream);
        stream.added(&mut Event::new(TurnStarted::default()), Reason::Implied, emit);
    }

    fn begin(&mut self, implied: bool, stream: &Stream) {
        self.count += 1;
        self.open = Some(OpenTurn { implied, started_at: stream.sequence, ..OpenTurn::default() });
    }

    /// Keeps what the end of the turn will have to tell.
    pub(super) fn note(&mut self, data: &Data<'_>) {
        let Some(turn) = &mut self.open else { return };
        let message = match data {
            Data::Retry(retry) => retry.message.clone(),
            Data::Error(error) => Some(error.message.clone()),
            Data::Interrupted(_) => {
                turn.interrupted = true;
                None
            }
            _ => None,
        };
        if let Some(message) = message
            && turn.errors.len() < ERRORS_KEPT
            && turn.errors.last() != Some(&message)
        {
            turn.errors.push(message.into_owned());
        }
    }

    pub(super) fn end(
        &mut self,
        event: Event<'_>,
        added: Option<Reason>,
        stream: &mut Stream,
        emit: Emit<'_>,
    ) {
        let turn = self.open.take().unwrap_or_default();
        let Event { parent, time, data, .. } = event;
        let Data::TurnEnded(mut ended) = data else { return };
        if ended.errors.is_empty() {
            ended.errors = turn.errors.iter().map(Text::borrowed).collect();
        }
        if ended.cause.is_none() && ended.outcome != Outcome::Completed {
            ended.cause = turn.errors.last().map(Text::borrowed);
        }
        ended.usage = ended.usage.take().map(|usage| self.usage_of_turn(usage));
        ended.cost = ended.cost.take().map(|cost| self.cost_of_turn(cost));
        let event = Event::new(*ended).within(parent).at(time);
        match added {
            Some(reason) => stream.added(&mut { event }, reason, emit),
            None => stream.said(&mut { event }, emit),
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
    pub(super) fn ending(&self, exit: &Exit, clean: bool) -> (TurnEnded<'static>, Reason) {
        let interrupted = self.open.as_ref().is_some_and(|turn| turn.interrupted);
        let (outcome, cause, reason) = match (exit.code, exit.signal) {
            (None | Some(0), None) if clean => (Outcome::Completed, None, Reason::StreamEnded),
            (_, Some(signal)) => (
                if is_request_to_stop(signal) { Outcome::Cancelled } else { Outcome::Failed },
                Some(format!("the agent was ended by signal {signal} before its turn was over")),
                Reason::ProcessEnded,
            ),
            (Some(code @ (129 | 130 | 143)), None) => (
                Outcome::Cancelled,
                Some(format!("the agent was stopped (exit code {code}) before its turn was over")),
                Reason::ProcessEnded,
            ),
            (Some(code), None) => (
                if interrupted { Outcome::Cancelled } else { Outcome::Failed },
                Some(format!(
                    "the agent exited with code {code} and did not say how its turn ended"
                )),
                Reason::ProcessEnded,
            ),
            (None, None) => (
                if interrupted { Outcome::Cancelled } else { Outcome::Failed },
                Some("the output ended and did not say how the turn ended".to_owned()),
                Reason::InputEnded,
            ),
        };
        (TurnEnded { outcome, cause: cause.map(Text::from), ..TurnEnded::default() }, reason)
    }
}

/// Whether a signal is how people and supervisors ask a program to stop.
fn is_request_to_stop(signal: i64) -> bool {
    matches!(signal, 1 | 2 | 3 | 15)
}
