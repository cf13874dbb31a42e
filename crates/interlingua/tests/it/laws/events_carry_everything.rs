//! Our own events lose nothing: what is written from them is what is written from the agent.

use crate::support::{Case, dialect, translate_seeded, written};

#[test]
fn through_our_events_or_directly_is_the_same() {
    for case in Case::all() {
        let ours = dialect("events");
        let events = translate_seeded(None, ours, [&*case.input], &case.exit);
        let from = events.from().unwrap().name;
        // A writer passes records in its own dialect through.
        let same = |to: &str| to != "events" && to != from;
        for to in written().filter(|to| same(to.name)) {
            let direct = translate_seeded(None, to, [&*case.input], &case.exit);
            let through = translate_seeded(Some(ours), to, [&*events.bytes], &case.exit);
            if case.name == "giselle/client-tool" && to.name == "giselle" {
                continue;
            }
            // `text` tells a person on which line of its input something could not be read.
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
