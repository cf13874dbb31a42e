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
#[derive(Debug, Clone, Default)]
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
        model: &Text<'_>,
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
        model: &Text<'_>,
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

    /// Ends the message at hand. One that called tools stopped for them, unless it was cut off.
    pub(super) fn end_message(
        &mut self,
        stop_reason: Option<&Text<'_>>,
        cut: bool,
        stamp: &mut Stamp,
        out: &mut Output,
    ) {
        if self.message.is_empty() {
            return;
        }
        self.end_block(stamp, out);
        let for_tools = Text::plain("tool_use");
        let called = (self.called && !cut).then_some(&for_tools);
        stop_message(called.or(stop_reason), stamp, out);
        *self = Self::default();
    }

    /// Ends the message at hand, and takes back the block of it that is open; `false` where none is.
    pub(super) fn abandon(&mut self, stamp: &mut Stamp, out: &mut Output) -> bool {
        if !self.open {
            return false;
        }
        self.end_block(stamp, out);
        message_delta(None, stamp, out);
        let mut record = out.record("stream_event");
        record.object("event", |event| {
            event.raw("type", "\"message_stop\"");
        });
        record.object("abandoned_blocks", |blocks| {
            blocks.raw_bytes("api_message_id", &self.message);
            blocks.number("from_block_index", self.next_index - 1);
        });
        end(stamp, record);
        *self = Self::default();
        true
    }

    fn enter(
        &mut self,
        messages: &Messages,
        model: &Text<'_>,
        stamp: &mut Stamp,
        out: &mut Output,
    ) {
        self.end_block(stamp, out);
        if self.message == messages.id() {
            return;
        }
        self.end_message(None, false, stamp, out);
        self.message = messages.id().to_vec();
        event(stamp, out, "message_start", |event| {
            event.object("message", |fields| {
                fields.raw_bytes("id", messages.id()).raw("type", "\"message\"");
                fields.raw("role", "\"assistant\"").text("model", model);
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

/// Ends a message of pieces.
pub(super) fn stop_message(stop_reason: Option<&Text<'_>>, stamp: &mut Stamp, out: &mut Output) {
    message_delta(stop_reason, stamp, out);
    event(stamp, out, "message_stop", |_| {});
}

fn message_delta(stop_reason: Option<&Text<'_>>, stamp: &mut Stamp, out: &mut Output) {
    event(stamp, out, "message_delta", |event| {
        event.object("delta", |delta| {
            match stop_reason {
                Some(reason) => delta.text("stop_reason", reason),
                None => delta.raw("stop_reason", "null"),
            };
            delta.raw("stop_sequence", "null");
        });
        event.raw("usage", NOT_COUNTED_YET);
    });
}

fn event(stamp: &mut Stamp, out: &mut Output, kind: &str, fields: impl FnOnce(&mut Object<'_>)) {
    let mut record = out.record("stream_event");
    record.object("event", |event| {
        write::string(event.name("type"), kind);
        fields(event);
    });
    end(stamp, record);
}

/// Pieces are those of the main thread alone.
fn end(stamp: &mut Stamp, mut record: Object<'_>) {
    record.fixed(r#""parent_tool_use_id":null"#);
    stamp.end(record);
}
