//! The destinations of a session's entries: they are observed, collected for the consumer, and, for
//! an agent that has only a screen, recorded.

use std::convert::Infallible;

use interlingua::dialect::{Dialect, EncodeOptions};
use interlingua::{Batch, EntryRef, Error, Flow, Sink, Writer};

use crate::process::Command;
use crate::record::Recorder;
use crate::session::Outbox;
use crate::watch::Watch;

/// The consumers of entries.
#[derive(Debug)]
pub(super) struct Outlets {
    pub(super) watch: Watch,
    /// The entries that were not passed on yet.
    batch: Batch,
    /// The recording of an agent that has only a screen: its events, which can be translated again.
    recording: Option<Recording>,
}

#[derive(Debug)]
struct Recording {
    writer: Writer,
    bytes: Vec<u8>,
}

impl Outlets {
    pub(super) fn new(
        command: &Command,
        dialect: &'static Dialect,
        id_seed: u64,
    ) -> Result<Self, Error> {
        // An agent that has a terminal is read from its screen.
        let recording = if command.terminal.is_some() {
            let events = interlingua::dialect::named("events")?;
            let options = EncodeOptions { id_seed: Some(id_seed), ..EncodeOptions::default() };
            Some(Recording { writer: Writer::new(events, &options)?, bytes: Vec::new() })
        } else {
            None
        };
        // The user sees this folder in permission requests.
        let folder = command.folder.canonicalize().unwrap_or_else(|_| command.folder.clone());
        let watch = Watch::new(folder, dialect);
        Ok(Self { watch, batch: Batch::default(), recording })
    }

    /// Whether entries are recorded instead of the agent's output.
    pub(super) fn records_entries(&self) -> bool {
        self.recording.is_some()
    }

    /// Passes on the entries since the last call.
    pub(super) fn pass_on(&mut self, record: Option<&mut Recorder>, outbox: &mut Outbox) {
        outbox.put(self.batch.take());
        if let (Some(recording), Some(record)) = (&mut self.recording, record)
            && !recording.bytes.is_empty()
        {
            record.printed(&recording.bytes);
            recording.bytes.clear();
        }
    }

    /// Passes on the last entries, and completes the recording.
    pub(super) fn finish(mut self, record: Option<&mut Recorder>, outbox: &mut Outbox) -> Watch {
        if let (Some(Recording { writer, mut bytes }), Some(record)) =
            (self.recording.take(), record)
        {
            writer.finish(&mut bytes);
            record.printed(&bytes);
        }
        self.pass_on(None, outbox);
        self.watch
    }
}

impl Sink for Outlets {
    type Error = Infallible;

    fn entry(&mut self, entry: EntryRef<'_>) -> Result<Flow, Infallible> {
        self.watch.observe(entry);
        if let Some(recording) = &mut self.recording {
            recording.writer.write(entry, &mut recording.bytes);
        }
        self.batch.push(entry);
        Ok(Flow::Continue)
    }
}
