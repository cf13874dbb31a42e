//! Adapts retractions, replayed history and suspended turns for encoders that do not support them.
//!
//! A retry retracts text that was already shown, and then streams most of it again. A target that
//! has no record for a retraction keeps the text that it has shown, and receives only what the
//! second attempt adds to it, so its text is never doubled. If the second attempt differs, it is
//! written as a block of its own, and the difference is counted as a loss. A turn that an agent
//! replays on resume is left out where it would look like a live one. Where a consumer runs tools of
//! its own only between two turns, a turn that waits for the client is written as two turns.
//!
//! This module knows events and the capabilities of a target, but no protocol. The grammar
//! remembers emitted text; this module keeps nothing until a block is retracted.

use crate::dialect::{Encoder, Output, Withdraws};
use crate::event::{
    Block, BlockDelta, BlockEnded, BlockKind, BlockStarted, Data, Event, Outcome, TurnEnded,
    TurnStarted, Withdrawn, WithdrawnBlock,
};
use crate::json::Text;

/// The adapter between the grammar and an encoder.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fit {
    /// The retracted blocks that the target still shows.
    shown: Vec<ShownBlock>,
    /// The blocks that repeat retracted ones; several where sub-agents stream at the same time.
    repeats: Vec<Repeat>,
    /// A replayed turn is being left out.
    replay: bool,
    /// The target has ended a turn that waits for the client.
    suspended: bool,
}

/// A retracted block that the target still shows.
#[derive(Debug, Clone)]
struct ShownBlock {
    number: u64,
    kind: BlockKind,
    parent: Option<Text<'static>>,
    text: String,
    open: bool,
}

/// A block that repeats a retracted one, which the target still shows.
#[derive(Debug, Clone)]
struct Repeat {
    number: u64,
    message: Option<Text<'static>>,
    index: u64,
    shown: ShownBlock,
    /// The length of the shown text that it has repeated so far.
    repeated: usize,
    /// The number under which the target knows it, once it extends the shown text.
    emitted_as: Option<u64>,
}

impl Fit {
    /// Passes an event to a target, in a form that the target supports.
    #[inline]
    pub(crate) fn pass<E: Encoder>(&mut self, event: &Event<'_>, target: &mut E, out: &mut Output) {
        // Usually nothing is retracted, and nothing is replayed.
        let begins = match &event.data {
            Data::Withdrawn(_) | Data::Silent(_) | Data::Suspended(_) => true,
            Data::TurnStarted(started) => started.replay,
            _ => false,
        };
        if begins || !self.is_idle() {
            self.adapt(event, target, out);
        } else {
            target.encode(event, out);
        }
    }

    #[inline]
    fn is_idle(&self) -> bool {
        self.shown.is_empty() && self.repeats.is_empty() && !self.replay && !self.suspended
    }

    fn adapt(&mut self, event: &Event<'_>, target: &mut dyn Encoder, out: &mut Output) {
        if self.is_left_out(event, target, out) || self.is_suspended(event, target, out) {
            return;
        }
        match &event.data {
            Data::Silent(_) if !target.writes_silent_records() => {}
            Data::BlockStarted(started) => self.started(event, started, target, out),
            Data::BlockDelta(delta) => self.delta(event, delta, target, out),
            Data::BlockEnded(ended) => self.ended(event, ended, target, out),
            Data::Block(block) => self.whole(event, block, target, out),
            Data::Withdrawn(withdrawn) => self.withdrawn(event, withdrawn, target, out),
            Data::ToolStarted(_)
            | Data::ToolEnded(_)
            | Data::TurnStarted(_)
            | Data::TurnEnded(_) => {
                self.close(event, target, out);
                target.encode(event, out);
            }
            _ => target.encode(event, out),
        }
    }

    /// Whether an event belongs to a replayed turn, and the target cannot mark it as such.
    fn is_left_out(&mut self, event: &Event<'_>, target: &dyn Encoder, out: &mut Output) -> bool {
        match &event.data {
            Data::TurnStarted(started) if started.replay && !target.writes_replays() => {
                out.lost("replayed turns");
                self.replay = true;
                true
            }
            Data::TurnEnded(_) if self.replay => {
                self.replay = false;
                true
            }
            Data::SessionStarted(_) | Data::SessionUpdated(_) | Data::SessionEnded(_) => false,
            _ => self.replay,
        }
    }

    /// Ends a turn that waits for the client, where the target has to, and begins another one when
    /// the turn goes on. Returns whether nothing else is to be written.
    fn is_suspended(
        &mut self,
        event: &Event<'_>,
        target: &mut dyn Encoder,
        out: &mut Output,
    ) -> bool {
        match &event.data {
            Data::Suspended(_) if target.suspends_turns() => {
                if !std::mem::replace(&mut self.suspended, true) {
                    self.close(event, target, out);
                    let outcome = Outcome::WaitingForClient;
                    encode_as(event, TurnEnded { outcome, ..TurnEnded::default() }, target, out);
                }
                true
            }
            // The process that waited is gone, and the target knows already that the turn waits.
            Data::TurnEnded(ended) if self.suspended => {
                self.suspended = false;
                if ended.outcome == Outcome::WaitingForClient {
                    return true;
                }
                target.encode(&Event::new(TurnStarted::default()), out);
                false
            }
            Data::SessionStarted(_)
            | Data::SessionUpdated(_)
            | Data::SessionEnded(_)
            | Data::TurnStarted(_)
            | Data::HostState(_)
            | Data::Silent(_)
            | Data::Log(_)
            | Data::Notice(_) => {
                self.suspended &= !matches!(event.data, Data::TurnStarted(_));
                false
            }
            _ => {
                if std::mem::take(&mut self.suspended) {
                    target.encode(&Event::new(TurnStarted::default()), out);
                }
                false
            }
        }
    }

    fn started(
        &mut self,
        event: &Event<'_>,
        started: &BlockStarted<'_>,
        target: &mut dyn Encoder,
        out: &mut Output,
    ) {
        match self.take_shown(&started.kind, &event.parent) {
            Some(shown) => {
                self.repeats.push(Repeat {
                    number: started.block,
                    message: started.message.clone().map(Text::into_owned),
                    index: started.index,
                    shown,
                    repeated: 0,
                    emitted_as: None,
                });
            }
            None => target.encode(event, out),
        }
    }

    fn delta(
        &mut self,
        event: &Event<'_>,
        delta: &BlockDelta<'_>,
        target: &mut dyn Encoder,
        out: &mut Output,
    ) {
        let Some(mut repeat) = self.take_repeat(delta.block) else {
            target.encode(event, out);
            return;
        };
        let text = delta.text.to_plain();
        match (repeat.emitted_as, repeat.compare(&text)) {
            (Some(number), _) => {
                repeat.shown.text.push_str(&text);
                repeat.repeated = repeat.shown.text.len();
                encode_as(event, BlockDelta { block: number, ..delta.clone() }, target, out);
            }
            (None, Compared::Same(length)) => repeat.repeated += length,
            (None, Compared::More(rest)) => repeat.extend(rest, event, target, out),
            (None, Compared::Other) => {
                let whole = format!("{}{text}", repeat.repeated_text());
                self.write_separately(repeat, &whole, event, target, out);
                return;
            }
        }
        self.repeats.push(repeat);
    }

    fn ended(
        &mut self,
        event: &Event<'_>,
        ended: &BlockEnded<'_>,
        target: &mut dyn Encoder,
        out: &mut Output,
    ) {
        let Some(repeat) = self.take_repeat(ended.block) else {
            target.encode(event, out);
            return;
        };
        if repeat.repeated < repeat.shown.text.len() {
            out.lost("text that the agent retracted");
        }
        let number = repeat.emitted_as.or(repeat.shown.open.then_some(repeat.shown.number));
        if let Some(number) = number {
            encode_as(event, BlockEnded { block: number, ..ended.clone() }, target, out);
        }
    }

    fn whole(
        &mut self,
        event: &Event<'_>,
        block: &Block<'_>,
        target: &mut dyn Encoder,
        out: &mut Output,
    ) {
        let Some(shown) = self.take_shown(&block.kind, &event.parent) else {
            target.encode(event, out);
            return;
        };
        let text = block.text.to_plain();
        let mut repeat = Repeat {
            number: block.block,
            message: block.message.clone().map(Text::into_owned),
            index: block.index,
            shown,
            repeated: 0,
            emitted_as: None,
        };
        match repeat.compare(&text) {
            Compared::Same(length) => {
                repeat.repeated = length;
                self.repeats.push(repeat);
            }
            Compared::More(rest) => {
                repeat.extend(rest, event, target, out);
                self.repeats.push(repeat);
            }
            Compared::Other => self.write_separately(repeat, &text, event, target, out),
        }
        let ended = BlockEnded {
            block: block.block,
            message: block.message.clone(),
            index: block.index,
            kind: block.kind.clone(),
            signature: block.signature.clone(),
        };
        let event = Event { data: Data::from(ended.clone()), ..event.clone() };
        self.ended(&event, &ended, target, out);
    }

    /// Keeps the retracted blocks that the target has already written. The target drops those that
    /// it has not written yet.
    fn withdrawn(
        &mut self,
        event: &Event<'_>,
        withdrawn: &Withdrawn<'_>,
        target: &mut dyn Encoder,
        out: &mut Output,
    ) {
        let mut forget = Vec::new();
        for block in &withdrawn.blocks {
            // A second attempt is retracted too; its text is shown under the number that it was
            // given.
            if let Some(repeat) = self.take_repeat(block.block) {
                let open = repeat.emitted_as.is_some() || repeat.shown.open;
                let number = repeat.emitted_as.unwrap_or(repeat.shown.number);
                self.shown.push(ShownBlock { open, number, ..repeat.shown });
                continue;
            }
            let unwritten = match target.withdraws() {
                Withdraws::Nothing => false,
                Withdraws::OpenBlocks => block.open,
                Withdraws::AnyBlock => true,
            };
            if unwritten {
                forget.push(block.clone());
            } else {
                self.shown.push(ShownBlock::of(block, &event.parent));
            }
        }
        if !forget.is_empty() {
            encode_as(event, Withdrawn { blocks: forget, ..withdrawn.clone() }, target, out);
        }
    }

    /// Ends the retracted blocks that were not repeated.
    fn close(&mut self, event: &Event<'_>, target: &mut dyn Encoder, out: &mut Output) {
        let repeated = self.repeats.drain(..).map(|repeat| repeat.shown);
        for shown in self.shown.drain(..).chain(repeated) {
            out.lost("text that the agent retracted");
            if shown.open {
                shown.end(event, target, out);
            }
        }
    }

    /// Writes a block that turned out to differ from the shown one.
    fn write_separately(
        &mut self,
        repeat: Repeat,
        text: &str,
        event: &Event<'_>,
        target: &mut dyn Encoder,
        out: &mut Output,
    ) {
        out.lost("text that the agent retracted");
        let (block, kind) = (repeat.number, repeat.shown.kind.clone());
        if repeat.shown.open {
            repeat.shown.end(event, target, out);
        }
        let (message, index) = (repeat.message, repeat.index);
        let started = BlockStarted { block, message: message.clone(), index, kind: kind.clone() };
        let delta = BlockDelta { block, message, index, kind, text: Text::plain(text) };
        for data in [Data::from(started), Data::from(delta)] {
            target.encode(&Event { data, ..event.clone() }, out);
        }
    }

    /// Removes the block with this number from those that repeat a shown one.
    fn take_repeat(&mut self, number: u64) -> Option<Repeat> {
        let at = self.repeats.iter().position(|repeat| repeat.number == number)?;
        Some(self.repeats.remove(at))
    }

    /// Removes the oldest shown block of this kind and agent.
    fn take_shown(&mut self, kind: &BlockKind, parent: &Option<Text<'_>>) -> Option<ShownBlock> {
        let same = |shown: &ShownBlock| shown.kind == *kind && shown.parent == *parent;
        let at = self.shown.iter().position(same)?;
        Some(self.shown.remove(at))
    }
}

/// How the next piece of a block relates to the rest of the shown text.
enum Compared<'t> {
    /// It repeats this many bytes.
    Same(usize),
    /// It repeats all of the rest, and continues with this.
    More(&'t str),
    /// It differs.
    Other,
}

impl Repeat {
    fn compare<'t>(&self, piece: &'t str) -> Compared<'t> {
        let shown = self.shown.text.get(self.repeated..).unwrap_or_default();
        if shown.starts_with(piece) {
            Compared::Same(piece.len())
        } else if let Some(rest) = piece.strip_prefix(shown) {
            Compared::More(rest)
        } else {
            Compared::Other
        }
    }

    fn repeated_text(&self) -> &str {
        self.shown.text.get(..self.repeated).unwrap_or_default()
    }

    /// Writes the part of a block that extends the shown text.
    fn extend(
        &mut self,
        rest: &str,
        event: &Event<'_>,
        target: &mut dyn Encoder,
        out: &mut Output,
    ) {
        let kind = self.shown.kind.clone();
        let block = if self.shown.open { self.shown.number } else { self.number };
        let (message, index) = (self.message.as_ref().map(Text::borrowed), self.index);
        if !self.shown.open {
            let (message, kind) = (message.clone(), kind.clone());
            encode_as(event, BlockStarted { block, message, index, kind }, target, out);
        }
        let text = Text::plain(rest);
        encode_as(event, BlockDelta { block, message, index, kind, text }, target, out);
        self.emitted_as = Some(block);
        self.shown.text.push_str(rest);
        self.repeated = self.shown.text.len();
    }
}

impl ShownBlock {
    fn of(block: &WithdrawnBlock<'_>, parent: &Option<Text<'_>>) -> Self {
        // No text contains this noncharacter, so none matches a block whose text was too long to
        // keep.
        let text = block.text.as_ref().map_or("\u{FFFF}".into(), |text| text.to_plain());
        Self {
            number: block.block,
            kind: block.kind.clone(),
            parent: parent.clone().map(Text::into_owned),
            text: text.into_owned(),
            open: block.open,
        }
    }

    fn end(self, event: &Event<'_>, target: &mut dyn Encoder, out: &mut Output) {
        let ended = BlockEnded { block: self.number, kind: self.kind, ..BlockEnded::default() };
        let ended = Event::new(ended).within(self.parent).because(event.synthetic.clone());
        target.encode(&ended, out);
    }
}

/// Encodes another payload in place of an event's own.
fn encode_as<'a>(
    event: &Event<'a>,
    data: impl Into<Data<'a>>,
    target: &mut dyn Encoder,
    out: &mut Output,
) {
    target.encode(&Event { data: data.into(), ..event.clone() }, out);
}
