//! The text of a message: pieces, and snapshots that repeat them.
//!
//! What was said of a part is counted, so that a snapshot that says no more than the pieces did (it
//! may be trimmed) adds nothing.

use std::collections::VecDeque;

use super::sessions::Speaker;
use crate::dialect::EventSink;
use crate::event::{Block, BlockDelta, BlockEnded, BlockKind, BlockStarted, Event};
use crate::json::{Json, Text};

/// How many parts are remembered.
const REMEMBERED: usize = 256;

/// The text parts that were told.
#[derive(Debug, Default)]
pub(super) struct Parts {
    parts: VecDeque<Part>,
    /// How many of them are open; none, as a rule, where parts are told whole.
    open: usize,
    /// The greatest id of all. Ids begin with a time: a part beyond it is new, and need not be
    /// looked for.
    greatest: String,
}

#[derive(Debug)]
struct Part {
    id: String,
    /// The end of its id, by which most parts are told apart at once.
    tail: [u8; 8],
    session: usize,
    /// The message that its end names; none where it is told whole.
    message: String,
    index: u64,
    kind: BlockKind,
    /// How many bytes of its text were said, as they are escaped on the wire.
    said: usize,
    /// Its first piece was seen.
    from_start: bool,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// It ended since a tool was called; it may go on.
    Interrupted,
    Over,
}

/// A part of some message, as a record names it.
pub(super) struct Named<'n, 'a> {
    pub(super) id: &'n str,
    pub(super) message: &'n Text<'a>,
    pub(super) session: usize,
    pub(super) parent: Option<Text<'static>>,
    pub(super) time: Option<Json<'a>>,
}

impl Parts {
    /// The next piece of a part. A part that nobody has announced is text.
    pub(super) fn piece(
        &mut self,
        part: Named<'_, '_>,
        text: Text<'_>,
        speaker: &mut Speaker,
        sink: &mut dyn EventSink,
    ) {
        let found = self.find(part.id);
        let at = found.unwrap_or_else(|| self.add(&part, BlockKind::Text, false, speaker));
        let Some(known) = self.parts.get_mut(at) else { return };
        if known.state != State::Open {
            known.index = speaker.take_index();
            known.message = part.message.to_plain().into_owned();
            known.state = State::Open;
            self.open += 1;
        }
        known.said += text.body().len();
        let delta = BlockDelta {
            message: Some(part.message.borrowed()),
            index: known.index,
            kind: known.kind.clone(),
            text,
            ..BlockDelta::default()
        };
        sink.event(Event::new(delta).within(part.parent).at(part.time));
    }

    /// A snapshot of a part; whether it said anything new.
    pub(super) fn snapshot(
        &mut self,
        part: Named<'_, '_>,
        kind: BlockKind,
        text: Text<'_>,
        over: bool,
        speaker: &mut Speaker,
        sink: &mut dyn EventSink,
    ) -> bool {
        match self.find(part.id) {
            None if over => {
                self.whole(part, kind, text, speaker, sink);
                true
            }
            None => {
                let at = self.add(&part, kind.clone(), true, speaker);
                let index = self.parts.get(at).map_or(0, |part| part.index);
                let message = Some(part.message.borrowed());
                let started = BlockStarted { message, index, kind, ..BlockStarted::default() };
                sink.event(Event::new(started).within(part.parent.clone()).at(part.time.clone()));
                if !text.is_empty() {
                    self.piece(part, text, speaker, sink);
                }
                true
            }
            Some(at) => over && self.ended(at, part, kind, text, sink),
        }
    }

    /// A part of which the first snapshot is the last.
    fn whole(
        &mut self,
        part: Named<'_, '_>,
        kind: BlockKind,
        text: Text<'_>,
        speaker: &mut Speaker,
        sink: &mut dyn EventSink,
    ) {
        let (room, index) = (self.room(), speaker.take_index());
        self.keep(Part {
            said: text.body().len(),
            ..Part::of(&part, room, index, kind.clone(), State::Over)
        });
        if !text.is_empty() {
            let message = Some(part.message.borrowed());
            let block = Block { message, index, kind, text, ..Block::default() };
            sink.event(Event::new(block).within(part.parent).at(part.time));
        }
    }

    /// The last snapshot of a part of which pieces were told; whether it is news that it is over.
    fn ended(
        &mut self,
        at: usize,
        part: Named<'_, '_>,
        kind: BlockKind,
        text: Text<'_>,
        sink: &mut dyn EventSink,
    ) -> bool {
        let Some(known) = self.parts.get_mut(at) else { return false };
        if known.state != State::Open {
            return false;
        }
        known.state = State::Over;
        self.open -= 1;
        let index = known.index;
        let message = Some(part.message.borrowed());
        // What came before the first piece that was seen cannot be said any more.
        if text.body().len() > known.said && known.from_start {
            known.said = text.body().len();
            let (message, kind) = (message.clone(), kind.clone());
            let block = Block { message, index, kind, text, ..Block::default() };
            sink.event(Event::new(block).within(part.parent.clone()).at(part.time.clone()));
        }
        let ended = BlockEnded { message, index, kind, ..BlockEnded::default() };
        sink.event(Event::new(ended).within(part.parent).at(part.time));
        true
    }

    /// Ends what a session is saying, since it calls a tool, or its turn ends.
    pub(super) fn end(
        &mut self,
        session: usize,
        parent: Option<&Text<'_>>,
        sink: &mut dyn EventSink,
    ) {
        for part in self.open_of(session, State::Interrupted) {
            let ended = BlockEnded {
                message: Some(Text::plain(&part.message)),
                index: part.index,
                kind: part.kind.clone(),
                ..BlockEnded::default()
            };
            sink.event(Event::new(ended).within(parent.map(Text::borrowed)));
        }
    }

    /// Forgets what a session said, since it was taken back.
    pub(super) fn withdraw(&mut self, session: usize) {
        self.open_of(session, State::Over).for_each(drop);
    }

    /// The parts of a session that were open until now, each in its new state once it was given.
    fn open_of(&mut self, session: usize, state: State) -> impl Iterator<Item = &Part> {
        let Self { parts, open, .. } = self;
        // Most often none is, and there are many parts.
        let among = if *open == 0 { 0 } else { parts.len() };
        parts
            .iter_mut()
            .take(among)
            .filter(move |part| part.session == session && part.state == State::Open)
            .map(move |part| {
                part.state = state;
                *open -= 1;
                &*part
            })
    }

    /// Whether something of a part was told.
    pub(super) fn knows(&self, id: &str) -> bool {
        self.find(id).is_some()
    }

    fn find(&self, id: &str) -> Option<usize> {
        if *id > *self.greatest {
            return None;
        }
        let tail = tail_of(id);
        self.parts.iter().rposition(|part| part.tail == tail && part.id == id)
    }

    /// Takes a part whose pieces come one by one; gives its place.
    fn add(
        &mut self,
        part: &Named<'_, '_>,
        kind: BlockKind,
        from_start: bool,
        speaker: &mut Speaker,
    ) -> usize {
        let message = part.message.to_plain().into_owned();
        let part = Part::of(part, self.room(), speaker.take_index(), kind, State::Open);
        self.keep(Part { message, from_start, ..part });
        self.open += 1;
        self.parts.len() - 1
    }

    /// Room for an id: that of the part that is forgotten for it, if there are many.
    fn room(&mut self) -> String {
        let forgotten = if self.parts.len() < REMEMBERED { None } else { self.parts.pop_front() };
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
        part: &Named<'_, '_>,
        mut room: String,
        index: u64,
        kind: BlockKind,
        state: State,
    ) -> Self {
        room.push_str(part.id);
        Self {
            tail: tail_of(part.id),
            id: room,
            session: part.session,
            message: String::new(),
            index,
            kind,
            said: 0,
            from_start: true,
            state,
        }
    }
}

/// The last bytes of an id: its beginning is a time, its end is random.
fn tail_of(id: &str) -> [u8; 8] {
    id.as_bytes().last_chunk().copied().unwrap_or_default()
}

impl Speaker {
    fn take_index(&mut self) -> u64 {
        let index = self.next;
        self.next += 1;
        index
    }
}
