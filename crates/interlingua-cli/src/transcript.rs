//! The entries of a session, kept on disk so that they can be saved at any time.

use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use interlingua::dialect::{self, EncodeOptions};
use interlingua::{EntryRef, Writer};

/// The events of a session so far, in an unnamed file.
#[derive(Debug)]
pub(crate) struct Transcript {
    writer: Writer,
    bytes: Vec<u8>,
    file: BufWriter<File>,
    /// The first error; after it, nothing more is kept.
    problem: Option<io::Error>,
}

impl Transcript {
    pub(crate) fn new() -> io::Result<Self> {
        let events = dialect::named("events").map_err(io::Error::other)?;
        let writer = Writer::new(events, &EncodeOptions::default()).map_err(io::Error::other)?;
        let file = BufWriter::new(tempfile::tempfile()?);
        Ok(Self { writer, bytes: Vec::new(), file, problem: None })
    }

    pub(crate) fn add(&mut self, entry: EntryRef<'_>) {
        self.writer.write(entry, &mut self.bytes);
        if self.problem.is_none() {
            self.problem = self.file.write_all(&self.bytes).err();
        }
        self.bytes.clear();
    }

    /// Copies the events to a file that does not exist yet, and that only its owner can read.
    pub(crate) fn save(&mut self, path: &Path) -> io::Result<()> {
        if let Some(problem) = &self.problem {
            return Err(io::Error::new(problem.kind(), problem.to_string()));
        }
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut to = options.open(path)?;
        self.file.flush()?;
        let from = self.file.get_mut();
        from.seek(SeekFrom::Start(0))?;
        io::copy(from, &mut to)?;
        from.seek(SeekFrom::End(0))?;
        to.flush()
    }
}
