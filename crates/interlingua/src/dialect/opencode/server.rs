//! The events of `opencode serve`: changes of its sessions and their messages.

use std::mem::take;

use super::decode::{OpencodeDecoder, emit_ignored, emit_native};
use super::failure::error_of;
use super::parts::PartRef;
use super::requests;
use super::sessions::Owner;
use super::wire::{Failure, Info, Line, Properties, Status};
use crate::dialect::EventSink;
use crate::dialect::decode::Own;
use crate::dialect::tools::plan_items;
use crate::dialect::unknown;
use crate::event::{
    Compacted, Event, MessageStarted, Notice, PlanUpdated, SessionStarted, SessionUpdated, Severity,
};
use crate::json::{Json, Text};

impl OpencodeDecoder {
    pub(super) fn read_event<'a>(
        &mut self,
        kind: &Text<'a>,
        properties: &mut Properties<'a>,
        id: Option<&Text<'a>>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let name = kind.body();
        let prefixes = ["session.", "message.", "todo.", "permission.", "question."];
        if !prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            self.read_server_event(kind, own, sink);
            return;
        }
        if name == "session.created" && self.read_created(properties, own, sink) {
            return;
        }
        if name == "session.error" && properties.session.is_none() {
            emit_program_error(properties, own, sink);
            return;
        }
        self.ensure_session(properties.session.as_ref(), sink);
        let Owner::Session(at) = self.sessions.owner_of(properties.session.as_ref()) else {
            emit_ignored("other-session", name, own, sink);
            return;
        };
        let parent = || self.sessions.parent(at);
        match name {
            "message.part.delta" => {
                self.join_message(at, properties.message.as_ref(), sink);
                self.read_delta(at, properties, own, sink);
            }
            "message.part.updated" => match &mut properties.part {
                Some(part) => {
                    self.join_message(at, part.message.as_ref(), sink);
                    self.read_part(
                        at,
                        part,
                        properties.delta.take(),
                        properties.time.take(),
                        own,
                        sink,
                    );
                }
                None => sink.event(Event::new(unknown(Some(kind.clone()), own))),
            },
            "message.updated" => {
                self.read_message(at, properties.info.take().unwrap_or_default(), own, sink)
            }
            "todo.updated" => self.read_plan(at, properties.todos.as_ref(), own, sink),
            "permission.asked" | "permission.v2.asked" => {
                self.requests.emit_permission_request(
                    take(properties),
                    parent(),
                    &self.calls,
                    sink,
                );
            }
            "permission.replied" | "permission.v2.replied" => {
                self.requests.emit_permission_reply(
                    take(properties),
                    parent(),
                    &mut self.calls,
                    sink,
                );
            }
            "question.asked" | "question.v2.asked" => {
                requests::emit_question(take(properties), parent(), sink)
            }
            "question.replied"
            | "question.v2.replied"
            | "question.rejected"
            | "question.v2.rejected" => requests::emit_answer(take(properties), parent(), sink),
            "session.compacted" => {
                let trigger = self.automatic_compaction.take();
                let trigger = trigger.map(|auto| if auto { "auto" } else { "manual" });
                let trigger = trigger.map(Text::plain);
                let compacted = Compacted { trigger, ..Compacted::default() };
                sink.event(Event::new(compacted).within(parent()));
            }
            "session.status" if properties.status.as_ref().is_some_and(Status::is_retry) => {
                let status = properties.status.take().unwrap_or_default();
                let delay_ms = retry_delay(&status, id);
                self.retry(at, status, delay_ms, sink);
            }
            "session.created" | "session.updated" | "session.status" | "session.idle"
            | "session.error"
                if at > 0 =>
            {
                emit_ignored("sub-agent", name, own, sink);
            }
            "session.updated" => {
                self.read_updated(properties.info.take().unwrap_or_default(), own, sink)
            }
            "session.status" => {
                self.read_status(properties.status.take().unwrap_or_default(), own, sink)
            }
            "session.idle" => self.read_idle(name, own, sink),
            "session.error" => {
                self.read_error(properties.error.take().unwrap_or_default(), own, sink)
            }
            "session.created" => emit_ignored("again", name, own, sink),
            "session.diff" | "session.deleted" | "message.removed" | "message.part.removed" => {
                emit_native(Text::plain(name), own, sink);
            }
            _ if name.starts_with("session.next.") => emit_native(kind.clone(), own, sink),
            _ => sink.event(Event::new(unknown(Some(kind.clone()), own))),
        }
    }

    /// Reads an event of the server itself, or of its files and terminals.
    fn read_server_event<'a>(&mut self, kind: &Text<'a>, own: Own<'a>, sink: &mut dyn EventSink) {
        let prefixes = super::ignored::SERVER_EVENT_PREFIXES;
        let is_known = prefixes.iter().any(|prefix| kind.body().starts_with(prefix));
        if is_known {
            emit_native(kind.clone(), own, sink);
        } else {
            sink.event(Event::new(unknown(Some(kind.clone()), own)));
        }
    }

    /// Reads the creation of a session; returns whether the record is completely handled.
    fn read_created(
        &mut self,
        properties: &mut Properties<'_>,
        own: Own<'_>,
        sink: &mut dyn EventSink,
    ) -> bool {
        let Some(info) = &mut properties.info else { return false };
        let Some(id) = info.id.clone().or(properties.session.clone()) else { return false };
        if let Some(parent_session) = &info.parent {
            let call = match self.sessions.owner_of(Some(parent_session)) {
                Owner::Session(at) => self.calls.call_spawning_agent(at).map(str::to_owned),
                Owner::Other => None,
            };
            if let Some(call) = call {
                self.sessions.set_child(&id, &call);
                emit_ignored("sub-agent", "session.created", own, sink);
                return true;
            }
        }
        if !self.sessions.is_empty() {
            return false;
        }
        self.sessions.owner_of(Some(&id));
        let model = info.model.take().and_then(|model| model.id);
        if let (Some(session_state), Some(model)) = (self.sessions.get_mut(0), &model) {
            session_state.model = model.to_plain().into_owned();
        }
        sink.event(Event::new(SessionStarted {
            id: Some(id),
            agent: Some(Text::plain("opencode")),
            version: info.version.take(),
            cwd: info.directory.take(),
            model,
            ..SessionStarted::default()
        }));
        true
    }

    fn read_updated(&mut self, info: Info<'_>, own: Own<'_>, sink: &mut dyn EventSink) {
        let model = info.model.and_then(|model| model.id);
        let Some(session_state) = self.sessions.get_mut(0) else { return };
        let Some(model) = model.filter(|model| *model != *session_state.model) else {
            emit_ignored("again", "session.updated", own, sink);
            return;
        };
        session_state.model = model.to_plain().into_owned();
        sink.event(Event::new(SessionUpdated {
            model: Some(model),
            version: info.version,
            cwd: info.directory,
            ..SessionUpdated::default()
        }));
    }

    fn read_status(&mut self, status: Status<'_>, own: Own<'_>, sink: &mut dyn EventSink) {
        match status.kind.as_ref().map_or("", Text::body) {
            "busy" if self.turn.open && !self.turn.idle => {
                self.turn.busy = true;
                emit_ignored("again", "session.status", own, sink);
            }
            "busy" => {
                // The previous turn has ended, although its message was never completed.
                if self.turn.open {
                    self.end_turn(sink);
                }
                self.begin_turn(None, sink);
                self.turn.busy = true;
            }
            "idle" => self.read_idle("session.status", own, sink),
            other => {
                let name = Text::from(format!("session.status/{other}"));
                sink.event(Event::new(unknown(Some(name), own)));
            }
        }
    }

    /// Reads that the session is idle. If its message is open, its last records will follow. If the
    /// turn has not been busy, the record is the second one of the previous turn.
    fn read_idle(&mut self, name: &str, own: Own<'_>, sink: &mut dyn EventSink) {
        let has_open_message =
            self.sessions.get(0).is_some_and(|session_state| session_state.message_open);
        let is_of_turn = self.turn.open && self.turn.busy;
        if is_of_turn && !has_open_message {
            self.end_turn(sink);
        } else {
            self.turn.idle = is_of_turn;
            emit_ignored("again", name, own, sink);
        }
    }

    /// Reads an error of the session. A prompt that is rejected before its turn has started, for
    /// example because of an unknown agent, has no other record. The server repeats an error after
    /// the turn that failed of it.
    fn read_error(&mut self, failure: Failure<'_>, own: Own<'_>, sink: &mut dyn EventSink) {
        if self.turn.open {
            self.fail(failure, None, own, sink);
        } else if take(&mut self.prompted) {
            self.fail(failure, None, own, sink);
            self.end_turn(sink);
        } else {
            emit_ignored("again", "session.error", own, sink);
        }
    }

    /// Reads a request that was sent to the server: it contains the reason of a decision, which the
    /// server does not repeat.
    pub(super) fn read_request(&mut self, request: &mut Line<'_>, sink: &mut dyn EventSink) {
        let path = request.path.as_ref().map(Text::to_plain).unwrap_or_default();
        let reason = request.body.take().and_then(|body| body.reason);
        let reply = path.strip_prefix("/permission/").and_then(|rest| rest.strip_suffix("/reply"));
        match (reply, reason) {
            (Some(id), Some(reason)) => {
                self.requests.set_reason(id, reason);
                sink.deferred();
            }
            _ => {
                self.prompted |= path.ends_with("/prompt_async");
                sink.ignored("a request to the server, whose events report what it did");
            }
        }
    }

    /// Reads the start of a message, or new facts about it.
    fn read_message(&mut self, at: usize, info: Info<'_>, own: Own<'_>, sink: &mut dyn EventSink) {
        let parent = self.sessions.parent(at);
        let Some(session_state) = self.sessions.get_mut(at) else { return };
        let id = info.id.clone().unwrap_or_default();
        if info.role.as_ref().is_some_and(|role| *role == "user") {
            // An earlier message is reported again when its turn has ended. Ids begin with a time.
            let is_new = *id.to_plain() > *session_state.user_message;
            if is_new {
                session_state.user_message = id.to_plain().into_owned();
            }
            if !is_new || at > 0 || self.turn.open {
                emit_ignored("again", "message.updated", own, sink);
            } else {
                let created = info.time.unwrap_or_default().created;
                self.turn.started = created.as_ref().and_then(Json::read);
                self.begin_turn(created.as_ref(), sink);
            }
            return;
        }
        let is_new = id != *session_state.message;
        let time = info.time.unwrap_or_default();
        if is_new {
            session_state.begin_message(&id);
        }
        session_state.is_summary = info.summary == Some(true);
        let ended = session_state.message_open && time.ended.is_some();
        session_state.message_open = time.ended.is_none();
        if let Some(ended) = time.ended.as_ref().filter(|_| at == 0 && self.turn.open) {
            self.turn.completed = ended.read();
        }
        if is_new && !self.turn.open && at == 0 {
            self.begin_turn(time.created.as_ref(), sink);
        }
        self.turn.busy |= at == 0 && self.turn.open;
        if is_new {
            let started = MessageStarted { message: Some(id), model: info.model_id, usage: None };
            sink.event(Event::new(started).within(parent).at(time.created));
        }
        // An error of a sub-agent is the result of the call that spawned it.
        let is_first_failure = at == 0 && self.turn.open && self.turn.failure.is_none();
        let error = info.error.filter(|_| is_first_failure);
        let has_failed = error.is_some();
        if let Some(error) = error {
            self.fail(error, time.ended, own, sink);
        }
        if at == 0 && ended && self.turn.idle {
            self.end_turn(sink);
        } else if !is_new && !has_failed {
            emit_ignored("again", "message.updated", own, sink);
        }
    }

    /// Starts a message whose beginning is not in the stream.
    fn join_message(&mut self, at: usize, message: Option<&Text<'_>>, sink: &mut dyn EventSink) {
        let Some(session_state) = self.sessions.get_mut(at).filter(|_| at == 0) else { return };
        let Some(message) = message.filter(|_| session_state.message.is_empty()) else { return };
        if *message == *session_state.user_message {
            return;
        }
        session_state.begin_message(message);
        session_state.message_open = true;
        self.begin_turn(None, sink);
        self.turn.busy = true;
        let message = Some(message.borrowed());
        sink.event(Event::new(MessageStarted { message, ..MessageStarted::default() }));
    }

    fn read_plan(
        &mut self,
        at: usize,
        todos: Option<&Json<'_>>,
        own: Own<'_>,
        sink: &mut dyn EventSink,
    ) {
        // The call that writes the list emits it.
        let items = todos.and_then(plan_items).filter(|_| !self.calls.writes_plan(at));
        match items {
            Some(items) => sink.event(
                Event::new(PlanUpdated { plan: None, call: None, items })
                    .within(self.sessions.parent(at)),
            ),
            None => emit_ignored("again", "todo.updated", own, sink),
        }
    }

    fn read_delta(
        &mut self,
        at: usize,
        properties: &mut Properties<'_>,
        own: Own<'_>,
        sink: &mut dyn EventSink,
    ) {
        let parent = self.sessions.parent(at);
        let Some(session_state) = self.sessions.get_mut(at) else { return };
        let is_text = properties.field.as_ref().is_none_or(|field| *field == "text");
        let (Some(id), Some(message), true) = (&properties.part_id, &properties.message, is_text)
        else {
            emit_ignored("again", "message.part.delta", own, sink);
            return;
        };
        if session_state.is_summary && *message == *session_state.message {
            emit_ignored("summary", "message.part.delta", own, sink);
            return;
        }
        let id = &*id.to_plain();
        let part_ref = PartRef { id, message, session: at, parent, time: properties.time.take() };
        self.parts.emit_delta(
            part_ref,
            properties.delta.take().unwrap_or_default(),
            session_state,
            sink,
        );
    }
}

/// Emits an error of the program, such as a plugin that cannot be loaded. It fails no turn.
fn emit_program_error<'a>(properties: &mut Properties<'a>, own: Own<'a>, sink: &mut dyn EventSink) {
    let Some(failure) = properties.error.take() else {
        sink.event(Event::new(unknown(Some(Text::plain("session.error")), own)));
        return;
    };
    let text = error_of(failure).message;
    sink.event(Event::new(Notice { severity: Severity::Warning, text }));
}

impl Status<'_> {
    fn is_retry(&self) -> bool {
        self.kind.as_ref().is_some_and(|kind| *kind == "retry")
    }
}

/// The delay before a retry. The status contains the time of the retry. The id of the event
/// contains the time of the event: its first nine digits are the low bits of the milliseconds.
fn retry_delay(status: &Status<'_>, event: Option<&Text<'_>>) -> Option<u64> {
    const LOW: u64 = (1 << 36) - 1;
    let digits = event?.body().strip_prefix("evt_")?.get(..9)?;
    let sent_at = u64::from_str_radix(digits, 16).ok()?;
    let wait = (status.next? & LOW).checked_sub(sent_at)?;
    // A delay of a day or more means that the id has another format.
    Some(wait).filter(|wait| *wait < 86_400_000)
}
