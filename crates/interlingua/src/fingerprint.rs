//! Fingerprints of bytes: a fast one for names, and one for whole contents that does not depend on
//! how they were split.

use std::hash::Hasher;

use crate::json::Text;

/// The fingerprint of a name: an id or a short text. It is the same on every run.
#[inline]
pub(crate) fn of_name(name: &[u8]) -> u64 {
    let (words, tail) = name.as_chunks::<8>();
    let bits = words.iter().fold(0, |bits, word| mix(bits, u64::from_le_bytes(*word)));
    let last = tail.iter().rev().fold(0, |bits, byte| (bits << 8) | u64::from(*byte));
    mix(mix(bits, last), name.len() as u64)
}

/// The fingerprint of a name that may be absent.
pub(crate) fn of_optional_name(name: &Option<Text<'_>>) -> u64 {
    name.as_ref().map_or(u64::MAX, |name| of_name(name.to_plain().as_bytes()))
}

/// The fingerprint of several numbers.
pub(crate) fn of_words<const N: usize>(words: [u64; N]) -> u64 {
    words.into_iter().fold(N as u64, mix)
}

/// The number of bytes that are mixed at once: a word for each lane.
const BLOCK: usize = 32;

/// A fingerprint by which two contents are compared. The content is added piece by piece.
///
/// Content is hashed in four independent lanes, so that a block costs the latency of one
/// multiplication instead of four: outputs of several megabytes are hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    lanes: [u64; 4],
    length: usize,
    /// The bytes since the last complete block.
    tail: [u8; BLOCK],
}

impl Default for Fingerprint {
    fn default() -> Self {
        // The lanes start differently, so that swapped words give another fingerprint.
        Self { lanes: [1, 2, 3, 4], length: 0, tail: [0; BLOCK] }
    }
}

impl Fingerprint {
    /// The fingerprint of some bytes.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut fingerprint = Self::default();
        fingerprint.add(bytes);
        fingerprint
    }

    /// Adds the next bytes.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let used = self.length % BLOCK;
        self.length += bytes.len();
        let mut rest = bytes;
        if used > 0 {
            let (head, after) = rest.split_at((BLOCK - used).min(rest.len()));
            if let Some(room) = self.tail.get_mut(used..used + head.len()) {
                room.copy_from_slice(head);
            }
            if used + head.len() < BLOCK {
                return;
            }
            let block = self.tail;
            self.mix_block(&block);
            rest = after;
        }
        let (blocks, tail) = rest.as_chunks::<BLOCK>();
        blocks.iter().for_each(|block| self.mix_block(block));
        self.tail = [0; BLOCK];
        if let Some(room) = self.tail.get_mut(..tail.len()) {
            room.copy_from_slice(tail);
        }
    }

    /// The number of bytes.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// The fingerprint as a number.
    pub(crate) fn number(&self) -> u64 {
        let mut last = *self;
        last.mix_block(&self.tail);
        mix(of_words(last.lanes), self.length as u64)
    }

    #[inline]
    fn mix_block(&mut self, block: &[u8; BLOCK]) {
        let (words, _) = block.as_chunks::<8>();
        for (lane, word) in self.lanes.iter_mut().zip(words) {
            *lane = mix(*lane, u64::from_le_bytes(*word));
        }
    }
}

/// A hasher that is fast for short texts, and deterministic.
#[derive(Debug, Clone, Default)]
pub(crate) struct FingerprintHasher(u64);

impl Hasher for FingerprintHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = mix(self.0, of_name(bytes));
    }

    fn write_u8(&mut self, byte: u8) {
        self.0 = mix(self.0, u64::from(byte));
    }

    fn write_u64(&mut self, bits: u64) {
        self.0 = mix(self.0, bits);
    }
}

fn mix(bits: u64, word: u64) -> u64 {
    let bits = (bits ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits ^ (bits >> 29)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_split_gives_the_same_number() {
        let bytes: Vec<u8> = (0..200).collect();
        let whole = Fingerprint::of(&bytes);
        for size in 1..70 {
            let mut pieces = Fingerprint::default();
            bytes.chunks(size).for_each(|piece| pieces.add(piece));
            assert_eq!(pieces.number(), whole.number(), "{size}");
            assert_eq!(pieces, whole, "{size}");
        }
        assert_ne!(Fingerprint::of(&bytes[1..]).number(), whole.number());
        assert_ne!(Fingerprint::of(b"").number(), Fingerprint::of(b"\0").number());
    }

    #[test]
    fn every_byte_counts() {
        let bytes = [7; 100];
        let whole = Fingerprint::of(&bytes).number();
        for at in 0..bytes.len() {
            let mut other = bytes;
            other[at] ^= 1;
            assert_ne!(Fingerprint::of(&other).number(), whole, "{at}");
        }
    }
}
