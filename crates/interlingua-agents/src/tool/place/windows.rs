//! Folders as paths, on systems without descriptors of folders.
//!
//! A link that is made after a path was resolved is followed here.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::{Entry, Kind};

/// A folder.
#[derive(Debug)]
pub(in crate::tool) struct Directory {
    path: PathBuf,
}

impl Directory {
    pub(in crate::tool) fn open(path: &Path) -> io::Result<Self> {
        match path.is_dir() {
            true => Ok(Self { path: path.to_owned() }),
            false => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// The open folder itself, which this system does not have.
    pub(super) fn handle(&self) -> io::Result<File> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Opens what is at a path below the folder for reading.
    pub(super) fn file(&self, below: &Path) -> io::Result<File> {
        let path = self.path.join(below);
        match path.is_dir() {
            true => Err(io::Error::other("it is a folder, not a file")),
            false => File::open(path),
        }
    }

    /// Opens a folder below this one.
    pub(super) fn folder(&self, below: &Path) -> io::Result<Self> {
        Self::open(&self.path.join(below))
    }

    /// Opens a folder below this one, after creating what is missing of its path.
    pub(in crate::tool) fn create_folders(&self, below: &Path) -> io::Result<Self> {
        let path = self.path.join(below);
        std::fs::create_dir_all(&path)?;
        Ok(Self { path })
    }

    /// Creates a file with a new name.
    pub(in crate::tool) fn create(&self, name: &Path, _mode: u32) -> io::Result<File> {
        File::create_new(self.path.join(name))
    }

    /// Opens a file of the folder for reading.
    pub(in crate::tool) fn child(&self, name: &Path) -> io::Result<File> {
        self.file(name)
    }

    /// Renames a file of the folder; replaces whatever has the new name.
    pub(in crate::tool) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    /// Removes a file of the folder.
    pub(in crate::tool) fn remove(&self, name: &Path) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    /// The entries of the folder, and whether there are more than the limit.
    pub(super) fn entries(&self, limit: usize) -> io::Result<(Vec<Entry>, bool)> {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            if entries.len() == limit {
                return Ok((entries, true));
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            entries.push(Entry { name, is_folder: entry.file_type()?.is_dir() });
        }
        Ok((entries, false))
    }

    /// Passes the entries of the folder to `visit`, until that returns `false`.
    pub(super) fn visit(self, visit: &mut dyn FnMut(&OsStr, Kind) -> bool) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            let kind = match entry.file_type()? {
                kind if kind.is_dir() => Kind::Folder,
                kind if kind.is_file() => Kind::File,
                _ => Kind::Other,
            };
            if !visit(&entry.file_name(), kind) {
                break;
            }
        }
        Ok(())
    }
}
