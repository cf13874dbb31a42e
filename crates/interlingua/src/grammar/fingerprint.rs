//! A number for some bytes, the same however they were cut.

use std::hash::Hasher;

use crate::json::Text;

/// Takes bytes piece by piece, in words of eight, and gives a number that tells whether two
/// sequences of bytes are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Fingerprint {
    length: usize,
    mixed: u64,
    /// The bytes since the last whole word.
    word: u64,
}

impl Fingerprint {
    /// The fingerprint of some bytes.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut fingerprint = Self::default();
        fingerprint.add(bytes);
        fingerprint
    }

    /// Takes the next bytes.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        let missing = self.length.wrapping_neg() % 8;
        let (head, rest) = bytes.split_at(missing.min(bytes.len()));
        self.add_some(head);
        let (words, tail) = rest.as_chunks::<8>();
        for word in words {
            self.mixed = mix(self.mixed, u64::from_le_bytes(*word));
        }
        self.length += words.len() * 8;
        self.add_some(tail);
    }

    /// How many bytes there were.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// The number.
    pub(super) fn number(&self) -> u64 {
        mix(mix(self.mixed, self.word), self.length as u64)
    }

    fn add_some(&mut self, bytes: &[u8]) {
        let bits = bytes.iter().rev().fold(0, |bits, byte| (bits << 8) | u64::from(*byte));
        self.word |= bits << (8 * (self.length % 8));
        self.length += bytes.len();
        if !bytes.is_empty() && self.length.is_multiple_of(8) {
            self.mixed = mix(self.mixed, std::mem::take(&mut self.word));
        }
    }
}

/// A hasher that is fast for short texts and the same on every run.
#[derive(Debug, Default)]
pub(super) struct FingerprintHasher(u64);

impl Hasher for FingerprintHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = mix(self.0, Fingerprint::of(bytes).number());
    }

    fn write_u8(&mut self, byte: u8) {
        self.0 = mix(self.0, u64::from(byte));
    }

    fn write_u64(&mut self, bits: u64) {
        self.0 = mix(self.0, bits);
    }
}

/// A name that may be absent, as a number.
pub(super) fn number_of(name: &Option<Text<'_>>) -> u64 {
    name.as_ref().map_or(u64::MAX, |name| Fingerprint::of(name.to_plain().as_bytes()).number())
}

/// One number for several.
pub(super) fn of_words<const N: usize>(words: [u64; N]) -> u64 {
    words.into_iter().fold(N as u64, mix)
}

fn mix(bits: u64, word: u64) -> u64 {
    let bits = (bits ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits ^ (bits >> 29)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_cut_gives_the_same_number() {
        let bytes: Vec<u8> = (0..100).collect();
        let whole = Fingerprint::of(&bytes);
        for size in 1..20 {
            let mut pieces = Fingerprint::default();
            bytes.chunks(size).for_each(|piece| pieces.add(piece));
            assert_eq!(pieces, whole);
        }
        assert_ne!(Fingerprint::of(&bytes[1..]).number(), whole.number());
        assert_ne!(Fingerprint::of(b"").number(), Fingerprint::of(b"\0").number());
    }
}
