//! Runs of plain text in strings: what most JSON is made of.
//!
//! Where one ends is looked for in vectors of sixteen bytes.

use wide::u8x16;

/// How many bytes of a string are looked at together.
const BLOCK: usize = 16;

/// The last of the control characters, which must be escaped in a string.
const LAST_CONTROL: u8 = 0x1f;

/// Where a run of plain text ends: at a quote, a backslash or a control character, which are what a
/// string literal cannot have in it as they are.
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
    // The last block overlaps with what was looked at.
    let found = ends(*block) >> (at + BLOCK - bytes.len());
    (found != 0).then(|| at + found.trailing_zeros() as usize)
}

/// A bit for each byte at which a run of plain text ends.
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
    fn an_end_is_found_wherever_it_stands() {
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
