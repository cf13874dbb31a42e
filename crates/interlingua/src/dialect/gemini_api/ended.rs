//! Decodes how a response ended: its finish reason, its counts, and the outcome of its turn.

use super::wire::{PromptFeedback, UsageMetadata};
use crate::event::{ErrorClass, Outcome, Scope, TurnEnded, Usage};
use crate::json::Text;

/// The finish reason of a response that the next request has to continue.
const CONTINUATION: &str = "CONTINUATION";

/// The counts of a response so far. Each chunk replaces those before it.
#[derive(Debug, Default)]
pub(super) struct Counts {
    prompt: Option<u64>,
    cached: Option<u64>,
    candidates: Option<u64>,
    thoughts: Option<u64>,
    tool_use_prompt: Option<u64>,
    total: Option<u64>,
}

impl Counts {
    /// Takes the counts of a chunk. A chunk may lack some that an earlier one had.
    pub(super) fn replace(&mut self, now: &UsageMetadata<'_>) {
        self.prompt = now.prompt.or(self.prompt);
        self.cached = now.cached.or(self.cached);
        self.candidates = now.candidates.or(self.candidates);
        self.thoughts = now.thoughts.or(self.thoughts);
        self.tool_use_prompt = now.tool_use_prompt.or(self.tool_use_prompt);
        self.total = now.total.or(self.total);
    }

    /// The tokens of the request; `None` if no chunk had any.
    pub(super) fn usage(&self, scope: Scope) -> Option<Usage<'static>> {
        let fresh = self.prompt.map(|prompt| prompt.saturating_sub(self.cached.unwrap_or(0)));
        let usage = Usage {
            scope,
            input: sum(fresh, self.tool_use_prompt),
            cache_read: self.cached,
            output: sum(self.candidates, self.thoughts),
            reasoning: self.thoughts,
            total: self.total,
            ..Usage::default()
        };
        let known = usage.input.or(usage.cache_read).or(usage.output).or(usage.total);
        known.map(|_| usage)
    }
}

/// The sum of two counts. Where only one of them is sent, the other one is zero.
fn sum(one: Option<u64>, two: Option<u64>) -> Option<u64> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.saturating_add(two)),
        (one, two) => one.or(two),
    }
}

/// The end of the turn of a response that the model ended.
pub(super) fn finished(
    reason: &Text<'_>,
    message: Option<&Text<'_>>,
    leaves_calls: bool,
) -> TurnEnded<'static> {
    let (outcome, class) = match reason.body() {
        "MAX_TOKENS" => (Outcome::LimitReached, None),
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "MODEL_ARMOR"
        | "JAILBREAK" => (Outcome::Refused, Some(ErrorClass::Refusal)),
        // The model made a mistake, and may not make it again.
        "MALFORMED_FUNCTION_CALL"
        | "UNEXPECTED_TOOL_CALL"
        | "TOO_MANY_TOOL_CALLS"
        | "MALFORMED_RESPONSE"
        | "OTHER"
        | "IMAGE_OTHER"
        | "NO_IMAGE" => (Outcome::Failed, Some(ErrorClass::Internal)),
        "MISSING_THOUGHT_SIGNATURE" => (Outcome::Failed, Some(ErrorClass::BadRequest)),
        // The client has to continue the response with its token.
        CONTINUATION => (Outcome::WaitingForClient, None),
        _ if leaves_calls => (Outcome::WaitingForClient, None),
        _ => (Outcome::Completed, None),
    };
    let cause = match outcome {
        Outcome::Completed | Outcome::WaitingForClient => None,
        _ => Some(message.map_or_else(|| cause_of(&outcome, reason), |it| it.clone().into_owned())),
    };
    let stop_reason = Some(reason.clone().into_owned());
    let to_be_continued = reason.body() == CONTINUATION;
    TurnEnded { outcome, cause, class, stop_reason, to_be_continued, ..TurnEnded::default() }
}

fn cause_of(outcome: &Outcome, reason: &Text<'_>) -> Text<'static> {
    match outcome {
        Outcome::LimitReached => Text::plain("the response reached the limit of its output tokens"),
        Outcome::Refused => Text::from(format!("the response was blocked ({reason})")),
        _ => Text::from(format!("the response ended with {reason}")),
    }
}

/// The end of the turn of a prompt that was blocked.
pub(super) fn blocked(prompt: PromptFeedback<'_>) -> TurnEnded<'static> {
    let reason = prompt.block_reason.unwrap_or_default();
    let cause = match prompt.block_message {
        Some(message) => message.into_owned(),
        None => Text::from(format!("the prompt was blocked ({reason})")),
    };
    TurnEnded {
        outcome: Outcome::Refused,
        cause: Some(cause),
        class: Some(ErrorClass::Refusal),
        reason: Some(reason.into_owned()),
        ..TurnEnded::default()
    }
}
