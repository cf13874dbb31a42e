//! The current turn: the usage of its steps, and its outcome.

use super::wire::Tokens;
use crate::event::{Cost, Data, Error, ErrorClass, Outcome, Scope, TurnEnded, Usage};
use crate::json::Text;

/// The state of the current turn.
#[derive(Debug, Default)]
pub(super) struct Turn {
    pub(super) open: bool,
    /// The session was reported busy, or its message has started.
    pub(super) busy: bool,
    /// The session was reported idle while its message was open.
    pub(super) idle: bool,
    /// A call was denied, which ends a turn.
    pub(super) denied: bool,
    pub(super) failure: Option<Error<'static>>,
    /// The time of the prompt, in milliseconds.
    pub(super) started: Option<u64>,
    /// The time at which the last message was completed.
    pub(super) completed: Option<u64>,
    usage: Option<Usage<'static>>,
    /// The cost in dollars, including that of sub-agents.
    pub(super) cost: f64,
    steps: u64,
    /// The finish reason of the last step.
    finish: String,
}

impl Turn {
    /// Records the usage and the finish reason of a step. An earlier error did not end the turn.
    pub(super) fn record_step(&mut self, usage: Option<&Usage<'static>>, reason: &str) {
        if reason != "error" && !self.is_aborted() {
            self.failure = None;
        }
        if let Some(usage) = usage {
            self.usage = Some(match self.usage.take() {
                Some(so_far) => so_far.plus(usage),
                None => Usage { scope: Scope::Turn, ..usage.clone() },
            });
        }
        self.steps += 1;
        reason.clone_into(&mut self.finish);
    }

    /// Whether the turn was aborted.
    pub(super) fn is_aborted(&self) -> bool {
        self.failure.as_ref().is_some_and(|failure| failure.class == ErrorClass::Cancelled)
    }

    /// Records an error, which may end the turn.
    pub(super) fn fail(&mut self, error: &Error<'_>) {
        if let Data::Error(error) = Data::from(error.clone()).into_owned() {
            self.failure = Some(*error);
        }
    }

    /// Ends the turn.
    pub(super) fn end(&mut self) -> TurnEnded<'static> {
        let turn = std::mem::take(self);
        let outcome = match &turn.failure {
            Some(failure) if failure.class == ErrorClass::Cancelled => Outcome::Cancelled,
            Some(failure) if failure.class == ErrorClass::Limit => Outcome::LimitReached,
            Some(_) => Outcome::Failed,
            None => turn.outcome(),
        };
        let cost = Cost { scope: Scope::Turn, usd: turn.cost, ..Cost::default() };
        let mut ended = TurnEnded {
            outcome,
            stop_reason: Some(Text::from(turn.finish)).filter(|finish| !finish.is_empty()),
            usage: turn.usage,
            // A cost of zero means that the price of the model is unknown.
            cost: Some(cost).filter(|cost| cost.usd > 0.0),
            steps: Some(turn.steps).filter(|steps| *steps > 0),
            duration_ms: turn
                .completed
                .zip(turn.started)
                .and_then(|(end, start)| end.checked_sub(start)),
            ..TurnEnded::default()
        };
        if let Some(failure) = turn.failure {
            ended.cause = Some(failure.message);
            ended.class = Some(failure.class).filter(|class| *class != ErrorClass::Unspecified);
            ended.reason = failure.code;
            ended.http_status = failure.http_status;
        } else {
            ended.cause = cause_of(&ended.outcome).map(Text::plain);
        }
        ended
    }

    fn outcome(&self) -> Outcome {
        match &*self.finish {
            "length" => Outcome::LimitReached,
            "content-filter" => Outcome::Refused,
            "error" => Outcome::Failed,
            "tool-calls" | "unknown" if self.denied => Outcome::Cancelled,
            _ => Outcome::Completed,
        }
    }
}

/// The cause of an outcome for which opencode reports only the finish reason of the last step.
fn cause_of(outcome: &Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::LimitReached => {
            Some("the answer was cut off: it reached the most that the model may write")
        }
        Outcome::Refused => Some("the provider held the answer back: a filter found fault with it"),
        Outcome::Failed => Some("the model's answer ended with an error"),
        Outcome::Cancelled => Some("a tool call was not permitted, which ends the turn"),
        _ => None,
    }
}

/// Whether another step follows one with this finish reason.
pub(super) fn continues_after(reason: &str) -> bool {
    matches!(reason, "tool-calls" | "unknown")
}

/// The usage of a step. A failed step has zeros, which means that nothing was counted.
pub(super) fn usage_of(tokens: &Tokens<'_>) -> Option<Usage<'static>> {
    let cache = tokens.cache.as_ref();
    let output = tokens.output.map(|output| output + tokens.reasoning.unwrap_or(0));
    let usage = Usage {
        scope: Scope::Request,
        input: tokens.input,
        cache_read: cache.and_then(|cache| cache.read),
        cache_write: cache.and_then(|cache| cache.write),
        output,
        reasoning: tokens.reasoning,
        total: tokens.total,
        ..Usage::default()
    };
    Some(usage).filter(|usage| usage.all() > 0)
}
