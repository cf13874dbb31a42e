//! The decoder of opencode: the lines of `run`, and what they share with the events of the server.

use super::calls::{CallContext, Calls};
use super::failure::{classify_text, error_of};
use super::parts::{PartRef, Parts};
use super::requests::Requests;
use super::sessions::{Owner, Sessions};
use super::turn::{Turn, continues_after, usage_of};
use super::wire::{Failure, Line, Part, Status};
use crate::dialect::decode::Own;
use crate::dialect::{Decoder, EventSink, each_record, unknown};
use crate::event::{
    BlockKind, Event, FileChange, FilesChanged, Interrupted, MessageEnded, MessageStarted, Native,
    Retry, SessionStarted, TurnStarted, UserMessage, Withdrawn,
};
use crate::framing::FrameText;
use crate::json::{Json, Text};

/// The decoder of `opencode`.
#[derive(Debug, Default)]
pub struct OpencodeDecoder {
    pub(super) sessions: Sessions,
    pub(super) turn: Turn,
    pub(super) parts: Parts,
    pub(super) calls: Calls,
    pub(super) requests: Requests,
    /// A prompt was sent, and its turn has not started.
    pub(super) prompted: bool,
    /// The current compaction was started by the program, not by the user.
    pub(super) automatic_compaction: Option<bool>,
    /// The records are lines of `run`, which has no record for the end of a turn.
    is_run: bool,
}

impl Decoder for OpencodeDecoder {
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        each_record(frame, sink, |line: &mut Line<'_>, own, sink| {
            let kind = line.kind.take().unwrap_or_default();
            // Both are large, so they are borrowed and not moved.
            match &mut line.properties {
                Some(properties) => self.read_event(&kind, properties, line.id.as_ref(), own, sink),
                None if line.method.is_some() && line.path.is_some() => {
                    self.read_request(line, sink);
                }
                None => self.read_line(&kind, line, own, sink),
            }
        });
    }

    fn finish(&mut self, sink: &mut dyn EventSink) {
        let has_ended = self.turn.idle
            || self.turn.is_aborted()
            || self.is_run && (self.turn.failure.is_some() || self.turn.denied);
        if self.turn.open && has_ended {
            self.end_turn(sink);
        }
    }
}

impl OpencodeDecoder {
    fn read_line<'a>(
        &mut self,
        kind: &Text<'a>,
        line: &mut Line<'a>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let is_ours = matches!(
            kind.body(),
            "step_start" | "step_finish" | "text" | "reasoning" | "tool_use" | "error"
        );
        if !is_ours {
            sink.event(Event::new(unknown(Some(kind.clone()), own)));
            return;
        }
        self.is_run = true;
        let time = line.time.take();
        self.ensure_session(line.session.as_ref(), sink);
        let Owner::Session(at) = self.sessions.owner_of(line.session.as_ref()) else {
            emit_ignored("other-session", kind.body(), own, sink);
            return;
        };
        self.begin_turn(time.as_ref(), sink);
        match (kind.body(), &mut line.part) {
            ("error", _) => self.fail(line.error.take().unwrap_or_default(), time, own, sink),
            ("step_start", Some(part)) => self.start_step(at, part, time, own, sink),
            ("step_finish", Some(part)) => {
                let ends_turn = !continues_after(part.reason.as_ref().map_or("", Text::body));
                self.finish_step(at, part, time, sink);
                if ends_turn {
                    self.end_turn(sink);
                }
            }
            (_, Some(part)) => self.read_part(at, part, None, time, own, sink),
            (_, None) => sink.event(Event::new(unknown(Some(kind.clone()), own))),
        }
    }

    /// Starts a step, which is the first request of a message, or a retry of the failed one.
    fn start_step<'a>(
        &mut self,
        at: usize,
        part: &mut Part<'a>,
        time: Option<Json<'a>>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let message = part.message.take().unwrap_or_default();
        let Some(session_state) = self.sessions.get_mut(at) else { return };
        let is_new = message != *session_state.message;
        if !is_new && session_state.step_open {
            session_state.retries += 1;
            let attempt = Some(session_state.retries);
            self.retry(at, Status { attempt, ..Status::default() }, None, sink);
            return;
        }
        session_state.step_open = true;
        session_state.retries = 0;
        if !is_new {
            emit_ignored("again", "step_start", own, sink);
            return;
        }
        session_state.begin_message(&message);
        // The turn continued although a call was denied.
        self.turn.denied = false;
        let message = Some(message);
        sink.event(Event::new(MessageStarted { message, ..MessageStarted::default() }).at(time));
    }
}

/// The events that both forms share.
impl OpencodeDecoder {
    /// Starts the session with its first record, if no record has announced it.
    pub(super) fn ensure_session(&mut self, session: Option<&Text<'_>>, sink: &mut dyn EventSink) {
        if let Some(id) = session.filter(|_| self.sessions.is_empty()) {
            self.sessions.owner_of(Some(id));
            sink.event(Event::new(SessionStarted {
                id: Some(id.clone()),
                agent: Some(Text::plain("opencode")),
                ..SessionStarted::default()
            }));
        }
    }

    pub(super) fn begin_turn(&mut self, time: Option<&Json<'_>>, sink: &mut dyn EventSink) {
        if !std::mem::replace(&mut self.turn.open, true) {
            self.prompted = false;
            sink.event(Event::new(TurnStarted::default()).at(time.map(Json::borrowed)));
        }
    }

    pub(super) fn end_turn(&mut self, sink: &mut dyn EventSink) {
        self.parts.interrupt(0, None, sink);
        self.calls.end_turn();
        if let Some(session_state) = self.sessions.get_mut(0) {
            session_state.message_open = false;
        }
        // The last records of an interrupted message follow the error, so the interruption is
        // emitted here.
        if self.turn.is_aborted() {
            sink.event(Event::new(Interrupted { text: None }));
        }
        let time = self.turn.completed.and_then(|time| Json::from_serialize(&time));
        sink.event(Event::new(self.turn.end()).at(time));
    }

    pub(super) fn fail<'a>(
        &mut self,
        failure: Failure<'a>,
        time: Option<Json<'a>>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        self.begin_turn(time.as_ref(), sink);
        let error = error_of(failure);
        self.turn.fail(&error);
        if self.turn.is_aborted() {
            emit_ignored("aborted", "error", own, sink);
        } else {
            sink.event(Event::new(error).at(time));
        }
    }

    /// Emits the retry of a failed request.
    pub(super) fn retry(
        &mut self,
        at: usize,
        status: Status<'_>,
        delay_ms: Option<u64>,
        sink: &mut dyn EventSink,
    ) {
        let parent = self.sessions.parent(at);
        // The retry repeats the text of the failed request.
        self.parts.close_open(at);
        let withdrawn = Withdrawn { reason: status.message.clone(), ..Withdrawn::default() };
        sink.event(Event::new(withdrawn).within(parent.clone()));
        let retry = Retry {
            attempt: status.attempt,
            delay_ms,
            class: status.message.as_ref().map(classify_text).unwrap_or_default(),
            message: status.message,
            ..Retry::default()
        };
        sink.event(Event::new(retry).within(parent));
    }

    fn finish_step<'a>(
        &mut self,
        at: usize,
        part: &mut Part<'a>,
        time: Option<Json<'a>>,
        sink: &mut dyn EventSink,
    ) {
        let parent = self.sessions.parent(at);
        self.parts.interrupt(at, parent.as_ref(), sink);
        let usage = part.tokens.as_ref().and_then(usage_of);
        if let Some(session_state) = self.sessions.get_mut(at) {
            session_state.step_open = false;
        }
        self.turn.cost += part.cost.unwrap_or(0.0);
        if at == 0 {
            let reason = part.reason.as_ref().map_or("", Text::body);
            self.turn.record_step(usage.as_ref(), reason);
        }
        let (message, stop_reason) = (part.message.take(), part.reason.take());
        let ended = MessageEnded { message, stop_reason, usage };
        sink.event(Event::new(ended).within(parent).at(time));
    }

    /// Reads the current state of a part of a message.
    pub(super) fn read_part<'a>(
        &mut self,
        at: usize,
        part: &mut Part<'a>,
        delta: Option<Text<'a>>,
        time: Option<Json<'a>>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let parent = self.sessions.parent(at);
        let kind = part.kind.take().unwrap_or_default();
        let Some(session_state) = self.sessions.get_mut(at) else { return };
        let is_of = |message: &str| part.message.as_ref().is_some_and(|of| *of == *message);
        let is_by_user =
            !session_state.user_message.is_empty() && is_of(&session_state.user_message);
        let is_summary = session_state.is_summary && is_of(&session_state.message);
        match kind.body() {
            "step-finish" => self.finish_step(at, part, time, sink),
            "step-start" => {
                self.calls.changed.clear();
                emit_ignored("part", "step-start", own, sink);
            }
            "text" if is_by_user && at == 0 => {
                let injected = part.synthetic == Some(true);
                let text = part.text.take().unwrap_or_default();
                let message = UserMessage { text, injected, ..UserMessage::default() };
                sink.event(Event::new(message).at(time));
            }
            // The call that spawned the sub-agent contains its prompt.
            "text" | "reasoning" if is_by_user => {
                emit_ignored("sub-agent", "message.part.updated", own, sink);
            }
            "text" | "reasoning" if is_summary => {
                emit_ignored("summary", "message.part.updated", own, sink);
            }
            "text" | "reasoning" => {
                let text_kind = if kind == "text" { BlockKind::Text } else { BlockKind::Reasoning };
                let id = part.id.as_ref().map(Text::to_plain).unwrap_or_default();
                let message = part.message.take().unwrap_or_default();
                let part_ref = PartRef { id: &id, message: &message, session: at, parent, time };
                let is_complete = part.time.as_ref().is_some_and(|time| time.ended.is_some());
                let text = part.text.take().unwrap_or_default();
                let is_new = match delta {
                    // An older version sends the delta together with the snapshot that contains it.
                    Some(delta) if !is_complete && self.parts.contains(&id) => {
                        self.parts.emit_delta(part_ref, delta, session_state, sink);
                        true
                    }
                    _ => self.parts.read_snapshot(
                        part_ref,
                        text_kind,
                        text,
                        is_complete,
                        session_state,
                        sink,
                    ),
                };
                if !is_new {
                    emit_ignored("again", "message.part.updated", own, sink);
                }
            }
            "tool" => {
                self.parts.interrupt(at, parent.as_ref(), sink);
                let context = CallContext { session: at, parent, time };
                let effect = self.calls.read_snapshot(part, &context, sink);
                self.turn.denied |= effect.ends_turn && at == 0;
                if let (Some(session), Some(call)) = (&effect.child, &effect.call) {
                    self.sessions.set_child(session, &call.to_plain());
                }
                if !effect.is_new {
                    emit_ignored("again", "message.part.updated", own, sink);
                }
            }
            "patch" => self.emit_patch(part, &parent, own, sink),
            "compaction" => {
                self.automatic_compaction = part.auto;
                emit_ignored("part", "compaction", own, sink);
            }
            kind @ ("snapshot" | "agent" | "retry" | "file" | "subtask") => {
                emit_ignored("part", kind, own, sink);
            }
            other => {
                let name = Text::from(format!("part/{other}"));
                sink.event(Event::new(unknown(Some(name), own)));
            }
        }
    }

    /// Emits the files that a step changed and that none of its calls reported.
    fn emit_patch(
        &mut self,
        part: &Part<'_>,
        parent: &Option<Text<'static>>,
        own: Own<'_>,
        sink: &mut dyn EventSink,
    ) {
        let files = part.files.as_ref().and_then(Json::read::<Vec<String>>).unwrap_or_default();
        let changes: Vec<_> = files
            .into_iter()
            .filter(|file| !self.calls.changed.contains(file))
            .map(|file| FileChange { path: Text::from(file), ..FileChange::default() })
            .collect();
        if changes.is_empty() {
            emit_ignored("part", "patch", own, sink);
        } else {
            let changed = FilesChanged { call: None, changes };
            sink.event(Event::new(changed).within(parent.clone()));
        }
    }
}

/// Emits a record that is left out on purpose.
pub(super) fn emit_native<'a>(name: Text<'a>, own: Own<'a>, sink: &mut dyn EventSink) {
    sink.event(Event::new(Native { name, raw: own.json() }));
}

/// Emits a record without new information as a native one, named after its type and the reason.
pub(super) fn emit_ignored(reason: &str, kind: &str, own: Own<'_>, sink: &mut dyn EventSink) {
    emit_native(Text::from(format!("{kind}/{reason}")), own, sink);
}
