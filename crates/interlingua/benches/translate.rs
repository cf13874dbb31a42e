//! How fast each pair is, beside the hand-written limit for the same pair. See `README.md` here.

#![allow(clippy::expect_used, reason = "a benchmark that cannot start has nothing to measure")]

mod corpus;
mod limit;
mod pairs;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};

use corpus::{Shape, Size};
use pairs::{PAIRS, Pair};

fn main() {
    divan::main();
}

#[divan::bench_group(sample_count = 8, sample_size = 1)]
mod codex_to_claude {
    super::benchmarks!(0);
}

#[divan::bench_group(sample_count = 8, sample_size = 1)]
mod claude_to_ai_sdk {
    super::benchmarks!(1);
}

#[divan::bench_group(sample_count = 8, sample_size = 1)]
mod gemini_to_giselle {
    super::benchmarks!(2);
}

/// The two benchmarks of a pair, for each shape.
macro_rules! benchmarks {
    ($pair:literal) => {
        #[divan::bench(args = ["small", "kilobyte", "huge"])]
        fn limit(bencher: divan::Bencher<'_, '_>, shape: &str) {
            super::limit_of(bencher, super::PAIRS[$pair], shape);
        }

        #[divan::bench(args = ["small", "kilobyte", "huge"])]
        fn interlingua(bencher: divan::Bencher<'_, '_>, shape: &str) {
            super::interlingua(bencher, super::PAIRS[$pair], shape);
        }
    };
}
use benchmarks;

fn limit_of(bencher: Bencher<'_, '_>, pair: Pair, shape: &str) {
    let shape = shape_named(shape);
    let corpus = pair.corpus(shape, Size::FULL);
    let limit = pair.limit(shape);
    bencher.counter(BytesCount::new(corpus.len())).bench_local(|| {
        limit(black_box(&corpus), &mut |out| {
            black_box(out);
        });
    });
}

fn interlingua(bencher: Bencher<'_, '_>, pair: Pair, shape: &str) {
    let corpus = pair.corpus(shape_named(shape), Size::FULL);
    bencher.counter(BytesCount::new(corpus.len())).bench_local(|| {
        pair.translate(black_box(&corpus), &mut |out| {
            black_box(out);
        })
    });
}

fn shape_named(name: &str) -> Shape {
    Shape::ALL.into_iter().find(|shape| shape.name() == name).expect("the shape has a name")
}
