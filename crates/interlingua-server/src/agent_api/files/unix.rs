//! Opens every name of a path below the descriptor of its folder, and follows no link.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Dir, Mode, OFlags, openat};

use super::ARTIFACTS;

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A pipe without a writer does not block.
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Opens a file below a folder. Returns its size, too.
pub(super) fn open(folder: &Path, names: &[String]) -> io::Result<(File, u64)> {
    let mut at: OwnedFd = openat(CWD, folder, FOLDER, Mode::empty())?;
    let (last, folders) = names.split_last().ok_or(io::ErrorKind::NotFound)?;
    for name in folders {
        at = openat(at.as_fd(), &**name, FOLDER, Mode::empty())?;
    }
    let file = File::from(openat(at.as_fd(), &**last, FILE, Mode::empty())?);
    let metadata = file.metadata()?;
    match metadata.is_file() {
        true => Ok((file, metadata.len())),
        false => Err(io::ErrorKind::NotFound.into()),
    }
}

/// The files of a working folder, with their sizes. Names that are not UTF-8 are left out.
pub(super) fn list(folder: &Path, most: usize, deepest: usize) -> Vec<(Vec<String>, u64)> {
    let mut files = Vec::new();
    let root = openat(CWD, folder, FOLDER, Mode::empty());
    if let Ok(artifacts) = root.and_then(|root| openat(root, ARTIFACTS, FOLDER, Mode::empty())) {
        walk(&artifacts, &[ARTIFACTS.to_owned()], most, deepest, &mut files);
    }
    files
}

fn walk(
    folder: &OwnedFd,
    above: &[String],
    most: usize,
    deepest: usize,
    files: &mut Vec<(Vec<String>, u64)>,
) {
    let Ok(entries) = Dir::read_from(folder) else { return };
    for entry in entries.map_while(Result::ok) {
        let Ok(name) = entry.file_name().to_str() else { continue };
        if matches!(name, "." | "..") {
            continue;
        }
        if files.len() >= most {
            return;
        }
        let mut path = above.to_vec();
        path.push(name.to_owned());
        if let Ok(below) = openat(folder, name, FOLDER, Mode::empty()) {
            if above.len() < deepest {
                walk(&below, &path, most, deepest, files);
            }
        } else if let Ok(file) = openat(folder, name, FILE, Mode::empty()).map(File::from)
            && let Ok(metadata) = file.metadata()
            && metadata.is_file()
        {
            files.push((path, metadata.len()));
        }
    }
}
