//! The file of a session: its entries, as Interlingua's own events, one per line.
//!
//! Deltas of one block that arrive together are stored as one delta: a reader of the file gets the
//! same text, and most of a stream are deltas of a few characters. The entries of a file are therefore
//! numbered on their own.
//!
//! A session is continued from its file, and `translate` reads it like any other stream. What the
//! requests of a resumed session consist of stands in it as well: the system prompt and the tools
//! (`conversation`), and the records of the history (`history`).

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use interlingua::dialect::{self, EncodeOptions};
use interlingua::event::{BlockDelta, Data, Event};
use interlingua::json::Text;
use interlingua::{Entry, EntryRef, Writer};

/// The file of a session that is being written.
pub(crate) struct SessionFile {
    file: File,
    writer: Writer,
    bytes: Vec<u8>,
    /// Deltas of one block that are not written yet, as one.
    held: Option<Entry>,
    /// The sequence number of the next entry in the file.
    next: u64,
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
        Ok(Self { file, writer, bytes: Vec::new(), held: None, next: 0, failed: None })
    }

    pub(crate) fn write(&mut self, entry: EntryRef<'_>) {
        if self.held.as_mut().is_some_and(|held| join(held, entry)) {
            return;
        }
        self.write_held();
        match &entry.event.data {
            Data::BlockDelta(_) => self.held = Some(entry.to_owned()),
            _ => self.write_numbered(entry),
        }
    }

    fn write_held(&mut self) {
        if let Some(held) = self.held.take() {
            self.write_numbered(held.borrowed());
        }
    }

    fn write_numbered(&mut self, entry: EntryRef<'_>) {
        let sequence = self.next;
        self.next += 1;
        self.writer.write(EntryRef { sequence, ..entry }, &mut self.bytes);
    }

    /// Passes what was written on to the system.
    pub(crate) fn flush(&mut self) {
        self.write_held();
        if !self.bytes.is_empty() {
            if let Err(problem) = self.file.write_all(&self.bytes) {
                self.failed.get_or_insert(format!("the file of the session: {problem}"));
            }
            self.bytes.clear();
        }
    }

    /// Completes the file; returns why it is incomplete, if it is.
    pub(crate) fn finish(mut self) -> Option<String> {
        self.write_held();
        let mut bytes = Vec::new();
        std::mem::swap(&mut bytes, &mut self.bytes);
        self.writer.finish(&mut bytes);
        let written = self.file.write_all(&bytes);
        let failed = written.err().map(|problem| format!("the file of the session: {problem}"));
        self.failed.or(failed)
    }
}

/// Appends a delta to the held one, if it is the next of the same block. Returns whether it is.
fn join(held: &mut Entry, entry: EntryRef<'_>) -> bool {
    let Event { time: None, synthetic: None, data: Data::BlockDelta(next), .. } = entry.event
    else {
        return false;
    };
    let Event { time: None, synthetic: None, data: Data::BlockDelta(before), .. } = &mut held.event
    else {
        return false;
    };
    let BlockDelta { block, text: Text::Plain(Cow::Owned(text)), .. } = before else {
        return false;
    };
    // The number of a block is unique in its session.
    if *block != next.block || held.epoch != entry.epoch {
        return false;
    }
    text.push_str(&next.text.to_plain());
    held.origin.bytes.end = entry.origin.bytes.end;
    true
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

#[cfg(test)]
mod tests {
    use interlingua::event::{BlockEnded, BlockStarted};
    use interlingua::{Exit, Origin, ReadOptions, Reader, Source};

    use super::*;

    fn written(steps: &[&[Data<'static>]]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let mut file = SessionFile::open(folder.path(), "s", 7).unwrap();
        let mut sequence = 0;
        for step in steps {
            for data in *step {
                let event = Event::new(data.clone());
                let bytes = sequence * 10..sequence * 10 + 5;
                let origin = Origin { line: sequence, bytes, added: false };
                let (received_at, epoch, raw) = (None, 0, None);
                let event = &event;
                let origin = &origin;
                file.write(EntryRef { sequence, received_at, epoch, origin, event, raw });
                sequence += 1;
            }
            file.flush();
        }
        assert_eq!(file.finish(), None);
        std::fs::read_to_string(path_of(folder.path(), "s")).unwrap()
    }

    fn delta(block: u64, text: &'static str) -> Data<'static> {
        BlockDelta { block, text: Text::plain(text), ..BlockDelta::default() }.into()
    }

    #[test]
    fn deltas_that_arrive_together_are_stored_as_one() {
        let started = |block| Data::from(BlockStarted { block, ..BlockStarted::default() });
        let ended = |block| Data::from(BlockEnded { block, ..BlockEnded::default() });
        let file = written(&[
            &[started(1), delta(1, "a \"b"), delta(1, "c")],
            &[delta(1, "d"), started(2), delta(2, "e"), delta(1, "f"), delta(1, "g")],
            &[ended(1), ended(2)],
        ]);
        let records: Vec<serde_json::Value> =
            file.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let texts: Vec<_> = records.iter().filter_map(|record| record["text"].as_str()).collect();
        assert_eq!(texts, ["a \"bc", "d", "e", "fg"]);
        let numbers: Vec<_> = records.iter().filter_map(|it| it["sequence"].as_u64()).collect();
        assert_eq!(numbers, (0..8).collect::<Vec<_>>());
        assert_eq!(records[1]["bytes"], serde_json::json!([10, 25]));
        let mut read = Vec::new();
        let mut sink = |entry: EntryRef<'_>| {
            if let Data::BlockDelta(delta) = &entry.event.data {
                read.push(delta.text.to_string());
            }
        };
        let source = Source::named("events").unwrap();
        let mut reader = Reader::new(source, ReadOptions::default()).unwrap();
        reader.push(file.as_bytes(), None, &mut sink).unwrap();
        reader.finish(&Exit::default(), None, &mut sink).unwrap();
        assert_eq!(read, texts);
    }
}
