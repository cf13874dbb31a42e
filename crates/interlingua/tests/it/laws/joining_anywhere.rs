//! Law 13: a reader can join anywhere. A writer that is advanced over the first N entries of a log
//! without writing then writes exactly what the whole stream contains after them.

use interlingua::dialect::{Dialect, EncodeOptions};
use interlingua::{Entry, EntryRef, RawRecords, ReadOptions, Reader, Source, Writer};

use crate::support::{Case, written};

/// Up to so many entries, every place is tried.
const EVERY_PLACE: usize = 300;

/// In a longer log, so many places are tried.
const PLACES: usize = 100;

/// The log of a transcript.
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

/// The places at which a consumer joins.
fn places(entries: usize) -> Vec<usize> {
    if entries <= EVERY_PLACE {
        return (0..=entries).collect();
    }
    let mut bits = entries as u64;
    let mut next = || {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (bits >> 33) as usize % entries
    };
    let mut places: Vec<_> = (0..PLACES).map(|_| next()).collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// Joins a log at many places, and compares what is written from there on with the whole.
fn join(case: &Case, log: &[Entry], to: &'static Dialect, partial: bool) {
    let (mut whole, mut ends) = (Vec::new(), vec![0]);
    let mut first = writer(to, partial);
    for entry in log {
        first.write(entry.borrowed(), &mut whole);
        ends.push(whole.len());
    }
    first.finish(&mut whole);
    let (mut follower, mut at) = (writer(to, partial), 0);
    for place in places(log.len()) {
        log[at..place].iter().for_each(|entry| follower.advance(entry.borrowed()));
        at = place;
        assert!(follower.losses().is_empty(), "losses count from the place of joining");
        let (mut joined, mut rest) = (follower.clone(), Vec::new());
        log[place..].iter().for_each(|entry| joined.write(entry.borrowed(), &mut rest));
        joined.finish(&mut rest);
        assert!(
            rest == whole[ends[place]..],
            "{} -> {}, joined at {place} of {}: {}",
            case.name,
            to.name,
            log.len(),
            first_difference(&rest, &whole[ends[place]..]),
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

/// A test for each half of the cases, so that they run side by side.
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
