//! The loop of an agent that is a model API: request, response, calls, results, next request.
//!
//! It is a state machine without I/O. It knows the history, and decides what happens next; the
//! session sends requests, asks for permissions and runs tools.

mod failed;
mod summary;
#[cfg(test)]
mod tests;

use std::time::Duration;

use interlingua::event::{ErrorClass, Outcome, TurnEnded, Usage};
use interlingua::json::{Json, Text};
use interlingua::price::Prices;
use serde_json::Value;
use serde_json::value::RawValue;

use super::failure::{Failure, RetryPolicy};
use super::history::{
    Answer, AnswerCall, CallResult, Content, History, NativeAnswer, Part, Record,
};
use super::limits::{Exceeded, Limits, RequestCost, Spent};
use super::model::{
    ApiKind, CallIds, Collected, Collector, ModelApi, OfferedTool, OptionalField, RequestSettings,
};
use super::resume::Conversation;
pub(crate) use summary::Shortening;

/// The tool by which the model gives a structured answer.
pub(crate) const ANSWER_TOOL: &str = "StructuredOutput";

/// How often the same request is sent again without a notice, because a response had no content.
const EMPTY_REPEATS: u32 = 2;

/// How many responses in a row may ask to be continued without having added anything.
const IDLE_CONTINUATIONS: u32 = 3;

/// How often the model may repeat a call whose arguments are no JSON object.
const MALFORMED_REPEATS: u32 = 3;

/// The result of a call whose input did not become known.
const NOT_COMPLETE: &str = "This call was not run, because its input was not complete.";

/// What the model learns of such a call.
const MALFORMED: &str = "This call was not run, because its arguments are not a JSON object. \
                         Repeat the call with arguments that are valid JSON.";

/// How often the model is reminded to give its answer in the shape that was asked for.
const REMINDERS: u32 = 2;

const REMINDER: &str = "Give your final answer now by calling the tool StructuredOutput. \
                        Its input has to fit the schema of the tool.";

/// What a response led to.
#[derive(Debug)]
pub(crate) enum Next {
    /// Send a request.
    Request,
    /// Send a request, after a message that was added in the name of the user.
    Remind(&'static str),
    /// Send the request again after a delay. What the failed response showed is withdrawn, unless
    /// the next one continues it.
    Retry(NextAttempt),
    /// Send the request at once in another form, because of this failure. The user learns what is
    /// left out, if something is.
    Adapted { failure: Failure, notice: Option<&'static str>, attempt: u32, of: u32 },
    /// Run these calls.
    Run(Vec<MadeCall>),
    /// Request a summary of what is older, because of this failure.
    Compact(Failure),
    /// Request a summary of less, because of this failure. The first one was an overflow.
    Shorten(Box<Shortening>),
    /// The turn has ended.
    End(Box<TurnEnded<'static>>),
    /// The turn has failed for good.
    Fail(Failure),
}

/// When a failed request is sent again.
#[derive(Debug)]
pub(crate) struct NextAttempt {
    pub(crate) failure: Failure,
    pub(crate) delay: Duration,
    /// The number of the attempt, and of how many.
    pub(crate) attempt: u32,
    pub(crate) of: u32,
    /// The next response continues the one that was cut off.
    pub(crate) continues: bool,
}

/// A call that the model made in a response that ended properly.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MadeCall {
    /// The emitted id.
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) input: Value,
}

/// What another model cannot take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Dropped {
    /// There is reasoning of the model before.
    pub(crate) reasoning: bool,
    /// A response of the model before was to be continued.
    pub(crate) continuation: bool,
}

/// What stays the same for all requests of a session.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Frozen {
    pub(crate) system: String,
    pub(crate) tools: Vec<OfferedTool>,
}

/// The settings of the loop.
#[derive(Debug, Clone)]
pub(crate) struct LoopSettings {
    pub(crate) api: ApiKind,
    pub(crate) model: String,
    pub(crate) session: String,
    pub(crate) frozen: Frozen,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) effort: Option<String>,
    pub(crate) limits: Limits,
    pub(crate) prices: Prices,
    pub(crate) retries: RetryPolicy,
    /// The answer has to be structured.
    pub(crate) structured: bool,
    /// What is older is summarised when the conversation exceeds the context window.
    pub(crate) compacts: bool,
}

/// The loop.
pub(crate) struct AgentLoop {
    settings: LoopSettings,
    api: &'static dyn ModelApi,
    history: History,
    /// The messages of the first items of the history, in the form of the API.
    messages: Vec<Box<RawValue>>,
    rendered: usize,
    /// The ids of the calls in these messages.
    ids: CallIds,
    rejected: Vec<OptionalField>,
    turn: Turn,
}

/// The state of a turn.
#[derive(Debug, Default)]
struct Turn {
    /// The responses that ended properly.
    responses: u64,
    /// A request was sent whose response has not ended.
    awaits_response: bool,
    /// The number of the current attempt.
    attempt: u32,
    empty_repeats: u32,
    malformed_repeats: u32,
    reminders: u32,
    idle_continuations: u32,
    continuation: Option<String>,
    /// How often a request for a summary was made of less.
    shortenings: u32,
    /// How long the excerpt is then that a summary is made of, in bytes.
    longest_excerpt: Option<usize>,
    spent: Spent,
    structured: Option<Value>,
    /// The calls that are run, with the provider's ids.
    calls: Vec<(MadeCall, AnswerCall)>,
}

impl AgentLoop {
    pub(crate) fn new(settings: LoopSettings, history: History) -> Self {
        let api = settings.api.api();
        Self {
            settings,
            api,
            history,
            messages: Vec::new(),
            rendered: 0,
            ids: CallIds::default(),
            rejected: Vec::new(),
            turn: Turn::default(),
        }
    }

    pub(crate) fn settings(&self) -> &LoopSettings {
        &self.settings
    }

    /// Changes the model for the following requests. Another model can take neither the reasoning of
    /// this one, nor the token that continues its response.
    pub(crate) fn set_model(&mut self, model: String) -> Dropped {
        if model == self.settings.model {
            return Dropped::default();
        }
        self.settings.model = model;
        self.forget_messages();
        self.turn.idle_continuations = 0;
        Dropped {
            reasoning: self.history.native_answers().next().is_some(),
            continuation: self.turn.continuation.take().is_some(),
        }
    }

    /// Begins a turn.
    pub(crate) fn begin(&mut self, prompt: Vec<Part>) -> Next {
        self.history.record(Record::User(prompt));
        self.turn = Turn { attempt: 1, ..Turn::default() };
        Next::Request
    }

    /// The calls of a resumed session that the client can still answer.
    pub(crate) fn open_calls(&self) -> Vec<AnswerCall> {
        self.history.open_calls()
    }

    /// Answers them, because the client is not there.
    pub(crate) fn close_calls(&mut self, why: &str) {
        self.history.close_calls(why);
    }

    /// Begins a turn that goes on with open calls, in their order, under their emitted ids.
    pub(crate) fn reopen(&mut self, ids: &[String]) -> Next {
        self.turn = Turn { attempt: 1, ..Turn::default() };
        let calls = ids.iter().cloned().zip(self.history.open_calls()).map(|(id, call)| {
            let (name, input) = (call.name.clone(), call.input.clone());
            (MadeCall { id, name, input }, call)
        });
        self.turn.calls = calls.collect();
        Next::Run(self.turn.calls.iter().map(|(made, _)| made.clone()).collect())
    }

    /// What a resumed session has to know besides the history.
    pub(crate) fn conversation(&self) -> Conversation {
        let LoopSettings { api, model, frozen, .. } = &self.settings;
        Conversation { api: *api, model: model.clone(), frozen: frozen.clone() }
    }

    /// Takes what has to be stored of the history since the last call.
    pub(crate) fn take_unstored(&mut self) -> Vec<Json<'static>> {
        self.history.take_unstored()
    }

    /// A collector for the next response.
    pub(crate) fn collector(&self) -> Box<dyn Collector> {
        self.api.collector(self.history.answers())
    }

    /// The body of the next request.
    pub(crate) fn body(&mut self) -> String {
        self.render();
        let LoopSettings { model, session, frozen, max_tokens, effort, .. } = &self.settings;
        let settings = RequestSettings {
            model,
            system: &frozen.system,
            tools: &frozen.tools,
            max_tokens: *max_tokens,
            effort: effort.as_deref(),
            session,
            continuation: self.turn.continuation.as_deref(),
            rejected: &self.rejected,
        };
        self.api.body(&self.messages, &settings)
    }

    fn render(&mut self) {
        let items = self.history.items();
        for (at, item) in items.iter().enumerate().skip(self.rendered) {
            let before = at.checked_sub(1).and_then(|at| items.get(at));
            let LoopSettings { api, model, .. } = &self.settings;
            let item = self.ids.distinct(item, *api, model);
            self.messages.extend(self.api.messages(&item, before, model));
        }
        self.rendered = items.len();
    }

    /// The next request has other messages for the history so far.
    fn forget_messages(&mut self) {
        (self.messages, self.rendered) = (Vec::new(), 0);
        self.ids = CallIds::default();
    }

    /// A request was sent.
    pub(crate) fn requested(&mut self) {
        self.turn.awaits_response = true;
    }

    /// A response ended at a place from which the next one has to continue it; `has_advanced` is
    /// set if it has added anything. `None` if it cannot be continued, or if that leads nowhere:
    /// then it is one that was cut off.
    pub(crate) fn continues(&mut self, token: Option<String>, has_advanced: bool) -> Option<Next> {
        let idle = if has_advanced { 0 } else { self.turn.idle_continuations + 1 };
        self.turn.idle_continuations = idle;
        let token = token.filter(|_| idle < IDLE_CONTINUATIONS)?;
        self.response_ended();
        self.turn.continuation = Some(token);
        Some(self.unless_limited(Next::Request))
    }

    /// A response ended properly.
    pub(crate) fn responded(
        &mut self,
        end: &TurnEnded<'_>,
        collected: Collected,
        made: Vec<MadeCall>,
    ) -> Next {
        self.response_ended();
        self.turn.attempt = 1;
        (self.turn.continuation, self.turn.idle_continuations) = (None, 0);
        let Collected { mut answer, messages, paused } = collected;
        if end.outcome == Outcome::Refused {
            // The text before a refusal is not sent back to the model.
            return Next::Fail(Failure::of_response(end, None));
        }
        let is_empty = answer.is_empty() && messages.is_empty();
        if is_empty
            && self.turn.empty_repeats < EMPTY_REPEATS
            && end.outcome != Outcome::LimitReached
        {
            self.turn.empty_repeats += 1;
            let failure = Failure::new(ErrorClass::Internal, "the response is empty");
            let again = self.adapted(failure, None);
            return self.unless_limited(again);
        }
        self.name_calls(&mut answer.content, &made);
        let (malformed, calls): (Vec<_>, Vec<_>) =
            answer.calls().cloned().partition(|call| call.malformed);
        self.add_answer(answer, messages);
        let may_run = matches!(end.outcome, Outcome::Completed | Outcome::WaitingForClient);
        if may_run && !are_same(&made, &calls) {
            return self.mismatched();
        }
        let refuse = |call: &AnswerCall, why| Record::Result(CallResult::refused(call, why));
        malformed.iter().for_each(|call| self.history.record(refuse(call, MALFORMED)));
        if paused && made.is_empty() {
            // The next request continues the response, and every call in it has to be answered.
            self.history.close_calls(NOT_COMPLETE);
            return self.unless_limited(Next::Request);
        }
        if made.is_empty() && calls.is_empty() && !malformed.is_empty() {
            return self.repeat_malformed(end);
        }
        if !may_run || made.is_empty() {
            self.history.close_calls("This call was not run, because the response was cut off.");
            return self.answered(end);
        }
        for call in calls.iter().skip(made.len()) {
            self.history.record(refuse(call, NOT_COMPLETE));
        }
        self.turn.calls = made.iter().cloned().zip(calls).collect();
        Next::Run(made)
    }

    fn add_answer(&mut self, mut answer: Answer, messages: Vec<Box<RawValue>>) {
        if !messages.is_empty() {
            let LoopSettings { api, model, .. } = &self.settings;
            answer.native = Some(NativeAnswer { api: *api, model: model.clone(), messages });
        }
        if !answer.is_empty() {
            self.history.record(Record::Answer(answer));
        }
    }

    /// No call of the answer has arguments that can be read. The model may try again.
    fn repeat_malformed(&mut self, end: &TurnEnded<'_>) -> Next {
        self.turn.malformed_repeats += 1;
        match self.turn.malformed_repeats {
            ..=MALFORMED_REPEATS => self.unless_limited(Next::Request),
            _ => Next::Fail(Failure::of_response(end, None)),
        }
    }

    fn response_ended(&mut self) {
        self.turn.responses += 1;
        self.turn.awaits_response = false;
    }

    /// The calls of the events are not those of the answer, so that a result would get to another
    /// call. Nothing is run.
    fn mismatched(&mut self) -> Next {
        self.history.close_calls("This call was not run, because it could not be identified.");
        Next::Fail(Failure::new(
            ErrorClass::Internal,
            "the calls of the response could not be matched with those of its answer; please report it",
        ))
    }

    /// Counts what a request has used, whether it succeeded or not.
    /// `at` is its time in milliseconds since 1970.
    /// Its cost is the one that the provider reported, else that of the price table.
    pub(crate) fn count(&mut self, usage: &Usage<'_>, reported_usd: Option<f64>, at: u64) {
        let LoopSettings { model, prices, .. } = &self.settings;
        let cost = match reported_usd {
            Some(usd) => Some(RequestCost { usd, estimated: false }),
            // A list price is not an invoice.
            None => prices.cost(model, usage, at).map(|usd| RequestCost { usd, estimated: true }),
        };
        self.turn.spent.add(model, usage, cost);
    }

    /// Gives calls without an id of the provider the emitted one, which is unique in the session.
    fn name_calls(&self, content: &mut [Content], made: &[MadeCall]) {
        let calls = content.iter_mut().filter_map(|content| match content {
            Content::Call(call) if !call.malformed => Some(call),
            Content::Call(_) | Content::Text(_) => None,
        });
        for (call, made) in calls.zip(made).filter(|(call, _)| call.unnamed) {
            call.id.clone_from(&made.id);
        }
    }

    /// A call has a result. Once all of them have, the next request follows.
    pub(crate) fn result(&mut self, id: &str, content: Vec<Part>, is_error: bool) -> Option<Next> {
        let at = self.turn.calls.iter().position(|(made, _)| made.id == id)?;
        let (_, call) = self.turn.calls.remove(at);
        self.history.record(Record::Result(CallResult {
            call: call.id,
            unnamed: call.unnamed,
            name: call.name,
            content,
            is_error,
        }));
        if !self.turn.calls.is_empty() {
            return None;
        }
        if self.turn.structured.is_some() {
            return Some(self.end(&completed()));
        }
        Some(self.unless_limited(Next::Request))
    }

    /// The model gave its structured answer.
    pub(crate) fn structured(&mut self, answer: Value) {
        self.turn.structured = Some(answer);
    }

    /// The model has nothing more to do.
    fn answered(&mut self, end: &TurnEnded<'_>) -> Next {
        let wants_answer = self.settings.structured && end.outcome != Outcome::LimitReached;
        if wants_answer && self.turn.reminders < REMINDERS {
            self.turn.reminders += 1;
            self.history.record(Record::User(vec![Part::Text(REMINDER.to_owned())]));
            return self.unless_limited(Next::Remind(REMINDER));
        }
        if wants_answer {
            let why = "the model did not give an answer that fits the schema";
            return Next::Fail(Failure::new(ErrorClass::Internal, why));
        }
        self.end(end)
    }

    fn end(&self, end: &TurnEnded<'_>) -> Next {
        let ended = TurnEnded {
            outcome: end.outcome.clone(),
            cause: end.cause.as_ref().map(|cause| Text::from(cause.to_string())),
            class: end.class.clone(),
            stop_reason: end.stop_reason.as_ref().map(|reason| Text::from(reason.to_string())),
            ..TurnEnded::default()
        };
        Next::End(Box::new(self.ended(ended)))
    }

    /// The turn has ended. A response of it that was to be continued is not.
    pub(crate) fn forget_continuation(&mut self) {
        self.turn.continuation = None;
    }

    /// Adds what is known of the whole turn to its end.
    pub(crate) fn ended(&self, mut ended: TurnEnded<'static>) -> TurnEnded<'static> {
        if ended.outcome == Outcome::WaitingForClient {
            ended.outcome = Outcome::Completed;
        }
        ended.structured = self.turn.structured.as_ref().and_then(Json::from_serialize);
        let steps = self.turn.responses + u64::from(self.turn.awaits_response);
        ended.steps = Some(steps).filter(|steps| *steps > 0);
        self.turn.spent.complete(&mut ended);
        ended
    }

    fn unless_limited(&self, next: Next) -> Next {
        match self.settings.limits.exceeded(self.turn.responses, &self.turn.spent) {
            Some(Exceeded { reason, cause }) => {
                let ended = TurnEnded {
                    outcome: Outcome::LimitReached,
                    cause: Some(Text::from(cause)),
                    reason: Some(Text::plain(reason)),
                    class: Some(ErrorClass::Limit),
                    ..TurnEnded::default()
                };
                Next::End(Box::new(self.ended(ended)))
            }
            None => next,
        }
    }

    /// The turn is interrupted: keeps the text so far, and answers its calls, so that the
    /// history stays valid. Results that exist are kept.
    pub(crate) fn interrupted(&mut self, collected: Option<Collected>) {
        if let Some(Collected { mut answer, .. }) = collected {
            answer.content.retain(|content| match content {
                Content::Text(text) => !text.trim().is_empty(),
                Content::Call(_) => false,
            });
            if !answer.is_empty() {
                self.history.record(Record::Answer(answer));
            }
        }
        self.turn.calls.clear();
        self.history.close_calls("This call was interrupted by the user.");
    }
}

/// Whether the calls of the events are the first ones of the answer. Only a call that the next request
/// repeats can have a result. A call whose input did not become known is one of the answer only.
fn are_same(made: &[MadeCall], calls: &[AnswerCall]) -> bool {
    let is_same =
        |(made, call): (&MadeCall, &AnswerCall)| made.name == call.name && made.input == call.input;
    made.len() <= calls.len() && made.iter().zip(calls).all(is_same)
}

fn completed() -> TurnEnded<'static> {
    TurnEnded { outcome: Outcome::Completed, ..TurnEnded::default() }
}
