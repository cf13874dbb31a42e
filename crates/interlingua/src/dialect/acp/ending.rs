//! The response to a prompt: a stop reason for a turn that ended, an error for one that failed.
//!
//! The protocol has no stop reason for a failure. A client shows an error, and would take any stop
//! reason for success. Gemini CLI, OpenCode and Qwen Code respond in the same way.

use crate::dialect::Output;
use crate::event::{ErrorClass, Outcome, TurnEnded, Usage};
use crate::json::Text;
use crate::json::write::{self, Object};

/// Writes the response to the prompt with this id, or with `null` if the id is unknown.
pub(super) fn write_prompt_response(id: Option<u64>, ended: &TurnEnded<'_>, out: &mut Output) {
    let mut response = Object::open(out.bytes());
    response.fixed(r#""jsonrpc":"2.0""#);
    match id {
        Some(id) => response.number("id", id),
        None => response.raw("id", "null"),
    };
    let failed = matches!(ended.outcome, Outcome::Failed | Outcome::TimedOut);
    if failed {
        response.object("error", |error| {
            error.raw("code", code_of(ended.class.as_ref()));
            match &ended.cause {
                Some(cause) => error.text("message", cause),
                None if ended.outcome == Outcome::TimedOut => {
                    error.string("message", "the turn took too long")
                }
                None => {
                    error.string("message", "the turn failed, and the agent reported no reason")
                }
            };
            error.object("data", |data| {
                data.object("interlingua", |facts| write_facts(facts, ended, true));
            });
        });
    } else {
        response.object("result", |result| {
            result.string("stopReason", stop_reason(ended));
            let standard_usage = ended.usage.as_ref().filter(|usage| has_required_counts(usage));
            if let Some(usage) = standard_usage {
                result.object("usage", |counts| write_usage(counts, usage));
            }
            result.object("_meta", |meta| {
                meta.object("interlingua", |facts| {
                    write_facts(facts, ended, standard_usage.is_none())
                });
            });
        });
    }
    response.end();
}

/// The codes that clients act on; every other failure is an internal error of the agent.
fn code_of(class: Option<&ErrorClass>) -> &'static str {
    match class {
        Some(ErrorClass::Authentication) => "-32000",
        Some(ErrorClass::NotFound) => "-32002",
        _ => "-32603",
    }
}

fn stop_reason(ended: &TurnEnded<'_>) -> &'static str {
    match ended.outcome {
        Outcome::LimitReached if is_token_limit(ended) => "max_tokens",
        Outcome::LimitReached => "max_turn_requests",
        Outcome::Refused => "refusal",
        Outcome::Cancelled => "cancelled",
        _ => "end_turn",
    }
}

/// Whether the limit is one on tokens.
fn is_token_limit(ended: &TurnEnded<'_>) -> bool {
    let reason = ended.stop_reason.as_ref().or(ended.reason.as_ref());
    reason.is_some_and(|reason| {
        let reason = reason.to_plain().to_ascii_lowercase();
        reason.contains("token") || reason == "length"
    })
}

/// Whether the counts that the protocol requires are known.
fn has_required_counts(usage: &Usage<'_>) -> bool {
    usage.input.is_some() && usage.output.is_some()
}

/// Writes the counts in the form of the protocol: every kind separately, and their sum.
fn write_usage(counts: &mut Object<'_>, usage: &Usage<'_>) {
    let output = usage.output.unwrap_or(0);
    // A count of thoughts that is not part of the output cannot be subtracted from it.
    let thought = usage.reasoning.filter(|thought| *thought <= output);
    counts.number("inputTokens", usage.input.unwrap_or(0));
    counts.number("outputTokens", output - thought.unwrap_or(0));
    let total = usage.input_total().unwrap_or(0).saturating_add(output);
    counts.number("totalTokens", total);
    counts.number_if("thoughtTokens", thought);
    counts.number_if("cachedReadTokens", usage.cache_read);
    counts.number_if("cachedWriteTokens", usage.cache_write);
    let extra_reasoning = usage.reasoning.filter(|_| thought.is_none());
    if extra_reasoning.is_some() || usage.estimated {
        counts.object("_meta", |meta| {
            meta.object("interlingua", |facts| {
                facts.number_if("reasoning", extra_reasoning);
                if usage.estimated {
                    facts.flag("estimated", true);
                }
            });
        });
    }
}

/// Writes the facts that the protocol has no field for.
fn write_facts(facts: &mut Object<'_>, ended: &TurnEnded<'_>, with_usage: bool) {
    facts.string("outcome", ended.outcome.as_str());
    facts.text_if("cause", ended.cause.as_ref());
    if let Some(class) = &ended.class {
        facts.string("class", class.as_str());
    }
    facts.number_if("httpStatus", ended.http_status);
    facts.text_if("reason", ended.reason.as_ref());
    facts.text_if("stopReason", ended.stop_reason.as_ref());
    if !ended.errors.is_empty() {
        write_errors(facts, &ended.errors);
    }
    if let Some(usage) = ended.usage.as_ref().filter(|_| with_usage) {
        facts.object("usage", |counts| write_counts(counts, usage));
    }
    if !ended.by_model.is_empty() {
        facts.objects("byModel", &ended.by_model, write_counts);
    }
    if let Some(cost) = ended.cost.as_ref().filter(|cost| cost.usd.is_finite()) {
        facts.raw("costUsd", &cost.usd.to_string());
        if cost.estimated {
            facts.flag("costEstimated", true);
        }
    }
    facts.number_if("durationMs", ended.duration_ms);
    facts.number_if("apiDurationMs", ended.api_duration_ms);
    facts.number_if("steps", ended.steps);
    facts.json_if("structured", ended.structured.as_ref());
    facts.json_if("denials", ended.denials.as_ref());
    if ended.to_be_continued {
        facts.flag("toBeContinued", true);
    }
}

fn write_errors(facts: &mut Object<'_>, errors: &[Text<'_>]) {
    let list = facts.name("errors");
    list.push(b'[');
    for (at, error) in errors.iter().enumerate() {
        if at > 0 {
            list.push(b',');
        }
        write::text(list, error);
    }
    list.push(b']');
}

fn write_counts(counts: &mut Object<'_>, usage: &Usage<'_>) {
    counts.text_if("model", usage.model.as_ref());
    counts.number_if("input", usage.input).number_if("cacheRead", usage.cache_read);
    counts.number_if("cacheWrite", usage.cache_write).number_if("output", usage.output);
    counts.number_if("reasoning", usage.reasoning).number_if("total", usage.total);
    if usage.estimated {
        counts.flag("estimated", true);
    }
}
