//! Law 3: every split of the input, down to single bytes, gives the same output.

use proptest::prelude::*;

use crate::support::{self, Case, dialect, translate, translate_chunks, written};

#[test]
fn single_bytes_give_the_same_output_as_one_chunk() {
    for case in Case::small() {
        for to in written() {
            let at_once = translate(to.name, &case.input, &case.exit);
            let in_chunks = translate_chunks(None, to, case.input.chunks(1), &case.exit);
            assert!(at_once.bytes == in_chunks.bytes, "{} -> {}", case.name, to.name);
            assert_eq!(at_once.losses(), in_chunks.losses());
            assert_eq!(at_once.repairs(), in_chunks.repairs());
        }
    }
}

/// A read from a pipe returns at most 64 KiB, and nearly half of the reads end inside a character.
#[test]
fn pipe_reads_give_the_same_output_as_one_chunk() {
    for case in Case::all().into_iter().filter(|case| case.input.len() >= 20_000) {
        for to in written() {
            let at_once = translate(to.name, &case.input, &case.exit);
            for size in [65_536, 4_099] {
                let in_chunks = translate_chunks(None, to, case.input.chunks(size), &case.exit);
                assert!(at_once.bytes == in_chunks.bytes, "{} -> {}", case.name, to.name);
            }
        }
    }
}

proptest! {
    #![proptest_config(support::cases(64))]

    #[test]
    fn random_splits_give_the_same_output_as_one_chunk(
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
            let at_once = translate(to, &case.input, &case.exit);
            let in_chunks = translate_chunks(None, dialect(to), chunks.iter().copied(), &case.exit);
            prop_assert!(at_once.bytes == in_chunks.bytes, "{} -> {}", case.name, to);
        }
    }
}
