//! Writes what Claude Code prints: nested records, one content block a line.

use super::partial::Pieces;
use super::result::write_result;
use super::tools;
use crate::dialect::encode::Identity;
use crate::dialect::{Dialect, EncodeOptions, Encoder, Output};
use crate::event::{
    Block, BlockKind, Data, Event, Interrupted, PlanUpdated, Retry, SessionStarted, SessionUpdated,
    ToolEnded, ToolKind, ToolProgress, ToolStatus, TurnEnded, UserMessage, own_session,
};
use crate::json::write::{self, Bytes, Object};
use crate::json::{Json, Text};

/// The writer of `claude`.
#[derive(Debug)]
pub struct ClaudeEncoder {
    pub(super) stamp: Stamp,
    facts: SessionStarted<'static>,
    /// The next turn must be opened by an `init`.
    init_due: bool,
    /// Blocks whose text is being collected, since a record holds a whole one.
    open: Vec<OpenBlock>,
    /// A buffer that the next block may use.
    spare: Bytes,
    messages: Messages,
    pieces: Option<Pieces>,
    /// Claude's own records are passed on: only their pieces have an end that can be missing.
    passing: bool,
    last_text: Bytes,
    plans: u64,
    spent_usd: f64,
    turn_began_ms: Option<u64>,
}

/// What every record ends with.
#[derive(Debug)]
pub(super) struct Stamp {
    identity: Identity,
    session_id: Bytes,
}

#[derive(Debug)]
struct OpenBlock {
    number: u64,
    /// The text so far, as a literal that lacks its last quote.
    literal: Bytes,
}

/// Which message a block belongs to, where the agent does not say.
#[derive(Debug, Default)]
pub(super) struct Messages {
    /// The id of the message at hand, as a literal; empty between messages.
    id: Bytes,
    pub(super) count: u64,
    unnamed: u64,
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
        let parent = event.parent.as_ref();
        match &event.data {
            Data::BlockStarted(block) => {
                let mut literal = std::mem::take(&mut self.spare);
                literal.clear();
                literal.push(b'"');
                self.open.push(OpenBlock { number: block.block, literal });
                self.begin_pieces(&block.kind, block.message.as_ref(), parent, out);
            }
            Data::BlockDelta(delta) => {
                if let Some(open) = self.open.iter_mut().rfind(|open| open.number == delta.block) {
                    write::text_body(&mut open.literal, &delta.text);
                }
                if let Some(pieces) = self.pieces.as_mut().filter(|_| parent.is_none()) {
                    pieces.delta(&delta.kind, &delta.text, &mut self.stamp, out);
                }
            }
            Data::BlockEnded(ended) => {
                let Some(at) = self.open.iter().rposition(|open| open.number == ended.block) else {
                    return;
                };
                let mut literal = self.open.remove(at).literal;
                literal.push(b'"');
                let signature = ended.signature.as_ref();
                let last = self.said(
                    &ended.kind,
                    &literal,
                    signature,
                    ended.message.as_ref(),
                    parent,
                    out,
                );
                if last {
                    std::mem::swap(&mut self.last_text, &mut literal);
                }
                self.spare = literal;
                self.end_pieces(parent, out);
                if self.passing {
                    super::partial::stop_block(ended.index, &mut self.stamp, out);
                }
            }
            Data::Block(block) => self.whole(block, parent, out),
            Data::ToolStarted(started) if started.input.is_some() => {
                let call = (&started.call, &started.name, &started.kind);
                self.call(call, started.input.as_ref(), started.message.as_ref(), parent, out);
            }
            Data::ToolInput(input) => {
                let call = (&input.call, &input.name, &input.kind);
                self.call(call, input.input.as_ref(), input.message.as_ref(), parent, out);
            }
            Data::ToolEnded(ended) => self.answer(ended, parent, out),
            Data::ToolProgress(progress) => self.progress(progress, out),
            Data::TurnStarted(_) => {
                self.turn_began_ms = out.now_ms();
                self.open_turn(out);
            }
            Data::TurnEnded(ended) => self.end_turn(ended, out),
            Data::SessionStarted(started) => {
                self.learn(started);
                self.open_turn(out);
            }
            Data::SessionUpdated(update) => self.update(update, out),
            Data::UserMessage(message) => self.user_message(message, parent, out),
            Data::Interrupted(interrupted) => self.interrupted(interrupted, parent, out),
            Data::PlanUpdated(plan) => self.plan(plan, parent, out),
            Data::Retry(retry) => self.retry(retry, out),
            other => self.aside(other, out),
        }
    }

    fn reading(&mut self, dialect: &'static Dialect) {
        self.passing = dialect.name == "claude";
        if self.passing {
            self.pieces = None;
        }
    }
}

impl ClaudeEncoder {
    /// A writer as the caller wants it.
    pub fn new(options: &EncodeOptions) -> Self {
        let mut identity = Identity::new(options.id_seed);
        let mut session_id = Bytes::new();
        identity.uuid().write(&mut session_id);
        Self {
            stamp: Stamp { identity, session_id },
            facts: SessionStarted::default(),
            init_due: true,
            open: Vec::new(),
            spare: Bytes::new(),
            messages: Messages::default(),
            pieces: options.partial.then(Pieces::default),
            passing: false,
            last_text: Bytes::new(),
            plans: 0,
            spent_usd: 0.0,
            turn_began_ms: None,
        }
    }

    fn learn(&mut self, started: &SessionStarted<'_>) {
        self.facts = own_session(started.clone());
        if let Some(id) = &started.id {
            self.stamp.session_id.clear();
            write::text(&mut self.stamp.session_id, id);
        }
    }

    fn update(&mut self, update: &SessionUpdated<'_>, out: &mut Output) {
        let own = |text: &Option<Text<'_>>| text.clone().map(Text::into_owned);
        self.facts.model = own(&update.model).or(self.facts.model.take());
        self.facts.cwd = own(&update.cwd).or(self.facts.cwd.take());
        if let Some(id) = &update.id {
            self.stamp.session_id.clear();
            write::text(&mut self.stamp.session_id, id);
        }
        if let Some(mode) = &update.permission_mode {
            self.facts.permission_mode = Some(mode.clone().into_owned());
            let mut record = out.record("system");
            record.string("subtype", "status").raw("status", "null");
            record.text("permissionMode", mode);
            self.stamp.end(record);
        }
        if update.sandbox.is_some() || update.snapshot.is_some() || update.relay.is_some() {
            out.lost("host facts (sandbox, relay)");
        }
    }

    /// Writes the `init` of a turn, once.
    fn open_turn(&mut self, out: &mut Output) {
        if !std::mem::replace(&mut self.init_due, false) {
            return;
        }
        let unknown = Text::plain("unknown");
        let (nowhere, usual) = (Text::default(), Text::plain("default"));
        let mut record = out.record("system");
        record.string("subtype", "init").text("cwd", self.facts.cwd.as_ref().unwrap_or(&nowhere));
        record.raw_bytes("session_id", &self.stamp.session_id);
        match self.facts.tools.as_ref().filter(|tools| tools.is_array()) {
            Some(tools) => record.json("tools", tools),
            None => record.raw("tools", "[]"),
        };
        record.raw("mcp_servers", "[]");
        record.text("model", self.facts.model.as_ref().unwrap_or(&unknown));
        record.text("permissionMode", self.facts.permission_mode.as_ref().unwrap_or(&usual));
        record.raw("slash_commands", "[]").string("apiKeySource", "none");
        record.text_if("claude_code_version", self.facts.version.as_ref());
        record.string("output_style", "default");
        record.raw("agents", "[]").raw("skills", "[]").raw("plugins", "[]");
        self.stamp.identity.uuid().write(record.name("uuid"));
        record.end();
    }

    fn end_turn(&mut self, ended: &TurnEnded<'_>, out: &mut Output) {
        self.end_message(true, out);
        self.spent_usd += ended.cost.as_ref().map_or(0.0, |cost| cost.usd);
        let duration = ended.duration_ms.or_else(|| {
            let began = self.turn_began_ms?;
            out.now_ms().map(|now| now.saturating_sub(began).max(1))
        });
        let said = std::mem::take(&mut self.last_text);
        let mut record = out.record("result");
        write_result(&mut record, ended, &said, duration, self.messages.count, self.spent_usd);
        if let (Some(model), Some(usage)) = (&self.facts.model, &ended.usage) {
            super::result::write_model_usage(&mut record, model, usage, ended.cost.as_ref());
        }
        self.stamp.end(record);
        self.messages.count = 0;
        self.init_due = true;
    }

    fn whole(&mut self, block: &Block<'_>, parent: Option<&Text<'_>>, out: &mut Output) {
        self.begin_pieces(&block.kind, block.message.as_ref(), parent, out);
        if let Some(pieces) = self.pieces.as_mut().filter(|_| parent.is_none()) {
            pieces.delta(&block.kind, &block.text, &mut self.stamp, out);
        }
        if block.kind == BlockKind::Image {
            let content = Content::Image(block.content.as_ref());
            self.assistant(&content, block.message.as_ref(), parent, out);
        } else if let Text::Literal(raw) = &block.text {
            self.said_at_once(block, raw.get().as_bytes(), parent, out);
        } else {
            let mut literal = Bytes::new();
            write::text(&mut literal, &block.text);
            self.said_at_once(block, &literal, parent, out);
        }
        self.end_pieces(parent, out);
    }

    fn said_at_once(
        &mut self,
        block: &Block<'_>,
        literal: &[u8],
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let signature = block.signature.as_ref();
        if self.said(&block.kind, literal, signature, block.message.as_ref(), parent, out) {
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
        parent: Option<&Text<'_>>,
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
        self.assistant(&content, message, parent, out);
        *kind == BlockKind::Text && parent.is_none()
    }

    fn call(
        &mut self,
        (call, name, kind): (&Text<'_>, &Text<'_>, &ToolKind),
        input: Option<&Json<'_>>,
        message: Option<&Text<'_>>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let input = tools::input(name, kind, input);
        let name = tools::name(name, kind);
        self.messages.enter(message);
        if let Some(pieces) = self.pieces.as_mut().filter(|_| parent.is_none()) {
            pieces.call(
                &self.messages,
                self.facts.model.as_ref(),
                call,
                &name,
                &mut self.stamp,
                out,
            );
            pieces.input(&input, &mut self.stamp, out);
        }
        let content = Content::ToolUse { call, name: &name, input: &input };
        self.assistant(&content, message, parent, out);
        self.end_pieces(parent, out);
    }

    fn assistant(
        &mut self,
        content: &Content<'_>,
        message: Option<&Text<'_>>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        self.messages.enter(message);
        let mut record = out.record("assistant");
        record.object("message", |fields| {
            fields.raw_bytes("id", &self.messages.id);
            fields.fixed(r#""type":"message","role":"assistant""#);
            fields.text_if("model", self.facts.model.as_ref());
            let out = fields.name("content");
            out.push(b'[');
            write_content(out, content);
            out.push(b']');
            fields.raw("stop_reason", "null").raw("stop_sequence", "null");
            fields.raw("usage", NOT_COUNTED_YET);
        });
        self.stamp.end_within(record, parent);
    }

    fn answer(&mut self, ended: &ToolEnded<'_>, parent: Option<&Text<'_>>, out: &mut Output) {
        self.end_message(false, out);
        let failed = ended.status != ToolStatus::Completed;
        if ended.exit_code.is_some_and(|code| code != 0) {
            out.lost("exit codes");
        }
        let (text, _) = match &ended.output {
            Some(output) if output.is_array() => (None, 0),
            _ => {
                let (text, others) = crate::dialect::content::answer_text(ended);
                (Some(text), others)
            }
        };
        let mut record = out.record("user");
        record.object("message", |fields| {
            fields.raw("role", "\"user\"");
            fields.objects("content", [ended], |block, ended| {
                block.text("tool_use_id", &ended.call).raw("type", "\"tool_result\"");
                match (&text, &ended.output) {
                    (Some(text), _) => {
                        block.text("content", text);
                    }
                    (None, Some(blocks)) => super::result::write_blocks(block, blocks),
                    (None, None) => {}
                }
                if failed {
                    block.flag("is_error", true);
                }
            });
        });
        record.json_if("tool_use_result", ended.structured.as_ref());
        self.stamp.end_within(record, parent);
    }

    fn progress(&mut self, progress: &ToolProgress<'_>, out: &mut Output) {
        if progress.output.is_some() {
            out.lost("output of running tools");
        }
        let mut record = out.record("tool_progress");
        record.text("tool_use_id", &progress.call);
        let seconds = progress.elapsed_ms.unwrap_or(0) / 1000;
        record.raw("parent_tool_use_id", "null").number("elapsed_time_seconds", seconds);
        self.stamp.end(record);
    }

    fn user_message(
        &mut self,
        message: &UserMessage<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        self.end_message(false, out);
        let mut record = out.record("user");
        record.object("message", |fields| {
            fields.raw("role", "\"user\"").text("content", &message.text);
        });
        let mark = if message.injected { "isSynthetic" } else { "isReplay" };
        record.flag(mark, true);
        self.stamp.end_within(record, parent);
    }

    fn interrupted(
        &mut self,
        interrupted: &Interrupted<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let usual = Text::plain("[Request interrupted by user]");
        let text = interrupted.text.as_ref().unwrap_or(&usual);
        let mut record = out.record("user");
        record.object("message", |fields| {
            fields.raw("role", "\"user\"");
            fields.objects("content", [text], |block, text| {
                block.raw("type", "\"text\"").text("text", text);
            });
        });
        self.stamp.end_within(record, parent);
    }

    /// A plan that no tool call wrote is told by the tool that Claude has for it.
    fn plan(&mut self, plan: &PlanUpdated<'_>, parent: Option<&Text<'_>>, out: &mut Output) {
        if plan.call.is_some() {
            return;
        }
        self.plans += 1;
        let call = Text::from(format!("plan-{}", self.plans));
        let input = tools::todo_input(&plan.items);
        let name = Text::plain("TodoWrite");
        let requests = self.messages.count;
        self.call((&call, &name, &ToolKind::Plan), Some(&input), None, parent, out);
        let done = Json::from(&Text::plain("Todos have been modified successfully"));
        let ended = ToolEnded { call, name, output: Some(done), ..ToolEnded::default() };
        self.answer(&ended, parent, out);
        self.messages.count = requests;
    }

    fn retry(&mut self, retry: &Retry<'_>, out: &mut Output) {
        let mut record = out.record("system");
        record.string("subtype", "api_retry");
        record.number_if("attempt", retry.attempt).number_if("max_retries", retry.of);
        record.number_if("retry_delay_ms", retry.delay_ms);
        match retry.http_status {
            Some(status) => record.number("error_status", status),
            None => record.raw("error_status", "null"),
        };
        match &retry.message {
            Some(message) => record.text("error", message),
            None => record.string("error", retry.class.as_str()),
        };
        self.stamp.end(record);
    }

    fn begin_pieces(
        &mut self,
        kind: &BlockKind,
        message: Option<&Text<'_>>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        if parent.is_some() || self.pieces.is_none() {
            return;
        }
        self.messages.enter(message);
        if let Some(pieces) = &mut self.pieces {
            let model = self.facts.model.as_ref();
            pieces.block(&self.messages, model, kind, &mut self.stamp, out);
        }
    }

    fn end_pieces(&mut self, parent: Option<&Text<'_>>, out: &mut Output) {
        if let Some(pieces) = self.pieces.as_mut().filter(|_| parent.is_none()) {
            pieces.end_block(&mut self.stamp, out);
        }
    }

    fn end_message(&mut self, last: bool, out: &mut Output) {
        self.messages.leave();
        if let Some(pieces) = &mut self.pieces {
            pieces.end_message(last, &mut self.stamp, out);
        }
    }
}

impl Stamp {
    /// Ends a record: whose session it is of, and its own id.
    pub(super) fn end(&mut self, mut record: Object<'_>) {
        record.raw_bytes("session_id", &self.session_id);
        self.identity.uuid().write(record.name("uuid"));
        record.end();
    }

    /// As [`Stamp::end`], for a record that a sub-agent may have said.
    pub(super) fn end_within(&mut self, mut record: Object<'_>, parent: Option<&Text<'_>>) {
        match parent {
            Some(parent) => record.text("parent_tool_use_id", parent),
            None => record.fixed(r#""parent_tool_use_id":null"#),
        };
        self.end(record);
    }
}

impl Messages {
    /// The literal of the id of the message at hand.
    pub(super) fn id(&self) -> &[u8] {
        &self.id
    }

    /// Begins the message that a block belongs to, if it is another one than that at hand.
    fn enter(&mut self, told: Option<&Text<'_>>) {
        match told {
            Some(id) => {
                let same = match id {
                    Text::Literal(raw) => raw.get().as_bytes() == self.id,
                    Text::Plain(_) => false,
                };
                if !same {
                    let mut literal = Bytes::with_capacity(id.body().len() + 2);
                    write::text(&mut literal, id);
                    self.count += u64::from(literal != self.id);
                    self.id = literal;
                }
            }
            None if self.id.is_empty() => {
                self.unnamed += 1;
                self.count += 1;
                self.id.extend_from_slice(b"\"msg_");
                write::number(&mut self.id, self.unnamed);
                self.id.push(b'"');
            }
            None => {}
        }
    }

    /// The next block without an id belongs to another message.
    fn leave(&mut self) {
        self.id.clear();
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
