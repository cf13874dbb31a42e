//! The one `finish` of a stream: what all its turns used, and how the last of them ended; and before
//! it the `error` of every turn that failed.

use super::Specification;
use crate::dialect::Output;
use crate::event::{Error, ErrorClass, Event, Outcome, Reason, TurnEnded, Usage, own_usage};
use crate::json::Text;
use crate::json::write::Object;

/// How many errors of a turn are kept to find its cause among them.
const ERRORS_KEPT: usize = 100;

/// What `finish` will say.
#[derive(Debug, Default)]
pub(super) struct Finish {
    usage: Option<Usage<'static>>,
    cost_usd: Option<f64>,
    duration_ms: Option<u64>,
    last: Option<LastTurn>,
}

/// How the last turn ended.
#[derive(Debug)]
struct LastTurn {
    outcome: Outcome,
    word: Text<'static>,
    /// Why it ended, where no part of its own says so.
    cause: Option<Text<'static>>,
    /// The agent did not say that it was over.
    cut_off: bool,
}

impl Finish {
    /// Adds a turn.
    pub(super) fn add(&mut self, ended: &TurnEnded<'_>, event: &Event<'_>, out: &mut Output) {
        if let Some(usage) = &ended.usage {
            let so_far = self.usage.take().unwrap_or_default();
            self.usage = Some(so_far.plus(&own_usage(usage.clone())));
        }
        if let Some(cost) = &ended.cost {
            self.cost_usd = Some(self.cost_usd.unwrap_or(0.0) + cost.usd);
        }
        if let Some(duration) = ended.duration_ms {
            self.duration_ms = Some(self.duration_ms.unwrap_or(0).saturating_add(duration));
        }
        if self.last.as_ref().is_some_and(|last| last.cause.is_some()) {
            out.lost("why a turn before the last one ended");
        }
        self.last = Some(LastTurn {
            outcome: ended.outcome.clone(),
            word: word_of(ended),
            cause: ended
                .cause
                .clone()
                .filter(|_| !is_failure(&ended.outcome))
                .map(Text::into_owned),
            cut_off: matches!(
                event.source.synthetic,
                Some(Reason::InputEnded | Reason::ProcessEnded)
            ),
        });
    }

    /// Writes the part, and forgets all of it.
    pub(super) fn write(
        &mut self,
        specification: Specification,
        session: Option<&Text<'_>>,
        client_must_answer: bool,
        out: &mut Output,
    ) {
        let turns = std::mem::take(self);
        let mut part = out.record("finish");
        part.object("finishReason", |reason| {
            let cut_off = turns.last.as_ref().is_some_and(|last| last.cut_off);
            let outcome = turns.last.as_ref().map(|last| &last.outcome);
            reason.string(
                "unified",
                match specification {
                    Specification::V4 if cut_off => "interrupted",
                    _ => unified(outcome, client_must_answer),
                },
            );
            reason.text_if("raw", turns.last.as_ref().map(|last| &last.word));
        });
        part.object("usage", |usage| counts(usage, turns.usage.as_ref()));
        part.object("providerMetadata", |metadata| {
            metadata.object("interlingua", |facts| {
                facts.text_if("sessionId", session);
                turns.facts(facts);
            });
        });
        part.end();
    }

    fn facts(&self, facts: &mut Object<'_>) {
        if let Some(last) = &self.last {
            facts.string("outcome", last.outcome.as_str());
            facts.text_if("cause", last.cause.as_ref());
        }
        if let Some(usd) = self.cost_usd.filter(|usd| usd.is_finite()) {
            // A sum leaves noise behind the digits that money is told in.
            let usd = (usd * 1e8).round() / 1e8;
            facts.raw("costUsd", &usd.to_string());
        }
        facts.number_if("durationMs", self.duration_ms);
    }
}

/// What the end of a turn is called: a model's word only where it was the model that ended it.
fn word_of(ended: &TurnEnded<'_>) -> Text<'static> {
    let by_model = match &ended.outcome {
        Outcome::Failed | Outcome::Cancelled | Outcome::TimedOut => None,
        _ => ended.stop_reason.as_ref(),
    };
    match by_model.or(ended.reason.as_ref()) {
        Some(word) => word.clone().into_owned(),
        None => Text::from(ended.outcome.as_str().to_owned()),
    }
}

/// The errors of the turn at hand, until it is known which of them ended it.
#[derive(Debug, Default)]
pub(super) struct Errors(Vec<Text<'static>>);

impl Errors {
    /// Keeps an error until it is known whether the turn failed of it.
    pub(super) fn add(&mut self, error: &Error<'_>, out: &mut Output) {
        if self.0.len() < ERRORS_KEPT {
            self.0.push(error.message.clone().into_owned());
        } else {
            out.lost("error that did not end the turn");
        }
    }

    /// Counts the errors that the cause of the turn's end does not tell.
    pub(super) fn forget(&mut self, cause: Option<&Text<'_>>, out: &mut Output) {
        let cause = cause.map(Text::to_plain).unwrap_or_default();
        for message in self.0.drain(..) {
            if !cause.contains(&*message.to_plain()) {
                out.lost("error that did not end the turn");
            }
        }
    }
}

/// Says that a turn failed, and why.
pub(super) fn error_part(ended: &TurnEnded<'_>, out: &mut Output) {
    let class = match (&ended.class, ended.http_status) {
        (Some(class), _) => class.clone(),
        (None, Some(status)) => ErrorClass::of_http_status(status),
        (None, None) if ended.outcome == Outcome::TimedOut => ErrorClass::TimedOut,
        (None, None) => ErrorClass::Unspecified,
    };
    let mut part = out.record("error");
    part.object("error", |error| {
        match &ended.cause {
            Some(cause) => error.text("message", cause),
            None if ended.outcome == Outcome::TimedOut => {
                error.string("message", "the turn took too long")
            }
            None => error.string("message", "the turn failed, and the agent does not say why"),
        };
        error.number_if("statusCode", ended.http_status);
        if class != ErrorClass::Unspecified {
            error.string("code", class.as_str()).flag("isRetryable", class.may_be_retried());
        }
    });
    part.end();
}

/// Whether a turn that ended so is told as an error.
pub(super) fn is_failure(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Failed | Outcome::TimedOut)
}

/// The word that consumers act on: they run their tools after `tool-calls`, and after `stop` too.
fn unified(outcome: Option<&Outcome>, client_must_answer: bool) -> &'static str {
    match outcome {
        Some(Outcome::Completed | Outcome::WaitingForClient) if client_must_answer => "tool-calls",
        Some(Outcome::Completed) => "stop",
        Some(Outcome::LimitReached) => "length",
        Some(Outcome::Refused) => "content-filter",
        Some(outcome) if is_failure(outcome) => "error",
        _ => "other",
    }
}

fn counts(usage: &mut Object<'_>, known: Option<&Usage<'_>>) {
    usage.object("inputTokens", |input| {
        if let Some(known) = known {
            input.number_if("total", known.input_total());
            input.number_if("noCache", known.input);
            input.number_if("cacheRead", known.cache_read);
            input.number_if("cacheWrite", known.cache_write);
        }
    });
    usage.object("outputTokens", |output| {
        if let Some(known) = known {
            let text = known.output.zip(known.reasoning);
            output.number_if("total", known.output);
            output.number_if("text", text.map(|(all, reasoning)| all.saturating_sub(reasoning)));
            output.number_if("reasoning", known.reasoning);
        }
    });
}
