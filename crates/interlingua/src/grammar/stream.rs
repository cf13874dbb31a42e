//! The sequence of entries: what each is numbered and where it comes from, and what became of the rest.

use super::{RepairKind, Repairs};
use crate::account::{Account, EventFate, FrameFate};
use crate::dialect::Dialect;
use crate::entry::{EntryRef, Origin, RawRef};
use crate::event::{Data, Event, Reason, Silent, SilentFate};
use crate::json::Text;

/// Where well-formed events go, as entries.
pub(crate) trait Outlet {
    /// Takes the next entry.
    fn emit(&mut self, entry: EntryRef<'_>);
}

pub(super) type Emit<'e> = &'e mut dyn Outlet;

/// The state that every entry takes its envelope from.
#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) sequence: u64,
    pub(super) epoch: u64,
    pub(super) origin: Origin,
    pub(super) received_at: Option<u64>,
    pub(super) repairs: Repairs,
    pub(super) account: Account,
    /// What became of the current frame so far.
    pub(super) fate: FrameFate,
    /// What became of the current event of the decoder so far.
    pub(super) event_fate: Option<EventFate>,
    record: Option<Record>,
    /// The events to come are the caller's: no record contains them.
    pub(super) from_caller: bool,
    /// Memory of a record that is done, for the next one.
    spare: String,
}

/// The current record of the input, where records are kept.
#[derive(Debug)]
struct Record {
    dialect: &'static Dialect,
    text: String,
    /// It stands on an entry.
    emitted: bool,
    /// An event of its own was emitted, not only one that was added for it.
    spoke: bool,
}

impl Stream {
    /// Begins a record that is to be kept.
    pub(super) fn begin_record(&mut self, dialect: &'static Dialect, text: &str) {
        let mut kept = std::mem::take(&mut self.spare);
        kept.clear();
        kept.push_str(text);
        self.record = Some(Record { dialect, text: kept, emitted: false, spoke: false });
    }

    /// Ends the current record. One that emitted nothing of its own is an entry all the same, so that
    /// the log has it, and so that nobody has to wait for the next one to know that this one is done.
    pub(super) fn end_record(&mut self, emit: Emit<'_>) {
        if self.record.as_ref().is_some_and(|record| !record.spoke) {
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
    pub(super) fn said(&mut self, event: &mut Event<'_>, emit: Emit<'_>) {
        match &event.data {
            Data::Unknown(_) => self.fate.unknown = true,
            Data::Unparsed(_) => self.fate.unreadable = true,
            _ => self.fate.emitted = true,
        }
        self.event_fate = Some(EventFate::Emitted);
        self.emit(event, !self.from_caller, emit);
    }

    /// Emits an event that the agent's stream does not contain.
    pub(super) fn added(&mut self, event: &mut Event<'_>, reason: Reason, emit: Emit<'_>) {
        event.synthetic = Some(reason);
        self.emit(event, false, emit);
    }

    #[inline]
    fn emit(&mut self, event: &Event<'_>, spoke: bool, emit: Emit<'_>) {
        let sequence = self.sequence;
        self.sequence += 1;
        let mut raw = None;
        if let Some(record) = &mut self.record {
            record.spoke |= spoke;
            if !std::mem::replace(&mut record.emitted, true) {
                raw = Some(RawRef { dialect: record.dialect, record: &record.text });
            }
        }
        self.origin.added = !spoke;
        let Self { epoch, ref origin, received_at, .. } = *self;
        emit.emit(EntryRef { sequence, received_at, epoch, origin, event, raw });
    }

    /// Notes that an event was emitted before.
    pub(super) fn repeated(&mut self) {
        self.event_fate.get_or_insert(EventFate::Repeated);
        self.fate.dropped = true;
    }

    /// Notes that what an event says became part of another one, or of what is known.
    pub(super) fn merged(&mut self) {
        self.event_fate.get_or_insert(EventFate::Merged);
        self.fate.dropped = true;
    }

    pub(super) fn repaired(&mut self, kind: RepairKind, what: impl FnOnce() -> String) {
        self.repairs.add(kind, self.origin.line, what);
    }
}
