//! Reads the files that agents write beside their stream, a piece at a time.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::driver::SidecarFile;

/// How much is read at once: what is left is read the next time.
const MOST: u64 = 64 << 20;

/// A file that an agent writes, and how far it was read.
#[derive(Debug, Default)]
pub(super) struct Reading {
    open: Option<(SidecarFile, File)>,
}

impl Reading {
    /// What is new in the file; nothing, where there is none.
    pub(super) fn news(&mut self, place: &SidecarFile) -> Vec<u8> {
        if self.open.as_ref().is_none_or(|(open, _)| open != place) {
            let file = find(place).and_then(|path| File::open(path).ok());
            self.open = file.map(|file| (place.clone(), file));
        }
        let mut news = Vec::new();
        if let Some((_, file)) = &self.open {
            // What cannot be read is as good as not there: the stream tells the rest.
            let _ = file.take(MOST).read_to_end(&mut news);
        }
        news
    }
}

fn find(place: &SidecarFile) -> Option<PathBuf> {
    let (folder, below, ending) = match place {
        SidecarFile::File(path) => return Some(path.clone()),
        SidecarFile::Below { folder, below, ending } => (folder, below, ending),
    };
    let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries(folder).flat_map(|inner| entries(&inner.path().join(below)));
    let named = files.filter(|file| file.file_name().to_string_lossy().ends_with(ending));
    // Where there are several, the agent writes the newest.
    let newest = named.max_by_key(|file| file.metadata().and_then(|file| file.modified()).ok());
    newest.map(|file| file.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_is_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let chats = folder.path().join("project/chats");
        std::fs::create_dir_all(&chats).unwrap();
        let below = |ending: &str| SidecarFile::Below {
            folder: folder.path().to_owned(),
            below: "chats",
            ending: ending.to_owned(),
        };
        let (place, mut reading) = (below("-1.jsonl"), Reading::default());
        assert!(reading.news(&place).is_empty());
        std::fs::write(chats.join("session-2.jsonl"), "other").unwrap();
        std::fs::write(chats.join("session-1.jsonl"), "one").unwrap();
        assert_eq!(reading.news(&place), b"one");
        std::fs::write(chats.join("session-1.jsonl"), "one two").unwrap();
        assert_eq!(reading.news(&place), b" two");
        assert!(reading.news(&place).is_empty());
    }
}
