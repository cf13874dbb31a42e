//! The output of a running call, which agents report as deltas of a terminal or as snapshots.

use crate::fingerprint::Fingerprint;
use crate::json::{Json, Text};

/// The length of the end of a terminal's output that is kept for the result.
const MAX_KEPT: usize = 1 << 20;

/// The output of a terminal. It is kept because the result of the call does not repeat it.
#[derive(Debug, Default)]
pub(super) struct TerminalOutput {
    kept: String,
    /// The number of bytes before `kept`; they were emitted as progress.
    dropped: usize,
}

impl TerminalOutput {
    pub(super) fn push(&mut self, delta: &str) {
        self.kept.push_str(delta);
        // Trimming only at twice the limit keeps the cost of moving the rest linear.
        if self.kept.len() > 2 * MAX_KEPT {
            let start = self.kept.ceil_char_boundary(self.kept.len() - MAX_KEPT);
            self.kept.drain(..start);
            self.dropped += start;
        }
    }

    /// The output for the result of the call. It states what it leaves out.
    pub(super) fn result(&self) -> Option<Json<'static>> {
        let text = match (&*self.kept, self.dropped) {
            ("", _) => return None,
            (kept, 0) => Text::plain(kept),
            (kept, dropped) => Text::from(format!("[{dropped} bytes of earlier output]\n{kept}")),
        };
        Some(Json::from(&text))
    }
}

/// The output that was emitted, where every update repeats all of it.
#[derive(Debug, Default)]
pub(super) struct SnapshotOutput {
    emitted: Fingerprint,
}

impl SnapshotOutput {
    /// The part of a snapshot that is new. A snapshot that does not continue the previous one is
    /// new as a whole.
    pub(super) fn new_part<'t>(&mut self, snapshot: &'t str) -> Option<&'t str> {
        let before = std::mem::replace(&mut self.emitted, Fingerprint::of(snapshot.as_bytes()));
        let continued = snapshot
            .split_at_checked(before.length())
            .filter(|(start, _)| Fingerprint::of(start.as_bytes()) == before);
        let new = continued.map_or(snapshot, |(_, new)| new);
        (!new.is_empty()).then_some(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_emitted_as_far_as_it_is_new() {
        let mut output = SnapshotOutput::default();
        let news = ["", "a\n", "a\n", "a\nb\n", "c\n", "c\nd\n"].map(|text| output.new_part(text));
        assert_eq!(news, [None, Some("a\n"), None, Some("b\n"), Some("c\n"), Some("d\n")]);
    }

    #[test]
    fn a_snapshot_of_any_length_continues() {
        let (mut output, mut text) = (SnapshotOutput::default(), "é".repeat(MAX_KEPT));
        assert!(output.new_part(&text).is_some());
        text.push('x');
        assert_eq!(output.new_part(&text), Some("x"));
        text.push('y');
        assert_eq!(output.new_part(&text), Some("y"));
    }

    #[test]
    fn the_end_of_a_long_terminal_is_kept_without_gaps() {
        let mut output = TerminalOutput::default();
        assert_eq!(output.result(), None);
        let lines: Vec<_> = (0..300_000).map(|number| format!("line {number}\n")).collect();
        lines.iter().for_each(|line| output.push(line));
        let result = output.result().unwrap();
        let text = result.as_text().unwrap().to_plain().into_owned();
        let (note, kept) = text.split_once('\n').unwrap();
        let all = lines.concat();
        assert!(all.ends_with(kept) && kept.len() >= MAX_KEPT);
        assert_eq!(note, format!("[{} bytes of earlier output]", all.len() - kept.len()));
    }
}
