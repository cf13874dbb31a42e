//! Encodes the flat contract. It knows the order of records; other modules write calls, the session
//! and the result.

mod calls;

use super::calls::{WrittenCall, write_parent};
use super::chunks::{self, Chunk};
use super::queue::CallQueue;
use super::result::ResultWriter;
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

/// The room for a text in a line, next to the other fields.
const TEXT_ROOM: usize = LINE_LIMIT - 200 - NAME_LIMIT;
/// The room for the text of one `text` record: a complete text is written in chunks, as if it had
/// been streamed.
const TEXT_CHUNK: usize = 4096;
/// The room for the message of an error.
const MESSAGE_ROOM: usize = LINE_LIMIT / 2;

/// The number of errors that are held back until the session id is known.
const MAX_HELD_ERRORS: usize = 100;

/// The encoder of `yume`.
#[derive(Debug, Clone)]
pub struct YumeEncoder {
    identity: Identity,
    queue: CallQueue,
    turn: Turn,
    session: Session,
    /// The errors held back until the session id is known, since `init` is written before them.
    held_errors: Vec<Event<'static>>,
    changes: Changes,
}

impl YumeEncoder {
    /// An encoder at the beginning of a stream.
    pub fn new(_options: &EncodeOptions) -> Self {
        Self {
            identity: Identity::default(),
            queue: CallQueue::default(),
            turn: Turn::default(),
            session: Session::default(),
            held_errors: Vec::new(),
            changes: Changes::default(),
        }
    }
}

impl Encoder for YumeEncoder {
    fn encode(&mut self, event: &Event<'_>, out: &mut Output) {
        self.identity.follow(out);
        self.queue.set_discards(out.is_passing() && event.synthetic.is_none());
        let parent = event.parent.as_ref();
        match &event.data {
            Data::BlockDelta(delta) => {
                self.write_text(&delta.kind, delta.block, &delta.text, parent, out);
            }
            Data::Block(block) => self.write_block(block, parent, out),
            Data::BlockStarted(block) => count_block_losses(&block.kind, out),
            Data::BlockEnded(block) if block.signature.is_some() => out.lost("signatures"),
            Data::ToolStarted(call) => {
                if call.input.is_some() {
                    let by_client = call.executor == Executor::Client;
                    let tool = (&call.name, &call.kind, call.input.as_ref());
                    self.write_call(WrittenCall { id: &call.call, parent, by_client }, tool, out);
                }
            }
            Data::ToolInput(call) => {
                let by_client = call.executor == Executor::Client;
                let tool = (&call.name, &call.kind, call.input.as_ref());
                self.write_call(WrittenCall { id: &call.call, parent, by_client }, tool, out);
            }
            Data::ToolEnded(ended) => self.write_answer(ended, parent, out),
            Data::FilesChanged(files) => self.keep_files(files, out),
            Data::PlanUpdated(plan) => {
                let restored = event.synthetic == Some(Reason::Refused);
                self.write_plan(plan, parent, restored, out);
            }
            Data::SessionStarted(started) => self.start_session(started, out),
            Data::SessionUpdated(updated) => self.update_session(updated, out),
            Data::TurnEnded(ended) => self.end_turn(ended, out),
            Data::Interrupted(_) => self.write_interrupt(out),
            Data::Error(_)
                if !self.session.has_id() && self.held_errors.len() < MAX_HELD_ERRORS =>
            {
                self.held_errors.push(event.clone().into_owned());
            }
            Data::Error(error) => self.write_error(error, out),
            Data::Compacted(compacted) => self.write_compaction(compacted, out),
            other => {
                if parent.is_none() {
                    self.note_usage(other);
                }
                self.count_losses(other, out);
            }
        }
    }

    fn finish(&mut self, out: &mut Output) {
        self.ensure_init(out);
    }
}

impl YumeEncoder {
    /// The buffer for the next lines; `init` is written before them.
    #[inline]
    fn lines<'b>(&'b mut self, out: &'b mut Output) -> &'b mut Bytes {
        self.ensure_init(out);
        self.queue.lines(out.bytes())
    }

    /// Writes `init`, unless it was written: it is always the first record.
    #[inline]
    fn ensure_init(&mut self, out: &mut Output) {
        if !self.session.is_init_written() {
            self.write_init(out);
        }
    }

    fn write_init(&mut self, out: &mut Output) {
        let identity = &mut self.identity;
        self.session.write_init(|| generate_id(identity), out);
        for event in std::mem::take(&mut self.held_errors) {
            if let Data::Error(error) = &event.data {
                self.write_error(error, out);
            }
        }
    }

    fn start_session(&mut self, started: &SessionStarted<'_>, out: &mut Output) {
        if started.version.is_some() {
            out.lost("versions of other agents");
        }
        if let Some(id) = started.id.as_ref().filter(|_| self.session.is_init_written())
            && self.session.changes_id(id)
        {
            self.write_session_id(id, out);
        }
        self.session.start(started);
        if out.is_passing() {
            // The stream that is passed through has its own `init`.
            self.ensure_init(out);
        }
    }

    fn update_session(&mut self, updated: &SessionUpdated<'_>, out: &mut Output) {
        if let Some(id) = &updated.id
            && self.session.changes_id(id)
        {
            self.write_session_id(id, out);
        }
        let init_written = self.session.is_init_written();
        if !init_written {
            self.session.update(updated);
        }
        let changes = [
            (init_written && updated.model.is_some(), "change of model"),
            (init_written && updated.cwd.is_some(), "change of working directory"),
            (init_written && updated.permission_mode.is_some(), "change of permission mode"),
            (init_written && updated.tools.is_some(), "change of tools"),
            (updated.version.is_some(), "versions of other agents"),
            (updated.sandbox.is_some() || updated.snapshot.is_some(), "sandbox of the host"),
            (updated.relay.is_some(), "relay of the host"),
        ];
        for (_, what) in changes.into_iter().filter(|(lost, _)| *lost) {
            out.lost(what);
        }
    }

    /// Writes the new id of the session.
    fn write_session_id(&mut self, id: &Text<'_>, out: &mut Output) {
        self.ensure_init(out);
        let short = names::id(id, out);
        let mut record = Object::record(self.lines(out), "system");
        record.string("subtype", "session_id").text("session_id", &short);
        record.end();
        self.session.set_id(id);
    }

    fn write_block(&mut self, block: &Block<'_>, parent: Option<&Text<'_>>, out: &mut Output) {
        count_block_losses(&block.kind, out);
        if block.signature.is_some() && block.kind != BlockKind::HiddenReasoning {
            out.lost("signatures");
        }
        self.write_text(&block.kind, block.block, &block.text, parent, out);
    }

    /// Writes text or reasoning, in as many records as needed.
    #[inline]
    fn write_text(
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
            self.turn.note_text(block, text);
        } else {
            self.turn.note_other_text(text);
        }
        self.ensure_init(out);
        let parent = parent.map(|parent| names::id(parent, out));
        if is_text {
            for chunk in chunks::chunks_between_words(text, TEXT_CHUNK) {
                self.write_chunk("text", chunk, parent.as_ref(), out);
            }
        } else {
            for chunk in chunks::chunks(text, TEXT_ROOM) {
                self.write_chunk("thinking", chunk, parent.as_ref(), out);
            }
        }
    }

    #[inline]
    fn write_chunk(
        &mut self,
        kind: &'static str,
        chunk: Chunk<'_>,
        parent: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        let mut record = Object::record(self.queue.lines(out.bytes()), kind);
        if kind == "thinking" {
            record.flag("is_thinking", true);
            chunk.write(record.name("thought"));
        } else {
            chunk.write(record.name("content"));
        }
        write_chunk_id(record.name("id"), &mut self.identity);
        write_parent(&mut record, parent);
        record.end();
    }

    /// Keeps the counts of requests, for a turn whose end does not state its usage.
    fn note_usage(&mut self, data: &Data<'_>) {
        match data {
            Data::Usage(usage) => self.turn.note_usage(usage),
            Data::MessageEnded(ended) => {
                ended.usage.iter().for_each(|usage| self.turn.note_usage(usage));
            }
            _ => {}
        }
    }

    fn write_interrupt(&mut self, out: &mut Output) {
        if self.turn.note_interrupt() {
            Object::record(self.lines(out), "interrupt").end();
        }
    }

    fn write_error(&mut self, error: &Error<'_>, out: &mut Output) {
        let status = error.http_status.map(|status| Text::from(status.to_string()));
        let code = error.code.as_ref().or(status.as_ref());
        self.write_error_once(&error.class, &error.message, code, out);
    }

    /// Writes an error, unless it was written in this turn.
    fn write_error_once(
        &mut self,
        class: &ErrorClass,
        message: &Text<'_>,
        code: Option<&Text<'_>>,
        out: &mut Output,
    ) {
        if !self.turn.note_error(message) {
            return;
        }
        let not_set_up = matches!(
            class,
            ErrorClass::Authentication | ErrorClass::Permission | ErrorClass::Configuration
        ) && self.turn.has_no_response_except(message);
        let uuid = generate_id(&mut self.identity);
        self.ensure_init(out);
        let (message, left_out) = chunks::start(message, MESSAGE_ROOM);
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

    fn write_compaction(&mut self, compacted: &Compacted<'_>, out: &mut Output) {
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

    fn end_turn(&mut self, ended: &TurnEnded<'_>, out: &mut Output) {
        self.ensure_init(out);
        self.queue.flush(out.bytes());
        self.changes.end_turn();
        if ended.outcome == Outcome::Cancelled {
            self.write_interrupt(out);
        }
        self.write_cause(ended, out);
        let uuid = format!("\"{}\"", generate_id(&mut self.identity));
        let turn = std::mem::take(&mut self.turn);
        ResultWriter { turn: &turn, session: &self.session.id(), uuid: &uuid }.write(ended, out);
    }

    /// Writes the cause of a failed turn, unless a record has reported it.
    fn write_cause(&mut self, ended: &TurnEnded<'_>, out: &mut Output) {
        let too_slow = Text::plain("the turn took too long");
        let cause = match (&ended.outcome, &ended.cause) {
            (Outcome::TimedOut, None) if !self.turn.has_errors() => &too_slow,
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
        self.write_error_once(&class, cause, code.as_ref(), out);
    }

    /// Counts the events for which the contract has no record.
    fn count_losses(&mut self, data: &Data<'_>, out: &mut Output) {
        let what = match data {
            Data::UserMessage(message) => {
                self.turn.note_prompt(&message.text);
                "user message"
            }
            Data::Retry(retry) => {
                if self.turn.note_retry(retry) {
                    return;
                }
                "retry beyond the limit of a `result`"
            }
            // Other records contain these.
            Data::TurnStarted(_)
            | Data::MessageStarted(_)
            | Data::MessageEnded(_)
            | Data::BlockEnded(_)
            | Data::ToolInputDelta(_) => return,
            Data::SessionEnded(end) if end.exit_code.is_none_or(|code| code == 0) => {
                match (end.signal, &end.stderr) {
                    (None, None) => return,
                    _ => "exit of the agent's process",
                }
            }
            Data::SessionEnded(_) => "exit of the agent's process",
            Data::ToolProgress(_) => "tool progress",
            Data::PermissionRequested(_) | Data::PermissionResolved(_) => "permission",
            Data::QuestionAsked(_) | Data::QuestionAnswered(_) => "question to the user",
            Data::Usage(_) => "usage within a turn",
            Data::Limit(_) => "limit of the account",
            Data::Notice(_) => "notice",
            Data::SubagentStarted(_) | Data::SubagentEnded(_) => "sub-agent",
            Data::Artifact(_) => "artifact",
            Data::Native(_) => "record of the agent's own",
            Data::Unknown(_) => "unknown record",
            Data::Unparsed(_) => "text that is not a record",
            Data::Log(_) => "log line",
            _ => "other event",
        };
        out.lost(what);
    }
}

/// Generates an id, as plain text.
fn generate_id(identity: &mut Identity) -> String {
    let mut quoted = Bytes::new();
    identity.uuid().write(&mut quoted);
    String::from_utf8_lossy(&quoted).trim_matches('"').to_owned()
}

/// Counts a block whose kind has no record.
fn count_block_losses(kind: &BlockKind, out: &mut Output) {
    match kind {
        BlockKind::Text | BlockKind::Reasoning => {}
        BlockKind::HiddenReasoning => out.lost("hidden reasoning"),
        BlockKind::Image => out.lost("pictures"),
        _ => out.lost("blocks of an unknown kind"),
    }
}

fn write_chunk_id(out: &mut Bytes, identity: &mut Identity) {
    out.push(b'"');
    identity.write_named("chunk-", out);
    out.push(b'"');
}
