//! `Write`, and how files are replaced: at once, or not at all.

use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::place::{Directory, Place, failure};
use super::seen::Stamp;
use super::{Failure, Outcome, Output, Scope, change, replace};

/// The maximum size of a file that is changed.
pub(super) const MAX_SIZE: u64 = 32 << 20;

/// The byte order mark of UTF-8.
const MARK: &str = "\u{feff}";

#[derive(Debug, Deserialize)]
pub(super) struct Input {
    file_path: String,
    content: String,
}

pub(super) fn run(scope: &Scope<'_>, input: Input) -> Outcome {
    let target = Target::find(scope, &input.file_path)?;
    let content = match &target.old {
        Some((old, _)) => in_style_of(old, input.content),
        None => input.content,
    };
    let note = target.replace(scope, content.as_bytes())?;
    let (shown, lines) = (&target.shown, content.lines().count());
    let old = target.old.as_ref().map(|(content, _)| &**content);
    let done = match old {
        Some(_) => format!("{shown} was overwritten with {lines} lines.{note}"),
        None => format!("{shown} was created with {lines} lines.{note}"),
    };
    let mut output = Output::completed(done);
    output.changes.push(change::change(target.path(), shown, old, content.as_bytes()));
    Ok(output)
}

/// Gives a new content the line ends and the byte order mark of the old one, which models neither see
/// nor write, and an end of its last line if the old one had it, which models forget. `Edit` can
/// remove it.
fn in_style_of(old: &[u8], mut new: String) -> String {
    if old.ends_with(b"\n") && !new.is_empty() && !new.ends_with('\n') {
        new.push_str(if new.contains("\r\n") { "\r\n" } else { "\n" });
    }
    if !new.contains('\r') && replace::lines_end_in_crlf(old) {
        new = replace::to_crlf(&new);
    }
    if old.starts_with(MARK.as_bytes()) && !new.starts_with(MARK) {
        new.insert_str(0, MARK);
    }
    new
}

/// A file that is about to be changed.
#[derive(Debug)]
pub(super) struct Target {
    place: Place,
    pub(super) shown: String,
    /// The content and the state of the file, if it exists.
    pub(super) old: Option<(Vec<u8>, Metadata)>,
}

impl Target {
    /// Finds a file that may be changed: it does not exist, or the model knows its content.
    pub(super) fn find(scope: &Scope<'_>, written: &str) -> Result<Self, Failure> {
        let place = scope.place(written)?;
        let shown = scope.shown(&place.path);
        if !place.is_writable() {
            return Err(Failure(format!("{shown} belongs to the session and cannot be changed")));
        }
        let (mut file, metadata) = match place.open() {
            Ok(opened) => opened,
            Err(problem) if problem.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { place, shown, old: None });
            }
            Err(problem) => return Err(failure(&shown, &problem)),
        };
        if metadata.permissions().readonly() {
            return Err(Failure(format!("{shown} is read-only")));
        }
        if metadata.len() > MAX_SIZE {
            let size = metadata.len();
            return Err(Failure(format!("{shown} has {size} bytes, too many to change it here")));
        }
        scope.shared.seen.check(&place.path, &shown, Stamp::of(&metadata))?;
        let mut content = Vec::new();
        let read = Read::by_ref(&mut file).take(MAX_SIZE).read_to_end(&mut content);
        read.map_err(|problem| failure(&shown, &problem))?;
        Ok(Self { place, shown, old: Some((content, metadata)) })
    }

    /// The absolute path.
    pub(super) fn path(&self) -> &Path {
        &self.place.path
    }

    /// Replaces the content. Returns a note about what was not kept.
    pub(super) fn replace(&self, scope: &Scope<'_>, content: &[u8]) -> Result<String, Failure> {
        let shown = &self.shown;
        let metadata = self.old.as_ref().map(|(_, metadata)| metadata);
        let written = self.write(content, metadata).map_err(|problem| failure(shown, &problem))?;
        scope.shared.seen.record(&self.place.path, Stamp::of(&written));
        Ok(match metadata.map_or(1, links) {
            0 | 1 => String::new(),
            names => format!(
                " The file had {names} names (hard links); the others still have the old content."
            ),
        })
    }

    fn write(&self, content: &[u8], old: Option<&Metadata>) -> io::Result<Metadata> {
        let (folder, name) = self.place.parent()?;
        let temporary = temporary_name(&name)?;
        // Until it has the mode of the old file, no one else may open the new one.
        let mode = if old.is_some() { 0o600 } else { 0o666 };
        let mut file = folder.create(&temporary, mode)?;
        let written = file.write_all(content).and_then(|()| {
            if let Some(old) = old {
                copy_attributes(&file, old)?;
            }
            file.sync_all()?;
            check_unchanged(&folder, &name, old)?;
            folder.rename(&temporary, &name)
        });
        if written.is_err() {
            // The first error is the one to report.
            let _ = folder.remove(&temporary);
        }
        written?;
        file.metadata()
    }
}

/// Checks once more, right before the file is replaced, that it is still the one that was read.
fn check_unchanged(folder: &Directory, name: &Path, old: Option<&Metadata>) -> io::Result<()> {
    let now = match folder.child(name) {
        Ok(file) => Some(Stamp::of(&file.metadata()?)),
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => None,
        Err(problem) => return Err(problem),
    };
    match now == old.map(Stamp::of) {
        true => Ok(()),
        false => {
            Err(io::Error::other("it was changed by another program meanwhile; read it again"))
        }
    }
}

/// A name that no other file has.
fn temporary_name(name: &Path) -> io::Result<PathBuf> {
    let number = getrandom::u64().map_err(|problem| io::Error::other(problem.to_string()))?;
    // A long name could not be extended.
    let start: String = name.to_string_lossy().chars().take(40).collect();
    Ok(PathBuf::from(format!(".{start}.{number:016x}.tmp")))
}

/// Gives a new file the mode, and if possible the owner, of the old one.
#[cfg(unix)]
fn copy_attributes(file: &File, old: &Metadata) -> io::Result<()> {
    use rustix::fs::{Gid, Uid, fchown};
    use std::os::unix::fs::MetadataExt;
    let new = file.metadata()?;
    let mut permissions = old.permissions();
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        let (owner, group) = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
        if fchown(file, Some(owner), Some(group)).is_err() {
            use std::os::unix::fs::PermissionsExt;
            // A program must not run as another user than before.
            permissions.set_mode(permissions.mode() & 0o777);
        }
    }
    file.set_permissions(permissions)
}

#[cfg(not(unix))]
fn copy_attributes(_file: &File, _old: &Metadata) -> io::Result<()> {
    Ok(())
}

/// How many names a file has.
#[cfg(unix)]
fn links(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(metadata)
}

#[cfg(not(unix))]
fn links(_metadata: &Metadata) -> u64 {
    1
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::tool::{Settings, Toolbox, parsed, read};

    /// Another program changes the file after it was found to be the one that the model has read.
    #[test]
    fn a_file_that_changes_in_the_last_moment_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let tools = Toolbox::new(Settings::new(folder.path())).unwrap();
        let cancelled = Arc::new(AtomicBool::new(false));
        let scope = Scope { shared: &tools.shared, places: None, cancelled: &cancelled };
        std::fs::write(path("old"), "old").unwrap();
        read::run(&scope, parsed(&serde_json::json!({"file_path": "old"})).unwrap()).unwrap();
        for name in ["old", "new"] {
            let target = Target::find(&scope, name).unwrap();
            std::fs::write(path(name), "of another program").unwrap();
            let Failure(why) = target.replace(&scope, b"of the model").unwrap_err();
            assert!(why.contains("changed by another program meanwhile"), "{name}: {why}");
            assert_eq!(std::fs::read_to_string(path(name)).unwrap(), "of another program");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "a temporary file stays");
    }

    #[test]
    fn a_new_content_has_the_style_of_the_old_one() {
        let styled = |old: &str, new: &str| in_style_of(old.as_bytes(), new.to_owned());
        assert_eq!(styled("a\r\nb\r\n", "x\ny"), "x\r\ny\r\n");
        assert_eq!(styled("a\r\nb\r\n", "x\r\ny"), "x\r\ny\r\n");
        assert_eq!(styled("a\nb\n", "x\ny\n"), "x\ny\n");
        assert_eq!(styled("\u{feff}a", "b"), "\u{feff}b");
        assert_eq!([styled("a\n", "b"), styled("a", "b"), styled("a", "b\n")], ["b\n", "b", "b\n"]);
        assert_eq!(styled("a\n", ""), "");
        assert_eq!(styled("\u{feff}a", "\u{feff}b"), "\u{feff}b");
    }
}
