//! The text of messages: deltas, and snapshots that repeat them.
//!
//! The length of the emitted text of each part is recorded, so that a snapshot that contains no
//! more than the deltas (it may be trimmed) emits nothing.

use std::collections::VecDeque;

use super::sessions::SessionState;
use crate::dialect::EventSink;
use crate::event::{Block, BlockDelta, BlockEnded, BlockKind, BlockStarted, Event};
use crate::json::{Json, Text};

/// The number of parts that are remembered.
const MAX_REMEMBERED: usize = 256;

/// The text parts that were emitted.
#[derive(Debug, Default)]
pub(super) struct Parts {
    parts: VecDeque<Part>,
    /// The number of open parts. It is usually zero for complete parts.
    open: usize,
    /// The greatest id so far. Ids begin with a time, so a part with a greater id is new and need
    /// not be searched for.
    greatest: String,
}

#[derive(Debug)]
struct Part {
    id: String,
    /// The last bytes of its id, which distinguish most parts at once.
    tail: [u8; 8],
    session: usize,
    /// The message to which it belongs; empty if the part was complete from the start.
    message: String,
    index: u64,
    kind: BlockKind,
    /// The number of bytes of its text that were emitted, as escaped in JSON.
    emitted_len: usize,
    /// Its first delta was seen.
    from_start: bool,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// It was ended by a tool call, and may continue.
    Interrupted,
    Closed,
}

/// A part of a message, as a record identifies it.
pub(super) struct PartRef<'n, 'a> {
    pub(super) id: &'n str,
    pub(super) message: &'n Text<'a>,
    pub(super) session: usize,
    pub(super) parent: Option<Text<'static>>,
    pub(super) time: Option<Json<'a>>,
}

impl Parts {
    /// Emits the next delta of a part. A part without a snapshot is text.
    pub(super) fn emit_delta(
        &mut self,
        part: PartRef<'_, '_>,
        text: Text<'_>,
        session_state: &mut SessionState,
        sink: &mut dyn EventSink,
    ) {
        let found = self.find(part.id);
        let at = found.unwrap_or_else(|| self.add(&part, BlockKind::Text, false, session_state));
        let Some(known) = self.parts.get_mut(at) else { return };
        if known.state != State::Open {
            known.index = session_state.take_index();
            known.message = part.message.to_plain().into_owned();
            known.state = State::Open;
            self.open += 1;
        }
        known.emitted_len += text.body().len();
        let delta = BlockDelta {
            message: Some(part.message.borrowed()),
            index: known.index,
            kind: known.kind.clone(),
            text,
            ..BlockDelta::default()
        };
        sink.event(Event::new(delta).within(part.parent).at(part.time));
    }

    /// Reads a snapshot of a part; returns whether it contained anything new.
    pub(super) fn read_snapshot(
        &mut self,
        part: PartRef<'_, '_>,
        kind: BlockKind,
        text: Text<'_>,
        is_complete: bool,
        session_state: &mut SessionState,
        sink: &mut dyn EventSink,
    ) -> bool {
        match self.find(part.id) {
            None if is_complete => {
                self.emit_complete(part, kind, text, session_state, sink);
                true
            }
            None => {
                let at = self.add(&part, kind.clone(), true, session_state);
                let index = self.parts.get(at).map_or(0, |part| part.index);
                let message = Some(part.message.borrowed());
                let started = BlockStarted { message, index, kind, ..BlockStarted::default() };
                sink.event(Event::new(started).within(part.parent.clone()).at(part.time.clone()));
                if !text.is_empty() {
                    self.emit_delta(part, text, session_state, sink);
                }
                true
            }
            Some(at) => is_complete && self.complete(at, part, kind, text, sink),
        }
    }

    /// Emits a part whose first snapshot is its last.
    fn emit_complete(
        &mut self,
        part: PartRef<'_, '_>,
        kind: BlockKind,
        text: Text<'_>,
        session_state: &mut SessionState,
        sink: &mut dyn EventSink,
    ) {
        let (buffer, index) = (self.take_buffer(), session_state.take_index());
        self.keep(Part {
            emitted_len: text.body().len(),
            ..Part::of(&part, buffer, index, kind.clone(), State::Closed)
        });
        if !text.is_empty() {
            let message = Some(part.message.borrowed());
            let block = Block { message, index, kind, text, ..Block::default() };
            sink.event(Event::new(block).within(part.parent).at(part.time));
        }
    }

    /// Completes a streamed part with its last snapshot; returns whether it was open.
    fn complete(
        &mut self,
        at: usize,
        part: PartRef<'_, '_>,
        kind: BlockKind,
        text: Text<'_>,
        sink: &mut dyn EventSink,
    ) -> bool {
        let Some(known) = self.parts.get_mut(at) else { return false };
        if known.state != State::Open {
            return false;
        }
        known.state = State::Closed;
        self.open -= 1;
        let index = known.index;
        let message = Some(part.message.borrowed());
        // The text before the first delta that was seen can no longer be emitted.
        if text.body().len() > known.emitted_len && known.from_start {
            known.emitted_len = text.body().len();
            let (message, kind) = (message.clone(), kind.clone());
            let block = Block { message, index, kind, text, ..Block::default() };
            sink.event(Event::new(block).within(part.parent.clone()).at(part.time.clone()));
        }
        let ended = BlockEnded { message, index, kind, ..BlockEnded::default() };
        sink.event(Event::new(ended).within(part.parent).at(part.time));
        true
    }

    /// Ends the open parts of a session, since it calls a tool or its turn ends.
    pub(super) fn interrupt(
        &mut self,
        session: usize,
        parent: Option<&Text<'_>>,
        sink: &mut dyn EventSink,
    ) {
        for part in self.set_state(session, State::Interrupted) {
            let ended = BlockEnded {
                message: Some(Text::plain(&part.message)),
                index: part.index,
                kind: part.kind.clone(),
                ..BlockEnded::default()
            };
            sink.event(Event::new(ended).within(parent.map(Text::borrowed)));
        }
    }

    /// Closes the open parts of a session without an event, since their text was retracted.
    pub(super) fn close_open(&mut self, session: usize) {
        self.set_state(session, State::Closed).for_each(drop);
    }

    /// Sets the state of the open parts of a session, and returns them.
    fn set_state(&mut self, session: usize, state: State) -> impl Iterator<Item = &Part> {
        let Self { parts, open, .. } = self;
        // Usually no part is open, and there are many parts.
        let searched = if *open == 0 { 0 } else { parts.len() };
        parts
            .iter_mut()
            .take(searched)
            .filter(move |part| part.session == session && part.state == State::Open)
            .map(move |part| {
                part.state = state;
                *open -= 1;
                &*part
            })
    }

    /// Whether a part is known.
    pub(super) fn contains(&self, id: &str) -> bool {
        self.find(id).is_some()
    }

    fn find(&self, id: &str) -> Option<usize> {
        if *id > *self.greatest {
            return None;
        }
        let tail = tail_of(id);
        self.parts.iter().rposition(|part| part.tail == tail && part.id == id)
    }

    /// Adds a streamed part; returns its position.
    fn add(
        &mut self,
        part: &PartRef<'_, '_>,
        kind: BlockKind,
        from_start: bool,
        session_state: &mut SessionState,
    ) -> usize {
        let message = part.message.to_plain().into_owned();
        let part =
            Part::of(part, self.take_buffer(), session_state.take_index(), kind, State::Open);
        self.keep(Part { message, from_start, ..part });
        self.open += 1;
        self.parts.len() - 1
    }

    /// A buffer for an id: that of the oldest part, which is forgotten if there are many.
    fn take_buffer(&mut self) -> String {
        let forgotten =
            if self.parts.len() < MAX_REMEMBERED { None } else { self.parts.pop_front() };
        let Some(mut part) = forgotten else { return String::new() };
        self.open -= usize::from(part.state == State::Open);
        part.id.clear();
        part.id
    }

    fn keep(&mut self, part: Part) {
        if *part.id > *self.greatest {
            self.greatest.clear();
            self.greatest.push_str(&part.id);
        }
        self.parts.push_back(part);
    }
}

impl Part {
    fn of(
        part: &PartRef<'_, '_>,
        mut buffer: String,
        index: u64,
        kind: BlockKind,
        state: State,
    ) -> Self {
        buffer.push_str(part.id);
        Self {
            tail: tail_of(part.id),
            id: buffer,
            session: part.session,
            message: String::new(),
            index,
            kind,
            emitted_len: 0,
            from_start: true,
            state,
        }
    }
}

/// The last bytes of an id: it begins with a time and ends with random characters.
fn tail_of(id: &str) -> [u8; 8] {
    id.as_bytes().last_chunk().copied().unwrap_or_default()
}

impl SessionState {
    fn take_index(&mut self) -> u64 {
        let index = self.next_index;
        self.next_index += 1;
        index
    }
}
