//! The session starts once and ends once; what is said of it again is an update, or nothing.

use super::Exit;
use super::stream::{Emit, Stream};
use crate::dialect::{self, Dialect};
use crate::event::{Data, Event, Reason, SessionEnded, SessionStarted, SessionUpdated};
use crate::json::{Json, Text};

#[derive(Debug, Default)]
pub(super) struct Session {
    /// The name of the dialect that is read.
    dialect: Option<&'static str>,
    started: bool,
    /// The agent itself said in this epoch that the session starts.
    announced: bool,
    ended: bool,
    told_exit: Exit,
    id: Option<Text<'static>>,
    agent: Option<Text<'static>>,
    version: Option<Text<'static>>,
    model: Option<Text<'static>>,
    cwd: Option<Text<'static>>,
    permission_mode: Option<Text<'static>>,
    tools: Option<Json<'static>>,
}

impl Session {
    pub(super) fn reading(&mut self, dialect: &'static Dialect) {
        // Our own events may be those of any agent.
        self.dialect = (*dialect != dialect::events::DIALECT).then_some(dialect.name);
    }

    /// Begins another run of the agent, which ends in its own way.
    pub(super) fn begin_epoch(&mut self) {
        self.told_exit = Exit::default();
        self.announced = false;
        self.ended = false;
    }

    /// Whether the agent itself said in this epoch that the session starts.
    pub(super) fn is_announced(&self) -> bool {
        self.announced
    }

    /// Whether the agent starts another session of its own than the one that is known.
    pub(super) fn is_another(&self, event: &Event<'_>) -> bool {
        let Data::SessionStarted(started) = &event.data else { return false };
        started.id.is_some() && self.id.is_some() && started.id != self.id
    }

    pub(super) fn push(&mut self, event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Event { parent, time, synthetic, data } = event;
        self.announced |= matches!(data, Data::SessionStarted(_));
        let update = match data {
            Data::SessionStarted(started) if !self.started => {
                self.started = true;
                self.remember(&started);
                let started = Event::new(*started).within(parent).at(time).because(synthetic);
                stream.said(&mut { started }, emit);
                return;
            }
            Data::SessionStarted(again) => as_update(*again),
            Data::SessionUpdated(update) => *update,
            _ => return,
        };
        self.ensure_started(stream, emit);
        match self.news(update) {
            Some(news) => {
                let news = Event::new(news).within(parent).at(time).because(synthetic);
                stream.said(&mut { news }, emit);
            }
            None => stream.repeated(),
        }
    }

    pub(super) fn ensure_started(&mut self, stream: &mut Stream, emit: Emit<'_>) {
        if !self.started {
            self.started = true;
            let agent = self.dialect.map(Text::plain);
            self.agent.clone_from(&agent);
            let started = SessionStarted { agent, ..SessionStarted::default() };
            stream.added(&mut Event::new(started), Reason::Implied, emit);
        }
    }

    /// The end, as the stream itself tells it.
    pub(super) fn told_end(&mut self, event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::SessionEnded(ended) = &event.data else { return };
        self.told_exit = Exit {
            code: ended.exit_code,
            signal: ended.signal,
            stderr: ended.stderr.as_ref().map(ToString::to_string),
            stopped: None,
        };
        if std::mem::replace(&mut self.ended, true) {
            stream.merged();
        } else {
            stream.said(&mut { event }, emit);
        }
    }

    /// What is known of the end: what the caller saw, or else what the stream told.
    pub(super) fn exit(&self, seen: &Exit) -> Exit {
        Exit {
            code: seen.code.or(self.told_exit.code),
            signal: seen.signal.or(self.told_exit.signal),
            stderr: seen.stderr.clone().or_else(|| self.told_exit.stderr.clone()),
            stopped: seen.stopped.clone(),
        }
    }

    pub(super) fn end(&mut self, exit: &Exit, stream: &mut Stream, emit: Emit<'_>) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let ended = SessionEnded {
            exit_code: exit.code,
            signal: exit.signal,
            stderr: exit.stderr.as_deref().map(Text::plain),
        };
        let reason = if exit.code.is_some() || exit.signal.is_some() {
            Reason::ProcessEnded
        } else {
            Reason::InputEnded
        };
        stream.added(&mut Event::new(ended), reason, emit);
    }

    fn remember(&mut self, started: &SessionStarted<'_>) {
        self.news(as_update(started.clone()));
    }

    /// What of an update was not known before; `None` where it says nothing new.
    fn news<'a>(&mut self, mut update: SessionUpdated<'a>) -> Option<SessionUpdated<'a>> {
        let mut any =
            update.sandbox.is_some() || update.snapshot.is_some() || update.relay.is_some();
        macro_rules! keep_news {
            ($($fact:ident)+) => {$(
                if let Some(news) = news_of(self.$fact.clone(), &mut update.$fact) {
                    self.$fact = Some(news.into_owned());
                    any = true;
                }
            )+};
        }
        keep_news!(id agent version model cwd permission_mode tools);
        any.then_some(update)
    }
}

/// Keeps what is new of a fact, and takes it out of the update where it is not.
fn news_of<T: PartialEq + Clone>(known: Option<T>, told: &mut Option<T>) -> Option<T> {
    if *told == known {
        *told = None;
    }
    told.clone()
}

fn as_update(started: SessionStarted<'_>) -> SessionUpdated<'_> {
    SessionUpdated {
        id: started.id,
        agent: started.agent,
        version: started.version,
        model: started.model,
        cwd: started.cwd,
        permission_mode: started.permission_mode,
        tools: started.tools,
        ..SessionUpdated::default()
    }
}
