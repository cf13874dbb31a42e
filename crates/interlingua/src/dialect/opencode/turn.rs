//! The turn at hand: what its steps used, and how it ended.

use super::wire::Tokens;
use crate::event::{Cost, Data, Error, ErrorClass, Outcome, Scope, TurnEnded, Usage};
use crate::json::Text;

/// What is known of the turn so far.
#[derive(Debug, Default)]
pub(super) struct Turn {
    pub(super) open: bool,
    /// The session was said to be idle while a message of it was not over.
    pub(super) idle: bool,
    /// A call was refused, which ends a turn.
    pub(super) denied: bool,
    pub(super) failure: Option<Error<'static>>,
    /// When the user asked, in milliseconds.
    pub(super) started: Option<u64>,
    /// When the last message was over.
    pub(super) completed: Option<u64>,
    usage: Option<Usage<'static>>,
    /// In dollars, with what sub-agents cost.
    pub(super) cost: f64,
    steps: u64,
    /// Why the last step finished.
    finish: String,
}

impl Turn {
    /// Takes what a step used, and why it finished. What went wrong before did not end the turn.
    pub(super) fn step(&mut self, usage: Option<&Usage<'static>>, reason: &str) {
        if reason != "error" && !self.aborted() {
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

    /// Whether somebody stopped it.
    pub(super) fn aborted(&self) -> bool {
        self.failure.as_ref().is_some_and(|failure| failure.class == ErrorClass::Cancelled)
    }

    /// Keeps what went wrong.
    pub(super) fn fail(&mut self, error: &Error<'_>) {
        if let Data::Error(error) = Data::from(error.clone()).into_owned() {
            self.failure = Some(*error);
        }
    }

    /// The end of the turn.
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
            // A model without a price costs zero, which is no price.
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

/// Why a turn ended so, where opencode says no more than the reason of its last step.
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

/// Whether a step that finished so is followed by another one.
pub(super) fn goes_on(reason: &str) -> bool {
    matches!(reason, "tool-calls" | "unknown")
}

/// Tokens of one step; a step that failed has zeros, which are no counts.
pub(super) fn counts(tokens: &Tokens<'_>) -> Option<Usage<'static>> {
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
