//! What had to be repaired, for the report that people read.

use std::collections::BTreeMap;
use std::fmt;

/// How many repairs are told one by one; the rest are counted.
const TOLD: usize = 200;

/// One repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// What kind it is.
    pub kind: RepairKind,
    /// The line of the input that led to it.
    pub line: u64,
    /// What exactly.
    pub what: String,
}

/// What kind of repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum RepairKind {
    /// A turn did not end; it was ended.
    TurnNotEnded,
    /// A turn began while another was open; until that one ends, both are told as one.
    TurnInTurn,
    /// A tool call was never answered; it was closed as abandoned.
    CallNotAnswered,
    /// An answer came for a call that nobody made; the call was added.
    AnswerWithoutCall,
    /// An answer came twice, or after its call was given up; it was set aside.
    AnswerTooLate,
    /// A call has the id of another one that is over; it was given one of its own.
    CallIdReused,
    /// A block was not ended; it was.
    BlockNotEnded,
    /// A piece came for a block that was over; a new block was begun.
    PieceAfterEnd,
    /// A whole block says something else than its pieces; both were kept.
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
    told: Vec<Repair>,
}

impl Repairs {
    pub(super) fn add(&mut self, kind: RepairKind, line: u64, what: impl FnOnce() -> String) {
        *self.counts.entry(kind).or_default() += 1;
        if self.told.len() < TOLD {
            self.told.push(Repair { kind, line, what: what() });
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
    pub fn told(&self) -> &[Repair] {
        &self.told
    }
}
