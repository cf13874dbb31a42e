//! Entries can be stored: their JSON form loses nothing, and a stored log gives the same output as
//! the agent's stream.

use interlingua::dialect::{Dialect, EncodeOptions};
use interlingua::event::Event;
use interlingua::{Entry, EntryRef, Options, RawRecords, ReadOptions, Reader, Source, Writer};

use crate::support::{Case, translate_with, without_generated_ids, written};

const SEED: u64 = 7;

fn log(case: &Case, raw_records: RawRecords) -> Vec<Entry> {
    let options = ReadOptions { raw_records, id_seed: Some(SEED), ..ReadOptions::default() };
    let mut reader = Reader::new(Source::Recognise, options).unwrap();
    let mut entries = Vec::new();
    let mut keep = |entry: EntryRef<'_>| entries.push(entry.to_owned());
    reader.push(&case.input, None, &mut keep).unwrap();
    reader.finish(&case.exit, None, &mut keep).unwrap();
    entries
}

fn stored(entry: &Entry) -> Entry {
    serde_json::from_str(&serde_json::to_string(entry).unwrap()).unwrap()
}

#[test]
fn the_json_form_of_an_entry_loses_nothing() {
    for case in Case::all() {
        for entry in log(&case, RawRecords::Keep) {
            assert_eq!(stored(&entry), without_secrets(&entry), "{}", case.name);
            let event = serde_json::to_string(&entry.event).unwrap();
            let event: Event<'static> = serde_json::from_str(&event).unwrap();
            assert_eq!(event, without_secrets(&entry).event, "{}", case.name);
        }
    }
}

/// Secrets are the only part that is not stored.
fn without_secrets(entry: &Entry) -> Entry {
    let mut entry = entry.clone();
    if let interlingua::event::Data::SessionUpdated(update) = &mut entry.event.data
        && let Some(relay) = &mut update.relay
    {
        relay.token = Default::default();
    }
    entry
}

#[test]
fn sequence_numbers_have_no_gaps_and_each_record_is_kept_once() {
    for case in Case::all() {
        for raw_records in [RawRecords::Keep, RawRecords::Drop] {
            let log = log(&case, raw_records);
            let sequence: Vec<_> = log.iter().map(|entry| entry.sequence).collect();
            assert_eq!(sequence, (0..log.len() as u64).collect::<Vec<_>>(), "{}", case.name);
        }
        let log = log(&case, RawRecords::Keep);
        let kept: Vec<_> = log.iter().filter_map(|entry| entry.raw.as_ref()).collect();
        let lines = case.input.split(|byte| *byte == b'\n');
        let records = lines.filter(|line| {
            serde_json::from_slice::<serde_json::Value>(line).is_ok_and(|it| it.is_object())
        });
        if !case.input.starts_with(b"data:") {
            assert!(kept.len() >= records.count(), "{}: every record is kept", case.name);
        }
    }
}

#[test]
fn a_stored_log_gives_the_same_output_as_the_stream() {
    for case in Case::all() {
        for to in written() {
            let read = ReadOptions { id_seed: Some(SEED), ..ReadOptions::default() };
            let options = Options { read, ..Options::default() };
            let direct = translate_with(options, None, to, [&*case.input], &case.exit);
            let from_log = write(to, &log(&case, RawRecords::KeepOf(to)));
            assert_eq!(comparable(to, &from_log), comparable(to, &direct.text()), "{}", case.name);
        }
    }
}

fn write(to: &'static Dialect, log: &[Entry]) -> String {
    let options = EncodeOptions { id_seed: Some(SEED), ..EncodeOptions::default() };
    let (mut writer, mut bytes) = (Writer::new(to, &options).unwrap(), Vec::new());
    for entry in log {
        // The relay's token is only in memory.
        let stored = stored(entry);
        let entry = if stored == *entry { &stored } else { entry };
        writer.write(entry.borrowed(), &mut bytes);
    }
    writer.finish(&mut bytes);
    String::from_utf8(bytes).unwrap()
}

/// The records as values, since a stored text may escape the same characters differently.
fn comparable(to: &Dialect, written: &str) -> Vec<serde_json::Value> {
    let value = |line: &str| {
        let line = line.strip_prefix("data: ").unwrap_or(line);
        serde_json::from_str(line).unwrap_or_else(|_| without_generated_ids(line).into())
    };
    if to.name == "text" { vec![written.into()] } else { written.lines().map(value).collect() }
}
