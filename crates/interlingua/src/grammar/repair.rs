//! The report of what had to be repaired.

use std::collections::BTreeMap;
use std::fmt;

/// The number of repairs that are listed one by one; the rest are only counted.
const MAX_LISTED: usize = 200;

/// One repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// The kind of repair.
    pub kind: RepairKind,
    /// The line of the input that led to it.
    pub line: u64,
    /// A description, for a person to read.
    pub what: String,
}

/// A kind of repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum RepairKind {
    /// A turn did not end; its end was added.
    TurnNotEnded,
    /// A turn began while another was open; the two were merged into one.
    TurnInTurn,
    /// A tool call was never answered; it was closed as abandoned.
    CallNotAnswered,
    /// An answer arrived for an unknown call; the call was added.
    AnswerWithoutCall,
    /// An answer arrived twice, or after its call was closed as abandoned; it was emitted as
    /// `Native`.
    AnswerTooLate,
    /// A call has the id of another call that is closed; it was renamed.
    CallIdReused,
    /// A block did not end; its end was added.
    BlockNotEnded,
    /// A delta arrived for a closed block; a new block was begun.
    PieceAfterEnd,
    /// A whole block differs from its deltas; both were kept.
    BlockDiffers,
    /// A line could not be read; it was kept as it is.
    Unreadable,
    /// A line was longer than the limit; it was skipped.
    TooLong,
}

impl RepairKind {
    /// Its name, for people and programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::TurnNotEnded => "turn-not-ended",
            Self::TurnInTurn => "turn-in-turn",
            Self::CallNotAnswered => "call-not-answered",
            Self::AnswerWithoutCall => "answer-without-call",
            Self::AnswerTooLate => "answer-too-late",
            Self::CallIdReused => "call-id-reused",
            Self::BlockNotEnded => "block-not-ended",
            Self::PieceAfterEnd => "piece-after-end",
            Self::BlockDiffers => "block-differs",
            Self::Unreadable => "unreadable",
            Self::TooLong => "too-long",
        }
    }
}

impl fmt::Display for RepairKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// All repairs of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repairs {
    counts: BTreeMap<RepairKind, u64>,
    listed: Vec<Repair>,
}

impl Repairs {
    pub(super) fn add(&mut self, kind: RepairKind, line: u64, what: impl FnOnce() -> String) {
        *self.counts.entry(kind).or_default() += 1;
        if self.listed.len() < MAX_LISTED {
            self.listed.push(Repair { kind, line, what: what() });
        }
    }

    /// Whether nothing was repaired.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// How often each kind occurred.
    pub fn counts(&self) -> impl Iterator<Item = (RepairKind, u64)> {
        self.counts.iter().map(|(kind, count)| (*kind, *count))
    }

    /// The first repairs, one by one.
    pub fn listed(&self) -> &[Repair] {
        &self.listed
    }
}
