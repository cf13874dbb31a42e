//! Collects what a search finds in a file.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};

use super::Mode;

/// How many bytes are kept of a line.
const MAX_LINE: usize = 500;

/// What was found in a file.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// The number of matching lines.
    pub(super) matches: u64,
    lines: Vec<Line>,
    pub(super) modified: Option<SystemTime>,
    /// Whether the file is binary from some place on, and was not searched any further.
    is_binary: bool,
}

#[derive(Debug)]
enum Line {
    Match(Option<u64>, String),
    Context(Option<u64>, String),
    /// Between lines that do not follow each other.
    Break,
}

/// Takes room for results; returns how much there was.
pub(super) fn take(room: &AtomicUsize, size: usize) -> usize {
    let left = |room: usize| Some(room.saturating_sub(size));
    room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left).unwrap_or(0)
}

/// A sink for one file.
pub(super) struct Lines<'s> {
    mode: Mode,
    found: Found,
    /// How many bytes may still be collected in the whole search.
    room: &'s AtomicUsize,
}

impl<'s> Lines<'s> {
    pub(super) fn new(mode: Mode, room: &'s AtomicUsize) -> Self {
        Self { mode, found: Found::default(), room }
    }

    /// What was found, if anything was.
    pub(super) fn found(mut self, modified: impl FnOnce() -> Option<SystemTime>) -> Option<Found> {
        if self.found.matches == 0 {
            return None;
        }
        if self.mode == Mode::FilesWithMatches {
            self.found.modified = modified();
        }
        Some(self.found)
    }

    /// Keeps lines; `false` if there is no room for more.
    fn keep(
        &mut self,
        number: Option<u64>,
        bytes: &[u8],
        line: impl Fn(Option<u64>, String) -> Line,
    ) -> bool {
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        // A match may span several lines.
        for (at, text) in (0..).zip(bytes.split(|byte| *byte == b'\n')) {
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            let kept = String::from_utf8_lossy(text.get(..MAX_LINE).unwrap_or(text));
            let kept = match text.len() > MAX_LINE {
                // The cut may have split a character.
                true => format!("{}… (cut)", kept.trim_end_matches('\u{fffd}')),
                false => kept.into_owned(),
            };
            let size = kept.len() + size_of::<Line>();
            let before = take(self.room, size);
            self.found.lines.push(line(number.map(|number| number + at), kept));
            if before <= size {
                return false;
            }
        }
        true
    }
}

impl Sink for &mut Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.found.matches += found.lines().count() as u64;
        match self.mode {
            Mode::FilesWithMatches => Ok(false),
            Mode::Count => Ok(true),
            Mode::Content => Ok(self.keep(found.line_number(), found.bytes(), Line::Match)),
        }
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        Ok(self.keep(context.line_number(), context.bytes(), Line::Context))
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.found.lines.push(Line::Break);
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> io::Result<()> {
        self.found.is_binary = finish.binary_byte_offset().is_some();
        Ok(())
    }
}

impl Found {
    /// The lines with their path, as grep shows them.
    pub(super) fn lines(&self, path: &str, numbers: bool) -> Vec<String> {
        let shown = |number: &Option<u64>, text: &str, mark: char| match number {
            Some(number) if numbers => format!("{path}{mark}{number}{mark}{text}"),
            _ => format!("{path}{mark}{text}"),
        };
        let mut lines: Vec<_> = self
            .lines
            .iter()
            .map(|line| match line {
                Line::Match(number, text) => shown(number, text, ':'),
                Line::Context(number, text) => shown(number, text, '-'),
                Line::Break => "--".to_owned(),
            })
            .collect();
        lines.extend(self.note(path));
        lines
    }

    /// The number of lines with its path.
    pub(super) fn count(&self, path: &str) -> Vec<String> {
        let mut lines = vec![format!("{path}:{}", self.matches)];
        lines.extend(self.note(path));
        lines
    }

    fn note(&self, path: &str) -> Option<String> {
        let note = || format!("({path} is binary after these lines, and was not searched further)");
        self.is_binary.then(note)
    }
}
