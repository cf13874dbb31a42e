//! Every tool call is made once and answered once.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;

use super::fingerprint::{Fingerprint, FingerprintHasher};
use super::{Emit, RepairKind, Stream};
use crate::event::{
    Data, Event, Executor, Native, Reason, ToolEnded, ToolInput, ToolKind, ToolStarted, ToolStatus,
};
use crate::json::Text;

/// How many calls that are over leave their room behind.
const SPARE: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Calls {
    /// All calls, by the fingerprint of their id: what is over is kept in a few bytes.
    calls: HashMap<u64, Call, BuildHasherDefault<FingerprintHasher>>,
    made: u64,
    open: usize,
    /// Calls that the agent gave no id, in the order in which they were made.
    unnamed: VecDeque<String>,
    named: u64,
    /// Room of calls that are over, for those to come.
    #[allow(clippy::vec_box, reason = "it is the boxes that are used again")]
    spare: Vec<Box<OpenCall>>,
}

#[derive(Debug)]
enum Call {
    Open(Box<OpenCall>),
    Answered,
    Abandoned,
}

#[derive(Debug, Default)]
struct OpenCall {
    id: String,
    order: u64,
    name: String,
    kind: ToolKind,
    executor: Executor,
    parent: Option<Text<'static>>,
    message: Option<Text<'static>>,
    input_known: bool,
}

impl Calls {
    pub(super) fn push(&mut self, mut event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        self.name(&mut event.data);
        match event.data {
            Data::ToolStarted(_) => self.start(event, stream, emit),
            Data::ToolInputDelta(_) => self.input_delta(event, stream, emit),
            Data::ToolInput(_) => self.input(event, stream, emit),
            Data::ToolProgress(ref progress) if self.find_open(&progress.call).is_some() => {
                stream.said(&mut { event }, emit);
            }
            Data::ToolEnded(_) => self.answer(event, stream, emit),
            _ => {}
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
            self.named += 1;
            let id = format!("call-{}", self.named);
            self.unnamed.push_back(id.clone());
            id
        });
        if ends {
            self.unnamed.pop_front();
        }
        *call = Text::from(id);
    }

    /// Whether an answer to a call will be handed on: it is open, or nobody has heard of it yet.
    pub(super) fn awaits_answer(&self, call: &Text<'_>) -> bool {
        !matches!(self.calls.get(&key(call)), Some(Call::Answered | Call::Abandoned))
    }

    /// Closes what nobody answered. While a turn waits for the client, what the client has to
    /// answer stays open: the calls that are known to be its own, or else all of them.
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
        if !waiting {
            self.unnamed.clear();
        }
        let open = || {
            self.calls.values().filter_map(|call| match call {
                Call::Open(open) => Some(open),
                _ => None,
            })
        };
        let of_client = |open: &OpenCall| open.executor == Executor::Client;
        if waiting && !open().any(|call| of_client(call)) {
            return;
        }
        let orphans = open().filter(|call| !(waiting && of_client(call)));
        let mut orphans: Vec<_> =
            orphans.map(|call| (call.order, key(&Text::plain(&call.id)))).collect();
        orphans.sort_unstable();
        let why = if waiting {
            "the turn rests until the client has run its tool"
        } else {
            "the turn ended before this call was answered"
        };
        for (_, call) in orphans {
            self.abandon(call, why, reason.clone(), stream, emit);
        }
    }

    fn start(&mut self, mut event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::ToolStarted(started) = &mut event.data else { return };
        if started.name.is_empty() {
            started.name = Text::plain("unknown");
        }
        let key = key(&started.call);
        match self.calls.get(&key) {
            None => {
                let mut call = self.open_call(&started.call, &started.name);
                call.kind = started.kind.clone();
                call.executor = started.executor.clone();
                call.parent = event.parent.clone().map(Text::into_owned);
                call.message = started.message.clone().map(Text::into_owned);
                call.input_known = started.input.is_some();
                self.calls.insert(key, Call::Open(call));
                stream.said(&mut { event }, emit);
            }
            Some(Call::Open(open)) if !open.input_known && started.input.is_some() => {
                let Event { parent, time, data: Data::ToolStarted(started), .. } = event else {
                    return;
                };
                let input =
                    ToolInput { call: started.call, input: started.input, ..ToolInput::default() };
                self.input(Event::new(input).within(parent).at(time), stream, emit);
            }
            // Said before.
            Some(_) => {}
        }
    }

    fn input_delta(&mut self, event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::ToolInputDelta(delta) = &event.data else { return };
        self.ensure_known(&delta.call, &event, stream, emit);
        if self.find_open(&delta.call).is_some_and(|open| !open.input_known) {
            stream.said(&mut { event }, emit);
        }
    }

    fn input(&mut self, event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::ToolInput(input) = &event.data else { return };
        self.ensure_known(&input.call, &event, stream, emit);
        let Event { parent, time, data: Data::ToolInput(mut input), .. } = event else { return };
        let Some(open) = self.find_open(&input.call) else { return };
        if std::mem::replace(&mut open.input_known, true) {
            return;
        }
        input.name = Text::plain(&open.name);
        input.kind = open.kind.clone();
        input.executor = open.executor.clone();
        input.message = open.message.as_ref().map(Text::borrowed);
        let parent = parent.or_else(|| open.parent.as_ref().map(Text::borrowed));
        stream.said(&mut Event::new(input).within(parent).at(time), emit);
    }

    fn answer(&mut self, event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::ToolEnded(ended) = &event.data else { return };
        self.ensure_known(&ended.call, &event, stream, emit);
        let Event { parent, time, data: Data::ToolEnded(mut ended), .. } = event else { return };
        let state = match self.calls.get_mut(&key(&ended.call)) {
            Some(call) => std::mem::replace(call, Call::Answered),
            None => return,
        };
        match state {
            Call::Open(mut open) => {
                self.open -= 1;
                tell_unknown_input(&mut open, &ended.call, stream, emit);
                ended.name = Text::plain(&open.name);
                ended.kind = open.kind.clone();
                ended.executor = open.executor.clone();
                let parent = parent.or_else(|| open.parent.as_ref().map(Text::borrowed));
                stream.said(&mut Event::new(ended).within(parent).at(time), emit);
                if self.spare.len() < SPARE {
                    self.spare.push(open);
                }
            }
            Call::Answered => {}
            Call::Abandoned => {
                stream.repaired(RepairKind::AnswerTooLate, || format!("call {}", ended.call));
                let late = Native { name: Text::plain("late_answer"), raw: ended.output };
                stream.said(&mut Event::new(late).within(parent).at(time), emit);
            }
        }
    }

    fn abandon(
        &mut self,
        call: u64,
        why: &'static str,
        reason: Reason,
        stream: &mut Stream,
        emit: Emit<'_>,
    ) {
        let Some(call) = self.calls.get_mut(&call) else { return };
        let Call::Open(mut open) = std::mem::replace(call, Call::Abandoned) else { return };
        self.open -= 1;
        let id = std::mem::take(&mut open.id);
        let call = Text::plain(&id);
        stream.repaired(RepairKind::CallNotAnswered, || format!("call {call} ({})", open.name));
        tell_unknown_input(&mut open, &call, stream, emit);
        let ended = ToolEnded {
            call,
            name: Text::plain(&open.name),
            kind: open.kind.clone(),
            executor: open.executor.clone(),
            status: ToolStatus::Abandoned,
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
            _ => Text::plain("unknown"),
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
        let (mut kept_id, mut kept_name) =
            (std::mem::take(&mut call.id), std::mem::take(&mut call.name));
        kept_id.clear();
        kept_id.push_str(&id.to_plain());
        kept_name.clear();
        kept_name.push_str(&name.to_plain());
        *call = OpenCall { id: kept_id, name: kept_name, order: self.made, ..OpenCall::default() };
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

/// What a call is known by.
#[inline]
fn key(call: &Text<'_>) -> u64 {
    Fingerprint::of(call.to_plain().as_bytes()).number()
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
