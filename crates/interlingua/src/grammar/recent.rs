//! What was said in this step, and may be taken back: a few blocks, and their text.
//!
//! The text of a block that came in pieces is what was collected of them anyway, and room is used
//! again, so that it costs little to be ready for a retry that hardly ever comes.

use std::collections::VecDeque;

use super::blocks::Key;
use super::fingerprint::number_of;
use super::pieces::Pieces;
use crate::event::{BlockKind, WithdrawnBlock};
use crate::json::Text;

/// How many blocks can be taken back at once.
const BLOCKS: usize = 64;

/// How much of a block is kept; what is longer is taken back without its text.
const KEPT: usize = 1 << 20;

#[derive(Debug, Default)]
pub(super) struct Recent {
    blocks: VecDeque<RecentBlock>,
    /// Room of blocks that can no longer be taken back.
    spare: Vec<Pieces>,
}

/// A block that may be taken back.
#[derive(Debug)]
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
        if self.blocks.len() == BLOCKS
            && let Some(oldest) = self.blocks.pop_front()
        {
            self.use_again(oldest.said);
        }
        self.blocks.push_back(RecentBlock {
            number,
            told_number: key.told_number,
            index,
            speaker: key.speaker,
            message: key.message,
            kind: kind.clone(),
            said: Pieces::default(),
            text: None,
            open: false,
        });
        self.spare.pop().unwrap_or_default()
    }

    /// Keeps what a block said that is over.
    pub(super) fn said(&mut self, number: u64, said: Pieces) {
        match self.blocks.iter_mut().rfind(|block| block.number == number) {
            Some(block) => block.said = said,
            None => self.use_again(said),
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
        let mut said = self.begin(key, index, number, kind);
        match text {
            Some(text) if text.body().len() <= KEPT => said.add(text),
            Some(_) => said.give_up(),
            None => {}
        }
        if let Some(block) = self.blocks.back_mut() {
            block.said = said;
        }
    }

    /// Begins a new step: nothing of the one before can be taken back any more.
    pub(super) fn clear(&mut self) {
        while let Some(block) = self.blocks.pop_front() {
            self.use_again(block.said);
        }
    }

    /// Takes out the blocks of a message from some index on, or all of an agent.
    pub(super) fn take(
        &mut self,
        speaker: &Option<Text<'_>>,
        message: &Option<Text<'_>>,
        from: u64,
    ) -> Vec<RecentBlock> {
        let (all, speaker, message) = (message.is_none(), number_of(speaker), number_of(message));
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
        let speaker = number_of(speaker);
        self.take_those(|block| block.speaker == speaker && numbers.contains(&block.told_number))
    }

    fn take_those(&mut self, is_taken: impl Fn(&RecentBlock) -> bool) -> Vec<RecentBlock> {
        let (taken, kept): (Vec<_>, Vec<_>) = self.blocks.drain(..).partition(is_taken);
        self.blocks = kept.into();
        let with_text = |mut block: RecentBlock| {
            block.text = std::mem::take(&mut block.said).into_body();
            block
        };
        taken.into_iter().map(with_text).collect()
    }

    fn use_again(&mut self, room: Pieces) {
        if self.spare.len() < BLOCKS {
            self.spare.push(room.emptied());
        }
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
