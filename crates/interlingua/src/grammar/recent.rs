//! What was said in this step, and may be taken back: a few blocks, and their text.
//!
//! The text of a block that came in pieces is what was collected of them anyway, and room is used
//! again, so that it costs little to be ready for a retry that hardly ever comes.

use std::collections::VecDeque;

use super::blocks::Key;
use super::pieces::Pieces;
use crate::event::{BlockKind, WithdrawnBlock};
use crate::fingerprint::of_optional_name;
use crate::json::Text;

/// How many blocks can be taken back at once.
const BLOCKS: usize = 64;

/// How much of a block is kept; what is longer is taken back without its text.
const KEPT: usize = 1 << 20;

#[derive(Debug, Default)]
pub(super) struct Recent {
    /// The blocks that may be taken back, and after them those that no longer may: their room is
    /// filled again, in its place.
    blocks: VecDeque<RecentBlock>,
    used: usize,
}

/// A block that may be taken back.
#[derive(Debug, Default)]
pub(super) struct RecentBlock {
    pub(super) number: u64,
    /// The number that a grammar gave it before, in our own events.
    told_number: u64,
    index: u64,
    /// The agent and the message that it is of.
    speaker: u64,
    message: u64,
    kind: BlockKind,
    said: Pieces,
    /// Its text as the body of a literal, once it is taken back.
    pub(super) text: Option<String>,
    pub(super) open: bool,
}

impl Recent {
    /// Begins a block; gives room for its pieces.
    pub(super) fn begin(&mut self, key: Key, index: u64, number: u64, kind: &BlockKind) -> Pieces {
        self.fill(key, index, number, kind)
            .map(|block| std::mem::take(&mut block.said))
            .unwrap_or_default()
    }

    /// The next block that may be taken back, with room for what it says.
    fn fill(
        &mut self,
        key: Key,
        index: u64,
        number: u64,
        kind: &BlockKind,
    ) -> Option<&mut RecentBlock> {
        if self.used == BLOCKS {
            self.blocks.rotate_left(1);
        } else {
            self.used += 1;
        }
        if self.used > self.blocks.len() {
            self.blocks.push_back(RecentBlock::default());
        }
        let block = self.blocks.get_mut(self.used - 1)?;
        block.said.empty();
        block.number = number;
        block.told_number = key.told_number;
        block.index = index;
        block.speaker = key.speaker;
        block.message = key.message;
        block.kind = kind.clone();
        Some(block)
    }

    /// Keeps what a block said that is over.
    pub(super) fn said(&mut self, number: u64, said: Pieces) {
        let mut blocks = self.blocks.iter_mut().take(self.used);
        if let Some(block) = blocks.rfind(|block| block.number == number) {
            block.said = said;
        }
    }

    /// Keeps a block that was said at once; without its text, where that can never be said again.
    pub(super) fn said_whole(
        &mut self,
        key: Key,
        index: u64,
        number: u64,
        kind: &BlockKind,
        text: Option<&Text<'_>>,
    ) {
        let Some(block) = self.fill(key, index, number, kind) else { return };
        match text {
            Some(text) if text.body().len() <= KEPT => block.said.add(text),
            Some(_) => block.said.give_up(),
            None => {}
        }
    }

    /// Begins a new step: nothing of the one before can be taken back any more.
    pub(super) fn clear(&mut self) {
        self.blocks.iter_mut().take(self.used).for_each(|block| block.said.empty());
        self.used = 0;
    }

    /// Takes out the blocks of a message from some index on, or all of an agent.
    pub(super) fn take(
        &mut self,
        speaker: &Option<Text<'_>>,
        message: &Option<Text<'_>>,
        from: u64,
    ) -> Vec<RecentBlock> {
        let (all, speaker, message) =
            (message.is_none(), of_optional_name(speaker), of_optional_name(message));
        let is_taken = |block: &RecentBlock| {
            block.speaker == speaker && (all || block.message == message && block.index >= from)
        };
        self.take_those(is_taken)
    }

    /// Takes out the blocks of an agent that a grammar numbered before.
    pub(super) fn take_told(
        &mut self,
        speaker: &Option<Text<'_>>,
        numbers: &[u64],
    ) -> Vec<RecentBlock> {
        let speaker = of_optional_name(speaker);
        self.take_those(|block| block.speaker == speaker && numbers.contains(&block.told_number))
    }

    fn take_those(&mut self, is_taken: impl Fn(&RecentBlock) -> bool) -> Vec<RecentBlock> {
        let (taken, kept): (Vec<_>, Vec<_>) = self.blocks.drain(..self.used).partition(is_taken);
        (self.used, self.blocks) = (kept.len(), kept.into());
        let with_text = |mut block: RecentBlock| {
            block.text = std::mem::take(&mut block.said).into_body();
            block
        };
        taken.into_iter().map(with_text).collect()
    }
}

impl RecentBlock {
    /// What is told of it when it is taken back.
    pub(super) fn told(&self) -> WithdrawnBlock<'static> {
        let text = self.text.as_deref().filter(|body| body.len() <= KEPT);
        WithdrawnBlock {
            block: self.number,
            kind: self.kind.clone(),
            open: self.open,
            text: text.map(|body| Text::from(Text::of_literal_body(body))),
        }
    }
}
