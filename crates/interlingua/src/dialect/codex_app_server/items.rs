//! Items: what a turn is made of.

use super::calls;
use super::decode::CodexAppServerDecoder;
use super::tools;
use super::wire::{Input, Item, Params};
use crate::dialect::Emitter;
use crate::event::{
    Block, BlockKind, BlockStarted, Compacted, MessageEnded, MessageStarted, UserMessage,
};
use crate::json::read;
use crate::json::{Json, Text};

/// The first block of a reasoning item that is a thought itself, and no part of its summary.
pub(super) const RAW_THOUGHTS: u64 = 1 << 16;

impl CodexAppServerDecoder {
    /// An item began.
    pub(super) fn item_started<'a>(
        &mut self,
        params: &mut Params<'a>,
        method: Text<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let Some(item) = &mut params.item else { return out.unknown(method) };
        if let Some(tool) = tools::of_item(item) {
            return self.calls.started(tool, item, &mut self.threads, out);
        }
        let kind = item.kind.clone().unwrap_or_default();
        match kind.body() {
            "agentMessage" | "plan" => self.message_began(item, BlockKind::Text, out),
            "reasoning" => self.message_began(item, BlockKind::Reasoning, out),
            "userMessage" | "hookPrompt" => self.user_message(item, "item/started", out),
            "subAgentActivity" => {
                if !calls::activity(item, &mut self.threads, out) {
                    out.native("item/started of subAgentActivity");
                }
            }
            "contextCompaction" | "enteredReviewMode" | "exitedReviewMode" => {
                out.native(format!("item/started of {kind}"));
            }
            other => out.unknown(Text::from(format!("item/started of {other}"))),
        }
    }

    /// An item is whole; what was said of it in pieces, the grammar does not say again.
    pub(super) fn item_completed<'a>(&mut self, item: &mut Item<'a>, out: &mut Emitter<'_, 'a>) {
        if let Some(tool) = tools::of_item(item) {
            return self.call_completed(tool, item, out);
        }
        let kind = item.kind.clone().unwrap_or_default();
        match kind.body() {
            "agentMessage" | "plan" => {
                let text = item.text.take().unwrap_or_default();
                out.emit(Block { message: item.id.clone(), text, ..Block::default() });
                self.message_ended(item, out);
            }
            "reasoning" => {
                thoughts(item.summary.as_ref(), 0, item, out);
                thoughts(item.content.as_ref(), RAW_THOUGHTS, item, out);
                self.message_ended(item, out);
            }
            "userMessage" | "hookPrompt" => self.user_message(item, "item/completed", out),
            "contextCompaction" => self.compacted(out),
            "subAgentActivity" => {
                if !calls::activity(item, &mut self.threads, out) {
                    out.native("item/completed of subAgentActivity");
                }
            }
            "enteredReviewMode" | "exitedReviewMode" => {
                out.native(format!("item/completed of {kind}"));
            }
            other => out.unknown(Text::from(format!("item/completed of {other}"))),
        }
    }

    /// A part of the summary of a thought begins.
    pub(super) fn part_began<'a>(&mut self, params: &Params<'a>, out: &mut Emitter<'_, 'a>) {
        let index = params.part.unwrap_or(0);
        if let Some(id) = &params.item_id {
            self.said.next_block(id, index, out);
        }
        let (message, kind) = (params.item_id.clone(), BlockKind::Reasoning);
        out.emit(BlockStarted { message, index, kind, ..BlockStarted::default() });
    }

    /// The conversation was made shorter; the program may say it in two ways.
    pub(super) fn compacted(&mut self, out: &mut Emitter<'_, '_>) {
        if std::mem::replace(&mut self.turn.compacted, true) {
            out.native("thread/compacted");
        } else {
            out.emit(Compacted::default());
        }
    }

    fn message_began<'a>(&mut self, item: &Item<'a>, kind: BlockKind, out: &mut Emitter<'_, 'a>) {
        let message = item.id.clone();
        if let Some(id) = &message {
            self.said.begin(id, kind.clone(), out);
        }
        out.emit(MessageStarted { message: message.clone(), ..MessageStarted::default() });
        if kind == BlockKind::Text {
            out.emit(BlockStarted { message, kind, ..BlockStarted::default() });
        }
    }

    fn message_ended<'a>(&mut self, item: &Item<'a>, out: &mut Emitter<'_, 'a>) {
        if let Some(id) = &item.id {
            self.said.end(id);
        }
        out.emit(MessageEnded { message: item.id.clone(), ..MessageEnded::default() });
    }

    /// What the user said, once: the item is told when it begins and when it ends, and the client
    /// said it before.
    fn user_message<'a>(
        &mut self,
        item: &Item<'a>,
        method: &'static str,
        out: &mut Emitter<'_, 'a>,
    ) {
        let hook = item.kind.as_ref().is_some_and(|kind| *kind == "hookPrompt");
        let content = item.content.as_ref().and_then(read::records_of::<Input<'_>>);
        let text = text_of(content.as_deref().unwrap_or(&item.fragments)).into_owned();
        let again = !self.replaying
            && (self.turn.last_user_item.is_some() && self.turn.last_user_item == item.id
                || self.turn.prompt.take_if(|prompt| *prompt == text).is_some());
        self.turn.last_user_item = item.id.clone().map(Text::into_owned);
        if again {
            return out.native(format!("{method} of userMessage"));
        }
        if self.said.cut_short(out) && !out.is_nested() {
            self.counter.cut_off();
        }
        // What a sub-agent is told, no user said.
        let injected = hook || out.is_nested();
        out.emit(UserMessage { text, injected, replay: self.replaying });
    }
}

/// The text of what the user said; pictures and the like are left out.
pub(super) fn text_of<'a>(input: &[Input<'a>]) -> Text<'a> {
    let mut texts = input.iter().filter_map(|input| input.text.as_ref());
    let first = texts.next().cloned().unwrap_or_default();
    texts.fold(first, |all, text| Text::from(format!("{all}\n{text}")))
}

/// The parts of a thought, each a block of its own.
fn thoughts<'a>(parts: Option<&Json<'a>>, first: u64, item: &Item<'a>, out: &mut Emitter<'_, 'a>) {
    let parts = parts.and_then(Json::read::<Vec<Text<'_>>>).unwrap_or_default();
    for (index, text) in (first..).zip(parts) {
        let (message, kind) = (item.id.clone(), BlockKind::Reasoning);
        out.emit(Block { message, index, kind, text, ..Block::default() });
    }
}
