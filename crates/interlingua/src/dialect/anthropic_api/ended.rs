//! Decodes how a response ended: its stop reason, its counts, and the outcome of its turn.

use super::wire::StopDetails;
use crate::dialect::messages_api::{Usage as WireUsage, counts};
use crate::event::{ErrorClass, Outcome, Scope, TurnEnded, Usage, own_usage};
use crate::json::Text;

/// What is known of the end of a response so far.
#[derive(Debug, Default)]
pub(super) struct Ending {
    usage: Option<Usage<'static>>,
    /// The number of output tokens is final: those in the first event are only the first few.
    counted: bool,
    stop_reason: Option<Text<'static>>,
    category: Option<Text<'static>>,
    explanation: Option<Text<'static>>,
}

impl Ending {
    /// Takes the counts with which a stream starts.
    pub(super) fn start(usage: Option<&Usage<'_>>) -> Self {
        Self { usage: usage.cloned().map(own_usage), ..Self::default() }
    }

    /// Takes counts of the response so far. They replace those from before, and are not added.
    pub(super) fn count(&mut self, usage: Option<WireUsage<'_>>) {
        let Some(now) = usage.map(|usage| counts(usage, Scope::Request)) else { return };
        let known =
            self.usage.get_or_insert_with(|| Usage { scope: Scope::Request, ..Usage::default() });
        known.input = now.input.or(known.input);
        known.cache_read = now.cache_read.or(known.cache_read);
        known.cache_write = now.cache_write.or(known.cache_write);
        known.output = now.output.or(known.output.filter(|_| self.counted));
        known.reasoning = now.reasoning.or(known.reasoning);
        self.counted = true;
    }

    /// Takes the stop reason.
    pub(super) fn stop(&mut self, reason: Option<Text<'_>>, details: Option<StopDetails<'_>>) {
        if let Some(reason) = reason {
            self.stop_reason = Some(reason.into_owned());
        }
        if let Some(details) = details {
            self.category = details.category.map(Text::into_owned);
            self.explanation = details.explanation.map(Text::into_owned);
        }
    }

    /// Whether the counts are known that only the end of a response reports.
    pub(super) fn is_counted(&self) -> bool {
        self.counted
    }

    pub(super) fn stop_reason(&self) -> Option<Text<'static>> {
        self.stop_reason.clone()
    }

    /// Whether the last block may be incomplete, since the model did not end it itself.
    pub(super) fn cuts_the_last_block(&self) -> bool {
        let cut = ["max_tokens", "model_context_window_exceeded", "refusal"];
        cut.iter().any(|reason| self.is(reason))
    }

    /// The tokens of the request.
    pub(super) fn usage(&self) -> Option<Usage<'static>> {
        let usage = self.usage.clone()?;
        let output = usage.output.filter(|_| self.counted);
        Some(Usage { output, ..usage })
    }

    /// The end of the turn. A turn that leaves calls to the client waits for it.
    pub(super) fn turn(self, leaves_calls: bool) -> TurnEnded<'static> {
        let usage = self.usage().map(|usage| Usage { scope: Scope::Turn, ..usage });
        let (outcome, cause, class) = if self.is("refusal") {
            let cause = self.explanation.clone().unwrap_or_else(|| refusal(self.category.as_ref()));
            (Outcome::Refused, Some(cause), Some(ErrorClass::Refusal))
        } else if self.is("max_tokens") {
            let cause = "the response reached the limit of its output tokens";
            (Outcome::LimitReached, Some(Text::plain(cause)), None)
        } else if self.is("model_context_window_exceeded") {
            let cause = "the response reached the end of the model's context window";
            let class = ErrorClass::ContextOverflow;
            (Outcome::LimitReached, Some(Text::plain(cause)), Some(class))
        } else if leaves_calls || self.is("tool_use") || self.is("pause_turn") {
            // The provider pauses long work of its own, and the client has to continue it.
            (Outcome::WaitingForClient, None, None)
        } else {
            (Outcome::Completed, None, None)
        };
        TurnEnded {
            outcome,
            cause,
            class,
            reason: self.category,
            stop_reason: self.stop_reason,
            usage,
            ..TurnEnded::default()
        }
    }

    fn is(&self, reason: &str) -> bool {
        self.stop_reason.as_ref().is_some_and(|stop| *stop == *reason)
    }
}

fn refusal(category: Option<&Text<'_>>) -> Text<'static> {
    match category {
        Some(category) => Text::from(format!("the model refused to answer ({category})")),
        None => Text::plain("the model refused to answer"),
    }
}
