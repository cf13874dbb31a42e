//! The cost of joining a log: a writer is advanced past all entries without writing, which should
//! take no longer than writing them.

use std::hint::black_box;
use std::time::Duration;

use interlingua::dialect::{self, EncodeOptions};
use interlingua::{Entry, EntryRef, Exit, ReadOptions, Reader, Source, Writer};

use crate::TURNS;
use crate::corpus::{Shape, Size};
use crate::pairs::{CHUNK, PAIRS, Pair};
use crate::processor::time;

/// The number of entries in the log.
const ENTRIES: usize = 100_000;

/// Prints how long writing a log and advancing past it take, for every dialect that can be written.
pub(crate) fn print_table() {
    println!("| joining, dialect | writing, ms | joining, ms | ratio |");
    println!("|---|--:|--:|--:|");
    let log = log();
    for to in dialect::ALL.iter().filter(|dialect| dialect.encoder.is_some()) {
        let (mut of_writing, mut of_joining) = (Duration::MAX, Duration::MAX);
        for _ in 0..TURNS {
            of_writing = of_writing.min(time(|| {
                write(to.name, &log, &mut |out| {
                    black_box(out);
                })
            }));
            of_joining = of_joining.min(time(|| advance(to.name, &log)));
        }
        let ratio = of_joining.as_secs_f64() / of_writing.as_secs_f64();
        let ms = |took: Duration| took.as_secs_f64() * 1000.0;
        println!("| {} | {:.1} | {:.1} | {ratio:.2} |", to.name, ms(of_writing), ms(of_joining));
    }
}

/// A log of the entries of all agents, in equal shares.
fn log() -> Vec<Entry> {
    let share = ENTRIES / PAIRS.len();
    let corpora = PAIRS.iter().map(|pair| (pair, pair.corpus(Shape::Small, Size::FULL)));
    let entries = corpora.flat_map(|(pair, corpus)| {
        let mut entries = read(*pair, &corpus);
        entries.truncate(share);
        entries
    });
    let renumbered =
        entries.enumerate().map(|(sequence, entry)| Entry { sequence: sequence as u64, ..entry });
    renumbered.collect()
}

fn writer(to: &str) -> Writer {
    let to = dialect::find(to).expect("the target is a dialect");
    Writer::new(to, &EncodeOptions::default()).expect("the target can be written")
}

/// Writes a log in batches, as a server would.
pub(crate) fn write(to: &str, log: &[Entry], keep: &mut dyn FnMut(&[u8])) {
    let (mut writer, mut bytes) = (writer(to), Vec::new());
    for entries in log.chunks(64) {
        bytes.clear();
        entries.iter().for_each(|entry| writer.write(entry.borrowed(), &mut bytes));
        keep(&bytes);
    }
    bytes.clear();
    writer.finish(&mut bytes);
    keep(&bytes);
}

fn advance(to: &str, log: &[Entry]) {
    let mut writer = writer(to);
    log.iter().for_each(|entry| writer.advance(black_box(entry).borrowed()));
    black_box(&writer);
}

/// Reads all of the input, and keeps the entries.
pub(crate) fn read(pair: Pair, input: &[u8]) -> Vec<Entry> {
    let mut entries = Vec::new();
    read_into(pair, input, &mut |entry: EntryRef<'_>| entries.push(entry.to_owned()));
    entries
}

/// Reads all of the input, and keeps nothing.
pub(crate) fn read_only(pair: Pair, input: &[u8]) {
    read_into(pair, input, &mut |entry: EntryRef<'_>| {
        black_box(entry.sequence);
    });
}

fn read_into(pair: Pair, input: &[u8], keep: &mut impl FnMut(EntryRef<'_>)) {
    let from = Source::named(pair.from).expect("the source is a dialect");
    let mut reader = Reader::new(from, ReadOptions::default()).expect("the source can be read");
    for chunk in input.chunks(CHUNK) {
        let Ok(_) = reader.push(chunk, None, keep);
    }
    let Ok(_) = reader.finish(&Exit { code: Some(0), ..Exit::default() }, None, keep);
}
