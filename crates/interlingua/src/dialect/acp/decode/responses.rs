//! Responses of either side: how a turn ended, its usage, why a request failed, and what the user
//! decided.

use super::agent::Agent;
use super::{AcpDecoder, AgentRequest, ClientRequest};
use crate::dialect::EventSink;
use crate::dialect::acp::wire::{FailureData, Message, ResponseResult};
use crate::dialect::acp::wire_meta::{
    InterlinguaMeta, InterlinguaUsage, Quota, TokenCount, WireUsage,
};
use crate::dialect::decode::Own;
use crate::dialect::json_rpc::Failure;
use crate::event::{
    Cost, Error, ErrorClass, Event, Native, Outcome, Scope, TurnEnded, Usage, own_usage,
};
use crate::json::read;
use crate::json::{Json, Text};

impl AcpDecoder {
    pub(super) fn read_response<'a>(
        &mut self,
        message: &mut Message<'a>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let Some(id) = message.id.take() else { return };
        if let Some(error) = message.error.take() {
            let failure = read::record_of::<Failure<'_>>(&error).unwrap_or_default();
            self.read_error(&id, failure, own, sink);
            return;
        }
        let mut result = message.result.take().unwrap_or_default();
        if let Some(selected) = result.outcome.take() {
            self.read_permission_response(&id, &selected, result.answers.as_ref(), sink);
            return;
        }
        if result.stop.is_some() {
            self.take_client_request(&id);
            self.read_turn_end(result, sink);
            return;
        }
        let request = self.take_client_request(&id);
        if request.is_none() && self.client_seen {
            match self.take_agent_request(&id) {
                Some(AgentRequest::Question(question)) => {
                    question.emit_form_answer(&result, sink);
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
            result.modes.is_some() || result.models.is_some() || result.options.is_some();
        let opens = result.session.is_some()
            || match request {
                Some(request) => request == ClientRequest::Open,
                // A response without fields ends the history that was replayed before it.
                None => self.awaits_session() && (settings || self.is_replaying()),
            };
        if result.protocol.is_some() {
            self.learn_agent(&mut result);
        } else if opens {
            self.open_session(&mut result, sink);
        }
        sink.event(Event::new(Native { name: Text::plain("response"), raw: own.json() }));
    }

    /// Reads the response to a prompt, which ends the turn.
    fn read_turn_end(&mut self, mut result: ResponseResult<'_>, sink: &mut dyn EventSink) {
        let stop_reason = result.stop.take().unwrap_or_default();
        let meta = result.meta.take().unwrap_or_default();
        let reported = result.usage.take().and_then(turn_usage);
        let error = self.take_held_error(reported.is_some());
        self.release_held_text(sink);
        self.prepare_turn_end(sink);
        self.end_block(sink);
        let reported = self.usage_of_all_requests(reported, sink);
        let cancelled = self.streaming.cancelled.take();
        let (quota, by_model) = meta.quota.map(usage_of_quota).unwrap_or_default();
        let summed = self.usage.take();
        let mut ended = TurnEnded {
            outcome: outcome_of(&stop_reason),
            reason: Some(stop_reason),
            usage: reported.or(quota).or(summed),
            by_model,
            cost: self.session_cost.take_turn_cost(),
            ..TurnEnded::default()
        };
        if let Some(ours) = meta.ours {
            add_meta(&mut ended, ours);
        }
        // Copilot reports the failure or the cancellation as text, with the stop reason `end_turn`.
        if let Some(message) = error {
            ended.reason = None;
            let (class, http_status) = classify_text(&message.to_plain());
            fail(&mut ended, message, class, http_status, sink);
        } else if let Some(text) = cancelled.filter(|_| ended.outcome == Outcome::Completed) {
            ended.outcome = Outcome::Cancelled;
            ended.reason = None;
            ended.cause = Some(text);
        }
        self.end_turn(ended, sink);
    }

    /// The usage of the turn. OpenCode reports that of the last request alone, and a turn that
    /// called a tool had more than one.
    fn usage_of_all_requests(
        &self,
        reported: Option<Usage<'static>>,
        sink: &mut dyn EventSink,
    ) -> Option<Usage<'static>> {
        if self.agent != Agent::OpenCode || !self.calls.any_in_turn {
            return reported;
        }
        if let Some(usage) = reported {
            sink.event(Event::new(Usage { scope: Scope::Request, ..usage }));
        }
        None
    }

    /// Reads an error response, which ends the turn if the request was a prompt.
    fn read_error(
        &mut self,
        id: &Json<'_>,
        failure: Failure<'_>,
        own: Own<'_>,
        sink: &mut dyn EventSink,
    ) {
        let request = self.take_client_request(id);
        let code = failure.code.unwrap_or_default();
        // The agent requested something that its client does not have.
        let of_client =
            request.is_none() && self.client_seen && self.take_agent_request(id).is_some();
        // An error about a malformed request does not mean that a prompt failed.
        let malformed = matches!(code, -32700 | -32602..=-32600);
        let ends_turn = match request {
            Some(ClientRequest::Prompt | ClientRequest::Open) => true,
            Some(ClientRequest::Other) => false,
            None => self.has_live_turn() || !malformed || !self.is_session_open(),
        };
        if of_client || !ends_turn {
            sink.event(Event::new(Native { name: Text::plain("response"), raw: own.json() }));
            return;
        }
        self.release_held_text(sink);
        self.prepare_turn_end(sink);
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
        let summed = self.usage.take();
        let mut ended = TurnEnded {
            outcome: Outcome::Failed,
            reason: Some(Text::from(code.to_string())),
            usage: summed,
            cost: self.session_cost.take_turn_cost(),
            ..TurnEnded::default()
        };
        if let Some(ours) = facts.ours {
            let reported = ours.class.as_ref().map(|class| ErrorClass::from(class.body()));
            let (class, status) = (reported.unwrap_or_default(), ours.http_status);
            add_meta(&mut ended, ours);
            // A cause that Interlingua added is not an error that the agent reported.
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

/// Emits the error, and makes it the cause of the end of the turn.
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
        ..Error::default()
    }));
    if !matches!(ended.outcome, Outcome::TimedOut) {
        ended.outcome = Outcome::Failed;
    }
    ended.cause = Some(message);
    ended.class = Some(class).filter(|class| *class != ErrorClass::Unspecified);
    ended.http_status = http_status;
}

fn outcome_of(stop_reason: &Text<'_>) -> Outcome {
    match stop_reason.body() {
        "end_turn" => Outcome::Completed,
        "max_tokens" | "max_turn_requests" => Outcome::LimitReached,
        "refusal" => Outcome::Refused,
        "cancelled" => Outcome::Cancelled,
        other => Outcome::Other(other.into()),
    }
}

/// Adds the fields that Interlingua's own encoder writes about the end of a turn.
fn add_meta<'a>(ended: &mut TurnEnded<'a>, ours: InterlinguaMeta<'a>) {
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
    ended.usage = ours.usage.map(usage_from_meta).or(ended.usage.take());
    ended.by_model = ours.by_model.into_iter().map(usage_from_meta).collect();
    let estimated = ours.cost_estimated == Some(true);
    let cost = |usd| Cost { scope: Scope::Turn, usd, model: None, estimated };
    ended.cost = ours.cost_usd.map(cost).or(ended.cost.take());
    ended.duration_ms = ours.duration_ms;
    ended.api_duration_ms = ours.api_duration_ms;
    ended.steps = ours.steps;
    ended.structured = ours.structured;
    ended.denials = ours.denials;
    ended.to_be_continued = ours.to_be_continued == Some(true);
}

fn usage_from_meta(usage: InterlinguaUsage<'_>) -> Usage<'_> {
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

/// The usage of a turn.
fn turn_usage(usage: WireUsage<'_>) -> Option<Usage<'static>> {
    usage_of(usage, Scope::Turn)
}

/// The usage of a request.
pub(super) fn request_usage(usage: WireUsage<'_>) -> Option<Usage<'static>> {
    usage_of(usage, Scope::Request)
}

/// Converts counts of tokens. The protocol counts every kind separately, and their sum is the
/// total. For agents that include cached tokens in the input, or thoughts in the output, the total
/// is smaller. All counts being zero means that nothing was counted.
fn usage_of(usage: WireUsage<'_>, scope: Scope) -> Option<Usage<'static>> {
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

/// The usage of the turn and of each model, as Gemini reports it.
fn usage_of_quota(quota: Quota<'_>) -> (Option<Usage<'static>>, Vec<Usage<'static>>) {
    let usage_of_count = |count: TokenCount<'_>, model: Option<Text<'_>>| {
        let usage = Usage {
            scope: Scope::Turn,
            model,
            input: count.input,
            output: count.output,
            ..Usage::default()
        };
        Some(own_usage(usage)).filter(|usage| usage.all() > 0)
    };
    let all = quota.count.and_then(|count| usage_of_count(count, None));
    let models = quota.models.into_iter();
    let by_model = models.filter_map(|of| usage_of_count(of.count?, of.model)).collect();
    (all, by_model)
}

/// Classifies a JSON-RPC error. Gemini's code is the HTTP status.
fn classify(code: i64, message: &str) -> (ErrorClass, Option<u64>) {
    match code {
        400..=599 => {
            let status = code.unsigned_abs();
            (ErrorClass::of_http_status(status), Some(status))
        }
        -32000 => (ErrorClass::Authentication, None),
        -32002 => (ErrorClass::NotFound, None),
        -32800 => (ErrorClass::Cancelled, None),
        _ => classify_text(message),
    }
}

/// Classifies a failure by the HTTP status in its message, or else by a few known words.
pub(super) fn classify_text(message: &str) -> (ErrorClass, Option<u64>) {
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
