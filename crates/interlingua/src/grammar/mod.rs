//! Makes any stream of events well-formed, and reports what it had to repair.
//!
//! A decoder states what each record means, one by one, and may emit the same thing twice. The
//! grammar knows the order of events: sessions start before turns, blocks and calls are opened
//! before they continue, every call is answered once, every turn ends once. It adds what is missing
//! and marks it as synthetic, drops what was emitted before, and turns cumulative counts into those
//! of a turn. It knows no protocol, and it never holds an event back.

mod blocks;
mod calls;
mod client_calls;
mod closed_blocks;
mod messages;
mod names;
mod pieces;
mod plans;
mod renamed;
mod repair;
mod requests;
mod responses;
mod retractable;
mod session;
mod stream;
mod turns;

use crate::account::{Account, FrameFate};
use crate::dialect::{Dialect, Ending, RepeatedStart};
use crate::entry::{EntryRef, Origin};
use crate::event::{
    Data, ErrorClass, Event, Outcome, Reason, TextFlaw, ToolEnded, ToolStarted, TurnEnded, Unparsed,
};
use crate::json::Text;
use crate::reader::HostFacts;
use blocks::Blocks;
use calls::Calls;
use client_calls::ClientCalls;
use messages::Messages;
use plans::Plans;
pub use repair::{Repair, RepairKind, Repairs};
use requests::Requests;
pub(crate) use requests::secret_fields;
use responses::Responses;
use session::Session;
pub(crate) use stream::Outlet;
use stream::{Emit, Stream};
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

/// Why the caller ended the agent. It becomes the end of a turn that the agent did not end itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stopped {
    /// How the turn ended.
    pub outcome: Outcome,
    /// Why, for a person to read.
    pub cause: String,
}

/// The state of a session, and the rules that keep its stream well-formed.
#[derive(Debug, Default)]
pub(crate) struct Grammar {
    stream: Stream,
    session: Session,
    turns: Turns,
    messages: Messages,
    blocks: Blocks,
    calls: Calls,
    client_calls: ClientCalls,
    plans: Plans,
    requests: Requests,
    responses: Responses,
    cut_off: bool,
    repeated_start: RepeatedStart,
    /// Classifies the failure that an agent's exit reports.
    exit_class: Option<fn(&Exit) -> Option<ErrorClass>>,
}

impl Grammar {
    /// Begins the next frame of the input.
    pub(crate) fn begin_frame(&mut self, line: u64, bytes: std::ops::Range<u64>) {
        self.stream.origin = Origin { line, bytes, added: false };
        self.stream.fate = FrameFate::default();
    }

    /// Ends the frame, and counts what became of it.
    pub(crate) fn end_frame(&mut self, emit: Emit<'_>) {
        self.stream.end_record(emit);
        self.stream.account.frames.count(self.stream.fate);
    }

    /// Begins a record of the current frame whose text is to be kept.
    pub(crate) fn begin_record(&mut self, dialect: &'static Dialect, text: &str, emit: Emit<'_>) {
        self.stream.end_record(emit);
        self.stream.begin_record(dialect, text);
    }

    /// Notes that the current record is left out on purpose.
    pub(crate) fn ignored(&mut self, rule: &'static str) {
        self.stream.fate.ignored = Some(rule);
    }

    /// Sets the dialect that is read from now on.
    pub(crate) fn set_dialect(&mut self, dialect: &'static Dialect) {
        self.session.set_dialect(dialect);
        self.calls.set_prefix(dialect.unnamed_calls);
        self.repeated_start = dialect.repeated_start;
        self.exit_class = Some(dialect.exit_class);
    }

    /// Sets the tag that generated ids contain. Ids whose form a protocol prescribes contain it
    /// only where earlier runs of the session are not known.
    pub(crate) fn set_id_tag(&mut self, tag: &str, resumed: bool) {
        self.calls.set_tag(tag, resumed);
    }

    /// The number of the current epoch.
    pub(crate) fn epoch(&self) -> u64 {
        self.stream.epoch
    }

    /// Whether a record that both starts and answers a call repeats an earlier one.
    pub(crate) fn repeats(&mut self, started: &ToolStarted<'_>, ended: &ToolEnded<'_>) -> bool {
        let repeats = self.calls.repeats(started, ended);
        self.stream.fate.dropped |= repeats;
        repeats
    }

    /// Notes that the current record is incomplete, and that a later one completes it.
    pub(crate) fn deferred(&mut self) {
        self.stream.fate.dropped = true;
    }

    /// Whether a call has no answer yet.
    pub(crate) fn has_unanswered_call(&self) -> bool {
        self.calls.has_open()
    }

    /// Sets the time of the next entries.
    pub(crate) fn set_time(&mut self, received_at: Option<u64>) {
        self.stream.received_at = received_at;
    }

    /// The line of the input that the next events come from.
    pub(crate) fn line(&self) -> u64 {
        self.stream.origin.line
    }

    /// What became of all frames and events so far.
    pub(crate) fn account(&self) -> &Account {
        &self.stream.account
    }

    /// Reports that the current frame could not be read. The `Unparsed` event follows.
    pub(crate) fn unreadable(&mut self, unparsed: &Unparsed<'_>) {
        self.cut_off |= unparsed.flaw == TextFlaw::Truncated;
        let kind = match unparsed.flaw {
            TextFlaw::TooLong => RepairKind::TooLong,
            _ => RepairKind::Unreadable,
        };
        self.stream.report_repair(kind, || unparsed.message.to_string());
    }

    /// Sets what the session had used before this stream, for agents whose counts continue across
    /// runs, as those of a resumed Codex thread do.
    pub(crate) fn set_usage_before(&mut self, usage: crate::event::Usage<'_>) {
        self.turns.set_usage_before(usage);
    }

    /// Sets what the host knows of the session.
    pub(crate) fn set_host(&mut self, host: HostFacts) {
        if host != HostFacts::default() {
            self.turns.measure();
        }
        self.session.set_host(host);
    }

    /// What was repaired so far.
    pub(crate) fn repairs(&self) -> &Repairs {
        &self.stream.repairs
    }

    /// Takes an entry that this session emitted before, so that the state is as it was after it.
    pub(crate) fn restore(&mut self, entry: EntryRef<'_>, emit: Emit<'_>) {
        if entry.epoch != self.stream.epoch {
            self.begin_stream();
            self.stream.epoch = entry.epoch;
        }
        self.stream.received_at = entry.received_at;
        self.stream.origin.clone_from(entry.origin);
        if let Data::TurnEnded(ended) = &entry.event.data {
            self.turns.add_counts(ended);
        }
        self.push(entry.event.clone(), emit);
        // Whatever the grammar would emit today, the log has its numbers.
        self.stream.sequence = entry.sequence + 1;
    }

    /// The number of the next entry.
    pub(crate) fn sequence(&self) -> u64 {
        self.stream.sequence
    }

    /// Whether a turn is open.
    pub(crate) fn has_open_turn(&self) -> bool {
        self.turns.is_open()
    }

    /// Takes the next event of the decoder, and emits its well-formed equivalent.
    #[inline]
    pub(crate) fn push(&mut self, event: Event<'_>, emit: Emit<'_>) {
        self.stream.event_fate = None;
        if self.responses.active && !self.stream.from_caller {
            self.push_of_response(event, emit);
        } else {
            self.dispatch(event, emit);
        }
        self.stream.account.events.count(self.stream.event_fate);
    }

    /// Takes an event from the caller, which no record contains.
    pub(crate) fn push_from_caller(&mut self, event: Event<'_>, emit: Emit<'_>) {
        self.stream.from_caller = true;
        self.push(event, emit);
        self.stream.from_caller = false;
    }

    #[inline]
    fn dispatch(&mut self, mut event: Event<'_>, emit: Emit<'_>) {
        names::remove_if_empty(&mut event.parent);
        self.recognise_client_tool(&mut event);
        self.calls.resolve_ids(&mut event, self.turns.is_replay(), &mut self.stream);
        // Text deltas are most of a stream, and need few of the steps below.
        if !(matches!(event.data, Data::BlockDelta(_)) && self.turns.is_open()) {
            self.calls.resolve_plan(&mut event);
            names::remove_empty(&mut event);
            let answers = match &event.data {
                Data::ToolEnded(ended) => self.calls.awaits_answer(&ended.call),
                _ => false,
            };
            if answers || belongs_to_a_turn(&event.data) {
                self.ensure_turn(emit);
            }
        }
        // Events are large, and moving one is a copy, so frequent events are passed by reference.
        let stream = &mut self.stream;
        match event.data {
            Data::BlockStarted(_) | Data::BlockDelta(_) | Data::BlockEnded(_) | Data::Block(_) => {
                self.blocks.push(&mut event, stream, emit);
            }
            Data::MessageStarted(_) | Data::MessageEnded(_) => {
                self.turns.record(&event);
                self.messages.push(&mut event, stream, emit);
            }
            Data::ToolStarted(_) => self.calls.start(&mut event, stream, emit),
            _ => self.push_other(event, emit),
        }
    }

    fn push_other(&mut self, mut event: Event<'_>, emit: Emit<'_>) {
        if let Data::ToolEnded(ended) = &event.data
            && self.is_left_to_caller(ended)
        {
            return self.stream.count_merged();
        }
        let stream = &mut self.stream;
        match event.data {
            Data::SessionStarted(_) | Data::SessionUpdated(_) => {
                self.update_session(event, emit);
            }
            Data::SessionEnded(_) => self.session.record_end(event, stream, emit),
            Data::TurnStarted(_) => {
                self.session.ensure_started(stream, emit);
                self.turns.start(event, stream, emit);
                self.emit_late_answers(emit);
            }
            Data::TurnEnded(_) => self.end_or_pause_turn(event, emit),
            Data::Withdrawn(_) => self.blocks.withdraw(event, stream, emit),
            Data::ToolInputDelta(_) | Data::ToolInput(_) | Data::ToolProgress(_) => {
                self.calls.push(event, stream, emit);
            }
            Data::ToolEnded(ref ended)
                if self.turns.is_replay() && self.calls.waits_since_before(&ended.call) =>
            {
                stream.count_repeated();
            }
            Data::ToolEnded(_) => {
                // Plans are emitted only within a turn.
                let refused = self.plans.refused_by(&event).filter(|_| self.turns.is_open());
                self.blocks.begin_step(event.parent.is_none());
                if let Data::ToolEnded(ended) = &event.data {
                    self.requests.end_call(ended, stream, emit);
                }
                self.calls.push(event, stream, emit);
                self.plans.restore(refused, stream, emit);
                self.suspend_later(emit);
            }
            Data::PlanUpdated(_) => self.plans.push(event, stream, emit),
            Data::PermissionRequested(_) | Data::QuestionAsked(_) => {
                self.calls.complete_request(&mut event);
                self.requests.ask(event, stream, emit);
            }
            Data::PermissionResolved(_) | Data::QuestionAnswered(_) => {
                self.calls.complete_request(&mut event);
                self.requests.resolve(event, stream, emit);
            }
            Data::Retry(_) | Data::Error(_) | Data::Interrupted(_) | Data::Usage(_) => {
                self.turns.record(&event);
                stream.emit_decoded(&mut event, emit);
            }
            _ => stream.emit_decoded(&mut event, emit),
        }
    }

    /// Ends the session, and closes what is open, without inventing a success.
    pub(crate) fn finish(&mut self, exit: &Exit, ending: Ending, emit: Emit<'_>) {
        self.end_stream(Some(exit), ending, emit);
        let exit = self.session.exit(exit);
        self.session.end(&exit, &mut self.stream, emit);
    }

    /// Sets whether the current stream has to contain another turn.
    pub(crate) fn expect_turn(&mut self, expected: bool) {
        self.turns.expect(expected);
    }

    /// Ends one stream of the session. Without an exit, the open turn continues in the next stream.
    pub(crate) fn end_stream(&mut self, exit: Option<&Exit>, ending: Ending, emit: Emit<'_>) {
        let Some(exit) = exit else {
            // The caller may retract them, if the next stream replaces this one.
            self.blocks.end_open(Reason::InputEnded, &mut self.stream, emit);
            self.messages.end_turn(&Reason::InputEnded, &mut self.stream, emit);
            return;
        };
        let exit = self.session.exit(exit);
        if self.turns.is_open() || self.turns.is_expected() {
            self.ensure_turn(emit);
            let clean = ending == Ending::Implied
                && !self.cut_off
                && !self.turns.has_only_started(&self.stream);
            let mid_message = self.messages.is_open();
            let class = self.exit_class.and_then(|class| class(&exit));
            let end = End { exit: &exit, class, clean, cut_off: self.cut_off, mid_message };
            let (ended, reason) = self.turns.ending(&end);
            let kind = RepairKind::TurnNotEnded;
            if reason != Reason::StreamEnded {
                self.stream.report_repair(kind, || {
                    ended.cause.as_ref().map(ToString::to_string).unwrap_or_default()
                });
            }
            self.end_turn(Event::new(ended).because(Some(reason)), true, emit);
        }
    }

    /// Begins another stream of the session, which is a new epoch.
    pub(crate) fn begin_stream(&mut self) {
        self.begin_epoch();
        self.stream.origin = Origin::default();
    }

    /// Begins a stream that continues the response of the one before. The ids of calls stay valid,
    /// and what is held back of them stays.
    pub(crate) fn continue_response(&mut self) {
        self.begin_epoch_of_response();
        self.stream.origin = Origin::default();
    }

    /// Begins a new epoch: native ids are reset, while counts and the sequence continue.
    fn begin_epoch(&mut self) {
        self.calls.begin_epoch(self.responses.active);
        self.client_calls.forget();
        self.responses.begin_epoch();
        self.blocks.begin_epoch();
        self.begin_epoch_of_response();
    }

    /// Begins a new epoch, in which the calls are still those of the response before.
    fn begin_epoch_of_response(&mut self) {
        self.stream.epoch += 1;
        self.blocks.continue_response();
        self.requests.begin_epoch();
        self.turns.begin_epoch();
        self.session.begin_epoch();
        self.cut_off = false;
    }

    /// Updates what is known of the session. A repeated start may begin a new epoch.
    fn update_session(&mut self, event: Event<'_>, emit: Emit<'_>) {
        let starts_again = matches!(event.data, Data::SessionStarted(_))
            && self.session.is_announced()
            && self.repeated_start == RepeatedStart::NewRun;
        if starts_again {
            if self.turns.is_open() {
                let cause = "the agent was started again before it had ended this turn";
                self.stream.report_repair(RepairKind::TurnNotEnded, || cause.to_owned());
                let ended = TurnEnded { cause: Some(Text::plain(cause)), ..TurnEnded::default() };
                self.end_turn(Event::new(ended).because(Some(Reason::Implied)), true, emit);
            }
            self.begin_epoch();
            if self.session.is_another(&event) {
                self.turns.forget_counts();
            }
        }
        self.session.push(event, &mut self.stream, emit);
    }

    fn ensure_turn(&mut self, emit: Emit<'_>) {
        if !self.turns.is_open() {
            self.session.ensure_started(&mut self.stream, emit);
            self.turns.imply(&mut self.stream, emit);
            self.emit_late_answers(emit);
        }
    }

    fn end_or_pause_turn(&mut self, event: Event<'_>, emit: Emit<'_>) {
        match &event.data {
            Data::TurnEnded(ended) if self.is_pause(ended) => self.pause(emit),
            _ => self.end_turn(event, false, emit),
        }
    }

    fn end_turn(&mut self, mut event: Event<'_>, added: bool, emit: Emit<'_>) {
        let Data::TurnEnded(ended) = &mut event.data else { return };
        let waiting = ended.outcome == Outcome::WaitingForClient;
        let reason = event.synthetic.clone().unwrap_or(Reason::TurnEnded);
        self.blocks.final_text(ended, &mut self.stream, emit);
        self.blocks.end_turn(reason.clone(), &mut self.stream, emit);
        self.messages.end_turn(&reason, &mut self.stream, emit);
        // A request that waits for the client stays open as its call does.
        if !waiting {
            self.requests.end_turn(&reason, &mut self.stream, emit);
        }
        let replay = self.turns.is_replay();
        self.calls.end_turn((waiting, replay), reason, &mut self.stream, emit);
        self.client_calls.forget();
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
        // An agent that asks, or waits, is working on a turn.
        | Data::Suspended(_)
        | Data::PermissionRequested(_)
        | Data::QuestionAsked(_)
        | Data::Retry(_)
        | Data::Interrupted(_) => true,
        Data::Error(error) => error.fatal,
        _ => false,
    }
}
