//! What is known of the session, and how far it is.

use super::AcpDecoder;
use super::agent::{self, Agent};
use super::turns::{Price, Turn};
use crate::dialect::EventSink;
use crate::dialect::acp::wire::{Answer, ConfigOption};
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

/// How far the session is, as the agent's answers alone tell it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    /// No answer was seen: the stream may begin anywhere.
    #[default]
    Unseen,
    /// There is a connection, and no session yet: what is said now is history.
    Connected,
    /// Gemini has answered, and still tells history.
    StillTelling,
    Open,
}

impl AcpDecoder {
    /// Whether a failure that nobody asked about can only be that of a prompt.
    pub(super) fn session_open(&self) -> bool {
        matches!(self.opening, Opening::Open | Opening::StillTelling) || self.session.started
    }

    /// The agent told who it is.
    pub(super) fn connected(&mut self, answer: &mut Answer<'_>) {
        self.opening = Opening::Connected;
        if let Some(info) = answer.info.take() {
            let (agent, name) = info.name.map(Agent::named).unzip();
            self.agent = agent.unwrap_or_default();
            self.session.agent = name.map(Text::into_owned);
            self.session.version = info.version.map(Text::into_owned);
        }
    }

    /// The agent opened a session: a new one is named, one of the past is not.
    pub(super) fn opened(&mut self, answer: &mut Answer<'_>, sink: &mut dyn EventSink) {
        let new = answer.session.is_some();
        if new {
            self.price = Price::of_new_session();
        }
        // Gemini answers before it has told all of the past: with the client's direction, that lasts
        // until the first prompt.
        let goes_on = !new && self.agent == Agent::Gemini;
        if goes_on && !self.client_seen {
            self.opening = Opening::StillTelling;
        } else {
            self.opening = Opening::Open;
        }
        if !goes_on {
            self.end_untold_turn(sink);
        }
        let mut news = settings(answer.options.as_ref());
        news.id = answer.session.take();
        news.model = answer.models.take().and_then(|models| models.current).or(news.model);
        let mode = answer.modes.take().and_then(|modes| modes.current);
        news.permission_mode = mode.or(news.permission_mode);
        self.learn(news, sink);
        let id = self.session.id.clone();
        self.start_session(id.as_ref(), sink);
    }

    /// Whether history was told since the connection was made.
    pub(super) fn telling_the_past(&self) -> bool {
        self.turn == Turn::Past
    }

    pub(super) fn awaits_session(&self) -> bool {
        self.opening == Opening::Connected
    }

    /// Keeps what became known of the session, and tells it if the session has started.
    pub(super) fn learn(&mut self, mut news: SessionUpdated<'_>, sink: &mut dyn EventSink) {
        news.model = news.model.map(|id| self.agent.model(id));
        news.permission_mode = news.permission_mode.map(agent::mode);
        let own = |text: &Option<Text<'_>>| text.clone().map(Text::into_owned);
        let session = &mut self.session;
        session.id = own(&news.id).or(session.id.take());
        session.model = own(&news.model).or(session.model.take());
        session.mode = own(&news.permission_mode).or(session.mode.take());
        if session.started {
            sink.event(Event::new(news));
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
            // A client may have to load a session by a padded id (Gemini): that is no part of its name.
            id: session.id.as_ref().map(trimmed),
            agent: borrowed(&session.agent).or(Some(Text::plain("acp"))),
            version: borrowed(&session.version),
            model: borrowed(&session.model),
            cwd: borrowed(&session.cwd),
            permission_mode: borrowed(&session.mode),
            tools: None,
        }));
    }
}

fn trimmed(id: &Text<'static>) -> Text<'static> {
    let plain = id.to_plain();
    let name = plain.trim();
    if name.len() == plain.len() { id.clone() } else { Text::from(name.to_owned()) }
}

/// The settings that are more than the agent's own business: its model and its mode.
pub(super) fn settings<'a>(options: Option<&Json<'a>>) -> SessionUpdated<'a> {
    let options = options.and_then(read::records_of::<ConfigOption<'_>>).unwrap_or_default();
    let value = |category: &str| {
        let of = |option: &&ConfigOption<'_>| {
            let told = option.category.as_ref().or(option.id.as_ref());
            told.is_some_and(|told| *told == *category)
        };
        let option = options.iter().find(of)?;
        option.value.clone().map(Text::into_owned)
    };
    let (model, permission_mode) = (value("model"), value("mode"));
    SessionUpdated { model, permission_mode, ..SessionUpdated::default() }
}
