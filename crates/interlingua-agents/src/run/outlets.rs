//! The destinations of a run's entries: they are observed, written for the consumer, and, for an
//! agent that has only a screen, recorded.

use std::convert::Infallible;

use interlingua::{EntryRef, Error, Flow, Sink, Writer};

use super::Options;
use super::record::Recorder;
use crate::process::Command;
use crate::watch::Watch;

/// The consumers of entries.
#[derive(Debug)]
pub(super) struct Outlets {
    pub(super) watch: Watch,
    writer: Writer,
    /// The written bytes that were not taken yet.
    bytes: Vec<u8>,
    /// The recording of an agent that has only a screen: its events, which can be translated again.
    recording: Option<Recording>,
}

#[derive(Debug)]
struct Recording {
    writer: Writer,
    bytes: Vec<u8>,
}

impl Outlets {
    pub(super) fn new(options: &Options, command: &Command) -> Result<Self, Error> {
        // An agent that has a terminal is read from its screen.
        let recording = if command.terminal.is_some() {
            let events = interlingua::dialect::named("events")?;
            let writer = Writer::new(events, &options.translate.encode)?;
            Some(Recording { writer, bytes: Vec::new() })
        } else {
            None
        };
        let writer = Writer::new(options.to, &options.translate.encode)?;
        let watch = Watch::new(command.folder.clone());
        Ok(Self { watch, writer, bytes: Vec::new(), recording })
    }

    /// Whether entries are recorded instead of the agent's output.
    pub(super) fn records_entries(&self) -> bool {
        self.recording.is_some()
    }

    /// Passes on what was written since the last call.
    pub(super) fn take(&mut self, record: Option<&mut Recorder>, put: impl FnOnce(&[u8])) {
        put(&self.bytes);
        self.bytes.clear();
        if let (Some(recording), Some(record)) = (&mut self.recording, record)
            && !recording.bytes.is_empty()
        {
            record.printed(&recording.bytes);
            recording.bytes.clear();
        }
    }

    /// Writes what the writers held back.
    pub(super) fn finish(self, record: Option<&mut Recorder>, put: impl FnOnce(&[u8])) -> Watch {
        let Self { watch, writer, mut bytes, recording } = self;
        writer.finish(&mut bytes);
        put(&bytes);
        if let (Some(Recording { writer, mut bytes }), Some(record)) = (recording, record) {
            writer.finish(&mut bytes);
            record.printed(&bytes);
        }
        watch
    }
}

impl Sink for Outlets {
    type Error = Infallible;

    fn begin(&mut self, id_seed: u64) -> Result<Flow, Infallible> {
        self.writer.set_id_seed(id_seed);
        Ok(Flow::Continue)
    }

    fn entry(&mut self, entry: EntryRef<'_>) -> Result<Flow, Infallible> {
        self.watch.observe(entry.event);
        self.writer.write(entry, &mut self.bytes);
        if let Some(recording) = &mut self.recording {
            recording.writer.write(entry, &mut recording.bytes);
        }
        Ok(Flow::Continue)
    }
}
