//! Writes what Claude Code prints: nested records, one content block a line.

mod asked;
mod calls;
mod ending;
mod models;
mod session;

use super::partial::{self, Pieces};
use super::result::Spent;
use crate::dialect::encode::Identity;
use crate::dialect::{EncodeOptions, Encoder, Output, Withdraws};
use crate::event::{
    Block, BlockKind, Data, Event, MessageStarted, Reason, SessionStarted, UserMessage, Withdrawn,
};
use crate::json::write::{self, Bytes, Object};
use crate::json::{Json, Text};
use asked::Announced;
use calls::Calls;
use models::Models;

/// The writer of `claude`.
#[derive(Debug, Clone)]
pub struct ClaudeEncoder {
    pub(super) stamp: Stamp,
    facts: SessionStarted<'static>,
    pub(super) turn: Turn,
    /// What came before the first `init`, which says whose records these are.
    early: Vec<Event<'static>>,
    introduced: bool,
    /// The agent has not named the session, and its records bear a name of ours.
    nameless: bool,
    /// Blocks whose text is being collected, since a record holds a whole one.
    open: Vec<OpenBlock>,
    /// A buffer that the next block may use.
    spare: Bytes,
    messages: Messages,
    models: Models,
    pieces: Option<Pieces>,
    /// A message has begun, and not ended.
    passed_message: bool,
    last_text: Bytes,
    calls: Calls,
    announced: Announced,
    spent: Spent,
}

/// The turn at hand.
#[derive(Debug, Clone, Default)]
pub(super) struct Turn {
    /// Its `init` was written, and its `result` was not.
    pub(super) open: bool,
    began_ms: Option<u64>,
    /// What was said when a request was tried again: the end need not say it once more.
    pub(super) retries: Vec<Text<'static>>,
    /// The last thing that happened is that a call was stopped.
    stopped_in_call: bool,
    /// Somebody stopped it, and what was open then has yet to end.
    interrupted: Option<Event<'static>>,
    /// It went on after that.
    went_on: bool,
    /// The grammar ended the last turn, and said all that is known of the end.
    pub(super) end_added: bool,
}

/// What every record ends with.
#[derive(Debug, Clone, Default)]
pub(super) struct Stamp {
    identity: Identity,
    session_id: Bytes,
}

#[derive(Debug, Clone)]
struct OpenBlock {
    number: u64,
    /// The text so far, as a literal that lacks its last quote.
    literal: Bytes,
}

/// Which message a block belongs to, where the agent does not say.
#[derive(Debug, Clone, Default)]
pub(super) struct Messages {
    /// The id of the message at hand, as a literal; empty between messages.
    id: Bytes,
    /// How many requests they were, as far as one can tell: an answer to a call begins another.
    requests: u64,
    /// The message at hand is of a request that was counted.
    counted: bool,
}

/// The usage that a message has when it is written: the real counts come with the result. Claude
/// Code prints a placeholder here too, and programs read it without asking whether it is there.
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
            self.pieces = None;
        }
        if !self.introduced && self.turn.open && self.init_waits(event, out) {
            return;
        }
        if self.turn.interrupted.is_some() && goes_on(&event.data) {
            self.turn.went_on = true;
        }
        // What was open is answered before.
        if self.turn.went_on && self.calls.none_open() {
            self.tell_interrupt(out);
        }
        match &event.data {
            Data::BlockStarted(block) => {
                let mut literal = std::mem::take(&mut self.spare);
                literal.clear();
                literal.push(b'"');
                self.open.push(OpenBlock { number: block.block, literal });
                self.begin_pieces(&block.kind, block.message.as_ref(), event, out);
            }
            Data::BlockDelta(delta) => {
                if let Some(open) = self.open.iter_mut().rfind(|open| open.number == delta.block) {
                    write::text_body(&mut open.literal, &delta.text);
                }
                if let Some(pieces) = self.pieces.as_mut().filter(|_| event.parent.is_none()) {
                    pieces.delta(&delta.kind, &delta.text, &mut self.stamp, out);
                }
            }
            Data::BlockEnded(ended) => {
                let Some(at) = self.open.iter().rposition(|open| open.number == ended.block) else {
                    return;
                };
                let mut literal = self.open.remove(at).literal;
                literal.push(b'"');
                let (signature, message) = (ended.signature.as_ref(), ended.message.as_ref());
                if self.said(&ended.kind, &literal, signature, message, event, out) {
                    std::mem::swap(&mut self.last_text, &mut literal);
                }
                self.spare = literal;
                self.end_pieces(event, out);
                // Of Claude's own records, only those in pieces have an end that can be missing.
                if out.is_passing() {
                    partial::stop_block(ended.index, &mut self.stamp, out);
                }
            }
            Data::Block(block) => self.whole(block, event, out),
            Data::Withdrawn(withdrawn) => self.withdraw(withdrawn, event, out),
            Data::ToolStarted(started) if started.input.is_some() => {
                let call = (&started.call, &started.name, &started.kind);
                self.call(call, started.input.as_ref(), started.message.as_ref(), event, out);
            }
            Data::ToolStarted(started) => self.announced.add(started),
            Data::ToolInput(input) => {
                if self.announced.take(&input.call) {
                    self.input_after_the_question(input, out);
                    return;
                }
                let call = (&input.call, &input.name, &input.kind);
                self.call(call, input.input.as_ref(), input.message.as_ref(), event, out);
            }
            Data::ToolEnded(ended) => self.answer(ended, event, out),
            Data::ToolProgress(progress) => self.progress(progress, event, out),
            Data::TurnStarted(_) => self.open_turn(out),
            Data::TurnEnded(ended) => self.end_turn(ended, event, out),
            Data::SessionStarted(started) => self.learn(started),
            Data::SessionUpdated(update) => self.update(update, out),
            Data::MessageStarted(started) => self.begin_message(started, event),
            // What only the grammar ended still has to be ended here, with the turn.
            Data::MessageEnded(_) if event.parent.is_none() && event.synthetic.is_none() => {
                self.passed_message = false;
            }
            Data::UserMessage(message) => self.user_message(message, event, out),
            Data::Interrupted(interrupted) => self.interrupted(interrupted, event, out),
            Data::PlanUpdated(plan) => self.plan(plan, event, out),
            Data::Retry(retry) => self.retry(retry, out),
            _ => self.beside(event, out),
        }
    }

    fn withdraws(&self) -> Withdraws {
        Withdraws::OpenBlocks
    }
}

impl ClaudeEncoder {
    /// A writer as the caller wants it.
    pub fn new(options: &EncodeOptions) -> Self {
        Self {
            stamp: Stamp::default(),
            facts: SessionStarted::default(),
            turn: Turn::default(),
            early: Vec::new(),
            introduced: false,
            nameless: false,
            open: Vec::new(),
            spare: Bytes::new(),
            messages: Messages::default(),
            models: Models::default(),
            pieces: options.partial.then(Pieces::default),
            passed_message: false,
            last_text: Bytes::new(),
            calls: Calls::default(),
            announced: Announced::default(),
            spent: Spent::default(),
        }
    }

    /// Forgets blocks that were not written yet; where their pieces were, says that they are void.
    fn withdraw(&mut self, withdrawn: &Withdrawn<'_>, event: &Event<'_>, out: &mut Output) {
        let taken = |number| withdrawn.blocks.iter().any(|block| block.block == number);
        self.open.retain(|open| !taken(open.number));
        if let Some(pieces) = self.pieces.as_mut().filter(|_| event.parent.is_none())
            && pieces.abandon(&mut self.stamp, out)
        {
            self.messages.begin_another();
        }
    }

    fn whole(&mut self, block: &Block<'_>, event: &Event<'_>, out: &mut Output) {
        self.begin_pieces(&block.kind, block.message.as_ref(), event, out);
        if let Some(pieces) = self.pieces.as_mut().filter(|_| event.parent.is_none()) {
            pieces.delta(&block.kind, &block.text, &mut self.stamp, out);
        }
        if block.kind == BlockKind::Image {
            let content = Content::Image(block.content.as_ref());
            self.assistant(&content, block.message.as_ref(), event, out);
        } else if let Some(literal) = block.text.as_literal() {
            self.said_at_once(block, literal.as_bytes(), event, out);
        } else {
            let mut literal = Bytes::new();
            write::text(&mut literal, &block.text);
            self.said_at_once(block, &literal, event, out);
        }
        self.end_pieces(event, out);
    }

    fn said_at_once(
        &mut self,
        block: &Block<'_>,
        literal: &[u8],
        event: &Event<'_>,
        out: &mut Output,
    ) {
        let signature = block.signature.as_ref();
        if self.said(&block.kind, literal, signature, block.message.as_ref(), event, out) {
            self.last_text.clear();
            self.last_text.extend_from_slice(literal);
        }
    }

    /// Writes a block whose text is whole, given as a literal; says whether it may be the last word.
    fn said(
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
        self.assistant(&content, message, event, out);
        *kind == BlockKind::Text && event.parent.is_none()
    }

    fn assistant(
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
        if cut || (self.turn.interrupted.is_some() && !self.turn.went_on) {
            record.flag("aborted", true);
        }
        self.stamp.end_within(record, event);
    }

    fn user_message(&mut self, message: &UserMessage<'_>, event: &Event<'_>, out: &mut Output) {
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
            self.passed_message = true;
            if self.facts.model.is_none() {
                self.facts.model = started.model.clone().map(Text::into_owned);
            }
        }
        self.models.begin(started, &self.facts);
    }

    fn begin_pieces(
        &mut self,
        kind: &BlockKind,
        message: Option<&Text<'_>>,
        event: &Event<'_>,
        out: &mut Output,
    ) {
        if event.parent.is_some() || self.pieces.is_none() {
            return;
        }
        self.messages.enter(message, &mut self.stamp.identity);
        if let Some(pieces) = &mut self.pieces {
            let model = self.models.of(message, &self.facts);
            pieces.block(&self.messages, model, kind, &mut self.stamp, out);
        }
    }

    fn end_pieces(&mut self, event: &Event<'_>, out: &mut Output) {
        if let Some(pieces) = self.pieces.as_mut().filter(|_| event.parent.is_none()) {
            pieces.end_block(&mut self.stamp, out);
        }
    }

    /// Ends the message at hand: why, and whether it was cut off.
    fn end_message(&mut self, stop_reason: Option<&Text<'_>>, cut: bool, out: &mut Output) {
        self.messages.leave();
        if let Some(pieces) = &mut self.pieces {
            pieces.end_message(stop_reason, cut, &mut self.stamp, out);
        }
    }
}

/// Whether something new begins, where others only end what was open.
fn goes_on(data: &Data<'_>) -> bool {
    matches!(
        data,
        Data::BlockStarted(_) | Data::Block(_) | Data::ToolStarted(_) | Data::UserMessage(_)
    )
}

impl Stamp {
    /// Makes the ids to come for the entry that is being written.
    #[inline]
    fn follow(&mut self, out: &Output) {
        self.identity.follow(out);
        if self.session_id.is_empty() {
            self.identity.uuid().write(&mut self.session_id);
        }
    }

    /// Ends a record: whose session it is of, and its own id.
    pub(super) fn end(&mut self, mut record: Object<'_>) {
        record.raw_bytes("session_id", &self.session_id);
        self.identity.uuid().write(record.name("uuid"));
        record.end();
    }

    /// As [`Stamp::end`], for a record that a sub-agent may have said, at a time of its own.
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
    /// The literal of the id of the message at hand.
    pub(super) fn id(&self) -> &[u8] {
        &self.id
    }

    /// Begins the message that a block belongs to, if it is another one than that at hand.
    fn enter(&mut self, told: Option<&Text<'_>>, identity: &mut Identity) {
        if !std::mem::replace(&mut self.counted, true) {
            self.requests += 1;
        }
        match told {
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

    /// The next block without an id belongs to another message.
    fn begin_another(&mut self) {
        self.id.clear();
    }

    /// As [`Messages::begin_another`], and that is of another request.
    fn leave(&mut self) {
        self.begin_another();
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
