//! What one agent has begun to say and not yet finished: the main one, or one that a call started.

use crate::dialect::Emitter;
use crate::event::{
    BlockDelta, BlockEnded, BlockKind, BlockStarted, MessageEnded, ToolEnded, ToolStatus, Withdrawn,
};
use crate::json::Text;

/// The place of text in its message.
pub(super) const TEXT: u64 = 1;

/// The place of reasoning.
pub(super) const REASONING: u64 = 0;

/// One agent.
#[derive(Debug, Default)]
pub(super) struct Thread {
    pub(super) parent: Option<Text<'static>>,
    /// Messages and thoughts that were begun and are not whole yet: those that a retry takes back.
    open: Vec<Open>,
    /// The thoughts of this step that were told. Later records say them again, and that of the message
    /// does not name them.
    thoughts: Vec<Text<'static>>,
    /// The thought that the last message told, where no other record had.
    pub(super) told_by_message: Option<Text<'static>>,
    /// Calls whose input is being told in pieces.
    calls: Vec<Box<str>>,
    /// Calls that a retry took back, if the next try does not make them again.
    stale: Vec<Box<str>>,
    /// The model of the request at hand.
    pub(super) model: Option<Text<'static>>,
    /// Why the last request failed.
    pub(super) failure: Option<RequestFailure>,
}

#[derive(Debug)]
struct Open {
    message: Text<'static>,
    kind: BlockKind,
    /// A piece of it was told.
    told: bool,
    /// It was ended, and may still be taken back.
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

    /// Remembers that a message is being said.
    pub(super) fn begin(&mut self, message: &Text<'_>) {
        self.place(message, &BlockKind::Text);
    }

    /// The next piece of a message or a thought; its start is told with the first.
    pub(super) fn piece<'a>(
        &mut self,
        message: Text<'a>,
        kind: BlockKind,
        text: Text<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let index = index_of(&kind);
        let open = self.place(&message, &kind);
        open.ended = false;
        if !std::mem::replace(&mut open.told, true) {
            let (message, kind) = (Some(message.clone()), kind.clone());
            out.emit(BlockStarted { message, index, kind, ..BlockStarted::default() });
        }
        out.emit(BlockDelta { block: 0, message: Some(message), index, kind, text });
    }

    /// Forgets a message that is whole; says whether it had been begun, and whether in pieces.
    pub(super) fn finish(&mut self, message: &Text<'_>) -> Option<bool> {
        let is_it = |open: &Open| open.kind == BlockKind::Text && open.message == *message;
        let at = self.open.iter().position(is_it)?;
        Some(self.open.swap_remove(at).told)
    }

    /// Notes that a thought is told; says whether that is news.
    pub(super) fn thought(&mut self, thought: &Text<'_>) -> bool {
        let news = !self.thoughts.contains(thought);
        if news {
            self.thoughts.push(thought.clone().into_owned());
        }
        news
    }

    /// Whether a thought was told in this step.
    pub(super) fn has_thought(&self) -> bool {
        !self.thoughts.is_empty()
    }

    /// Ends the thoughts that are being told: something else begins.
    pub(super) fn end_thoughts(&mut self, out: &mut Emitter<'_, '_>) {
        for open in self.open.iter_mut().filter(|open| open.kind == BlockKind::Reasoning) {
            open.end(out);
        }
    }

    /// Remembers that the input of a call is being told; says whether its next piece is news.
    pub(super) fn begin_call(&mut self, call: &Text<'_>) -> CallPiece {
        let call = call.to_plain();
        if self.calls.iter().any(|known| **known == *call) {
            CallPiece::Next
        } else if self.stale.iter().any(|known| **known == *call) {
            CallPiece::Repeated
        } else {
            self.calls.push(call.into());
            CallPiece::First
        }
    }

    /// Forgets a call that the model has made for good.
    pub(super) fn made(&mut self, call: &Text<'_>) {
        if !self.calls.is_empty() || !self.stale.is_empty() {
            let call = call.to_plain();
            self.calls.retain(|known| **known != *call);
            self.stale.retain(|known| **known != *call);
        }
    }

    /// Takes back what the request that failed had said.
    pub(super) fn take_back(&mut self, reason: Option<&Text<'_>>, out: &mut Emitter<'_, '_>) {
        for open in self.open.drain(..) {
            out.emit(Withdrawn {
                message: Some(open.message.clone()),
                reason: reason.map(Text::borrowed),
                ..Withdrawn::default()
            });
            open.end_message(out);
        }
        self.stale.append(&mut self.calls);
        self.thoughts.clear();
    }

    /// Ends what is open at the end of a step. An answer that was cut at the length limit, and one
    /// that was interrupted, stay without their whole message.
    pub(super) fn end_step(&mut self, out: &mut Emitter<'_, '_>) {
        for mut open in self.open.drain(..) {
            open.end(out);
            open.end_message(out);
        }
        self.stale.append(&mut self.calls);
        self.drop_stale(out);
        self.thoughts.clear();
        self.told_by_message = None;
    }

    /// Answers the calls that were begun, taken back and not made again.
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

    /// A message or a thought among those that are being said.
    fn place(&mut self, message: &Text<'_>, kind: &BlockKind) -> &mut Open {
        let is_it = |open: &Open| open.kind == *kind && open.message == *message;
        let at = self.open.iter().rposition(is_it).unwrap_or_else(|| {
            let (message, kind) = (message.clone().into_owned(), kind.clone());
            self.open.push(Open { message, kind, told: false, ended: false });
            self.open.len() - 1
        });
        // The index was just found or made.
        #[allow(clippy::indexing_slicing)]
        &mut self.open[at]
    }
}

impl Open {
    fn end(&mut self, out: &mut Emitter<'_, '_>) {
        if self.told && !std::mem::replace(&mut self.ended, true) {
            let (message, index) = (Some(self.message.clone()), index_of(&self.kind));
            let kind = self.kind.clone();
            out.emit(BlockEnded { message, index, kind, ..BlockEnded::default() });
        }
    }

    /// Ends the message of a text that will have no whole one; that of a thought is never begun.
    fn end_message(self, out: &mut Emitter<'_, '_>) {
        if self.kind == BlockKind::Text {
            out.emit(MessageEnded { message: Some(self.message), ..MessageEnded::default() });
        }
    }
}

fn index_of(kind: &BlockKind) -> u64 {
    if *kind == BlockKind::Reasoning { REASONING } else { TEXT }
}

/// A piece of a call's input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CallPiece {
    /// The call is new.
    First,
    /// The call is known.
    Next,
    /// A try before had begun the same call, so that the piece may say again what was said.
    Repeated,
}
