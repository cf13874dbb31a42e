//! How a turn of Claude ended, and what it took.
//!
//! `usage` and `duration_ms` are of the turn; `total_cost_usd`, `duration_api_ms` and `modelUsage` are
//! of the whole process. A turn that was stopped or failed prints zeros for what it did not count, and so
//! does a turn that went on without streaming.

use std::collections::BTreeMap;

use super::wire::{Line, ModelUsage, Usage as WireUsage};
use crate::event::{Cost, ErrorClass, Outcome, Scope, TurnEnded, Usage};
use crate::json::read;
use crate::json::{Json, Text};

/// With what the program starts sentences that are for its authors.
const DIAGNOSTIC: &str = "[ede_diagnostic]";

/// What the process had used when the last turn ended.
#[derive(Debug, Default)]
pub(super) struct Endings {
    api_duration_ms: u64,
    models: BTreeMap<String, Usage<'static>>,
}

impl Endings {
    /// How a turn ended, as its `result` tells it.
    pub(super) fn turn_ended<'a>(
        &mut self,
        line: Line<'a>,
        unanswered_call: bool,
    ) -> TurnEnded<'a> {
        let failed = line.is_error.unwrap_or(false);
        let outcome = outcome(&line, failed, unanswered_call);
        let errors =
            line.errors.as_ref().and_then(|errors| errors.read().map(own_list)).unwrap_or_default();
        let (final_text, said) = if failed { (None, line.result) } else { (line.result, None) };
        let told = errors.iter().find(|error| !error.body().starts_with(DIAGNOSTIC));
        let cause = said.or_else(|| told.cloned()).filter(|_| outcome != Outcome::Completed);
        // Our own writer says which of its zeros are unknown. A turn that was stopped prints zeros too.
        let unknown: Vec<Text<'_>> =
            line.unknown_fields.as_ref().and_then(|names| names.read()).unwrap_or_default();
        let known = |name: &str| !unknown.iter().any(|unknown| *unknown == *name);
        let usage = line.usage.map(|mut usage| {
            usage.input = usage.input.filter(|_| known("usage.input_tokens"));
            usage.output = usage.output.filter(|_| known("usage.output_tokens"));
            counts(usage, Scope::Turn)
        });
        let total_cost_usd = line.total_cost_usd.filter(|_| known("total_cost_usd"));
        let spent = line.models_since.as_ref().and_then(cost_since);
        let by_model = match &line.models_since {
            Some(models) => models_of(models),
            None => self.models_of_turn(line.models.as_ref().filter(|_| known("modelUsage"))),
        };
        // Of a turn that failed, and of requests that were not streamed, zeros are printed.
        let models_used = by_model.iter().any(|usage| usage.all() > 0);
        let counted = |usage: &Usage<'_>| usage.all() > 0 || !(failed || models_used);
        let usage = usage.filter(counted).filter(|_| known("usage"));
        let cost = match (spent, total_cost_usd) {
            (Some(usd), _) => Some(Cost { scope: Scope::Turn, usd, ..Cost::default() }),
            (None, Some(usd)) => Some(Cost { scope: Scope::Session, usd, ..Cost::default() }),
            (None, None) => None,
        };
        let cost = cost.filter(|cost| usage.is_some() || cost.usd > 0.0);
        let api_duration_ms = line.duration_api_ms.filter(|_| known("duration_api_ms"));
        // Where the stream says that a turn failed and how it came to an end, the end is no reason.
        let reason = line.terminal_reason.filter(|reason| !failed || *reason != "completed");
        let class = reason.as_ref().and_then(class_of_reason);
        let class = class.or_else(|| cause.as_ref().and_then(class_of_cause));
        TurnEnded {
            outcome,
            cause,
            class,
            reason: reason.or(line.subtype.filter(|subtype| !failed || *subtype != "success")),
            stop_reason: line.stop_reason,
            errors,
            http_status: line.api_error_status,
            final_text,
            structured: line.structured_output,
            usage,
            by_model,
            cost,
            duration_ms: line.duration_ms.filter(|_| known("duration_ms")),
            api_duration_ms: self.api_duration_of_turn(api_duration_ms, line.duration_ms),
            steps: line.num_turns.filter(|_| known("num_turns")),
            denials: line.permission_denials,
            replay: false,
        }
    }

    /// How long the model took in this turn; `None` where that is not known: a resumed process
    /// starts with what was before it, and a turn that was stopped says zero.
    fn api_duration_of_turn(&mut self, told: Option<u64>, turn_ms: Option<u64>) -> Option<u64> {
        let told = told.filter(|told| *told > 0)?;
        let before = std::mem::replace(&mut self.api_duration_ms, told);
        let turn = told.checked_sub(before).filter(|turn| *turn > 0)?;
        Some(turn).filter(|turn| turn_ms.is_none_or(|whole| *turn <= whole))
    }

    /// What each model used in this turn, out of what it used since the process started.
    fn models_of_turn(&mut self, models: Option<&Json<'_>>) -> Vec<Usage<'static>> {
        let Some(models) = models.map(models_of) else { return Vec::new() };
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
        _ if stopped_for(line, "refusal") => Outcome::Refused,
        _ if failed => Outcome::Failed,
        // With `--json-schema` a turn is over when the model has called a tool with the answer.
        "success" if unanswered_call && stopped_for(line, "tool_use") => Outcome::WaitingForClient,
        "success" => Outcome::Completed,
        _ => Outcome::Failed,
    }
}

/// Whether the model stopped for a reason.
fn stopped_for(line: &Line<'_>, reason: &str) -> bool {
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

/// What the program says in words only.
fn class_of_cause(cause: &Text<'_>) -> Option<ErrorClass> {
    cause.body().starts_with("No conversation found").then_some(ErrorClass::NotFound)
}

fn own_list(list: Vec<Text<'_>>) -> Vec<Text<'static>> {
    list.into_iter().map(Text::into_owned).collect()
}

/// What all models together have cost, as `modelUsage` has it.
pub(in crate::dialect) fn cost_since(models: &Json<'_>) -> Option<f64> {
    let models: BTreeMap<String, Json<'_>> = models.read()?;
    let costs = models.values().filter_map(read::record_of::<ModelUsage<'_>>);
    // An empty sum of floats is a negative zero.
    Some(costs.filter_map(|model| model.usd).fold(0.0, |sum, usd| sum + usd))
}

/// What each model used, as `modelUsage` has it.
pub(in crate::dialect) fn models_of(models: &Json<'_>) -> Vec<Usage<'static>> {
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

pub(super) fn counts(usage: WireUsage<'_>, scope: Scope) -> Usage<'_> {
    Usage {
        scope,
        input: usage.input,
        cache_read: usage.cache_read,
        cache_write: usage.cache_write,
        output: usage.output,
        reasoning: usage.details.and_then(|details| details.thinking),
        ..Usage::default()
    }
}
