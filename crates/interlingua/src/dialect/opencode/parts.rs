//! The text of a message: pieces, and snapshots that repeat them.
//!
//! What was said of a part is counted, so that a snapshot that says no more than the pieces did (it
//! may be trimmed) adds nothing.

use super::sessions::Speaker;
use crate::event::{Block, BlockDelta, BlockEnded, BlockKind, BlockStarted, Event, Sink};
use crate::json::{Json, Text};

/// How many parts are remembered.
const REMEMBERED: usize = 256;

/// The text parts that were told.
#[derive(Debug, Default)]
pub(super) struct Parts {
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    id: String,
    /// The end of its id, by which most parts are told apart at once.
    tail: [u8; 8],
    session: usize,
    message: String,
    index: u64,
    kind: BlockKind,
    /// How many bytes of its text were said, as they are escaped on the wire.
    said: usize,
    /// Its first piece was seen.
    from_start: bool,
    state: State,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    Open,
    /// It ended since a tool was called; it may go on.
    Interrupted,
    Over,
}

/// A part of some message, as a record names it.
pub(super) struct Named<'n, 'a> {
    pub(super) id: &'n Text<'a>,
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
        sink: &mut dyn Sink,
    ) {
        let found = self.find(part.id);
        let at = found.unwrap_or_else(|| self.add(&part, BlockKind::Text, false, speaker));
        let Some(known) = self.parts.get_mut(at) else { return };
        if known.state != State::Open {
            known.index = speaker.take_index();
            known.state = State::Open;
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
        sink: &mut dyn Sink,
    ) -> bool {
        let found = self.find(part.id);
        let is_new = found.is_none();
        let at = found.unwrap_or_else(|| self.add(&part, kind.clone(), true, speaker));
        let Some(known) = self.parts.get_mut(at) else { return false };
        let message = Some(part.message.borrowed());
        let index = known.index;
        if is_new && !over {
            let started = BlockStarted { message, index, kind, ..BlockStarted::default() };
            sink.event(Event::new(started).within(part.parent.clone()).at(part.time.clone()));
            if !text.is_empty() {
                self.piece(part, text, speaker, sink);
            }
            return true;
        }
        if !over || known.state != State::Open {
            return false;
        }
        known.state = State::Over;
        let (parent, time) = (part.parent, part.time);
        // What came before the first piece that was seen cannot be said any more.
        if text.body().len() > known.said && known.from_start {
            known.said = text.body().len();
            let block = Block {
                message: message.clone(),
                index,
                kind: kind.clone(),
                text,
                ..Block::default()
            };
            sink.event(Event::new(block).within(parent.clone()).at(time.clone()));
        }
        let ended = BlockEnded { message, index, kind, ..BlockEnded::default() };
        sink.event(Event::new(ended).within(parent).at(time));
        true
    }

    /// Ends what a session is saying, since it calls a tool, or its turn ends.
    pub(super) fn end(&mut self, session: usize, parent: Option<&Text<'_>>, sink: &mut dyn Sink) {
        let open = |part: &&mut Part| part.session == session && part.state == State::Open;
        for part in self.parts.iter_mut().filter(open) {
            part.state = State::Interrupted;
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
        let open = |part: &&mut Part| part.session == session && part.state == State::Open;
        self.parts.iter_mut().filter(open).for_each(|part| part.state = State::Over);
    }

    /// Whether something of a part was told.
    pub(super) fn knows(&self, id: &Text<'_>) -> bool {
        self.find(id).is_some()
    }

    fn find(&self, id: &Text<'_>) -> Option<usize> {
        let id = id.to_plain();
        let tail = tail_of(&id);
        self.parts.iter().rposition(|part| part.tail == tail && part.id == *id)
    }

    fn add(
        &mut self,
        part: &Named<'_, '_>,
        kind: BlockKind,
        from_start: bool,
        speaker: &mut Speaker,
    ) -> usize {
        if self.parts.len() == REMEMBERED {
            self.parts.drain(..REMEMBERED / 2);
        }
        let id = part.id.to_plain().into_owned();
        self.parts.push(Part {
            tail: tail_of(&id),
            id,
            session: part.session,
            message: part.message.to_plain().into_owned(),
            index: speaker.take_index(),
            kind,
            said: 0,
            from_start,
            state: State::Open,
        });
        self.parts.len() - 1
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
