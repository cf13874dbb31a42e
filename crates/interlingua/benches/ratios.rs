//! Compares each pair with its limit. The two take turns, so that a busy machine slows down both,
//! and the processor time is measured where the system reports it.
//!
//! Each row is measured in a process of its own, as a translator runs: the state of the allocator
//! after other rows would change a result by half. `--only TEXT` measures the rows whose name
//! contains the text; `--joining` measures the cost of joining a long log at its end; `--write DIR
//! AGENT...` writes the corpora of these agents (of all agents if none is named) to a folder, for
//! programs that are measured from outside.

#![allow(clippy::expect_used, reason = "a benchmark that cannot start has nothing to measure")]
#![allow(clippy::print_stdout, reason = "it prints a table")]

mod corpus;
mod joining;
mod limit;
mod pairs;
#[path = "../tests/it/support/processor.rs"]
mod processor;

use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use corpus::{Shape, Size};
use pairs::{PAIRS, Pair};
use processor::time;

/// The number of times that the two take turns; the best time of each counts.
const TURNS: usize = 9;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let after = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).map(String::as_str)
    };
    if let Some(folder) = after("--write") {
        let agents = arguments.iter().skip_while(|argument| *argument != folder).skip(1);
        let agents = agents.filter(|argument| !argument.starts_with("--"));
        write_corpora(Path::new(folder), &agents.map(String::as_str).collect::<Vec<_>>());
    } else if let Some(row) = after("--row") {
        each_row(|pair, shape, name| {
            if name == row {
                print_ratio(pair, shape, name);
            }
        });
    } else if arguments.iter().any(|argument| argument == "--joining") {
        joining::print_table();
    } else {
        print_table(after("--only").unwrap_or_default());
    }
}

fn write_corpora(folder: &Path, agents: &[&str]) {
    let is_selected = |pair: &&Pair| agents.is_empty() || agents.contains(&pair.from);
    for pair in PAIRS.iter().filter(is_selected).copied() {
        for shape in Shape::ALL {
            let path = folder.join(format!("{}-{}.jsonl", pair.from, shape.name()));
            std::fs::write(path, pair.corpus(shape, Size::FULL)).expect("the folder is writable");
        }
    }
}

fn print_table(only: &str) {
    println!(
        "| pair | corpus | limit, MB/s | interlingua, MB/s | reader | writer | of the limit |"
    );
    println!("|---|---|--:|--:|--:|--:|--:|");
    let program = std::env::current_exe().expect("a program knows where it is");
    each_row(|_, _, name| {
        if name.contains(only) {
            let row = Command::new(&program).args(["--row", name]).status();
            assert!(row.is_ok_and(|status| status.success()), "{name} could not be measured");
        }
    });
}

fn each_row(mut measure: impl FnMut(Pair, Shape, &str)) {
    for pair in PAIRS.iter().copied() {
        for shape in Shape::ALL {
            let name = format!("{} → {} | {}", pair.from, pair.to, shape.name());
            measure(pair, shape, &name);
        }
    }
}

fn print_ratio(pair: Pair, shape: Shape, name: &str) {
    let corpus = pair.corpus(shape, Size::FULL);
    let limit = (pair.limit)(shape);
    let (mut of_limit, mut of_ours) = (Duration::MAX, Duration::MAX);
    for _ in 0..TURNS {
        of_limit = of_limit.min(time(|| limit(black_box(&corpus), &mut discard)));
        of_ours = of_ours.min(time(|| drop(pair.translate(black_box(&corpus), &mut discard))));
    }
    let (of_reader, of_writer) = read_and_write(pair, &corpus);
    let speed = |took: Duration| corpus.len() as f64 / took.as_secs_f64() / 1e6;
    let ratio = of_limit.as_secs_f64() / of_ours.as_secs_f64();
    let speeds =
        [of_limit, of_ours, of_reader, of_writer].map(|took| format!("{:.0}", speed(took)));
    println!("| {name} | {} | {ratio:.2} |", speeds.join(" | "));
}

/// The durations of reading alone and of writing alone.
fn read_and_write(pair: Pair, corpus: &[u8]) -> (Duration, Duration) {
    let log = joining::read(pair, corpus);
    let (mut of_reader, mut of_writer) = (Duration::MAX, Duration::MAX);
    for _ in 0..TURNS / 3 {
        of_reader = of_reader.min(time(|| joining::read_only(pair, black_box(corpus))));
        of_writer = of_writer.min(time(|| joining::write(pair.to, &log, &mut discard)));
    }
    (of_reader, of_writer)
}

fn discard(out: &[u8]) {
    black_box(out);
}
