//! Opens and reads the input: a file or standard input, with errors that state what to do.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::report;

/// Files are read in large chunks; standard input returns what is available.
const FILE_CHUNK: usize = 1 << 20;
const STDIN_CHUNK: usize = 64 << 10;

/// How much of the agent's standard error is kept.
const STDERR_KEPT: u64 = 4 << 10;

/// An open input.
pub(crate) struct Input {
    /// Its name in messages.
    pub(crate) name: String,
    /// Its size, if it is a file.
    pub(crate) size: Option<u64>,
    reader: Box<dyn Read>,
    chunk: Vec<u8>,
}

impl Input {
    /// Opens a file; standard input if there is none, or if it is `-`.
    pub(crate) fn open(file: Option<&Path>) -> Result<Self> {
        match file {
            Some(path) if path.as_os_str() != "-" => Self::of_file(path),
            _ => Ok(Self::of_stdin()),
        }
    }

    fn of_stdin() -> Self {
        if io::stdin().is_terminal() {
            report::print_line("interlingua: reading from the terminal; end the input with Ctrl-D");
        }
        Self {
            name: "<stdin>".into(),
            size: None,
            reader: Box::new(io::stdin().lock()),
            chunk: vec![0; STDIN_CHUNK],
        }
    }

    fn of_file(path: &Path) -> Result<Self> {
        let file = open(path)?;
        let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file);
        let size = metadata.map(|it| it.len());
        // A pipe or a device returns what is available, like standard input.
        let chunk = if size.is_some() { FILE_CHUNK } else { STDIN_CHUNK };
        Ok(Self {
            name: path.display().to_string(),
            size,
            reader: Box::new(file),
            chunk: vec![0; chunk],
        })
    }

    /// The next chunk, as soon as there is one; empty at the end.
    pub(crate) fn read(&mut self) -> Result<&[u8]> {
        loop {
            match self.reader.read(&mut self.chunk) {
                Ok(length) => return Ok(self.chunk.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context(format!("cannot read {}", self.name)),
            }
        }
    }
}

fn open(path: &Path) -> Result<File> {
    let name = path.display();
    if path.is_dir() {
        bail!("{name} is a directory; name a file in it, or pipe one in");
    }
    File::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            anyhow::anyhow!(
                "{name} does not exist; check the path, or leave it out to read standard input"
            )
        }
        ErrorKind::PermissionDenied => {
            anyhow::anyhow!("{name} cannot be read: permission denied; check it with ls -l {name}")
        }
        _ => anyhow::Error::new(error).context(format!("cannot open {name}")),
    })
}

/// The last lines of the agent's standard error.
pub(crate) fn stderr_tail(path: &Path) -> Result<String> {
    let mut file = open(path)?;
    let cannot_read = || format!("cannot read {}", path.display());
    let length = file.metadata().with_context(cannot_read)?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(STDERR_KEPT))).with_context(cannot_read)?;
    let mut tail = Vec::new();
    file.take(STDERR_KEPT).read_to_end(&mut tail).with_context(cannot_read)?;
    let cut = length > STDERR_KEPT;
    let start = if cut { tail.iter().position(|byte| is_first_byte(*byte)) } else { None };
    Ok(String::from_utf8_lossy(tail.get(start.unwrap_or(0)..).unwrap_or_default()).into_owned())
}

/// Whether a byte begins a UTF-8 character.
fn is_first_byte(byte: u8) -> bool {
    byte & 0b1100_0000 != 0b1000_0000
}
