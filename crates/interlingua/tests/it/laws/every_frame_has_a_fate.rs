//! Law 2, as numbers: every frame has exactly one counted fate, and so does every event of a
//! decoder.

use interlingua::{Account, EntryRef, RawRecords, ReadOptions, Reader, Source};
use proptest::prelude::*;

use crate::support::{Case, cases};

fn account(input: &[u8], case: &Case, raw_records: RawRecords) -> Account {
    let options = ReadOptions { raw_records, ..ReadOptions::default() };
    let mut reader = Reader::new(Source::Recognise, options).unwrap();
    let mut ignore = |_: EntryRef<'_>| {};
    reader.push(input, None, &mut ignore).unwrap();
    reader.finish(&case.exit, None, &mut ignore).unwrap().account
}

/// The imbalance of the account, if it has one.
fn fault(account: &Account) -> Option<String> {
    let adds_up = account.frames.add_up() && account.events.add_up();
    (!adds_up).then(|| format!("{account:?}"))
}

fn assert_none(faults: Vec<String>) {
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn accounts_of_transcripts_balance() {
    let mut faults = Vec::new();
    for case in Case::all() {
        let one = account(&case.input, &case, RawRecords::Drop);
        assert_eq!(one, account(&case.input, &case, RawRecords::Keep), "{}", case.name);
        assert!(one.frames.emitted > 0, "{}", case.name);
        faults.extend(fault(&one).map(|fault| format!("{}: {fault}", case.name)));
    }
    assert_none(faults);
}

#[test]
fn accounts_of_two_concatenated_transcripts_balance() {
    let mut faults = Vec::new();
    let all = Case::small();
    for one in &all {
        let agent = |case: &Case| case.name.split('/').next().map(str::to_owned);
        for two in all.iter().filter(|two| agent(two) == agent(one)) {
            let mut input = one.input.clone();
            if !input.ends_with(b"\n") {
                input.push(b'\n');
            }
            input.extend_from_slice(&two.input);
            let account = account(&input, two, RawRecords::Drop);
            faults.extend(fault(&account).map(|it| format!("{}, {}: {it}", one.name, two.name)));
        }
    }
    assert_none(faults);
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn accounts_of_mangled_input_balance(
        at in any::<prop::sample::Index>(),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let all = Case::small();
        let case = at.get(&all);
        let mut input = case.input.clone();
        for (place, byte) in cuts {
            if !input.is_empty() {
                let place = place.index(input.len());
                input[place] = byte;
            }
        }
        let account = account(&input, case, RawRecords::Drop);
        prop_assert!(fault(&account).is_none(), "{}: {account:?}", case.name);
    }
}
