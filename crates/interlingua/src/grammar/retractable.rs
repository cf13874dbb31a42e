//! The blocks of the current step, which a retry may still retract, and their text.
//!
//! A retry is rare, so keeping them has to be cheap: the text of a streamed block is collected
//! anyway to recognise repeats, and buffers are reused.

use std::collections::VecDeque;

use super::blocks::Key;
use super::pieces::Pieces;
use crate::event::{BlockKind, WithdrawnBlock};
use crate::fingerprint::of_optional_name;
use crate::json::Text;

/// The number of blocks that can be retracted at once.
const MAX_BLOCKS: usize = 64;

/// The longest text that is kept; a block that is longer is retracted without its text.
const MAX_TEXT: usize = 1 << 20;

#[derive(Debug, Default)]
pub(super) struct Retractable {
    /// First the `used` blocks that can be retracted, then unused ones, whose buffers are reused in
    /// place.
    blocks: VecDeque<RetractableBlock>,
    used: usize,
}

/// A block that can be retracted.
#[derive(Debug, Default)]
pub(super) struct RetractableBlock {
    pub(super) number: u64,
    /// Its number in the input, where the input is Interlingua's own events.
    source_number: u64,
    index: u64,
    /// The fingerprints of its parent call and of its message.
    parent: u64,
    message: u64,
    kind: BlockKind,
    pieces: Pieces,
    /// Its text as the body of a literal, once it is retracted.
    pub(super) text: Option<String>,
    pub(super) open: bool,
}

impl Retractable {
    /// Begins a block, and returns a buffer for its deltas.
    pub(super) fn begin(&mut self, key: Key, index: u64, number: u64, kind: &BlockKind) -> Pieces {
        self.fill(key, index, number, kind)
            .map(|block| std::mem::take(&mut block.pieces))
            .unwrap_or_default()
    }

    /// Sets up the next block; the oldest is reused when all are in use.
    fn fill(
        &mut self,
        key: Key,
        index: u64,
        number: u64,
        kind: &BlockKind,
    ) -> Option<&mut RetractableBlock> {
        if self.used == MAX_BLOCKS {
            self.blocks.rotate_left(1);
        } else {
            self.used += 1;
        }
        if self.used > self.blocks.len() {
            self.blocks.push_back(RetractableBlock::default());
        }
        let block = self.blocks.get_mut(self.used - 1)?;
        block.pieces.reset();
        block.number = number;
        block.source_number = key.source_number;
        block.index = index;
        block.parent = key.parent;
        block.message = key.message;
        block.kind = kind.clone();
        Some(block)
    }

    /// Keeps the text of a closed block.
    pub(super) fn set_text(&mut self, number: u64, pieces: Pieces) {
        let mut blocks = self.blocks.iter_mut().take(self.used);
        if let Some(block) = blocks.rfind(|block| block.number == number) {
            block.pieces = pieces;
        }
    }

    /// Keeps a block that was emitted whole; without its text, if it can never be repeated.
    pub(super) fn insert_whole(
        &mut self,
        key: Key,
        index: u64,
        number: u64,
        kind: &BlockKind,
        text: Option<&Text<'_>>,
    ) {
        let Some(block) = self.fill(key, index, number, kind) else { return };
        match text {
            Some(text) if text.body().len() <= MAX_TEXT => block.pieces.add(text),
            Some(_) => block.pieces.discard_text(),
            None => {}
        }
    }

    /// Begins a new step: the blocks of the previous one can no longer be retracted.
    pub(super) fn clear(&mut self) {
        self.blocks.iter_mut().take(self.used).for_each(|block| block.pieces.reset());
        self.used = 0;
    }

    /// Removes the blocks of a message from an index on, or without a message all of the agent's.
    pub(super) fn take(
        &mut self,
        parent: &Option<Text<'_>>,
        message: &Option<Text<'_>>,
        from: u64,
    ) -> Vec<RetractableBlock> {
        let (all, parent, message) =
            (message.is_none(), of_optional_name(parent), of_optional_name(message));
        let is_taken = |block: &RetractableBlock| {
            block.parent == parent && (all || block.message == message && block.index >= from)
        };
        self.take_those(is_taken)
    }

    /// Removes the agent's blocks that have these numbers in the input.
    pub(super) fn take_numbered(
        &mut self,
        parent: &Option<Text<'_>>,
        numbers: &[u64],
    ) -> Vec<RetractableBlock> {
        let parent = of_optional_name(parent);
        self.take_those(|block| block.parent == parent && numbers.contains(&block.source_number))
    }

    fn take_those(
        &mut self,
        is_taken: impl Fn(&RetractableBlock) -> bool,
    ) -> Vec<RetractableBlock> {
        let (taken, kept): (Vec<_>, Vec<_>) = self.blocks.drain(..self.used).partition(is_taken);
        (self.used, self.blocks) = (kept.len(), kept.into());
        let with_text = |mut block: RetractableBlock| {
            block.text = std::mem::take(&mut block.pieces).into_body();
            block
        };
        taken.into_iter().map(with_text).collect()
    }
}

impl RetractableBlock {
    /// The form in which a retraction lists it.
    pub(super) fn to_withdrawn(&self) -> WithdrawnBlock<'static> {
        let text = self.text.as_deref().filter(|body| body.len() <= MAX_TEXT);
        WithdrawnBlock {
            block: self.number,
            kind: self.kind.clone(),
            open: self.open,
            text: text.map(|body| Text::from(Text::of_literal_body(body))),
        }
    }
}
