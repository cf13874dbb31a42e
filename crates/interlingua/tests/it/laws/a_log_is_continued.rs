//! A log that was cut off anywhere can be continued: what is open is closed once, numbers go on
//! without a gap, and ids are not repeated.

use std::collections::BTreeSet;

use interlingua::event::{Data, Outcome};
use interlingua::{
    Continuation, Entry, EntryRef, Exit, ReadOptions, Reader, Source, Stopped, StreamEnd,
};

use crate::support::Case;
use crate::support::rules::violations;

/// In a log of up to this many entries, every place is tried; in a longer one, this many.
const PLACES: usize = 8;

fn options() -> ReadOptions {
    ReadOptions { id_seed: Some(7), ..ReadOptions::default() }
}

fn log(case: &Case) -> Vec<Entry> {
    let mut reader = Reader::new(Source::Recognise, options()).unwrap();
    let mut entries = Vec::new();
    let mut keep = |entry: EntryRef<'_>| entries.push(entry.to_owned());
    reader.push(&case.input, Some(1_000), &mut keep).unwrap();
    reader.finish(&case.exit, Some(1_000), &mut keep).unwrap();
    entries
}

/// Continues a log, which the end of our own process cut off, with another run of the agent.
fn continued(log: &[Entry], next: &[u8]) -> Vec<Entry> {
    let mut entries = log.to_vec();
    let mut continuation = Continuation::new(options()).unwrap();
    for entry in log {
        let stored: Entry = serde_json::from_str(&serde_json::to_string(entry).unwrap()).unwrap();
        continuation.push(stored.borrowed());
    }
    assert_eq!(continuation.entries(), log.len() as u64);
    let mut reader = continuation.into_reader();
    let mut keep = |entry: EntryRef<'_>| entries.push(entry.to_owned());
    let cause = "the server ended".to_owned();
    let stopped = Some(Stopped { outcome: Outcome::Failed, cause });
    let exit = Exit { stopped, ..Exit::default() };
    reader.end_stream(StreamEnd::Exit(&exit), Some(2_000), &mut keep).unwrap();
    reader.next_stream(Source::Recognise).unwrap();
    reader.push(next, Some(3_000), &mut keep).unwrap();
    reader.finish(&Exit { code: Some(0), ..Exit::default() }, Some(3_000), &mut keep).unwrap();
    entries
}

fn as_events(entries: &[Entry]) -> String {
    entries.iter().map(|entry| serde_json::to_string(entry).unwrap() + "\n").collect()
}

fn ids(entries: &[Entry]) -> Vec<String> {
    let id = |entry: &Entry| match &entry.event.data {
        Data::ToolStarted(started) => Some(format!("call {}", started.call)),
        Data::BlockStarted(started) => Some(format!("block {}", started.block)),
        Data::Block(block) => Some(format!("block {}", block.block)),
        _ => None,
    };
    entries.iter().filter_map(id).collect()
}

#[test]
fn a_log_that_was_cut_off_anywhere_is_continued() {
    for case in Case::all() {
        let log = log(&case);
        let step = (log.len() / PLACES).max(1);
        for place in (0..=log.len()).step_by(step) {
            let before = log.get(..place).unwrap_or_default();
            // A log whose session has ended is not continued.
            if before.iter().any(|entry| matches!(entry.event.data, Data::SessionEnded(_))) {
                continue;
            }
            let entries = continued(before, &case.input);
            let name = format!("{} cut off after {place} entries", case.name);
            assert!(entries.iter().map(|it| it.sequence).eq(0..entries.len() as u64), "{name}");
            let (all, distinct) = (ids(&entries), BTreeSet::from_iter(ids(&entries)));
            assert_eq!(all.len(), distinct.len(), "{name}: an id is repeated in {all:?}");
            let broken = violations("events", &as_events(&entries));
            assert!(broken.is_empty(), "{name}: {broken:?}");
        }
    }
}

/// Codex counts the tokens of a thread, also in another process.
#[test]
fn cumulative_counts_continue() {
    let turn = |total: u64| {
        format!(
            "{{\"type\":\"thread.started\",\"thread_id\":\"t\"}}\n{{\"type\":\"turn.started\"}}\n\
             {{\"type\":\"turn.completed\",\"usage\":{{\"input_tokens\":{total},\"output_tokens\":{total}}}}}\n"
        )
    };
    let mut entries = Vec::new();
    let mut reader = Reader::new(Source::named("codex").unwrap(), options()).unwrap();
    let mut keep = |entry: EntryRef<'_>| entries.push(entry.to_owned());
    reader.push(turn(100).as_bytes(), None, &mut keep).unwrap();
    let entries = continued(&entries, turn(130).as_bytes());
    let used = entries.iter().filter_map(|entry| match &entry.event.data {
        Data::TurnEnded(ended) => ended.usage.as_ref()?.input,
        _ => None,
    });
    assert_eq!(used.collect::<Vec<_>>(), [100, 30]);
}

#[test]
fn an_empty_log_is_continued_without_a_turn() {
    let mut reader = Continuation::new(options()).unwrap().into_reader();
    let mut count = 0;
    let end = StreamEnd::Exit(&Exit::default());
    reader.end_stream(end, None, &mut |_: EntryRef<'_>| count += 1).unwrap();
    assert_eq!(count, 0);
}
