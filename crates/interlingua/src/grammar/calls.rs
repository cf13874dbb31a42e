//! Ensures that every tool call starts once and is answered once.

mod again;
mod call;
mod ids;
mod of_client;

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::BuildHasherDefault;

pub(super) use call::key;
use call::{
    Call, ClosedCall, OpenCall, Outcome, UNNAMED, answer_number, content_number, input_number,
    is_bare,
};
use ids::IdGenerator;

use super::RepairKind;
use super::renamed::Renamed;
use super::stream::{Emit, Stream};
use crate::event::{
    Data, Event, Executor, Native, Reason, ToolEnded, ToolInput, ToolStarted, ToolStatus,
};
use crate::fingerprint::FingerprintHasher;
use crate::json::{Json, Text};

/// The number of closed calls whose allocations are reused.
const MAX_SPARE: usize = 16;

/// The buffer capacity for an input that is kept from call to call.
const SPARE_CAPACITY: usize = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct Calls {
    /// All calls of the session, by the fingerprint of their emitted id. A closed call takes a few
    /// bytes.
    calls: HashMap<u64, Call, BuildHasherDefault<FingerprintHasher>>,
    epoch: u64,
    made: u64,
    open: usize,
    /// The open calls to which the agent gave no id, in the order in which they started.
    unnamed: VecDeque<String>,
    ids: IdGenerator,
    /// Native ids of this epoch that were already taken.
    renamed: Renamed,
    /// The calls of a response that is requested again, in the order in which they started.
    unclaimed: Vec<u64>,
    /// The number of calls of the current response that the host runs.
    positions: u64,
    /// The calls of tools that the host offers for the client.
    of_client_tools: HashSet<u64, BuildHasherDefault<FingerprintHasher>>,
    /// The allocations of closed calls, for reuse.
    #[allow(clippy::vec_box, reason = "the boxes themselves are reused")]
    spare: Vec<Box<OpenCall>>,
}

impl Calls {
    pub(super) fn push(&mut self, mut event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        self.assign_id(&mut event.data);
        match event.data {
            Data::ToolInputDelta(_) => self.input_delta(event, stream, emit),
            Data::ToolInput(_) => self.input(event, stream, emit),
            Data::ToolProgress(_) => self.progress(event, stream, emit),
            Data::ToolEnded(_) => self.answer(event, stream, emit),
            _ => {}
        }
    }

    /// Sets the prefix of generated ids, where the protocol prescribes one.
    pub(super) fn set_prefix(&mut self, prefix: Option<&'static str>) {
        self.ids.prefix = prefix;
    }

    /// Sets the tag that distinguishes generated ids from those of other sessions.
    pub(super) fn set_tag(&mut self, tag: &str, resumed: bool) {
        (self.ids.tag, self.ids.resumed) = (tag.to_owned(), resumed);
    }

    /// Begins a new epoch, in which native ids are reset. If it is a response to a request that is
    /// repeated, open calls are those of the response before.
    pub(super) fn begin_epoch(&mut self, is_response: bool) {
        self.epoch += 1;
        self.renamed.clear();
        self.unnamed.clear();
        self.positions = 0;
        self.unclaimed.clear();
        if is_response && self.open > 0 {
            let open = self.calls.iter().filter_map(|(key, call)| match call {
                Call::Open(open) if !open.outlasts_turn => Some((open.order, *key)),
                _ => None,
            });
            let mut open: Vec<_> = open.collect();
            open.sort_unstable();
            self.unclaimed = open.into_iter().map(|(_, key)| key).collect();
        }
    }

    /// Whether a call is one that the host runs, or has the client run. A call without an id is.
    pub(super) fn is_of_host(&self, native: &Text<'_>) -> bool {
        match self.calls.get(&key(&self.renamed.emitted_as(native))) {
            Some(Call::Open(open)) => open.executor != Executor::Provider,
            _ => native.is_empty(),
        }
    }

    /// Whether a call with this native id has started in this epoch.
    pub(super) fn is_known(&self, native: &Text<'_>) -> bool {
        match self.calls.get(&key(&self.renamed.emitted_as(native))) {
            Some(Call::Open(_)) => true,
            Some(Call::Closed(closed)) => closed.epoch == self.epoch,
            None => false,
        }
    }

    /// The id under which the call with this native id is emitted.
    pub(super) fn emitted_id(&self, native: &Text<'_>) -> String {
        self.renamed.emitted_as(native).to_string()
    }

    /// Emits the call with this native id under another id from now on.
    pub(super) fn rename(&mut self, native: &Text<'_>, id: String) {
        self.renamed.insert(native, id);
    }

    /// Replaces the native call ids of an event with the emitted ones. A call whose id is taken
    /// gets a new one.
    pub(super) fn resolve_ids(&mut self, event: &mut Event<'_>, replay: bool, stream: &mut Stream) {
        let reused = match &event.data {
            Data::ToolStarted(started) => self.is_taken(&started.call, |closed| {
                !replay && !closed.repeats_message(&started.message)
            }),
            Data::ToolInputDelta(delta) => self.is_taken(&delta.call, |_| false),
            Data::ToolInput(input) => self.is_taken(&input.call, |_| false),
            Data::ToolEnded(ended) => self.is_taken(&ended.call, |_| false),
            _ => None,
        };
        if let Some(native) = reused {
            let free = |id: &String| !self.calls.contains_key(&key(&Text::plain(id)));
            let id = (2..).map(|number| format!("{native}-{number}")).find(free);
            stream.report_repair(RepairKind::CallIdReused, || format!("call {native}"));
            self.renamed.insert(&Text::plain(&native), id.unwrap_or_default());
        }
        self.renamed.rename(event);
    }

    /// The native id, if it belongs to another, closed call: one of an earlier epoch, or one of
    /// this epoch that `is_another` selects.
    fn is_taken(
        &self,
        native: &Text<'_>,
        is_another: impl Fn(&ClosedCall) -> bool,
    ) -> Option<String> {
        if native.is_empty() {
            return None;
        }
        let key = key(&self.renamed.emitted_as(native));
        let taken = match self.calls.get(&key)? {
            Call::Open(_) => self.unclaimed.contains(&key),
            // What an agent reports of a call of the client may come after the client's answer.
            Call::Closed(closed) => {
                closed.epoch != self.epoch
                    || (is_another(closed) && !self.of_client_tools.contains(&key))
            }
        };
        taken.then(|| native.to_string())
    }

    /// Whether a record that both starts and answers a call repeats one of this epoch.
    pub(super) fn repeats(&self, started: &ToolStarted<'_>, ended: &ToolEnded<'_>) -> bool {
        match self.calls.get(&key(&self.renamed.emitted_as(&started.call))) {
            Some(Call::Closed(closed)) => {
                let input = input_number(started.input.as_ref());
                closed.epoch == self.epoch
                    && closed.outcome == Outcome::Answered
                    && closed.content == content_number(&started.name.to_plain(), input)
                    && closed.answer == answer_number(ended)
            }
            _ => false,
        }
    }

    /// Gives an id to a call that has none. An answer without one belongs to the oldest such call.
    pub(super) fn assign_id(&mut self, data: &mut Data<'_>) {
        let (call, starts, ends) = match data {
            Data::ToolStarted(started) => (&mut started.call, true, false),
            Data::ToolInputDelta(delta) => (&mut delta.call, false, false),
            Data::ToolInput(input) => (&mut input.call, false, false),
            Data::ToolProgress(progress) => (&mut progress.call, false, false),
            Data::ToolEnded(ended) => (&mut ended.call, false, true),
            _ => return,
        };
        if !call.is_empty() {
            return;
        }
        let oldest = if starts { None } else { self.unnamed.front().cloned() };
        let id = oldest.unwrap_or_else(|| {
            let id = self.ids.next(|id| !self.calls.contains_key(&key(&Text::plain(id))));
            self.unnamed.push_back(id.clone());
            id
        });
        if ends {
            self.unnamed.pop_front();
        }
        *call = Text::from(id);
    }

    /// Assigns a plan that was written by a call without an id to the newest such call.
    pub(super) fn resolve_plan(&self, event: &mut Event<'_>) {
        if let Data::PlanUpdated(plan) = &mut event.data
            && plan.call.as_ref().is_some_and(Text::is_empty)
        {
            plan.call = self.unnamed.back().map(|id| Text::from(id.clone()));
        }
    }

    /// Whether a call is unanswered.
    pub(super) fn has_open(&self) -> bool {
        self.open > 0
    }

    /// Whether an answer to a call will be emitted: the call is open, or not known yet.
    pub(super) fn awaits_answer(&self, call: &Text<'_>) -> bool {
        !matches!(self.calls.get(&key(&self.renamed.emitted_as(call))), Some(Call::Closed(_)))
    }

    /// Whether a call of the client waits whose process is gone. The client answers it, whatever an agent
    /// replays of it.
    pub(super) fn waits_since_before(&self, call: &Text<'_>) -> bool {
        matches!(self.calls.get(&key(call)), Some(Call::Open(open)) if open.waits_since_before(self.epoch))
    }

    /// Closes the unanswered calls. While a turn waits for the client, the client's calls stay
    /// open, and writers rely on no others being open. If the agent does not report which call the
    /// turn waits for, all of them are closed, which is not reported as a repair.
    pub(super) fn end_turn(
        &mut self,
        (waiting, replay): (bool, bool),
        reason: Reason,
        stream: &mut Stream,
        emit: Emit<'_>,
    ) {
        if self.open == 0 {
            return;
        }
        let epoch = self.epoch;
        let stays = |open: &OpenCall| {
            waiting && open.executor == Executor::Client || replay && open.waits_since_before(epoch)
        };
        let open = self.calls.iter().filter_map(|(key, call)| match call {
            Call::Open(open) => Some((open.order, *key, stays(open))),
            _ => None,
        });
        let mut open: Vec<_> = open.collect();
        open.sort_unstable();
        let known = open.iter().any(|(_, _, stays)| *stays);
        let all_closed = waiting && !known;
        let why = if waiting {
            "the turn rests until the client has run its tool"
        } else {
            "the turn ended before this call was answered"
        };
        for (_, call, stays) in open {
            match self.calls.get_mut(&call) {
                Some(Call::Open(open)) if stays => {
                    let id = std::mem::take(&mut open.id);
                    emit_unknown_input(open, &Text::plain(&id), stream, emit);
                    (open.id, open.outlasts_turn) = (id, true);
                }
                Some(place) => {
                    let outcome = if all_closed { Outcome::Waiting } else { Outcome::Abandoned };
                    let Some(open) = place.end(outcome, 0) else { continue };
                    if !all_closed {
                        stream.report_repair(RepairKind::CallNotAnswered, || {
                            format!("call {} ({})", open.id, open.name)
                        });
                    }
                    self.abandon(*open, why, reason.clone(), stream, emit);
                }
                None => {}
            }
        }
    }

    pub(super) fn start(&mut self, event: &mut Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        self.assign_id(&mut event.data);
        let Data::ToolStarted(started) = &mut event.data else { return };
        if started.name.is_empty() {
            started.name = Text::plain(UNNAMED);
        }
        let key = key(&started.call);
        match self.calls.get_mut(&key) {
            None => {
                let mut call = self.open_call(&started.call, &started.name);
                call.kind = started.kind.clone();
                call.executor = started.executor.clone();
                Text::keep_in(event.parent.as_ref(), &mut call.parent);
                Text::keep_in(started.message.as_ref(), &mut call.message);
                call.set_input(started.input.as_ref());
                self.calls.insert(key, Call::Open(call));
                stream.emit_decoded(event, emit);
            }
            Some(Call::Open(open)) if !open.input_known && started.input.is_some() => {
                let ToolStarted { call, message, input, .. } = std::mem::take(started);
                let (parent, time) = (event.parent.take(), event.time.take());
                let input = ToolInput { call, message, input, ..ToolInput::default() };
                self.input(Event::new(input).within(parent).at(time), stream, emit);
            }
            // The message may be known only now.
            Some(Call::Open(open)) if started.message.is_some() => {
                open.message = started.message.clone().map(Text::into_owned);
                stream.count_merged();
            }
            Some(_) => stream.count_repeated(),
        }
    }

    fn input_delta(&mut self, event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::ToolInputDelta(delta) = &event.data else { return };
        self.ensure_known(&delta.call, &event, stream, emit);
        if let Some(open) = self.find_open(&delta.call).filter(|open| !open.input_known) {
            if open.executor == Executor::Client {
                open.stream_input(&delta.text.to_plain());
            }
            let parent = open.parent.as_ref().map(Text::borrowed);
            stream.emit_decoded(&mut event.within(parent), emit);
        } else {
            stream.count_repeated();
        }
    }

    fn input(&mut self, event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::ToolInput(input) = &event.data else { return };
        self.ensure_known(&input.call, &event, stream, emit);
        let Event { time, data: Data::ToolInput(mut input), .. } = event else { return };
        let Some(open) = self.find_open(&input.call).filter(|open| !open.input_known) else {
            stream.count_repeated();
            return;
        };
        open.set_input(input.input.as_ref());
        open.input_known = true;
        input.name = Text::plain(&open.name);
        input.kind = open.kind.clone();
        input.executor = open.executor.clone();
        input.message = input.message.or_else(|| open.message.as_ref().map(Text::borrowed));
        let parent = open.parent.as_ref().map(Text::borrowed);
        stream.emit_decoded(&mut Event::new(input).within(parent).at(time), emit);
    }

    fn progress(&mut self, event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::ToolProgress(progress) = &event.data else { return };
        let Some(open) = self.find_open(&progress.call) else {
            stream.count_repeated();
            return;
        };
        if let Some(output) = &progress.output {
            open.append_output(&output.to_plain());
        }
        let parent = open.parent.as_ref().map(Text::borrowed);
        stream.emit_decoded(&mut event.within(parent), emit);
    }

    /// Completes a permission request with the tool and the input of its call.
    pub(super) fn complete_request(&mut self, event: &mut Event<'_>) {
        // A closed call can no longer be allowed or denied, so the request does not refer to it.
        let call = match &mut event.data {
            Data::PermissionRequested(request) => &mut request.call,
            Data::QuestionAsked(asked) => &mut asked.call,
            Data::PermissionResolved(resolved) => {
                let open = resolved.call.as_ref().and_then(|call| self.find_open(call));
                let name = open.and_then(|open| open.known_name().map(Text::into_owned));
                resolved.tool = resolved.tool.take().or(name);
                return;
            }
            _ => return,
        };
        if call.as_ref().is_some_and(|call| !self.awaits_answer(call)) {
            *call = None;
        }
        if let Data::PermissionRequested(request) = &mut event.data
            && let Some(open) = request.call.as_ref().and_then(|call| self.find_open(call))
        {
            let (tool, input) = (open.known_name(), open.known_input());
            request.tool = request.tool.take().or(tool.map(Text::into_owned));
            request.input = request.input.take().or(input.map(Json::into_owned));
        }
    }

    fn answer(&mut self, event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::ToolEnded(ended) = &event.data else { return };
        self.ensure_known(&ended.call, &event, stream, emit);
        let Event { parent, time, synthetic, data: Data::ToolEnded(mut ended) } = event else {
            return;
        };
        let Some(call) = self.calls.get_mut(&key(&ended.call)) else { return };
        let number = answer_number(&ended);
        // The client's answer is the answer, in whatever words the agent repeats it.
        let of_client_tool = self.of_client_tools.contains(&key(&ended.call));
        match call {
            Call::Open(_) => {
                let Some(mut open) = call.end(Outcome::Answered, number) else { return };
                self.open -= 1;
                emit_unknown_input(&mut open, &ended.call, stream, emit);
                ended.name = Text::plain(&open.name);
                ended.kind = open.kind.clone();
                ended.executor = open.executor.clone();
                if ended.status == ToolStatus::Cancelled || ended.status == ToolStatus::Abandoned {
                    let reported = ended.output.take().filter(|output| !output.is_null());
                    ended.output = reported.or_else(|| open.partial_output());
                }
                // The answer belongs to the agent that made the call.
                let parent = open.parent.as_ref().map(Text::borrowed);
                let mut answer = Event::new(ended).within(parent).at(time).because(synthetic);
                stream.emit_decoded(&mut answer, emit);
                if self.spare.len() < MAX_SPARE {
                    self.spare.push(open);
                }
            }
            Call::Closed(closed)
                if closed.outcome == Outcome::Answered
                    && (closed.answer == number || of_client_tool || is_bare(&ended)) =>
            {
                stream.count_repeated();
            }
            Call::Closed(closed) => {
                // A call may be answered after its turn began to wait for the client.
                if closed.outcome != Outcome::Waiting {
                    stream.report_repair(RepairKind::AnswerTooLate, || {
                        format!("call {}", ended.call)
                    });
                }
                (closed.outcome, closed.answer) = (Outcome::Answered, number);
                let late = Native { name: Text::plain("late_answer"), raw: ended.output };
                let late = Event::new(late).within(parent).at(time).because(synthetic);
                stream.emit_decoded(&mut { late }, emit);
            }
        }
    }

    fn abandon(
        &mut self,
        mut open: OpenCall,
        why: &'static str,
        reason: Reason,
        stream: &mut Stream,
        emit: Emit<'_>,
    ) {
        self.open -= 1;
        self.unnamed.retain(|unnamed| *unnamed != open.id);
        let id = std::mem::take(&mut open.id);
        let call = Text::plain(&id);
        emit_unknown_input(&mut open, &call, stream, emit);
        let ended = ToolEnded {
            call,
            name: Text::plain(&open.name),
            kind: open.kind.clone(),
            executor: open.executor.clone(),
            status: ToolStatus::Abandoned,
            output: open.partial_output(),
            error: Some(Text::plain(why)),
            ..ToolEnded::default()
        };
        let event = Event::new(ended).within(open.parent.as_ref().map(Text::borrowed));
        stream.emit_added(&mut { event }, reason, emit);
    }

    /// Adds the start of a call that an event refers to and that is not known.
    fn ensure_known(
        &mut self,
        call: &Text<'_>,
        event: &Event<'_>,
        stream: &mut Stream,
        emit: Emit<'_>,
    ) {
        let key = key(call);
        if self.calls.contains_key(&key) {
            return;
        }
        let name = match &event.data {
            Data::ToolEnded(ended) if !ended.name.is_empty() => ended.name.clone().into_owned(),
            _ => Text::plain(UNNAMED),
        };
        stream.report_repair(RepairKind::AnswerWithoutCall, || format!("call {call}"));
        let mut open = self.open_call(call, &name);
        open.parent = event.parent.clone().map(Text::into_owned);
        let started = ToolStarted { call: call.clone(), name, ..ToolStarted::default() };
        stream.emit_added(
            &mut Event::new(started).within(event.parent.clone()),
            Reason::Implied,
            emit,
        );
        self.calls.insert(key, Call::Open(open));
    }

    /// Opens a call, reusing the allocations of a closed one.
    fn open_call(&mut self, id: &Text<'_>, name: &Text<'_>) -> Box<OpenCall> {
        let mut call = self.spare.pop().unwrap_or_default();
        let spare = std::mem::take(&mut *call);
        let (mut kept_id, mut kept_name, mut input) = (spare.id, spare.name, spare.input);
        kept_id.clear();
        kept_id.push_str(&id.to_plain());
        kept_name.clear();
        kept_name.push_str(&name.to_plain());
        input.clear();
        input.shrink_to(SPARE_CAPACITY);
        *call = OpenCall {
            id: kept_id,
            name: kept_name,
            input,
            order: self.made,
            epoch: self.epoch,
            position: self.positions.saturating_sub(1),
            ..OpenCall::default()
        };
        self.made += 1;
        self.open += 1;
        call
    }

    fn find_open(&mut self, call: &Text<'_>) -> Option<&mut OpenCall> {
        match self.calls.get_mut(&key(call)) {
            Some(Call::Open(open)) => Some(open),
            _ => None,
        }
    }
}

/// Emits that the input remains unknown, so that no writer waits for it.
fn emit_unknown_input(open: &mut OpenCall, call: &Text<'_>, stream: &mut Stream, emit: Emit<'_>) {
    if std::mem::replace(&mut open.input_known, true) {
        return;
    }
    let input = ToolInput {
        call: call.borrowed(),
        name: Text::plain(&open.name),
        kind: open.kind.clone(),
        executor: open.executor.clone(),
        message: open.message.as_ref().map(Text::borrowed),
        input: None,
    };
    let event = Event::new(input).within(open.parent.as_ref().map(Text::borrowed));
    stream.emit_added(&mut { event }, Reason::Implied, emit);
}
