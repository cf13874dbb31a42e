//! Reads the events of `opencode serve`: what happens to its sessions and their messages.

use std::mem::take;

use super::decode::{OpencodeDecoder, aside, native};
use super::failure::error_of;
use super::parts::Named;
use super::requests;
use super::sessions::Whose;
use super::wire::{Info, Properties, Status};
use crate::dialect::EventSink;
use crate::dialect::decode::Own;
use crate::dialect::tools::plan_items;
use crate::dialect::unknown;
use crate::event::{
    Compacted, Event, MessageStarted, Notice, PlanUpdated, SessionStarted, SessionUpdated, Severity,
};
use crate::json::{Json, Text};

impl OpencodeDecoder {
    pub(super) fn event<'a>(
        &mut self,
        kind: &Text<'a>,
        said: &mut Properties<'a>,
        id: Option<&Text<'a>>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let word = kind.body();
        let about_a_session = ["session.", "message.", "todo.", "permission.", "question."];
        if !about_a_session.iter().any(|start| word.starts_with(start)) {
            self.about_the_server(kind, own, sink);
            return;
        }
        if word == "session.created" && self.created(said, own, sink) {
            return;
        }
        if word == "session.error" && said.session.is_none() {
            about_no_session(said, own, sink);
            return;
        }
        self.session_known(said.session.as_ref(), sink);
        let Whose::Speaker(at) = self.sessions.whose(said.session.as_ref()) else {
            aside("other-session", word, own, sink);
            return;
        };
        let parent = || self.sessions.parent(at);
        match word {
            "message.part.delta" => {
                self.join(at, said.message.as_ref(), sink);
                self.piece(at, said, own, sink);
            }
            "message.part.updated" => match &mut said.part {
                Some(part) => {
                    self.join(at, part.message.as_ref(), sink);
                    self.part(at, part, said.delta.take(), said.time.take(), own, sink);
                }
                None => sink.event(Event::new(unknown(Some(kind.clone()), own))),
            },
            "message.updated" => self.message(at, said.info.take().unwrap_or_default(), own, sink),
            "todo.updated" => self.plan(at, said.todos.as_ref(), own, sink),
            "permission.asked" | "permission.v2.asked" => {
                self.requests.asked(take(said), parent(), sink)
            }
            "permission.replied" | "permission.v2.replied" => {
                self.requests.replied(take(said), parent(), &mut self.calls, sink);
            }
            "question.asked" | "question.v2.asked" => {
                requests::question(take(said), parent(), sink)
            }
            "question.replied"
            | "question.v2.replied"
            | "question.rejected"
            | "question.v2.rejected" => requests::answer(take(said), parent(), sink),
            "session.compacted" => {
                let trigger = self.compacts_by_itself.take();
                let trigger = trigger.map(|auto| if auto { "auto" } else { "manual" });
                let trigger = trigger.map(Text::plain);
                let compacted = Compacted { trigger, ..Compacted::default() };
                sink.event(Event::new(compacted).within(parent()));
            }
            "session.status" if said.status.as_ref().is_some_and(Status::is_retry) => {
                let status = said.status.take().unwrap_or_default();
                let delay_ms = wait_of(&status, id);
                self.retry(at, status, delay_ms, sink);
            }
            "session.created" | "session.updated" | "session.status" | "session.idle"
            | "session.error"
                if at > 0 =>
            {
                aside("sub-agent", word, own, sink);
            }
            "session.updated" => self.updated(said.info.take().unwrap_or_default(), own, sink),
            "session.status" => self.status(said.status.take().unwrap_or_default(), own, sink),
            "session.idle" => self.idle(word, own, sink),
            "session.error" => self.fail(said.error.take().unwrap_or_default(), None, own, sink),
            "session.created" => aside("again", word, own, sink),
            "session.diff" | "session.deleted" | "message.removed" | "message.part.removed" => {
                native(Text::plain(word), own, sink);
            }
            _ if word.starts_with("session.next.") => native(kind.clone(), own, sink),
            _ => sink.event(Event::new(unknown(Some(kind.clone()), own))),
        }
    }

    /// What happens to the server itself, or to its files and terminals.
    fn about_the_server<'a>(&mut self, kind: &Text<'a>, own: Own<'a>, sink: &mut dyn EventSink) {
        let known = super::ignored::ABOUT_THE_SERVER;
        let known = known.iter().any(|start| kind.body().starts_with(start));
        if known {
            native(kind.clone(), own, sink);
        } else {
            sink.event(Event::new(unknown(Some(kind.clone()), own)));
        }
    }

    /// A session was made; whether that is all that is to be said of it.
    fn created(
        &mut self,
        said: &mut Properties<'_>,
        own: Own<'_>,
        sink: &mut dyn EventSink,
    ) -> bool {
        let Some(info) = &mut said.info else { return false };
        let Some(id) = info.id.clone().or(said.session.clone()) else { return false };
        if let Some(mother) = &info.parent {
            let call = match self.sessions.whose(Some(mother)) {
                Whose::Speaker(at) => self.calls.starts_agent(at).map(str::to_owned),
                Whose::Other => None,
            };
            if let Some(call) = call {
                self.sessions.child(&id, &call);
                aside("sub-agent", "session.created", own, sink);
                return true;
            }
        }
        if !self.sessions.none() {
            return false;
        }
        self.sessions.whose(Some(&id));
        sink.event(Event::new(SessionStarted {
            id: Some(id),
            agent: Some(Text::plain("opencode")),
            version: info.version.take(),
            cwd: info.directory.take(),
            model: info.model.take().and_then(|model| model.id),
            ..SessionStarted::default()
        }));
        true
    }

    fn updated(&mut self, info: Info<'_>, own: Own<'_>, sink: &mut dyn EventSink) {
        let model = info.model.and_then(|model| model.id);
        let Some(speaker) = self.sessions.get_mut(0) else { return };
        let Some(model) = model.filter(|model| *model != *speaker.model) else {
            aside("again", "session.updated", own, sink);
            return;
        };
        speaker.model = model.to_plain().into_owned();
        sink.event(Event::new(SessionUpdated {
            model: Some(model),
            version: info.version,
            cwd: info.directory,
            ..SessionUpdated::default()
        }));
    }

    fn status(&mut self, status: Status<'_>, own: Own<'_>, sink: &mut dyn EventSink) {
        match status.kind.as_ref().map_or("", Text::body) {
            "busy" if self.turn.open && !self.turn.idle => {
                aside("again", "session.status", own, sink);
            }
            "busy" => {
                // The one before has ended, although its message never did.
                if self.turn.open {
                    self.end_turn(sink);
                }
                self.begin_turn(None, sink);
            }
            "idle" => self.idle("session.status", own, sink),
            other => {
                let name = Text::from(format!("session.status/{other}"));
                sink.event(Event::new(unknown(Some(name), own)));
            }
        }
    }

    /// The session is idle. Where its message is not over, the last of it is still to come.
    fn idle(&mut self, word: &str, own: Own<'_>, sink: &mut dyn EventSink) {
        let speaking = self.sessions.get(0).is_some_and(|speaker| speaker.speaking);
        if self.turn.open && !speaking {
            self.end_turn(sink);
        } else {
            self.turn.idle = self.turn.open;
            aside("again", word, own, sink);
        }
    }

    /// A message began, or something of it became known.
    fn message(&mut self, at: usize, info: Info<'_>, own: Own<'_>, sink: &mut dyn EventSink) {
        let parent = self.sessions.parent(at);
        let Some(speaker) = self.sessions.get_mut(at) else { return };
        let id = info.id.clone().unwrap_or_default();
        if info.role.as_ref().is_some_and(|role| *role == "user") {
            if id == *speaker.user || at > 0 || self.turn.open {
                speaker.user = id.to_plain().into_owned();
                aside("again", "message.updated", own, sink);
            } else {
                speaker.user = id.to_plain().into_owned();
                let created = info.time.unwrap_or_default().created;
                self.turn.started = created.as_ref().and_then(Json::read);
                self.begin_turn(created.as_ref(), sink);
            }
            return;
        }
        let is_new = id != *speaker.message;
        let time = info.time.unwrap_or_default();
        if is_new {
            speaker.begin(&id);
        }
        speaker.summary = info.summary == Some(true);
        let ended = speaker.speaking && time.ended.is_some();
        speaker.speaking = time.ended.is_none();
        if let Some(ended) = time.ended.as_ref().filter(|_| at == 0 && self.turn.open) {
            self.turn.completed = ended.read();
        }
        if is_new && !self.turn.open && at == 0 {
            self.begin_turn(time.created.as_ref(), sink);
        }
        if is_new {
            let started = MessageStarted { message: Some(id), model: info.model_id, usage: None };
            sink.event(Event::new(started).within(parent).at(time.created));
        } else if at == 0 && ended && self.turn.idle {
            if let Some(error) = info.error.filter(|_| self.turn.failure.is_none()) {
                self.fail(error, time.ended, own, sink);
            }
            self.end_turn(sink);
        } else {
            aside("again", "message.updated", own, sink);
        }
    }

    /// A part of a message of which the start was not seen, since the reader came in the middle of it.
    fn join(&mut self, at: usize, message: Option<&Text<'_>>, sink: &mut dyn EventSink) {
        let Some(speaker) = self.sessions.get_mut(at).filter(|_| at == 0) else { return };
        let Some(message) = message.filter(|_| speaker.message.is_empty()) else { return };
        if *message == *speaker.user {
            return;
        }
        speaker.begin(message);
        speaker.speaking = true;
        self.begin_turn(None, sink);
        let message = Some(message.borrowed());
        sink.event(Event::new(MessageStarted { message, ..MessageStarted::default() }));
    }

    fn plan(
        &mut self,
        at: usize,
        todos: Option<&Json<'_>>,
        own: Own<'_>,
        sink: &mut dyn EventSink,
    ) {
        // The call that writes the list tells it.
        let items = todos.and_then(plan_items).filter(|_| !self.calls.writes_plan(at));
        match items {
            Some(items) => sink.event(
                Event::new(PlanUpdated { plan: None, call: None, items })
                    .within(self.sessions.parent(at)),
            ),
            None => aside("again", "todo.updated", own, sink),
        }
    }

    fn piece(
        &mut self,
        at: usize,
        said: &mut Properties<'_>,
        own: Own<'_>,
        sink: &mut dyn EventSink,
    ) {
        let parent = self.sessions.parent(at);
        let Some(speaker) = self.sessions.get_mut(at) else { return };
        let of_text = said.field.as_ref().is_none_or(|field| *field == "text");
        let (Some(id), Some(message), true) = (&said.part_id, &said.message, of_text) else {
            aside("again", "message.part.delta", own, sink);
            return;
        };
        if speaker.summary && *message == *speaker.message {
            aside("summary", "message.part.delta", own, sink);
            return;
        }
        let id = &*id.to_plain();
        let named = Named { id, message, session: at, parent, time: said.time.take() };
        self.parts.piece(named, said.delta.take().unwrap_or_default(), speaker, sink);
    }
}

/// Something of the program went wrong, such as a plugin that cannot be loaded: no turn has failed.
fn about_no_session<'a>(said: &mut Properties<'a>, own: Own<'a>, sink: &mut dyn EventSink) {
    let Some(failure) = said.error.take() else {
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

/// How long a session waits before the next try. It says until when; the id of the event says when
/// that was said: its first nine digits are the low bits of the milliseconds.
fn wait_of(status: &Status<'_>, event: Option<&Text<'_>>) -> Option<u64> {
    const LOW: u64 = (1 << 36) - 1;
    let digits = event?.body().strip_prefix("evt_")?.get(..9)?;
    let said_at = u64::from_str_radix(digits, 16).ok()?;
    let wait = (status.next? & LOW).checked_sub(said_at)?;
    // Nobody waits for a day: the id is of another kind.
    Some(wait).filter(|wait| *wait < 86_400_000)
}
