//! Fits a well-formed stream to a target that cannot take back what it said, or cannot tell the past.
//!
//! A retry throws away what was already shown, and then says most of it again. A target that has no
//! words for that keeps what it has shown, and is told only what the second try says beyond it: its
//! text is never doubled. Where the second try says something else, it is told as a block of its own,
//! and counted as a loss. A turn of the past that an agent tells again on resume is left out where it
//! would look like one that happens now.
//!
//! Knows events and what a target can say; knows no protocol. What was said the grammar remembers; here
//! nothing is kept until something is taken back.

use crate::dialect::{Encoder, Output, Withdraws};
use crate::event::{
    Block, BlockDelta, BlockEnded, BlockKind, BlockStarted, Data, Event, Withdrawn, WithdrawnBlock,
};
use crate::json::Text;

/// What stands between the grammar and such a target.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fit {
    /// The blocks that were taken back and still stand in the target.
    standing: Vec<Standing>,
    /// The blocks that say some of them again; several where sub-agents speak at the same time.
    again: Vec<Again>,
    /// A turn of the past is being told.
    past: bool,
}

/// A block that was taken back, and that the target still shows.
#[derive(Debug, Clone)]
struct Standing {
    number: u64,
    kind: BlockKind,
    parent: Option<Text<'static>>,
    text: String,
    open: bool,
}

/// A block that says again what stands in the target.
#[derive(Debug, Clone)]
struct Again {
    number: u64,
    message: Option<Text<'static>>,
    index: u64,
    standing: Standing,
    /// How much of the standing text it has said so far.
    said: usize,
    /// The number under which the target knows it, once it says more.
    told_as: Option<u64>,
}

impl Fit {
    /// Hands an event on to a target, as far as the target can say it.
    #[inline]
    pub(crate) fn pass<E: Encoder>(&mut self, event: &Event<'_>, target: &mut E, out: &mut Output) {
        // As a rule nothing was taken back, and nothing is of the past.
        let begins = match &event.data {
            Data::Withdrawn(_) | Data::Silent(_) => true,
            Data::TurnStarted(started) => started.replay,
            _ => false,
        };
        if begins || !self.is_idle() {
            self.retell(event, target, out);
        } else {
            target.encode(event, out);
        }
    }

    #[inline]
    fn is_idle(&self) -> bool {
        self.standing.is_empty() && self.again.is_empty() && !self.past
    }

    fn retell(&mut self, event: &Event<'_>, target: &mut dyn Encoder, out: &mut Output) {
        if self.is_past(event, target, out) {
            return;
        }
        match &event.data {
            Data::Silent(_) if !target.writes_silent_records() => {}
            Data::BlockStarted(started) => self.started(event, started, target, out),
            Data::BlockDelta(delta) => self.piece(event, delta, target, out),
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

    /// Whether an event is of the past, and the target would take it for the present.
    fn is_past(&mut self, event: &Event<'_>, target: &dyn Encoder, out: &mut Output) -> bool {
        match &event.data {
            Data::TurnStarted(started) if started.replay && !target.tells_the_past() => {
                out.lost("turns of the past, told again");
                self.past = true;
                true
            }
            Data::TurnEnded(_) if self.past => {
                self.past = false;
                true
            }
            Data::SessionStarted(_) | Data::SessionUpdated(_) | Data::SessionEnded(_) => false,
            _ => self.past,
        }
    }

    fn started(
        &mut self,
        event: &Event<'_>,
        started: &BlockStarted<'_>,
        target: &mut dyn Encoder,
        out: &mut Output,
    ) {
        match self.take_standing(&started.kind, &event.parent) {
            Some(standing) => {
                self.again.push(Again {
                    number: started.block,
                    message: started.message.clone().map(Text::into_owned),
                    index: started.index,
                    standing,
                    said: 0,
                    told_as: None,
                });
            }
            None => target.encode(event, out),
        }
    }

    fn piece(
        &mut self,
        event: &Event<'_>,
        delta: &BlockDelta<'_>,
        target: &mut dyn Encoder,
        out: &mut Output,
    ) {
        let Some(mut again) = self.take_again(delta.block) else {
            target.encode(event, out);
            return;
        };
        let text = delta.text.to_plain();
        match (again.told_as, again.compare(&text)) {
            (Some(number), _) => {
                again.standing.text.push_str(&text);
                again.said = again.standing.text.len();
                send(event, BlockDelta { block: number, ..delta.clone() }, target, out);
            }
            (None, Compared::Same(length)) => again.said += length,
            (None, Compared::More(rest)) => again.go_on(rest, event, target, out),
            (None, Compared::Other) => {
                let whole = format!("{}{text}", again.said_text());
                self.say_anew(again, &whole, event, target, out);
                return;
            }
        }
        self.again.push(again);
    }

    fn ended(
        &mut self,
        event: &Event<'_>,
        ended: &BlockEnded<'_>,
        target: &mut dyn Encoder,
        out: &mut Output,
    ) {
        let Some(again) = self.take_again(ended.block) else {
            target.encode(event, out);
            return;
        };
        if again.said < again.standing.text.len() {
            out.lost("text that the agent took back");
        }
        let number = again.told_as.or(again.standing.open.then_some(again.standing.number));
        if let Some(number) = number {
            send(event, BlockEnded { block: number, ..ended.clone() }, target, out);
        }
    }

    fn whole(
        &mut self,
        event: &Event<'_>,
        block: &Block<'_>,
        target: &mut dyn Encoder,
        out: &mut Output,
    ) {
        let Some(standing) = self.take_standing(&block.kind, &event.parent) else {
            target.encode(event, out);
            return;
        };
        let text = block.text.to_plain();
        let mut again = Again {
            number: block.block,
            message: block.message.clone().map(Text::into_owned),
            index: block.index,
            standing,
            said: 0,
            told_as: None,
        };
        match again.compare(&text) {
            Compared::Same(length) => {
                again.said = length;
                self.again.push(again);
            }
            Compared::More(rest) => {
                again.go_on(rest, event, target, out);
                self.again.push(again);
            }
            Compared::Other => self.say_anew(again, &text, event, target, out),
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

    /// Keeps what was taken back and stands in the target; what the target has not written yet it is
    /// told to forget.
    fn withdrawn(
        &mut self,
        event: &Event<'_>,
        withdrawn: &Withdrawn<'_>,
        target: &mut dyn Encoder,
        out: &mut Output,
    ) {
        let mut forget = Vec::new();
        for block in &withdrawn.blocks {
            // A second try that is taken back too: what of it was told stands under its own number.
            if let Some(again) = self.take_again(block.block) {
                let open = again.told_as.is_some() || again.standing.open;
                let number = again.told_as.unwrap_or(again.standing.number);
                self.standing.push(Standing { open, number, ..again.standing });
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
                self.standing.push(Standing::of(block, &event.parent));
            }
        }
        if !forget.is_empty() {
            send(event, Withdrawn { blocks: forget, ..withdrawn.clone() }, target, out);
        }
    }

    /// Ends what was taken back and not said again: the target has shown it, and goes on.
    fn close(&mut self, event: &Event<'_>, target: &mut dyn Encoder, out: &mut Output) {
        let again = self.again.drain(..).map(|again| again.standing);
        for standing in self.standing.drain(..).chain(again) {
            out.lost("text that the agent took back");
            if standing.open {
                standing.end(event, target, out);
            }
        }
    }

    /// Says a block that turned out to say something else than the one that stands.
    fn say_anew(
        &mut self,
        again: Again,
        text: &str,
        event: &Event<'_>,
        target: &mut dyn Encoder,
        out: &mut Output,
    ) {
        out.lost("text that the agent took back");
        let (block, kind) = (again.number, again.standing.kind.clone());
        if again.standing.open {
            again.standing.end(event, target, out);
        }
        let (message, index) = (again.message, again.index);
        let started = BlockStarted { block, message: message.clone(), index, kind: kind.clone() };
        let delta = BlockDelta { block, message, index, kind, text: Text::plain(text) };
        for data in [Data::from(started), Data::from(delta)] {
            target.encode(&Event { data, ..event.clone() }, out);
        }
    }

    /// The block of some number, if it says again what stands.
    fn take_again(&mut self, number: u64) -> Option<Again> {
        let at = self.again.iter().position(|again| again.number == number)?;
        Some(self.again.remove(at))
    }

    /// The oldest block of some kind and agent that stands though it was taken back.
    fn take_standing(&mut self, kind: &BlockKind, parent: &Option<Text<'_>>) -> Option<Standing> {
        let same = |standing: &Standing| standing.kind == *kind && standing.parent == *parent;
        let at = self.standing.iter().position(same)?;
        Some(self.standing.remove(at))
    }
}

/// How the next piece of a block relates to the text that stands.
enum Compared<'t> {
    /// It says the same, so far.
    Same(usize),
    /// It says the same, and then this.
    More(&'t str),
    /// It says something else.
    Other,
}

impl Again {
    fn compare<'t>(&self, piece: &'t str) -> Compared<'t> {
        let standing = self.standing.text.get(self.said..).unwrap_or_default();
        if standing.starts_with(piece) {
            Compared::Same(piece.len())
        } else if let Some(rest) = piece.strip_prefix(standing) {
            Compared::More(rest)
        } else {
            Compared::Other
        }
    }

    fn said_text(&self) -> &str {
        self.standing.text.get(..self.said).unwrap_or_default()
    }

    /// Says what a block says beyond the one that stands.
    fn go_on(&mut self, rest: &str, event: &Event<'_>, target: &mut dyn Encoder, out: &mut Output) {
        let kind = self.standing.kind.clone();
        let block = if self.standing.open { self.standing.number } else { self.number };
        let (message, index) = (self.message.as_ref().map(Text::borrowed), self.index);
        if !self.standing.open {
            let (message, kind) = (message.clone(), kind.clone());
            send(event, BlockStarted { block, message, index, kind }, target, out);
        }
        let text = Text::plain(rest);
        send(event, BlockDelta { block, message, index, kind, text }, target, out);
        self.told_as = Some(block);
        self.standing.text.push_str(rest);
        self.said = self.standing.text.len();
    }
}

impl Standing {
    fn of(block: &WithdrawnBlock<'_>, parent: &Option<Text<'_>>) -> Self {
        // No text has this character, so that none is taken for the rest of one that was too long.
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

/// Tells a target something in the place of an event.
fn send<'a>(
    event: &Event<'a>,
    data: impl Into<Data<'a>>,
    target: &mut dyn Encoder,
    out: &mut Output,
) {
    target.encode(&Event { data: data.into(), ..event.clone() }, out);
}
