//! Keeps the bytes of a run, as they were, and when they came.
//!
//! The bytes are a file of their own, which `interlingua translate` reads. Beside it stands
//! `NAME.times.jsonl`: a line for each piece, with its time, its length, and what was sent to the agent.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use serde_json::json;

/// Where the bytes of a run are kept.
#[derive(Debug)]
pub struct Recorder {
    bytes: File,
    times: BufWriter<File>,
    start: Instant,
}

impl Recorder {
    /// Keeps them in a file.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut times = path.as_os_str().to_owned();
        times.push(".times.jsonl");
        Ok(Self {
            bytes: File::create(path)?,
            times: BufWriter::new(File::create(times)?),
            start: Instant::now(),
        })
    }

    /// The agent printed something.
    pub(super) fn printed(&mut self, bytes: &[u8]) {
        // A record that cannot be kept does not end the run.
        let _ = self.bytes.write_all(bytes);
        self.note(&json!({"ms": self.ms(), "printed": bytes.len()}));
    }

    /// Something was sent to the agent.
    pub(super) fn sent(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        self.note(&json!({"ms": self.ms(), "sent": text.trim_end()}));
    }

    fn note(&mut self, note: &serde_json::Value) {
        let _ = writeln!(self.times, "{note}").and_then(|()| self.times.flush());
    }

    fn ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
