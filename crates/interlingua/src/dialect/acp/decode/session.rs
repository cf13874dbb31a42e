//! What is known of the session, and how far it has been opened.

use super::AcpDecoder;
use super::agent::{self, Agent};
use super::turns::{SessionCost, Turn};
use crate::dialect::EventSink;
use crate::dialect::acp::wire::{ConfigOption, ResponseResult};
use crate::event::{Event, SessionStarted, SessionUpdated};
use crate::json::read;
use crate::json::{Json, Text};

/// What is known of the session.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) started: bool,
    pub(super) id: Option<Text<'static>>,
    pub(super) agent: Option<Text<'static>>,
    pub(super) version: Option<Text<'static>>,
    pub(super) model: Option<Text<'static>>,
    pub(super) mode: Option<Text<'static>>,
    pub(super) cwd: Option<Text<'static>>,
}

/// How far the session has been opened, as seen in the responses of the agent alone.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionStage {
    /// No response was seen: the stream may begin anywhere.
    #[default]
    Unseen,
    /// There is a connection, but no session yet: updates are replayed history.
    Connected,
    /// Gemini has responded, and still replays history.
    StillReplaying,
    Open,
}

impl AcpDecoder {
    /// Whether a session is open, so that an error response to an unknown request can only answer a
    /// prompt.
    pub(super) fn is_session_open(&self) -> bool {
        matches!(self.stage, SessionStage::Open | SessionStage::StillReplaying)
            || self.session.started
    }

    /// Reads the name and the version of the agent.
    pub(super) fn learn_agent(&mut self, result: &mut ResponseResult<'_>) {
        self.stage = SessionStage::Connected;
        if let Some(info) = result.info.take() {
            let (agent, name) = info.name.map(Agent::named).unzip();
            self.agent = agent.unwrap_or_default();
            self.session.agent = name.map(Text::into_owned);
            self.session.version = info.version.map(Text::into_owned);
        }
    }

    /// Reads the response that opens a session. It contains an id only if the session is new.
    pub(super) fn open_session(
        &mut self,
        result: &mut ResponseResult<'_>,
        sink: &mut dyn EventSink,
    ) {
        let is_new = result.session.is_some();
        if is_new {
            self.session_cost = SessionCost::of_new_session();
        }
        // Gemini responds before it has replayed all of the history. If the client's direction is
        // logged, the history lasts until the first prompt.
        let replay_continues = !is_new && self.agent == Agent::Gemini;
        if replay_continues && !self.client_seen {
            self.stage = SessionStage::StillReplaying;
        } else {
            self.stage = SessionStage::Open;
        }
        if !replay_continues {
            self.end_turn_without_response(sink);
        }
        let mut changes = settings(result.options.as_ref());
        changes.id = result.session.take();
        changes.model = result.models.take().and_then(|models| models.current).or(changes.model);
        let mode = result.modes.take().and_then(|modes| modes.current);
        changes.permission_mode = mode.or(changes.permission_mode);
        self.update_session(changes, sink);
        let id = self.session.id.clone();
        self.start_session(id.as_ref(), sink);
    }

    /// Whether history was replayed since the connection was made.
    pub(super) fn is_replaying(&self) -> bool {
        self.turn == Turn::Replay
    }

    pub(super) fn awaits_session(&self) -> bool {
        self.stage == SessionStage::Connected
    }

    /// Keeps what became known of the session, and emits it if the session has started.
    pub(super) fn update_session(
        &mut self,
        mut changes: SessionUpdated<'_>,
        sink: &mut dyn EventSink,
    ) {
        changes.model = changes.model.map(|id| self.agent.model(id));
        changes.permission_mode = changes.permission_mode.map(agent::mode);
        let own = |text: &Option<Text<'_>>| text.clone().map(Text::into_owned);
        let session = &mut self.session;
        session.id = own(&changes.id).or(session.id.take());
        session.model = own(&changes.model).or(session.model.take());
        session.mode = own(&changes.permission_mode).or(session.mode.take());
        if session.started {
            sink.event(Event::new(changes));
        }
    }

    pub(super) fn start_session(&mut self, id: Option<&Text<'_>>, sink: &mut dyn EventSink) {
        let session = &mut self.session;
        if session.started && (id.is_none() || session.id.as_ref() == id) {
            return;
        }
        if let Some(id) = id {
            session.id = Some(id.clone().into_owned());
        }
        session.started = true;
        let borrowed = |text: &'_ Option<Text<'static>>| text.clone();
        sink.event(Event::new(SessionStarted {
            // A client may have to load a session of Gemini by a padded id. The padding is not part
            // of the id.
            id: session.id.as_ref().map(trimmed),
            agent: borrowed(&session.agent).or(Some(Text::plain("acp"))),
            version: borrowed(&session.version),
            model: borrowed(&session.model),
            cwd: borrowed(&session.cwd),
            permission_mode: borrowed(&session.mode),
            tools: None,
            host_fields: Vec::new(),
        }));
    }
}

fn trimmed(id: &Text<'static>) -> Text<'static> {
    let plain = id.to_plain();
    let name = plain.trim();
    if name.len() == plain.len() { id.clone() } else { Text::from(name.to_owned()) }
}

/// The model and the mode among the settings; the other settings concern the agent alone.
pub(super) fn settings<'a>(options: Option<&Json<'a>>) -> SessionUpdated<'a> {
    let options = options.and_then(read::records_of::<ConfigOption<'_>>).unwrap_or_default();
    let value = |category: &str| {
        let of = |option: &&ConfigOption<'_>| {
            let category_of = option.category.as_ref().or(option.id.as_ref());
            category_of.is_some_and(|it| *it == *category)
        };
        let option = options.iter().find(of)?;
        option.value.clone().map(Text::into_owned)
    };
    let (model, permission_mode) = (value("model"), value("mode"));
    SessionUpdated { model, permission_mode, ..SessionUpdated::default() }
}
