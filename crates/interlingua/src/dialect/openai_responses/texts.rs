//! The text and the reasoning of a response: which block an event belongs to, and when it ends.

use super::wire::{Item, Line};
use crate::dialect::Emitter;
use crate::event::{Block, BlockDelta, BlockEnded, BlockKind, BlockStarted};
use crate::json::Text;

/// The place of a text in the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    item: u64,
    part: u64,
    /// It is a part of a summary of reasoning, not of a content.
    in_summary: bool,
}

impl Place {
    pub(super) fn content(line: &Line<'_>) -> Self {
        let (item, part) = (line.output_index.unwrap_or(0), line.content_index.unwrap_or(0));
        Self { item, part, in_summary: false }
    }

    pub(super) fn summary(line: &Line<'_>) -> Self {
        let (item, part) = (line.output_index.unwrap_or(0), line.summary_index.unwrap_or(0));
        Self { item, part, in_summary: true }
    }
}

/// The blocks of a response.
#[derive(Debug, Default)]
pub(super) struct Texts {
    pub(super) message: Text<'static>,
    /// The model refused.
    pub(super) refused: bool,
    /// All blocks so far. Their places in this list are their indexes in the message.
    blocks: Vec<TextBlock>,
}

#[derive(Debug)]
struct TextBlock {
    place: Place,
    kind: BlockKind,
    ended: bool,
}

impl Texts {
    pub(super) fn of(message: Text<'static>) -> Self {
        Self { message, ..Self::default() }
    }

    /// Emits the next piece of a text.
    #[inline]
    pub(super) fn add<'a>(
        &mut self,
        place: Place,
        kind: BlockKind,
        text: Text<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        if text.is_empty() {
            return;
        }
        let index = match self.find(place) {
            Some((index, _)) => index,
            None => {
                self.end_parts_before(place, out);
                let index = self.push(place, kind.clone(), false);
                let message = Some(self.message.borrowed());
                out.emit(BlockStarted { block: 0, message, index, kind: kind.clone() });
                index
            }
        };
        out.emit(BlockDelta {
            block: 0,
            message: Some(self.message.borrowed()),
            index,
            kind,
            text,
        });
    }

    /// Emits the whole of a text, which ends the block if it was streamed.
    pub(super) fn complete(
        &mut self,
        place: Place,
        kind: BlockKind,
        text: Text<'_>,
        signature: Option<Text<'_>>,
        out: &mut Emitter<'_, '_>,
    ) {
        let index = match self.find(place) {
            Some((_, block)) if block.ended => return,
            Some((index, _)) => index,
            None if text.is_empty() && signature.is_none() => return,
            None => self.push(place, kind.clone(), true),
        };
        if let Some(block) = self.blocks.get_mut(index as usize) {
            block.ended = true;
        }
        let message = Some(self.message.borrowed());
        out.emit(Block { message, index, kind, text, signature, ..Block::default() });
    }

    /// Reads a message that is complete. Usually its texts were streamed.
    pub(super) fn message(&mut self, item: u64, message: Item<'_>, out: &mut Emitter<'_, '_>) {
        for (part, content) in message.content.into_iter().enumerate() {
            let place = Place { item, part: part as u64, in_summary: false };
            match content.kind.as_ref().map_or("", Text::body) {
                "output_text" | "text" => {
                    let text = content.text.unwrap_or_default();
                    self.complete(place, BlockKind::Text, text, None, out);
                }
                "refusal" => {
                    self.refused = true;
                    let text = content.refusal.unwrap_or_default();
                    self.complete(place, BlockKind::Text, text, None, out);
                }
                kind => out.unknown(Text::from(format!("content/{kind}"))),
            }
        }
    }

    /// Reads reasoning that is complete, with the encrypted form that has to be returned to the
    /// provider. It is the signature of the last part, or stands alone.
    pub(super) fn reasoning(&mut self, item: u64, reasoning: Item<'_>, out: &mut Emitter<'_, '_>) {
        let summary = reasoning.summary.into_iter().enumerate().map(|(part, it)| (part, true, it));
        let content = reasoning.content.into_iter().enumerate().map(|(part, it)| (part, false, it));
        let parts: Vec<_> = summary.chain(content).filter(|(_, _, it)| it.text.is_some()).collect();
        let signature = reasoning.encrypted_content.filter(|signature| !signature.is_empty());
        let parts = parts.into_iter().map(|(part, in_summary, it)| {
            (Place { item, part: part as u64, in_summary }, it.text.unwrap_or_default())
        });
        let parts: Vec<_> = parts.collect();
        let is_open =
            |(place, _): &(Place, Text<'_>)| self.find(*place).is_none_or(|it| !it.1.ended);
        let last = parts.iter().rposition(is_open);
        for (at, (place, text)) in parts.into_iter().enumerate() {
            let signature = signature.as_ref().filter(|_| Some(at) == last).map(Text::borrowed);
            self.complete(place, BlockKind::Reasoning, text, signature, out);
        }
        // Servers that stream reasoning may leave it out of the item.
        let streamed = |block: &TextBlock| block.place.item == item && !block.ended;
        if self.blocks.iter().any(streamed) {
            self.end_item(item, signature.as_ref().filter(|_| last.is_none()), out);
        } else if last.is_none() && signature.is_some() {
            let place = Place { item, part: u64::MAX, in_summary: true };
            self.complete(place, BlockKind::HiddenReasoning, Text::default(), signature, out);
        }
    }

    /// Ends all blocks that are open.
    pub(super) fn end(&mut self, out: &mut Emitter<'_, '_>) {
        self.end_where(|_| true, None, out);
    }

    fn end_item(&mut self, item: u64, signature: Option<&Text<'_>>, out: &mut Emitter<'_, '_>) {
        self.end_where(|place| place.item == item, signature, out);
    }

    /// Ends the earlier parts of the same summary.
    fn end_parts_before(&mut self, place: Place, out: &mut Emitter<'_, '_>) {
        self.end_where(|open| open.item == place.item, None, out);
    }

    fn end_where(
        &mut self,
        is_ended: impl Fn(Place) -> bool,
        signature: Option<&Text<'_>>,
        out: &mut Emitter<'_, '_>,
    ) {
        let message = &self.message;
        let open = self.blocks.iter_mut().enumerate().filter(|(_, block)| !block.ended);
        for (index, block) in open.filter(|(_, block)| is_ended(block.place)) {
            block.ended = true;
            out.emit(BlockEnded {
                block: 0,
                message: Some(message.borrowed()),
                index: index as u64,
                kind: block.kind.clone(),
                signature: signature.map(Text::borrowed),
            });
        }
    }

    fn push(&mut self, place: Place, kind: BlockKind, ended: bool) -> u64 {
        self.blocks.push(TextBlock { place, kind, ended });
        self.blocks.len() as u64 - 1
    }

    /// The block at a place, and its index. The newest blocks are searched first.
    #[inline]
    fn find(&self, place: Place) -> Option<(u64, &TextBlock)> {
        let at = self.blocks.iter().rposition(|block| block.place == place)?;
        Some((at as u64, self.blocks.get(at)?))
    }
}
