//! Laws 1 and 2: noise between records affects nothing else, and is reported.

use interlingua::RepairKind;
use proptest::prelude::*;

use crate::support::{self, Case, dialect, translate_seeded};

/// Lines such as programs print between records.
fn noise() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("npm warn deprecated".to_owned()),
        Just("\u{1b}[31mred\u{1b}[0m".to_owned()),
        Just("a stray \" quote".to_owned()),
        Just("a stray } brace".to_owned()),
        Just("an open { brace".to_owned()),
        Just("[1, 2".to_owned()),
        Just("12".to_owned()),
        Just("\\".to_owned()),
        "[a-z \\[\\]:,.]{1,40}",
    ]
}

proptest! {
    #![proptest_config(support::cases(96))]

    #[test]
    fn noise_changes_only_the_reports_of_noise(
        at in any::<prop::sample::Index>(),
        lines in prop::collection::vec((any::<prop::sample::Index>(), noise()), 1..6),
    ) {
        // Between server-sent events, lines that are no fields are ignored: the standard defines it
        // so.
        let mut cases = Case::small();
        let server_sent = |input: &[u8]| {
            let input = input.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(input);
            input.starts_with(b"data:") || input.starts_with(b"event:")
        };
        // Nor is there a place between the lines of a record that is printed over several.
        let over_lines = |input: &[u8]| input.starts_with(b"[{") || input.starts_with(b"{\n");
        cases.retain(|case| !server_sent(&case.input) && !over_lines(&case.input));
        let case = at.get(&cases);
        let from = support::translate("events", &case.input, &case.exit).from();
        let text = String::from_utf8(case.input.clone()).unwrap();
        let mut noisy: Vec<&str> = text.lines().collect();
        for (place, line) in &lines {
            let place = place.index(noisy.len());
            noisy.insert(place, line);
        }
        let noisy = noisy.join("\n") + if text.ends_with('\n') { "\n" } else { "" };
        for to in ["claude", "yume", "ai-sdk", "giselle"] {
            let to = dialect(to);
            let clean = translate_seeded(from, to, [&*case.input], &case.exit);
            let noisy_output = translate_seeded(from, to, [noisy.as_bytes()], &case.exit);
            prop_assert_eq!(comparable(&clean, to.name), comparable(&noisy_output, to.name), "{} -> {}", case.name, to.name);
            // Goose prints plain text around its records, so there a line may be a log line instead.
            if from.is_some_and(|from| from.name == "goose") {
                let reported = |input: &[u8]| {
                    let events = translate_seeded(from, dialect("events"), [input], &case.exit);
                    let is_report = |line: &&str| {
                        line.contains(r#""type":"log""#) || line.contains(r#""type":"unparsed""#)
                    };
                    events.text().lines().filter(is_report).count()
                };
                prop_assert!(reported(noisy.as_bytes()) > reported(&case.input), "{}", case.name);
                continue;
            }
            prop_assert!(noisy_output.repairs() != clean.repairs());
            let unreadable = |written: &support::Written| {
                let mut counts = written.repairs().counts();
                counts.find(|(kind, _)| *kind == RepairKind::Unreadable).map_or(0, |(_, count)| count)
            };
            prop_assert!(unreadable(&noisy_output) > unreadable(&clean));
        }
    }
}

/// The lines written, without the reports of noise and without generated ids, which depend on
/// positions.
fn comparable(written: &support::Written, to: &str) -> Vec<String> {
    let lines = written.text().lines().map(support::without_generated_ids).collect::<Vec<_>>();
    lines.into_iter().filter(|line| to != "giselle" || !line.contains("\"stderr\"")).collect()
}
