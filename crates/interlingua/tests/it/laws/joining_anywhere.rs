//! Law 13: a reader can join anywhere. A writer that is advanced past the first N entries of a log
//! without writing them then writes exactly what the complete output contains after them.

use interlingua::dialect::{Dialect, EncodeOptions};
use interlingua::{Entry, EntryRef, RawRecords, ReadOptions, Reader, Source, Writer};

use crate::support::{Case, written};

/// In a log of up to this many entries, every position is tried.
const EVERY_PLACE: usize = 300;

/// The number of positions that are tried in a longer log.
const PLACES: usize = 100;

/// The entries of a transcript.
fn log(case: &Case, raw_records: RawRecords) -> Vec<Entry> {
    let options = ReadOptions { raw_records, ..ReadOptions::default() };
    let mut reader = Reader::new(Source::Recognise, options).unwrap();
    let (mut entries, mut now) = (Vec::new(), 1_700_000_000_000);
    let mut keep = |entry: EntryRef<'_>| entries.push(entry.to_owned());
    for chunk in case.input.chunks(4096) {
        now += 1000;
        reader.push(chunk, Some(now), &mut keep).unwrap();
    }
    reader.finish(&case.exit, Some(now), &mut keep).unwrap();
    entries
}

fn writer(to: &'static Dialect, partial: bool) -> Writer {
    let options = EncodeOptions { id_seed: Some(7), partial, ..EncodeOptions::default() };
    Writer::new(to, &options).unwrap()
}

/// The positions at which a consumer joins.
fn positions(entries: usize) -> Vec<usize> {
    if entries <= EVERY_PLACE {
        return (0..=entries).collect();
    }
    let mut bits = entries as u64;
    let mut next = || {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (bits >> 33) as usize % entries
    };
    let mut positions: Vec<_> = (0..PLACES).map(|_| next()).collect();
    positions.sort_unstable();
    positions.dedup();
    positions
}

/// Joins a log at many positions, and compares the output from there on with the complete output.
fn join(case: &Case, log: &[Entry], to: &'static Dialect, partial: bool) {
    let (mut complete, mut ends) = (Vec::new(), vec![0]);
    let mut first = writer(to, partial);
    for entry in log {
        first.write(entry.borrowed(), &mut complete);
        ends.push(complete.len());
    }
    first.finish(&mut complete);
    let (mut follower, mut at) = (writer(to, partial), 0);
    for place in positions(log.len()) {
        log[at..place].iter().for_each(|entry| follower.advance(entry.borrowed()));
        at = place;
        assert!(follower.losses().is_empty(), "losses count from the place of joining");
        let (mut joined, mut rest) = (follower.clone(), Vec::new());
        log[place..].iter().for_each(|entry| joined.write(entry.borrowed(), &mut rest));
        joined.finish(&mut rest);
        assert!(
            rest == complete[ends[place]..],
            "{} -> {}, joined at {place} of {}: {}",
            case.name,
            to.name,
            log.len(),
            first_difference(&rest, &complete[ends[place]..]),
        );
    }
}

fn first_difference(one: &[u8], two: &[u8]) -> String {
    let at = one.iter().zip(two).take_while(|(one, two)| one == two).count();
    let around = |bytes: &[u8]| {
        let start = at.saturating_sub(200);
        String::from_utf8_lossy(&bytes[start..bytes.len().min(at + 200)]).into_owned()
    };
    format!("\n{}\n{}", around(one), around(two))
}

/// Joins the logs of every second case: two tests share the cases, so that they run in parallel.
fn join_cases(half: usize, raw_records: RawRecords) {
    for case in Case::all().iter().skip(half).step_by(2) {
        let log = log(case, raw_records);
        for to in written() {
            join(case, &log, to, false);
        }
        join(case, &log, crate::support::dialect("claude"), true);
    }
}

#[test]
fn a_log_of_events_can_be_joined_anywhere() {
    join_cases(0, RawRecords::Drop);
}

#[test]
fn a_log_of_events_can_be_joined_anywhere_other_half() {
    join_cases(1, RawRecords::Drop);
}

#[test]
fn a_log_with_records_can_be_joined_anywhere() {
    for case in Case::all() {
        let log = log(&case, RawRecords::Keep);
        let own = log.iter().find_map(|entry| entry.raw.as_ref()).map(|raw| raw.dialect);
        for to in own.into_iter().filter(|dialect| dialect.encoder.is_some()) {
            join(&case, &log, to, false);
        }
        join(&case, &log, crate::support::dialect("events"), false);
    }
}
