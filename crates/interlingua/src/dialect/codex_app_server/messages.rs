//! The messages of the current request to the model, which a retry retracts.

use crate::dialect::Emitter;
use crate::event::{BlockEnded, BlockKind, MessageEnded, Withdrawn};
use crate::json::Text;

/// The number of messages that are remembered.
const MAX_REMEMBERED: usize = 64;

#[derive(Debug, Default)]
pub(super) struct RequestMessages {
    messages: Vec<Message>,
}

#[derive(Debug)]
struct Message {
    parent: Option<Text<'static>>,
    id: Text<'static>,
    kind: BlockKind,
    /// The index of the current block.
    block: u64,
    open: bool,
}

impl RequestMessages {
    pub(super) fn start(&mut self, id: &Text<'_>, kind: BlockKind, out: &Emitter<'_, '_>) {
        if self.messages.len() == MAX_REMEMBERED {
            self.messages.remove(0);
        }
        let parent = out.parent.clone().map(Text::into_owned);
        let id = id.clone().into_owned();
        self.messages.push(Message { parent, id, kind, block: 0, open: true });
    }

    /// Starts another block of a message, which ends the previous one.
    pub(super) fn start_block(&mut self, id: &Text<'_>, block: u64, out: &mut Emitter<'_, '_>) {
        let Some(message) = self.messages.iter_mut().rfind(|message| message.id == *id) else {
            return;
        };
        let previous = std::mem::replace(&mut message.block, block);
        if previous != block {
            message.emit_block_end(previous, out);
        }
    }

    pub(super) fn complete(&mut self, id: &Text<'_>) {
        if let Some(message) = self.messages.iter_mut().rfind(|message| message.id == *id) {
            message.open = false;
        }
    }

    /// Ends the open messages, since the agent received another message and will not complete them.
    /// Returns whether there were any.
    pub(super) fn end_open_messages(&mut self, out: &mut Emitter<'_, '_>) -> bool {
        let mut any = false;
        for message in &self.messages {
            if message.open && message.parent == out.parent {
                message.end_incomplete(out);
                any = true;
            }
        }
        self.forget(out.parent.as_ref());
        any
    }

    /// Forgets the messages of a completed request, which can no longer be retracted.
    pub(super) fn forget(&mut self, parent: Option<&Text<'_>>) {
        self.messages.retain(|message| message.parent.as_ref() != parent);
    }

    /// Retracts the messages of a request that is retried.
    pub(super) fn retract(&mut self, reason: &Text<'_>, out: &mut Emitter<'_, '_>) {
        let (retracted, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.messages)
            .into_iter()
            .partition(|message| message.parent == out.parent);
        self.messages = kept;
        for message in retracted {
            out.emit(Withdrawn {
                message: Some(message.id.borrowed()),
                reason: Some(reason.borrowed()),
                ..Withdrawn::default()
            });
            if message.open {
                message.emit_message_end(out);
            }
        }
    }

    /// Ends the turn, and with it all open messages.
    pub(super) fn end_turn(&mut self, out: &mut Emitter<'_, '_>) {
        let parent = out.parent.take();
        for message in self.messages.drain(..).filter(|message| message.open) {
            out.parent = message.parent.clone();
            message.end_incomplete(out);
        }
        out.parent = parent;
    }
}

impl Message {
    /// Ends a message that the agent will not complete.
    fn end_incomplete(&self, out: &mut Emitter<'_, '_>) {
        self.emit_block_end(self.block, out);
        self.emit_message_end(out);
    }

    fn emit_message_end(&self, out: &mut Emitter<'_, '_>) {
        let message = Some(self.id.borrowed());
        out.emit(MessageEnded { message, ..MessageEnded::default() });
    }

    fn emit_block_end(&self, block: u64, out: &mut Emitter<'_, '_>) {
        out.emit(BlockEnded {
            message: Some(self.id.borrowed()),
            index: block,
            kind: self.kind.clone(),
            ..BlockEnded::default()
        });
    }
}
