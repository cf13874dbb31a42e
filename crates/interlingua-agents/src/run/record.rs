//! Records the bytes of a run unchanged, and when they arrived.
//!
//! The bytes have a file of their own, which `interlingua translate` reads. Beside it,
//! `NAME.times.jsonl` has a line for each chunk, with its time, its length, or the text that was
//! sent to the agent. For an agent that has only a screen, the file contains the events that were
//! read from it, and `NAME.screen` contains what it drew.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::json;

/// Records the bytes of a run.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    bytes: File,
    times: BufWriter<File>,
    screen: Option<File>,
    start: Instant,
}

impl Recorder {
    /// Creates the files of a recording.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            bytes: File::create(path)?,
            times: BufWriter::new(File::create(beside(path, ".times.jsonl"))?),
            screen: None,
            start: Instant::now(),
        })
    }

    /// Records a chunk of the agent's output.
    pub(super) fn printed(&mut self, bytes: &[u8]) {
        // A failure to record does not end the run.
        let _ = self.bytes.write_all(bytes);
        self.note(&json!({"ms": self.ms(), "printed": bytes.len()}));
    }

    /// Records what the agent drew on its screen.
    pub(super) fn shown(&mut self, bytes: &[u8]) {
        if self.screen.is_none() {
            self.screen = File::create(beside(&self.path, ".screen")).ok();
        }
        if let Some(screen) = &mut self.screen {
            let _ = screen.write_all(bytes);
        }
        self.note(&json!({"ms": self.ms(), "shown": bytes.len()}));
    }

    /// Records what was sent to the agent.
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

/// The name of a file beside the recording.
fn beside(path: &Path, ending: &str) -> OsString {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name
}
