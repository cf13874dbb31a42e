//! How a response ends: why it is incomplete, and its counts.

use super::wire::Usage as WireUsage;
use crate::event::{ErrorClass, Outcome, Scope, TurnEnded, Usage};
use crate::json::Text;

/// The end of a response that is incomplete.
pub(super) fn incomplete(reason: Option<&Text<'_>>) -> TurnEnded<'static> {
    let (outcome, class, cause) = match reason.map_or("", Text::body) {
        "max_output_tokens" => {
            (Outcome::LimitReached, None, "the limit of tokens was reached".to_owned())
        }
        "max_messages" => {
            (Outcome::LimitReached, None, "the limit of messages was reached".to_owned())
        }
        "content_filter" => (
            Outcome::Refused,
            Some(ErrorClass::Refusal),
            "the provider's content filter stopped the response".to_owned(),
        ),
        "steered" => (Outcome::Cancelled, None, "another input stopped the response".to_owned()),
        "" => (
            Outcome::Failed,
            Some(ErrorClass::Internal),
            "the response is incomplete, without a reason".to_owned(),
        ),
        other => (
            Outcome::Failed,
            Some(ErrorClass::Internal),
            format!("the response is incomplete: {other}"),
        ),
    };
    TurnEnded { outcome, class, cause: Some(Text::from(cause)), ..TurnEnded::default() }
}

/// The counts of a response, for its message and for its turn.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) request: Option<Usage<'static>>,
    pub(super) turn: Option<Usage<'static>>,
}

/// The counts that a response reports. Those of the input include the cached tokens.
pub(super) fn counts(usage: Option<WireUsage<'_>>) -> Counts {
    let Some(usage) = usage else { return Counts::default() };
    let details = usage.input_details.unwrap_or_default();
    let cached = details.cached.unwrap_or(0).saturating_add(details.cache_write.unwrap_or(0));
    let counts = Usage {
        scope: Scope::Request,
        input: usage.input.map(|input| input.saturating_sub(cached)),
        cache_read: details.cached,
        cache_write: details.cache_write,
        output: usage.output,
        reasoning: usage.output_details.and_then(|details| details.reasoning),
        total: usage.total,
        ..Usage::default()
    };
    if usage.input.or(usage.output).or(usage.total).is_none() {
        return Counts::default();
    }
    let turn = Usage { scope: Scope::Turn, ..counts.clone() };
    Counts { request: Some(counts), turn: Some(turn) }
}
