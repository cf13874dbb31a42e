//! The speed of each pair next to the hand-written limit for the same pair. See `README.md` here.

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

/// All rows: each pair on each shape.
fn rows() -> impl Iterator<Item = String> {
    PAIRS.iter().flat_map(|pair| {
        Shape::ALL.map(|shape| format!("{} → {} {}", pair.from, pair.to, shape.name()))
    })
}

/// The pair and the shape of a row.
fn row(name: &str) -> (Pair, Shape) {
    let all = PAIRS.iter().flat_map(|pair| Shape::ALL.map(|shape| (*pair, shape)));
    all.zip(rows()).find(|(_, row)| row == name).expect("the row has a name").0
}

#[divan::bench(args = rows(), sample_count = 8, sample_size = 1)]
fn limit(bencher: Bencher<'_, '_>, name: &str) {
    let (pair, shape) = row(name);
    let corpus = pair.corpus(shape, Size::FULL);
    let limit = (pair.limit)(shape);
    bencher.counter(BytesCount::new(corpus.len())).bench_local(|| {
        limit(black_box(&corpus), &mut |out| {
            black_box(out);
        });
    });
}

#[divan::bench(args = rows(), sample_count = 8, sample_size = 1)]
fn interlingua(bencher: Bencher<'_, '_>, name: &str) {
    let (pair, shape) = row(name);
    let corpus = pair.corpus(shape, Size::FULL);
    bencher.counter(BytesCount::new(corpus.len())).bench_local(|| {
        pair.translate(black_box(&corpus), &mut |out| {
            black_box(out);
        })
    });
}
