//! `Glob`: files by their names, newest first.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use serde::Deserialize;

use super::walk::{Filter, Progress, files};
use super::{Failure, Outcome, Output, Scope};

/// How many files are returned.
const MAX_SHOWN: usize = 100;

/// How many matching files are compared by their age.
const MAX_MATCHES: usize = 200_000;

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
    let found = Mutex::new(Vec::new());
    files(&place.path, filter, &progress, || {
        let mut own = Batch { found: &found, files: Vec::new() };
        let (root, progress) = (&place.path, &progress);
        move |below: &Path| {
            let path = root.join(below);
            let modified = path.symlink_metadata().and_then(|file| file.modified());
            if !own.push(modified.unwrap_or(SystemTime::UNIX_EPOCH), path) {
                progress.stop();
            }
        }
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    // Newest first; files of the same age in the order of their paths.
    found.sort_by(|(one_age, one), (other_age, other)| {
        other_age.cmp(one_age).then_with(|| one.cmp(other))
    });
    let mut notes = progress.notes();
    if found.len() > MAX_SHOWN {
        let left = found.len() - MAX_SHOWN;
        notes.insert(0, format!("{left} more files match: use a narrower pattern"));
    }
    let mut lines: Vec<_> =
        found.iter().take(MAX_SHOWN).map(|(_, path)| scope.shown(path)).collect();
    if lines.is_empty() {
        lines.push("No matches found".to_owned());
    }
    if !notes.is_empty() {
        lines.push(format!("\n({})", notes.join("; ")));
    }
    Ok(Output::completed(lines.join("\n")))
}

/// The files of a thread, which are added to those of the others at its end.
struct Batch<'f> {
    found: &'f Mutex<Vec<(SystemTime, PathBuf)>>,
    files: Vec<(SystemTime, PathBuf)>,
}

impl Batch<'_> {
    /// Adds a file; `false` if there are too many.
    fn push(&mut self, modified: SystemTime, path: PathBuf) -> bool {
        self.files.push((modified, path));
        self.files.len() < MAX_MATCHES
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.append(&mut self.files);
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
