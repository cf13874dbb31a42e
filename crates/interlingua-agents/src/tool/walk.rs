//! The walk through the files below a folder, in several threads and with bounds.
//!
//! What git ignores is left out, as are `.git` and files that usually contain secrets. Links are not
//! followed. The walk ends when it has seen too many entries, takes too long, or is cancelled.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};
use ignore::{DirEntry, WalkBuilder, WalkState};

use super::Failure;
use crate::permission::paths::is_secret;

/// How many entries are looked at. It bounds the memory: entries are queued before they are visited.
const MAX_ENTRIES: usize = 500_000;

/// How long a walk may take.
const MAX_TIME: Duration = Duration::from_secs(30);

/// How many entries are looked at between two looks at the clock.
const CLOCK_INTERVAL: usize = 256;

/// The number of threads; more do not help.
const MAX_THREADS: usize = 12;

/// The state of a walk, shared by its threads.
#[derive(Debug)]
pub(super) struct Progress {
    until: Instant,
    cancelled: Arc<AtomicBool>,
    entries: AtomicUsize,
    /// How many files were skipped because they usually contain secrets.
    secrets: AtomicUsize,
    /// How many files and folders could not be read.
    unreadable: AtomicUsize,
    /// Whether the walk ends early, because of a bound.
    stopped: AtomicBool,
}

impl Progress {
    pub(super) fn new(cancelled: &Arc<AtomicBool>) -> Arc<Self> {
        Arc::new(Self {
            until: Instant::now() + MAX_TIME,
            cancelled: cancelled.clone(),
            entries: AtomicUsize::new(0),
            secrets: AtomicUsize::new(0),
            unreadable: AtomicUsize::new(0),
            stopped: AtomicBool::new(false),
        })
    }

    /// Ends the walk early.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether to go on.
    pub(super) fn goes_on(&self) -> bool {
        if self.cancelled.load(Ordering::Relaxed) || Instant::now() > self.until {
            self.stop();
        }
        !self.stopped.load(Ordering::Relaxed)
    }

    pub(super) fn count_unreadable(&self) {
        self.unreadable.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an entry, and decides whether it is visited.
    fn admits(&self, entry: &DirEntry, wanted: &Override) -> bool {
        if entry.depth() == 0 {
            return true;
        }
        let seen = self.entries.fetch_add(1, Ordering::Relaxed);
        if seen >= MAX_ENTRIES {
            self.stop();
        }
        if seen.is_multiple_of(CLOCK_INTERVAL) && !self.goes_on() {
            return false;
        }
        if self.stopped.load(Ordering::Relaxed) || entry.file_name() == ".git" {
            return false;
        }
        let kind = entry.file_type();
        let is_folder = kind.is_some_and(|kind| kind.is_dir());
        if wanted.matched(entry.path(), is_folder).is_ignore() {
            return false;
        }
        if is_secret(Path::new(entry.file_name())) {
            self.secrets.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        is_folder || kind.is_some_and(|kind| kind.is_file())
    }

    /// Notes on what was left out.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        match self.secrets.load(Ordering::Relaxed) {
            0 => {}
            1 => notes.push(
                "1 entry that usually contains secrets was skipped; name it as `path` to search it"
                    .to_owned(),
            ),
            count => notes.push(format!(
                "{count} entries that usually contain secrets were skipped; name one as `path` to \
                 search it"
            )),
        }
        match self.unreadable.load(Ordering::Relaxed) {
            0 => {}
            count => notes.push(format!("{count} files or folders could not be read")),
        }
        if self.stopped.load(Ordering::Relaxed) {
            let looked_at = self.entries.load(Ordering::Relaxed).min(MAX_ENTRIES);
            notes.push(format!(
                "the search was stopped after {looked_at} entries, so there may be more results: \
                 name a smaller folder or a narrower pattern"
            ));
        }
        notes
    }
}

/// Which files are visited.
#[derive(Debug)]
pub(super) struct Filter {
    overrides: Override,
    types: Types,
}

impl Filter {
    /// Files that match a pattern and are of a type.
    pub(super) fn new(
        root: &Path,
        glob: Option<&str>,
        file_type: Option<&str>,
    ) -> Result<Self, Failure> {
        let mut overrides = OverrideBuilder::new(root);
        if let Some(glob) = glob {
            let added = overrides.add(glob);
            added.map_err(|problem| Failure(format!("the pattern is invalid: {problem}")))?;
        }
        let overrides = overrides.build();
        let overrides =
            overrides.map_err(|problem| Failure(format!("the pattern is invalid: {problem}")))?;
        let mut types = TypesBuilder::new();
        if let Some(file_type) = file_type {
            types.add_defaults().select(file_type);
        }
        let types = types.build().map_err(|problem| {
            Failure(format!("`type`: {problem}; use `glob` with a pattern instead"))
        })?;
        Ok(Self { overrides, types })
    }
}

/// Visits all files below a folder. Each thread has a visitor of its own; it receives the path
/// below the folder.
pub(super) fn files<'v, Visitor: FnMut(&Path) + Send + 'v>(
    root: &Path,
    filter: Filter,
    progress: &Arc<Progress>,
    mut visitor: impl FnMut() -> Visitor,
) {
    let mut builder = WalkBuilder::new(root);
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
    // Hidden files count, because much of a project is configured in them.
    builder.hidden(false).require_git(false).threads(threads);
    builder.types(filter.types);
    // As overrides of the walk, patterns would take precedence over what git ignores.
    let (admits, wanted) = (progress.clone(), filter.overrides);
    builder.filter_entry(move |entry| admits.admits(entry, &wanted));
    builder.build_parallel().run(|| {
        let mut visit = visitor();
        let root: PathBuf = root.to_owned();
        let progress = progress.clone();
        Box::new(move |entry| {
            let Ok(entry) = entry else {
                progress.count_unreadable();
                return WalkState::Continue;
            };
            if entry.file_type().is_some_and(|kind| kind.is_file())
                && let Ok(below) = entry.path().strip_prefix(&root)
            {
                visit(below);
            }
            if progress.stopped.load(Ordering::Relaxed) {
                return WalkState::Quit;
            }
            WalkState::Continue
        })
    });
}
