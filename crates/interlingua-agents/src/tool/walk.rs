//! The walk through the files below a folder, in several threads and with bounds.
//!
//! What git ignores is left out, as are `.git` and files that usually contain secrets. Links are not
//! followed: folders are opened like files, relative to a descriptor. The walk ends when it has seen
//! too many entries, takes too long, or is cancelled.
//!
//! The walk of the `ignore` library is not used, since it reads a whole folder before anyone can
//! count its entries, and files with ignore rules whatever they are; see `rules`.

mod rules;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::{Types, TypesBuilder};

use super::Failure;
use super::place::{Kind, Place};
use crate::permission::paths::is_secret;
use rules::{GITIGNORE, IGNORE, Present, Rules, RulesReader};

/// How many entries are looked at. It bounds the memory: entries are queued before they are visited.
const MAX_ENTRIES: usize = 500_000;

/// How long a walk may take.
const MAX_TIME: Duration = Duration::from_secs(30);

/// How many entries are looked at between two looks at the clock.
const CLOCK_INTERVAL: usize = 256;

/// The number of threads; more do not help.
const MAX_THREADS: usize = 12;

/// How many files of a folder one thread visits before others may help.
const FILES_AT_ONCE: usize = 32;

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
    rules: RulesReader,
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
            rules: RulesReader::default(),
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
        !self.is_stopped()
    }

    pub(super) fn count_unreadable(&self) {
        self.unreadable.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an entry; `false` if the walk ends here.
    fn count(&self) -> bool {
        let seen = self.entries.fetch_add(1, Ordering::Relaxed);
        if seen >= MAX_ENTRIES {
            self.stop();
        }
        match seen.is_multiple_of(CLOCK_INTERVAL) {
            true => self.goes_on(),
            false => !self.is_stopped(),
        }
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
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
        notes.extend(self.rules.note());
        if self.is_stopped() {
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

/// The number of threads of a walk.
pub(super) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS)
}

/// Visits all files below a folder. Each thread has a visitor of its own; it receives the path
/// below the folder.
pub(super) fn files<Visitor: FnMut(&Path) + Send>(
    place: &Place,
    filter: Filter,
    progress: &Arc<Progress>,
    mut visitor: impl FnMut() -> Visitor,
) {
    let rules = progress.rules.above(&place.path);
    let root = Work::Folder { parent: Arc::default(), name: OsString::new(), rules };
    let walk = Walk { place, filter, progress, queue: Queue::new(root) };
    std::thread::scope(|scope| {
        for _ in 1..threads() {
            let (walk, mut visit) = (&walk, visitor());
            // Fewer threads take longer, and do the same.
            let _ = std::thread::Builder::new().spawn_scoped(scope, move || walk.run(&mut visit));
        }
        walk.run(&mut visitor());
    });
}

struct Walk<'w> {
    place: &'w Place,
    filter: Filter,
    progress: &'w Progress,
    queue: Queue,
}

/// What a thread does next. A path is kept once for all entries of a folder: with half a million
/// entries, whole paths could take gigabytes.
enum Work {
    Folder { parent: Arc<PathBuf>, name: OsString, rules: Option<Arc<Rules>> },
    Files { folder: Arc<PathBuf>, names: Vec<OsString> },
}

/// The names in a folder, which may be many.
#[derive(Default)]
struct Entries {
    folders: Vec<Box<OsStr>>,
    files: Vec<Box<OsStr>>,
}

impl Walk<'_> {
    /// Works until nothing is left to do.
    fn run(&self, visit: &mut dyn FnMut(&Path)) {
        while let Some((work, _unfinished)) = self.queue.next() {
            if self.progress.is_stopped() {
                continue;
            }
            match work {
                Work::Folder { parent, name, rules } => {
                    // An empty name would add a separator.
                    let folder = if name.is_empty() { parent } else { Arc::new(parent.join(name)) };
                    self.folder(&folder, rules, visit);
                }
                Work::Files { folder, names } => self.visit(&folder, &names, visit),
            }
        }
    }

    fn folder(
        &self,
        folder: &Arc<PathBuf>,
        above: Option<Arc<Rules>>,
        visit: &mut dyn FnMut(&Path),
    ) {
        let (mut entries, mut present) = (Entries::default(), Present::default());
        let read = self.place.visit_below(folder, &mut |name, kind| {
            match name.to_str() {
                Some(GITIGNORE) => present.gitignore = true,
                Some(IGNORE) => present.ignore = true,
                Some(".git") => {
                    present.repository = kind == Kind::Folder;
                    return self.progress.count();
                }
                _ => {}
            }
            match kind {
                Kind::Folder => entries.folders.push(name.into()),
                Kind::Other => {}
                _ => entries.files.push(name.into()),
            }
            self.progress.count()
        });
        if read.is_err() {
            self.progress.count_unreadable();
        }
        // Nothing is visited any more, so a folder with too many entries is not sorted out.
        if self.progress.is_stopped() {
            return;
        }
        let mut path = self.place.path.join(&**folder);
        let rules = self
            .progress
            .rules
            .within(above, &path, present, &|name| self.place.open_below(&folder.join(name)));
        let mut wanted = |names: Vec<Box<OsStr>>, is_folder| {
            let names = names.into_iter().filter(|name| {
                path.push(&**name);
                let is_wanted = self.wants(&path, name, is_folder, rules.as_deref());
                path.pop();
                is_wanted
            });
            names.map(OsString::from).collect::<Vec<_>>()
        };
        let (folders, mut names) = (wanted(entries.folders, true), wanted(entries.files, false));
        let own = names.split_off(names.len().saturating_sub(FILES_AT_ONCE));
        let folders = folders.into_iter().map(|name| Work::Folder {
            parent: folder.clone(),
            name,
            rules: rules.clone(),
        });
        let files = names
            .chunks(FILES_AT_ONCE)
            .map(|names| Work::Files { folder: folder.clone(), names: names.to_vec() });
        self.queue.add(folders.chain(files));
        self.visit(folder, &own, visit);
    }

    /// Whether an entry is visited.
    fn wants(&self, path: &Path, name: &OsStr, is_folder: bool, rules: Option<&Rules>) -> bool {
        let Filter { overrides, types } = &self.filter;
        // As rules of the walk, patterns would take precedence over what git ignores.
        if overrides.matched(path, is_folder).is_ignore()
            || rules.is_some_and(|rules| rules.ignores(path, is_folder))
            || types.matched(path, is_folder).is_ignore()
        {
            return false;
        }
        let is_secret = is_secret(Path::new(name));
        if is_secret {
            self.progress.secrets.fetch_add(1, Ordering::Relaxed);
        }
        !is_secret
    }

    fn visit(&self, folder: &Path, names: &[OsString], visit: &mut dyn FnMut(&Path)) {
        for name in names {
            if self.progress.is_stopped() {
                return;
            }
            visit(&folder.join(name));
        }
    }
}

/// The work that is left, for all threads.
struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

struct QueueState {
    waiting: Vec<Work>,
    /// How much waits, or is being done.
    unfinished: usize,
}

impl Queue {
    fn new(first: Work) -> Self {
        let state = QueueState { waiting: vec![first], unfinished: 1 };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, work: impl Iterator<Item = Work>) {
        let mut state = self.state();
        let before = state.waiting.len();
        state.waiting.extend(work);
        let added = state.waiting.len() - before;
        state.unfinished += added;
        drop(state);
        match added {
            0 => {}
            1 => self.changed.notify_one(),
            _ => self.changed.notify_all(),
        }
    }

    /// The next work, the newest first, so that little waits; `None` if all of it is done.
    fn next(&self) -> Option<(Work, Unfinished<'_>)> {
        let mut state = self.state();
        loop {
            if let Some(work) = state.waiting.pop() {
                return Some((work, Unfinished(self)));
            }
            if state.unfinished == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Work that is being done. It is finished when this is dropped, also if a thread broke: the others
/// would wait for it forever.
struct Unfinished<'q>(&'q Queue);

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.unfinished -= 1;
        if state.unfinished == 0 {
            self.0.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::place::Roots;
    use super::*;

    /// A folder with a million entries was read to its end before they were counted.
    #[test]
    fn a_folder_is_read_only_up_to_the_bound() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..2000 {
            std::fs::write(folder.path().join(number.to_string()), "").unwrap();
        }
        let place = Roots::new(folder.path(), &[], None).unwrap().find(".", None).unwrap();
        let progress = Progress::new(&Arc::default());
        progress.entries.store(MAX_ENTRIES - 100, Ordering::Relaxed);
        let filter = Filter::new(&place.path, None, None).unwrap();
        let visited = AtomicUsize::new(0);
        files(&place, filter, &progress, || {
            |_: &Path| {
                visited.fetch_add(1, Ordering::Relaxed);
            }
        });
        assert_eq!(progress.entries.load(Ordering::Relaxed), MAX_ENTRIES + 1);
        assert!(visited.into_inner() <= 100);
        assert!(progress.notes().concat().contains("stopped after 500000 entries"));
    }

    #[test]
    fn all_files_are_visited_once_by_any_number_of_threads() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..300 {
            let path = folder.path().join(format!("{}/{}", number % 7, number % 3));
            std::fs::create_dir_all(&path).unwrap();
            std::fs::write(path.join(number.to_string()), "").unwrap();
            std::fs::write(folder.path().join(format!("flat-{number}")), "").unwrap();
        }
        let place = Roots::new(folder.path(), &[], None).unwrap().find(".", None).unwrap();
        let filter = Filter::new(&place.path, None, None).unwrap();
        let visited = Mutex::new(Vec::new());
        files(&place, filter, &Progress::new(&Arc::default()), || {
            |below: &Path| visited.lock().unwrap().push(below.to_owned())
        });
        let mut visited = visited.into_inner().unwrap();
        visited.sort();
        visited.dedup();
        assert_eq!(visited.len(), 600);
        assert!(visited.iter().all(|below| folder.path().join(below).is_file()));
    }
}
