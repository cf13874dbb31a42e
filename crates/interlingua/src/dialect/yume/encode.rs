//! Writes the flat contract.

mod calls;

use super::calls::{Written, write_parent};
use super::hold::Hold;
use super::pieces::{self, Piece};
use super::result::Closing;
use super::session::Session;
use super::turn::Turn;
use super::{LINE_LIMIT, NAME_LIMIT, names};
use crate::dialect::{EncodeOptions, Encoder, Identity, Output};
use crate::event::{
    Block, BlockKind, Compacted, Data, Error, ErrorClass, Event, Executor, Outcome, Reason,
    SessionStarted, SessionUpdated, TurnEnded,
};
use crate::json::Text;
use crate::json::write::{Bytes, Object};
use calls::Changes;

/// The room for a text in a line, beside the fields around it.
const TEXT_ROOM: usize = LINE_LIMIT - 200 - NAME_LIMIT;
/// The room for the text of one `text` record: what an agent says at once is written in pieces, as if
/// it had been streamed.
const TEXT_PIECE: usize = 4096;
/// The room for the message of an error.
const MESSAGE_ROOM: usize = LINE_LIMIT / 2;

/// How many errors wait for the session to be named.
const EARLY: usize = 100;

/// The writer of `yume`.
#[derive(Debug, Clone)]
pub struct YumeEncoder {
    identity: Identity,
    hold: Hold,
    turn: Turn,
    session: Session,
    /// Errors from before the session was named: `init` is written before them, and names it.
    early: Vec<Event<'static>>,
    changes: Changes,
}

impl YumeEncoder {
    /// A writer for one stream.
    pub fn new(_options: &EncodeOptions) -> Self {
        Self {
            identity: Identity::default(),
            hold: Hold::default(),
            turn: Turn::default(),
            session: Session::default(),
            early: Vec::new(),
            changes: Changes::default(),
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
            Data::Error(_) if !self.session.is_named() && self.early.len() < EARLY => {
                self.early.push(event.clone().into_owned());
            }
            Data::Error(error) => self.problem(error, out),
            Data::Compacted(compacted) => self.compacted(compacted, out),
            other => {
                if parent.is_none() {
                    self.note_usage(other);
                }
                self.count(other, out);
            }
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
            self.write_init(out);
        }
    }

    fn write_init(&mut self, out: &mut Output) {
        let identity = &mut self.identity;
        self.session.write_init(|| own_id(identity), out);
        for event in std::mem::take(&mut self.early) {
            if let Data::Error(error) = &event.data {
                self.problem(error, out);
            }
        }
    }

    fn started(&mut self, started: &SessionStarted<'_>, out: &mut Output) {
        if started.version.is_some() {
            out.lost("version of the agent");
        }
        if let Some(id) = started.id.as_ref().filter(|_| self.session.is_told())
            && self.session.is_renamed_by(id)
        {
            self.renamed(id, out);
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
        self.ensure_init(out);
        let short = names::id(id, out);
        let mut record = Object::record(self.lines(out), "system");
        record.string("subtype", "session_id").text("session_id", &short);
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
        let is_text = match kind {
            BlockKind::Text => true,
            BlockKind::Reasoning => false,
            _ => return,
        };
        if is_text && parent.is_none() {
            self.turn.said(block, text);
        } else {
            self.turn.said_aside(text);
        }
        self.ensure_init(out);
        let parent = parent.map(|parent| names::id(parent, out));
        if is_text {
            for piece in pieces::pieces_between_words(text, TEXT_PIECE) {
                self.piece("text", piece, parent.as_ref(), out);
            }
        } else {
            for piece in pieces::pieces(text, TEXT_ROOM) {
                self.piece("thinking", piece, parent.as_ref(), out);
            }
        }
    }

    #[inline]
    fn piece(
        &mut self,
        kind: &'static str,
        piece: Piece<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let mut record = Object::record(self.hold.lines(out.bytes()), kind);
        if kind == "thinking" {
            record.flag("is_thinking", true);
            piece.write(record.name("thought"));
        } else {
            piece.write(record.name("content"));
        }
        write_chunk_id(record.name("id"), &mut self.identity);
        write_parent(&mut record, parent);
        record.end();
    }

    /// Keeps what the agent has counted, for a turn whose end does not tell it.
    fn note_usage(&mut self, data: &Data<'_>) {
        match data {
            Data::Usage(usage) => self.turn.used(usage),
            Data::MessageEnded(ended) => {
                ended.usage.iter().for_each(|usage| self.turn.used(usage));
            }
            _ => {}
        }
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
        self.ensure_init(out);
        let (message, left_out) = pieces::start(message, MESSAGE_ROOM);
        if left_out > 0 {
            out.lost("end of a long error message");
        }
        let code = code.filter(|_| !not_set_up).map(|code| names::name(code, out));
        let lines = self.lines(out);
        let mut record;
        if not_set_up {
            record = Object::record(lines, "system");
            record.string("subtype", "error");
            message.write(record.name("message"));
        } else {
            record = Object::record(lines, "error");
            message.write(record.name("message"));
            record.text_if("code", code.as_ref());
        }
        record.string("uuid", &uuid);
        record.end();
    }

    fn compacted(&mut self, compacted: &Compacted<'_>, out: &mut Output) {
        if compacted.tokens_after.is_some() {
            out.lost("tokens after a compaction");
        }
        self.ensure_init(out);
        let auto = Text::plain("auto");
        let trigger = names::name(compacted.trigger.as_ref().unwrap_or(&auto), out);
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
        self.changes.end_turn();
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
                if self.turn.retried(retry) {
                    return;
                }
                "retry beyond those that a result lists"
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

/// Counts what a block is that cannot be written.
fn count_block(kind: &BlockKind, out: &mut Output) {
    match kind {
        BlockKind::Text | BlockKind::Reasoning => {}
        BlockKind::HiddenReasoning => out.lost("hidden reasoning"),
        BlockKind::Image => out.lost("picture"),
        _ => out.lost("block of another kind"),
    }
}

fn write_chunk_id(out: &mut Bytes, identity: &mut Identity) {
    out.push(b'"');
    identity.write_named("chunk-", out);
    out.push(b'"');
}
