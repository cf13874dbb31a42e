//! Without descriptors of folders: links are recognised before a file is opened, and the resolved path has
//! to be inside of the folder. A link that is swapped in between would be followed.

use std::fs::File;
use std::io;
use std::path::Path;

use super::ARTIFACTS;

/// Opens a file below a folder. Returns its size, too.
pub(super) fn open(folder: &Path, names: &[String]) -> io::Result<(File, u64)> {
    let mut path = folder.to_owned();
    for name in names {
        path.push(name);
        if path.symlink_metadata()?.is_symlink() {
            return Err(io::ErrorKind::NotFound.into());
        }
    }
    let root = folder.canonicalize()?;
    let resolved = path.canonicalize()?;
    let file = File::open(&resolved)?;
    let metadata = file.metadata()?;
    match resolved.starts_with(root) && metadata.is_file() {
        true => Ok((file, metadata.len())),
        false => Err(io::ErrorKind::NotFound.into()),
    }
}

/// The files of a working folder, with their sizes. Names that are not Unicode are left out.
pub(super) fn list(folder: &Path, most: usize, deepest: usize) -> Vec<(Vec<String>, u64)> {
    let mut files = Vec::new();
    let artifacts = folder.join(ARTIFACTS);
    if artifacts.symlink_metadata().is_ok_and(|it| it.is_dir()) {
        walk(&artifacts, &[ARTIFACTS.to_owned()], most, deepest, &mut files);
    }
    files
}

fn walk(
    folder: &Path,
    above: &[String],
    most: usize,
    deepest: usize,
    files: &mut Vec<(Vec<String>, u64)>,
) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.map_while(Result::ok) {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let Ok(metadata) = entry.path().symlink_metadata() else { continue };
        if files.len() >= most {
            return;
        }
        let mut path = above.to_vec();
        path.push(name);
        if metadata.is_dir() && above.len() < deepest {
            walk(&entry.path(), &path, most, deepest, files);
        } else if metadata.is_file() {
            files.push((path, metadata.len()));
        }
    }
}
