//! Places: where a path leads, whether a tool may go there, and how it is opened.
//!
//! A path is resolved first: links and `..` are followed as the system would. The result has to be
//! inside of a folder, or one of the places that the user permitted for the call. It is then opened
//! relative to a descriptor of the folder, and no link is followed on the way: whatever was swapped
//! after the check makes the call fail instead of leading elsewhere.
//!
//! A hard link cannot be distinguished from the file itself. Reading one reads the file; a change replaces
//! the name inside of the folder, and leaves the other name as it was.

#[cfg(unix)]
mod unix;
#[cfg(not(unix))]
mod windows;

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(unix)]
pub(super) use unix::Directory;
#[cfg(not(unix))]
pub(super) use windows::Directory;

use super::Failure;
use crate::Error;
use crate::permission::paths::resolve;

/// The folders that the tools may use.
#[derive(Debug)]
pub(super) struct Roots {
    /// The working folder first.
    roots: Vec<Arc<Root>>,
}

/// A folder that the tools may use.
#[derive(Debug)]
struct Root {
    /// Its path without links.
    path: PathBuf,
    directory: Directory,
    writable: bool,
}

/// A place that a tool may use.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// The absolute path without links.
    pub(super) path: PathBuf,
    root: Arc<Root>,
    /// The path below the root.
    below: PathBuf,
}

/// What an entry of a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Folder,
    File,
    /// A link, a pipe, a socket or a device.
    Other,
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) is_folder: bool,
}

impl Root {
    fn open(folder: &Path, writable: bool) -> io::Result<Arc<Self>> {
        let path = plain(folder.canonicalize()?);
        let directory = Directory::open(&path)?;
        Ok(Arc::new(Self { path, directory, writable }))
    }
}

impl Roots {
    /// Opens the folders; the last one may only be read.
    pub(super) fn new(
        folder: &Path,
        additional: &[PathBuf],
        outputs: Option<&Path>,
    ) -> Result<Self, Error> {
        let open = |(folder, writable): (&Path, bool)| {
            Root::open(folder, writable).map_err(|_| Error::NoFolder(folder.to_owned()))
        };
        let writable = std::iter::once(folder).chain(additional.iter().map(PathBuf::as_path));
        let all = writable.map(|path| (path, true)).chain(outputs.map(|path| (path, false)));
        Ok(Self { roots: all.map(open).collect::<Result<_, _>>()? })
    }

    /// The working folder, without links.
    pub(super) fn folder(&self) -> &Path {
        self.roots.first().map_or(Path::new("."), |root| &root.path)
    }

    /// All folders but the working folder.
    pub(super) fn additional(&self) -> Vec<PathBuf> {
        self.roots.iter().skip(1).map(|root| root.path.clone()).collect()
    }

    /// The folders that may be changed, with their paths; the working folder first. They are those that
    /// were opened, whatever their paths lead to now.
    pub(super) fn writable(&self) -> io::Result<Vec<(PathBuf, File)>> {
        let writable = self.roots.iter().filter(|root| root.writable);
        writable.map(|root| Ok((root.path.clone(), root.directory.handle()?))).collect()
    }

    /// Where a path leads, as of now.
    pub(super) fn resolve(&self, written: &str) -> Option<PathBuf> {
        resolve(self.folder(), written).map(plain)
    }

    fn inside(&self, path: &Path) -> Option<(&Arc<Root>, PathBuf)> {
        let below = |root: &Root| path.strip_prefix(&root.path).ok().map(Path::to_owned);
        // Of folders inside of each other, the innermost counts.
        let all = self.roots.iter().filter_map(|root| Some((root, below(root)?)));
        all.min_by_key(|(_, below)| below.as_os_str().len())
    }

    /// Finds the place of a path. It has to be one of those that were judged, or inside if none
    /// were.
    pub(super) fn find(&self, written: &str, judged: Option<&[PathBuf]>) -> Result<Place, Failure> {
        if written.starts_with('~') {
            return Err(Failure(format!("{written}: `~` is not expanded; name the whole path")));
        }
        let Some(path) = self.resolve(written) else {
            return Err(Failure(format!(
                "{written:?} cannot be opened: it is no path, or a link in it leads nowhere"
            )));
        };
        let is_judged = judged.is_some_and(|judged| judged.contains(&path));
        if judged.is_some() && !is_judged {
            return Err(Failure(format!(
                "{written} leads to {} now, which is not the place that was permitted",
                path.display()
            )));
        }
        if let Some((root, below)) = self.inside(&path) {
            return Ok(Place { root: root.clone(), path, below });
        }
        if !is_judged {
            let folder = self.folder().display();
            return Err(Failure(format!(
                "{written} leads to {}, which is outside of {folder} and was not permitted",
                path.display()
            )));
        }
        let top = path.ancestors().last().unwrap_or(Path::new("/"));
        let root = Root::open(top, true).map_err(|problem| failure(written, &problem))?;
        let below = path.strip_prefix(&root.path).unwrap_or(&path).to_owned();
        Ok(Place { root, path, below })
    }

    /// A path as it is shown: relative to the working folder if it is inside.
    pub(super) fn shown(&self, path: &Path) -> String {
        let inside = path.strip_prefix(self.folder()).ok();
        inside.filter(|path| !path.as_os_str().is_empty()).unwrap_or(path).display().to_string()
    }
}

impl Place {
    /// Opens an ordinary file for reading. Never blocks, whatever the path is.
    pub(super) fn open(&self) -> io::Result<(File, Metadata)> {
        self.open_below(Path::new(""))
    }

    /// Opens an ordinary file below the place for reading.
    pub(super) fn open_below(&self, below: &Path) -> io::Result<(File, Metadata)> {
        // An empty path would add a separator.
        let path = match below.as_os_str().is_empty() {
            true => self.below.clone(),
            false => self.below.join(below),
        };
        ordinary(self.root.directory.file(&path)?)
    }

    /// Whether the place is a folder.
    pub(super) fn is_folder(&self) -> bool {
        self.root.directory.folder(&self.below).is_ok()
    }

    /// The entries of the folder, and whether there are more than the limit.
    pub(super) fn entries(&self, limit: usize) -> io::Result<(Vec<Entry>, bool)> {
        self.root.directory.folder(&self.below)?.entries(limit)
    }

    /// Passes the entries of a folder below the place to `visit`, until that returns `false`.
    pub(super) fn visit_below(
        &self,
        below: &Path,
        visit: &mut dyn FnMut(&OsStr, Kind) -> bool,
    ) -> io::Result<()> {
        let path = match below.as_os_str().is_empty() {
            true => self.below.clone(),
            false => self.below.join(below),
        };
        self.root.directory.folder(&path)?.visit(visit)
    }

    /// Opens the folder that contains the place, after creating what is missing of it. Returns it
    /// with the last name of the path.
    pub(super) fn parent(&self) -> io::Result<(Directory, PathBuf)> {
        let name = self.below.file_name().map(PathBuf::from);
        let name = name.ok_or_else(|| io::Error::other("it is a folder, not a file"))?;
        let folder = self.below.parent().unwrap_or(Path::new(""));
        Ok((self.root.directory.create_folders(folder)?, name))
    }

    /// Whether tools may change the place.
    pub(super) fn is_writable(&self) -> bool {
        self.root.writable
    }
}

/// Opens an ordinary file of a folder for reading. The name is not followed if it is a link.
pub(super) fn open_in(folder: &Path, name: &str) -> io::Result<(File, Metadata)> {
    ordinary(Directory::open(folder)?.child(Path::new(name))?)
}

/// Refuses everything but ordinary files.
fn ordinary(file: File) -> io::Result<(File, Metadata)> {
    let metadata = file.metadata()?;
    match kind_other_than_file(&metadata) {
        None => Ok((file, metadata)),
        Some(kind) => Err(io::Error::other(format!("it is {kind}, not a file"))),
    }
}

/// What something is that is not an ordinary file.
fn kind_other_than_file(metadata: &Metadata) -> Option<&'static str> {
    if metadata.is_file() {
        return None;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let kind = metadata.file_type();
        if kind.is_fifo() {
            return Some("a named pipe");
        }
        if kind.is_socket() {
            return Some("a socket");
        }
        if kind.is_char_device() || kind.is_block_device() {
            return Some("a device");
        }
    }
    Some(if metadata.is_dir() { "a folder" } else { "neither a file nor a folder" })
}

/// An error of the system about a path, for the model.
pub(super) fn failure(shown: &str, problem: &io::Error) -> Failure {
    #[cfg(unix)]
    if problem.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
        return Failure(format!(
            "{shown}: a part of the path became a link while it was opened; it was not followed"
        ));
    }
    Failure(match problem.kind() {
        io::ErrorKind::NotFound => format!("{shown} does not exist"),
        io::ErrorKind::PermissionDenied => format!("{shown}: the system denies access to it"),
        _ => format!("{shown}: {problem}"),
    })
}

/// What is enforced for the tools that open files.
pub(super) fn enforcement() -> String {
    let how = match cfg!(unix) {
        true => "links are resolved before, and not followed when a file is opened",
        false => {
            "links are resolved before a file is opened, but one that is made in between is followed"
        }
    };
    format!(
        "File tools stay inside of the folders, unless a path outside was permitted: {how}. Hard \
         links cannot be told from files."
    )
}

/// A path without the prefix that Windows adds to resolved paths, so that both forms compare equal.
#[cfg(windows)]
fn plain(path: PathBuf) -> PathBuf {
    let text = path.to_str().and_then(|text| text.strip_prefix(r"\\?\"));
    match text.filter(|text| !text.starts_with("UNC")) {
        Some(text) => PathBuf::from(text),
        None => path,
    }
}

#[cfg(not(windows))]
fn plain(path: PathBuf) -> PathBuf {
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_folder_counts_and_outputs_are_only_read() {
        let outer = tempfile::tempdir().unwrap();
        let outputs = outer.path().join("outputs");
        std::fs::create_dir(&outputs).unwrap();
        let roots = Roots::new(outer.path(), &[], Some(&outputs)).unwrap();
        assert!(roots.find("x", None).unwrap().is_writable());
        assert!(!roots.find("outputs/x", None).unwrap().is_writable());
        assert_eq!(roots.shown(&roots.find("./a/../b", None).unwrap().path), "b");
    }

    #[test]
    fn a_place_outside_has_to_be_the_permitted_one() {
        let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let other = plain(other.path().canonicalize().unwrap());
        std::fs::write(other.join("a"), "x").unwrap();
        let roots = Roots::new(folder.path(), &[], None).unwrap();
        let written = other.join("a").display().to_string();
        assert!(roots.find(&written, None).is_err());
        assert!(roots.find(&written, Some(&[other.join("b")])).is_err());
        let permitted = roots.resolve(&written).unwrap();
        assert!(roots.find(&written, Some(&[permitted])).unwrap().open().is_ok());
        assert!(roots.find("inside", Some(&[])).is_err());
    }
}
