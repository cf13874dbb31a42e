//! Remembers the last few thousand closed blocks, to recognise repeats.
//!
//! Agents repeat a block soon after it, or never. The blocks are kept in two generations, and when
//! the younger one is full, the older one is dropped. So a turn of any length takes the same
//! memory, which fits into the processor's cache.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::pieces::Relation;
use crate::fingerprint::{Fingerprint, FingerprintHasher};
use crate::json::Text;

/// The number of blocks in a generation.
const GENERATION: usize = 2048;

type Generation = HashMap<u64, ClosedBlock, BuildHasherDefault<FingerprintHasher>>;

/// The closed blocks, by the fingerprint of their name.
#[derive(Debug, Default)]
pub(super) struct ClosedBlocks {
    younger: Generation,
    older: Generation,
}

/// What is kept of a closed block to recognise a repeat.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClosedBlock {
    pub(super) number: u64,
    /// The fingerprint of its whole content.
    pub(super) content: u64,
}

impl ClosedBlocks {
    pub(super) fn get(&self, name: u64) -> Option<ClosedBlock> {
        self.younger.get(&name).or_else(|| self.older.get(&name)).copied()
    }

    pub(super) fn insert(&mut self, name: u64, block: ClosedBlock) {
        if self.younger.len() == GENERATION {
            std::mem::swap(&mut self.younger, &mut self.older);
            self.younger.clear();
        }
        self.younger.insert(name, block);
    }

    /// Removes a block, and returns whether it was known.
    pub(super) fn remove(&mut self, name: u64) -> bool {
        let known = self.younger.remove(&name).is_some();
        self.older.remove(&name).is_some() || known
    }

    /// Removes the blocks with certain numbers.
    pub(super) fn forget(&mut self, is_forgotten: impl Fn(u64) -> bool) {
        self.younger.retain(|_, block| !is_forgotten(block.number));
        self.older.retain(|_, block| !is_forgotten(block.number));
    }
}

/// The fingerprint of a whole block's content, in the form in which its deltas are collected.
pub(super) fn content_of(whole: &Text<'_>) -> u64 {
    Fingerprint::of(whole.literal_body().as_bytes()).number()
}

impl ClosedBlock {
    pub(super) fn relation(self, whole: &Text<'_>) -> Relation {
        if self.content == content_of(whole) { Relation::Repeats } else { Relation::Differs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_blocks_are_known_and_no_more_are_kept() {
        let mut closed = ClosedBlocks::default();
        for number in 0..10 * GENERATION as u64 {
            closed.insert(number, ClosedBlock { number, content: 1 });
            let oldest = number.saturating_sub(GENERATION as u64 - 1);
            assert!(
                [oldest, number]
                    .into_iter()
                    .all(|name| closed.get(name).is_some_and(|it| it.number == name))
            );
            assert!(closed.younger.len() + closed.older.len() <= 2 * GENERATION);
        }
        assert!(closed.get(0).is_none());
        let last = 10 * GENERATION as u64 - 1;
        closed.forget(|number| number == last);
        assert!(closed.get(last).is_none() && !closed.remove(last) && closed.remove(last - 1));
    }
}
