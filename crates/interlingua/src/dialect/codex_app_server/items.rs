//! The items that a turn consists of: messages, thoughts, and the input of the user. Calls are read
//! in [`calls`].

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

/// The index of the first raw thought of a reasoning item; lower indices are parts of its summary.
pub(super) const FIRST_RAW_THOUGHT: u64 = 1 << 16;

impl CodexAppServerDecoder {
    /// Reads the start of an item.
    pub(super) fn read_item_started<'a>(
        &mut self,
        params: &mut Params<'a>,
        method: Text<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let Some(item) = &mut params.item else { return out.unknown(method) };
        if let Some(tool) = tools::tool_of(item) {
            return self.calls.start(tool, item, &mut self.threads, out);
        }
        let kind = item.kind.clone().unwrap_or_default();
        match kind.body() {
            "agentMessage" | "plan" => self.start_message(item, BlockKind::Text, out),
            "reasoning" => self.start_message(item, BlockKind::Reasoning, out),
            "userMessage" | "hookPrompt" => self.emit_user_message(item, "item/started", out),
            "subAgentActivity" => {
                if !calls::emit_activity(item, &mut self.threads, out) {
                    out.native("item/started of subAgentActivity");
                }
            }
            "contextCompaction" | "enteredReviewMode" | "exitedReviewMode" => {
                out.native(format!("item/started of {kind}"));
            }
            other => out.unknown(Text::from(format!("item/started of {other}"))),
        }
    }

    /// Reads a completed item. The grammar drops the text that was already streamed.
    pub(super) fn read_item_completed<'a>(
        &mut self,
        item: &mut Item<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        if let Some(tool) = tools::tool_of(item) {
            return self.complete_call(tool, item, out);
        }
        let kind = item.kind.clone().unwrap_or_default();
        match kind.body() {
            "agentMessage" | "plan" => {
                let text = item.text.take().unwrap_or_default();
                out.emit(Block { message: item.id.clone(), text, ..Block::default() });
                self.end_message(item, out);
            }
            "reasoning" => {
                emit_thoughts(item.summary.as_ref(), 0, item, out);
                emit_thoughts(item.content.as_ref(), FIRST_RAW_THOUGHT, item, out);
                self.end_message(item, out);
            }
            "userMessage" | "hookPrompt" => self.emit_user_message(item, "item/completed", out),
            "contextCompaction" => self.emit_compaction(out),
            "subAgentActivity" => {
                if !calls::emit_activity(item, &mut self.threads, out) {
                    out.native("item/completed of subAgentActivity");
                }
            }
            "enteredReviewMode" | "exitedReviewMode" => {
                out.native(format!("item/completed of {kind}"));
            }
            other => out.unknown(Text::from(format!("item/completed of {other}"))),
        }
    }

    /// Starts a part of the summary of a thought.
    pub(super) fn start_summary_part<'a>(
        &mut self,
        params: &Params<'a>,
        out: &mut Emitter<'_, 'a>,
    ) {
        let index = params.part.unwrap_or(0);
        if let Some(id) = &params.item_id {
            self.messages.start_block(id, index, out);
        }
        let (message, kind) = (params.item_id.clone(), BlockKind::Reasoning);
        out.emit(BlockStarted { message, index, kind, ..BlockStarted::default() });
    }

    /// Emits a compaction once; the program may report it in two ways.
    pub(super) fn emit_compaction(&mut self, out: &mut Emitter<'_, '_>) {
        if std::mem::replace(&mut self.turn.compacted, true) {
            out.native("thread/compacted");
        } else {
            out.emit(Compacted::default());
        }
    }

    fn start_message<'a>(&mut self, item: &Item<'a>, kind: BlockKind, out: &mut Emitter<'_, 'a>) {
        let message = item.id.clone();
        if let Some(id) = &message {
            self.messages.start(id, kind.clone(), out);
        }
        out.emit(MessageStarted { message: message.clone(), ..MessageStarted::default() });
        if kind == BlockKind::Text {
            out.emit(BlockStarted { message, kind, ..BlockStarted::default() });
        }
    }

    fn end_message<'a>(&mut self, item: &Item<'a>, out: &mut Emitter<'_, 'a>) {
        if let Some(id) = &item.id {
            self.messages.complete(id);
        }
        out.emit(MessageEnded { message: item.id.clone(), ..MessageEnded::default() });
    }

    /// Emits a message of the user once: the item has a start and an end, and the client's request
    /// contains it too.
    fn emit_user_message<'a>(
        &mut self,
        item: &Item<'a>,
        method: &'static str,
        out: &mut Emitter<'_, 'a>,
    ) {
        let is_hook = item.kind.as_ref().is_some_and(|kind| *kind == "hookPrompt");
        let content = item.content.as_ref().and_then(read::records_of::<Input<'_>>);
        let text = text_of(content.as_deref().unwrap_or(&item.fragments)).into_owned();
        let is_repeat = !self.replaying
            && (self.turn.last_user_item.is_some() && self.turn.last_user_item == item.id
                || self.turn.prompt.take_if(|prompt| *prompt == text).is_some());
        self.turn.last_user_item = item.id.clone().map(Text::into_owned);
        if is_repeat {
            return out.native(format!("{method} of userMessage"));
        }
        if self.messages.end_open_messages(out) && !out.is_nested() {
            self.counter.record_interrupted_request();
        }
        // The prompt of a sub-agent is not a message of the user.
        let injected = is_hook || out.is_nested();
        out.emit(UserMessage { text, injected, replay: self.replaying });
    }
}

/// The text of a message of the user; pictures and other input are left out.
pub(super) fn text_of<'a>(input: &[Input<'a>]) -> Text<'a> {
    let mut texts = input.iter().filter_map(|input| input.text.as_ref());
    let first = texts.next().cloned().unwrap_or_default();
    texts.fold(first, |all, text| Text::from(format!("{all}\n{text}")))
}

/// Emits the parts of a thought, each as a block.
fn emit_thoughts<'a>(
    parts: Option<&Json<'a>>,
    first: u64,
    item: &Item<'a>,
    out: &mut Emitter<'_, 'a>,
) {
    let parts = parts.and_then(Json::read::<Vec<Text<'_>>>).unwrap_or_default();
    for (index, text) in (first..).zip(parts) {
        let (message, kind) = (item.id.clone(), BlockKind::Reasoning);
        out.emit(Block { message, index, kind, text, ..Block::default() });
    }
}
