//! Every tool call is made once and answered once.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;

use super::RepairKind;
use super::renamed::Renamed;
use super::stream::{Emit, Stream};
use crate::event::{
    Data, Event, Executor, Native, Reason, ToolEnded, ToolInput, ToolKind, ToolStarted, ToolStatus,
};
use crate::fingerprint::{Fingerprint, FingerprintHasher, of_name, of_optional_name, of_words};
use crate::json::{Json, Text};

/// How many calls that are over leave their room behind.
const SPARE: usize = 16;

/// How much room for an input is kept from call to call.
const ROOM: usize = 64 << 10;

/// The name of a tool that nobody named.
const UNNAMED: &str = "unknown";

/// The longest input that is kept for those who have to decide about a call.
const INPUT_KEPT: usize = 1 << 20;

/// How much of a running call's output is kept: the end of it.
const OUTPUT_KEPT: usize = 64 << 10;

#[derive(Debug, Default)]
pub(super) struct Calls {
    /// All calls of the session, by the fingerprint of the id under which they are emitted: a call
    /// that is over is kept in a few bytes.
    calls: HashMap<u64, Call, BuildHasherDefault<FingerprintHasher>>,
    epoch: u64,
    made: u64,
    open: usize,
    /// Calls that the agent gave no id, in the order in which they were made.
    unnamed: VecDeque<String>,
    names: Names,
    /// Native ids of this epoch that were used before.
    renamed: Renamed,
    /// Room of calls that are over, for those to come.
    #[allow(clippy::vec_box, reason = "it is the boxes that are used again")]
    spare: Vec<Box<OpenCall>>,
}

/// Ids for calls that the agent gave none.
#[derive(Debug, Default)]
struct Names {
    /// What makes them differ from those of other sessions.
    tag: String,
    /// Earlier runs of the session are not known.
    resumed: bool,
    /// How they begin, where the protocol prescribes it.
    prefix: Option<&'static str>,
    made: u64,
}

#[derive(Debug)]
enum Call {
    Open(Box<OpenCall>),
    Over(Over),
}

/// A call that is over: enough to recognise a repetition of it.
#[derive(Debug, Clone, Copy)]
struct Over {
    how: Outcome,
    epoch: u64,
    /// The fingerprint of the message that made it.
    message: u64,
    /// The fingerprint of its name and input.
    content: u64,
    /// The fingerprint of its answer.
    answer: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Answered,
    Abandoned,
    /// Given up because its turn rests, and nobody said which call it rests for.
    Resting,
}

#[derive(Debug, Default)]
struct OpenCall {
    id: String,
    order: u64,
    epoch: u64,
    name: String,
    kind: ToolKind,
    executor: Executor,
    parent: Option<Text<'static>>,
    message: Option<Text<'static>>,
    input_known: bool,
    /// The input; empty where it is not known, or too long to keep.
    input: String,
    /// The fingerprint of the input.
    input_number: u64,
    /// What it put out so far.
    output: String,
}

impl Calls {
    pub(super) fn push(&mut self, mut event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        self.name(&mut event.data);
        match event.data {
            Data::ToolInputDelta(_) => self.input_delta(event, stream, emit),
            Data::ToolInput(_) => self.input(event, stream, emit),
            Data::ToolProgress(_) => self.progress(event, stream, emit),
            Data::ToolEnded(_) => self.answer(event, stream, emit),
            _ => {}
        }
    }

    /// Sets how the ids of calls begin that the agent gives none, where the protocol prescribes it.
    pub(super) fn set_prefix(&mut self, prefix: Option<&'static str>) {
        self.names.prefix = prefix;
    }

    /// Sets what makes these ids differ from those of other sessions.
    pub(super) fn set_tag(&mut self, tag: &str, resumed: bool) {
        (self.names.tag, self.names.resumed) = (tag.to_owned(), resumed);
    }

    /// Begins another run of the agent: its ids start anew.
    pub(super) fn begin_epoch(&mut self) {
        self.epoch += 1;
        self.renamed.clear();
        self.unnamed.clear();
    }

    /// Settles which call an event is about: native ids become those under which calls are emitted.
    pub(super) fn settle(&mut self, event: &mut Event<'_>, replay: bool, stream: &mut Stream) {
        let reused = match &event.data {
            Data::ToolStarted(started) => self
                .is_taken(&started.call, |over| !replay && !over.repeats_message(&started.message)),
            Data::ToolInputDelta(delta) => self.is_taken(&delta.call, |_| false),
            Data::ToolInput(input) => self.is_taken(&input.call, |_| false),
            Data::ToolEnded(ended) => self.is_taken(&ended.call, |_| false),
            _ => None,
        };
        if let Some(native) = reused {
            let free = |id: &String| !self.calls.contains_key(&key(&Text::plain(id)));
            let id = (2..).map(|number| format!("{native}-{number}")).find(free);
            stream.repaired(RepairKind::CallIdReused, || format!("call {native}"));
            self.renamed.insert(&Text::plain(&native), id.unwrap_or_default());
        }
        self.renamed.rename(event);
    }

    /// The native id of an event, if the call that has it is another one: one of an earlier epoch that
    /// is over, or one of this epoch of which the caller says so.
    fn is_taken(&self, native: &Text<'_>, is_another: impl Fn(&Over) -> bool) -> Option<String> {
        if native.is_empty() {
            return None;
        }
        let taken = match self.calls.get(&key(&self.renamed.emitted_as(native)))? {
            Call::Open(_) => false,
            Call::Over(over) => over.epoch != self.epoch || is_another(over),
        };
        taken.then(|| native.to_string())
    }

    /// Whether a record that both makes and answers a call repeats one of this epoch.
    pub(super) fn repeats(&self, started: &ToolStarted<'_>, ended: &ToolEnded<'_>) -> bool {
        match self.calls.get(&key(&self.renamed.emitted_as(&started.call))) {
            Some(Call::Over(over)) => {
                let input = input_number(started.input.as_ref());
                over.epoch == self.epoch
                    && over.how == Outcome::Answered
                    && over.content == content_number(&started.name.to_plain(), input)
                    && over.answer == answer_number(ended)
            }
            _ => false,
        }
    }

    /// Gives an id to a call that has none; an answer without one is that of the oldest such call.
    fn name(&mut self, data: &mut Data<'_>) {
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
            let id = self.names.next(|id| !self.calls.contains_key(&key(&Text::plain(id))));
            self.unnamed.push_back(id.clone());
            id
        });
        if ends {
            self.unnamed.pop_front();
        }
        *call = Text::from(id);
    }

    /// A plan that a call without an id wrote is that of the newest such call.
    pub(super) fn settle_plan(&self, event: &mut Event<'_>) {
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

    /// Whether an answer to a call will be handed on: it is open, or nobody has heard of it yet.
    pub(super) fn awaits_answer(&self, call: &Text<'_>) -> bool {
        !matches!(self.calls.get(&key(&self.renamed.emitted_as(call))), Some(Call::Over(_)))
    }

    /// Closes what nobody answered. While a turn waits for the client, the client's calls stay open,
    /// and writers rely on it that no others do. Where nobody said which call the turn waits for, all
    /// of them are closed, and that is no fault of the stream.
    pub(super) fn end_turn(
        &mut self,
        waiting: bool,
        reason: Reason,
        stream: &mut Stream,
        emit: Emit<'_>,
    ) {
        if self.open == 0 {
            return;
        }
        let stays = |open: &OpenCall| waiting && open.executor == Executor::Client;
        let open = self.calls.iter().filter_map(|(key, call)| match call {
            Call::Open(open) => Some((open.order, *key, stays(open))),
            _ => None,
        });
        let mut open: Vec<_> = open.collect();
        open.sort_unstable();
        let known = open.iter().any(|(_, _, stays)| *stays);
        let resting = waiting && !known;
        let why = if waiting {
            "the turn rests until the client has run its tool"
        } else {
            "the turn ended before this call was answered"
        };
        for (_, call, stays) in open {
            match self.calls.get_mut(&call) {
                Some(Call::Open(open)) if stays => {
                    let id = std::mem::take(&mut open.id);
                    tell_unknown_input(open, &Text::plain(&id), stream, emit);
                    open.id = id;
                }
                Some(place) => {
                    let how = if resting { Outcome::Resting } else { Outcome::Abandoned };
                    let Some(open) = place.end(how, 0) else { continue };
                    if !resting {
                        stream.repaired(RepairKind::CallNotAnswered, || {
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
        self.name(&mut event.data);
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
                call.knows_input(started.input.as_ref());
                self.calls.insert(key, Call::Open(call));
                stream.said(event, emit);
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
                stream.merged();
            }
            Some(_) => stream.repeated(),
        }
    }

    fn input_delta(&mut self, event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::ToolInputDelta(delta) = &event.data else { return };
        self.ensure_known(&delta.call, &event, stream, emit);
        if let Some(open) = self.find_open(&delta.call).filter(|open| !open.input_known) {
            let parent = open.parent.as_ref().map(Text::borrowed);
            stream.said(&mut event.within(parent), emit);
        } else {
            stream.repeated();
        }
    }

    fn input(&mut self, event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::ToolInput(input) = &event.data else { return };
        self.ensure_known(&input.call, &event, stream, emit);
        let Event { time, data: Data::ToolInput(mut input), .. } = event else { return };
        let Some(open) = self.find_open(&input.call).filter(|open| !open.input_known) else {
            stream.repeated();
            return;
        };
        open.knows_input(input.input.as_ref());
        open.input_known = true;
        input.name = Text::plain(&open.name);
        input.kind = open.kind.clone();
        input.executor = open.executor.clone();
        input.message = input.message.or_else(|| open.message.as_ref().map(Text::borrowed));
        let parent = open.parent.as_ref().map(Text::borrowed);
        stream.said(&mut Event::new(input).within(parent).at(time), emit);
    }

    fn progress(&mut self, event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::ToolProgress(progress) = &event.data else { return };
        let Some(open) = self.find_open(&progress.call) else {
            stream.repeated();
            return;
        };
        if let Some(output) = &progress.output {
            open.put_out(&output.to_plain());
        }
        let parent = open.parent.as_ref().map(Text::borrowed);
        stream.said(&mut event.within(parent), emit);
    }

    /// Whoever decides about a call is told what the call is, where the question does not say it.
    pub(super) fn permission(&mut self, event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let mut event = event;
        // Whether a call may run that is over, nobody can decide: the question stands for itself.
        if let Data::PermissionRequested(request) = &mut event.data
            && request.call.as_ref().is_some_and(|call| !self.awaits_answer(call))
        {
            request.call = None;
        }
        let call = match &event.data {
            Data::PermissionRequested(request) => request.call.clone(),
            Data::PermissionResolved(resolved) => resolved.call.clone(),
            _ => None,
        };
        if let Some(open) = call.and_then(|call| self.find_open(&call)) {
            match &mut event.data {
                Data::PermissionRequested(request) => {
                    request.tool = request.tool.take().or_else(|| open.told_name());
                    request.input = request.input.take().or_else(|| open.told_input());
                }
                Data::PermissionResolved(resolved) => {
                    resolved.tool = resolved.tool.take().or_else(|| open.told_name());
                }
                _ => {}
            }
        }
        stream.said(&mut event, emit);
    }

    fn answer(&mut self, event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::ToolEnded(ended) = &event.data else { return };
        self.ensure_known(&ended.call, &event, stream, emit);
        let Event { parent, time, synthetic, data: Data::ToolEnded(mut ended) } = event else {
            return;
        };
        let Some(call) = self.calls.get_mut(&key(&ended.call)) else { return };
        let number = answer_number(&ended);
        match call {
            Call::Open(_) => {
                let Some(mut open) = call.end(Outcome::Answered, number) else { return };
                self.open -= 1;
                tell_unknown_input(&mut open, &ended.call, stream, emit);
                ended.name = Text::plain(&open.name);
                ended.kind = open.kind.clone();
                ended.executor = open.executor.clone();
                if ended.status == ToolStatus::Cancelled || ended.status == ToolStatus::Abandoned {
                    let told = ended.output.take().filter(|output| !output.is_null());
                    ended.output = told.or_else(|| open.told_output());
                }
                // Whoever made the call is answered.
                let parent = open.parent.as_ref().map(Text::borrowed);
                let mut answer = Event::new(ended).within(parent).at(time).because(synthetic);
                stream.said(&mut answer, emit);
                if self.spare.len() < SPARE {
                    self.spare.push(open);
                }
            }
            Call::Over(over)
                if over.how == Outcome::Answered && (over.answer == number || is_bare(&ended)) =>
            {
                stream.repeated();
            }
            Call::Over(over) => {
                // That a call was answered after its turn came to rest is no fault of the stream.
                if over.how != Outcome::Resting {
                    stream.repaired(RepairKind::AnswerTooLate, || format!("call {}", ended.call));
                }
                (over.how, over.answer) = (Outcome::Answered, number);
                let late = Native { name: Text::plain("late_answer"), raw: ended.output };
                let late = Event::new(late).within(parent).at(time).because(synthetic);
                stream.said(&mut { late }, emit);
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
        tell_unknown_input(&mut open, &call, stream, emit);
        let ended = ToolEnded {
            call,
            name: Text::plain(&open.name),
            kind: open.kind.clone(),
            executor: open.executor.clone(),
            status: ToolStatus::Abandoned,
            output: open.told_output(),
            error: Some(Text::plain(why)),
            ..ToolEnded::default()
        };
        let event = Event::new(ended).within(open.parent.as_ref().map(Text::borrowed));
        stream.added(&mut { event }, reason, emit);
    }

    /// Adds a call that somebody speaks of and nobody made.
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
        stream.repaired(RepairKind::AnswerWithoutCall, || format!("call {call}"));
        let mut open = self.open_call(call, &name);
        open.parent = event.parent.clone().map(Text::into_owned);
        let started = ToolStarted { call: call.clone(), name, ..ToolStarted::default() };
        stream.added(&mut Event::new(started).within(event.parent.clone()), Reason::Implied, emit);
        self.calls.insert(key, Call::Open(open));
    }

    /// A call that is made now, in room that another one left.
    fn open_call(&mut self, id: &Text<'_>, name: &Text<'_>) -> Box<OpenCall> {
        let mut call = self.spare.pop().unwrap_or_default();
        let room = std::mem::take(&mut *call);
        let (mut kept_id, mut kept_name, mut input) = (room.id, room.name, room.input);
        kept_id.clear();
        kept_id.push_str(&id.to_plain());
        kept_name.clear();
        kept_name.push_str(&name.to_plain());
        input.clear();
        input.shrink_to(ROOM);
        *call = OpenCall {
            id: kept_id,
            name: kept_name,
            input,
            order: self.made,
            epoch: self.epoch,
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

impl OpenCall {
    /// Keeps the input, if it is known.
    fn knows_input(&mut self, input: Option<&Json<'_>>) {
        self.input_known = input.is_some();
        self.input_number = input_number(input);
        if let Some(input) = input.filter(|input| input.get().len() <= INPUT_KEPT) {
            self.input.push_str(input.get());
        }
    }

    /// Keeps the next piece of the output, and of all pieces the end.
    fn put_out(&mut self, piece: &str) {
        self.output.push_str(piece);
        // Moving what is kept costs less than what is thrown away came to.
        if self.output.len() > 2 * OUTPUT_KEPT {
            let start = self.output.ceil_char_boundary(self.output.len() - OUTPUT_KEPT);
            self.output.drain(..start);
        }
    }

    /// Its tool, for those who speak of the call and do not say it.
    fn told_name(&self) -> Option<Text<'_>> {
        (self.name != UNNAMED).then(|| Text::plain(&self.name))
    }

    fn told_input(&self) -> Option<Json<'_>> {
        (!self.input.is_empty()).then(|| Json::read_from(&self.input))
    }

    /// What it put out before it was stopped.
    fn told_output(&self) -> Option<Json<'static>> {
        (!self.output.is_empty()).then(|| Json::from(&Text::plain(&self.output)))
    }
}

impl Call {
    /// Ends a call; gives what was known of it.
    fn end(&mut self, how: Outcome, answer: u64) -> Option<Box<OpenCall>> {
        let Self::Open(open) = self else { return None };
        let over = Over {
            how,
            epoch: open.epoch,
            message: of_optional_name(&open.message),
            content: content_number(&open.name, open.input_number),
            answer,
        };
        match std::mem::replace(self, Self::Over(over)) {
            Self::Open(open) => Some(open),
            Self::Over(_) => None,
        }
    }
}

impl Over {
    /// Whether a call of the same id that is part of this message is the same call.
    fn repeats_message(&self, message: &Option<Text<'_>>) -> bool {
        message.is_some() && of_optional_name(message) == self.message
    }
}

impl Names {
    fn next(&mut self, is_free: impl Fn(&str) -> bool) -> String {
        loop {
            self.made += 1;
            let (number, tag) = (self.made, &self.tag);
            let id = match self.prefix {
                Some(prefix) if !self.resumed => format!("{prefix}{number}"),
                Some(prefix) => format!("{prefix}{number}_{tag}"),
                None => format!("call_{tag}_{number}"),
            };
            if is_free(&id) {
                return id;
            }
        }
    }
}

fn input_number(input: Option<&Json<'_>>) -> u64 {
    input.map_or(0, |input| Fingerprint::of(input.get().as_bytes()).number())
}

fn content_number(name: &str, input: u64) -> u64 {
    of_words([of_name(name.as_bytes()), input])
}

/// Whether an answer says only that there was one.
fn is_bare(ended: &ToolEnded<'_>) -> bool {
    let ToolEnded { output, structured, exit_code, error, .. } = ended;
    output.is_none() && structured.is_none() && exit_code.is_none() && error.is_none()
}

/// The fingerprint of an answer.
fn answer_number(ended: &ToolEnded<'_>) -> u64 {
    let json = |json: &Option<Json<'_>>| input_number(json.as_ref());
    of_words([
        of_name(ended.status.as_str().as_bytes()),
        json(&ended.output),
        json(&ended.structured),
        ended.exit_code.map_or(u64::MAX, i64::cast_unsigned),
        of_optional_name(&ended.error),
    ])
}

/// What a call is known by.
#[inline]
pub(super) fn key(call: &Text<'_>) -> u64 {
    of_name(call.to_plain().as_bytes())
}

/// A writer that waits for the input is told that none will come.
fn tell_unknown_input(open: &mut OpenCall, call: &Text<'_>, stream: &mut Stream, emit: Emit<'_>) {
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
    stream.added(&mut { event }, Reason::Implied, emit);
}
