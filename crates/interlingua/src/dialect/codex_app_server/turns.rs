//! Threads and turns: their start and end, their usage, and why they failed.

use super::counts::{Counter, last_request};
use super::decode::{CodexAppServerDecoder, CurrentTurn};
use super::failures::{self, Classification};
use super::threads::ThreadOwner;
use super::wire::{Item, Limits, Params, ResponseResult, Thread, Turn, Window};
use crate::dialect::{Emitter, EventSink};
use crate::event::{
    Error, ErrorClass, Interrupted, Limit, Outcome, SessionStarted, SubagentEnded, SubagentStarted,
    ToolEnded, ToolKind, ToolStarted, ToolStatus, TurnEnded, TurnStarted, UserMessage,
};
use crate::json::read;
use crate::json::{Json, Text};

/// The name of the agent, which differs from that of the dialect.
const AGENT: &str = "codex";

impl CodexAppServerDecoder {
    /// Assigns an unknown thread to the session or to a sub-agent before its first record is read.
    #[inline]
    pub(super) fn identify_thread(
        &mut self,
        params: &Params<'_>,
        is_output: bool,
        sink: &mut dyn EventSink,
    ) {
        if let Some(thread) = &params.thread_id
            && self.threads.owner(Some(thread)) == ThreadOwner::Unknown
            && !self.threads.adopt(thread)
            && is_output
        {
            self.admit_unknown_thread(thread, &mut Emitter::without_record(sink));
        }
    }

    /// Opens a turn whose start the stream does not contain. Records after the end of a turn do not
    /// open it again.
    pub(super) fn join_turn(&mut self, params: &Params<'_>) {
        let is_main = self.threads.owner(params.thread_id.as_ref()) == ThreadOwner::Main;
        if let Some(id) = params.turn_id.as_ref().filter(|_| is_main)
            && self.seen_turns.insert(id.to_plain().into())
        {
            self.turn.open = true;
            self.turn.id = Some(id.clone().into_owned());
        }
    }

    fn admit_unknown_thread(&mut self, thread: &Text<'_>, out: &mut Emitter<'_, '_>) {
        if !self.threads.has_main() || !self.turn.open {
            self.threads.open(thread);
            self.counter = Counter::default();
            out.emit(SessionStarted {
                id: Some(thread.borrowed()),
                agent: Some(Text::plain(AGENT)),
                ..SessionStarted::default()
            });
        } else {
            self.threads.admit(thread);
            out.emit(ToolStarted {
                call: thread.borrowed(),
                name: Text::plain("spawn_agent"),
                kind: ToolKind::Task,
                input: Some(Json::object(|_| {})),
                ..ToolStarted::default()
            });
            let (id, call) = (Some(thread.borrowed()), Some(thread.borrowed()));
            out.emit(SubagentStarted { id, call, ..SubagentStarted::default() });
        }
    }

    /// Reads the response that opens a thread, with the history of the thread.
    pub(super) fn read_opened_thread<'a>(
        &mut self,
        result: &mut ResponseResult<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let Some(mut thread) = result.thread.take() else { return };
        let id = thread.id.clone().unwrap_or_default();
        if self.turn.open && !self.threads.is_main(&id) {
            return out.native("response");
        }
        let is_repeat = self.threads.is_main(&id);
        self.open_thread(&id, &thread);
        out.emit(SessionStarted {
            id: Some(id),
            agent: Some(Text::plain(AGENT)),
            version: thread.version.take(),
            model: result.model.take(),
            cwd: result.cwd.take().or(thread.cwd.take()),
            permission_mode: result.approval_policy.take(),
            tools: None,
            host_fields: Vec::new(),
        });
        // History is not replayed in the middle of a live turn.
        for turn in &mut thread.turns {
            if !self.turn.open {
                self.replay_turn(turn, out);
            }
        }
        self.replaying = false;
        if is_repeat {
            out.native("response");
        }
    }

    pub(super) fn read_thread_started<'a>(
        &mut self,
        params: &mut Params<'a>,
        method: Text<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let Some(mut thread) = params.thread.take() else { return out.unknown(method) };
        let id = thread.id.clone().unwrap_or_default();
        if self.threads.is_main(&id) {
            return out.native("thread/started again");
        }
        if thread.parent.is_some() || self.turn.open {
            self.threads.adopt(&id);
            return out.native("thread/started of a sub-agent");
        }
        self.open_thread(&id, &thread);
        out.emit(SessionStarted {
            id: Some(id),
            agent: Some(Text::plain(AGENT)),
            version: thread.version.take(),
            model: thread.model.take(),
            cwd: thread.cwd.take(),
            ..SessionStarted::default()
        });
    }

    /// Makes a thread the session. A new thread has used no tokens yet.
    fn open_thread(&mut self, id: &Text<'_>, thread: &Thread<'_>) {
        if self.threads.is_main(id) {
            return;
        }
        self.threads.open(id);
        let is_new_thread = thread.forked_from.is_none()
            && thread.turns.is_empty()
            && thread.preview.as_ref().is_none_or(Text::is_empty);
        self.counter = if is_new_thread { Counter::of_new_thread() } else { Counter::default() };
    }

    /// Emits a turn of the history, unless the stream contains it. A turn without an end continues
    /// as a live one.
    fn replay_turn<'a>(&mut self, turn: &mut Turn<'a>, out: &mut Emitter<'_, 'a>) {
        let id = turn.id.clone().unwrap_or_default();
        if !self.seen_turns.insert(id.to_plain().into()) {
            return;
        }
        let continues = turn.status.as_ref().is_some_and(|status| *status == "inProgress");
        self.replaying = !continues;
        out.emit(TurnStarted { id: Some(id.clone()), replay: !continues });
        for item in &mut turn.items {
            self.read_item_completed(item, out);
        }
        if continues {
            self.turn =
                CurrentTurn { open: true, id: Some(id.into_owned()), ..CurrentTurn::default() };
        } else {
            self.messages.end_turn(out);
            out.emit(turn_ended(turn));
            self.turn = CurrentTurn::default();
        }
    }

    pub(super) fn read_turn_started<'a>(
        &mut self,
        params: &mut Params<'a>,
        method: Text<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let Some(turn) = params.turn.take() else { return out.unknown(method) };
        if out.is_nested() {
            return self.start_subagent_turn(params, out);
        }
        let id = turn.id.clone().unwrap_or_default();
        self.seen_turns.insert(id.to_plain().into());
        let prompt = self.turn.prompt.take();
        out.emit(TurnStarted { id: turn.id, replay: false });
        if let Some(text) = prompt.as_ref().map(Text::borrowed) {
            out.emit(UserMessage { text, ..UserMessage::default() });
        }
        let id = Some(id.into_owned());
        self.turn = CurrentTurn { open: true, id, prompt, ..CurrentTurn::default() };
    }

    pub(super) fn read_turn_completed<'a>(
        &mut self,
        params: &mut Params<'a>,
        method: Text<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let Some(mut turn) = params.turn.take() else { return out.unknown(method) };
        if out.is_nested() {
            return self.end_subagent_turn(params, &turn, out);
        }
        let mut ended = turn_ended(&mut turn);
        let completed = ended.outcome == Outcome::Completed;
        self.messages.end_turn(out);
        self.agent_requests.end_turn(completed, &mut self.calls, out);
        if ended.outcome == Outcome::Cancelled {
            self.calls.cancel_all(out);
            out.emit(Interrupted::default());
        }
        let (usage, requests) = self.counter.end_turn();
        ended.usage = usage;
        // It is unknown whether the last request of an interrupted turn had started.
        ended.steps = Some(requests).filter(|requests| completed && *requests > 0);
        out.emit(ended);
        self.turn = CurrentTurn::default();
        self.threads.end_turn();
        self.calls.clear();
        self.files.clear();
    }

    /// Starts another turn of a sub-agent. The start of the sub-agent itself was emitted with its
    /// call.
    fn start_subagent_turn(&mut self, params: &Params<'_>, out: &mut Emitter<'_, '_>) {
        let Some(thread) = &params.thread_id else { return };
        let Some(agent) = self.threads.agent(thread) else { return };
        if !std::mem::replace(&mut agent.ended, false) {
            return out.native("turn/started of a sub-agent");
        }
        let call = Some(agent.call.clone());
        out.parent = None;
        out.emit(SubagentStarted {
            id: Some(thread.borrowed()),
            call,
            ..SubagentStarted::default()
        });
    }

    fn end_subagent_turn(
        &mut self,
        params: &Params<'_>,
        turn: &Turn<'_>,
        out: &mut Emitter<'_, '_>,
    ) {
        self.messages.forget(out.parent.as_ref());
        let Some(thread) = &params.thread_id else { return };
        let Some(agent) = self.threads.agent(thread) else { return };
        agent.ended = true;
        let (call, of_unknown_origin) =
            (agent.call.clone(), std::mem::replace(&mut agent.of_unknown_origin, false));
        out.parent = None;
        let summary = last_message(&turn.items);
        out.emit(SubagentEnded {
            id: Some(thread.borrowed()),
            call: Some(call.borrowed()),
            status: turn.status.clone(),
            summary: summary.clone(),
        });
        if of_unknown_origin {
            let output = summary.as_ref().map(Json::from);
            let completed = turn.status.as_ref().is_some_and(|status| *status == "completed");
            let status = if completed { ToolStatus::Completed } else { ToolStatus::Failed };
            out.emit(ToolEnded { call, status, output, ..ToolEnded::default() });
        }
    }

    pub(super) fn read_usage<'a>(&mut self, params: &Params<'a>, out: &mut Emitter<'_, 'a>) {
        let repeated = "thread/tokenUsage/updated without changes";
        let Some(usage) = &params.usage else { return out.native(repeated) };
        // The request is completed, so its messages can no longer be retracted.
        self.messages.forget(out.parent.as_ref());
        let request = match self.threads.owner(params.thread_id.as_ref()) {
            ThreadOwner::Agent(_) => last_request(usage),
            ThreadOwner::Unknown => None,
            ThreadOwner::Main if self.belongs_to_turn(params) => self.counter.record(usage),
            ThreadOwner::Main => {
                self.counter.set_history(usage);
                None
            }
        };
        match request {
            Some(request) => out.emit(request),
            None => out.native(repeated),
        }
    }

    fn belongs_to_turn(&self, params: &Params<'_>) -> bool {
        let same = params.turn_id.is_none() || params.turn_id == self.turn.id;
        self.turn.open && (same || self.turn.id.is_none())
    }

    pub(super) fn read_limits(&mut self, params: &Params<'_>, out: &mut Emitter<'_, '_>) {
        let limits = params.limits.clone().unwrap_or_default();
        let stated = [&limits.primary, &limits.secondary, &limits.credits, &limits.individual];
        let is_empty = !(stated.iter().any(|it| it.is_some()) || limits.reached.is_some());
        let details = limit_details(&limits);
        if is_empty || details.get() == self.last_limits {
            return out.native("account/rateLimits/updated without changes");
        }
        details.get().clone_into(&mut self.last_limits);
        let window = limits.primary.as_ref().and_then(read::record_of::<Window<'_>>);
        out.emit(Limit {
            name: limits.name.or(limits.id),
            status: limits.reached,
            resets_at: window.and_then(|window| window.resets_at),
            details: Some(details),
        });
    }

    /// Reads an error: the request is retried, or the turn fails.
    pub(super) fn read_error<'a>(
        &mut self,
        params: &mut Params<'a>,
        method: Text<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let Some(failure) = &params.error else { return out.unknown(method) };
        if params.will_retry == Some(true) {
            let retry = failures::retry(failure);
            let reason = retry.message.clone().unwrap_or_default();
            self.messages.retract(&reason, out);
            return out.emit(retry);
        }
        let classification = Classification::of(failure);
        let fatal = self.turn.open && !out.is_nested() && !classification.leaves_turn_open();
        out.emit(Error {
            message: failures::message_of(failure),
            class: classification.class,
            code: classification.code.map(Text::from),
            http_status: classification.http_status,
            fatal,
            ..Error::default()
        });
    }

    /// Emits what was held back when the input ends.
    pub(super) fn finish_turn(&mut self, out: &mut Emitter<'_, '_>) {
        if self.turn.open {
            if self.turn.interrupted {
                out.emit(Interrupted::default());
            }
            return;
        }
        if let Some(text) = self.turn.prompt.take() {
            out.emit(UserMessage { text, ..UserMessage::default() });
        }
        if let Some(error) = self.last_refusal.take().filter(|_| self.seen_turns.is_empty()) {
            out.emit(refused_turn(&error));
        }
    }
}

/// The end of a turn that never began, since the agent refused to begin it.
pub(super) fn refused_turn<'a>(error: &Error<'a>) -> TurnEnded<'a> {
    TurnEnded {
        outcome: Outcome::Failed,
        cause: Some(error.message.clone()),
        class: Some(error.class.clone()).filter(|class| *class != ErrorClass::Unspecified),
        ..TurnEnded::default()
    }
}

fn turn_ended<'a>(turn: &mut Turn<'a>) -> TurnEnded<'a> {
    let failure = turn.error.take();
    let classification = failure.as_ref().map(Classification::of).unwrap_or_default();
    let outcome = match turn.status.as_ref().map_or("", Text::body) {
        "completed" => Outcome::Completed,
        "interrupted" => Outcome::Cancelled,
        _ => classification.outcome(),
    };
    let is_output_limit = classification.class == ErrorClass::Limit
        && classification.code.as_deref() == Some("other");
    let interruption =
        || (outcome == Outcome::Cancelled).then(|| Text::plain("the turn was interrupted"));
    TurnEnded {
        cause: failure.as_ref().map(failures::message_of).or_else(interruption),
        outcome,
        class: Some(classification.class).filter(|class| *class != ErrorClass::Unspecified),
        reason: turn.status.take(),
        // The only limit without a code of its own is that on the output tokens of a response.
        stop_reason: is_output_limit.then(|| Text::plain("max_output_tokens")),
        http_status: classification.http_status,
        final_text: last_message(&turn.items),
        duration_ms: turn.duration_ms,
        ..TurnEnded::default()
    }
}

/// The last message of a turn, if its end repeats it.
fn last_message<'a>(items: &[Item<'a>]) -> Option<Text<'a>> {
    let message = |item: &&Item<'_>| item.kind.as_ref().is_some_and(|kind| *kind == "agentMessage");
    items.iter().rfind(message).and_then(|item| item.text.clone())
}

fn limit_details(limits: &Limits<'_>) -> Json<'static> {
    Json::object(|fields| {
        fields.json_if("primary", limits.primary.as_ref());
        fields.json_if("secondary", limits.secondary.as_ref());
        fields.json_if("credits", limits.credits.as_ref());
        fields.json_if("individualLimit", limits.individual.as_ref());
        fields.json_if("spendControlReached", limits.spending.as_ref());
        fields.json_if("planType", limits.plan.as_ref());
        fields.json_if("normalModelSlug", limits.model.as_ref());
    })
}
