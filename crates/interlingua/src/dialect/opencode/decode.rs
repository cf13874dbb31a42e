//! Reads opencode's lines and events.

use super::calls::{Calls, Place};
use super::failure::{ABORTED, class_of, error_of};
use super::parts::{Named, Parts};
use super::requests::{self, Requests};
use super::sessions::{Sessions, Whose};
use super::turn::{Turn, counts, goes_on};
use super::wire::{Failure, Info, Line, Part, Properties, Status};
use crate::dialect::decode::Own;
use crate::dialect::tools::plan_items;
use crate::dialect::{Decoder, each_record, unknown};
use crate::event::{
    BlockKind, Compacted, Event, FileChange, FilesChanged, Interrupted, MessageEnded,
    MessageStarted, Native, PlanUpdated, Retry, SessionStarted, SessionUpdated, Sink, TurnStarted,
    UserMessage, Withdrawn,
};
use crate::framing::FrameText;
use crate::json::{Json, Text};

/// The reader of `opencode`.
#[derive(Debug, Default)]
pub struct OpencodeDecoder {
    sessions: Sessions,
    turn: Turn,
    parts: Parts,
    calls: Calls,
    requests: Requests,
    /// The conversation is made shorter without anybody having asked for it.
    compacts_by_itself: Option<bool>,
    /// The records are lines of `run`, which has no record for the end of a turn.
    lines: bool,
}

impl Decoder for OpencodeDecoder {
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn Sink) {
        each_record(frame, sink, |line: &mut Line<'_>, own, sink| {
            let kind = line.kind.take().unwrap_or_default();
            match line.properties.take() {
                Some(properties) => self.event(&kind, properties, own, sink),
                None => self.line(&kind, line, own, sink),
            }
        });
    }

    fn finish(&mut self, sink: &mut dyn Sink) {
        let told =
            self.turn.idle || self.lines && (self.turn.failure.is_some() || self.turn.denied);
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
        sink: &mut dyn Sink,
    ) {
        let ours = ["step_start", "step_finish", "text", "reasoning", "tool_use", "error"];
        if !ours.contains(&kind.body()) {
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
        self.begin_turn(time.clone(), sink);
        match (kind.body(), line.part.take()) {
            ("error", _) => self.fail(line.error.take().unwrap_or_default(), time, sink),
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
        part: Part<'a>,
        time: Option<Json<'a>>,
        own: Own<'a>,
        sink: &mut dyn Sink,
    ) {
        let message = part.message.unwrap_or_default();
        let Some(speaker) = self.sessions.get_mut(at) else { return };
        if message == *speaker.message {
            aside("again", "step_start", own, sink);
            return;
        }
        speaker.message = message.to_plain().into_owned();
        speaker.next = 0;
        let message = Some(message);
        sink.event(Event::new(MessageStarted { message, ..MessageStarted::default() }).at(time));
    }
}

/// Events of the server.
impl OpencodeDecoder {
    fn event<'a>(
        &mut self,
        kind: &Text<'a>,
        mut said: Properties<'a>,
        own: Own<'a>,
        sink: &mut dyn Sink,
    ) {
        let word = kind.body();
        let about_a_session = ["session.", "message.", "todo.", "permission.", "question."];
        if !about_a_session.iter().any(|start| word.starts_with(start)) {
            self.about_the_server(kind, own, sink);
            return;
        }
        if word == "session.created" && self.created(&mut said, own, sink) {
            return;
        }
        self.session_known(said.session.as_ref(), sink);
        let Whose::Speaker(at) = self.sessions.whose(said.session.as_ref()) else {
            aside("other-session", word, own, sink);
            return;
        };
        let parent = || self.sessions.parent(at);
        match word {
            "message.part.delta" => self.piece(at, said, own, sink),
            "message.part.updated" => match said.part.take() {
                Some(part) => self.part(at, part, said.delta.take(), said.time, own, sink),
                None => sink.event(Event::new(unknown(Some(kind.clone()), own))),
            },
            "message.updated" => self.message(at, said.info.unwrap_or_default(), own, sink),
            "todo.updated" => self.plan(at, said.todos.as_ref(), own, sink),
            "permission.asked" | "permission.v2.asked" => self.requests.asked(said, parent(), sink),
            "permission.replied" | "permission.v2.replied" => {
                self.requests.replied(said, parent(), &mut self.calls, sink);
            }
            "question.asked" | "question.v2.asked" => requests::question(said, parent(), sink),
            "question.replied"
            | "question.v2.replied"
            | "question.rejected"
            | "question.v2.rejected" => requests::answer(said, parent(), sink),
            "session.compacted" => {
                let trigger = self.compacts_by_itself.take();
                let trigger = trigger.map(|auto| if auto { "auto" } else { "manual" });
                let trigger = trigger.map(Text::plain);
                let compacted = Compacted { trigger, ..Compacted::default() };
                sink.event(Event::new(compacted).within(parent()));
            }
            "session.created" | "session.updated" | "session.status" | "session.idle"
            | "session.error"
                if at > 0 =>
            {
                self.about_a_subagent(at, word, said, own, sink);
            }
            "session.updated" => self.updated(said.info.unwrap_or_default(), own, sink),
            "session.status" => self.status(said.status.unwrap_or_default(), own, sink),
            "session.idle" => self.idle(word, own, sink),
            "session.error" => self.fail(said.error.unwrap_or_default(), None, sink),
            "session.created" => aside("again", word, own, sink),
            "session.diff" | "session.deleted" | "message.removed" | "message.part.removed" => {
                native(Text::plain(word), own, sink);
            }
            _ if word.starts_with("session.next.") => native(kind.clone(), own, sink),
            _ => sink.event(Event::new(unknown(Some(kind.clone()), own))),
        }
    }

    /// What happens to the server itself, or to its files and terminals.
    fn about_the_server<'a>(&mut self, kind: &Text<'a>, own: Own<'a>, sink: &mut dyn Sink) {
        let known = super::ignored::ABOUT_THE_SERVER;
        let known = known.iter().any(|start| kind.body().starts_with(start));
        if known {
            native(kind.clone(), own, sink);
        } else {
            sink.event(Event::new(unknown(Some(kind.clone()), own)));
        }
    }

    /// A session was made; whether that is all that is to be said of it.
    fn created(&mut self, said: &mut Properties<'_>, own: Own<'_>, sink: &mut dyn Sink) -> bool {
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

    fn updated(&mut self, info: Info<'_>, own: Own<'_>, sink: &mut dyn Sink) {
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

    fn status(&mut self, status: Status<'_>, own: Own<'_>, sink: &mut dyn Sink) {
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
            "retry" => self.retry(0, status, sink),
            "idle" => self.idle("session.status", own, sink),
            other => {
                let name = Text::from(format!("session.status/{other}"));
                sink.event(Event::new(unknown(Some(name), own)));
            }
        }
    }

    /// The session is idle. Where its message is not over, the last of it is still to come.
    fn idle(&mut self, word: &str, own: Own<'_>, sink: &mut dyn Sink) {
        let speaking = self.sessions.get(0).is_some_and(|speaker| speaker.speaking);
        if self.turn.open && !speaking {
            self.end_turn(sink);
        } else {
            self.turn.idle = self.turn.open;
            aside("again", word, own, sink);
        }
    }

    fn retry(&mut self, at: usize, status: Status<'_>, sink: &mut dyn Sink) {
        let parent = self.sessions.parent(at);
        // What the request that failed had said, the next one says again.
        self.parts.withdraw(at);
        let withdrawn = Withdrawn { reason: status.message.clone(), ..Withdrawn::default() };
        sink.event(Event::new(withdrawn).within(parent.clone()));
        let retry = Retry {
            attempt: status.attempt,
            class: status.message.as_ref().map(class_of).unwrap_or_default(),
            message: status.message,
            ..Retry::default()
        };
        sink.event(Event::new(retry).within(parent));
    }

    /// What a sub-agent's session says of itself: its call tells when it starts and ends.
    fn about_a_subagent(
        &mut self,
        at: usize,
        word: &str,
        said: Properties<'_>,
        own: Own<'_>,
        sink: &mut dyn Sink,
    ) {
        let status = said.status.unwrap_or_default();
        if status.kind.as_ref().is_some_and(|kind| *kind == "retry") {
            self.retry(at, status, sink);
            return;
        }
        aside("sub-agent", word, own, sink);
    }

    /// A message began, or something of it became known.
    fn message(&mut self, at: usize, info: Info<'_>, own: Own<'_>, sink: &mut dyn Sink) {
        let parent = self.sessions.parent(at);
        let Some(speaker) = self.sessions.get_mut(at) else { return };
        let id = info.id.clone().unwrap_or_default();
        if info.role.as_ref().is_some_and(|role| *role == "user") {
            if id == *speaker.user || at > 0 || self.turn.open {
                speaker.user = id.to_plain().into_owned();
                aside("again", "message.updated", own, sink);
            } else {
                speaker.user = id.to_plain().into_owned();
                self.begin_turn(None, sink);
            }
            return;
        }
        let is_new = id != *speaker.message;
        let time = info.time.unwrap_or_default();
        if is_new {
            speaker.message = id.to_plain().into_owned();
            speaker.next = 0;
        }
        speaker.summary = info.summary == Some(true);
        let ended = speaker.speaking && time.ended.is_some();
        speaker.speaking = time.ended.is_none();
        if is_new && !self.turn.open && at == 0 {
            self.begin_turn(time.created.clone(), sink);
        }
        if is_new {
            let started = MessageStarted { message: Some(id), model: info.model_id, usage: None };
            sink.event(Event::new(started).within(parent).at(time.created));
        } else if at == 0 && ended && self.turn.idle {
            if let Some(error) = info.error.filter(|_| self.turn.failure.is_none()) {
                self.fail(error, time.ended, sink);
            }
            self.end_turn(sink);
        } else {
            aside("again", "message.updated", own, sink);
        }
    }

    fn plan(&mut self, at: usize, todos: Option<&Json<'_>>, own: Own<'_>, sink: &mut dyn Sink) {
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

    fn piece(&mut self, at: usize, said: Properties<'_>, own: Own<'_>, sink: &mut dyn Sink) {
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
        let named = Named { id, message, session: at, parent, time: said.time };
        self.parts.piece(named, said.delta.unwrap_or_default(), speaker, sink);
    }
}

/// What both forms have in common.
impl OpencodeDecoder {
    /// The first record of a session that nobody has announced.
    fn session_known(&mut self, session: Option<&Text<'_>>, sink: &mut dyn Sink) {
        if let Some(id) = session.filter(|_| self.sessions.none()) {
            self.sessions.whose(Some(id));
            sink.event(Event::new(SessionStarted {
                id: Some(id.clone()),
                agent: Some(Text::plain("opencode")),
                ..SessionStarted::default()
            }));
        }
    }

    fn begin_turn(&mut self, time: Option<Json<'_>>, sink: &mut dyn Sink) {
        if !std::mem::replace(&mut self.turn.open, true) {
            sink.event(Event::new(TurnStarted::default()).at(time));
        }
    }

    fn end_turn(&mut self, sink: &mut dyn Sink) {
        self.parts.end(0, None, sink);
        self.calls.end_turn();
        if let Some(speaker) = self.sessions.get_mut(0) {
            speaker.speaking = false;
        }
        sink.event(Event::new(self.turn.end()));
    }

    fn fail<'a>(&mut self, failure: Failure<'a>, time: Option<Json<'a>>, sink: &mut dyn Sink) {
        self.begin_turn(time.clone(), sink);
        let aborted = failure.name.as_ref().is_some_and(|name| *name == ABORTED);
        let error = error_of(failure);
        self.turn.fail(&error);
        if aborted {
            sink.event(Event::new(Interrupted { text: Some(error.message) }).at(time));
        } else {
            sink.event(Event::new(error).at(time));
        }
    }

    fn step_finished<'a>(
        &mut self,
        at: usize,
        part: Part<'a>,
        time: Option<Json<'a>>,
        sink: &mut dyn Sink,
    ) {
        let parent = self.sessions.parent(at);
        self.parts.end(at, parent.as_ref(), sink);
        let usage = part.tokens.and_then(counts);
        if at == 0 {
            let reason = part.reason.as_ref().map_or("", Text::body);
            self.turn.step(usage.as_ref(), part.cost, reason);
        }
        let ended = MessageEnded { message: part.message, stop_reason: part.reason, usage };
        sink.event(Event::new(ended).within(parent).at(time));
    }

    /// A part of a message, as it is by now.
    fn part<'a>(
        &mut self,
        at: usize,
        part: Part<'a>,
        piece: Option<Text<'a>>,
        time: Option<Json<'a>>,
        own: Own<'a>,
        sink: &mut dyn Sink,
    ) {
        let parent = self.sessions.parent(at);
        let kind = part.kind.clone().unwrap_or_default();
        let Some(speaker) = self.sessions.get_mut(at) else { return };
        let message = part.message.clone().unwrap_or_default();
        let by_user = !speaker.user.is_empty() && message == *speaker.user;
        let summary = speaker.summary && message == *speaker.message;
        match kind.body() {
            "step-finish" => self.step_finished(at, part, time, sink),
            "step-start" => {
                self.calls.changed.clear();
                aside("part", "step-start", own, sink);
            }
            "text" if by_user && at == 0 => {
                let injected = part.synthetic == Some(true);
                let text = part.text.unwrap_or_default();
                let said = UserMessage { text, injected, ..UserMessage::default() };
                sink.event(Event::new(said).at(time));
            }
            "text" | "reasoning" if by_user || summary => {
                aside("summary", "message.part.updated", own, sink);
            }
            "text" | "reasoning" => {
                let text_kind = if kind == "text" { BlockKind::Text } else { BlockKind::Reasoning };
                let id = part.id.unwrap_or_default();
                let named = Named { id: &id, message: &message, session: at, parent, time };
                let over = part.time.is_some_and(|time| time.ended.is_some());
                let text = part.text.unwrap_or_default();
                let news = match piece {
                    // An older version tells the piece beside the snapshot.
                    Some(piece) if !over => {
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
                self.turn.denied |= told.denied && at == 0;
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
        part: Part<'_>,
        parent: &Option<Text<'static>>,
        own: Own<'_>,
        sink: &mut dyn Sink,
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
fn native<'a>(name: Text<'a>, own: Own<'a>, sink: &mut dyn Sink) {
    sink.event(Event::new(Native { name, raw: own.json() }));
}

/// A record of a type that is read, which says nothing that was not told before or elsewhere.
fn aside(why: &str, kind: &str, own: Own<'_>, sink: &mut dyn Sink) {
    native(Text::from(format!("{kind}/{why}")), own, sink);
}
