//! The responses of a model API, within turns that the caller begins and ends.
//!
//! Read alone, a response is a turn whose calls are left to the client. A host that runs the calls
//! itself sends several requests per turn, and retries those that fail. For it, the following
//! differs:
//!
//! - The start and the end of a response are no turns. The end is kept for the host, which decides
//!   how the turn goes on.
//! - A call is made only when its response has ended properly. Until then, its input is held back:
//!   a response that was cut off is requested again, and its calls may then be others.
//! - A text that was not streamed is emitted as if it had been, in pieces.
//! - A response that was cut off may be continued by the next stream. Its calls are then those of one
//!   response, in two epochs.
//! - A call that is generated again, with the same name and at the same position, keeps its emitted
//!   id. One that is not is abandoned.

use super::stream::Emit;
use super::{Grammar, Reason};
use crate::event::{
    self, Block, BlockDelta, BlockEnded, BlockKind, BlockStarted, Data, Event, Executor, Outcome,
    ToolInput, TurnEnded,
};
use crate::json::Text;

/// The length of the pieces in which a text is emitted that was not streamed, in bytes.
const PIECE: usize = 200;

#[derive(Debug, Default)]
pub(super) struct Responses {
    /// The caller begins and ends turns.
    pub(super) active: bool,
    /// The end of the current response, if it was reported.
    end: Option<TurnEnded<'static>>,
    /// What is known of calls only when the response has ended properly, in order.
    held: Vec<Event<'static>>,
    /// The emitted ids of the calls of the current response, in its order. A call that is generated
    /// again does not start again, so that the order of the events does not tell its place.
    calls: Vec<String>,
}

impl Responses {
    /// Begins another response.
    pub(super) fn begin_epoch(&mut self) {
        self.end = None;
        self.held.clear();
        self.calls.clear();
    }
}

impl Grammar {
    /// Lets the caller begin and end turns.
    pub(crate) fn set_turns_of_caller(&mut self) {
        self.responses.active = true;
    }

    /// Whether the end of the current response was reported.
    pub(crate) fn has_response_end(&self) -> bool {
        self.responses.end.is_some()
    }

    /// Takes the end of the current response; `None` if the response did not report it.
    pub(crate) fn take_response_end(&mut self) -> Option<TurnEnded<'static>> {
        self.responses.end.take()
    }

    /// The emitted ids of the calls of the current response, in its order.
    pub(crate) fn response_calls(&self) -> &[String] {
        &self.responses.calls
    }

    /// Takes the next event of a response.
    pub(super) fn push_of_response(&mut self, mut event: Event<'_>, emit: Emit<'_>) {
        match &mut event.data {
            // The host knows the agent; only the provider knows the exact model.
            Data::SessionStarted(started) => {
                started.agent = None;
                self.dispatch(event, emit);
            }
            // The host reports how the turn goes on, and why.
            Data::TurnStarted(_) | Data::Error(_) => self.stream.count_merged(),
            Data::TurnEnded(_) => self.end_response(event, emit),
            Data::ToolStarted(started) if started.executor == Executor::Client => {
                self.start_call_of_host(event, emit);
            }
            Data::Block(block) if is_long_text(block) => self.stream_block(event, emit),
            Data::ToolInput(_) | Data::PlanUpdated(_) => self.hold(event),
            Data::ToolEnded(ended) if self.calls.is_of_host(&ended.call) => self.hold(event),
            Data::ToolInputDelta(delta) if self.calls.is_reclaimed(&delta.call) => {
                self.stream.count_repeated();
            }
            _ => self.dispatch(event, emit),
        }
    }

    /// A call that the host will run. Its input is held back, even if it is known already.
    fn start_call_of_host(&mut self, mut event: Event<'_>, emit: Emit<'_>) {
        let own_name = match &event.data {
            Data::ToolStarted(started) => self.client_calls.tool(&started.name),
            _ => None,
        };
        let own_name = own_name.map(str::to_owned);
        self.calls.reclaim(&mut event, own_name.as_deref());
        self.calls.assign_id(&mut event.data);
        let Data::ToolStarted(started) = &mut event.data else { return };
        if self.client_calls.tool(&started.name).is_none() {
            started.executor = Executor::Agent;
        }
        let input = started.input.take().map(|input| {
            let (call, message) = (started.call.clone(), started.message.clone());
            let input = ToolInput { call, message, input: Some(input), ..ToolInput::default() };
            Event::new(input).into_owned()
        });
        let native = started.call.to_plain().into_owned();
        self.dispatch(event, emit);
        self.responses.calls.push(self.calls.emitted_id(&Text::plain(&native)));
        self.responses.held.extend(input);
    }

    /// Emits a whole block in pieces.
    fn stream_block(&mut self, event: Event<'_>, emit: Emit<'_>) {
        let Data::Block(block) = event.data else { return };
        let Block { message, index, kind, text, signature, .. } = block;
        let name = |kind: &BlockKind| (message.clone(), kind.clone());
        let (of, kind_of) = name(&kind);
        let started = BlockStarted { block: 0, message: of, index, kind: kind_of };
        self.dispatch(Event::new(started), emit);
        let text = text.to_plain();
        let mut rest = &*text;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(end_of_piece(rest));
            let (message, kind) = name(&kind);
            let delta = BlockDelta { block: 0, message, index, kind, text: Text::plain(piece) };
            self.dispatch(Event::new(delta), emit);
            rest = after;
        }
        self.dispatch(Event::new(BlockEnded { block: 0, message, index, kind, signature }), emit);
    }

    fn hold(&mut self, mut event: Event<'_>) {
        self.calls.resolve_plan(&mut event);
        self.responses.held.push(event.into_owned());
        self.stream.count_merged();
    }

    fn end_response(&mut self, event: Event<'_>, emit: Emit<'_>) {
        let Data::TurnEnded(ended) = event.data else { return };
        // The calls of a response that has to be continued may still be generated again.
        let is_proper = ended.outcome != Outcome::Failed || ended.has_only_malformed_calls();
        if is_proper && !ended.to_be_continued {
            for event in std::mem::take(&mut self.responses.held) {
                self.dispatch(event, emit);
            }
            let why = "the model did not repeat this call when its response was requested again";
            self.calls.abandon_unclaimed(why, Reason::Implied, &mut self.stream, emit);
        }
        self.stream.count_merged();
        self.responses.end = Some(event::own_turn_ended(*ended));
    }
}

fn is_long_text(block: &Block<'_>) -> bool {
    let is_text = matches!(block.kind, BlockKind::Text | BlockKind::Reasoning);
    is_text && block.content.is_none() && block.text.body().len() > PIECE
}

/// The end of the first piece of a text: behind a space, if there is one nearby.
fn end_of_piece(text: &str) -> usize {
    let limit = text.floor_char_boundary(PIECE);
    if limit == text.len() {
        return limit;
    }
    let space = text.get(..limit).and_then(|piece| piece.rfind(' '));
    space.map_or(limit, |at| at + 1).max(1)
}
