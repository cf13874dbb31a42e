//! Writes the flat contract.

use std::borrow::Cow;

use super::calls::{
    TOOL_ROOM, Written, all_drawn, as_claude_tool, drawn_name, listed, named, with_exit_code,
    write_parent,
};
use super::hold::Hold;
use super::pieces::{self, Piece};
use super::result::Closing;
use super::session::Session;
use super::shorten;
use super::turn::Turn;
use super::{LINE_LIMIT, NAME_LIMIT};
use crate::dialect::claude::tools as claude;
use crate::dialect::{EncodeOptions, Encoder, Identity, Output, content};
use crate::event::{
    Block, BlockKind, Compacted, Data, Error, ErrorClass, Event, Executor, FilesChanged, Outcome,
    PlanUpdated, Reason, SessionStarted, SessionUpdated, ToolEnded, ToolKind, ToolStatus,
    TurnEnded,
};
use crate::json::write::{self, Bytes, Object};
use crate::json::{Json, Text};

/// The room for a text in a line, beside the fields around it.
const TEXT_ROOM: usize = LINE_LIMIT - 200 - NAME_LIMIT;
/// The room for the message of an error.
const MESSAGE_ROOM: usize = LINE_LIMIT / 2;

/// What `TodoWrite` says when it has done its work.
const PLAN_WRITTEN: &str = "Todos have been modified successfully";
/// What is said of a list that is shown again, since the one after it was refused.
const PLAN_STANDS: &str = "The earlier list stands";

/// The writer of `yume`.
#[derive(Debug, Clone)]
pub struct YumeEncoder {
    identity: Identity,
    hold: Hold,
    turn: Turn,
    session: Session,
    chunks: u64,
    plans: u64,
    /// The files that a call changed, as a list, until the call is answered.
    changed: Option<(Text<'static>, String)>,
}

impl YumeEncoder {
    /// A writer for one stream.
    pub fn new(_options: &EncodeOptions) -> Self {
        Self {
            identity: Identity::default(),
            hold: Hold::default(),
            turn: Turn::default(),
            session: Session::default(),
            chunks: 0,
            plans: 0,
            changed: None,
        }
    }
}

impl Encoder for YumeEncoder {
    fn encode(&mut self, event: &Event<'_>, out: &mut Output) {
        self.identity.follow(out);
        self.hold.forget(out.is_passing() && event.synthetic.is_none());
        let parent = event.parent.as_ref();
        match &event.data {
            Data::BlockDelta(piece) => {
                self.say(&piece.kind, piece.block, &piece.text, parent, out);
            }
            Data::Block(block) => self.block(block, parent, out),
            Data::BlockStarted(block) => count_block(&block.kind, out),
            Data::BlockEnded(block) if block.signature.is_some() => out.lost("signature"),
            Data::ToolStarted(call) => {
                if call.input.is_some() {
                    let by_client = call.executor == Executor::Client;
                    let tool = (&call.name, &call.kind, call.input.as_ref());
                    self.call(Written { id: &call.call, parent, by_client }, tool, out);
                }
            }
            Data::ToolInput(call) => {
                let by_client = call.executor == Executor::Client;
                let tool = (&call.name, &call.kind, call.input.as_ref());
                self.call(Written { id: &call.call, parent, by_client }, tool, out);
            }
            Data::ToolEnded(ended) => self.answer(ended, parent, out),
            Data::FilesChanged(files) => self.files(files, out),
            Data::PlanUpdated(plan) => {
                let refused = event.synthetic == Some(Reason::Refused);
                self.plan(plan, parent, refused, out);
            }
            Data::SessionStarted(started) => self.started(started, out),
            Data::SessionUpdated(updated) => self.updated(updated, out),
            Data::TurnEnded(ended) => self.ended(ended, out),
            Data::Interrupted(_) => self.interrupted(out),
            Data::Error(error) => self.problem(error, out),
            Data::Compacted(compacted) => self.compacted(compacted, out),
            other => self.count(other, out),
        }
    }

    fn finish(&mut self, out: &mut Output) {
        self.ensure_init(out);
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
        if !self.session.is_told() {
            let identity = &mut self.identity;
            self.session.write_init(|| own_id(identity), out);
        }
    }

    fn started(&mut self, started: &SessionStarted<'_>, out: &mut Output) {
        if started.version.is_some() {
            out.lost("version of the agent");
        }
        self.session.started(started);
        if out.is_passing() {
            // The stream has one of its own.
            self.ensure_init(out);
        }
    }

    fn updated(&mut self, updated: &SessionUpdated<'_>, out: &mut Output) {
        if let Some(id) = &updated.id
            && self.session.is_renamed_by(id)
        {
            self.renamed(id, out);
        }
        let told = self.session.is_told();
        if !told {
            self.session.learn(updated);
        }
        let news = [
            (told && updated.model.is_some(), "change of model"),
            (told && updated.cwd.is_some(), "change of folder"),
            (told && updated.permission_mode.is_some(), "change of permission mode"),
            (told && updated.tools.is_some(), "change of tools"),
            (updated.version.is_some(), "version of the agent"),
            (updated.sandbox.is_some() || updated.snapshot.is_some(), "sandbox of the host"),
            (updated.relay.is_some(), "relay of the host"),
        ];
        for (_, what) in news.into_iter().filter(|(lost, _)| *lost) {
            out.lost(what);
        }
    }

    /// The session has another id from now on.
    fn renamed(&mut self, id: &Text<'_>, out: &mut Output) {
        let mut record = Object::record(self.lines(out), "system");
        record.string("subtype", "session_id");
        record.text("session_id", &pieces::bounded(id, NAME_LIMIT));
        record.end();
        self.session.renamed(id);
    }

    fn block(&mut self, block: &Block<'_>, parent: Option<&Text<'_>>, out: &mut Output) {
        count_block(&block.kind, out);
        if block.signature.is_some() && block.kind != BlockKind::HiddenReasoning {
            out.lost("signature");
        }
        self.say(&block.kind, block.block, &block.text, parent, out);
    }

    /// Writes text or reasoning, in as many records as it takes.
    #[inline]
    fn say(
        &mut self,
        kind: &BlockKind,
        block: u64,
        text: &Text<'_>,
        parent: Option<&Text<'_>>,
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
        if is_text && parent.is_none() {
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
            write_parent(&mut record, parent);
            record.end();
        }
    }

    fn call(
        &mut self,
        call: Written<'_>,
        (name, kind, input): (&Text<'_>, &ToolKind, Option<&Json<'_>>),
        out: &mut Output,
    ) {
        self.ensure_init(out);
        self.turn.called();
        if input.is_some_and(|input| !input.is_object()) {
            out.lost("tool input that is no object");
        }
        let tool = as_claude_tool(name, kind, input);
        if tool.steps_changed {
            out.lost("status of a step");
        }
        let input = fitting(&tool.input, out);
        let id = named(call.id);
        self.hold.call(&id.to_plain(), out.bytes(), |lines| {
            Written { id: &id, ..call }.call(lines, &named(&tool.name), &input);
        });
    }

    fn answer(&mut self, ended: &ToolEnded<'_>, parent: Option<&Text<'_>>, out: &mut Output) {
        self.ensure_init(out);
        let (text, others) = content::answer_text(ended);
        for _ in 0..others {
            out.lost("tool output that is no text");
        }
        if ended.structured.is_some() {
            out.lost("structured tool output");
        }
        let failed = ended.status != ToolStatus::Completed;
        let code = ended.exit_code.filter(|code| failed && *code != 0);
        if code.is_none() && ended.exit_code.is_some() {
            out.lost("exit code of a command");
        }
        let changed = self.changed.take_if(|(call, _)| *call == ended.call);
        let text = match (code, changed) {
            (Some(code), _) => with_exit_code(code, text),
            (None, Some((_, files))) if text.is_empty() && !failed => Text::from(files),
            (None, _) if text.is_empty() && failed => claude::unsaid(
                &ended.status,
                &drawn_name(claude::name(&ended.name, &ended.kind), &ended.kind),
            ),
            _ => text,
        };
        let id = named(&ended.call);
        let waited_for = self.hold.answer(&id.to_plain(), out.bytes(), |lines| {
            Written { id: &id, parent, by_client: false }.answer(lines, &text, failed);
        });
        if !waited_for {
            out.lost("answer that came after its turn");
        }
    }

    /// Keeps which files a call changed, for an answer that says nothing.
    fn files(&mut self, files: &FilesChanged<'_>, out: &mut Output) {
        match &files.call {
            Some(call) => self.changed = Some((call.clone().into_owned(), listed(&files.changes))),
            None => out.lost("file changes outside a tool"),
        }
    }

    /// A plan that no tool call wrote is told as one. A refused one leaves the list before it, which
    /// is shown again if there was any.
    fn plan(
        &mut self,
        plan: &PlanUpdated<'_>,
        parent: Option<&Text<'_>>,
        refused: bool,
        out: &mut Output,
    ) {
        // In a stream that is passed on, every plan is there already.
        if plan.call.is_some() || out.is_passing() || (refused && plan.items.is_empty()) {
            return;
        }
        self.turn.called();
        self.plans += 1;
        let id = Text::from(format!("plan-{}", self.plans));
        let input = claude::todo_input(&plan.items);
        if !all_drawn(&plan.items) {
            out.lost("status of a step");
        }
        let input = fitting(input.get(), out);
        let lines = self.lines(out);
        let written = Written { id: &id, parent, by_client: false };
        written.call(lines, &Text::plain("TodoWrite"), &input);
        let answer = if refused { PLAN_STANDS } else { PLAN_WRITTEN };
        written.answer(lines, &Text::plain(answer), false);
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
        let not_set_up = matches!(
            class,
            ErrorClass::Authentication | ErrorClass::Permission | ErrorClass::Configuration
        ) && self.turn.no_response_but(message);
        let uuid = own_id(&mut self.identity);
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
        let uuid = format!("\"{}\"", own_id(&mut self.identity));
        let turn = std::mem::take(&mut self.turn);
        Closing { turn: &turn, session: &self.session.id(), uuid: &uuid }.write(ended, out);
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
        let class = ended.class.clone();
        let class = class.or(ended.http_status.map(ErrorClass::of_http_status)).unwrap_or_default();
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
}

/// A new id, as plain text.
fn own_id(identity: &mut Identity) -> String {
    let mut quoted = Bytes::new();
    identity.uuid().write(&mut quoted);
    String::from_utf8_lossy(&quoted).trim_matches('"').to_owned()
}

/// The input of a tool, made short enough for a line.
fn fitting<'i>(input: &'i str, out: &mut Output) -> Cow<'i, str> {
    if input.len() <= TOOL_ROOM {
        return Cow::Borrowed(input);
    }
    out.lost("tool input over the line limit");
    Cow::Owned(shorten::object(input, TOOL_ROOM))
}

/// Counts what a block is that cannot be written.
fn count_block(kind: &BlockKind, out: &mut Output) {
    match kind {
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
