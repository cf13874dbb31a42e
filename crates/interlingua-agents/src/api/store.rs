//! What is stored of a session: its entries, as Interlingua's own events, one per line.
//!
//! Deltas of one block that arrive together are stored as one delta: a reader gets the same text, and
//! most of a stream are deltas of a few characters. What is stored is therefore numbered on its own.
//!
//! A session is continued from what is stored of it. What the requests of a resumed session consist of
//! stands in it as well: the system prompt and the tools (`conversation`), and the records of the
//! history (`history`). Where it is stored is decided by the caller.

use std::borrow::Cow;
use std::fmt::Debug;
use std::io;
use std::path::Path;

use interlingua::dialect::{self, EncodeOptions};
use interlingua::event::{BlockDelta, Data, Event};
use interlingua::json::Text;
use interlingua::{Entry, EntryRef, Writer};

/// Stores sessions.
pub trait SessionStore: Debug + Send + Sync {
    /// Begins to store a run of a session. A session that is stored already is continued, unless
    /// another process uses it.
    fn open(&self, run: &StoredRun<'_>) -> io::Result<Box<dyn SessionLog>>;
}

/// A run of a session, which is stored.
#[derive(Debug, Clone, Copy)]
pub struct StoredRun<'a> {
    /// The id of the session.
    pub session: &'a str,
    /// The name of the agent.
    pub agent: &'a str,
    /// The model.
    pub model: &'a str,
    /// The folder in which the agent works.
    pub folder: &'a Path,
    /// The seed of generated ids.
    pub id_seed: u64,
}

/// Takes what is stored of a run.
pub trait SessionLog: Send {
    /// Takes complete records of the dialect `events`. They may be stored later, in the same order.
    fn write(&mut self, records: Vec<u8>) -> io::Result<()>;

    /// Waits until everything is stored that was taken.
    fn settle(&mut self) -> io::Result<()>;

    /// The run has ended.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Writes the entries of a run to its log.
pub(crate) struct RunRecorder {
    log: Box<dyn SessionLog>,
    writer: Writer,
    bytes: Vec<u8>,
    /// Deltas of one block that are not written yet, as one.
    held: Option<Entry>,
    /// The number of the next entry that is stored.
    next: u64,
    /// Why the log is incomplete.
    failed: Option<String>,
}

impl Debug for RunRecorder {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("RunRecorder").finish_non_exhaustive()
    }
}

impl RunRecorder {
    pub(crate) fn new(log: Box<dyn SessionLog>, id_seed: u64) -> io::Result<Self> {
        let events = dialect::named("events").map_err(io::Error::other)?;
        let options = EncodeOptions { id_seed: Some(id_seed), ..EncodeOptions::default() };
        let writer = Writer::new(events, &options).map_err(io::Error::other)?;
        let (bytes, held, failed) = (Vec::new(), None, None);
        Ok(Self { log, writer, bytes, held, next: 0, failed })
    }

    pub(crate) fn write(&mut self, entry: EntryRef<'_>) {
        if self.held.as_mut().is_some_and(|held| join(held, entry)) {
            return;
        }
        self.write_held();
        match &entry.event.data {
            Data::BlockDelta(_) => self.held = Some(entry.to_owned()),
            // What is stored can be continued, so it has no end.
            Data::SessionEnded(_) => {}
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

    /// Passes on what was written, and waits until it is stored if it `settles`. Otherwise it is
    /// stored while more arrives.
    pub(crate) fn flush(&mut self, settles: bool) {
        self.write_held();
        if !self.bytes.is_empty() && self.failed.is_none() {
            let written = self.log.write(std::mem::take(&mut self.bytes));
            let stored = if settles { written.and_then(|()| self.log.settle()) } else { written };
            self.failed = stored.err().map(|problem| problem.to_string());
        }
        self.bytes.clear();
    }

    /// Completes the log; returns why it is incomplete, if it is.
    pub(crate) fn finish(mut self) -> Option<String> {
        self.write_held();
        let Self { mut log, writer, mut bytes, failed, .. } = self;
        writer.finish(&mut bytes);
        let finish = || log.write(bytes).and_then(|()| log.finish());
        let failed = failed.or_else(|| finish().err().map(|problem| problem.to_string()));
        failed.map(|why| format!("the session could not be stored: {why}"))
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use interlingua::event::{BlockEnded, BlockStarted};
    use interlingua::{Exit, Origin, ReadOptions, Reader, Source};

    use super::*;

    /// Keeps what is written.
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl SessionLog for Kept {
        fn write(&mut self, records: Vec<u8>) -> io::Result<()> {
            self.0.lock().unwrap().extend_from_slice(&records);
            Ok(())
        }

        fn settle(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn finish(self: Box<Self>) -> io::Result<()> {
            Ok(())
        }
    }

    fn written(steps: &[&[Data<'static>]]) -> String {
        let kept = Arc::default();
        let mut file = RunRecorder::new(Box::new(Kept(Arc::clone(&kept))), 7).unwrap();
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
            file.flush(false);
        }
        assert_eq!(file.finish(), None);
        let kept = kept.lock().unwrap();
        String::from_utf8(kept.clone()).unwrap()
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
