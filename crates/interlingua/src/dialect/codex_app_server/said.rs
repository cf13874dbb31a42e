//! The messages of the request to the model that is going on: those that a retry takes back.

use super::teller::Teller;
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
    pub(super) fn begin(&mut self, id: &Text<'_>, kind: BlockKind, teller: &Teller<'_, '_>) {
        if self.messages.len() == KEPT {
            self.messages.remove(0);
        }
        let (parent, id) = (teller.parent.clone(), id.clone().into_owned());
        self.messages.push(Message { parent, id, kind, block: 0, open: true });
    }

    /// Another block of a message begins: the one before it is over.
    pub(super) fn next_block(&mut self, id: &Text<'_>, block: u64, teller: &mut Teller<'_, '_>) {
        let Some(message) = self.messages.iter_mut().rfind(|message| message.id == *id) else {
            return;
        };
        let before = std::mem::replace(&mut message.block, block);
        if before != block {
            message.end(before, teller);
        }
    }

    pub(super) fn end(&mut self, id: &Text<'_>) {
        if let Some(message) = self.messages.iter_mut().rfind(|message| message.id == *id) {
            message.open = false;
        }
    }

    /// The agent was told something else, and will not end the message that it is in the middle of;
    /// says whether there is one.
    pub(super) fn cut_short(&mut self, teller: &mut Teller<'_, '_>) -> bool {
        let mut cut = false;
        for message in &self.messages {
            if message.open && message.parent == teller.parent {
                message.end_unfinished(teller);
                cut = true;
            }
        }
        self.stands(teller.parent.as_ref());
        cut
    }

    /// The request is over: what it said stands.
    pub(super) fn stands(&mut self, parent: Option<&Text<'_>>) {
        self.messages.retain(|message| message.parent.as_ref() != parent);
    }

    /// The request is made again: what it said is taken back.
    pub(super) fn take_back(&mut self, reason: &Text<'_>, teller: &mut Teller<'_, '_>) {
        let (taken, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.messages)
            .into_iter()
            .partition(|message| message.parent == teller.parent);
        self.messages = kept;
        for message in taken {
            teller.tell(Withdrawn {
                message: Some(message.id.borrowed()),
                reason: Some(reason.borrowed()),
                ..Withdrawn::default()
            });
            if message.open {
                message.over(teller);
            }
        }
    }

    /// The turn is over, and with it what was being said.
    pub(super) fn end_turn(&mut self, teller: &mut Teller<'_, '_>) {
        let parent = teller.parent.take();
        for message in self.messages.drain(..).filter(|message| message.open) {
            teller.parent = message.parent.clone();
            message.end_unfinished(teller);
        }
        teller.parent = parent;
    }
}

impl Message {
    /// Ends a message that will not be told whole.
    fn end_unfinished(&self, teller: &mut Teller<'_, '_>) {
        self.end(self.block, teller);
        self.over(teller);
    }

    fn over(&self, teller: &mut Teller<'_, '_>) {
        let message = Some(self.id.borrowed());
        teller.tell(MessageEnded { message, ..MessageEnded::default() });
    }

    fn end(&self, block: u64, teller: &mut Teller<'_, '_>) {
        teller.tell(BlockEnded {
            message: Some(self.id.borrowed()),
            index: block,
            kind: self.kind.clone(),
            ..BlockEnded::default()
        });
    }
}
