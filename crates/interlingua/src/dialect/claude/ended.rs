//! Decodes the `result` that ends a turn: its outcome, usage, cost and durations.
//!
//! `usage` and `duration_ms` cover the turn; `total_cost_usd`, `duration_api_ms` and `modelUsage`
//! cover the process. Claude Code writes zeros for counts that are unknown: in a turn that was
//! cancelled or failed, and in one whose requests were not streamed.

use std::collections::BTreeMap;

use super::wire::{Line, ModelUsage};
use crate::dialect::messages_api::counts;
use crate::event::{Cost, ErrorClass, Outcome, Scope, TurnEnded, Usage};
use crate::json::read;
use crate::json::{Json, Text};

/// The prefix of error messages that are meant for the authors of Claude Code.
const DIAGNOSTIC: &str = "[ede_diagnostic]";

/// The reason for which a turn ends whose call its host has deferred. The program also writes it in place of
/// the stop reason of the model.
pub(super) const DEFERRED: &str = "tool_deferred";

/// Decodes the ends of turns. It holds the totals of the process at the end of the previous turn.
#[derive(Debug, Default)]
pub(super) struct Endings {
    api_duration_ms: u64,
    models: BTreeMap<String, Usage<'static>>,
}

impl Endings {
    /// The end of a turn, from its `result`.
    pub(super) fn turn_ended<'a>(
        &mut self,
        line: Line<'a>,
        unanswered_call: bool,
    ) -> TurnEnded<'a> {
        let failed = line.is_error.unwrap_or(false);
        let outcome = outcome(&line, failed, unanswered_call);
        let errors =
            line.errors.as_ref().and_then(|errors| errors.read().map(own_list)).unwrap_or_default();
        let (final_text, failure) = if failed { (None, line.result) } else { (line.result, None) };
        let error = errors.iter().find(|error| !error.body().starts_with(DIAGNOSTIC));
        let cause = failure.or_else(|| error.cloned()).filter(|_| outcome != Outcome::Completed);
        // Interlingua's own encoder lists the fields whose zeros stand for unknown values.
        let unknown: Vec<Text<'_>> =
            line.unknown_fields.as_ref().and_then(|names| names.read()).unwrap_or_default();
        let known = |name: &str| !unknown.iter().any(|unknown| *unknown == *name);
        let usage = line.usage.map(|mut usage| {
            usage.input = usage.input.filter(|_| known("usage.input_tokens"));
            usage.output = usage.output.filter(|_| known("usage.output_tokens"));
            counts(usage, Scope::Turn)
        });
        let total_cost_usd = line.total_cost_usd.filter(|_| known("total_cost_usd"));
        let turn_cost_usd = line.models_since.as_ref().and_then(total_cost);
        let by_model = match &line.models_since {
            Some(models) => usage_by_model(models),
            None => self.models_of_turn(line.models.as_ref().filter(|_| known("modelUsage"))),
        };
        // A failed turn and requests that were not streamed have zeros in place of counts.
        let models_used = by_model.iter().any(|usage| usage.all() > 0);
        let counted = |usage: &Usage<'_>| usage.all() > 0 || !(failed || models_used);
        let usage = usage.filter(counted).filter(|_| known("usage"));
        let cost = match (turn_cost_usd, total_cost_usd) {
            (Some(usd), _) => Some(Cost { scope: Scope::Turn, usd, ..Cost::default() }),
            (None, Some(usd)) => Some(Cost { scope: Scope::Session, usd, ..Cost::default() }),
            (None, None) => None,
        };
        let cost = cost.filter(|cost| usage.is_some() || cost.usd > 0.0);
        let api_duration_ms = line.duration_api_ms.filter(|_| known("duration_api_ms"));
        // Of a failed turn, `completed` states only that the program ended it.
        let reason = line.terminal_reason.filter(|reason| !failed || *reason != "completed");
        let class = reason.as_ref().and_then(class_of_reason);
        let class = class.or_else(|| cause.as_ref().and_then(class_of_cause));
        TurnEnded {
            outcome,
            cause,
            class,
            reason: reason.or(line.subtype.filter(|subtype| !failed || *subtype != "success")),
            stop_reason: line.stop_reason.map(|reason| match reason == DEFERRED {
                true => Text::plain("tool_use"),
                false => reason,
            }),
            errors,
            http_status: line.api_error_status,
            final_text,
            structured: line.structured_output,
            usage,
            by_model,
            cost,
            duration_ms: line.duration_ms.filter(|_| known("duration_ms")),
            duration_measured: false,
            api_duration_ms: self.api_duration_of_turn(api_duration_ms, line.duration_ms),
            steps: line.num_turns.filter(|_| known("num_turns")),
            denials: line.permission_denials,
            replay: false,
            to_be_continued: false,
        }
    }

    /// The duration of the model's requests in this turn, from the total of the process. It is
    /// unknown in the first turn of a resumed process, whose total includes earlier processes and
    /// so exceeds the turn, and in a cancelled turn, whose total is zero.
    fn api_duration_of_turn(&mut self, total: Option<u64>, turn_ms: Option<u64>) -> Option<u64> {
        let total = total.filter(|total| *total > 0)?;
        let before = std::mem::replace(&mut self.api_duration_ms, total);
        let api_ms = total.checked_sub(before).filter(|api_ms| *api_ms > 0)?;
        Some(api_ms).filter(|api_ms| turn_ms.is_none_or(|turn_ms| *api_ms <= turn_ms))
    }

    /// The usage of each model in this turn, from its totals in the process.
    fn models_of_turn(&mut self, models: Option<&Json<'_>>) -> Vec<Usage<'static>> {
        let Some(models) = models.map(usage_by_model) else { return Vec::new() };
        let turn = |usage: Usage<'static>| {
            let model = usage.model.as_ref().map(ToString::to_string).unwrap_or_default();
            let before = self.models.insert(model, usage.clone()).unwrap_or_default();
            usage.since(&before)
        };
        models.into_iter().map(turn).filter(|usage| usage.all() > 0).collect()
    }
}

fn outcome(line: &Line<'_>, failed: bool, unanswered_call: bool) -> Outcome {
    let stopped =
        line.terminal_reason.as_ref().is_some_and(|why| why.body().starts_with("aborted"));
    match line.subtype.as_ref().map_or("", Text::body) {
        _ if stopped => Outcome::Cancelled,
        "error_max_turns" | "error_max_budget_usd" => Outcome::LimitReached,
        _ if has_stop_reason(line, "refusal") => Outcome::Refused,
        _ if failed => Outcome::Failed,
        // Its host has put off the call, which the program makes again when it is resumed.
        _ if is_deferred(line) => Outcome::WaitingForClient,
        // With `--json-schema` a completed turn also stops for `tool_use`, but its call was
        // answered.
        "success" if unanswered_call && has_stop_reason(line, "tool_use") => {
            Outcome::WaitingForClient
        }
        "success" => Outcome::Completed,
        _ => Outcome::Failed,
    }
}

/// Whether the turn has ended because its host has deferred a call.
fn is_deferred(line: &Line<'_>) -> bool {
    line.terminal_reason.as_ref().is_some_and(|reason| *reason == DEFERRED)
}

/// Whether the model stopped for this reason.
fn has_stop_reason(line: &Line<'_>, reason: &str) -> bool {
    line.stop_reason.as_ref().is_some_and(|stop| *stop == *reason)
}

fn class_of_reason(reason: &Text<'_>) -> Option<ErrorClass> {
    match reason.body() {
        "prompt_too_long" => Some(ErrorClass::ContextOverflow),
        "max_turns" | "budget_exhausted" => Some(ErrorClass::Limit),
        "image_error" => Some(ErrorClass::BadRequest),
        _ => None,
    }
}

/// The class of an error for which the program has no code.
fn class_of_cause(cause: &Text<'_>) -> Option<ErrorClass> {
    cause.body().starts_with("No conversation found").then_some(ErrorClass::NotFound)
}

fn own_list(list: Vec<Text<'_>>) -> Vec<Text<'static>> {
    list.into_iter().map(Text::into_owned).collect()
}

/// The cost of all models in a `modelUsage`.
pub(in crate::dialect) fn total_cost(models: &Json<'_>) -> Option<f64> {
    let models: BTreeMap<String, Json<'_>> = models.read()?;
    let costs = models.values().filter_map(read::record_of::<ModelUsage<'_>>);
    // An empty sum of floats is a negative zero.
    Some(costs.filter_map(|model| model.usd).fold(0.0, |sum, usd| sum + usd))
}

/// The usage of each model in a `modelUsage`.
pub(in crate::dialect) fn usage_by_model(models: &Json<'_>) -> Vec<Usage<'static>> {
    let models: BTreeMap<String, Json<'_>> = models.read().unwrap_or_default();
    let usage = |(name, model): (String, Json<'_>)| {
        let model = read::record_of::<ModelUsage<'_>>(&model)?;
        Some(Usage {
            scope: Scope::Turn,
            model: Some(Text::from(name)),
            input: model.input,
            cache_read: model.cache_read,
            cache_write: model.cache_write,
            output: model.output,
            reasoning: model.thinking,
            estimated: model.estimated.unwrap_or(false),
            ..Usage::default()
        })
    };
    models.into_iter().filter_map(usage).collect()
}
