//! Sums up the requests of a turn: tokens, cost, stop reason and failure.

use super::wire::{Cost, Usage as WireUsage};
use crate::event::{Cost as Price, ErrorClass, Outcome, Scope, TurnEnded, Usage, own_usage};
use crate::json::Text;

/// The totals of the current turn.
#[derive(Debug, Default)]
pub(super) struct Totals {
    usage: Option<Usage<'static>>,
    cost: f64,
    /// The last stop reason, as pi names it.
    stop_reason: Option<Text<'static>>,
    /// The failure of the last request, if it failed.
    pub(super) failure: Option<Failure>,
}

/// A request that failed.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) message: Text<'static>,
    pub(super) class: ErrorClass,
    pub(super) http_status: Option<u64>,
}

impl Totals {
    /// Adds a message that has ended.
    pub(super) fn add_message(
        &mut self,
        usage: Option<&Usage<'_>>,
        cost: Option<f64>,
        stop_reason: Option<&Text<'_>>,
        error: Option<&Text<'_>>,
    ) {
        if let Some(usage) = usage {
            let usage = own_usage(Usage { scope: Scope::Turn, ..usage.clone() });
            self.usage = Some(match self.usage.take() {
                Some(so_far) => so_far.plus(&usage),
                None => usage,
            });
        }
        self.cost += cost.unwrap_or(0.0);
        self.stop_reason = stop_reason.map(|reason| reason.clone().into_owned());
        let failed = stop_reason.is_some_and(|reason| *reason == "error");
        self.failure = (failed || error.is_some()).then(|| {
            let message = error.cloned().unwrap_or_else(|| Text::plain("the request failed"));
            let (class, http_status) = classify(&message);
            Failure { message: message.into_owned(), class, http_status }
        });
    }

    /// Whether the turn was stopped.
    pub(super) fn is_aborted(&self) -> bool {
        self.stop_reason.as_ref().is_some_and(|reason| *reason == "aborted")
    }

    /// The end of the turn.
    pub(super) fn ended(&mut self) -> TurnEnded<'static> {
        let Self { usage, cost, stop_reason, failure } = std::mem::take(self);
        let outcome = match stop_reason.as_ref().map_or("", Text::body) {
            "aborted" => Outcome::Cancelled,
            "length" => Outcome::LimitReached,
            _ if failure.is_some() => Outcome::Failed,
            _ => Outcome::Completed,
        };
        let price = Price { scope: Scope::Turn, usd: cost, ..Price::default() };
        let mut ended = TurnEnded {
            outcome,
            stop_reason,
            usage,
            cost: Some(price).filter(|price| price.usd > 0.0),
            ..TurnEnded::default()
        };
        if let Some(failure) = failure {
            ended.cause = Some(failure.message);
            ended.class = Some(failure.class).filter(|class| *class != ErrorClass::Unspecified);
            ended.http_status = failure.http_status;
        }
        ended
    }
}

/// The tokens of one request. The zeros of a failed request are not counts.
pub(super) fn counts(usage: &WireUsage<'_>) -> Option<Usage<'static>> {
    let usage = Usage {
        scope: Scope::Request,
        input: usage.input,
        cache_read: usage.cache_read,
        cache_write: usage.cache_write,
        output: usage.output,
        reasoning: usage.reasoning,
        total: usage.total,
        ..Usage::default()
    };
    Some(usage).filter(|usage| usage.all() > 0)
}

/// The cost of one request. Zero means that the price of the model is unknown.
pub(super) fn price(cost: Option<&Cost<'_>>) -> Option<f64> {
    cost.and_then(|cost| cost.total).filter(|total| *total > 0.0)
}

/// Classifies an error message: `401: {…}`, or a message of the network.
pub(super) fn classify(message: &Text<'_>) -> (ErrorClass, Option<u64>) {
    let text = message.to_plain();
    let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
    if digits.len() == 3
        && let Ok(status) = digits.parse::<u64>()
        && (400..600).contains(&status)
    {
        return (ErrorClass::of_http_status(status), Some(status));
    }
    let text = text.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let class = if has(&["overloaded"]) {
        ErrorClass::Overloaded
    } else if has(&["rate limit", "rate_limit", "too many requests"]) {
        ErrorClass::RateLimit
    } else if has(&["quota", "insufficient", "billing"]) {
        ErrorClass::Quota
    } else if has(&["api key", "authentication", "unauthorized"]) {
        ErrorClass::Authentication
    } else if has(&["context length", "context window", "prompt is too long"]) {
        ErrorClass::ContextOverflow
    } else if has(&["timed out", "timeout"]) {
        ErrorClass::TimedOut
    } else if text == "terminated"
        || has(&["connection", "network", "fetch failed", "socket", "econn", "stream ended"])
    {
        ErrorClass::Network
    } else {
        ErrorClass::Unspecified
    };
    (class, None)
}
