//! The file of a session: its entries, as Interlingua's own events, one per line.
//!
//! A session is continued from its file, and `translate` reads it like any other stream. What the
//! requests of a resumed session consist of stands in it as well: the system prompt and the tools
//! (`conversation`), and the records of the history (`history`).

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use interlingua::dialect::{self, EncodeOptions};
use interlingua::{EntryRef, Writer};

/// The file of a session that is being written.
pub(crate) struct SessionFile {
    file: File,
    writer: Writer,
    bytes: Vec<u8>,
    /// Why it is incomplete.
    failed: Option<String>,
}

impl std::fmt::Debug for SessionFile {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("SessionFile").finish_non_exhaustive()
    }
}

/// The name of the file of a session.
pub(crate) fn path_of(folder: &Path, session: &str) -> PathBuf {
    folder.join(format!("{session}.jsonl"))
}

impl SessionFile {
    /// Creates the file of a session, or appends to it. Only its owner can read it.
    pub(crate) fn open(folder: &Path, session: &str, id_seed: u64) -> io::Result<Self> {
        create_private(folder)?;
        let mut options = File::options();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let path = path_of(folder, session);
        let mut file = options.open(&path)?;
        if matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)) {
            let problem = format!("the session {session} is in use by another process");
            return Err(io::Error::new(io::ErrorKind::WouldBlock, problem));
        }
        if !ends_with_line(&path)? {
            // The program was killed while it wrote the last line.
            file.write_all(b"\n")?;
        }
        let events = dialect::named("events").map_err(io::Error::other)?;
        let options = EncodeOptions { id_seed: Some(id_seed), ..EncodeOptions::default() };
        let writer = Writer::new(events, &options).map_err(io::Error::other)?;
        Ok(Self { file, writer, bytes: Vec::new(), failed: None })
    }

    pub(crate) fn write(&mut self, entry: EntryRef<'_>) {
        self.writer.write(entry, &mut self.bytes);
    }

    /// Passes what was written on to the system.
    pub(crate) fn flush(&mut self) {
        if !self.bytes.is_empty() {
            if let Err(problem) = self.file.write_all(&self.bytes) {
                self.failed.get_or_insert(format!("the file of the session: {problem}"));
            }
            self.bytes.clear();
        }
    }

    /// Completes the file; returns why it is incomplete, if it is.
    pub(crate) fn finish(mut self) -> Option<String> {
        let mut bytes = Vec::new();
        std::mem::swap(&mut bytes, &mut self.bytes);
        self.writer.finish(&mut bytes);
        let written = self.file.write_all(&bytes);
        let failed = written.err().map(|problem| format!("the file of the session: {problem}"));
        self.failed.or(failed)
    }
}

/// Whether a file is empty, or ends with a complete line.
fn ends_with_line(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// Creates a folder that only its owner can enter.
fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
