//! The `stream_event` records that `--include-partial-messages` adds.
//!
//! They repeat the events of the model's API: a message starts, its blocks start, go on and end, and
//! the record that holds a whole block comes before that block's end.

use super::encode::{Messages, NOT_COUNTED_YET, Stamp};
use crate::dialect::Output;
use crate::event::BlockKind;
use crate::json::Text;
use crate::json::write::{self, Bytes, Object};

/// The message that is being said in pieces.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// The literal of the open message's id; empty when none is open.
    message: Bytes,
    next_index: u64,
    open: bool,
    called: bool,
}

impl Pieces {
    /// Begins a block of text or reasoning, and its message where that is another one.
    pub(super) fn block(
        &mut self,
        messages: &Messages,
        model: Option<&Text<'_>>,
        kind: &BlockKind,
        stamp: &mut Stamp,
        out: &mut Output,
    ) {
        let empty = match kind {
            BlockKind::Text => r#"{"type":"text","text":""}"#,
            BlockKind::Reasoning => r#"{"type":"thinking","thinking":"","signature":""}"#,
            _ => return,
        };
        self.enter(messages, model, stamp, out);
        self.start_block(stamp, out, |block| block.extend_from_slice(empty.as_bytes()));
    }

    /// Begins a tool call.
    pub(super) fn call(
        &mut self,
        messages: &Messages,
        model: Option<&Text<'_>>,
        call: &Text<'_>,
        name: &Text<'_>,
        stamp: &mut Stamp,
        out: &mut Output,
    ) {
        self.enter(messages, model, stamp, out);
        self.called = true;
        self.start_block(stamp, out, |block| {
            let mut fields = Object::open(block);
            fields.raw("type", "\"tool_use\"").text("id", call).text("name", name);
            fields.raw("input", "{}");
            fields.close();
        });
    }

    /// The next piece of the block at hand.
    pub(super) fn delta(
        &mut self,
        kind: &BlockKind,
        text: &Text<'_>,
        stamp: &mut Stamp,
        out: &mut Output,
    ) {
        let (delta, field) = match kind {
            BlockKind::Text => ("\"text_delta\"", "text"),
            BlockKind::Reasoning => ("\"thinking_delta\"", "thinking"),
            _ => return,
        };
        if self.open && !text.is_empty() {
            self.piece(stamp, out, |fields| {
                fields.raw("type", delta).text(field, text);
            });
        }
    }

    /// The input of the call at hand.
    pub(super) fn input(&mut self, input: &str, stamp: &mut Stamp, out: &mut Output) {
        self.piece(stamp, out, |fields| {
            fields.raw("type", "\"input_json_delta\"").string("partial_json", input);
        });
    }

    /// Ends the block at hand.
    pub(super) fn end_block(&mut self, stamp: &mut Stamp, out: &mut Output) {
        if std::mem::replace(&mut self.open, false) {
            stop_block(self.next_index - 1, stamp, out);
        }
    }

    /// Ends the message at hand.
    pub(super) fn end_message(&mut self, last: bool, stamp: &mut Stamp, out: &mut Output) {
        if self.message.is_empty() {
            return;
        }
        self.end_block(stamp, out);
        let reason = match (self.called, last) {
            (true, _) => "\"tool_use\"",
            (false, true) => "\"end_turn\"",
            (false, false) => "null",
        };
        event(stamp, out, "message_delta", |event| {
            event.object("delta", |delta| {
                delta.raw("stop_reason", reason).raw("stop_sequence", "null");
            });
            event.raw("usage", NOT_COUNTED_YET);
        });
        event(stamp, out, "message_stop", |_| {});
        *self = Self::default();
    }

    fn enter(
        &mut self,
        messages: &Messages,
        model: Option<&Text<'_>>,
        stamp: &mut Stamp,
        out: &mut Output,
    ) {
        self.end_block(stamp, out);
        if self.message == messages.id() {
            return;
        }
        self.end_message(false, stamp, out);
        self.message = messages.id().to_vec();
        event(stamp, out, "message_start", |event| {
            event.object("message", |fields| {
                fields.raw_bytes("id", messages.id()).raw("type", "\"message\"");
                fields.raw("role", "\"assistant\"").text_if("model", model);
                fields.raw("content", "[]").raw("stop_reason", "null");
                fields.raw("stop_sequence", "null").raw("usage", NOT_COUNTED_YET);
            });
        });
    }

    fn start_block(&mut self, stamp: &mut Stamp, out: &mut Output, block: impl FnOnce(&mut Bytes)) {
        let index = self.next_index;
        self.next_index += 1;
        self.open = true;
        event(stamp, out, "content_block_start", |event| {
            event.number("index", index);
            block(event.name("content_block"));
        });
    }

    fn piece(&self, stamp: &mut Stamp, out: &mut Output, fields: impl FnOnce(&mut Object<'_>)) {
        let index = self.next_index.saturating_sub(1);
        event(stamp, out, "content_block_delta", |event| {
            event.number("index", index).object("delta", fields);
        });
    }
}

/// Ends a block of pieces.
pub(super) fn stop_block(index: u64, stamp: &mut Stamp, out: &mut Output) {
    event(stamp, out, "content_block_stop", |event| {
        event.number("index", index);
    });
}

fn event(stamp: &mut Stamp, out: &mut Output, kind: &str, fields: impl FnOnce(&mut Object<'_>)) {
    let mut record = out.record("stream_event");
    record.object("event", |event| {
        write::string(event.name("type"), kind);
        fields(event);
    });
    stamp.end_within(record, None);
}
