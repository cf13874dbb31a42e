//! Law 1: whatever the input, decoding continues, every turn ends, and the output is well-formed.

use interlingua::check::Checker;
use interlingua::framing::Limits;
use interlingua::{Exit, dialect};
use proptest::prelude::*;
use serde_json::Value;

use crate::support::{self, Case, translate_chunks, written};

fn assert_well_formed(from: Option<&'static interlingua::dialect::Dialect>, input: &[u8]) {
    for to in written() {
        let written = translate_chunks(from, to, [input], &Exit::default());
        // Records that are passed through unchanged may break the rules of their dialect.
        if to.rules.is_none() || from.is_none_or(|from| from.name == to.name) {
            continue;
        }
        let mut checker = Checker::new(to, Limits::default());
        checker.push(&written.bytes);
        let findings = checker.finish(&Exit::default());
        let from = from.map(|from| from.name);
        assert!(findings.is_empty(), "{from:?} -> {}: {findings:#?}\n{}", to.name, written.text());
    }
}

/// Values that no agent prints where another type is expected.
const ODD: &[&str] = &[
    "null",
    "\"\"",
    "0",
    "-1",
    "1.5",
    "[]",
    "{}",
    "[{}]",
    "true",
    "\"x\"",
    "18446744073709551616",
];

/// The JSON pointers to all values of a record, the outermost first.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, it)| (name.clone(), it)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(i, it)| (i.to_string(), it)).collect(),
        _ => return,
    };
    for (name, value) in inner {
        let place = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
        places(value, &place, found);
        found.push(place);
    }
}

/// Replaces a value of a record by an unexpected one, or by the value that another record has
/// there.
fn mangle(record: &mut Value, other: &Value, place: prop::sample::Index, odd: usize) {
    let mut found = Vec::new();
    places(record, "", &mut found);
    if found.is_empty() {
        return;
    }
    let place = place.get(&found);
    let odd = ODD.get(odd).map(|odd| serde_json::from_str(odd).unwrap());
    let new = odd.or_else(|| other.pointer(place).cloned()).unwrap_or_default();
    *record.pointer_mut(place).unwrap() = new;
}

proptest! {
    #![proptest_config(support::cases(128))]

    /// Well-formed records with unexpected values in some fields.
    #[test]
    fn unexpected_values_in_fields_do_no_harm(
        at in any::<prop::sample::Index>(),
        changes in prop::collection::vec(
            (any::<[prop::sample::Index; 3]>(), 0..2 * ODD.len()), 1..6,
        ),
    ) {
        let cases = Case::small();
        let case = at.get(&cases);
        let from = support::translate("events", &case.input, &case.exit).from();
        let lines = case.input.split(|byte| *byte == b'\n');
        let mut records: Vec<Value> =
            lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
        for ([one, two, place], odd) in changes {
            if records.is_empty() { continue; }
            let other = two.get(&records).clone();
            let one = one.index(records.len());
            mangle(&mut records[one], &other, place, odd);
        }
        let lines: Vec<_> = records.iter().map(ToString::to_string).collect();
        assert_well_formed(from, lines.join("\n").as_bytes());
    }

    #[test]
    fn random_bytes_do_no_harm(input in prop::collection::vec(any::<u8>(), 0..400)) {
        for from in dialect::ALL.iter().copied().filter(|dialect| dialect.decoder.is_some()) {
            assert_well_formed(Some(from), &input);
        }
    }

    /// Drops, repeats and moves lines, changes bytes, and cuts off the end.
    #[test]
    fn mangled_transcripts_do_no_harm(
        at in any::<prop::sample::Index>(),
        drops in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        doubles in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        swaps in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..4),
        bytes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..3),
        end in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let cases = Case::small();
        let case = at.get(&cases);
        let from = support::translate("events", &case.input, &case.exit).from();
        let mut lines: Vec<Vec<u8>> =
            case.input.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        for place in drops {
            if lines.len() > 1 { lines.remove(place.index(lines.len())); }
        }
        for place in doubles {
            let place = place.index(lines.len());
            let line = lines[place].clone();
            lines.insert(place, line);
        }
        for (one, two) in swaps {
            let (one, two) = (one.index(lines.len()), two.index(lines.len()));
            lines.swap(one, two);
        }
        let mut input = lines.join(&b'\n');
        for (place, byte) in bytes {
            if !input.is_empty() { let place = place.index(input.len()); input[place] = byte; }
        }
        if cut && !input.is_empty() { input.truncate(end.index(input.len())); }
        assert_well_formed(from, &input);
    }
}
