//! Every block begins once, ends once, and says each thing once.
//!
//! Agents say a block in pieces, or whole, or both. What makes two of them one block is the parent
//! call, the message id and the index, never a flag. A whole block that repeats its pieces is
//! dropped; one that goes further adds only the rest.

use serde_json::Value;

use super::RepairKind;
use super::over::{Over, Said, content_of};
use super::pieces::{Pieces, Relation};
use super::recent::{Recent, RecentBlock};
use super::stream::{Emit, Stream};
use crate::event::{
    Block, BlockDelta, BlockEnded, BlockKind, BlockStarted, Data, Event, Reason, TurnEnded,
};
use crate::fingerprint::{of_optional_name, of_words};
use crate::json::{Json, Text};

#[derive(Debug)]
pub(super) struct Blocks {
    /// The blocks that are open; one as a rule, a few where sub-agents speak at the same time.
    open: Vec<OpenBlock>,
    /// The blocks that are over and may be said again.
    over: Over,
    /// What was said since a tool was answered: what may be taken back.
    recent: Recent,
    /// The number of the next block. The first is 1: a decoder that knows no numbers says 0.
    next: u64,
    /// The agent itself said something, ever: a last word may then be one that it said before.
    spoke: bool,
    /// The agent itself said something since the last of its calls was answered.
    spoke_in_step: bool,
}

impl Default for Blocks {
    fn default() -> Self {
        Self {
            open: Vec::new(),
            over: Over::default(),
            recent: Recent::default(),
            next: 1,
            spoke: false,
            spoke_in_step: false,
        }
    }
}

#[derive(Debug)]
struct OpenBlock {
    number: u64,
    kind: BlockKind,
    parent: Option<Text<'static>>,
    message: Option<Text<'static>>,
    index: u64,
    /// The number that a grammar gave it before, in our own events.
    told_number: u64,
    /// Its name is that of a block that is over, so that it is told without one.
    renamed: bool,
    said: Pieces,
}

/// What names a block.
#[derive(Clone, Copy)]
pub(super) struct Name<'n, 'a> {
    pub(super) parent: &'n Option<Text<'a>>,
    pub(super) message: &'n Option<Text<'a>>,
    pub(super) index: u64,
    number: u64,
}

impl Blocks {
    #[inline]
    pub(super) fn push(&mut self, event: &mut Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        match event.data {
            Data::BlockDelta(_) => self.piece(event, stream, emit),
            Data::BlockStarted(_) => self.start(event, stream, emit),
            Data::BlockEnded(_) => self.end(event, stream, emit),
            Data::Block(_) => self.whole(event, stream, emit),
            _ => {}
        }
    }

    /// Begins another run of the agent: none of its blocks repeats one from before.
    pub(super) fn begin_epoch(&mut self) {
        self.over = Over::default();
        self.recent.clear();
        self.spoke = false;
    }

    /// Begins a new step: what was said before a tool was answered is never taken back.
    pub(super) fn step(&mut self, of_main_agent: bool) {
        self.recent.clear();
        self.spoke_in_step &= !of_main_agent;
    }

    /// Takes back what was said of a message, or all that was said in this step.
    pub(super) fn withdraw(&mut self, mut event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::Withdrawn(withdrawn) = &mut event.data else { return };
        // Our own events name the blocks: some are told without the message that is taken back.
        let told: Vec<_> = withdrawn.blocks.iter().map(|block| block.block).collect();
        let mut taken = if told.is_empty() {
            self.recent.take(&event.parent, &withdrawn.message, withdrawn.index)
        } else {
            self.recent.take_told(&event.parent, &told)
        };
        if taken.is_empty() {
            stream.merged();
            return;
        }
        self.over.forget(|number| taken.iter().any(|block| block.number == number));
        for block in &mut taken {
            let at = self.open.iter().position(|open| open.number == block.number);
            if let Some(open) = at.map(|at| self.open.remove(at)) {
                (block.open, block.text) = (true, open.said.into_body());
            }
        }
        withdrawn.blocks = taken.iter().map(RecentBlock::told).collect();
        stream.said(&mut event, emit);
    }

    /// Emits the answer of a turn as its last text, if the agent gave it in no other way. An answer in a
    /// shape that was asked for is given to a tool, so that the text before the call is not the answer.
    pub(super) fn last_word(
        &mut self,
        ended: &mut TurnEnded<'_>,
        stream: &mut Stream,
        emit: Emit<'_>,
    ) {
        let mut said = self.spoke;
        if let Some(answer) = ended.structured.as_ref().filter(|answer| !answer.is_null()) {
            let text = ended.final_text.as_ref();
            let differs = text.is_some_and(|text| !is_text_of(text, answer));
            said = self.spoke_in_step && !differs;
            if differs || text.is_none() {
                ended.final_text = Some(Text::from(answer.get().to_owned()));
            }
        }
        if let Some(text) = ended.final_text.as_ref().filter(|text| !said && !text.is_empty()) {
            let block = Block { index: self.next, text: text.borrowed(), ..Block::default() };
            self.whole(&mut Event::new(block), stream, emit);
        }
    }

    /// Ends what is still open.
    pub(super) fn end_turn(&mut self, reason: Reason, stream: &mut Stream, emit: Emit<'_>) {
        for block in std::mem::take(&mut self.open) {
            self.remember(&block);
            stream.repaired(RepairKind::BlockNotEnded, || format!("block {}", block.number));
            let message = block.message.as_ref().filter(|_| !block.renamed).map(Text::borrowed);
            let index = if block.renamed { block.number } else { block.index };
            let (number, kind) = (block.number, block.kind);
            let ended = BlockEnded { block: number, message, index, kind, signature: None };
            let mut event = Event::new(ended).within(block.parent.as_ref().map(Text::borrowed));
            stream.added(&mut event, reason.clone(), emit);
        }
        self.recent.clear();
        self.spoke_in_step = false;
    }

    fn start(&mut self, event: &mut Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::BlockStarted(started) = &mut event.data else { return };
        let name = Name::of(&event.parent, &started.message, started.index, started.block);
        let key = name.key();
        if self.find(name).is_some() || self.over.get(key.number).is_some() {
            stream.repeated();
            return;
        }
        started.block = self.begin(name, key, &started.kind);
        stream.said(event, emit);
    }

    #[inline]
    fn piece(&mut self, event: &mut Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::BlockDelta(delta) = &mut event.data else { return };
        let name = Name::of(&event.parent, &delta.message, delta.index, delta.block);
        let at = self.find(name).unwrap_or_else(|| self.imply(name, &delta.kind, stream, emit));
        self.note_speech(&delta.kind, &delta.text, &event.parent);
        if let Some(open) = self.open.get_mut(at) {
            delta.block = open.number;
            // Only a message that has an id can be said again as a whole.
            if delta.message.is_some() {
                open.said.add(&delta.text);
            }
            if open.renamed {
                (delta.message, delta.index) = (None, open.number);
            }
        }
        stream.said(event, emit);
    }

    /// Begins a block that goes on without having begun; gives its place among the open ones.
    fn imply(
        &mut self,
        name: Name<'_, '_>,
        kind: &BlockKind,
        stream: &mut Stream,
        emit: Emit<'_>,
    ) -> usize {
        let key = name.key();
        let renamed = self.over.remove(key.number);
        if renamed {
            stream.repaired(RepairKind::PieceAfterEnd, || format!("index {}", name.index));
        }
        let block = self.begin(name, key, kind);
        if let Some(open) = self.open.last_mut() {
            open.renamed = renamed;
        }
        let (message, index) =
            if renamed { (None, block) } else { (name.message.clone(), name.index) };
        let started = BlockStarted { block, message, index, kind: kind.clone() };
        let mut started = Event::new(started).within(name.parent.clone());
        stream.added(&mut started, Reason::Implied, emit);
        self.open.len() - 1
    }

    fn end(&mut self, event: &mut Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::BlockEnded(ended) = &mut event.data else { return };
        let name = Name::of(&event.parent, &ended.message, ended.index, ended.block);
        let Some(at) = self.find(name) else {
            stream.repeated();
            return;
        };
        let mut block = self.open.remove(at);
        self.remember(&block);
        self.recent.said(block.number, std::mem::take(&mut block.said));
        ended.block = block.number;
        ended.kind = block.kind;
        if block.renamed {
            (ended.message, ended.index) = (None, block.number);
        }
        stream.said(event, emit);
    }

    fn whole(&mut self, event: &mut Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::Block(block) = &mut event.data else { return };
        self.note_speech(&block.kind, &block.text, &event.parent);
        let name = Name::of(&event.parent, &block.message, block.index, block.block);
        let mut key = name.key();
        let relation = match self.find(name).and_then(|at| self.open.get(at)) {
            Some(open) => Some(open.said.relation(&block.text)),
            None => self.over.get(key.number).map(|said| said.relation(&block.text)),
        };
        match relation {
            Some(Relation::Repeats) => self.end_pieces(event, stream, emit),
            Some(Relation::GoesOn(rest)) => {
                self.go_on(event, rest, stream, emit);
                self.end_pieces(event, stream, emit);
            }
            relation => {
                if relation.is_some() {
                    stream.repaired(RepairKind::BlockDiffers, || format!("index {}", block.index));
                    // Another block than the one that has this name needs another name.
                    block.message = None;
                    block.index = self.next;
                    key = Name::of(&event.parent, &None, block.index, block.block).key();
                } else if block.message.is_some() {
                    let content = content_of(&block.text);
                    self.over.insert(key.number, Said { number: self.next, content });
                }
                block.block = self.next;
                self.next += 1;
                let text = block.message.is_some().then_some(&block.text);
                self.recent.said_whole(key, block.index, block.block, &block.kind, text);
                stream.said(event, emit);
            }
        }
    }

    /// Says what a whole block has and its pieces had not.
    fn go_on(&mut self, event: &Event<'_>, rest: String, stream: &mut Stream, emit: Emit<'_>) {
        let Data::Block(block) = &event.data else { return };
        let delta = BlockDelta {
            block: block.block,
            message: block.message.clone(),
            index: block.index,
            kind: block.kind.clone(),
            text: Text::from(rest),
        };
        let delta = Event::new(delta).within(event.parent.clone()).at(event.time.clone());
        self.piece(&mut { delta }, stream, emit);
    }

    /// Ends the pieces of a block that has now been said as a whole.
    fn end_pieces(&mut self, event: &Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::Block(block) = &event.data else { return };
        let ended = BlockEnded {
            block: block.block,
            message: block.message.clone(),
            index: block.index,
            kind: block.kind.clone(),
            signature: block.signature.clone(),
        };
        let ended = Event::new(ended).within(event.parent.clone()).at(event.time.clone());
        self.end(&mut { ended }, stream, emit);
    }

    fn begin(&mut self, name: Name<'_, '_>, key: Key, kind: &BlockKind) -> u64 {
        let number = self.next;
        self.next += 1;
        let said = self.recent.begin(key, name.index, number, kind);
        self.open.push(OpenBlock {
            number,
            kind: kind.clone(),
            parent: name.parent.clone().map(Text::into_owned),
            message: name.message.clone().map(Text::into_owned),
            index: name.index,
            told_number: name.number,
            renamed: false,
            said,
        });
        number
    }

    /// Notes whether a block is something that the agent itself says to the user.
    #[inline]
    fn note_speech(&mut self, kind: &BlockKind, text: &Text<'_>, parent: &Option<Text<'_>>) {
        let speaks = *kind == BlockKind::Text && parent.is_none() && !text.is_empty();
        self.spoke |= speaks;
        self.spoke_in_step |= speaks;
    }

    /// The place of a block among those that are open.
    #[inline]
    fn find(&self, name: Name<'_, '_>) -> Option<usize> {
        self.open.iter().rposition(|open| {
            open.index == name.index
                && open.told_number == name.number
                && open.message == *name.message
                && open.parent == *name.parent
        })
    }

    /// Remembers a block that is over, if its message has an id: without one it is never said again.
    fn remember(&mut self, block: &OpenBlock) {
        if block.message.is_some() {
            let name = Name::of(&block.parent, &block.message, block.index, block.told_number);
            let content = block.said.fingerprint().number();
            self.over.insert(name.key().number, Said { number: block.number, content });
        }
    }
}

/// Whether a text is the JSON of a value.
fn is_text_of(text: &Text<'_>, value: &Json<'_>) -> bool {
    let text = text.to_plain();
    *text == *value.get()
        || serde_json::from_str::<Value>(&text).is_ok_and(|text| value.read() == Some(text))
}

impl<'n, 'a> Name<'n, 'a> {
    #[inline]
    fn of(
        parent: &'n Option<Text<'a>>,
        message: &'n Option<Text<'a>>,
        index: u64,
        number: u64,
    ) -> Self {
        Self { parent, message, index, number }
    }

    fn key(&self) -> Key {
        let (speaker, message) = (of_optional_name(self.parent), of_optional_name(self.message));
        let number = of_words([self.index, self.number, speaker, message]);
        Key { number, speaker, message, told_number: self.number }
    }
}

/// A block's name, as a number, and the numbers of the agent and the message that it is of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    number: u64,
    pub(super) speaker: u64,
    pub(super) message: u64,
    /// The number that a grammar gave it before, in our own events.
    pub(super) told_number: u64,
}
