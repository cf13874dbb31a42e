//! Writes the flat contract.

use super::calls::{
    TOOL_ROOM, TOOLS_ROOM, as_file_tool, named, tool_names, write_answer, write_call, write_names,
};
use super::hold::Hold;
use super::pieces::{self, Piece};
use super::result::Closing;
use super::shorten;
use super::turn::Turn;
use super::{LINE_LIMIT, NAME_LIMIT};
use crate::dialect::claude::tools as claude;
use crate::dialect::{Dialect, EncodeOptions, Encoder, Identity, Output, content};
use crate::event::{
    Block, BlockKind, Compacted, Data, Error, ErrorClass, Event, Executor, Outcome, PlanUpdated,
    SessionStarted, SessionUpdated, ToolEnded, ToolKind, ToolStatus, TurnEnded,
};
use crate::json::write::{self, Bytes, Object};
use crate::json::{Json, Text};

/// The room for a text in a line, beside the fields around it.
const TEXT_ROOM: usize = LINE_LIMIT - 200;
/// The room for the message of an error.
const MESSAGE_ROOM: usize = LINE_LIMIT / 2;

/// What `TodoWrite` says when it has done its work.
const PLAN_WRITTEN: &str = "Todos have been modified successfully";

/// The writer of `yume`.
#[derive(Debug)]
pub struct YumeEncoder {
    identity: Identity,
    hold: Hold,
    turn: Turn,
    /// The id of the session, once `init` was written.
    session: Option<Text<'static>>,
    chunks: u64,
    plans: u64,
    /// The stream that is read is in this dialect, and its records are passed on as they are.
    passed_on: bool,
}

impl YumeEncoder {
    /// A writer for one stream.
    pub fn new(options: &EncodeOptions) -> Self {
        Self {
            identity: Identity::new(options.id_seed),
            hold: Hold::default(),
            turn: Turn::default(),
            session: None,
            chunks: 0,
            plans: 0,
            passed_on: false,
        }
    }
}

impl Encoder for YumeEncoder {
    fn reading(&mut self, dialect: &'static Dialect) {
        self.passed_on = dialect.name == super::DIALECT.name;
    }

    fn encode(&mut self, event: &Event<'_>, out: &mut Output) {
        self.hold.forget(self.passed_on && event.source.synthetic.is_none());
        let aside = event.parent.is_some();
        match &event.data {
            Data::BlockDelta(piece) => {
                self.say(&piece.kind, piece.block, &piece.text, aside, out);
            }
            Data::Block(block) => self.block(block, aside, out),
            Data::BlockStarted(block) => count_block(&block.kind, aside, out),
            Data::BlockEnded(block) if block.signature.is_some() => out.lost("signature"),
            Data::ToolStarted(call) => {
                if aside {
                    out.lost("which sub-agent said it");
                }
                if call.input.is_some() {
                    let by_client = call.executor == Executor::Client;
                    let tool = (&call.name, &call.kind, call.input.as_ref());
                    self.call(&call.call, tool, by_client, out);
                }
            }
            Data::ToolInput(call) => {
                let by_client = call.executor == Executor::Client;
                let tool = (&call.name, &call.kind, call.input.as_ref());
                self.call(&call.call, tool, by_client, out);
            }
            Data::ToolEnded(ended) => self.answer(ended, out),
            Data::PlanUpdated(plan) => self.plan(plan, out),
            Data::SessionStarted(started) => self.started(started, out),
            Data::SessionUpdated(updated) => self.updated(updated, out),
            Data::TurnEnded(ended) => self.ended(ended, out),
            Data::Interrupted(_) => self.interrupted(out),
            Data::Error(error) => self.problem(error, out),
            Data::Compacted(compacted) => self.compacted(compacted, out),
            other => self.count(other, out),
        }
    }
}

impl YumeEncoder {
    /// Where the next lines go, once `init` was written.
    #[inline]
    fn lines<'b>(&'b mut self, out: &'b mut Output) -> &'b mut Bytes {
        self.ensure_init(out);
        self.hold.lines(out.bytes())
    }

    /// The first record of the stream is always `init`.
    #[inline]
    fn ensure_init(&mut self, out: &mut Output) {
        if self.session.is_none() {
            self.init(&SessionStarted::default(), out);
        }
    }

    fn init(&mut self, started: &SessionStarted<'_>, out: &mut Output) {
        let session = match &started.id {
            Some(id) => pieces::bounded(id, NAME_LIMIT).into_owned(),
            None => Text::from(self.own_id()),
        };
        let tools = started.tools.as_ref().map(tool_names).unwrap_or_default();
        if tools.iter().map(|name| name.len() + 3).sum::<usize>() > TOOLS_ROOM {
            out.lost("names of tools over the line limit");
        }
        let or = |text: &Option<Text<'_>>, default: &'static str| match text {
            Some(text) => pieces::bounded(text, NAME_LIMIT).into_owned(),
            None => Text::plain(default),
        };
        let mut record = out.record("system");
        record.string("subtype", "init");
        record.text("session_id", &session);
        record.text("model", &or(&started.model, "unknown"));
        record.text("cwd", &or(&started.cwd, ""));
        record.text("permissionMode", &or(&started.permission_mode, "default"));
        write_names(record.name("tools"), &tools);
        record.end();
        self.session = Some(session);
    }

    fn started(&mut self, started: &SessionStarted<'_>, out: &mut Output) {
        if started.version.is_some() {
            out.lost("version of the agent");
        }
        if self.session.is_none() {
            self.init(started, out);
        } else if let Some(id) = &started.id {
            self.renamed(id, out);
        }
    }

    fn updated(&mut self, updated: &SessionUpdated<'_>, out: &mut Output) {
        if let Some(id) = &updated.id {
            self.renamed(id, out);
        }
        let news = [
            (updated.model.is_some(), "change of model"),
            (updated.cwd.is_some(), "change of folder"),
            (updated.permission_mode.is_some(), "change of permission mode"),
            (updated.tools.is_some(), "change of tools"),
            (updated.version.is_some(), "version of the agent"),
            (updated.sandbox.is_some() || updated.snapshot.is_some(), "sandbox of the host"),
            (updated.relay.is_some(), "relay of the host"),
        ];
        for (_, what) in news.into_iter().filter(|(told, _)| *told) {
            out.lost(what);
        }
    }

    /// The session has another id from now on.
    fn renamed(&mut self, id: &Text<'_>, out: &mut Output) {
        self.ensure_init(out);
        let id = pieces::bounded(id, NAME_LIMIT);
        if self.session.as_ref() == Some(&id) {
            return;
        }
        let mut record = Object::record(self.hold.lines(out.bytes()), "system");
        record.string("subtype", "session_id").text("session_id", &id);
        record.end();
        self.session = Some(id.into_owned());
    }

    fn block(&mut self, block: &Block<'_>, aside: bool, out: &mut Output) {
        count_block(&block.kind, aside, out);
        if block.signature.is_some() && block.kind != BlockKind::HiddenReasoning {
            out.lost("signature");
        }
        self.say(&block.kind, block.block, &block.text, aside, out);
    }

    /// Writes text or reasoning, in as many records as it takes.
    #[inline]
    fn say(
        &mut self,
        kind: &BlockKind,
        block: u64,
        text: &Text<'_>,
        aside: bool,
        out: &mut Output,
    ) {
        if text.is_empty() {
            return;
        }
        let write: fn(&mut Object<'_>, Piece<'_>) = match kind {
            BlockKind::Text => |record, piece| piece.write(record.name("content")),
            BlockKind::Reasoning => |record, piece| {
                record.flag("is_thinking", true);
                piece.write(record.name("thought"));
            },
            _ => return,
        };
        let is_text = *kind == BlockKind::Text;
        if is_text && !aside {
            self.turn.said(block, text);
        } else {
            self.turn.said_aside(text);
        }
        self.ensure_init(out);
        for piece in pieces::pieces(text, TEXT_ROOM) {
            self.chunks += 1;
            let lines = self.hold.lines(out.bytes());
            let mut record = Object::record(lines, if is_text { "text" } else { "thinking" });
            write(&mut record, piece);
            write_chunk_id(record.name("id"), self.chunks);
            record.end();
        }
    }

    fn call(
        &mut self,
        id: &Text<'_>,
        (name, kind, input): (&Text<'_>, &ToolKind, Option<&Json<'_>>),
        by_client: bool,
        out: &mut Output,
    ) {
        self.ensure_init(out);
        self.turn.called();
        if input.is_some_and(|input| !input.is_object()) {
            out.lost("tool input that is no object");
        }
        let (name, input) = as_file_tool(name, kind, input);
        let short = (input.len() > TOOL_ROOM).then(|| shorten::object(&input, TOOL_ROOM));
        if short.is_some() {
            out.lost("tool input over the line limit");
        }
        let id = named(id);
        self.hold.call(&id.to_plain(), out.bytes(), |lines| {
            let input = short.as_deref().unwrap_or(&input);
            write_call(lines, (&id, &named(&name)), input, by_client);
        });
    }

    fn answer(&mut self, ended: &ToolEnded<'_>, out: &mut Output) {
        self.ensure_init(out);
        let (text, others) = content::answer_text(ended);
        for _ in 0..others {
            out.lost("tool output that is no text");
        }
        if ended.structured.is_some() {
            out.lost("structured tool output");
        }
        if ended.exit_code.is_some() {
            out.lost("exit code of a command");
        }
        let failed = ended.status != ToolStatus::Completed;
        let id = named(&ended.call);
        let waited_for = self.hold.answer(&id.to_plain(), out.bytes(), |lines| {
            write_answer(lines, &id, &text, failed);
        });
        if !waited_for {
            out.lost("answer that came after its turn");
        }
    }

    /// A plan that no tool call wrote is told as one.
    fn plan(&mut self, plan: &PlanUpdated<'_>, out: &mut Output) {
        // In a stream that is passed on, every plan is there already.
        if plan.call.is_some() || self.passed_on {
            return;
        }
        self.turn.called();
        self.plans += 1;
        let id = Text::from(format!("plan-{}", self.plans));
        let input = claude::todo_input(&plan.items);
        let short =
            (input.get().len() > TOOL_ROOM).then(|| shorten::object(input.get(), TOOL_ROOM));
        if short.is_some() {
            out.lost("tool input over the line limit");
        }
        let lines = self.lines(out);
        let input = short.as_deref().unwrap_or(input.get());
        write_call(lines, (&id, &Text::plain("TodoWrite")), input, false);
        write_answer(lines, &id, &Text::plain(PLAN_WRITTEN), false);
    }

    fn interrupted(&mut self, out: &mut Output) {
        if self.turn.interrupted() {
            Object::record(self.lines(out), "interrupt").end();
        }
    }

    fn problem(&mut self, error: &Error<'_>, out: &mut Output) {
        let status = error.http_status.map(|status| Text::from(status.to_string()));
        let code = error.code.as_ref().or(status.as_ref());
        self.tell_error(&error.class, &error.message, code, out);
    }

    /// Tells an error once.
    fn tell_error(
        &mut self,
        class: &ErrorClass,
        message: &Text<'_>,
        code: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        if !self.turn.is_news(message) {
            return;
        }
        let not_set_up = matches!(class, ErrorClass::Authentication | ErrorClass::Configuration)
            && self.turn.no_response_but(message);
        let uuid = self.own_id();
        let lines = self.lines(out);
        let (message, _) = pieces::start(message, MESSAGE_ROOM);
        let mut record;
        if not_set_up {
            record = Object::record(lines, "system");
            record.string("subtype", "error");
            message.write(record.name("message"));
        } else {
            record = Object::record(lines, "error");
            message.write(record.name("message"));
            if let Some(code) = code {
                record.text("code", &pieces::bounded(code, NAME_LIMIT));
            }
        }
        record.string("uuid", &uuid);
        record.end();
    }

    fn compacted(&mut self, compacted: &Compacted<'_>, out: &mut Output) {
        if compacted.tokens_after.is_some() {
            out.lost("tokens after a compaction");
        }
        let auto = Text::plain("auto");
        let trigger = pieces::bounded(compacted.trigger.as_ref().unwrap_or(&auto), NAME_LIMIT);
        let mut record = Object::record(self.lines(out), "system");
        record.string("subtype", "compact_boundary");
        record.object("compact_metadata", |metadata| {
            metadata.text("trigger", &trigger);
            metadata.number_if("pre_tokens", compacted.tokens_before);
        });
        record.end();
    }

    fn ended(&mut self, ended: &TurnEnded<'_>, out: &mut Output) {
        self.ensure_init(out);
        self.hold.settle(out.bytes());
        if ended.outcome == Outcome::Cancelled {
            self.interrupted(out);
        }
        self.tell_cause(ended, out);
        let uuid = format!("\"{}\"", self.own_id());
        let turn = std::mem::take(&mut self.turn);
        let session = self.session.clone().unwrap_or_default();
        Closing { turn: &turn, session: &session, uuid: &uuid }.write(ended, out);
    }

    /// Tells why a turn failed, where no record has told it yet.
    fn tell_cause(&mut self, ended: &TurnEnded<'_>, out: &mut Output) {
        let too_slow = Text::plain("the turn took too long");
        let cause = match (&ended.outcome, &ended.cause) {
            (Outcome::TimedOut, None) if !self.turn.told_any() => &too_slow,
            (
                Outcome::Completed
                | Outcome::Cancelled
                | Outcome::LimitReached
                | Outcome::WaitingForClient,
                _,
            )
            | (_, None) => return,
            (_, Some(cause)) => cause,
        };
        let class = ended.http_status.map(ErrorClass::of_http_status).unwrap_or_default();
        let code = ended.http_status.map(|status| Text::from(status.to_string()));
        self.tell_error(&class, cause, code.as_ref(), out);
    }

    /// Counts what the contract has no record for.
    fn count(&mut self, data: &Data<'_>, out: &mut Output) {
        let what = match data {
            Data::UserMessage(message) => {
                self.turn.asked(&message.text);
                "user message"
            }
            Data::Retry(retry) => {
                self.turn.retried(retry);
                return;
            }
            // What these say is also said by others.
            Data::TurnStarted(_)
            | Data::MessageStarted(_)
            | Data::MessageEnded(_)
            | Data::BlockEnded(_)
            | Data::ToolInputDelta(_) => return,
            Data::FilesChanged(files) if files.call.is_some() => return,
            Data::FilesChanged(_) => "file changes outside a tool",
            Data::SessionEnded(end) if end.exit_code.is_none_or(|code| code == 0) => {
                match (end.signal, &end.stderr) {
                    (None, None) => return,
                    _ => "how the agent's process ended",
                }
            }
            Data::SessionEnded(_) => "how the agent's process ended",
            Data::ToolProgress(_) => "tool progress",
            Data::PermissionRequested(_) | Data::PermissionResolved(_) => "permission",
            Data::QuestionAsked(_) | Data::QuestionAnswered(_) => "question to the user",
            Data::Usage(_) => "usage in the middle of a turn",
            Data::Limit(_) => "limit of the account",
            Data::Notice(_) => "notice",
            Data::SubagentStarted(_) | Data::SubagentEnded(_) => "sub-agent",
            Data::Artifact(_) => "artifact",
            Data::Native(_) => "record of the agent's own",
            Data::Unknown(_) => "unknown record",
            Data::Unparsed(_) => "text that is no record",
            Data::Log(_) => "log line",
            _ => "event of another kind",
        };
        out.lost(what);
    }

    /// A new id, as plain text.
    fn own_id(&mut self) -> String {
        let mut quoted = Bytes::new();
        self.identity.uuid().write(&mut quoted);
        String::from_utf8_lossy(&quoted).trim_matches('"').to_owned()
    }
}

/// Counts what a block is that cannot be written, and who said it.
fn count_block(kind: &BlockKind, aside: bool, out: &mut Output) {
    match kind {
        BlockKind::Text | BlockKind::Reasoning if aside => out.lost("which sub-agent said it"),
        BlockKind::Text | BlockKind::Reasoning => {}
        BlockKind::HiddenReasoning => out.lost("hidden reasoning"),
        BlockKind::Image => out.lost("picture"),
        _ => out.lost("block of another kind"),
    }
}

fn write_chunk_id(out: &mut Bytes, number: u64) {
    out.extend_from_slice(b"\"chunk-");
    write::number(out, number);
    out.push(b'"');
}
