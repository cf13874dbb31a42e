//! Splits an agent's output into lines for the drivers.

use interlingua::framing::{Body, Framing, Limits, Lines};

/// Splits output into lines, and yields those that are valid records.
#[derive(Debug)]
pub(super) struct Records {
    lines: Lines,
}

impl Default for Records {
    fn default() -> Self {
        Self { lines: Lines::new(Limits::default()) }
    }
}

impl Records {
    pub(super) fn each(&mut self, chunk: &[u8], mut take: impl FnMut(&str)) {
        self.lines.push(chunk, &mut |frame| {
            if let Body::Text(text) = frame.body {
                take(text.text);
            }
        });
    }
}

/// Splits output into lines and yields them unchanged, for a driver that passes them on.
#[derive(Debug, Default)]
pub(super) struct RawLines {
    part: Vec<u8>,
}

/// A longer line is yielded in pieces; drivers have no interest in lines of this size.
const LONGEST: usize = 16 << 20;

impl RawLines {
    pub(super) fn each(&mut self, chunk: &[u8], mut take: impl FnMut(Vec<u8>)) {
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.part.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.part.len() > LONGEST {
                take(std::mem::take(&mut self.part));
            }
        }
    }

    /// The last line, if it has no line ending.
    pub(super) fn rest(&mut self) -> Option<Vec<u8>> {
        Some(std::mem::take(&mut self.part)).filter(|part| !part.is_empty())
    }
}
