//! Decodes the end of a turn: its `result`, or the end of its message.
//!
//! `result` is the last record of a turn, and `message_stop`, or `$` in its place, follows it. A
//! stream with only the latter has ended its turn too, since Yume stops reading there. Such a turn
//! has completed if it has content, unless it was interrupted or its last record is an error. While
//! a call of the agent is unanswered, the end of the message does not end the turn.

use std::collections::HashMap;

use super::wire::{Failure, Line};
use super::{LIMIT_REACHED, WAITING_FOR_CLIENT, decode};
use crate::dialect::claude::ended as claude;
use crate::event::{Cost, Outcome, Scope, TurnEnded, Usage, own_usage};
use crate::json::read::{self, Shaped};
use crate::json::{Json, Text};

/// What the records of a turn state about its end.
#[derive(Debug, Default)]
pub(super) struct Ending {
    usage: Option<Usage<'static>>,
    state: State,
    interrupted: bool,
    /// The unanswered calls, and whether the client runs them.
    open: HashMap<Box<str>, bool>,
}

/// The state of a turn.
#[derive(Debug, Default, PartialEq, Eq)]
enum State {
    /// It has not started.
    #[default]
    NotStarted,
    /// It has started and has no content.
    Started,
    /// It has content.
    Active,
    /// Its last record is an error.
    Failed(Text<'static>),
    /// The end of its message has ended it, and no record has followed.
    Ended,
}

impl Ending {
    /// Notes that a turn starts.
    pub(super) fn begin(&mut self) {
        if matches!(self.state, State::NotStarted | State::Ended) {
            self.state = State::Started;
        }
    }

    /// Notes content of the turn.
    pub(super) fn note_activity(&mut self) {
        if self.state != State::Active {
            self.state = State::Active;
        }
    }

    /// Notes a call.
    pub(super) fn note_call(&mut self, call: &Text<'_>, by_client: bool) {
        self.note_activity();
        self.open.insert(call.to_plain().into(), by_client);
    }

    /// Notes an answer.
    pub(super) fn note_answer(&mut self, call: &Text<'_>) {
        self.note_activity();
        self.open.remove(&*call.to_plain());
    }

    /// Notes the counts of the turn.
    pub(super) fn note_usage(&mut self, usage: Usage<'_>) {
        if !self.is_ended() {
            self.usage = Some(own_usage(usage));
        }
    }

    /// Notes an error, after which the turn may continue.
    pub(super) fn note_error(&mut self, message: &Text<'_>) {
        self.state = State::Failed(message.clone().into_owned());
    }

    /// Notes that the turn was interrupted.
    pub(super) fn note_interrupt(&mut self) {
        self.note_activity();
        self.interrupted = true;
    }

    /// Whether the end of its message has ended the turn, and no record has followed.
    pub(super) fn is_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// The end of a turn, from its `result`.
    pub(super) fn result<'a>(&mut self, line: Line<'a>) -> TurnEnded<'a> {
        let Self { usage, interrupted, .. } = std::mem::take(self);
        turn_ended(line, usage, interrupted)
    }

    /// The end of a turn whose message ended without a `result`; `None` if no turn ends here.
    pub(super) fn message_stop(&mut self) -> Option<TurnEnded<'static>> {
        let agent_call_open = self.open.values().any(|by_client| !by_client);
        if matches!(self.state, State::NotStarted | State::Ended) || agent_call_open {
            return None;
        }
        let Self { usage, interrupted, open, state } = std::mem::take(self);
        self.state = State::Ended;
        let failed = |cause: Text<'static>| (Outcome::Failed, Some(cause));
        let (outcome, cause) = match state {
            _ if interrupted => (Outcome::Cancelled, None),
            _ if !open.is_empty() => (Outcome::WaitingForClient, None),
            State::Failed(cause) => failed(cause),
            State::Started => {
                failed(Text::plain("the message ended without any content or `result`"))
            }
            _ => (Outcome::Completed, None),
        };
        Some(TurnEnded { outcome, cause, usage, ..TurnEnded::default() })
    }
}

fn turn_ended<'a>(
    line: Line<'a>,
    earlier_usage: Option<Usage<'static>>,
    interrupted: bool,
) -> TurnEnded<'a> {
    let outcome = outcome(&line, interrupted);
    let errors = line.errors.as_ref().map(error_list).unwrap_or_default();
    let cause = errors.last().cloned().or(failure_text(line.error));
    let mut usage = line.usage.as_ref().map(decode::usage).or(earlier_usage);
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
        // After `interrupt`, the contract allows an error as the result of a cancelled turn.
        (_, Some(true)) if interrupted => Outcome::Cancelled,
        ("error_max_turns" | "error_max_budget_usd" | LIMIT_REACHED, _) => Outcome::LimitReached,
        (WAITING_FOR_CLIENT, _) => Outcome::WaitingForClient,
        (_, Some(true)) => Outcome::Failed,
        (subtype, _) if subtype.starts_with("error") => Outcome::Failed,
        (_, Some(false)) | ("success", None) => Outcome::Completed,
        (_, None) if status == "success" => Outcome::Completed,
        // Success is never assumed.
        _ => Outcome::Failed,
    }
}

/// The errors of a turn: the contract has strings, some programs write objects with a message.
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
