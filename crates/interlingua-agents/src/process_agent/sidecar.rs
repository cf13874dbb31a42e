//! Reads the files that agents write in addition to their stream, one chunk at a time.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::driver::SidecarFile;
use crate::redaction::{HeldBack, Redactor};

/// The maximum size of one chunk; the rest is read the next time.
const MAX_CHUNK: u64 = 64 << 20;

/// Reads a sidecar file from where the last read ended.
#[derive(Debug, Default)]
pub(super) struct SidecarReader {
    open: Option<(SidecarFile, File)>,
    /// The end of what was read that may be the beginning of a key.
    held_back: HeldBack,
}

impl SidecarReader {
    /// The new bytes of the file, with keys redacted; empty if there is no such file.
    pub(super) fn read_new(&mut self, place: &SidecarFile, redactor: &mut Redactor) -> Vec<u8> {
        if self.open.as_ref().is_none_or(|(open, _)| open != place) {
            let file = find(place).and_then(|path| File::open(path).ok());
            self.open = file.map(|file| (place.clone(), file));
            self.held_back = HeldBack::default();
        }
        let mut news = Vec::new();
        if let Some((_, file)) = &self.open {
            // A read error is treated like a missing file: the stream still contains the rest.
            let _ = file.take(MAX_CHUNK).read_to_end(&mut news);
        }
        match redactor.redact_chunk(&news, &mut self.held_back) {
            Cow::Borrowed(complete) => news.truncate(complete.len()),
            Cow::Owned(redacted) => news = redacted,
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
    // If several files match, the agent is writing the newest one.
    let newest = named.max_by_key(|file| file.metadata().and_then(|file| file.modified()).ok());
    newest.map(|file| file.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_bytes_are_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let chats = folder.path().join("project/chats");
        std::fs::create_dir_all(&chats).unwrap();
        let below = |ending: &str| SidecarFile::Below {
            folder: folder.path().to_owned(),
            below: "chats",
            ending: ending.to_owned(),
        };
        let (place, mut reading) = (below("-1.jsonl"), SidecarReader::default());
        let mut redactor = Redactor::default();
        assert!(reading.read_new(&place, &mut redactor).is_empty());
        std::fs::write(chats.join("session-2.jsonl"), "other").unwrap();
        std::fs::write(chats.join("session-1.jsonl"), "one").unwrap();
        assert_eq!(reading.read_new(&place, &mut redactor), b"one");
        std::fs::write(chats.join("session-1.jsonl"), "one two").unwrap();
        assert_eq!(reading.read_new(&place, &mut redactor), b" two");
        assert!(reading.read_new(&place, &mut redactor).is_empty());
    }
}
