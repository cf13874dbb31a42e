//! The files that were read in this session, and whether they changed since.

use std::collections::HashMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use super::Failure;

/// The state of each file that was read or written.
#[derive(Debug, Default)]
pub(super) struct Seen {
    files: Mutex<HashMap<PathBuf, Stamp>>,
}

/// By what a change of a file is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
    /// The inode, and when it changed.
    identity: (u64, u64, i64, i64),
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let identity = {
            use std::os::unix::fs::MetadataExt;
            (metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
        };
        #[cfg(not(unix))]
        let identity = (0, 0, 0, 0);
        Self { length: metadata.len(), modified: metadata.modified().ok(), identity }
    }
}

impl Seen {
    /// Remembers the state of a file whose content the model knows.
    pub(super) fn record(&self, path: &Path, stamp: Stamp) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.insert(path.to_owned(), stamp);
    }

    /// Checks that the model knows the content of a file as it is now.
    pub(super) fn check(&self, path: &Path, shown: &str, now: Stamp) -> Result<(), Failure> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        match files.get(path) {
            Some(stamp) if *stamp == now => Ok(()),
            Some(_) => Err(Failure(format!(
                "{shown} has changed since it was read; read it again before changing it"
            ))),
            None => Err(Failure(format!(
                "{shown} exists and was not read yet; read it before changing it"
            ))),
        }
    }
}
