//! Numbers the entries, adds their origin, and counts the events and frames that became none.

use super::{RepairKind, Repairs};
use crate::account::{Account, EventFate, FrameFate};
use crate::dialect::Dialect;
use crate::entry::{EntryRef, Origin, RawRef};
use crate::event::{Data, Event, Reason, Silent, SilentFate};
use crate::json::Text;

/// Receives the well-formed events, as entries.
pub(crate) trait Outlet {
    /// Takes the next entry.
    fn emit(&mut self, entry: EntryRef<'_>);
}

pub(super) type Emit<'e> = &'e mut dyn Outlet;

/// The state from which the envelope of every entry is made.
#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) sequence: u64,
    pub(super) epoch: u64,
    pub(super) origin: Origin,
    pub(super) received_at: Option<u64>,
    pub(super) repairs: Repairs,
    pub(super) account: Account,
    /// The fate of the current frame so far.
    pub(super) fate: FrameFate,
    /// The fate of the decoder's current event so far.
    pub(super) event_fate: Option<EventFate>,
    record: Option<Record>,
    /// The next events come from the caller, and no record contains them.
    pub(super) from_caller: bool,
    /// The buffer of the last record, reused for the next one.
    spare: String,
}

/// The current record of the input, if raw records are kept.
#[derive(Debug)]
struct Record {
    dialect: &'static Dialect,
    text: String,
    /// An entry carries the record's text.
    emitted: bool,
    /// A decoded event of the record was emitted, not only one that was added for it.
    emitted_own: bool,
}

impl Stream {
    /// Begins a record whose text is to be kept.
    pub(super) fn begin_record(&mut self, dialect: &'static Dialect, text: &str) {
        let mut kept = std::mem::take(&mut self.spare);
        kept.clear();
        kept.push_str(text);
        self.record = Some(Record { dialect, text: kept, emitted: false, emitted_own: false });
    }

    /// Ends the current record. A record without an event of its own becomes a `Silent` entry, so
    /// that the log contains it, and so that its end is known before the next record arrives.
    pub(super) fn end_record(&mut self, emit: Emit<'_>) {
        if self.record.as_ref().is_some_and(|record| !record.emitted_own) {
            let (fate, rule) = match self.fate.ignored {
                Some(rule) if !self.fate.dropped => (SilentFate::Ignored, Some(Text::plain(rule))),
                _ => (SilentFate::Repeated, None),
            };
            self.emit(&Event::new(Silent { fate, rule }), true, emit);
        }
        if let Some(record) = self.record.take() {
            self.spare = record.text;
        }
    }

    /// Emits an event that the agent's stream contains.
    #[inline]
    pub(super) fn emit_decoded(&mut self, event: &mut Event<'_>, emit: Emit<'_>) {
        match &event.data {
            Data::Unknown(_) => self.fate.unknown = true,
            Data::Unparsed(_) => self.fate.unreadable = true,
            _ => self.fate.emitted = true,
        }
        self.event_fate = Some(EventFate::Emitted);
        self.emit(event, !self.from_caller, emit);
    }

    /// Emits an event that the agent's stream does not contain.
    pub(super) fn emit_added(&mut self, event: &mut Event<'_>, reason: Reason, emit: Emit<'_>) {
        event.synthetic = Some(reason);
        self.emit(event, false, emit);
    }

    #[inline]
    fn emit(&mut self, event: &Event<'_>, own: bool, emit: Emit<'_>) {
        let sequence = self.sequence;
        self.sequence += 1;
        let mut raw = None;
        if let Some(record) = &mut self.record {
            record.emitted_own |= own;
            if !std::mem::replace(&mut record.emitted, true) {
                raw = Some(RawRef { dialect: record.dialect, record: &record.text });
            }
        }
        self.origin.added = !own;
        let Self { epoch, ref origin, received_at, .. } = *self;
        emit.emit(EntryRef { sequence, received_at, epoch, origin, event, raw });
    }

    /// Counts the current event as a repeat of an earlier one.
    pub(super) fn count_repeated(&mut self) {
        self.event_fate.get_or_insert(EventFate::Repeated);
        self.fate.dropped = true;
    }

    /// Counts the current event as merged into another event or into the state.
    pub(super) fn count_merged(&mut self) {
        self.event_fate.get_or_insert(EventFate::Merged);
        self.fate.dropped = true;
    }

    /// Adds a repair to the report.
    pub(super) fn report_repair(&mut self, kind: RepairKind, what: impl FnOnce() -> String) {
        self.repairs.add(kind, self.origin.line, what);
    }
}
