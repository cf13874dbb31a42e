//! Folders as descriptors: nothing that is opened below one follows a link.
//!
//! Linux has one system call for this, `openat2`. Where it does not exist, the path is opened name
//! by name, which has the same effect.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

use super::{Entry, Kind};

/// An open folder.
#[derive(Debug)]
pub(in crate::tool) struct Directory {
    descriptor: OwnedFd,
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// For reading. A pipe without a writer and a device without a medium do not block.
const FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

impl Directory {
    pub(in crate::tool) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { descriptor: rustix::fs::open(path, FOLDER, Mode::empty())? })
    }

    /// The open folder itself.
    pub(super) fn handle(&self) -> io::Result<File> {
        Ok(self.descriptor.try_clone()?.into())
    }

    /// Opens what is at a path below the folder for reading, whatever it is.
    pub(super) fn file(&self, below: &Path) -> io::Result<File> {
        Ok(File::from(open_beneath(self.descriptor.as_fd(), below, FILE)?))
    }

    /// Opens a folder below this one.
    pub(super) fn folder(&self, below: &Path) -> io::Result<Self> {
        Ok(Self { descriptor: open_beneath(self.descriptor.as_fd(), below, FOLDER)? })
    }

    /// Opens a folder below this one, after creating what is missing of its path.
    pub(in crate::tool) fn create_folders(&self, below: &Path) -> io::Result<Self> {
        let mut at = self.folder(Path::new(""))?;
        for part in below.components() {
            let name = Path::new(part.as_os_str());
            match rustix::fs::mkdirat(&at.descriptor, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(problem) => return Err(problem.into()),
            }
            at = at.folder(name)?;
        }
        Ok(at)
    }

    /// Creates a file with a new name.
    pub(in crate::tool) fn create(&self, name: &Path, mode: u32) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        // The type of a mode differs between systems; the bits do not.
        let mode = Mode::from_bits_truncate(mode as rustix::fs::RawMode);
        Ok(File::from(rustix::fs::openat(&self.descriptor, name, flags, mode)?))
    }

    /// Opens a file of the folder for reading, without following a link.
    pub(in crate::tool) fn child(&self, name: &Path) -> io::Result<File> {
        self.file(name)
    }

    /// Renames a file of the folder; replaces whatever has the new name.
    pub(in crate::tool) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.descriptor, from, &self.descriptor, to)?)
    }

    /// Removes a file of the folder.
    pub(in crate::tool) fn remove(&self, name: &Path) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.descriptor, name, AtFlags::empty())?)
    }

    /// The entries of the folder, and whether there are more than the limit.
    pub(super) fn entries(&self, limit: usize) -> io::Result<(Vec<Entry>, bool)> {
        let mut entries = Vec::new();
        for entry in Dir::read_from(&self.descriptor)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name == "." || name == ".." {
                continue;
            }
            if entries.len() == limit {
                return Ok((entries, true));
            }
            let is_folder = match entry.file_type() {
                FileType::Unknown => self.folder(Path::new(&name)).is_ok(),
                kind => kind == FileType::Directory,
            };
            entries.push(Entry { name, is_folder });
        }
        Ok((entries, false))
    }
}

impl Directory {
    /// Passes the entries of the folder to `visit`, until that returns `false`.
    pub(super) fn visit(self, visit: &mut dyn FnMut(&OsStr, Kind) -> bool) -> io::Result<()> {
        let mut folder = Dir::new(self.descriptor)?;
        while let Some(entry) = folder.read() {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    let found = rustix::fs::statat(folder.fd()?, name, AtFlags::SYMLINK_NOFOLLOW);
                    found.map_or(FileType::Unknown, |it| FileType::from_raw_mode(it.st_mode))
                }
                kind => kind,
            };
            let kind = match kind {
                FileType::Directory => Kind::Folder,
                FileType::RegularFile => Kind::File,
                _ => Kind::Other,
            };
            if !visit(OsStr::from_bytes(name.to_bytes()), kind) {
                break;
            }
        }
        Ok(())
    }
}

/// Opens a path below a folder, without following any link.
#[cfg(target_os = "linux")]
fn open_beneath(folder: BorrowedFd<'_>, below: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    use rustix::fs::ResolveFlags;
    use rustix::io::Errno;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let path = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    match rustix::fs::openat2(folder, path, flags, Mode::empty(), resolve) {
        // Old kernels do not have the call, and some containers forbid it.
        Err(Errno::NOSYS | Errno::PERM) => open_by_name(folder, below, flags),
        opened => Ok(opened?),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_beneath(folder: BorrowedFd<'_>, below: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    open_by_name(folder, below, flags)
}

/// Opens a path below a folder name by name.
fn open_by_name(folder: BorrowedFd<'_>, below: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let mut names = below.components().peekable();
    if names.peek().is_none() {
        return Ok(rustix::fs::openat(folder, ".", flags, Mode::empty())?);
    }
    let mut at = folder.try_clone_to_owned()?;
    while let Some(name) = names.next() {
        let Component::Normal(name) = name else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let flags = if names.peek().is_some() { FOLDER } else { flags };
        at = rustix::fs::openat(&at, name, flags | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opening_name_by_name_follows_no_link_either() {
        use std::os::unix::fs::symlink;
        let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir_all(root.path().join("a/b")).unwrap();
        std::fs::write(root.path().join("a/b/c"), "x").unwrap();
        std::fs::write(other.path().join("c"), "x").unwrap();
        symlink(other.path(), root.path().join("out")).unwrap();
        symlink("b", root.path().join("a/in")).unwrap();
        let directory = Directory::open(root.path()).unwrap();
        let opens = |path: &str| {
            let (at, path) = (directory.descriptor.as_fd(), Path::new(path));
            let one = open_beneath(at, path, FILE).is_ok();
            assert_eq!(open_by_name(at, path, FILE).is_ok(), one, "{path:?}");
            one
        };
        assert!(opens("a/b/c") && opens("a") && opens(""));
        assert!(!opens("out/c") && !opens("a/in/c") && !opens("../x") && !opens("a/in"));
    }
}
