//! Ensures that the session starts once and ends once. A repeated start becomes an update, or is
//! dropped. The start has what the host knows and the agent did not report. The permission mode and the id
//! are those of the host, if it has some: the host decides, whatever mode the agent believes to be in.

use super::Exit;
use super::stream::{Emit, Stream};
use crate::dialect::{self, Dialect};
use crate::event::{Data, Event, Reason, SessionEnded, SessionStarted, SessionUpdated};
use crate::json::{Json, Text};
use crate::reader::HostFacts;

#[derive(Debug, Default)]
pub(super) struct Session {
    /// The name of the dialect that is read.
    dialect: Option<&'static str>,
    started: bool,
    /// The agent itself reported the start of the session in this epoch.
    announced: bool,
    ended: bool,
    reported_exit: Exit,
    /// What the host knows. Once the session has started, only the id and the permission mode matter.
    host: HostFacts,
    id: Option<Text<'static>>,
    agent: Option<Text<'static>>,
    version: Option<Text<'static>>,
    model: Option<Text<'static>>,
    cwd: Option<Text<'static>>,
    permission_mode: Option<Text<'static>>,
    tools: Option<Json<'static>>,
}

impl Session {
    pub(super) fn set_dialect(&mut self, dialect: &'static Dialect) {
        // Interlingua's own events may come from any agent.
        self.dialect = (*dialect != dialect::events::DIALECT).then_some(dialect.name);
    }

    pub(super) fn set_host(&mut self, host: HostFacts) {
        self.host = host;
    }

    /// Begins a new epoch, which has an exit of its own.
    pub(super) fn begin_epoch(&mut self) {
        self.reported_exit = Exit::default();
        self.announced = false;
        self.ended = false;
    }

    /// Whether the agent itself reported the start of the session in this epoch.
    pub(super) fn is_announced(&self) -> bool {
        self.announced
    }

    /// Whether the agent starts a session with another id than the known one.
    pub(super) fn is_another(&self, event: &Event<'_>) -> bool {
        let Data::SessionStarted(started) = &event.data else { return false };
        started.id.is_some() && self.id.is_some() && started.id != self.id
    }

    pub(super) fn push(&mut self, event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Event { parent, time, synthetic, data } = event;
        self.announced |= matches!(data, Data::SessionStarted(_));
        let update = match data {
            Data::SessionStarted(mut started) if !self.started => {
                self.started = true;
                self.complete(&mut started);
                self.remember(&started);
                let started = Event::new(*started).within(parent).at(time).because(synthetic);
                stream.emit_decoded(&mut { started }, emit);
                return;
            }
            Data::SessionStarted(mut again) => {
                enforce(self.host.permission_mode.as_ref(), &mut again.permission_mode);
                enforce(self.host.id.as_ref(), &mut again.id);
                as_update(*again)
            }
            Data::SessionUpdated(mut update) => {
                if update.permission_mode.is_some() {
                    enforce(self.host.permission_mode.as_ref(), &mut update.permission_mode);
                }
                if update.id.is_some() {
                    enforce(self.host.id.as_ref(), &mut update.id);
                }
                *update
            }
            _ => return,
        };
        self.ensure_started(stream, emit);
        match self.changes(update) {
            Some(changes) => {
                let changes = Event::new(changes).within(parent).at(time).because(synthetic);
                stream.emit_decoded(&mut { changes }, emit);
            }
            None => stream.count_repeated(),
        }
    }

    pub(super) fn ensure_started(&mut self, stream: &mut Stream, emit: Emit<'_>) {
        if !self.started {
            self.started = true;
            let agent = self.dialect.map(Text::plain);
            let mut started = SessionStarted { agent, ..SessionStarted::default() };
            self.complete(&mut started);
            self.remember(&started);
            stream.emit_added(&mut Event::new(started), Reason::Implied, emit);
        }
    }

    /// Adds what the host knows and the agent did not report.
    fn complete(&self, started: &mut SessionStarted<'_>) {
        let HostFacts { id, cwd, model, permission_mode } = self.host.clone();
        if permission_mode.is_some() {
            started.permission_mode = None;
        }
        if id.is_some() {
            started.id = None;
        }
        let SessionStarted { host_fields, .. } = started;
        let mut fill = |name, field: &mut Option<Text<'_>>, known: Option<String>| {
            if let (None, Some(known)) = (&field, known) {
                *field = Some(Text::from(known));
                host_fields.push(Text::plain(name));
            }
        };
        fill("id", &mut started.id, id);
        fill("cwd", &mut started.cwd, cwd);
        fill("model", &mut started.model, model);
        fill("permission_mode", &mut started.permission_mode, permission_mode);
    }

    /// Records the end of the session that the stream itself reports.
    pub(super) fn record_end(&mut self, event: Event<'_>, stream: &mut Stream, emit: Emit<'_>) {
        let Data::SessionEnded(ended) = &event.data else { return };
        self.reported_exit = Exit {
            code: ended.exit_code,
            signal: ended.signal,
            stderr: ended.stderr.as_ref().map(ToString::to_string),
            stopped: None,
        };
        if std::mem::replace(&mut self.ended, true) {
            stream.count_merged();
        } else {
            stream.emit_decoded(&mut { event }, emit);
        }
    }

    /// How the agent ended, as the caller saw it, else as the stream reported it.
    pub(super) fn exit(&self, seen: &Exit) -> Exit {
        Exit {
            code: seen.code.or(self.reported_exit.code),
            signal: seen.signal.or(self.reported_exit.signal),
            stderr: seen.stderr.clone().or_else(|| self.reported_exit.stderr.clone()),
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
        stream.emit_added(&mut Event::new(ended), reason, emit);
    }

    fn remember(&mut self, started: &SessionStarted<'_>) {
        self.changes(as_update(started.clone()));
    }

    /// The part of an update that was not known before; `None` if there is none.
    fn changes<'a>(&mut self, mut update: SessionUpdated<'a>) -> Option<SessionUpdated<'a>> {
        let mut any =
            update.sandbox.is_some() || update.snapshot.is_some() || update.relay.is_some();
        macro_rules! keep_changes {
            ($($fact:ident)+) => {$(
                if let Some(change) = take_change(self.$fact.clone(), &mut update.$fact) {
                    self.$fact = Some(change.into_owned());
                    any = true;
                }
            )+};
        }
        keep_changes!(id agent version model cwd permission_mode tools);
        any.then_some(update)
    }
}

/// Replaces a fact by that of the host, if the host has one.
fn enforce(enforced: Option<&String>, fact: &mut Option<Text<'_>>) {
    if let Some(enforced) = enforced {
        *fact = Some(Text::from(enforced.clone()));
    }
}

/// Returns a changed value, and removes an unchanged one from the update.
fn take_change<T: PartialEq + Clone>(known: Option<T>, value: &mut Option<T>) -> Option<T> {
    if *value == known {
        *value = None;
    }
    value.clone()
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
