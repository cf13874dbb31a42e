//! The one `finish` of a stream: what all its turns used, and how the last of them ended.

use crate::dialect::Output;
use crate::event::{Outcome, TurnEnded, Usage, own_usage};
use crate::json::Text;
use crate::json::write::Object;

/// What `finish` will say.
#[derive(Debug, Default)]
pub(super) struct Finish {
    session: Option<Text<'static>>,
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
    cause: Option<Text<'static>>,
}

impl Finish {
    /// Keeps the session's id.
    pub(super) fn of_session(&mut self, id: Option<&Text<'_>>) {
        if let Some(id) = id {
            self.session = Some(id.clone().into_owned());
        }
    }

    /// Adds a turn.
    pub(super) fn add(&mut self, ended: &TurnEnded<'_>) {
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
        let word = ended.stop_reason.as_ref().or(ended.reason.as_ref());
        self.last = Some(LastTurn {
            outcome: ended.outcome.clone(),
            word: match word {
                Some(word) => word.clone().into_owned(),
                None => Text::from(ended.outcome.as_str().to_owned()),
            },
            cause: ended.cause.clone().map(Text::into_owned),
        });
    }

    /// Writes the part, and forgets all but the session.
    pub(super) fn write(&mut self, client_must_answer: bool, out: &mut Output) {
        let turns = std::mem::take(self);
        let mut part = out.record("finish");
        part.object("finishReason", |reason| {
            let outcome = turns.last.as_ref().map(|last| &last.outcome);
            reason.string("unified", unified(outcome, client_must_answer));
            reason.text_if("raw", turns.last.as_ref().map(|last| &last.word));
        });
        part.object("usage", |usage| counts(usage, turns.usage.as_ref()));
        part.object("providerMetadata", |metadata| {
            metadata.object("interlingua", |facts| turns.facts(facts));
        });
        part.end();
        self.session = turns.session;
    }

    fn facts(&self, facts: &mut Object<'_>) {
        facts.text_if("sessionId", self.session.as_ref());
        if let Some(last) = &self.last {
            facts.string("outcome", last.outcome.as_str());
            // A failed turn has told its cause in a part of its own.
            facts.text_if("cause", last.cause.as_ref().filter(|_| !is_failure(&last.outcome)));
        }
        if let Some(usd) = self.cost_usd.filter(|usd| usd.is_finite()) {
            // A sum leaves noise behind the digits that money is told in.
            let usd = (usd * 1e8).round() / 1e8;
            facts.raw("costUsd", &usd.to_string());
        }
        facts.number_if("durationMs", self.duration_ms);
    }
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
