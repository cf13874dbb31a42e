//! Makes any stream of events well-formed, and says what it had to repair.
//!
//! A decoder says what each record means, one by one, and may say a thing twice. The grammar knows
//! the order of things: sessions start before turns, blocks and calls are opened before they go on,
//! every call is answered once, every turn ends once. What is missing it adds and marks as
//! synthetic; what was said before it drops; counts that grow over a session it turns into the
//! counts of a turn. It knows no protocol, and it never holds an event back.

mod blocks;
mod calls;
mod fingerprint;
mod messages;
mod names;
mod over;
mod pieces;
mod plans;
mod recent;
mod repair;
mod reused;
mod session;
mod turns;

use crate::dialect::Ending;
use crate::event::{Data, ErrorClass, Event, Outcome, Reason, Source, TextFlaw, Unparsed};
use blocks::Blocks;
use calls::Calls;
use messages::Messages;
use plans::Plans;
pub use repair::{Repair, RepairKind, Repairs};
use session::Session;
use turns::{End, Turns};

/// How an agent's process or stream ended, as far as the caller saw it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exit {
    /// The exit code, if one was seen.
    pub code: Option<i64>,
    /// The signal that ended the process, if one did.
    pub signal: Option<i64>,
    /// The last lines of standard error, if they were kept.
    pub stderr: Option<String>,
    /// Why the caller ended the agent, if it did.
    pub stopped: Option<Stopped>,
}

/// Why whoever runs an agent ended it. A turn that the agent did not end itself ended so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// How the turn ended.
    pub outcome: Outcome,
    /// Why, for a person to read.
    pub cause: String,
}

/// The order of things, and the state that it takes to keep it.
#[derive(Debug, Default)]
pub struct Grammar {
    stream: Stream,
    session: Session,
    turns: Turns,
    messages: Messages,
    blocks: Blocks,
    calls: Calls,
    plans: Plans,
    cut_off: bool,
    /// What kind of failure the exit of the agent reports.
    exit_class: Option<fn(&Exit) -> Option<ErrorClass>>,
}

/// What every event of the stream is given: its number and its source.
#[derive(Debug, Default)]
struct Stream {
    sequence: u64,
    source: Source,
    repairs: Repairs,
}

/// Where well-formed events go.
type Emit<'e> = &'e mut dyn FnMut(&Event<'_>);

impl Stream {
    /// Hands on an event that the agent said.
    #[inline]
    fn said(&mut self, event: &mut Event<'_>, emit: Emit<'_>) {
        event.sequence = self.sequence;
        // Our own events may say that they were added when they were first written.
        let synthetic = event.source.synthetic.take();
        event.source = Source { synthetic, ..self.source.clone() };
        self.sequence += 1;
        emit(event);
    }

    /// Hands on an event that the agent did not say.
    fn added(&mut self, event: &mut Event<'_>, reason: Reason, emit: Emit<'_>) {
        event.sequence = self.sequence;
        event.source = Source { synthetic: Some(reason), ..self.source.clone() };
        self.sequence += 1;
        emit(event);
    }

    fn repaired(&mut self, kind: RepairKind, what: impl FnOnce() -> String) {
        self.repairs.add(kind, self.source.line, what);
    }
}

impl Grammar {
    /// The frame that the next events come from.
    pub fn at(&mut self, line: u64, bytes: std::ops::Range<u64>) {
        self.stream.source = Source { line, bytes, synthetic: None };
    }

    /// The line of the input that the next events come from.
    pub(crate) fn line(&self) -> u64 {
        self.stream.source.line
    }

    /// Notes that the frame at hand could not be read, before the event that says so.
    pub fn unreadable(&mut self, unparsed: &Unparsed<'_>) {
        self.cut_off |= unparsed.flaw == TextFlaw::Truncated;
        let kind = match unparsed.flaw {
            TextFlaw::TooLong => RepairKind::TooLong,
            _ => RepairKind::Unreadable,
        };
        self.stream.repaired(kind, || unparsed.message.to_string());
    }

    /// What the session had used before this stream, where its counts go on from there: those of a
    /// resumed thread of Codex do.
    pub fn set_usage_before(&mut self, usage: crate::event::Usage<'_>) {
        self.turns.set_usage_before(usage);
    }

    /// How to read the exit of the agent, whose stream may not report why it failed.
    pub fn set_exit_class(&mut self, class: fn(&Exit) -> Option<ErrorClass>) {
        self.exit_class = Some(class);
    }

    /// What was repaired so far.
    pub fn repairs(&self) -> &Repairs {
        &self.stream.repairs
    }

    /// Takes the next event, and hands on what it is in a well-formed stream.
    #[inline]
    pub fn push(&mut self, mut event: Event<'_>, emit: Emit<'_>) {
        names::or_absent(&mut event.parent);
        self.calls.settle(&mut event, &mut self.stream);
        // Pieces of text are most of what agents say, and need little of what follows.
        if !(matches!(event.data, Data::BlockDelta(_)) && self.turns.is_open()) {
            names::settle(&mut event);
            let answers = match &event.data {
                Data::ToolEnded(ended) => self.calls.awaits_answer(&ended.call),
                _ => false,
            };
            if answers || belongs_to_a_turn(&event.data) {
                self.ensure_turn(emit);
            }
        }
        // Events are large, and every move of one is a copy: what comes often stays where it is.
        let stream = &mut self.stream;
        match event.data {
            Data::BlockStarted(_) | Data::BlockDelta(_) | Data::BlockEnded(_) | Data::Block(_) => {
                self.blocks.push(&mut event, stream, emit);
            }
            Data::MessageStarted(_) | Data::MessageEnded(_) => {
                self.turns.note(&event);
                self.messages.push(&mut event, stream, emit);
            }
            Data::ToolStarted(_) => self.calls.start(&mut event, stream, emit),
            _ => self.push_other(event, emit),
        }
    }

    fn push_other(&mut self, mut event: Event<'_>, emit: Emit<'_>) {
        let stream = &mut self.stream;
        match event.data {
            Data::SessionStarted(_) | Data::SessionUpdated(_) => {
                self.session.push(event, stream, emit);
            }
            Data::SessionEnded(_) => self.session.told_end(event, stream, emit),
            Data::TurnStarted(_) => {
                self.session.ensure_started(stream, emit);
                self.turns.start(event, stream, emit);
            }
            Data::TurnEnded(_) => {
                let added = event.source.synthetic.take();
                self.end_turn(event, added, emit);
            }
            Data::Withdrawn(_) => self.blocks.withdraw(event, stream, emit),
            Data::ToolInputDelta(_) | Data::ToolInput(_) | Data::ToolProgress(_) => {
                self.calls.push(event, stream, emit);
            }
            Data::ToolEnded(_) => {
                // Outside a turn nobody is told of plans.
                let refused = self.plans.refused_by(&event).filter(|_| self.turns.is_open());
                self.blocks.step();
                self.calls.push(event, stream, emit);
                self.plans.put_back(refused, stream, emit);
            }
            Data::PlanUpdated(_) => self.plans.push(event, stream, emit),
            Data::PermissionRequested(_) | Data::PermissionResolved(_) => {
                self.calls.permission(event, stream, emit);
            }
            Data::Retry(_) | Data::Error(_) | Data::Interrupted(_) | Data::Usage(_) => {
                self.turns.note(&event);
                stream.said(&mut event, emit);
            }
            _ => stream.said(&mut event, emit),
        }
    }

    /// Says that nothing more will come: closes what is open, as truthfully as it can.
    pub fn finish(&mut self, exit: &Exit, ending: Ending, emit: Emit<'_>) {
        let exit = self.session.exit(exit);
        if self.turns.is_open() || self.turns.none_of_the_present() {
            self.ensure_turn(emit);
            let clean = ending == Ending::Implied
                && !self.cut_off
                && !self.turns.nothing_said(&self.stream);
            let mid_message = self.messages.is_open();
            let class = self.exit_class.and_then(|class| class(&exit));
            let end = End { exit: &exit, class, clean, cut_off: self.cut_off, mid_message };
            let (ended, reason) = self.turns.ending(&end);
            let kind = RepairKind::TurnNotEnded;
            if reason != Reason::StreamEnded {
                self.stream.repaired(kind, || {
                    ended.cause.as_ref().map(ToString::to_string).unwrap_or_default()
                });
            }
            self.end_turn(Event::new(ended), Some(reason), emit);
        }
        self.session.end(&exit, &mut self.stream, emit);
    }

    fn ensure_turn(&mut self, emit: Emit<'_>) {
        if !self.turns.is_open() {
            self.session.ensure_started(&mut self.stream, emit);
            self.turns.imply(&mut self.stream, emit);
        }
    }

    fn end_turn(&mut self, event: Event<'_>, added: Option<Reason>, emit: Emit<'_>) {
        let waiting = matches!(
            &event.data,
            Data::TurnEnded(ended) if ended.outcome == Outcome::WaitingForClient
        );
        let reason = added.clone().unwrap_or(Reason::TurnEnded);
        if let Data::TurnEnded(ended) = &event.data
            && let Some(text) = &ended.final_text
        {
            self.blocks.last_word(text, &mut self.stream, emit);
        }
        self.blocks.end_turn(reason.clone(), &mut self.stream, emit);
        self.messages.end_turn(&reason, &mut self.stream, emit);
        self.calls.end_turn(waiting, reason, &mut self.stream, emit);
        self.turns.end(event, added, &mut self.stream, emit);
    }
}

/// Whether an event only makes sense inside a turn.
fn belongs_to_a_turn(data: &Data<'_>) -> bool {
    match data {
        Data::TurnEnded(_)
        | Data::UserMessage(_)
        | Data::MessageStarted(_)
        | Data::BlockStarted(_)
        | Data::BlockDelta(_)
        | Data::Block(_)
        | Data::ToolStarted(_)
        | Data::ToolInput(_)
        | Data::ToolInputDelta(_)
        | Data::PlanUpdated(_)
        // An agent that asks is at work.
        | Data::PermissionRequested(_)
        | Data::QuestionAsked(_)
        | Data::Retry(_)
        | Data::Interrupted(_) => true,
        Data::Error(error) => error.fatal,
        _ => false,
    }
}
