//! Counts the fate of every frame and of every decoded event, which is law 2.

/// The fates of all frames and decoded events of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Account {
    /// The fates of the frames of the input.
    pub frames: FrameCounts,
    /// The fates of the events that decoders emitted.
    pub events: EventCounts,
}

/// Every frame has exactly one of these fates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FrameCounts {
    /// All frames.
    pub read: u64,
    /// Emitted at least one event.
    pub emitted: u64,
    /// Of a type that its dialect does not know; the record is kept as an event.
    pub unknown: u64,
    /// Not a record; its text is kept as an event, unless it was too long.
    pub unreadable: u64,
    /// Repeated what was emitted before, or completed it.
    pub repeated: u64,
    /// Left out on purpose, by a rule of its dialect.
    pub ignored: u64,
    /// None of these. If this is not zero, it is a defect of the dialect.
    pub unaccounted: u64,
}

/// Every event that a decoder emitted has exactly one of these fates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventCounts {
    /// All events that decoders emitted.
    pub decoded: u64,
    /// Emitted, possibly completed by the grammar.
    pub emitted: u64,
    /// Merged into another event or into the state of the grammar.
    pub merged: u64,
    /// Dropped as a repeat of an earlier event.
    pub repeated: u64,
    /// None of these. If this is not zero, it is a defect of the grammar.
    pub unaccounted: u64,
}

impl FrameCounts {
    /// Whether every frame has exactly one fate.
    pub fn add_up(&self) -> bool {
        let Self { read, emitted, unknown, unreadable, repeated, ignored, unaccounted } = *self;
        unaccounted == 0 && read == emitted + unknown + unreadable + repeated + ignored
    }
}

impl EventCounts {
    /// Whether every event has exactly one fate.
    pub fn add_up(&self) -> bool {
        let Self { decoded, emitted, merged, repeated, unaccounted } = *self;
        unaccounted == 0 && decoded == emitted + merged + repeated
    }
}

/// The fate of the current frame so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FrameFate {
    pub(crate) emitted: bool,
    pub(crate) unknown: bool,
    pub(crate) unreadable: bool,
    pub(crate) dropped: bool,
    pub(crate) ignored: Option<&'static str>,
}

impl FrameCounts {
    /// Counts a frame. If it emitted an event, that decides its fate.
    pub(crate) fn count(&mut self, fate: FrameFate) {
        self.read += 1;
        let count = if fate.emitted {
            &mut self.emitted
        } else if fate.unknown {
            &mut self.unknown
        } else if fate.unreadable {
            &mut self.unreadable
        } else if fate.dropped {
            &mut self.repeated
        } else if fate.ignored.is_some() {
            &mut self.ignored
        } else {
            &mut self.unaccounted
        };
        *count += 1;
    }
}

/// The fate of an event that a decoder emitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventFate {
    Emitted,
    Merged,
    Repeated,
}

impl EventCounts {
    /// Counts an event.
    pub(crate) fn count(&mut self, fate: Option<EventFate>) {
        self.decoded += 1;
        let count = match fate {
            Some(EventFate::Emitted) => &mut self.emitted,
            Some(EventFate::Merged) => &mut self.merged,
            Some(EventFate::Repeated) => &mut self.repeated,
            None => &mut self.unaccounted,
        };
        *count += 1;
    }
}
