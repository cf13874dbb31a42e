//! How a response ends: its outcome, by the reason for which it stopped, and its counts.

use super::calls::Settlement;
use super::wire::Usage as WireUsage;
use crate::event::{Cost, ErrorClass, Outcome, Scope, TurnEnded, Usage};
use crate::json::Text;

impl Settlement {
    /// Whether the calls of a response that stopped for this reason are run. Compatible servers stop
    /// for other reasons than `tool_calls` although there are calls.
    pub(super) fn of(finish_reason: Option<&Text<'_>>) -> Self {
        match finish_reason.map_or("", Text::body) {
            "length" | "max_tokens" => {
                Self::Stopped("the response was cut off at the limit of tokens")
            }
            "content_filter" => Self::Stopped("the provider's filter stopped the response"),
            "error" | "insufficient_system_resource" => Self::Stopped("the response failed"),
            _ => Self::Complete,
        }
    }
}

/// The outcome of a response that stopped for a reason.
pub(super) fn outcome_of(
    finish_reason: Option<&Text<'_>>,
    refused: bool,
    has_calls: bool,
) -> TurnEnded<'static> {
    let (outcome, class, cause) = match finish_reason.map_or("", Text::body) {
        "length" | "max_tokens" => {
            (Outcome::LimitReached, None, Some("the limit of tokens was reached"))
        }
        "content_filter" => (
            Outcome::Refused,
            Some(ErrorClass::Refusal),
            Some("the provider's content filter stopped the response"),
        ),
        "error" => (
            Outcome::Failed,
            Some(ErrorClass::Internal),
            Some("the provider stopped because of an error"),
        ),
        "insufficient_system_resource" => (
            Outcome::Failed,
            Some(ErrorClass::Overloaded),
            Some("the provider had no resources left for the response"),
        ),
        _ if refused => {
            (Outcome::Refused, Some(ErrorClass::Refusal), Some("the model refused to answer"))
        }
        _ if has_calls => (Outcome::WaitingForClient, None, None),
        _ => (Outcome::Completed, None, None),
    };
    let reason = refused.then(|| Text::plain("refusal"));
    TurnEnded { outcome, class, cause: cause.map(Text::plain), reason, ..TurnEnded::default() }
}

/// The counts of a response so far. Every report replaces the earlier ones.
#[derive(Debug, Default)]
pub(super) struct Counts {
    prompt: Option<u64>,
    completion: Option<u64>,
    total: Option<u64>,
    cached: Option<u64>,
    cache_write: Option<u64>,
    reasoning: Option<u64>,
    usd: Option<f64>,
}

impl Counts {
    /// Replaces the counts that a report has.
    pub(super) fn replace(&mut self, usage: &WireUsage<'_>) {
        let prompt = usage.prompt_details.as_ref();
        let completion = usage.completion_details.as_ref();
        let cached = prompt.and_then(|details| details.cached).or(usage.cache_hit);
        self.prompt = usage.prompt.or(self.prompt);
        self.completion = usage.completion.or(self.completion);
        self.total = usage.total.or(self.total);
        self.cached = cached.or(self.cached);
        self.cache_write = prompt.and_then(|details| details.cache_write).or(self.cache_write);
        self.reasoning = completion.and_then(|details| details.reasoning).or(self.reasoning);
        self.usd = usage.cost.or(self.usd);
    }

    /// The tokens of the request.
    pub(super) fn of_request(&self) -> Option<Usage<'static>> {
        let any = [self.prompt, self.completion, self.total];
        any.iter().any(Option::is_some).then(|| Usage {
            scope: Scope::Request,
            input: self.prompt.map(|prompt| {
                let cached = self.cached.unwrap_or(0).saturating_add(self.cache_write.unwrap_or(0));
                prompt.saturating_sub(cached)
            }),
            cache_read: self.cached,
            cache_write: self.cache_write,
            output: self.completion,
            reasoning: self.reasoning,
            total: self.total,
            ..Usage::default()
        })
    }

    /// The tokens of the turn, which has one request.
    pub(super) fn of_turn(&self) -> Option<Usage<'static>> {
        self.of_request().map(|usage| Usage { scope: Scope::Turn, ..usage })
    }

    /// The cost, which a router of requests reports in US dollars.
    pub(super) fn cost(&self) -> Option<Cost<'static>> {
        let usd = self.usd.filter(|usd| *usd > 0.0)?;
        Some(Cost { scope: Scope::Turn, usd, ..Cost::default() })
    }
}
