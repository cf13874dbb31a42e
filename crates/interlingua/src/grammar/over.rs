//! The blocks that are over, and may be said again: the last few thousand of them.
//!
//! What is said again is said again soon. The blocks are kept in two generations: when the younger one
//! is full, the older one is forgotten, so that a turn of any length takes the same memory, and that
//! fits into the processor's cache.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::pieces::Relation;
use crate::fingerprint::{Fingerprint, FingerprintHasher};
use crate::json::Text;

/// How many blocks a generation has.
const GENERATION: usize = 2048;

type Generation = HashMap<u64, Said, BuildHasherDefault<FingerprintHasher>>;

/// The blocks that are over, by the number of their name.
#[derive(Debug, Default)]
pub(super) struct Over {
    younger: Generation,
    older: Generation,
}

/// A block that has ended: enough to recognise a repetition of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Said {
    pub(super) number: u64,
    /// The fingerprint of its whole content.
    pub(super) content: u64,
}

impl Over {
    pub(super) fn get(&self, name: u64) -> Option<Said> {
        self.younger.get(&name).or_else(|| self.older.get(&name)).copied()
    }

    pub(super) fn insert(&mut self, name: u64, said: Said) {
        if self.younger.len() == GENERATION {
            std::mem::swap(&mut self.younger, &mut self.older);
            self.younger.clear();
        }
        self.younger.insert(name, said);
    }

    /// Forgets a block; gives whether it was known.
    pub(super) fn remove(&mut self, name: u64) -> bool {
        let known = self.younger.remove(&name).is_some();
        self.older.remove(&name).is_some() || known
    }

    /// Forgets the blocks of some numbers.
    pub(super) fn forget(&mut self, is_forgotten: impl Fn(u64) -> bool) {
        self.younger.retain(|_, said| !is_forgotten(said.number));
        self.older.retain(|_, said| !is_forgotten(said.number));
    }
}

/// The fingerprint of the content of a whole block, in the form in which its pieces would have it.
pub(super) fn content_of(whole: &Text<'_>) -> u64 {
    Fingerprint::of(whole.literal_body().as_bytes()).number()
}

impl Said {
    pub(super) fn relation(self, whole: &Text<'_>) -> Relation {
        if self.content == content_of(whole) { Relation::Repeats } else { Relation::Differs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_blocks_are_known_and_no_more_are_kept() {
        let mut over = Over::default();
        for number in 0..10 * GENERATION as u64 {
            over.insert(number, Said { number, content: 1 });
            let oldest = number.saturating_sub(GENERATION as u64 - 1);
            assert!(
                [oldest, number]
                    .into_iter()
                    .all(|name| over.get(name).is_some_and(|it| it.number == name))
            );
            assert!(over.younger.len() + over.older.len() <= 2 * GENERATION);
        }
        assert!(over.get(0).is_none());
        let last = 10 * GENERATION as u64 - 1;
        over.forget(|number| number == last);
        assert!(over.get(last).is_none() && !over.remove(last) && over.remove(last - 1));
    }
}
