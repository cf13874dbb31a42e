//! Law 3: any split of the input, down to single bytes, gives the same output.

use proptest::prelude::*;

use crate::support::{self, Case, dialect, translate, translate_chunks, written};

#[test]
fn byte_by_byte_is_the_same_as_at_once() {
    for case in Case::small() {
        for to in written() {
            let whole = translate(to.name, &case.input, &case.exit);
            let pieces = translate_chunks(None, to, case.input.chunks(1), &case.exit);
            assert!(whole.bytes == pieces.bytes, "{} -> {}", case.name, to.name);
            assert_eq!(whole.losses(), pieces.losses());
            assert_eq!(whole.repairs(), pieces.repairs());
        }
    }
}

/// Reads of a pipe are at most 64 KiB, and nearly half of them end inside a character.
#[test]
fn pipe_reads_are_the_same_as_at_once() {
    for case in Case::all().into_iter().filter(|case| case.input.len() >= 20_000) {
        for to in written() {
            let whole = translate(to.name, &case.input, &case.exit);
            for size in [65_536, 4_099] {
                let pieces = translate_chunks(None, to, case.input.chunks(size), &case.exit);
                assert!(whole.bytes == pieces.bytes, "{} -> {}", case.name, to.name);
            }
        }
    }
}

proptest! {
    #![proptest_config(support::cases(64))]

    #[test]
    fn random_splits_are_the_same_as_at_once(
        at in any::<prop::sample::Index>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let cases = Case::all();
        let case = at.get(&cases);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(case.input.len() + 1)).collect();
        cuts.sort_unstable();
        let mut chunks = Vec::new();
        let mut start = 0;
        for cut in cuts.into_iter().chain([case.input.len()]) {
            chunks.push(&case.input[start..cut]);
            start = cut;
        }
        for to in ["claude", "yume", "ai-sdk", "events"] {
            let whole = translate(to, &case.input, &case.exit);
            let pieces = translate_chunks(None, dialect(to), chunks.iter().copied(), &case.exit);
            prop_assert!(whole.bytes == pieces.bytes, "{} -> {}", case.name, to);
        }
    }
}
