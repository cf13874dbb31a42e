//! What git ignores: the rules in `.gitignore`, `.ignore`, `.git/info/exclude` and the user's own
//! file.
//!
//! The walk of the `ignore` library would open whatever has such a name, follow it if it is a link,
//! and read it to its end. A pipe has no end, and neither has `/dev/zero`. So the rules are read
//! here, from ordinary files of a limited size, and the library only matches them.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder, gitconfig_excludes_path};

use crate::tool::place::open_in;

pub(super) const IGNORE: &str = ".ignore";
pub(super) const GITIGNORE: &str = ".gitignore";
const EXCLUDE: &str = ".git/info/exclude";

/// How many bytes a file with rules may have, and all of them that a walk reads.
const MAX_FILE: u64 = 128 << 10;
const MAX_ALL: usize = 4 << 20;

/// How many folders above each other may have rules. Each needs memory of its own to match paths.
const MAX_DEPTH: usize = 32;

/// The rules of a folder, and of those above it.
#[derive(Debug)]
pub(super) struct Rules {
    above: Option<Arc<Rules>>,
    depth: usize,
    ignore: Gitignore,
    gitignore: Gitignore,
    exclude: Gitignore,
}

/// Which files with rules a folder has.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Present {
    pub(super) ignore: bool,
    pub(super) gitignore: bool,
    pub(super) repository: bool,
}

impl Present {
    fn any(self) -> bool {
        self.ignore || self.gitignore || self.repository
    }
}

/// Reads rules, within the limits of a walk.
#[derive(Debug, Default)]
pub(super) struct RulesReader {
    read: AtomicUsize,
    /// How many files were not used.
    unused: AtomicUsize,
}

impl Rules {
    /// Whether a path is ignored. Of the files with the same name, that of the innermost folder
    /// counts.
    pub(super) fn ignores(&self, path: &Path, is_folder: bool) -> bool {
        let kinds: [fn(&Self) -> &Gitignore; 3] =
            [|rules| &rules.ignore, |rules| &rules.gitignore, |rules| &rules.exclude];
        for kind in kinds {
            let mut next = Some(self);
            while let Some(rules) = next {
                match kind(rules).matched(path, is_folder) {
                    Match::None => next = rules.above.as_deref(),
                    Match::Ignore(_) => return true,
                    Match::Whitelist(_) => return false,
                }
            }
        }
        false
    }
}

impl RulesReader {
    /// The rules of the user and of all folders above one.
    pub(super) fn above(&self, folder: &Path) -> Option<Arc<Rules>> {
        let user = gitconfig_excludes_path().map_or_else(Gitignore::empty, |path| {
            self.rules(folder, File::open(&path).and_then(|file| Ok((file.metadata()?, file))))
        });
        let mut rules = (!user.is_empty()).then(|| {
            let (ignore, gitignore) = (Gitignore::empty(), Gitignore::empty());
            Arc::new(Rules { above: None, depth: 0, ignore, gitignore, exclude: user })
        });
        let mut folders: Vec<_> = folder.ancestors().skip(1).collect();
        folders.reverse();
        for folder in folders {
            let all = Present { ignore: true, gitignore: true, repository: true };
            rules = self.within(rules, folder, all, &|name| open_in(folder, name));
        }
        rules
    }

    /// The rules within a folder; `open` opens its files.
    pub(super) fn within(
        &self,
        above: Option<Arc<Rules>>,
        folder: &Path,
        present: Present,
        open: &dyn Fn(&str) -> io::Result<(File, Metadata)>,
    ) -> Option<Arc<Rules>> {
        if !present.any() {
            return above;
        }
        let read = |is_present: bool, name: &str| match is_present {
            true => self.rules(folder, open(name).map(|(file, metadata)| (metadata, file))),
            false => Gitignore::empty(),
        };
        let ignore = read(present.ignore, IGNORE);
        let gitignore = read(present.gitignore, GITIGNORE);
        let exclude = read(present.repository, EXCLUDE);
        if ignore.is_empty() && gitignore.is_empty() && exclude.is_empty() {
            return above;
        }
        let depth = above.as_ref().map_or(0, |above| above.depth + 1);
        if depth > MAX_DEPTH {
            self.unused.fetch_add(1, Ordering::Relaxed);
            return above;
        }
        Some(Arc::new(Rules { above, depth, ignore, gitignore, exclude }))
    }

    fn rules(&self, folder: &Path, opened: io::Result<(Metadata, File)>) -> Gitignore {
        let missing = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
        match opened {
            Err(problem) if missing.contains(&problem.kind()) => return Gitignore::empty(),
            Ok((metadata, file)) if metadata.is_file() => {
                if let Some(rules) = self.text(&file).and_then(|text| parse(folder, &text)) {
                    return rules;
                }
            }
            _ => {}
        }
        self.unused.fetch_add(1, Ordering::Relaxed);
        Gitignore::empty()
    }

    /// What a file contains, unless it is too long.
    fn text(&self, file: &File) -> Option<String> {
        let mut bytes = Vec::new();
        file.take(MAX_FILE + 1).read_to_end(&mut bytes).ok()?;
        let before = self.read.fetch_add(bytes.len(), Ordering::Relaxed);
        let fits = bytes.len() as u64 <= MAX_FILE && before + bytes.len() <= MAX_ALL;
        fits.then(|| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A note on the files that were not used.
    pub(super) fn note(&self) -> Option<String> {
        match self.unused.load(Ordering::Relaxed) {
            0 => None,
            count => Some(format!(
                "{count} files with ignore rules were not used, because they are links, no ordinary \
                 files, too long or unreadable"
            )),
        }
    }
}

/// The rules in a text. A line that is none is left out.
fn parse(folder: &Path, text: &str) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new(folder);
    for line in text.strip_prefix('\u{feff}').unwrap_or(text).lines() {
        let _ = builder.add_line(None, line);
    }
    builder.build().ok()
}
