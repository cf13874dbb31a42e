//! Recognises the dialect of a stream by its first records, which are held back meanwhile.

use std::ops::Range;

use crate::dialect::{self, Confidence, Dialect, Probe};
use crate::framing::{Body, Frame, FrameText};

/// The number of records that are held back before a stream counts as not recognised.
const RECORDS_PROBED: usize = 64;

/// The number of their bytes that are held back.
const BYTES_PROBED: usize = 1 << 20;

/// The first records of a stream.
#[derive(Debug, Default)]
pub(super) struct Recognition {
    held: Vec<HeldFrame>,
}

/// A frame that is held back until the dialect is known.
#[derive(Debug)]
pub(super) struct HeldFrame {
    line: u64,
    bytes: Range<u64>,
    body: HeldBody,
}

#[derive(Debug)]
enum HeldBody {
    Text { text: String, noise: String, event: String, replaced: bool, unterminated: bool },
    TooLong { length: u64, limit: usize },
    Done,
}

impl Recognition {
    pub(super) fn hold(&mut self, frame: &Frame<'_>) {
        self.held.push(HeldFrame::of(frame));
    }

    /// Whether the limit is reached, so the dialect will not be recognised by the held frames. They
    /// are released, and a later record may still be recognised. So a stream of noise costs neither
    /// memory nor a second pass.
    pub(super) fn is_full(&self) -> bool {
        self.held.len() >= RECORDS_PROBED
            || self.held.iter().map(HeldFrame::len).sum::<usize>() > BYTES_PROBED
    }

    /// Removes the held frames.
    pub(super) fn drain(&mut self, mut take: impl FnMut(&HeldFrame)) {
        self.held.drain(..).for_each(|frame| take(&frame));
    }

    /// The dialect that the first records indicate: the first that is certain, or at the end the
    /// most likely one.
    pub(super) fn recognise(&self, last: bool) -> Option<&'static Dialect> {
        let newest = self.held.last().and_then(HeldFrame::probe);
        let readable = || dialect::ALL.iter().copied().filter(|dialect| dialect.decoder.is_some());
        if let Some(probe) = newest
            && let Some(sure) =
                readable().find(|dialect| (dialect.recognise)(&probe) == Confidence::Sure)
        {
            return Some(sure);
        }
        if !last && self.held.len() < RECORDS_PROBED {
            return None;
        }
        let likely = |dialect: &&'static Dialect| {
            self.held
                .iter()
                .filter_map(HeldFrame::probe)
                .filter(|probe| (dialect.recognise)(probe) > Confidence::No)
                .count()
        };
        let best =
            readable().map(|dialect| (likely(&dialect), dialect)).rev().max_by_key(|it| it.0)?;
        (best.0 > 0).then_some(best.1)
    }
}

impl HeldFrame {
    fn of(frame: &Frame<'_>) -> Self {
        let body = match &frame.body {
            Body::Text(text) => HeldBody::Text {
                text: text.text.to_owned(),
                noise: text.noise.to_owned(),
                event: text.event.to_owned(),
                replaced: text.replaced,
                unterminated: text.unterminated,
            },
            Body::TooLong { length, limit } => HeldBody::TooLong { length: *length, limit: *limit },
            Body::Done => HeldBody::Done,
        };
        Self { line: frame.line, bytes: frame.bytes.clone(), body }
    }

    fn len(&self) -> usize {
        match &self.body {
            HeldBody::Text { text, .. } => text.len(),
            HeldBody::TooLong { .. } | HeldBody::Done => 0,
        }
    }

    fn probe(&self) -> Option<Probe<'_>> {
        match &self.body {
            HeldBody::Text { text, .. } => Probe::of(text),
            HeldBody::TooLong { .. } | HeldBody::Done => None,
        }
    }

    /// Passes the original frame to `take`.
    pub(super) fn with(&self, take: impl FnOnce(&Frame<'_>)) {
        let body = match &self.body {
            HeldBody::Text { text, noise, event, replaced, unterminated } => {
                Body::Text(FrameText {
                    text,
                    noise,
                    replaced: *replaced,
                    unterminated: *unterminated,
                    // The held frame does not record whether it does.
                    several_lines: true,
                    event,
                })
            }
            HeldBody::TooLong { length, limit } => Body::TooLong { length: *length, limit: *limit },
            HeldBody::Done => Body::Done,
        };
        take(&Frame { line: self.line, bytes: self.bytes.clone(), body });
    }
}
