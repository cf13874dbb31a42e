//! Encodes `finish`, with the usage of all turns and the outcome of the last one, and the `error`
//! of every failed turn.

use super::Specification;
use crate::dialect::Output;
use crate::dialect::ai_parts::{self, Turns, is_failure};
use crate::event::{Error, ErrorClass, Event, Outcome, Reason, TurnEnded, Usage};
use crate::json::Text;
use crate::json::write::Object;

/// The number of errors of a turn that are kept, to find its cause among them.
const ERRORS_KEPT: usize = 100;

/// The content of `finish`.
#[derive(Debug, Clone, Default)]
pub(super) struct Finish {
    turns: Turns,
    /// The raw finish reason of the last turn.
    raw_reason: Option<Text<'static>>,
    /// The agent did not report the end of the last turn.
    cut_off: bool,
}

impl Finish {
    /// Adds a turn.
    pub(super) fn add(&mut self, ended: &TurnEnded<'_>, event: &Event<'_>, out: &mut Output) {
        // The cause of a failure is in its `error` part.
        let cause = ended.cause.as_ref().filter(|_| !is_failure(&ended.outcome));
        self.turns.add(ended, cause, out);
        self.raw_reason = Some(raw_reason(ended));
        self.cut_off = event.synthetic.as_ref().is_some_and(Reason::is_end_of_input);
    }

    /// Writes the part, and begins anew.
    pub(super) fn write(
        &mut self,
        specification: Specification,
        session: Option<&Text<'_>>,
        client_must_answer: bool,
        out: &mut Output,
    ) {
        let Self { turns, raw_reason, cut_off } = std::mem::take(self);
        let mut part = out.record("finish");
        part.object("finishReason", |reason| {
            reason.string(
                "unified",
                match specification {
                    Specification::V4 if cut_off => "interrupted",
                    _ => turns.finish_reason(client_must_answer),
                },
            );
            reason.text_if("raw", raw_reason.as_ref());
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
}

/// The raw finish reason of a turn: the model's stop reason only if the model ended the turn.
fn raw_reason(ended: &TurnEnded<'_>) -> Text<'static> {
    let by_model = match &ended.outcome {
        Outcome::Failed | Outcome::Cancelled | Outcome::TimedOut => None,
        _ => ended.stop_reason.as_ref(),
    };
    match by_model.or(ended.reason.as_ref()) {
        Some(word) => word.clone().into_owned(),
        None => Text::from(ended.outcome.as_str().to_owned()),
    }
}

/// The errors of the current turn, until it is known which of them ended it.
#[derive(Debug, Clone, Default)]
pub(super) struct Errors(Vec<Text<'static>>);

impl Errors {
    /// Keeps an error until it is known whether it ended the turn.
    pub(super) fn add(&mut self, error: &Error<'_>, out: &mut Output) {
        if self.0.len() < ERRORS_KEPT {
            self.0.push(error.message.clone().into_owned());
        } else {
            out.lost("errors that did not end the turn");
        }
    }

    /// Counts the errors that the cause of the turn's end does not contain.
    pub(super) fn forget(&mut self, cause: Option<&Text<'_>>, out: &mut Output) {
        let cause = cause.map(Text::to_plain).unwrap_or_default();
        for message in self.0.drain(..) {
            if !cause.contains(&*message.to_plain()) {
                out.lost("errors that did not end the turn");
            }
        }
    }
}

/// Writes why a turn failed.
pub(super) fn error_part(ended: &TurnEnded<'_>, out: &mut Output) {
    let class = match (&ended.class, ended.http_status) {
        (Some(class), _) => class.clone(),
        (None, Some(status)) => ErrorClass::of_http_status(status),
        (None, None) if ended.outcome == Outcome::TimedOut => ErrorClass::TimedOut,
        (None, None) => ErrorClass::Unspecified,
    };
    let mut part = out.record("error");
    part.object("error", |error| {
        error.text("message", &ai_parts::failure(ended));
        error.number_if("statusCode", ended.http_status);
        if class != ErrorClass::Unspecified {
            error.string("code", class.as_str()).flag("isRetryable", class.may_be_retried());
        }
    });
    part.end();
}

fn counts(usage: &mut Object<'_>, known: Option<&Usage<'_>>) {
    usage.object("inputTokens", |input| {
        if let Some(known) = known {
            input.number_if("total", ai_parts::input_tokens(known));
            input.number_if("noCache", known.input);
            input.number_if("cacheRead", known.cache_read);
            input.number_if("cacheWrite", known.cache_write);
        }
    });
    usage.object("outputTokens", |output| {
        if let Some(known) = known {
            output.number_if("total", known.output);
            output.number_if("text", ai_parts::text_tokens(known));
            output.number_if("reasoning", known.reasoning);
        }
    });
}
