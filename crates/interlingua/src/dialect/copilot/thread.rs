//! The open messages, reasoning blocks and calls of one agent: the main agent or a sub-agent.

use crate::dialect::Emitter;
use crate::event::{
    BlockDelta, BlockEnded, BlockKind, BlockStarted, MessageEnded, ToolEnded, ToolStatus, Withdrawn,
};
use crate::json::Text;

/// The index of the text block in its message.
pub(super) const TEXT: u64 = 1;

/// The index of the reasoning block in its message.
pub(super) const REASONING: u64 = 0;

/// One agent.
#[derive(Debug, Default)]
pub(super) struct Thread {
    pub(super) parent: Option<Text<'static>>,
    /// Messages and reasoning blocks that are not complete yet. A retry retracts them.
    open: Vec<Open>,
    /// The ids of the reasoning blocks of this step that were emitted. Later records repeat the
    /// blocks, and the message repeats them without their ids.
    reasoning_ids: Vec<Text<'static>>,
    /// The reasoning that the last message contained, if no other record did before it.
    pub(super) reasoning_of_message: Option<Text<'static>>,
    /// Calls whose input is being streamed.
    calls: Vec<Box<str>>,
    /// Calls of a failed request. They are cancelled unless the next attempt makes them again.
    stale: Vec<Box<str>>,
    /// The model of the current request.
    pub(super) model: Option<Text<'static>>,
    /// Why the last request failed.
    pub(super) failure: Option<RequestFailure>,
}

/// A message or a reasoning block that is not complete yet.
#[derive(Debug)]
struct Open {
    message: Text<'static>,
    kind: BlockKind,
    /// Its start was emitted, with the first delta.
    started: bool,
    /// Its end was emitted. It can still be retracted.
    ended: bool,
}

/// Why a request failed.
#[derive(Debug, Default)]
pub(super) struct RequestFailure {
    pub(super) http_status: Option<u64>,
    pub(super) attempt: Option<u64>,
    pub(super) message: Option<Text<'static>>,
    pub(super) in_transport: bool,
}

impl Thread {
    pub(super) fn of(parent: Option<Text<'static>>) -> Self {
        Self { parent, ..Self::default() }
    }

    /// Notes that a message has started.
    pub(super) fn begin_message(&mut self, message: &Text<'_>) {
        self.place(message, &BlockKind::Text);
    }

    /// Emits the next delta of a message or a reasoning block, and its start before the first.
    pub(super) fn delta<'a>(
        &mut self,
        message: Text<'a>,
        kind: BlockKind,
        text: Text<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let index = index_of(&kind);
        let open = self.place(&message, &kind);
        open.ended = false;
        if !std::mem::replace(&mut open.started, true) {
            let (message, kind) = (Some(message.clone()), kind.clone());
            out.emit(BlockStarted { message, index, kind, ..BlockStarted::default() });
        }
        out.emit(BlockDelta { block: 0, message: Some(message), index, kind, text });
    }

    /// Forgets a message that is complete. Returns `None` if it had not started, else whether it
    /// had deltas.
    pub(super) fn finish_message(&mut self, message: &Text<'_>) -> Option<bool> {
        let is_it = |open: &Open| open.kind == BlockKind::Text && open.message == *message;
        let at = self.open.iter().position(is_it)?;
        Some(self.open.swap_remove(at).started)
    }

    /// Notes that a reasoning block is emitted; returns whether it is new.
    pub(super) fn note_reasoning(&mut self, id: &Text<'_>) -> bool {
        let news = !self.reasoning_ids.contains(id);
        if news {
            self.reasoning_ids.push(id.clone().into_owned());
        }
        news
    }

    /// Whether reasoning was emitted in this step.
    pub(super) fn has_reasoning(&self) -> bool {
        !self.reasoning_ids.is_empty()
    }

    /// Ends the open reasoning blocks, since something else begins.
    pub(super) fn end_reasoning(&mut self, out: &mut Emitter<'_, '_>) {
        for open in self.open.iter_mut().filter(|open| open.kind == BlockKind::Reasoning) {
            open.end(out);
        }
    }

    /// Notes that the input of a call is being streamed, and classifies its next delta.
    pub(super) fn begin_call(&mut self, call: &Text<'_>) -> InputDelta {
        let call = call.to_plain();
        if self.calls.iter().any(|known| **known == *call) {
            InputDelta::Next
        } else if self.stale.iter().any(|known| **known == *call) {
            InputDelta::Repeated
        } else {
            self.calls.push(call.into());
            InputDelta::First
        }
    }

    /// Forgets a call whose input is complete.
    pub(super) fn call_made(&mut self, call: &Text<'_>) {
        if !self.calls.is_empty() || !self.stale.is_empty() {
            let call = call.to_plain();
            self.calls.retain(|known| **known != *call);
            self.stale.retain(|known| **known != *call);
        }
    }

    /// Retracts the messages and reasoning blocks of a failed request.
    pub(super) fn retract(&mut self, reason: Option<&Text<'_>>, out: &mut Emitter<'_, '_>) {
        for open in self.open.drain(..) {
            out.emit(Withdrawn {
                message: Some(open.message.clone()),
                reason: reason.map(Text::borrowed),
                ..Withdrawn::default()
            });
            open.end_message(out);
        }
        self.stale.append(&mut self.calls);
        self.reasoning_ids.clear();
    }

    /// Ends what is open at the end of a step. An answer that was cut off at the length limit, or
    /// interrupted, has no complete message.
    pub(super) fn end_step(&mut self, out: &mut Emitter<'_, '_>) {
        for mut open in self.open.drain(..) {
            open.end(out);
            open.end_message(out);
        }
        self.stale.append(&mut self.calls);
        self.drop_stale(out);
        self.reasoning_ids.clear();
        self.reasoning_of_message = None;
    }

    /// Cancels the calls of a failed request that were not made again.
    pub(super) fn drop_stale(&mut self, out: &mut Emitter<'_, '_>) {
        for call in self.stale.drain(..) {
            out.emit(ToolEnded {
                call: Text::from(String::from(call)),
                status: ToolStatus::Cancelled,
                error: Some(Text::plain("the model did not finish this call")),
                ..ToolEnded::default()
            });
        }
    }

    /// An open message or reasoning block, which is added if it is new.
    fn place(&mut self, message: &Text<'_>, kind: &BlockKind) -> &mut Open {
        let is_it = |open: &Open| open.kind == *kind && open.message == *message;
        let at = self.open.iter().rposition(is_it).unwrap_or_else(|| {
            let (message, kind) = (message.clone().into_owned(), kind.clone());
            self.open.push(Open { message, kind, started: false, ended: false });
            self.open.len() - 1
        });
        // The index was found or added above.
        #[allow(clippy::indexing_slicing)]
        &mut self.open[at]
    }
}

impl Open {
    fn end(&mut self, out: &mut Emitter<'_, '_>) {
        if self.started && !std::mem::replace(&mut self.ended, true) {
            let (message, index) = (Some(self.message.clone()), index_of(&self.kind));
            let kind = self.kind.clone();
            out.emit(BlockEnded { message, index, kind, ..BlockEnded::default() });
        }
    }

    /// Ends the message of a text block that will have no complete message. Reasoning blocks have
    /// no message of their own.
    fn end_message(self, out: &mut Emitter<'_, '_>) {
        if self.kind == BlockKind::Text {
            out.emit(MessageEnded { message: Some(self.message), ..MessageEnded::default() });
        }
    }
}

fn index_of(kind: &BlockKind) -> u64 {
    if *kind == BlockKind::Reasoning { REASONING } else { TEXT }
}

/// A delta of a call's input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputDelta {
    /// The call is new.
    First,
    /// The call is known.
    Next,
    /// A failed request had begun the same call, so the delta may repeat its input.
    Repeated,
}
