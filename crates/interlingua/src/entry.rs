//! The entry of a log: an event, its place in the session, and the agent's own record.
//!
//! A [`Reader`](crate::Reader) emits entries and a [`Writer`](crate::Writer) takes them; both use
//! [`EntryRef`], which borrows from the current frame. [`Entry`] is a copy that outlives the frame.
//! Its JSON form is one flat object, the record of the dialect [`events`](crate::dialect::events).
//! This module knows no protocol and no storage.

mod batch;
pub(crate) mod form;

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::ops::Range;

use crate::dialect::Dialect;
use crate::event::Event;
use crate::framing::FrameText;

pub use batch::Batch;

/// An event in the log of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The entry's place in the session: from zero, without gaps.
    pub sequence: u64,
    /// When its bytes were received, in milliseconds since 1970, if the caller gave the time.
    pub received_at: Option<u64>,
    /// The epoch that it belongs to: from zero. Native ids are unique within an epoch at best.
    pub epoch: u64,
    /// The position of its record in the input.
    pub origin: Origin,
    /// The event.
    pub event: Event<'static>,
    /// The agent's own record, on the first entry of its frame, if the reader
    /// [keeps it](crate::RawRecords).
    pub raw: Option<Raw<'static>>,
}

/// An [`Entry`] that borrows from the current frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EntryRef<'e> {
    /// The entry's place in the session: from zero, without gaps.
    pub sequence: u64,
    /// When its bytes were received, in milliseconds since 1970, if the caller gave the time.
    pub received_at: Option<u64>,
    /// The epoch that it belongs to: from zero.
    pub epoch: u64,
    /// The position of its record in the input.
    pub origin: &'e Origin,
    /// The event.
    pub event: &'e Event<'e>,
    /// The agent's own record, on the first entry of its frame.
    pub raw: Option<RawRef<'e>>,
}

/// The position of an entry in the input of its epoch. For a synthetic event it is that of the
/// record that led to it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origin {
    /// The line of the input; the first one is 1.
    pub line: u64,
    /// The bytes of the input.
    pub bytes: Range<u64>,
    /// No record contains the event: the grammar added it, or the caller of the reader did.
    pub added: bool,
}

/// A record as the agent wrote it. It may contain secrets that events leave out.
#[derive(Clone, PartialEq)]
pub struct Raw<'a> {
    /// The dialect that the record is in.
    pub dialect: &'static Dialect,
    /// The record: a JSON object on one line.
    pub record: Cow<'a, str>,
}

/// A [`Raw`] record that is borrowed.
#[derive(Clone, Copy, PartialEq)]
pub struct RawRef<'e> {
    /// The dialect that the record is in.
    pub dialect: &'static Dialect,
    /// The record: a JSON object on one line.
    pub record: &'e str,
}

impl fmt::Debug for Raw<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        RawRef { dialect: self.dialect, record: &self.record }.fmt(out)
    }
}

impl fmt::Debug for RawRef<'_> {
    /// Leaves the record out, since it may hold secrets.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Raw").field("dialect", &self.dialect.name).finish_non_exhaustive()
    }
}

impl Entry {
    /// The entry, borrowed.
    pub fn borrowed(&self) -> EntryRef<'_> {
        let raw = self.raw.as_ref();
        EntryRef {
            sequence: self.sequence,
            received_at: self.received_at,
            epoch: self.epoch,
            origin: &self.origin,
            event: &self.event,
            raw: raw.map(|raw| RawRef { dialect: raw.dialect, record: &raw.record }),
        }
    }
}

impl EntryRef<'_> {
    /// A copy that outlives the frame.
    pub fn to_owned(&self) -> Entry {
        let owned = |raw: RawRef<'_>| Raw {
            dialect: raw.dialect,
            record: Cow::Owned(raw.record.to_owned()),
        };
        Entry {
            sequence: self.sequence,
            received_at: self.received_at,
            epoch: self.epoch,
            origin: self.origin.clone(),
            event: self.event.copy(),
            raw: self.raw.map(owned),
        }
    }
}

/// Whether a consumer takes more entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Continue.
    Continue,
    /// Emit nothing more. The reader accepts further input and discards it.
    Stop,
}

/// A consumer of entries.
///
/// Any closure that takes an [`EntryRef`] is a consumer that never stops and never fails.
pub trait Sink {
    /// The error of a consumer that fails.
    type Error;

    /// Receives the seed of the session's ids, once and before the first entry.
    fn begin(&mut self, _id_seed: u64) -> Result<Flow, Self::Error> {
        Ok(Flow::Continue)
    }

    /// Receives the text of a frame of the input, before the entries that it leads to. A consumer
    /// that also needs what events leave out does not have to cut the input a second time. Lone
    /// surrogates are replaced, so that any parser can read it.
    fn frame(&mut self, _frame: &FrameText<'_>) {}

    /// Takes the next entry.
    fn entry(&mut self, entry: EntryRef<'_>) -> Result<Flow, Self::Error>;
}

impl<F: FnMut(EntryRef<'_>)> Sink for F {
    type Error = Infallible;

    #[inline]
    fn entry(&mut self, entry: EntryRef<'_>) -> Result<Flow, Infallible> {
        self(entry);
        Ok(Flow::Continue)
    }
}
