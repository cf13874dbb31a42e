//! Decodes the `result` that ends a turn: its outcome, usage and durations.
//!
//! The counts are totals of the process, and include a request of the program that is not in the
//! stream.

use super::failure;
use super::wire::{Line, Usage as WireUsage};
use crate::event::{ErrorClass, Outcome, Scope, TurnEnded, Usage};
use crate::json::{Json, Text};

/// The end of a turn, from its `result`.
pub(super) fn turn_ended<'a>(line: &mut Line<'a>) -> TurnEnded<'a> {
    let failed = line.is_error.unwrap_or(false);
    let subtype = line.subtype.take();
    let outcome = match subtype.as_ref().map_or("", Text::body) {
        "error_max_turns" | "error_max_budget" => Outcome::LimitReached,
        _ if failed => Outcome::Failed,
        "success" => Outcome::Completed,
        _ => Outcome::Failed,
    };
    let cause = line.error.take().and_then(|error| error.message);
    let (class, http_status) = cause.as_ref().map(failure::classify).unwrap_or_default();
    let usage = line.usage.take().map(|usage| counts(usage, Scope::Session));
    TurnEnded {
        outcome,
        cause,
        class: Some(class).filter(|class| *class != ErrorClass::Unspecified),
        reason: subtype,
        http_status,
        final_text: line.result.take().filter(|_| !failed),
        structured: line.structured_result.take(),
        // Unknown counts are zeros.
        usage: usage.filter(|usage| usage.all() > 0),
        duration_ms: line.duration_ms,
        api_duration_ms: line.duration_api_ms.filter(|ms| *ms > 0),
        steps: line.num_turns.filter(|steps| *steps > 0),
        denials: line.permission_denials.take().filter(Json::is_array),
        ..TurnEnded::default()
    }
}

/// Translates counts of tokens. The input includes cached tokens, which are separated; the total
/// may include reasoning that the output excludes.
pub(super) fn counts(usage: WireUsage<'_>, scope: Scope) -> Usage<'_> {
    let sum = usage.input.zip(usage.output).map(|(input, output)| input.saturating_add(output));
    let reasoning = usage.total.zip(sum).map(|(total, sum)| total.saturating_sub(sum));
    let reasoning = reasoning.filter(|reasoning| *reasoning > 0);
    Usage {
        scope,
        input: usage.input.map(|input| input.saturating_sub(usage.cached.unwrap_or(0))),
        cache_read: usage.cached,
        output: usage.output.map(|output| output.saturating_add(reasoning.unwrap_or(0))),
        reasoning,
        total: usage.total,
        ..Usage::default()
    }
}
