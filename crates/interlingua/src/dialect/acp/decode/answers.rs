//! Answers of either side: how a turn ended, what it used, why a request failed, what the user
//! decided.

use super::agent::Agent;
use super::{AcpDecoder, Asked, Asking, question_answered};
use crate::dialect::EventSink;
use crate::dialect::acp::wire::{Answer, FailureData, Message};
use crate::dialect::acp::wire_meta::{OurUsage, Ours, Quota, TokenCount, WireUsage};
use crate::dialect::decode::Own;
use crate::dialect::json_rpc::Failure;
use crate::event::{
    Cost, Error, ErrorClass, Event, Native, Outcome, Scope, TurnEnded, Usage, own_usage,
};
use crate::json::read;
use crate::json::{Json, Text};

impl AcpDecoder {
    pub(super) fn answered<'a>(
        &mut self,
        message: &mut Message<'a>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let Some(id) = message.id.take() else { return };
        if let Some(error) = message.error.take() {
            let failure = read::record_of::<Failure<'_>>(&error).unwrap_or_default();
            self.failed(&id, failure, own, sink);
            return;
        }
        let mut answer = message.result.take().unwrap_or_default();
        if let Some(selected) = answer.outcome.take() {
            self.permitted(&id, &selected, sink);
            return;
        }
        if answer.stop.is_some() {
            self.take_asked(&id);
            self.turn_ended(answer, sink);
            return;
        }
        let asked = self.take_asked(&id);
        if asked.is_none() && self.client_seen() {
            match self.take_asking(&id) {
                Some(Asking::Question) => {
                    question_answered(&id, own, sink);
                    return;
                }
                Some(_) => {
                    sink.event(Event::new(Native {
                        name: Text::plain("response"),
                        raw: own.json(),
                    }));
                    return;
                }
                None => {}
            }
        }
        let settings =
            answer.modes.is_some() || answer.models.is_some() || answer.options.is_some();
        let opens = answer.session.is_some()
            || match asked {
                Some(asked) => asked == Asked::Opening,
                // An answer that says nothing: it ends the history that was told before it.
                None => self.awaits_session() && (settings || self.telling_the_past()),
            };
        if answer.protocol.is_some() {
            self.connected(&mut answer);
        } else if opens {
            self.opened(&mut answer, sink);
        }
        sink.event(Event::new(Native { name: Text::plain("response"), raw: own.json() }));
    }

    /// The answer to a prompt.
    fn turn_ended(&mut self, mut answer: Answer<'_>, sink: &mut dyn EventSink) {
        let word = answer.stop.take().unwrap_or_default();
        let meta = answer.meta.take().unwrap_or_default();
        let told = answer.usage.take().and_then(turn_usage);
        let error = self.take_error(told.is_some());
        self.release(sink);
        self.begin_to_end(sink);
        self.end_block(sink);
        let told = self.of_all_requests(told, sink);
        let stopped = self.saying.stopped.take();
        let (quota, by_model) = meta.quota.map(of_quota).unwrap_or_default();
        let counted = self.usage.take();
        let mut ended = TurnEnded {
            outcome: outcome_of(&word),
            reason: Some(word),
            usage: told.or(quota).or(counted),
            by_model,
            cost: self.price.of_turn(),
            ..TurnEnded::default()
        };
        if let Some(ours) = meta.ours {
            add_ours(&mut ended, ours);
        }
        // What was said tells how the turn ended, and the agent's word for its end does not.
        if let Some(message) = error {
            ended.reason = None;
            let (class, http_status) = failure_of_text(&message.to_plain());
            fail(&mut ended, message, class, http_status, sink);
        } else if let Some(text) = stopped.filter(|_| ended.outcome == Outcome::Completed) {
            ended.outcome = Outcome::Cancelled;
            ended.reason = None;
            ended.cause = Some(text);
        }
        self.end_turn(ended, sink);
    }

    /// The tokens of the turn. OpenCode counts those of the last request alone, and a turn that called
    /// a tool had more than one.
    fn of_all_requests(
        &self,
        told: Option<Usage<'static>>,
        sink: &mut dyn EventSink,
    ) -> Option<Usage<'static>> {
        if self.agent != Agent::OpenCode || !self.calls.in_turn {
            return told;
        }
        if let Some(usage) = told {
            sink.event(Event::new(Usage { scope: Scope::Request, ..usage }));
        }
        None
    }

    /// An answer that says that a request failed.
    fn failed(
        &mut self,
        id: &Json<'_>,
        failure: Failure<'_>,
        own: Own<'_>,
        sink: &mut dyn EventSink,
    ) {
        let asked = self.take_asked(id);
        let code = failure.code.unwrap_or_default();
        // The agent asked for something that its client does not have.
        let of_client = asked.is_none() && self.client_seen() && self.take_asking(id).is_some();
        // A request that was not understood is no prompt that failed.
        let misunderstood = matches!(code, -32700 | -32602..=-32600);
        let ends = match asked {
            Some(Asked::Prompt | Asked::Opening) => true,
            Some(Asked::Else) => false,
            None => self.in_prompt() || !misunderstood || !self.session_open(),
        };
        if of_client || !ends {
            sink.event(Event::new(Native { name: Text::plain("response"), raw: own.json() }));
            return;
        }
        self.release(sink);
        self.begin_to_end(sink);
        let data = failure.data.as_ref();
        let facts = data.and_then(read::record_of::<FailureData<'_>>).unwrap_or_default();
        let details = data.and_then(Json::as_text).or(facts.details).or(facts.message);
        let message = failure.message.unwrap_or_default();
        let message = match details {
            Some(more) if !message.to_plain().contains(&*more.to_plain()) => {
                Text::from(format!("{message}: {more}"))
            }
            _ => message,
        };
        let (class, http_status) = classify(code, &message.to_plain());
        let counted = self.usage.take();
        let mut ended = TurnEnded {
            outcome: Outcome::Failed,
            reason: Some(Text::from(code.to_string())),
            usage: counted,
            cost: self.price.of_turn(),
            ..TurnEnded::default()
        };
        if let Some(ours) = facts.ours {
            let told = ours.class.as_ref().map(|class| ErrorClass::from(class.body()));
            let (class, status) = (told.unwrap_or_default(), ours.http_status);
            add_ours(&mut ended, ours);
            // A cause that the agent did not tell is no error of its own.
            if ended.errors.contains(&message) {
                fail(&mut ended, message, class, status, sink);
            }
        } else if class == ErrorClass::Cancelled {
            ended.outcome = Outcome::Cancelled;
            ended.cause = Some(message);
        } else {
            fail(&mut ended, message, class, http_status, sink);
        }
        self.end_turn(ended, sink);
    }
}

/// Ends a turn with a failure.
fn fail<'a>(
    ended: &mut TurnEnded<'a>,
    message: Text<'a>,
    class: ErrorClass,
    http_status: Option<u64>,
    sink: &mut dyn EventSink,
) {
    let code = ended.reason.as_ref().filter(|_| ended.outcome == Outcome::Failed);
    sink.event(Event::new(Error {
        class: class.clone(),
        message: message.borrowed(),
        code: code.cloned(),
        http_status,
        fatal: true,
    }));
    if !matches!(ended.outcome, Outcome::TimedOut) {
        ended.outcome = Outcome::Failed;
    }
    ended.cause = Some(message);
    ended.class = Some(class).filter(|class| *class != ErrorClass::Unspecified);
    ended.http_status = http_status;
}

fn outcome_of(word: &Text<'_>) -> Outcome {
    match word.body() {
        "end_turn" => Outcome::Completed,
        "max_tokens" | "max_turn_requests" => Outcome::LimitReached,
        "refusal" => Outcome::Refused,
        "cancelled" => Outcome::Cancelled,
        other => Outcome::Other(other.into()),
    }
}

/// What our own writer says of a turn beyond the protocol.
fn add_ours<'a>(ended: &mut TurnEnded<'a>, ours: Ours<'a>) {
    if let Some(outcome) = &ours.outcome {
        ended.outcome = Outcome::from(outcome.body());
    }
    ended.cause = ours.cause.or(ended.cause.take());
    ended.class = ours.class.map(|class| ErrorClass::from(class.body()));
    ended.reason = ours.reason;
    ended.stop_reason = ours.stop_reason;
    ended.http_status = ours.http_status;
    let errors = ours.errors.as_ref().and_then(Json::read::<Vec<String>>).unwrap_or_default();
    ended.errors = errors.into_iter().map(Text::from).collect();
    ended.usage = ours.usage.map(our_usage).or(ended.usage.take());
    ended.by_model = ours.by_model.into_iter().map(our_usage).collect();
    let estimated = ours.cost_estimated == Some(true);
    let cost = |usd| Cost { scope: Scope::Turn, usd, model: None, estimated };
    ended.cost = ours.cost_usd.map(cost).or(ended.cost.take());
    ended.duration_ms = ours.duration_ms;
    ended.api_duration_ms = ours.api_duration_ms;
    ended.steps = ours.steps;
    ended.structured = ours.structured;
    ended.denials = ours.denials;
}

fn our_usage(usage: OurUsage<'_>) -> Usage<'_> {
    Usage {
        scope: Scope::Turn,
        model: usage.model,
        input: usage.input,
        cache_read: usage.cache_read,
        cache_write: usage.cache_write,
        output: usage.output,
        reasoning: usage.reasoning,
        total: usage.total,
        estimated: usage.estimated == Some(true),
    }
}

/// The tokens of a turn.
fn turn_usage(usage: WireUsage<'_>) -> Option<Usage<'static>> {
    counts(usage, Scope::Turn)
}

/// The tokens of a request.
pub(super) fn request_usage(usage: WireUsage<'_>) -> Option<Usage<'static>> {
    counts(usage, Scope::Request)
}

/// Tokens. By the protocol the kinds are apart, and their sum is the total; agents that count cached
/// tokens among the input, or thoughts among the output, show it by their total. Zeros are no counts.
fn counts(usage: WireUsage<'_>, scope: Scope) -> Option<Usage<'static>> {
    let cached = usage.cache_read.unwrap_or(0).saturating_add(usage.cache_write.unwrap_or(0));
    let thought = usage.thought.unwrap_or(0);
    let plain = usage.input.unwrap_or(0).saturating_add(usage.output.unwrap_or(0));
    let beyond = usage.total.map(|total| total.saturating_sub(plain));
    let (cached_apart, thought_apart) = match beyond {
        None => (true, true),
        Some(0) => (false, false),
        Some(beyond) if beyond == thought => (false, true),
        Some(beyond) if beyond == cached => (true, false),
        Some(beyond) => (beyond > cached, beyond >= cached.saturating_add(thought)),
    };
    let ours = usage.meta.and_then(|meta| meta.ours).unwrap_or_default();
    let usage = Usage {
        scope,
        input: usage.input.map(|all| if cached_apart { all } else { all.saturating_sub(cached) }),
        cache_read: usage.cache_read,
        cache_write: usage.cache_write,
        output: usage
            .output
            .map(|all| if thought_apart { all.saturating_add(thought) } else { all }),
        reasoning: usage.thought.or(ours.reasoning),
        total: usage.total,
        estimated: ours.estimated == Some(true),
        model: None,
    };
    Some(usage).filter(|usage| usage.all() > 0)
}

/// Gemini's tokens, of the turn and of each model.
fn of_quota(quota: Quota<'_>) -> (Option<Usage<'static>>, Vec<Usage<'static>>) {
    let counts = |count: TokenCount<'_>, model: Option<Text<'_>>| {
        let usage = Usage {
            scope: Scope::Turn,
            model,
            input: count.input,
            output: count.output,
            ..Usage::default()
        };
        Some(own_usage(usage)).filter(|usage| usage.all() > 0)
    };
    let all = quota.count.and_then(|count| counts(count, None));
    let models = quota.models.into_iter();
    let by_model = models.filter_map(|of| counts(of.count?, of.model)).collect();
    (all, by_model)
}

/// What kind of failure a JSON-RPC error is. Gemini's code is the HTTP status.
fn classify(code: i64, message: &str) -> (ErrorClass, Option<u64>) {
    match code {
        400..=599 => {
            let status = code.unsigned_abs();
            (ErrorClass::of_http_status(status), Some(status))
        }
        -32000 => (ErrorClass::Authentication, None),
        -32002 => (ErrorClass::NotFound, None),
        -32800 => (ErrorClass::Cancelled, None),
        _ => failure_of_text(message),
    }
}

/// What kind of failure a message tells of: by the status that it names, or else by a few words.
pub(super) fn failure_of_text(message: &str) -> (ErrorClass, Option<u64>) {
    let after = |mark: &str| message.split_once(mark).map(|(_, rest)| rest);
    let named = [Some(message), after("(HTTP "), after("Internal error: ")];
    let status = named.into_iter().flatten().find_map(|text| {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        let status = digits.parse().ok().filter(|status| (400..=599).contains(status));
        status.filter(|_| digits.len() == 3)
    });
    if let Some(status) = status {
        return (ErrorClass::of_http_status(status), Some(status));
    }
    let text = message.to_ascii_lowercase();
    let wrong =
        || ["not valid", "invalid", "incorrect", "missing"].iter().any(|it| text.contains(it));
    let class = if text.contains("api key") && wrong() {
        ErrorClass::Authentication
    } else if text.contains("quota") {
        ErrorClass::Quota
    } else if text.contains("rate limit") {
        ErrorClass::RateLimit
    } else if text.contains("overloaded") {
        ErrorClass::Overloaded
    } else {
        ErrorClass::Unspecified
    };
    (class, None)
}
