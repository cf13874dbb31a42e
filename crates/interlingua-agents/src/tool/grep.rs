//! `Grep`: the contents of files.

mod sink;

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use serde::Deserialize;

use super::place::{Place, failure};
use super::walk::{Filter, Progress, files, threads};
use super::{Failure, Outcome, Output, Scope};
use sink::{Found, Lines};

/// How many lines or files are returned if the call does not name a number.
const DEFAULT_LIMIT: usize = 250;

/// How many bytes are returned.
const MAX_SHOWN: usize = 100_000;

/// How many bytes of results are collected.
const MAX_COLLECTED: usize = 16 << 20;

/// The memory of all threads for the files that they read: the longest line of each, or the whole
/// file if lines are joined.
const HEAP: usize = 128 << 20;

/// The memory for a compiled pattern, and for the states that each thread caches while it matches.
pub(super) const PATTERN_SIZE: usize = 8 << 20;
pub(super) const PATTERN_CACHE: usize = 8 << 20;

/// How many lines of context there may be.
const MAX_CONTEXT: usize = 100;

#[derive(Debug, Deserialize)]
pub(super) struct Input {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    #[serde(rename = "type")]
    file_type: Option<String>,
    #[serde(default)]
    output_mode: Option<Mode>,
    #[serde(rename = "-A")]
    after: Option<usize>,
    #[serde(rename = "-B")]
    before: Option<usize>,
    #[serde(rename = "-C")]
    context: Option<usize>,
    #[serde(rename = "-n")]
    numbers: Option<bool>,
    #[serde(rename = "-i")]
    ignore_case: Option<bool>,
    head_limit: Option<usize>,
    offset: Option<usize>,
    multiline: Option<bool>,
}

/// What is returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Content,
    #[default]
    FilesWithMatches,
    Count,
}

pub(super) fn run(scope: &Scope<'_>, input: Input) -> Outcome {
    let place = scope.place(input.path.as_deref().unwrap_or("."))?;
    let search = Search::new(&input)?;
    let progress = Progress::new(scope.cancelled);
    let mut found = if place.is_folder() {
        search.folder(&place, &input, &progress)?
    } else {
        search.file(&place, &scope.shown(&place.path), &progress)?
    };
    search.sort(&mut found);
    let lines = found.iter().flat_map(|(path, found)| search.lines(&scope.shown(path), found));
    Ok(Output::completed(page(lines, &input, progress.notes())))
}

/// A search, as a call describes it.
struct Search {
    wanted: Wanted,
    searcher: Searcher,
    numbers: bool,
}

/// What is searched for; the threads share it.
struct Wanted {
    matcher: RegexMatcher,
    mode: Mode,
}

type Results = Vec<(PathBuf, Found)>;

impl Search {
    fn new(input: &Input) -> Result<Self, Failure> {
        let mode = input.output_mode.unwrap_or_default();
        let multiline = input.multiline == Some(true);
        let mut matcher = RegexMatcherBuilder::new();
        matcher.case_insensitive(input.ignore_case == Some(true)).multi_line(true);
        matcher.size_limit(PATTERN_SIZE).dfa_size_limit(PATTERN_CACHE);
        if multiline {
            matcher.dot_matches_new_line(true);
        } else {
            matcher.line_terminator(Some(b'\n')).ban_byte(Some(b'\0'));
        }
        let matcher = matcher.build(&input.pattern).map_err(|problem| {
            Failure(format!("`pattern` is not a regular expression: {problem}"))
        })?;
        let context = |own: Option<usize>| match mode {
            Mode::Content => own.or(input.context).unwrap_or(0).min(MAX_CONTEXT),
            Mode::FilesWithMatches | Mode::Count => 0,
        };
        let searcher = SearcherBuilder::new()
            .line_number(mode == Mode::Content)
            .multi_line(multiline)
            .before_context(context(input.before))
            .after_context(context(input.after))
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(HEAP / threads()))
            .build();
        let wanted = Wanted { matcher, mode };
        Ok(Self { wanted, searcher, numbers: input.numbers != Some(false) })
    }

    /// Searches a file that was named, also if it usually contains secrets.
    fn file(&self, place: &Place, shown: &str, progress: &Progress) -> Result<Results, Failure> {
        let (file, _) = place.open().map_err(|problem| failure(shown, &problem))?;
        let room = AtomicUsize::new(MAX_COLLECTED);
        let found = self.wanted.search(&mut self.searcher.clone(), file, progress, &room);
        let found = found.map_err(|problem| failure(shown, &problem))?;
        Ok(found.map(|found| (place.path.clone(), found)).into_iter().collect())
    }

    fn folder(
        &self,
        place: &Place,
        input: &Input,
        progress: &Arc<Progress>,
    ) -> Result<Results, Failure> {
        let filter = Filter::new(&place.path, input.glob.as_deref(), input.file_type.as_deref())?;
        let (results, room) = (Mutex::new(Vec::new()), AtomicUsize::new(MAX_COLLECTED));
        let wanted = &self.wanted;
        files(place, filter, progress, || {
            let (mut searcher, results, room) = (self.searcher.clone(), &results, &room);
            move |below: &Path| {
                // Relative to the folder, so that no link that is made meanwhile leads out of it.
                let found = place
                    .open_below(below)
                    .and_then(|(file, _)| wanted.search(&mut searcher, file, progress, room));
                match found {
                    Ok(Some(found)) => {
                        let size = place.path.as_os_str().len() + below.as_os_str().len();
                        sink::take(room, size + size_of::<(PathBuf, Found)>());
                        let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                        results.push((place.path.join(below), found));
                    }
                    Ok(None) => {}
                    Err(_) => progress.count_unreadable(),
                }
            }
        });
        Ok(results.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Paths are shown newest first, everything else in the order of the paths.
    fn sort(&self, found: &mut Results) {
        let age = |found: &Found| found.modified.unwrap_or(SystemTime::UNIX_EPOCH);
        found.sort_by(|(one_path, one), (other_path, other)| match self.wanted.mode {
            Mode::FilesWithMatches => {
                age(other).cmp(&age(one)).then_with(|| one_path.cmp(other_path))
            }
            Mode::Content | Mode::Count => one_path.cmp(other_path),
        });
    }

    /// What is shown of a file.
    fn lines(&self, path: &str, found: &Found) -> Vec<String> {
        match self.wanted.mode {
            Mode::FilesWithMatches => vec![path.to_owned()],
            Mode::Count => found.count(path),
            Mode::Content => found.lines(path, self.numbers),
        }
    }
}

impl Wanted {
    /// Searches a file; `None` if nothing matches.
    fn search(
        &self,
        searcher: &mut Searcher,
        file: std::fs::File,
        progress: &Progress,
        room: &AtomicUsize,
    ) -> io::Result<Option<Found>> {
        let mut lines = Lines::new(self.mode, room);
        let reader = Interruptible { file: &file, progress };
        searcher.search_reader(&self.matcher, reader, &mut lines)?;
        if room.load(Ordering::Relaxed) == 0 {
            progress.stop();
        }
        Ok(lines.found(|| file.metadata().and_then(|it| it.modified()).ok()))
    }
}

/// A file that ends early when the search is cancelled or takes too long.
struct Interruptible<'r> {
    file: &'r std::fs::File,
    progress: &'r Progress,
}

impl Read for Interruptible<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.progress.goes_on() { self.file.read(buffer) } else { Ok(0) }
    }
}

/// The lines that a call asks for, with notes on what is left out.
fn page(lines: impl Iterator<Item = String>, input: &Input, mut notes: Vec<String>) -> String {
    let limit = input.head_limit.filter(|limit| *limit > 0).unwrap_or(DEFAULT_LIMIT);
    let offset = input.offset.unwrap_or(0);
    let (mut text, mut shown, mut left) = (String::new(), 0, 0);
    for line in lines.skip(offset) {
        if shown < limit && text.len() + line.len() < MAX_SHOWN {
            text.push_str(&line);
            text.push('\n');
            shown += 1;
        } else {
            left += 1;
        }
    }
    if left > 0 {
        let next = offset + shown;
        notes.insert(0, format!("{left} more lines: use `offset` {next} to see them"));
    }
    if shown == 0 {
        text.push_str(if offset > 0 { "No further matches found\n" } else { "No matches found\n" });
    }
    let text = text.trim_end_matches('\n');
    match notes.is_empty() {
        true => text.to_owned(),
        false => format!("{text}\n\n({})", notes.join("; ")),
    }
}
