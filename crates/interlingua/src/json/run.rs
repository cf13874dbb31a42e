//! Runs of unescaped text in strings, which most JSON consists of.
//!
//! The end of a run is searched for in vectors of sixteen bytes.

use wide::u8x16;

/// The number of bytes that are compared at once.
const BLOCK: usize = 16;

/// The last of the control characters, which must be escaped in a string.
const LAST_CONTROL: u8 = 0x1f;

/// The end of a run of unescaped text: a quote, a backslash or a control character, which a string
/// literal cannot contain unescaped.
#[inline]
pub(super) fn end_of_run(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(block) = bytes.get(at..)?.first_chunk() {
        let found = ends(*block);
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize);
        }
        at += BLOCK;
    }
    let Some(block) = bytes.last_chunk() else {
        let rest = bytes.get(at..)?;
        let is_end = |byte: &u8| matches!(*byte, b'"' | b'\\' | ..=LAST_CONTROL);
        return rest.iter().position(is_end).map(|found| at + found);
    };
    // The last block overlaps with the one before it.
    let found = ends(*block) >> (at + BLOCK - bytes.len());
    (found != 0).then(|| at + found.trailing_zeros() as usize)
}

/// The length of the run in the next block, and whether a quote ends it there: most names and ids
/// are that short. It is 0 if fewer bytes than a block are left.
#[inline]
pub(super) fn run_in_block(bytes: &[u8], from: usize) -> (usize, bool) {
    let Some(block) = bytes.get(from..).and_then(<[u8]>::first_chunk) else { return (0, false) };
    let length = (ends(*block).trailing_zeros() as usize).min(BLOCK);
    (length, block.get(length) == Some(&b'"'))
}

/// A bit for each byte at which a run of unescaped text ends.
#[inline]
fn ends(block: [u8; BLOCK]) -> u32 {
    let block = u8x16::new(block);
    let is = |byte| block.simd_eq(u8x16::splat(byte));
    let control = block.min(u8x16::splat(LAST_CONTROL)).simd_eq(block);
    (is(b'"') | is(b'\\') | control).to_bitmask()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_in_a_block_is_no_longer_than_the_block() {
        assert_eq!(run_in_block(b"abc\",\"d\":\"efghij", 0), (3, true));
        assert_eq!(run_in_block(b"abc\\\"d\":\"efghijk", 0), (3, false));
        assert_eq!(run_in_block(b"abcdefghijklmnopq\"", 0), (BLOCK, false));
        assert_eq!(run_in_block(b"abc\"", 0), (0, false));
    }

    #[test]
    fn an_end_is_found_at_any_offset() {
        for length in 0..70 {
            let plain = vec![b'~'; length];
            assert_eq!(end_of_run(&plain, 0), None, "{length}");
            for (at, end) in (0..length).flat_map(|at| [b'"', b'\\', 0, 0x1f].map(|end| (at, end)))
            {
                let mut text = plain.clone();
                text[at] = end;
                for from in 0..length {
                    let expected = (from <= at).then_some(at);
                    assert_eq!(end_of_run(&text, from), expected, "{length} {at} {from}");
                }
            }
        }
    }
}
