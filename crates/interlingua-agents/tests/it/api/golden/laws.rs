//! The laws that the log of every session keeps, and the rules that its translations keep.

use std::collections::BTreeMap;

use interlingua::check::Checker;
use interlingua::dialect::{self, Dialect, EncodeOptions};
use interlingua::framing::Limits;
use interlingua::{Entry, Exit, Writer};
use serde_json::Value;

use super::scenarios::Session;

/// Checks the log of a session of another test.
pub(in crate::api) fn check_events(name: &str, events: &[Value]) {
    check(&Session::of(name, events));
}

pub(super) fn check(session: &Session) {
    let log = session.log();
    has_no_gaps(session, &log);
    every_turn_ends_once(session);
    every_call_is_answered_once(session);
    for to in dialect::ALL.iter().copied().filter(|dialect| dialect.encoder.is_some()) {
        for partial in [false, true] {
            let written = write(to, &log, partial);
            breaks_no_rule(session, to, &written);
            can_be_joined_anywhere(session, to, &log, partial);
        }
    }
}

fn has_no_gaps(session: &Session, log: &[Entry]) {
    let sequence: Vec<_> = log.iter().map(|entry| entry.sequence).collect();
    assert_eq!(sequence, (0..log.len() as u64).collect::<Vec<_>>(), "{}", session.name);
}

fn every_turn_ends_once(session: &Session) {
    let mut is_open = false;
    for event in &session.events {
        let (starts, ends) = (event["type"] == "turn_started", event["type"] == "turn_ended");
        if starts || ends {
            assert_eq!(is_open, ends, "{}: {event}", session.name);
            is_open = starts;
        }
    }
    assert!(!is_open, "{}", session.name);
}

fn every_call_is_answered_once(session: &Session) {
    let mut answers = BTreeMap::new();
    for event in &session.events {
        let call = || event["call"].as_str().unwrap();
        if event["type"] == "tool_started" {
            assert_eq!(answers.insert(call(), 0), None, "{}: {event}", session.name);
        } else if event["type"] == "tool_ended" {
            *answers.get_mut(call()).unwrap() += 1;
        }
    }
    assert!(answers.values().all(|count| *count == 1), "{}: {answers:?}", session.name);
}

fn writer(to: &'static Dialect, partial: bool) -> Writer {
    let options = EncodeOptions { id_seed: Some(7), partial, ..EncodeOptions::default() };
    Writer::new(to, &options).unwrap()
}

/// Writes a log in a dialect.
pub(in crate::api) fn write(to: &'static Dialect, log: &[Entry], partial: bool) -> Vec<u8> {
    let (mut writer, mut bytes) = (writer(to, partial), Vec::new());
    log.iter().for_each(|entry| writer.write(entry.borrowed(), &mut bytes));
    writer.finish(&mut bytes);
    bytes
}

fn breaks_no_rule(session: &Session, to: &'static Dialect, written: &[u8]) {
    if to.rules.is_none() {
        return;
    }
    let mut checker = Checker::new(to, Limits::default());
    checker.push(written);
    let findings = checker.finish(&Exit::default());
    let shown = String::from_utf8_lossy(written);
    assert!(findings.is_empty(), "{} -> {}: {findings:#?}\n{shown}", session.name, to.name);
}

/// Law 13: a writer that is advanced past the first N entries of a log then writes exactly what the
/// complete output contains after them.
fn can_be_joined_anywhere(session: &Session, to: &'static Dialect, log: &[Entry], partial: bool) {
    let (mut complete, mut ends) = (Vec::new(), vec![0]);
    let mut first = writer(to, partial);
    for entry in log {
        first.write(entry.borrowed(), &mut complete);
        ends.push(complete.len());
    }
    first.finish(&mut complete);
    let mut follower = writer(to, partial);
    for (place, end) in ends.into_iter().enumerate() {
        if let Some(passed) = place.checked_sub(1) {
            follower.advance(log[passed].borrowed());
        }
        let (mut joined, mut rest) = (follower.clone(), Vec::new());
        log[place..].iter().for_each(|entry| joined.write(entry.borrowed(), &mut rest));
        joined.finish(&mut rest);
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            rest == complete[end..],
            "{} -> {}, joined at {place}:\n{}\nexpected:\n{}",
            session.name,
            to.name,
            shown(&rest),
            shown(&complete[end..]),
        );
    }
}

/// The records of an output with one record on each line.
pub(in crate::api) fn records(written: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(written).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
