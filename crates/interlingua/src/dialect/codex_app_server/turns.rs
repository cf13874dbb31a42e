//! Threads and turns: where they begin and end, what they used, and why they failed.

use super::counts::{Counter, last_request};
use super::decode::{CodexAppServerDecoder, TurnAtHand};
use super::failures::{self, Verdict};
use super::threads::Speaker;
use super::wire::{Answer, Item, Limits, Params, Thread, Turn, Window};
use crate::dialect::{Emitter, EventSink};
use crate::event::{
    Error, ErrorClass, Interrupted, Limit, Outcome, SessionStarted, SubagentEnded, SubagentStarted,
    ToolEnded, ToolKind, ToolStarted, ToolStatus, TurnEnded, TurnStarted, UserMessage,
};
use crate::json::read;
use crate::json::{Json, Text};

/// The agent; how it is spoken with is the name of the dialect.
const AGENT: &str = "codex";

impl CodexAppServerDecoder {
    /// Makes sure that it is known whose a thread is, before it says anything.
    #[inline]
    pub(super) fn meet(&mut self, params: &Params<'_>, speaks: bool, sink: &mut dyn EventSink) {
        if let Some(thread) = &params.thread_id
            && self.threads.speaker(Some(thread)) == Speaker::Unknown
            && !self.threads.adopt(thread)
            && speaks
        {
            self.meet_stranger(thread, &mut Emitter::without_record(sink));
        }
    }

    /// A turn whose beginning this stream does not have; what comes after the end of one begins none.
    pub(super) fn join(&mut self, params: &Params<'_>) {
        let main = self.threads.speaker(params.thread_id.as_ref()) == Speaker::Main;
        if let Some(id) = params.turn_id.as_ref().filter(|_| main)
            && self.told_turns.insert(id.to_plain().into())
        {
            self.turn.open = true;
            self.turn.id = Some(id.clone().into_owned());
        }
    }

    fn meet_stranger(&mut self, thread: &Text<'_>, out: &mut Emitter<'_, '_>) {
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

    /// The client opened a thread, and is told all about it, its past included.
    pub(super) fn thread_opened<'a>(&mut self, answer: &mut Answer<'a>, out: &mut Emitter<'_, 'a>) {
        let Some(mut thread) = answer.thread.take() else { return };
        let id = thread.id.clone().unwrap_or_default();
        if self.turn.open && !self.threads.is_main(&id) {
            return out.native("response");
        }
        let again = self.threads.is_main(&id);
        self.open(&id, &thread);
        out.emit(SessionStarted {
            id: Some(id),
            agent: Some(Text::plain(AGENT)),
            version: thread.version.take(),
            model: answer.model.take(),
            cwd: answer.cwd.take().or(thread.cwd.take()),
            permission_mode: answer.approval_policy.take(),
            tools: None,
        });
        // The past of a thread that is at work is not told in the middle of its turn.
        for turn in &mut thread.turns {
            if !self.turn.open {
                self.past_turn(turn, out);
            }
        }
        self.replaying = false;
        if again {
            out.native("response");
        }
    }

    pub(super) fn thread_started<'a>(
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
        self.open(&id, &thread);
        out.emit(SessionStarted {
            id: Some(id),
            agent: Some(Text::plain(AGENT)),
            version: thread.version.take(),
            model: thread.model.take(),
            cwd: thread.cwd.take(),
            ..SessionStarted::default()
        });
    }

    /// Makes a thread the session. One that is new has used nothing.
    fn open(&mut self, id: &Text<'_>, thread: &Thread<'_>) {
        if self.threads.is_main(id) {
            return;
        }
        self.threads.open(id);
        let fresh = thread.forked_from.is_none()
            && thread.turns.is_empty()
            && thread.preview.as_ref().is_none_or(Text::is_empty);
        self.counter = if fresh { Counter::fresh() } else { Counter::default() };
    }

    /// A turn that a resume tells again, unless this stream told it. One that is not over goes on.
    fn past_turn<'a>(&mut self, turn: &mut Turn<'a>, out: &mut Emitter<'_, 'a>) {
        let id = turn.id.clone().unwrap_or_default();
        if !self.told_turns.insert(id.to_plain().into()) {
            return;
        }
        let goes_on = turn.status.as_ref().is_some_and(|status| *status == "inProgress");
        self.replaying = !goes_on;
        out.emit(TurnStarted { id: Some(id.clone()), replay: !goes_on });
        for item in &mut turn.items {
            self.item_completed(item, out);
        }
        if goes_on {
            self.turn =
                TurnAtHand { open: true, id: Some(id.into_owned()), ..TurnAtHand::default() };
        } else {
            self.said.end_turn(out);
            out.emit(ended(turn));
            self.turn = TurnAtHand::default();
        }
    }

    pub(super) fn turn_started<'a>(
        &mut self,
        params: &mut Params<'a>,
        method: Text<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let Some(turn) = params.turn.take() else { return out.unknown(method) };
        if out.is_nested() {
            return self.agent_began(params, out);
        }
        let id = turn.id.clone().unwrap_or_default();
        self.told_turns.insert(id.to_plain().into());
        let prompt = self.turn.prompt.take();
        out.emit(TurnStarted { id: turn.id, replay: false });
        if let Some(text) = prompt.as_ref().map(Text::borrowed) {
            out.emit(UserMessage { text, ..UserMessage::default() });
        }
        let id = Some(id.into_owned());
        self.turn = TurnAtHand { open: true, id, prompt, ..TurnAtHand::default() };
    }

    pub(super) fn turn_completed<'a>(
        &mut self,
        params: &mut Params<'a>,
        method: Text<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let Some(mut turn) = params.turn.take() else { return out.unknown(method) };
        if out.is_nested() {
            return self.agent_ended(params, &turn, out);
        }
        let mut ended = ended(&mut turn);
        let completed = ended.outcome == Outcome::Completed;
        self.said.end_turn(out);
        self.asked.end_turn(completed, &mut self.calls, out);
        if ended.outcome == Outcome::Cancelled {
            self.calls.stop(out);
            out.emit(Interrupted::default());
        }
        let (usage, requests) = self.counter.end_turn();
        ended.usage = usage;
        // Whether the last request of a turn that was cut off was begun is not told.
        ended.steps = Some(requests).filter(|requests| completed && *requests > 0);
        out.emit(ended);
        self.turn = TurnAtHand::default();
        self.threads.end_turn();
        self.calls.clear();
        self.files.clear();
    }

    /// Another agent begins to work; that it was started was told by the call that did it.
    fn agent_began(&mut self, params: &Params<'_>, out: &mut Emitter<'_, '_>) {
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

    fn agent_ended(&mut self, params: &Params<'_>, turn: &Turn<'_>, out: &mut Emitter<'_, '_>) {
        self.said.stands(out.parent.as_ref());
        let Some(thread) = &params.thread_id else { return };
        let Some(agent) = self.threads.agent(thread) else { return };
        agent.ended = true;
        let (call, stranger) = (agent.call.clone(), std::mem::replace(&mut agent.stranger, false));
        out.parent = None;
        let summary = last_word(&turn.items);
        out.emit(SubagentEnded {
            id: Some(thread.borrowed()),
            call: Some(call.borrowed()),
            status: turn.status.clone(),
            summary: summary.clone(),
        });
        if stranger {
            let output = summary.as_ref().map(Json::from);
            let completed = turn.status.as_ref().is_some_and(|status| *status == "completed");
            let status = if completed { ToolStatus::Completed } else { ToolStatus::Failed };
            out.emit(ToolEnded { call, status, output, ..ToolEnded::default() });
        }
    }

    pub(super) fn usage<'a>(&mut self, params: &Params<'a>, out: &mut Emitter<'_, 'a>) {
        let name = "thread/tokenUsage/updated that says nothing new";
        let Some(usage) = &params.usage else { return out.native(name) };
        // The request is over, so nothing that it said can be taken back.
        self.said.stands(out.parent.as_ref());
        let request = match self.threads.speaker(params.thread_id.as_ref()) {
            Speaker::Agent(_) => last_request(usage),
            Speaker::Unknown => None,
            Speaker::Main if self.is_of_this_turn(params) => self.counter.take(usage),
            Speaker::Main => {
                self.counter.take_past(usage);
                None
            }
        };
        match request {
            Some(request) => out.emit(request),
            None => out.native(name),
        }
    }

    fn is_of_this_turn(&self, params: &Params<'_>) -> bool {
        let same = params.turn_id.is_none() || params.turn_id == self.turn.id;
        self.turn.open && (same || self.turn.id.is_none())
    }

    pub(super) fn limits(&mut self, params: &Params<'_>, out: &mut Emitter<'_, '_>) {
        let limits = params.limits.clone().unwrap_or_default();
        let told = [&limits.primary, &limits.secondary, &limits.credits, &limits.individual];
        let says = told.iter().any(|it| it.is_some()) || limits.reached.is_some();
        let details = details(&limits);
        if !says || details.get() == self.limits {
            return out.native("account/rateLimits/updated that says nothing new");
        }
        details.get().clone_into(&mut self.limits);
        let window = limits.primary.as_ref().and_then(read::record_of::<Window<'_>>);
        out.emit(Limit {
            name: limits.name.or(limits.id),
            status: limits.reached,
            resets_at: window.and_then(|window| window.resets_at),
            details: Some(details),
        });
    }

    /// Something went wrong: the request is made again, or the turn is over.
    pub(super) fn problem<'a>(
        &mut self,
        params: &mut Params<'a>,
        method: Text<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let Some(failure) = &params.error else { return out.unknown(method) };
        if params.will_retry == Some(true) {
            let retry = failures::retry(failure);
            let reason = retry.message.clone().unwrap_or_default();
            self.said.take_back(&reason, out);
            return out.emit(retry);
        }
        let verdict = Verdict::of(failure);
        let fatal = self.turn.open && !out.is_nested() && !verdict.spares_the_turn();
        out.emit(Error {
            message: failures::message(failure),
            class: verdict.class,
            code: verdict.code.map(Text::from),
            http_status: verdict.http_status,
            fatal,
        });
    }

    /// Says what is still to be said when the input ends.
    pub(super) fn end_of_input(&mut self, out: &mut Emitter<'_, '_>) {
        if self.turn.open {
            if self.turn.interrupted {
                out.emit(Interrupted::default());
            }
            return;
        }
        if let Some(text) = self.turn.prompt.take() {
            out.emit(UserMessage { text, ..UserMessage::default() });
        }
        if let Some(error) = self.refused.take().filter(|_| self.told_turns.is_empty()) {
            out.emit(refused(&error));
        }
    }
}

/// The end of a turn that never began, since the agent refused to begin it.
pub(super) fn refused<'a>(error: &Error<'a>) -> TurnEnded<'a> {
    TurnEnded {
        outcome: Outcome::Failed,
        cause: Some(error.message.clone()),
        class: Some(error.class.clone()).filter(|class| *class != ErrorClass::Unspecified),
        ..TurnEnded::default()
    }
}

fn ended<'a>(turn: &mut Turn<'a>) -> TurnEnded<'a> {
    let failure = turn.error.take();
    let verdict = failure.as_ref().map(Verdict::of).unwrap_or_default();
    let outcome = match turn.status.as_ref().map_or("", Text::body) {
        "completed" => Outcome::Completed,
        "interrupted" => Outcome::Cancelled,
        _ => verdict.outcome(),
    };
    let cut = verdict.class == ErrorClass::Limit && verdict.code.as_deref() == Some("other");
    let stopped =
        || (outcome == Outcome::Cancelled).then(|| Text::plain("the turn was interrupted"));
    TurnEnded {
        cause: failure.as_ref().map(failures::message).or_else(stopped),
        outcome,
        class: Some(verdict.class).filter(|class| *class != ErrorClass::Unspecified),
        reason: turn.status.take(),
        // The only such limit that Codex has no word for is that on the tokens of an answer.
        stop_reason: cut.then(|| Text::plain("max_output_tokens")),
        http_status: verdict.http_status,
        final_text: last_word(&turn.items),
        duration_ms: turn.duration_ms,
        ..TurnEnded::default()
    }
}

/// The last message of a turn, where its end repeats it.
fn last_word<'a>(items: &[Item<'a>]) -> Option<Text<'a>> {
    let message = |item: &&Item<'_>| item.kind.as_ref().is_some_and(|kind| *kind == "agentMessage");
    items.iter().rfind(message).and_then(|item| item.text.clone())
}

fn details(limits: &Limits<'_>) -> Json<'static> {
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
