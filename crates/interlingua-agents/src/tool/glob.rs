//! `Glob`: files by their names, newest first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use serde::Deserialize;

use super::walk::{Filter, Progress, files};
use super::{Failure, Outcome, Output, Scope};

/// How many files are returned.
const MAX_SHOWN: usize = 100;

#[derive(Debug, Deserialize)]
pub(super) struct Input {
    pattern: String,
    path: Option<String>,
}

pub(super) fn run(scope: &Scope<'_>, input: Input) -> Outcome {
    let place = scope.place(input.path.as_deref().unwrap_or("."))?;
    let shown = scope.shown(&place.path);
    if !place.is_folder() {
        return Err(Failure(format!("{shown} is not a folder that can be searched")));
    }
    let pattern = below(&input.pattern, &place.path)?;
    let filter = Filter::new(&place.path, Some(&pattern), None)?;
    let progress = Progress::new(scope.cancelled);
    let found = Mutex::new(Newest::default());
    files(&place, filter, &progress, || {
        let (mut own, root) = (Batch { all: &found, own: Newest::default() }, &place.path);
        move |below: &Path| {
            let path = root.join(below);
            let modified = path.symlink_metadata().and_then(|file| file.modified());
            own.own.add(modified.unwrap_or(SystemTime::UNIX_EPOCH), path);
        }
    });
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut notes = progress.notes();
    if found.count > MAX_SHOWN {
        let left = found.count - MAX_SHOWN;
        notes.insert(0, format!("{left} more files match: use a narrower pattern"));
    }
    let found = found.in_order();
    let mut lines: Vec<_> = found.iter().map(|path| scope.shown(path)).collect();
    if lines.is_empty() {
        lines.push("No matches found".to_owned());
    }
    if !notes.is_empty() {
        lines.push(format!("\n({})", notes.join("; ")));
    }
    Ok(Output::completed(lines.join("\n")))
}

/// The newest files, as many as are returned: there may be very many with long paths.
#[derive(Debug, Default)]
struct Newest {
    /// The oldest of them is the greatest. Of the same age, the last path is.
    files: BinaryHeap<(Reverse<SystemTime>, PathBuf)>,
    /// How many files were found.
    count: usize,
}

impl Newest {
    fn add(&mut self, modified: SystemTime, path: PathBuf) {
        self.count += 1;
        self.keep((Reverse(modified), path));
    }

    fn keep(&mut self, file: (Reverse<SystemTime>, PathBuf)) {
        self.files.push(file);
        if self.files.len() > MAX_SHOWN {
            self.files.pop();
        }
    }

    /// Newest first; files of the same age in the order of their paths.
    fn in_order(self) -> Vec<PathBuf> {
        self.files.into_sorted_vec().into_iter().map(|(_, path)| path).collect()
    }
}

/// The files of a thread, which are added to those of the others at its end.
struct Batch<'f> {
    all: &'f Mutex<Newest>,
    own: Newest,
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.count += self.own.count;
        std::mem::take(&mut self.own.files).into_iter().for_each(|file| all.keep(file));
    }
}

/// A pattern relative to the folder that is searched.
fn below(pattern: &str, root: &Path) -> Result<String, Failure> {
    let outside =
        || Failure(format!("`{pattern}` leads out of the folder; use `path` to name one"));
    if pattern.trim().is_empty() {
        return Err(Failure("the pattern is empty".to_owned()));
    }
    if pattern.split(['/', '\\']).any(|part| part == "..") || pattern.starts_with('~') {
        return Err(outside());
    }
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern);
    // In overrides, this would leave out what matches.
    let literal = pattern.strip_prefix('!').map(|rest| format!("\\!{rest}"));
    let pattern = literal.as_deref().unwrap_or(pattern);
    if !Path::new(pattern).is_absolute() {
        // A pattern with a separator is relative to the folder that is searched.
        let anchored = pattern.contains('/') && !pattern.starts_with('/');
        return Ok(if anchored { format!("/{pattern}") } else { pattern.to_owned() });
    }
    let inside = Path::new(pattern).strip_prefix(root).map_err(|_| outside())?;
    Ok(format!("/{}", inside.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_stays_below_the_folder() {
        let below = |pattern| below(pattern, Path::new("/w")).ok();
        assert_eq!(below("*.rs").as_deref(), Some("*.rs"));
        assert_eq!(below("src/*.rs").as_deref(), Some("/src/*.rs"));
        assert_eq!(below("./a/**").as_deref(), Some("/a/**"));
        assert_eq!(below("!a").as_deref(), Some("\\!a"));
        assert_eq!(below(" "), None);
        assert_eq!(below("../*"), None);
        assert_eq!(below("a/../../*"), None);
        #[cfg(unix)]
        {
            assert_eq!(below("/w/a/*").as_deref(), Some("/a/*"));
            assert_eq!(below("/etc/*"), None);
        }
    }
}
