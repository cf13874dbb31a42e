//! Which process holds a session, and which one is the server of a file.
//!
//! Several processes may use one file: a server, and runs that store their sessions in it. A process
//! notes its name with every session whose ownership it takes. The name is that of a file which the
//! process has locked, so the system reveals whether it still exists, however it ended.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{Error, SessionId};

/// How old a file without a process has to be before it is removed. A younger one may belong to a
/// process that is about to lock it.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// The size of what is written in order to find out whether there is space: that of a row of the log.
const PROBE: usize = 32 << 10;

/// The name under which this process holds sessions.
pub(super) struct Holder {
    folder: PathBuf,
    name: String,
    /// Locked as long as the process uses the store.
    lock: File,
}

impl Holder {
    /// A new name, beside a store.
    pub(super) fn new(path: &Path) -> Result<Self, Error> {
        let name = SessionId::random()?.to_string();
        let folder = folder(path);
        let file = folder.join(&name);
        let locked = private(&file).and_then(|lock| {
            lock.lock()?;
            Ok(lock)
        });
        let lock = locked.map_err(|problem| failed(&file, &problem))?;
        remove_abandoned(&folder);
        Ok(Self { folder, name, lock })
    }

    /// Checks that there is space on the disk of the store. A change does not show that, because SQLite
    /// may write it to a part of its files that it has used before.
    pub(super) fn check_space(&self) -> Result<(), Error> {
        let written = (&self.lock).write_all(&[0; PROBE]);
        let freed = self.lock.set_len(0);
        written.and(freed).map_err(|problem| failed(&self.folder, &problem))
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether a name is that of another process which still exists.
    pub(super) fn is_other(&self, name: &str) -> bool {
        // The name becomes a path.
        name != self.name && SessionId::new(name).is_ok() && is_locked(&self.folder.join(name))
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // A file that stays is removed later.
        let _ = std::fs::remove_file(self.folder.join(&self.name));
    }
}

/// Keeps a second server away from a file.
#[derive(Debug)]
pub struct ServerLock {
    _lock: File,
}

impl ServerLock {
    /// Becomes the server of a file, unless there is one.
    pub fn acquire(path: &Path) -> Result<Self, Error> {
        create_folder(path)?;
        let file = folder(path).join("server");
        let lock = private(&file).map_err(|problem| failed(&file, &problem))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(Error::InUse(path.display().to_string())),
            Err(TryLockError::Error(problem)) => Err(failed(&file, &problem)),
        }
    }
}

/// Lets one process at a time open a store, because it may have to be created or migrated.
pub(super) fn lock_opening(path: &Path) -> Result<File, Error> {
    create_folder(path)?;
    let file = folder(path).join("opening");
    let locked = private(&file).and_then(|lock| {
        lock.lock()?;
        Ok(lock)
    });
    locked.map_err(|problem| failed(&file, &problem))
}

/// Opens a file that only its owner can read, and creates it if need be.
pub(super) fn private(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The folder of the locks of a store.
fn folder(path: &Path) -> PathBuf {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".locks");
    beside.into()
}

fn create_folder(path: &Path) -> Result<(), Error> {
    let folder = folder(path);
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(&folder).map_err(|problem| failed(&folder, &problem))
}

fn failed(path: &Path, problem: &io::Error) -> Error {
    Error::Failed(format!("{}: {problem}", path.display()))
}

/// Whether a process has locked a file. A file that cannot be examined counts as locked. The lock that is tried is a
/// shared one, so that two threads which examine the same file do not take each other for its holder.
fn is_locked(path: &Path) -> bool {
    match File::options().read(true).append(true).open(path) {
        Ok(file) => file.try_lock_shared().is_err(),
        Err(problem) => problem.kind() != io::ErrorKind::NotFound,
    }
}

/// Removes the files of processes that were killed.
fn remove_abandoned(folder: &Path) {
    let Ok(files) = std::fs::read_dir(folder) else { return };
    for file in files.filter_map(Result::ok) {
        let is_name = file.file_name().to_str().is_some_and(|name| name.len() == 32);
        let changed = file.metadata().and_then(|found| found.modified());
        let age = changed.ok().and_then(|changed| changed.elapsed().ok());
        if is_name && age.is_some_and(|age| age > ABANDONED) && !is_locked(&file.path()) {
            let _ = std::fs::remove_file(file.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One thread took the other for the holder of a session whose process had been killed.
    #[test]
    fn two_threads_that_examine_a_file_do_not_hold_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let other = private(&path).unwrap();
        other.lock_shared().unwrap();
        assert!(!is_locked(&path));
        other.unlock().unwrap();
        other.lock().unwrap();
        assert!(is_locked(&path));
    }
}
