//! Keeps the bytes of a run, as they were, and when they came.
//!
//! The bytes are a file of their own, which `interlingua translate` reads. SidecarFile it stands
//! `NAME.times.jsonl`: a line for each piece, with its time, its length, and what was sent to the agent.
//! Of an agent that has only a screen the file has what was read from it, as our own events, and
//! `NAME.screen` what it drew.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::json;

/// Where the bytes of a run are kept.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    bytes: File,
    times: BufWriter<File>,
    screen: Option<File>,
    start: Instant,
}

impl Recorder {
    /// Keeps them in a file.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            bytes: File::create(path)?,
            times: BufWriter::new(File::create(beside(path, ".times.jsonl"))?),
            screen: None,
            start: Instant::now(),
        })
    }

    /// The agent printed something.
    pub(super) fn printed(&mut self, bytes: &[u8]) {
        // A record that cannot be kept does not end the run.
        let _ = self.bytes.write_all(bytes);
        self.note(&json!({"ms": self.ms(), "printed": bytes.len()}));
    }

    /// The agent drew something on its screen.
    pub(super) fn shown(&mut self, bytes: &[u8]) {
        if self.screen.is_none() {
            self.screen = File::create(beside(&self.path, ".screen")).ok();
        }
        if let Some(screen) = &mut self.screen {
            let _ = screen.write_all(bytes);
        }
        self.note(&json!({"ms": self.ms(), "shown": bytes.len()}));
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

/// The name of a file beside another.
fn beside(path: &Path, ending: &str) -> OsString {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name
}
