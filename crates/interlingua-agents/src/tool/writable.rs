//! What sandboxed commands may write to: found and opened when the session begins.
//!
//! It stays open as long as the session, so that nothing else can get its identity, and each command
//! is told the identity besides the path (`super::sandbox`). What lies inside of another folder that
//! is writable needs no rule of its own: commands could replace it, but gain nothing by it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::sandbox::{Identity, Limits, refer};

/// What commands may write to.
#[derive(Debug)]
pub(super) struct Writable {
    /// The working folder.
    folder: File,
    paths: Vec<(PathBuf, File)>,
    /// The programs that are started around a command, and are not in the sandbox, as far as commands
    /// could replace or overwrite them.
    programs: Vec<(PathBuf, Version)>,
}

/// The version of a program. It keeps the file open, so that no other one can get its identity.
#[derive(Debug)]
struct Version {
    _file: File,
    identity: Identity,
    /// The time of the last change, which no program can set, in seconds and nanoseconds.
    changed: (i64, i64),
    length: u64,
}

impl Version {
    #[cfg(unix)]
    fn of(file: File) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        let metadata = file.metadata()?;
        let changed = (metadata.ctime(), metadata.ctime_nsec());
        Ok(Self { identity: Identity::of(&file)?, changed, length: metadata.len(), _file: file })
    }

    #[cfg(not(unix))]
    fn of(_file: File) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.identity == other.identity
            && self.changed == other.changed
            && self.length == other.length
    }
}

impl Writable {
    /// `folders` are open already, and their paths have no links; the working folder is the first.
    /// Of `others`, what exists is opened. `programs` are started around each command.
    pub(super) fn new(
        folders: Vec<(PathBuf, File)>,
        others: impl IntoIterator<Item = PathBuf>,
        programs: impl IntoIterator<Item = PathBuf>,
    ) -> io::Result<Self> {
        let (_, folder) = folders.first().ok_or(io::ErrorKind::NotFound)?;
        let folder = folder.try_clone()?;
        let others = others.into_iter().filter_map(|path| {
            let path = path.canonicalize().ok()?;
            let file = refer(&path).ok()?;
            Some((path, file))
        });
        let mut paths: Vec<_> = folders.into_iter().chain(others).collect();
        // A folder comes before everything inside of it.
        paths.sort_by(|(one, _), (other, _)| one.cmp(other));
        paths.dedup_by(|(path, _), (before, _)| path.starts_with(before));
        let is_writable = |path: &PathBuf| {
            let path = path.canonicalize();
            path.is_ok_and(|path| paths.iter().any(|(folder, _)| path.starts_with(folder)))
        };
        let programs = programs.into_iter().filter(is_writable).map(|path| {
            let version = Version::of(refer(&path)?)?;
            Ok((path, version))
        });
        let programs = programs.collect::<io::Result<_>>()?;
        Ok(Self { folder, paths, programs })
    }

    /// The programs that commands could replace, because they are in a folder that is writable.
    pub(super) fn replaceable(&self) -> impl Iterator<Item = &Path> {
        self.programs.iter().map(|(path, _)| &**path)
    }

    /// The limits of the next command. An error if a command has replaced a program that would start it.
    pub(super) fn limits(&self, network: bool) -> io::Result<Limits> {
        for (path, version) in &self.programs {
            if Version::of(refer(path)?)? != *version {
                let path = path.display();
                return Err(io::Error::other(format!(
                    "{path} was replaced since the session began; start a new session"
                )));
            }
        }
        let identify = |(path, file): &(PathBuf, File)| Ok((path.clone(), Identity::of(file)?));
        Ok(Limits {
            folder: Some(Identity::of(&self.folder)?),
            writable: self.paths.iter().map(identify).collect::<io::Result<_>>()?,
            network,
        })
    }
}
