//! The messages of the request to the model that is going on: those that a retry takes back.

use crate::dialect::Emitter;
use crate::event::{BlockEnded, BlockKind, MessageEnded, Withdrawn};
use crate::json::Text;

/// How many are remembered.
const KEPT: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Said {
    messages: Vec<Message>,
}

#[derive(Debug)]
struct Message {
    parent: Option<Text<'static>>,
    id: Text<'static>,
    kind: BlockKind,
    /// The block at hand.
    block: u64,
    open: bool,
}

impl Said {
    pub(super) fn begin(&mut self, id: &Text<'_>, kind: BlockKind, out: &Emitter<'_, '_>) {
        if self.messages.len() == KEPT {
            self.messages.remove(0);
        }
        let parent = out.parent.clone().map(Text::into_owned);
        let id = id.clone().into_owned();
        self.messages.push(Message { parent, id, kind, block: 0, open: true });
    }

    /// Another block of a message begins: the one before it is over.
    pub(super) fn next_block(&mut self, id: &Text<'_>, block: u64, out: &mut Emitter<'_, '_>) {
        let Some(message) = self.messages.iter_mut().rfind(|message| message.id == *id) else {
            return;
        };
        let before = std::mem::replace(&mut message.block, block);
        if before != block {
            message.end(before, out);
        }
    }

    pub(super) fn end(&mut self, id: &Text<'_>) {
        if let Some(message) = self.messages.iter_mut().rfind(|message| message.id == *id) {
            message.open = false;
        }
    }

    /// The agent was told something else, and will not end the message that it is in the middle of;
    /// says whether there is one.
    pub(super) fn cut_short(&mut self, out: &mut Emitter<'_, '_>) -> bool {
        let mut cut = false;
        for message in &self.messages {
            if message.open && message.parent == out.parent {
                message.end_unfinished(out);
                cut = true;
            }
        }
        self.stands(out.parent.as_ref());
        cut
    }

    /// The request is over: what it said stands.
    pub(super) fn stands(&mut self, parent: Option<&Text<'_>>) {
        self.messages.retain(|message| message.parent.as_ref() != parent);
    }

    /// The request is made again: what it said is taken back.
    pub(super) fn take_back(&mut self, reason: &Text<'_>, out: &mut Emitter<'_, '_>) {
        let (taken, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.messages)
            .into_iter()
            .partition(|message| message.parent == out.parent);
        self.messages = kept;
        for message in taken {
            out.emit(Withdrawn {
                message: Some(message.id.borrowed()),
                reason: Some(reason.borrowed()),
                ..Withdrawn::default()
            });
            if message.open {
                message.over(out);
            }
        }
    }

    /// The turn is over, and with it what was being said.
    pub(super) fn end_turn(&mut self, out: &mut Emitter<'_, '_>) {
        let parent = out.parent.take();
        for message in self.messages.drain(..).filter(|message| message.open) {
            out.parent = message.parent.clone();
            message.end_unfinished(out);
        }
        out.parent = parent;
    }
}

impl Message {
    /// Ends a message that will not be told whole.
    fn end_unfinished(&self, out: &mut Emitter<'_, '_>) {
        self.end(self.block, out);
        self.over(out);
    }

    fn over(&self, out: &mut Emitter<'_, '_>) {
        let message = Some(self.id.borrowed());
        out.emit(MessageEnded { message, ..MessageEnded::default() });
    }

    fn end(&self, block: u64, out: &mut Emitter<'_, '_>) {
        out.emit(BlockEnded {
            message: Some(self.id.borrowed()),
            index: block,
            kind: self.kind.clone(),
            ..BlockEnded::default()
        });
    }
}
