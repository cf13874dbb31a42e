//! How a turn of the flat contract ended: by its `result`, or by the end of its message.
//!
//! `result` is the last record of a turn, and `message_stop`, or `$` in its place, follows it. A stream
//! that has only the latter has ended its turn too, since Yume stops reading there. Such a turn has
//! completed if it said or did something, unless what came last was an error or an interrupt. While a
//! call of the agent waits for its answer, the message is over and the turn is not.

use std::collections::HashMap;

use super::wire::{Failure, Line};
use super::{LIMIT_REACHED, WAITING_FOR_CLIENT, decode};
use crate::dialect::claude::ended as claude;
use crate::event::{Cost, Outcome, Scope, TurnEnded, Usage, own_usage};
use crate::json::read::{self, Shaped};
use crate::json::{Json, Text};

/// What the records of a turn say of its end.
#[derive(Debug, Default)]
pub(super) struct Ending {
    usage: Option<Usage<'static>>,
    state: State,
    interrupted: bool,
    /// Calls that were not answered, and whether the client runs them.
    open: HashMap<Box<str>, bool>,
}

/// Where a turn is.
#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    /// It has not begun.
    #[default]
    Before,
    /// It has begun, and nothing was said or done in it.
    Begun,
    /// Something was said or done.
    GoesOn,
    /// An error came last.
    Failed(Text<'static>),
    /// The end of the message has ended it, and nothing came since.
    Stopped,
}

impl Ending {
    /// Notes that a turn begins.
    pub(super) fn begun(&mut self) {
        if matches!(self.state, State::Before | State::Stopped) {
            self.state = State::Begun;
        }
    }

    /// Notes that something was said or done.
    pub(super) fn goes_on(&mut self) {
        if self.state != State::GoesOn {
            self.state = State::GoesOn;
        }
    }

    /// Notes a call.
    pub(super) fn called(&mut self, call: &Text<'_>, by_client: bool) {
        self.goes_on();
        self.open.insert(call.to_plain().into(), by_client);
    }

    /// Notes an answer.
    pub(super) fn answered(&mut self, call: &Text<'_>) {
        self.goes_on();
        self.open.remove(&*call.to_plain());
    }

    /// Notes the counts of the turn.
    pub(super) fn used(&mut self, usage: Usage<'_>) {
        if !self.is_stopped() {
            self.usage = Some(own_usage(usage));
        }
    }

    /// Notes an error, which the turn may survive.
    pub(super) fn went_wrong(&mut self, message: &Text<'_>) {
        self.state = State::Failed(message.clone().into_owned());
    }

    /// Notes that somebody stopped the turn.
    pub(super) fn interrupted(&mut self) {
        self.goes_on();
        self.interrupted = true;
    }

    /// Whether the end of its message has ended the turn, and nothing came since.
    pub(super) fn is_stopped(&self) -> bool {
        self.state == State::Stopped
    }

    /// The end of a turn, as its `result` tells it.
    pub(super) fn result<'a>(&mut self, line: Line<'a>) -> TurnEnded<'a> {
        let Self { usage, interrupted, .. } = std::mem::take(self);
        turn_ended(line, usage, interrupted)
    }

    /// The end of a turn whose message has ended without a `result`; `None` where no turn ends here.
    pub(super) fn message_stop(&mut self) -> Option<TurnEnded<'static>> {
        let runs = self.open.values().any(|by_client| !by_client);
        if matches!(self.state, State::Before | State::Stopped) || runs {
            return None;
        }
        let Self { usage, interrupted, open, state } = std::mem::take(self);
        self.state = State::Stopped;
        let failed = |cause: Text<'static>| (Outcome::Failed, Some(cause));
        let (outcome, cause) = match state {
            _ if interrupted => (Outcome::Cancelled, None),
            _ if !open.is_empty() => (Outcome::WaitingForClient, None),
            State::Failed(cause) => failed(cause),
            State::Begun => {
                failed(Text::plain("the message ended without any content or `result`"))
            }
            _ => (Outcome::Completed, None),
        };
        Some(TurnEnded { outcome, cause, usage, ..TurnEnded::default() })
    }
}

fn turn_ended<'a>(
    line: Line<'a>,
    told_before: Option<Usage<'static>>,
    interrupted: bool,
) -> TurnEnded<'a> {
    let outcome = outcome(&line, interrupted);
    let errors = line.errors.as_ref().map(error_list).unwrap_or_default();
    let cause = errors.last().cloned().or(failure_text(line.error));
    let mut usage = line.usage.as_ref().map(decode::usage).or(told_before);
    if let Some(usage) = &mut usage {
        usage.estimated |= line.usage_estimated.unwrap_or(false);
    }
    let models = line.models.as_ref();
    let cost = line.cost.or_else(|| models.and_then(claude::total_cost).filter(|usd| *usd > 0.0));
    TurnEnded {
        cause: cause.filter(|_| outcome != Outcome::Completed),
        outcome,
        reason: line.subtype,
        errors,
        final_text: line.result,
        by_model: models.map(claude::usage_by_model).unwrap_or_default(),
        structured: line.structured,
        usage,
        cost: cost.map(|usd| Cost { scope: Scope::Turn, usd, ..Cost::default() }),
        duration_ms: line.duration_ms,
        api_duration_ms: line.api_duration_ms,
        steps: line.requests,
        denials: line.denials,
        ..TurnEnded::default()
    }
}

fn outcome(line: &Line<'_>, interrupted: bool) -> Outcome {
    let status = line.status.as_ref().map_or("", Text::body);
    match (line.subtype.as_ref().map_or("", Text::body), line.is_error) {
        ("cancelled" | "canceled" | "interrupted", _) => Outcome::Cancelled,
        // After `interrupt`, the contract lets a cancelled turn be a failed one.
        (_, Some(true)) if interrupted => Outcome::Cancelled,
        ("error_max_turns" | "error_max_budget_usd" | LIMIT_REACHED, _) => Outcome::LimitReached,
        (WAITING_FOR_CLIENT, _) => Outcome::WaitingForClient,
        (_, Some(true)) => Outcome::Failed,
        (subtype, _) if subtype.starts_with("error") => Outcome::Failed,
        (_, Some(false)) | ("success", None) => Outcome::Completed,
        (_, None) if status == "success" => Outcome::Completed,
        // A success is never invented.
        _ => Outcome::Failed,
    }
}

/// The errors of a turn: strings by the contract, objects with a message elsewhere.
pub(super) fn error_list(list: &Json<'_>) -> Vec<Text<'static>> {
    let list = list.read::<Vec<Json<'_>>>().unwrap_or_default();
    let text = |error: &Json<'_>| match error.as_text() {
        Some(text) => text.into_owned(),
        None => read::record_of::<Failure<'_>>(error)
            .and_then(|failure| failure.message.map(Text::into_owned))
            .unwrap_or_else(|| Text::from(error.get().to_owned())),
    };
    list.iter().map(text).collect()
}

pub(super) fn failure_text<'a>(error: Shaped<'a, Failure<'a>>) -> Option<Text<'a>> {
    match error {
        Shaped::Record(failure) => failure.message,
        Shaped::Text(text) => Some(text),
        _ => None,
    }
}
