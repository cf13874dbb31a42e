//! The lines that the bridge writes: events of the server, and responses.

use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex};

use interlingua::framing::{Body, Framing, Limits, Sse};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::watch;

/// The end of the spool. Every line is one write.
#[derive(Debug, Clone)]
pub(super) struct Output {
    file: Arc<Mutex<File>>,
    failed: watch::Sender<bool>,
}

impl Output {
    /// Returns also whether a line could not be written.
    pub(super) fn new(file: File) -> (Self, watch::Receiver<bool>) {
        let (failed, has_failed) = watch::channel(false);
        (Self { file: Arc::new(Mutex::new(file)), failed }, has_failed)
    }

    /// Writes a line; returns whether that was possible.
    pub(super) fn line(&self, text: &str) -> bool {
        // Between the tokens of JSON, a line ending is a space. It does not occur within them.
        let mut line = text.replace(['\n', '\r'], " ");
        line.push('\n');
        let written =
            self.file.lock().is_ok_and(|mut file| file.write_all(line.as_bytes()).is_ok());
        if !written {
            self.failed.send_replace(true);
        }
        written
    }

    /// Writes a record; returns whether that was possible.
    pub(super) fn record(&self, record: &impl Serialize) -> bool {
        serde_json::to_string(record).is_ok_and(|text| self.line(&text))
    }
}

/// The events of one connection.
pub(super) struct Events {
    framing: Sse,
    heartbeat: &'static str,
}

/// An event that is longer cannot be a heartbeat.
const LONGEST_HEARTBEAT: usize = 256;

impl Events {
    pub(super) fn new(heartbeat: &'static str) -> Self {
        Self { framing: Sse::new(Limits::default()), heartbeat }
    }

    /// Copies the events of a chunk; returns whether that was possible.
    pub(super) fn copy(&mut self, chunk: &[u8], output: &Output) -> bool {
        let (mut possible, heartbeat) = (true, self.heartbeat);
        self.framing.push(chunk, &mut |frame| match frame.body {
            Body::Text(text) if is_of_type(text.text, heartbeat) => {}
            Body::Text(text) => possible &= output.line(text.text),
            Body::TooLong { length, limit } => {
                let lost = TooLong { stream: "event_too_long", length, limit };
                possible &= output.record(&lost);
            }
            Body::Done => {}
        });
        possible
    }
}

/// The line for an event that was left out.
#[derive(Serialize)]
struct TooLong {
    stream: &'static str,
    length: u64,
    limit: usize,
}

fn is_of_type(text: &str, kind: &str) -> bool {
    #[derive(Deserialize)]
    struct Typed<'a> {
        #[serde(rename = "type")]
        kind: &'a str,
    }
    text.len() <= LONGEST_HEARTBEAT
        && serde_json::from_str::<Typed<'_>>(text).is_ok_and(|event| event.kind == kind)
}

/// A body as JSON; text that is no JSON becomes a string.
pub(super) fn json(body: String) -> Box<RawValue> {
    let as_json = serde_json::from_str::<Box<RawValue>>(&body);
    as_json.or_else(|_| serde_json::value::to_raw_value(&body)).unwrap_or_default()
}

/// Splits bytes into lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    part: Vec<u8>,
}

impl Lines {
    pub(super) fn each(&mut self, bytes: &[u8], mut take: impl FnMut(&str)) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.part.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                take(String::from_utf8_lossy(&self.part).trim_end_matches(['\n', '\r']));
                self.part.clear();
            }
        }
    }

    /// The last line, if it has no line ending.
    pub(super) fn rest(&mut self) -> Option<String> {
        let part = std::mem::take(&mut self.part);
        (!part.is_empty()).then(|| String::from_utf8_lossy(&part).into_owned())
    }
}
