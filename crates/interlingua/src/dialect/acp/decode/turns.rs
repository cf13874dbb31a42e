//! Turns: when they begin and end, which of them are of the past, and what they cost.

use super::agent::Agent;
use super::session::Opening;
use super::{AcpDecoder, Asked, is_replay, meta_of};
use crate::dialect::EventSink;
use crate::dialect::acp::wire::{Content, Params, Update};
use crate::dialect::decode::Own;
use crate::event::{
    Cost, Event, Native, Outcome, Scope, TurnEnded, TurnStarted, Usage, UserMessage,
};
use crate::json::read;
use crate::json::{Json, Text};

/// Which turn is open.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    #[default]
    None,
    Live,
    /// One of the past.
    Past,
    /// Something that the agent says without having been asked: it has no end of its own.
    Unasked,
}

/// The price of the session in dollars, which agents tell as a sum.
#[derive(Debug, Default)]
pub(super) struct Price {
    /// What the session had cost before the turn at hand; of a session that was loaded, only the agent
    /// can know it.
    before: Option<f64>,
    so_far: Option<f64>,
}

impl Price {
    /// That of a session that has just been made.
    pub(super) fn of_new_session() -> Self {
        Self { before: Some(0.0), so_far: None }
    }

    /// Takes what the session has cost by now. Before its first turn, that is what it cost in the past.
    pub(super) fn told(&mut self, usd: f64, turn: Turn) {
        let past = turn == Turn::Past || (turn != Turn::Live && self.before.is_none());
        *(if past { &mut self.before } else { &mut self.so_far }) = Some(usd);
    }

    /// The price of the turn that ends.
    pub(super) fn of_turn(&mut self) -> Option<Cost<'static>> {
        let now = self.so_far.take()?;
        let usd = now - self.before.replace(now)?;
        Some(Cost { scope: Scope::Turn, usd, ..Cost::default() }).filter(|cost| cost.usd > 0.0)
    }
}

impl AcpDecoder {
    pub(super) fn prompted<'a>(
        &mut self,
        id: Option<&Json<'a>>,
        params: &Params<'a>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        self.remember_asked(id, Asked::Prompt);
        self.end_untold_turn(sink);
        self.start_session(params.session.as_ref(), sink);
        self.turn = Turn::Live;
        self.opening = Opening::Open;
        sink.event(Event::new(TurnStarted::default()));
        let prompt = params.prompt.as_ref().and_then(read::records_of::<Content<'_>>);
        let texts: Vec<_> = prompt.iter().flatten().filter_map(prompt_text).collect();
        if texts.is_empty() {
            let name = Text::plain("session/prompt");
            sink.event(Event::new(Native { name, raw: own.json() }));
            return;
        }
        self.prompt = texts.join("\n");
        let text = Text::plain(&self.prompt);
        sink.event(Event::new(UserMessage { text, ..UserMessage::default() }));
    }

    pub(super) fn user_chunk<'a>(
        &mut self,
        update: &Update<'a>,
        session: Option<&Text<'a>>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let text = match &update.content {
            read::Shaped::Record(content) => content.text.clone(),
            _ => None,
        };
        let echo = self.client_seen
            && self.turn == Turn::Live
            && text.as_ref().is_some_and(|text| *text == *self.prompt);
        let Some(text) = text.filter(|text| !text.is_empty() && !echo) else {
            let name = Text::plain("session/update/user_message_chunk");
            sink.event(Event::new(Native { name, raw: own.json() }));
            return;
        };
        self.release(sink);
        self.end_block(sink);
        let meta = meta_of(&update.meta);
        self.enter(true, is_replay(meta.as_ref()), session, sink);
        let ours = meta.and_then(|meta| meta.ours).unwrap_or_default();
        // What Gemini tells its model before the user says anything.
        let context = self.agent == Agent::Gemini && text.body().starts_with("<session_context>");
        let injected = context || ours.injected == Some(true);
        let message = UserMessage { text, injected, replay: !injected };
        sink.event(Event::new(message).within(ours.parent));
    }

    /// Begins the turn that something belongs to, if it is not open.
    #[inline]
    pub(super) fn enter(
        &mut self,
        of_user: bool,
        past: bool,
        session: Option<&Text<'_>>,
        sink: &mut dyn EventSink,
    ) {
        if self.turn == Turn::Live && self.session.started {
            return;
        }
        self.enter_another(of_user, past, session, sink);
    }

    fn enter_another(
        &mut self,
        of_user: bool,
        past: bool,
        session: Option<&Text<'_>>,
        sink: &mut dyn EventSink,
    ) {
        self.start_session(session, sink);
        let turn = match self.turn {
            Turn::Live => return,
            _ if past => Turn::Past,
            _ if self.client_seen && self.loaded => Turn::Past,
            _ if self.client_seen => Turn::Unasked,
            _ => match self.opening {
                Opening::Connected | Opening::StillTelling => Turn::Past,
                Opening::Unseen | Opening::Open => Turn::Live,
            },
        };
        let next_of_past = of_user && self.past_answered;
        if self.turn != turn || next_of_past {
            self.end_untold_turn(sink);
            self.turn = turn;
            if turn != Turn::Live {
                let replay = turn == Turn::Past;
                sink.event(Event::new(TurnStarted { id: None, replay }));
            }
        }
        self.past_answered = turn == Turn::Past && !of_user;
    }

    /// Ends a turn whose end nobody tells: one of the past, or one that nobody asked for.
    pub(super) fn end_untold_turn(&mut self, sink: &mut dyn EventSink) {
        if matches!(self.turn, Turn::Past | Turn::Unasked) {
            let outcome = Outcome::Completed;
            self.end_turn(TurnEnded { outcome, ..TurnEnded::default() }, sink);
        }
    }

    /// Makes ready for the end of a turn that may have said nothing.
    pub(super) fn begin_to_end(&mut self, sink: &mut dyn EventSink) {
        self.end_untold_turn(sink);
        self.start_session(None, sink);
    }

    /// Adds what a request used to what the turn used.
    pub(super) fn add_usage(&mut self, usage: &Usage<'static>) {
        let so_far = self.usage.take().unwrap_or_default();
        self.usage = Some(Usage { scope: Scope::Turn, ..so_far.plus(usage) });
    }

    /// Ends the turn that is open, and all that is open in it.
    pub(super) fn end_turn(&mut self, ended: TurnEnded<'_>, sink: &mut dyn EventSink) {
        self.end_block(sink);
        self.end_calls(&ended.outcome, sink);
        self.asking.clear();
        self.usage = None;
        self.prompt.clear();
        self.stopping = false;
        self.turn = Turn::None;
        self.past_answered = false;
        sink.event(Event::new(ended));
    }

    /// Whether a prompt is being worked on, as far as one can see.
    pub(super) fn in_prompt(&self) -> bool {
        self.turn == Turn::Live
    }
}

fn prompt_text(content: &Content<'_>) -> Option<String> {
    match content.kind.as_ref().map_or("text", Text::body) {
        "text" => content.text.as_ref().map(ToString::to_string),
        "resource_link" => content.uri.as_ref().map(ToString::to_string),
        _ => None,
    }
}
