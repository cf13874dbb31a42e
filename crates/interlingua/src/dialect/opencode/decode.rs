//! Reads opencode's lines, and what they have in common with the events of its server.

use super::calls::{Calls, Place};
use super::failure::{class_of, error_of};
use super::parts::{Named, Parts};
use super::requests::Requests;
use super::sessions::{Sessions, Whose};
use super::turn::{Turn, counts, goes_on};
use super::wire::{Failure, Line, Part, Status};
use crate::dialect::decode::Own;
use crate::dialect::{Decoder, EventSink, each_record, unknown};
use crate::event::{
    BlockKind, Event, FileChange, FilesChanged, Interrupted, MessageEnded, MessageStarted, Native,
    Retry, SessionStarted, TurnStarted, UserMessage, Withdrawn,
};
use crate::framing::FrameText;
use crate::json::{Json, Text};

/// The reader of `opencode`.
#[derive(Debug, Default)]
pub struct OpencodeDecoder {
    pub(super) sessions: Sessions,
    pub(super) turn: Turn,
    pub(super) parts: Parts,
    pub(super) calls: Calls,
    pub(super) requests: Requests,
    /// The conversation is made shorter without anybody having asked for it.
    pub(super) compacts_by_itself: Option<bool>,
    /// The records are lines of `run`, which has no record for the end of a turn.
    lines: bool,
}

impl Decoder for OpencodeDecoder {
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        each_record(frame, sink, |line: &mut Line<'_>, own, sink| {
            let kind = line.kind.take().unwrap_or_default();
            // Both are large: they are read where they are.
            match &mut line.properties {
                Some(properties) => self.event(&kind, properties, line.id.as_ref(), own, sink),
                None => self.line(&kind, line, own, sink),
            }
        });
    }

    fn finish(&mut self, sink: &mut dyn EventSink) {
        let told = self.turn.idle
            || self.turn.aborted()
            || self.lines && (self.turn.failure.is_some() || self.turn.denied);
        if self.turn.open && told {
            self.end_turn(sink);
        }
    }
}

/// Lines of `opencode run --format json`.
impl OpencodeDecoder {
    fn line<'a>(
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
        self.lines = true;
        let time = line.time.take();
        self.session_known(line.session.as_ref(), sink);
        let Whose::Speaker(at) = self.sessions.whose(line.session.as_ref()) else {
            aside("other-session", kind.body(), own, sink);
            return;
        };
        self.begin_turn(time.as_ref(), sink);
        match (kind.body(), &mut line.part) {
            ("error", _) => self.fail(line.error.take().unwrap_or_default(), time, own, sink),
            ("step_start", Some(part)) => self.step_started(at, part, time, own, sink),
            ("step_finish", Some(part)) => {
                let ends = !goes_on(part.reason.as_ref().map_or("", Text::body));
                self.step_finished(at, part, time, sink);
                if ends {
                    self.end_turn(sink);
                }
            }
            (_, Some(part)) => self.part(at, part, None, time, own, sink),
            (_, None) => sink.event(Event::new(unknown(Some(kind.clone()), own))),
        }
    }

    /// A request was made: the first of a message, or the same once more after it failed.
    fn step_started<'a>(
        &mut self,
        at: usize,
        part: &mut Part<'a>,
        time: Option<Json<'a>>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let message = part.message.take().unwrap_or_default();
        let Some(speaker) = self.sessions.get_mut(at) else { return };
        let is_new = message != *speaker.message;
        if !is_new && speaker.stepping {
            speaker.retries += 1;
            let attempt = Some(speaker.retries);
            self.retry(at, Status { attempt, ..Status::default() }, None, sink);
            return;
        }
        speaker.stepping = true;
        speaker.retries = 0;
        if !is_new {
            aside("again", "step_start", own, sink);
            return;
        }
        speaker.begin(&message);
        // The turn went on although a call was refused.
        self.turn.denied = false;
        let message = Some(message);
        sink.event(Event::new(MessageStarted { message, ..MessageStarted::default() }).at(time));
    }
}

/// What both forms have in common.
impl OpencodeDecoder {
    /// The first record of a session that nobody has announced.
    pub(super) fn session_known(&mut self, session: Option<&Text<'_>>, sink: &mut dyn EventSink) {
        if let Some(id) = session.filter(|_| self.sessions.none()) {
            self.sessions.whose(Some(id));
            sink.event(Event::new(SessionStarted {
                id: Some(id.clone()),
                agent: Some(Text::plain("opencode")),
                ..SessionStarted::default()
            }));
        }
    }

    pub(super) fn begin_turn(&mut self, time: Option<&Json<'_>>, sink: &mut dyn EventSink) {
        if !std::mem::replace(&mut self.turn.open, true) {
            sink.event(Event::new(TurnStarted::default()).at(time.map(Json::borrowed)));
        }
    }

    pub(super) fn end_turn(&mut self, sink: &mut dyn EventSink) {
        self.parts.end(0, None, sink);
        self.calls.end_turn();
        if let Some(speaker) = self.sessions.get_mut(0) {
            speaker.speaking = false;
        }
        // What was interrupted tells its last after it was told that it was.
        if self.turn.aborted() {
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
        if self.turn.aborted() {
            aside("aborted", "error", own, sink);
        } else {
            sink.event(Event::new(error).at(time));
        }
    }

    /// A request failed and is made again.
    pub(super) fn retry(
        &mut self,
        at: usize,
        status: Status<'_>,
        delay_ms: Option<u64>,
        sink: &mut dyn EventSink,
    ) {
        let parent = self.sessions.parent(at);
        // What the request that failed had said, the next one says again.
        self.parts.withdraw(at);
        let withdrawn = Withdrawn { reason: status.message.clone(), ..Withdrawn::default() };
        sink.event(Event::new(withdrawn).within(parent.clone()));
        let retry = Retry {
            attempt: status.attempt,
            delay_ms,
            class: status.message.as_ref().map(class_of).unwrap_or_default(),
            message: status.message,
            ..Retry::default()
        };
        sink.event(Event::new(retry).within(parent));
    }

    fn step_finished<'a>(
        &mut self,
        at: usize,
        part: &mut Part<'a>,
        time: Option<Json<'a>>,
        sink: &mut dyn EventSink,
    ) {
        let parent = self.sessions.parent(at);
        self.parts.end(at, parent.as_ref(), sink);
        let usage = part.tokens.as_ref().and_then(counts);
        if let Some(speaker) = self.sessions.get_mut(at) {
            speaker.stepping = false;
        }
        self.turn.cost += part.cost.unwrap_or(0.0);
        if at == 0 {
            let reason = part.reason.as_ref().map_or("", Text::body);
            self.turn.step(usage.as_ref(), reason);
        }
        let (message, stop_reason) = (part.message.take(), part.reason.take());
        let ended = MessageEnded { message, stop_reason, usage };
        sink.event(Event::new(ended).within(parent).at(time));
    }

    /// A part of a message, as it is by now.
    pub(super) fn part<'a>(
        &mut self,
        at: usize,
        part: &mut Part<'a>,
        piece: Option<Text<'a>>,
        time: Option<Json<'a>>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let parent = self.sessions.parent(at);
        let kind = part.kind.take().unwrap_or_default();
        let Some(speaker) = self.sessions.get_mut(at) else { return };
        let is_of = |message: &str| part.message.as_ref().is_some_and(|of| *of == *message);
        let by_user = !speaker.user.is_empty() && is_of(&speaker.user);
        let summary = speaker.summary && is_of(&speaker.message);
        match kind.body() {
            "step-finish" => self.step_finished(at, part, time, sink),
            "step-start" => {
                self.calls.changed.clear();
                aside("part", "step-start", own, sink);
            }
            "text" if by_user && at == 0 => {
                let injected = part.synthetic == Some(true);
                let text = part.text.take().unwrap_or_default();
                let said = UserMessage { text, injected, ..UserMessage::default() };
                sink.event(Event::new(said).at(time));
            }
            // The call that started the sub-agent tells what it was asked.
            "text" | "reasoning" if by_user => {
                aside("sub-agent", "message.part.updated", own, sink);
            }
            "text" | "reasoning" if summary => {
                aside("summary", "message.part.updated", own, sink);
            }
            "text" | "reasoning" => {
                let text_kind = if kind == "text" { BlockKind::Text } else { BlockKind::Reasoning };
                let id = part.id.as_ref().map(Text::to_plain).unwrap_or_default();
                let message = part.message.take().unwrap_or_default();
                let named = Named { id: &id, message: &message, session: at, parent, time };
                let over = part.time.as_ref().is_some_and(|time| time.ended.is_some());
                let text = part.text.take().unwrap_or_default();
                let news = match piece {
                    // An older version tells the piece beside the snapshot, which has it in it.
                    Some(piece) if !over && self.parts.knows(&id) => {
                        self.parts.piece(named, piece, speaker, sink);
                        true
                    }
                    _ => self.parts.snapshot(named, text_kind, text, over, speaker, sink),
                };
                if !news {
                    aside("again", "message.part.updated", own, sink);
                }
            }
            "tool" => {
                self.parts.end(at, parent.as_ref(), sink);
                let place = Place { session: at, parent, time };
                let told = self.calls.snapshot(part, &place, sink);
                self.turn.denied |= told.blocks && at == 0;
                if let (Some(session), Some(call)) = (&told.child, &told.call) {
                    self.sessions.child(session, &call.to_plain());
                }
                if !told.news {
                    aside("again", "message.part.updated", own, sink);
                }
            }
            "patch" => self.patch(part, &parent, own, sink),
            "compaction" => {
                self.compacts_by_itself = part.auto;
                aside("part", "compaction", own, sink);
            }
            word @ ("snapshot" | "agent" | "retry" | "file" | "subtask") => {
                aside("part", word, own, sink);
            }
            other => {
                let name = Text::from(format!("part/{other}"));
                sink.event(Event::new(unknown(Some(name), own)));
            }
        }
    }

    /// The files that a step changed, by whatever means; what its calls told is not told again.
    fn patch(
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
            aside("part", "patch", own, sink);
        } else {
            let changed = FilesChanged { call: None, changes };
            sink.event(Event::new(changed).within(parent.clone()));
        }
    }
}

/// A record that is left out on purpose.
pub(super) fn native<'a>(name: Text<'a>, own: Own<'a>, sink: &mut dyn EventSink) {
    sink.event(Event::new(Native { name, raw: own.json() }));
}

/// A record of a type that is read, which says nothing that was not told before or elsewhere.
pub(super) fn aside(why: &str, kind: &str, own: Own<'_>, sink: &mut dyn EventSink) {
    native(Text::from(format!("{kind}/{why}")), own, sink);
}
