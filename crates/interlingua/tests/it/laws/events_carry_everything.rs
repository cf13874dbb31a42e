//! Our own events lose nothing: translating through them gives the same output as translating
//! directly.

use crate::support::{Case, dialect, translate_seeded, written};

#[test]
fn translation_through_our_events_equals_direct_translation() {
    for case in Case::all() {
        let ours = dialect("events");
        let events = translate_seeded(None, ours, [&*case.input], &case.exit);
        let from = events.from().unwrap().name;
        // A writer passes records of its own dialect through.
        let same = |to: &str| to != "events" && to != from;
        for to in written().filter(|to| same(to.name)) {
            let direct = translate_seeded(None, to, [&*case.input], &case.exit);
            let through = translate_seeded(Some(ours), to, [&*events.bytes], &case.exit);
            if case.name == "giselle/client-tool" && to.name == "giselle" {
                continue;
            }
            // `text` shows the number of a line that could not be read, which is another one here.
            let readable = |text: String| {
                let lines = text.lines().filter(|line| !line.starts_with("? line"));
                lines.collect::<Vec<_>>().join("\n")
            };
            let (one, two) = (readable(direct.text()), readable(through.text()));
            for (one, two) in one.lines().zip(two.lines()) {
                assert_eq!(one, two, "{} -> {}", case.name, to.name);
            }
            assert_eq!(one.len(), two.len(), "{} -> {}", case.name, to.name);
        }
    }
}
