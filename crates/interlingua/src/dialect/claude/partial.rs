//! Writes the `stream_event` records that `--include-partial-messages` adds.
//!
//! They repeat the events of the model's API: the start and end of a message, and the start, deltas
//! and end of its blocks. The `assistant` record with the complete block precedes the end of the
//! block.

use super::encode::{Messages, NOT_COUNTED_YET, Stamp};
use crate::dialect::Output;
use crate::event::BlockKind;
use crate::json::Text;
use crate::json::write::{self, Bytes, Object};

/// The message that is being streamed.
#[derive(Debug, Clone, Default)]
pub(super) struct PartialMessage {
    /// The id of the open message as a JSON literal; empty if no message is open.
    message: Bytes,
    next_index: u64,
    /// A block is open.
    open: bool,
    has_call: bool,
}

impl PartialMessage {
    /// Starts a block of text or reasoning, and its message if that is not the open one.
    pub(super) fn start_block(
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
        self.write_block_start(stamp, out, |block| block.extend_from_slice(empty.as_bytes()));
    }

    /// Starts the block of a tool call.
    pub(super) fn start_call(
        &mut self,
        messages: &Messages,
        model: &Text<'_>,
        call: &Text<'_>,
        name: &Text<'_>,
        stamp: &mut Stamp,
        out: &mut Output,
    ) {
        self.enter(messages, model, stamp, out);
        self.has_call = true;
        self.write_block_start(stamp, out, |block| {
            let mut fields = Object::open(block);
            fields.raw("type", "\"tool_use\"").text("id", call).text("name", name);
            fields.raw("input", "{}");
            fields.close();
        });
    }

    /// Writes the next delta of the open block.
    pub(super) fn write_delta(
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
            self.write_block_delta(stamp, out, |fields| {
                fields.raw("type", delta).text(field, text);
            });
        }
    }

    /// Writes the input of the call whose block is open.
    pub(super) fn write_input(&mut self, input: &str, stamp: &mut Stamp, out: &mut Output) {
        self.write_block_delta(stamp, out, |fields| {
            fields.raw("type", "\"input_json_delta\"").string("partial_json", input);
        });
    }

    /// Ends the open block.
    pub(super) fn end_block(&mut self, stamp: &mut Stamp, out: &mut Output) {
        if std::mem::replace(&mut self.open, false) {
            write_block_stop(self.next_index - 1, stamp, out);
        }
    }

    /// Ends the open message. One with a call stopped for `tool_use`, unless it was cut off.
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
        let for_tools = (self.has_call && !cut).then_some(&for_tools);
        write_message_stop(for_tools.or(stop_reason), stamp, out);
        *self = Self::default();
    }

    /// Ends the open message and retracts its open block; returns `false` if no block is open.
    pub(super) fn abandon(&mut self, stamp: &mut Stamp, out: &mut Output) -> bool {
        if !self.open {
            return false;
        }
        self.end_block(stamp, out);
        write_message_delta(None, stamp, out);
        let mut record = out.record("stream_event");
        record.object("event", |event| {
            event.raw("type", "\"message_stop\"");
        });
        record.object("abandoned_blocks", |blocks| {
            blocks.raw_bytes("api_message_id", &self.message);
            blocks.number("from_block_index", self.next_index - 1);
        });
        end_record(stamp, record);
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
        write_event(stamp, out, "message_start", |event| {
            event.object("message", |fields| {
                fields.raw_bytes("id", messages.id()).raw("type", "\"message\"");
                fields.raw("role", "\"assistant\"").text("model", model);
                fields.raw("content", "[]").raw("stop_reason", "null");
                fields.raw("stop_sequence", "null").raw("usage", NOT_COUNTED_YET);
            });
        });
    }

    fn write_block_start(
        &mut self,
        stamp: &mut Stamp,
        out: &mut Output,
        block: impl FnOnce(&mut Bytes),
    ) {
        let index = self.next_index;
        self.next_index += 1;
        self.open = true;
        write_event(stamp, out, "content_block_start", |event| {
            event.number("index", index);
            block(event.name("content_block"));
        });
    }

    fn write_block_delta(
        &self,
        stamp: &mut Stamp,
        out: &mut Output,
        fields: impl FnOnce(&mut Object<'_>),
    ) {
        let index = self.next_index.saturating_sub(1);
        write_event(stamp, out, "content_block_delta", |event| {
            event.number("index", index).object("delta", fields);
        });
    }
}

/// Writes the end of a streamed block.
pub(super) fn write_block_stop(index: u64, stamp: &mut Stamp, out: &mut Output) {
    write_event(stamp, out, "content_block_stop", |event| {
        event.number("index", index);
    });
}

/// Writes the end of a streamed message.
pub(super) fn write_message_stop(
    stop_reason: Option<&Text<'_>>,
    stamp: &mut Stamp,
    out: &mut Output,
) {
    write_message_delta(stop_reason, stamp, out);
    write_event(stamp, out, "message_stop", |_| {});
}

fn write_message_delta(stop_reason: Option<&Text<'_>>, stamp: &mut Stamp, out: &mut Output) {
    write_event(stamp, out, "message_delta", |event| {
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

fn write_event(
    stamp: &mut Stamp,
    out: &mut Output,
    kind: &str,
    fields: impl FnOnce(&mut Object<'_>),
) {
    let mut record = out.record("stream_event");
    record.object("event", |event| {
        write::string(event.name("type"), kind);
        fields(event);
    });
    end_record(stamp, record);
}

/// Ends a record. Only messages of the main agent are streamed, so it has no parent.
fn end_record(stamp: &mut Stamp, mut record: Object<'_>) {
    record.fixed(r#""parent_tool_use_id":null"#);
    stamp.end(record);
}
