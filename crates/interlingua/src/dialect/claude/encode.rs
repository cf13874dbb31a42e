//! Encodes Claude Code's stream: nested records, with one content block in each line. Messages and
//! blocks are written here; the submodules write calls, requests, sessions and the ends of turns.

mod calls;
mod ending;
mod models;
mod notices;
mod requests;
mod session;

use super::partial::{self, PartialMessage};
use super::result::Totals;
use crate::dialect::encode::Identity;
use crate::dialect::{EncodeOptions, Encoder, Output, Withdraws};
use crate::event::{
    Block, BlockKind, Data, Event, MessageStarted, Reason, SessionStarted, UserMessage, Withdrawn,
};
use crate::json::write::{self, Bytes, Object};
use crate::json::{Json, Text};
use calls::Calls;
use models::Models;
use requests::PendingCalls;

/// The encoder of `claude`.
#[derive(Debug, Clone)]
pub struct ClaudeEncoder {
    pub(super) stamp: Stamp,
    facts: SessionStarted<'static>,
    pub(super) turn: Turn,
    /// The events held back until the first `init`, which states the session of all records.
    held: Vec<Event<'static>>,
    init_written: bool,
    /// The agent has not stated the id of the session, so the `init` has a generated one.
    session_id_generated: bool,
    /// The open blocks, whose text is collected, since a record holds a complete block.
    open: Vec<OpenBlock>,
    /// A buffer that the next block reuses.
    spare: Bytes,
    messages: Messages,
    models: Models,
    partial: Option<PartialMessage>,
    /// A message of the main agent has started and not ended.
    message_open: bool,
    last_text: Bytes,
    calls: Calls,
    pending: PendingCalls,
    totals: Totals,
}

/// The current turn.
#[derive(Debug, Clone, Default)]
pub(super) struct Turn {
    /// It has started and not ended.
    pub(super) open: bool,
    began_ms: Option<u64>,
    /// The messages of its retries, which its `result` need not repeat.
    pub(super) retries: Vec<Text<'static>>,
    /// Its last record answers a call that was cancelled, denied or abandoned.
    stopped_in_call: bool,
    /// The interrupt, until the calls that were open at the time are answered.
    interrupted: Option<Event<'static>>,
    /// It continued after the interrupt.
    continued: bool,
    /// The grammar added the end of the previous turn at the end of the input, and that end
    /// contains all that is known of the exit.
    pub(super) end_added: bool,
}

/// The fields at the end of every record.
#[derive(Debug, Clone, Default)]
pub(super) struct Stamp {
    identity: Identity,
    session_id: Bytes,
}

#[derive(Debug, Clone)]
struct OpenBlock {
    number: u64,
    /// The text so far, as a JSON literal without its last quote.
    literal: Bytes,
}

/// Assigns blocks to messages, where the agent does not.
#[derive(Debug, Clone, Default)]
pub(super) struct Messages {
    /// The id of the current message, as a JSON literal; empty between messages.
    id: Bytes,
    /// The estimated number of requests: an answer to a call starts another one.
    requests: u64,
    /// The request of the current message was counted.
    counted: bool,
}

/// The placeholder for the usage of a message, whose counts are written with the `result`. Claude
/// Code writes a placeholder too, and consumers require the field.
pub(super) const NOT_COUNTED_YET: &str = r#"{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}"#;

/// One content block of a record.
enum Content<'c> {
    Text(&'c [u8]),
    Thinking(&'c [u8], Option<&'c Text<'c>>),
    Redacted(Option<&'c Text<'c>>),
    Image(Option<&'c Json<'c>>),
    ToolUse { call: &'c Text<'c>, name: &'c Text<'c>, input: &'c str },
}

impl Encoder for ClaudeEncoder {
    #[inline]
    fn encode(&mut self, event: &Event<'_>, out: &mut Output) {
        self.stamp.follow(out);
        if out.is_passing() {
            self.partial = None;
        }
        if !self.init_written && self.turn.open && self.holds_until_init(event, out) {
            return;
        }
        if self.turn.interrupted.is_some() && continues_turn(&event.data) {
            self.turn.continued = true;
        }
        // Calls that were open at the interrupt are answered before it is written.
        if self.turn.continued && self.calls.all_answered() {
            self.write_pending_interrupt(out);
        }
        match &event.data {
            Data::BlockStarted(block) => {
                let mut literal = std::mem::take(&mut self.spare);
                literal.clear();
                literal.push(b'"');
                self.open.push(OpenBlock { number: block.block, literal });
                self.start_partial_block(&block.kind, block.message.as_ref(), event, out);
            }
            Data::BlockDelta(delta) => {
                if let Some(open) = self.open.iter_mut().rfind(|open| open.number == delta.block) {
                    write::text_body(&mut open.literal, &delta.text);
                }
                if let Some(partial) = self.partial.as_mut().filter(|_| event.parent.is_none()) {
                    partial.write_delta(&delta.kind, &delta.text, &mut self.stamp, out);
                }
            }
            Data::BlockEnded(ended) => {
                let Some(at) = self.open.iter().rposition(|open| open.number == ended.block) else {
                    return;
                };
                let mut literal = self.open.remove(at).literal;
                literal.push(b'"');
                let (signature, message) = (ended.signature.as_ref(), ended.message.as_ref());
                if self.write_block(&ended.kind, &literal, signature, message, event, out) {
                    std::mem::swap(&mut self.last_text, &mut literal);
                }
                self.spare = literal;
                self.end_partial_block(event, out);
                // Of the records that are passed through, only streamed blocks can lack their end.
                if out.is_passing() {
                    partial::write_block_stop(ended.index, &mut self.stamp, out);
                }
            }
            Data::Block(block) => self.write_complete_block(block, event, out),
            Data::Withdrawn(withdrawn) => self.withdraw(withdrawn, event, out),
            Data::ToolStarted(started) if started.input.is_some() => {
                let call = (&started.call, &started.name, &started.kind);
                self.write_call(call, started.input.as_ref(), started.message.as_ref(), event, out);
            }
            Data::ToolStarted(started) => self.pending.add(started),
            Data::ToolInput(input) => {
                if self.pending.take(&input.call) {
                    self.check_late_input(input, out);
                    return;
                }
                let call = (&input.call, &input.name, &input.kind);
                self.write_call(call, input.input.as_ref(), input.message.as_ref(), event, out);
            }
            Data::ToolEnded(ended) => self.write_answer(ended, event, out),
            Data::ToolProgress(progress) => self.write_progress(progress, event, out),
            Data::TurnStarted(_) => self.open_turn(out),
            Data::TurnEnded(ended) => self.end_turn(ended, event, out),
            Data::SessionStarted(started) => self.set_session(started),
            Data::SessionUpdated(update) => self.update_session(update, out),
            Data::MessageStarted(started) => self.begin_message(started, event),
            // A message that only the grammar ended is ended with its turn.
            Data::MessageEnded(_) if event.parent.is_none() && event.synthetic.is_none() => {
                self.message_open = false;
            }
            Data::UserMessage(message) => self.write_user_message(message, event, out),
            Data::Interrupted(interrupted) => self.hold_interrupt(interrupted, event, out),
            Data::PlanUpdated(plan) => self.write_plan(plan, event, out),
            Data::Retry(retry) => self.write_retry(retry, out),
            _ => self.write_or_hold(event, out),
        }
    }

    fn withdraws(&self) -> Withdraws {
        Withdraws::OpenBlocks
    }
}

impl ClaudeEncoder {
    /// An encoder at the beginning of a stream.
    pub fn new(options: &EncodeOptions) -> Self {
        Self {
            stamp: Stamp::default(),
            facts: SessionStarted::default(),
            turn: Turn::default(),
            held: Vec::new(),
            init_written: false,
            session_id_generated: false,
            open: Vec::new(),
            spare: Bytes::new(),
            messages: Messages::default(),
            models: Models::default(),
            partial: options.partial.then(PartialMessage::default),
            message_open: false,
            last_text: Bytes::new(),
            calls: Calls::default(),
            pending: PendingCalls::default(),
            totals: Totals::default(),
        }
    }

    /// Retracts blocks that are not written yet, and their deltas if those were written.
    fn withdraw(&mut self, withdrawn: &Withdrawn<'_>, event: &Event<'_>, out: &mut Output) {
        let taken = |number| withdrawn.blocks.iter().any(|block| block.block == number);
        self.open.retain(|open| !taken(open.number));
        if let Some(partial) = self.partial.as_mut().filter(|_| event.parent.is_none())
            && partial.abandon(&mut self.stamp, out)
        {
            self.messages.end();
        }
    }

    fn write_complete_block(&mut self, block: &Block<'_>, event: &Event<'_>, out: &mut Output) {
        self.start_partial_block(&block.kind, block.message.as_ref(), event, out);
        if let Some(partial) = self.partial.as_mut().filter(|_| event.parent.is_none()) {
            partial.write_delta(&block.kind, &block.text, &mut self.stamp, out);
        }
        if block.kind == BlockKind::Image {
            let content = Content::Image(block.content.as_ref());
            self.write_assistant(&content, block.message.as_ref(), event, out);
        } else if let Some(literal) = block.text.as_literal() {
            self.write_complete_text(block, literal.as_bytes(), event, out);
        } else {
            let mut literal = Bytes::new();
            write::text(&mut literal, &block.text);
            self.write_complete_text(block, &literal, event, out);
        }
        self.end_partial_block(event, out);
    }

    fn write_complete_text(
        &mut self,
        block: &Block<'_>,
        literal: &[u8],
        event: &Event<'_>,
        out: &mut Output,
    ) {
        let signature = block.signature.as_ref();
        if self.write_block(&block.kind, literal, signature, block.message.as_ref(), event, out) {
            self.last_text.clear();
            self.last_text.extend_from_slice(literal);
        }
    }

    /// Writes a block with its complete text, given as a JSON literal; returns whether the text may
    /// be the answer of the turn.
    fn write_block(
        &mut self,
        kind: &BlockKind,
        literal: &[u8],
        signature: Option<&Text<'_>>,
        message: Option<&Text<'_>>,
        event: &Event<'_>,
        out: &mut Output,
    ) -> bool {
        let content = match kind {
            BlockKind::Text if literal == b"\"\"" => return false,
            BlockKind::Text => Content::Text(literal),
            BlockKind::Reasoning => Content::Thinking(literal, signature),
            BlockKind::HiddenReasoning => Content::Redacted(signature),
            _ => {
                out.lost("blocks of an unknown kind");
                return false;
            }
        };
        self.write_assistant(&content, message, event, out);
        *kind == BlockKind::Text && event.parent.is_none()
    }

    fn write_assistant(
        &mut self,
        content: &Content<'_>,
        message: Option<&Text<'_>>,
        event: &Event<'_>,
        out: &mut Output,
    ) {
        self.messages.enter(message, &mut self.stamp.identity);
        self.turn.stopped_in_call = false;
        let mut record = out.record("assistant");
        record.object("message", |fields| {
            fields.raw_bytes("id", &self.messages.id);
            fields.fixed(r#""type":"message","role":"assistant""#);
            fields.text("model", self.models.of(message, &self.facts));
            let out = fields.name("content");
            out.push(b'[');
            write_content(out, content);
            out.push(b']');
            fields.raw("stop_reason", "null").raw("stop_sequence", "null");
            fields.raw("usage", NOT_COUNTED_YET);
        });
        let cut = event.synthetic.as_ref().is_some_and(Reason::is_end_of_input);
        if cut || (self.turn.interrupted.is_some() && !self.turn.continued) {
            record.flag("aborted", true);
        }
        self.stamp.end_within(record, event);
    }

    fn write_user_message(
        &mut self,
        message: &UserMessage<'_>,
        event: &Event<'_>,
        out: &mut Output,
    ) {
        self.end_message(None, false, out);
        let mut record = out.record("user");
        record.object("message", |fields| {
            fields.raw("role", "\"user\"").text("content", &message.text);
        });
        let mark = if message.injected { "isSynthetic" } else { "isReplay" };
        record.flag(mark, true);
        self.stamp.end_within(record, event);
    }

    fn begin_message(&mut self, started: &MessageStarted<'_>, event: &Event<'_>) {
        if event.parent.is_none() {
            self.message_open = true;
            if self.facts.model.is_none() {
                self.facts.model = started.model.clone().map(Text::into_owned);
            }
        }
        self.models.begin(started, &self.facts);
    }

    fn start_partial_block(
        &mut self,
        kind: &BlockKind,
        message: Option<&Text<'_>>,
        event: &Event<'_>,
        out: &mut Output,
    ) {
        if event.parent.is_some() || self.partial.is_none() {
            return;
        }
        self.messages.enter(message, &mut self.stamp.identity);
        if let Some(partial) = &mut self.partial {
            let model = self.models.of(message, &self.facts);
            partial.start_block(&self.messages, model, kind, &mut self.stamp, out);
        }
    }

    fn end_partial_block(&mut self, event: &Event<'_>, out: &mut Output) {
        if let Some(partial) = self.partial.as_mut().filter(|_| event.parent.is_none()) {
            partial.end_block(&mut self.stamp, out);
        }
    }

    /// Ends the current message, with its stop reason and whether it was cut off.
    fn end_message(&mut self, stop_reason: Option<&Text<'_>>, cut: bool, out: &mut Output) {
        self.messages.end_request();
        if let Some(partial) = &mut self.partial {
            partial.end_message(stop_reason, cut, &mut self.stamp, out);
        }
    }
}

/// Whether an event starts something new in a turn, and does not only end what was open.
fn continues_turn(data: &Data<'_>) -> bool {
    matches!(
        data,
        Data::BlockStarted(_) | Data::Block(_) | Data::ToolStarted(_) | Data::UserMessage(_)
    )
}

impl Stamp {
    /// Generates the next ids for the entry that is being written.
    #[inline]
    fn follow(&mut self, out: &Output) {
        self.identity.follow(out);
        if self.session_id.is_empty() {
            self.identity.uuid().write(&mut self.session_id);
        }
    }

    /// Ends a record with the id of its session and its own id.
    pub(super) fn end(&mut self, mut record: Object<'_>) {
        record.raw_bytes("session_id", &self.session_id);
        self.identity.uuid().write(record.name("uuid"));
        record.end();
    }

    /// As [`Stamp::end`], for a record that may belong to a sub-agent and may state a time.
    fn end_within(&mut self, mut record: Object<'_>, event: &Event<'_>) {
        match &event.parent {
            Some(parent) => record.text("parent_tool_use_id", parent),
            None => record.fixed(r#""parent_tool_use_id":null"#),
        };
        if let Some(time) = event.time.as_ref().filter(|time| time.get().starts_with('"')) {
            record.json("timestamp", time);
        }
        self.end(record);
    }
}

impl Messages {
    /// The id of the current message, as a JSON literal.
    pub(super) fn id(&self) -> &[u8] {
        &self.id
    }

    /// Enters the message that a block belongs to, if it is not the current one.
    fn enter(&mut self, message: Option<&Text<'_>>, identity: &mut Identity) {
        if !std::mem::replace(&mut self.counted, true) {
            self.requests += 1;
        }
        match message {
            Some(id) if id.as_literal().is_some_and(|literal| literal.as_bytes() == self.id) => {}
            Some(id) => {
                self.id.clear();
                write::text(&mut self.id, id);
            }
            None if self.id.is_empty() => {
                self.id.push(b'"');
                identity.write_named("msg_", &mut self.id);
                self.id.push(b'"');
            }
            None => {}
        }
    }

    /// Ends the message: the next block without an id belongs to another one.
    fn end(&mut self) {
        self.id.clear();
    }

    /// Ends the message and its request.
    fn end_request(&mut self) {
        self.end();
        self.counted = false;
    }
}

fn write_content(out: &mut Bytes, content: &Content<'_>) {
    let mut block = Object::open(out);
    match content {
        Content::Text(literal) => {
            block.fixed(r#""type":"text""#).raw_bytes("text", literal);
        }
        Content::Thinking(literal, signature) => {
            block.raw("type", "\"thinking\"").raw_bytes("thinking", literal);
            match signature {
                Some(signature) => block.text("signature", signature),
                None => block.raw("signature", "\"\""),
            };
        }
        Content::Redacted(data) => {
            block.raw("type", "\"redacted_thinking\"").text_if("data", *data);
        }
        Content::Image(source) => {
            block.raw("type", "\"image\"").json_if("source", *source);
        }
        Content::ToolUse { call, name, input } => {
            block.fixed(r#""type":"tool_use""#).text("id", call).text("name", name);
            block.raw("input", input);
        }
    }
    block.close();
}
