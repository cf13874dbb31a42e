//! Ensures that every block starts once, ends once, and that no text is emitted twice.
//!
//! Agents stream a block as deltas, or emit it whole, or both. A block is identified by its parent
//! call, message id and index, never by a flag. A whole block that repeats its deltas is dropped;
//! one that extends them adds only the rest.

use serde_json::Value;

use super::RepairKind;
use super::closed_blocks::{ClosedBlock, ClosedBlocks, content_of};
use super::pieces::{Pieces, Relation};
use super::retractable::{Retractable, RetractableBlock};
use super::stream::{Emit, Stream};
use crate::event::{
    Block, BlockDelta, BlockEnded, BlockKind, BlockStarted, Data, Event, Reason, TurnEnded,
};
use crate::fingerprint::{of_optional_name, of_words};
use crate::json::{Json, Text};

#[derive(Debug)]
pub(super) struct Blocks {
    /// The open blocks: usually one, several where sub-agents stream at the same time.
    open: Vec<OpenBlock>,
    /// The closed blocks, which the agent may repeat.
    closed: ClosedBlocks,
    /// The blocks since the last tool result, which can be retracted.
    retractable: Retractable,
    /// The number of the next block. The first is 1; decoders without numbers use 0.
    next: u64,
    /// The main agent has emitted text in this epoch, so the final text may repeat it.
    has_text: bool,
    /// The main agent has emitted text since the last of its calls was answered.
    has_text_in_step: bool,
}

impl Default for Blocks {
    fn default() -> Self {
        Self {
            open: Vec::new(),
            closed: ClosedBlocks::default(),
            retractable: Retractable::default(),
            next: 1,
            has_text: false,
            has_text_in_step: false,
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
    /// Its number in the input, where the input is Interlingua's own events.
    source_number: u64,
    /// Its name is that of a closed block, so it is emitted without a message id.
    renamed: bool,
    text: Pieces,
}

/// What identifies a block.
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
            Data::BlockDelta(_) => self.delta(event, stream, emit),
            Data::BlockStarted(_) => self.start(event, stream, emit),
            Data::BlockEnded(_) => self.end(event, stream, emit),
            Data::Block(_) => self.whole(event, stream, emit),
            _ => {}
        }
    }

    /// Begins a new epoch, whose blocks repeat none of earlier epochs.
    pub(super) fn begin_epoch(&mut self) {
        self.retractable.clear();
        self.continue_response();
    }

    /// Begins a new epoch that continues the response of the one before. If it is given up, what it
    /// showed in both can be retracted.
    pub(super) fn continue_response(&mut self) {
        self.closed = ClosedBlocks::default();
        self.has_text = false;
    }

    /// Begins a new step: text from before a tool result is never retracted.
    pub(super) fn begin_step(&mut self, of_main_agent: bool) {
        self.retractable.clear();
        self.has_text_in_step &= !of_main_agent;
    }

    /// Retracts the blocks of a message, or all blocks of this step.
    pub(super) fn withdraw(&mut self, mut event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::Withdrawn(withdrawn) = &mut event.data else { return };
        // Interlingua's own events list the blocks, since a renamed block has no message id.
        let numbers: Vec<_> = withdrawn.blocks.iter().map(|block| block.block).collect();
        let mut taken = if numbers.is_empty() {
            self.retractable.take(&event.parent, &withdrawn.message, withdrawn.index)
        } else {
            self.retractable.take_numbered(&event.parent, &numbers)
        };
        if taken.is_empty() {
            stream.count_merged();
            return;
        }
        self.closed.forget(|number| taken.iter().any(|block| block.number == number));
        for block in &mut taken {
            let at = self.open.iter().position(|open| open.number == block.number);
            if let Some(open) = at.map(|at| self.open.remove(at)) {
                (block.open, block.text) = (true, open.text.into_body());
            }
        }
        withdrawn.blocks = taken.iter().map(RetractableBlock::to_withdrawn).collect();
        stream.emit_decoded(&mut event, emit);
    }

    /// Emits the answer of a turn as its final text, if the agent gave it in no other way. A structured
    /// answer is the input of a tool, so the text before that call is not the answer.
    pub(super) fn final_text(
        &mut self,
        ended: &mut TurnEnded<'_>,
        stream: &mut Stream,
        emit: Emit<'_>,
    ) {
        let mut is_emitted = self.has_text;
        if let Some(answer) = ended.structured.as_ref().filter(|answer| !answer.is_null()) {
            let text = ended.final_text.as_ref();
            let differs = text.is_some_and(|text| !is_text_of(text, answer));
            is_emitted = self.has_text_in_step && !differs;
            if differs || text.is_none() {
                ended.final_text = Some(Text::from(answer.get().to_owned()));
            }
        }
        let text = ended.final_text.as_ref();
        if let Some(text) = text.filter(|text| !is_emitted && !text.is_empty()) {
            let block = Block { index: self.next, text: text.borrowed(), ..Block::default() };
            self.whole(&mut Event::new(block), stream, emit);
        }
    }

    /// Ends the turn, with the blocks that are still open.
    pub(super) fn end_turn(&mut self, reason: Reason, stream: &mut Stream, emit: Emit<'_>) {
        self.end_open(reason, stream, emit);
        self.retractable.clear();
        self.has_text_in_step = false;
    }

    /// Ends the blocks that are still open. They can still be retracted.
    pub(super) fn end_open(&mut self, reason: Reason, stream: &mut Stream, emit: Emit<'_>) {
        for mut block in std::mem::take(&mut self.open) {
            self.remember(&block);
            self.retractable.set_text(block.number, std::mem::take(&mut block.text));
            stream.report_repair(RepairKind::BlockNotEnded, || format!("block {}", block.number));
            let message = block.message.as_ref().filter(|_| !block.renamed).map(Text::borrowed);
            let index = if block.renamed { block.number } else { block.index };
            let (number, kind) = (block.number, block.kind);
            let ended = BlockEnded { block: number, message, index, kind, signature: None };
            let mut event = Event::new(ended).within(block.parent.as_ref().map(Text::borrowed));
            stream.emit_added(&mut event, reason.clone(), emit);
        }
    }

    fn start(&mut self, event: &mut Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::BlockStarted(started) = &mut event.data else { return };
        let name = Name::of(&event.parent, &started.message, started.index, started.block);
        let key = name.key();
        if self.find(name).is_some() || self.closed.get(key.number).is_some() {
            stream.count_repeated();
            return;
        }
        started.block = self.begin(name, key, &started.kind);
        stream.emit_decoded(event, emit);
    }

    #[inline]
    fn delta(&mut self, event: &mut Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::BlockDelta(delta) = &mut event.data else { return };
        let name = Name::of(&event.parent, &delta.message, delta.index, delta.block);
        let at = self.find(name).unwrap_or_else(|| self.imply(name, &delta.kind, stream, emit));
        self.note_text(&delta.kind, &delta.text, &event.parent);
        if let Some(open) = self.open.get_mut(at) {
            delta.block = open.number;
            // Only a message with an id can be repeated as a whole.
            if delta.message.is_some() {
                open.text.add(&delta.text);
            }
            if open.renamed {
                (delta.message, delta.index) = (None, open.number);
            }
        }
        stream.emit_decoded(event, emit);
    }

    /// Adds the start of a block that continues without one; returns its index in `open`.
    fn imply(
        &mut self,
        name: Name<'_, '_>,
        kind: &BlockKind,
        stream: &mut Stream,
        emit: Emit<'_>,
    ) -> usize {
        let key = name.key();
        let renamed = self.closed.remove(key.number);
        if renamed {
            stream.report_repair(RepairKind::PieceAfterEnd, || format!("index {}", name.index));
        }
        let block = self.begin(name, key, kind);
        if let Some(open) = self.open.last_mut() {
            open.renamed = renamed;
        }
        let (message, index) =
            if renamed { (None, block) } else { (name.message.clone(), name.index) };
        let started = BlockStarted { block, message, index, kind: kind.clone() };
        let mut started = Event::new(started).within(name.parent.clone());
        stream.emit_added(&mut started, Reason::Implied, emit);
        self.open.len() - 1
    }

    fn end(&mut self, event: &mut Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::BlockEnded(ended) = &mut event.data else { return };
        let name = Name::of(&event.parent, &ended.message, ended.index, ended.block);
        let Some(at) = self.find(name) else {
            stream.count_repeated();
            return;
        };
        let mut block = self.open.remove(at);
        self.remember(&block);
        self.retractable.set_text(block.number, std::mem::take(&mut block.text));
        ended.block = block.number;
        ended.kind = block.kind;
        if block.renamed {
            (ended.message, ended.index) = (None, block.number);
        }
        stream.emit_decoded(event, emit);
    }

    fn whole(&mut self, event: &mut Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::Block(block) = &mut event.data else { return };
        self.note_text(&block.kind, &block.text, &event.parent);
        let name = Name::of(&event.parent, &block.message, block.index, block.block);
        let mut key = name.key();
        let relation = match self.find(name).and_then(|at| self.open.get(at)) {
            Some(open) => Some(open.text.relation(&block.text)),
            None => self.closed.get(key.number).map(|closed| closed.relation(&block.text)),
        };
        match relation {
            Some(Relation::Repeats) => self.end_streamed(event, stream, emit),
            Some(Relation::Extends(rest)) => {
                self.emit_rest(event, rest, stream, emit);
                self.end_streamed(event, stream, emit);
            }
            relation => {
                if relation.is_some() {
                    stream.report_repair(RepairKind::BlockDiffers, || {
                        format!("index {}", block.index)
                    });
                    // The name belongs to a different block, so this one needs another.
                    block.message = None;
                    block.index = self.next;
                    key = Name::of(&event.parent, &None, block.index, block.block).key();
                } else if block.message.is_some() {
                    let content = content_of(&block.text);
                    self.closed.insert(key.number, ClosedBlock { number: self.next, content });
                }
                block.block = self.next;
                self.next += 1;
                let text = block.message.is_some().then_some(&block.text);
                self.retractable.insert_whole(key, block.index, block.block, &block.kind, text);
                stream.emit_decoded(event, emit);
            }
        }
    }

    /// Emits the part of a whole block that its deltas did not contain.
    fn emit_rest(&mut self, event: &Event<'_>, rest: String, stream: &mut Stream, emit: Emit<'_>) {
        let Data::Block(block) = &event.data else { return };
        let delta = BlockDelta {
            block: block.block,
            message: block.message.clone(),
            index: block.index,
            kind: block.kind.clone(),
            text: Text::from(rest),
        };
        let delta = Event::new(delta).within(event.parent.clone()).at(event.time.clone());
        self.delta(&mut { delta }, stream, emit);
    }

    /// Ends a streamed block, whose whole text is now known.
    fn end_streamed(&mut self, event: &Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
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
        let text = self.retractable.begin(key, name.index, number, kind);
        self.open.push(OpenBlock {
            number,
            kind: kind.clone(),
            parent: name.parent.clone().map(Text::into_owned),
            message: name.message.clone().map(Text::into_owned),
            index: name.index,
            source_number: name.number,
            renamed: false,
            text,
        });
        number
    }

    /// Notes whether a block is text that the main agent addresses to the user.
    #[inline]
    fn note_text(&mut self, kind: &BlockKind, text: &Text<'_>, parent: &Option<Text<'_>>) {
        let is_text = *kind == BlockKind::Text && parent.is_none() && !text.is_empty();
        self.has_text |= is_text;
        self.has_text_in_step |= is_text;
    }

    /// The index of a block in `open`.
    #[inline]
    fn find(&self, name: Name<'_, '_>) -> Option<usize> {
        self.open.iter().rposition(|open| {
            open.index == name.index
                && open.source_number == name.number
                && open.message == *name.message
                && open.parent == *name.parent
        })
    }

    /// Remembers a closed block, if its message has an id: without one it is never repeated.
    fn remember(&mut self, block: &OpenBlock) {
        if block.message.is_some() {
            let name = Name::of(&block.parent, &block.message, block.index, block.source_number);
            let content = block.text.fingerprint().number();
            self.closed.insert(name.key().number, ClosedBlock { number: block.number, content });
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
        let (parent, message) = (of_optional_name(self.parent), of_optional_name(self.message));
        let number = of_words([self.index, self.number, parent, message]);
        Key { number, parent, message, source_number: self.number }
    }
}

/// The fingerprint of a block's name, and those of its parent call and of its message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    number: u64,
    pub(super) parent: u64,
    pub(super) message: u64,
    /// Its number in the input, where the input is Interlingua's own events.
    pub(super) source_number: u64,
}
