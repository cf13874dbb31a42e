//! A batch of entries contains exactly the entries that were added to it, and every dialect is
//! written from it as from single entries.

use interlingua::event::{BlockDelta, BlockKind, Event, Notice, Reason, Severity};
use interlingua::json::{Json, Text};
use interlingua::{
    Batch, Entry, EntryRef, Origin, RawRecords, ReadOptions, Reader, Source, Writer,
};
use proptest::prelude::*;

use crate::support::{self, Case, written};

/// The entries of a transcript as copies, and in batches of this many.
fn read(case: &Case, length: usize, raw_records: RawRecords) -> (Vec<Entry>, Vec<Batch>) {
    let options = ReadOptions { raw_records, id_seed: Some(7), ..ReadOptions::default() };
    let mut reader = Reader::new(Source::Recognise, options).unwrap();
    let (mut entries, mut batches, mut batch) = (Vec::new(), Vec::new(), Batch::default());
    let mut keep = |entry: EntryRef<'_>| {
        entries.push(entry.to_owned());
        batch.push(entry);
        if batch.len() == length {
            batches.push(batch.take());
        }
    };
    reader.push(&case.input, Some(1), &mut keep).unwrap();
    reader.finish(&case.exit, Some(2), &mut keep).unwrap();
    batches.push(batch);
    (entries, batches)
}

fn json(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(|entry| serde_json::to_string(entry).unwrap()).collect()
}

#[test]
fn entries_in_batches_are_the_same_entries() {
    for case in Case::all() {
        for length in [1, 2, 7, usize::MAX] {
            for raw_records in [RawRecords::Keep, RawRecords::Drop] {
                let (entries, batches) = read(&case, length, raw_records);
                let again: Vec<_> = batches.iter().flatten().collect();
                assert!(entries == again && json(&entries) == json(&again), "{}", case.name);
                assert_eq!(batches.iter().map(Batch::len).sum::<usize>(), entries.len());
            }
        }
    }
}

#[test]
fn every_dialect_is_written_from_batches_as_from_entries() {
    for case in Case::all() {
        let (entries, batches) = read(&case, 100, RawRecords::Drop);
        for to in written() {
            let writer = || Writer::new(to, &Default::default()).unwrap();
            let (mut one, mut expected) = (writer(), Vec::new());
            entries.iter().for_each(|entry| one.write(entry.borrowed(), &mut expected));
            let (mut another, mut found) = (writer(), Vec::new());
            for batch in &batches {
                batch.for_each(|entry| another.write(entry, &mut found));
            }
            assert_eq!(one.finish(&mut expected), another.finish(&mut found));
            assert!(expected == found, "{} -> {}", case.name, to.name);
        }
    }
}

/// One of two values, mostly the first.
fn mostly<T: Clone + std::fmt::Debug>(usual: T, other: T) -> impl Strategy<Value = T> {
    prop_oneof![12 => Just(usual), 1 => Just(other)]
}

prop_compose! {
    /// A delta that mostly continues the one before it, and may differ from it in anything.
    fn delta()(
        (step, received_at, epoch) in (mostly(1, 2), mostly(None, Some(1)), mostly(0, 1)),
        (added, line, parent) in (any::<bool>(), 0..3u64, mostly(None, Some("p"))),
        (time, synthetic) in (mostly(None, Some("1")), mostly(None, Some(Reason::Implied))),
        (block, index, message) in (mostly(1, 2), mostly(0, 1), mostly(Some("m"), None)),
        kind in mostly(BlockKind::Text, BlockKind::Reasoning),
        text in prop::sample::select(vec![r#""""#, r#""a""#, r#""ü""#, r#""\n""#, r#""\u0061""#]),
        is_notice in mostly(false, true),
    ) -> (u64, Entry, &'static str) {
        let (message, text) = (message.map(Text::plain), text);
        let event = if is_notice {
            Event::new(Notice { severity: Severity::Info, text: Text::plain("!") })
        } else {
            Event::new(BlockDelta { block, message, index, kind, text: Text::default() })
        };
        let time = time.map(|it: &str| Json::from_text(it.to_owned()).unwrap());
        let event = event.within(parent.map(Text::plain)).at(time).because(synthetic);
        let origin = Origin { line, bytes: line..line + 5, added };
        (step, Entry { sequence: 0, received_at, epoch, origin, event, raw: None }, text)
    }
}

proptest! {
    #![proptest_config(support::cases(256))]

    #[test]
    fn any_sequence_of_deltas_is_kept(deltas in prop::collection::vec(delta(), 0..40)) {
        let (mut entries, mut batch, mut sequence) = (Vec::new(), Batch::default(), 0);
        for (step, mut entry, literal) in deltas {
            sequence += step;
            entry.sequence = sequence;
            // As a decoder would read it.
            if let interlingua::event::Data::BlockDelta(delta) = &mut entry.event.data {
                delta.text = Text::of(serde_json::from_str(literal).unwrap()).unwrap();
            }
            batch.push(entry.borrowed());
            entries.push(entry.borrowed().to_owned());
        }
        prop_assert_eq!(json(&batch.to_entries()), json(&entries));
        prop_assert_eq!(batch.to_entries(), entries);
    }
}
