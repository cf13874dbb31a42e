//! Turns: when they begin and end, which of them are replayed history, and what they cost.

use super::agent::Agent;
use super::session::SessionStage;
use super::{AcpDecoder, ClientRequest, is_replay, meta_of};
use crate::dialect::EventSink;
use crate::dialect::acp::wire::{Content, Params, Update};
use crate::dialect::decode::Own;
use crate::event::{
    Cost, Event, Native, Outcome, Scope, TurnEnded, TurnStarted, Usage, UserMessage,
};
use crate::json::read;
use crate::json::{Json, Text};

/// The turn that is open.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    #[default]
    None,
    Live,
    /// Replayed history.
    Replay,
    /// Output of the agent without a prompt. No response ends it.
    Unprompted,
}

/// The cost of the session in dollars, which agents report as a sum.
#[derive(Debug, Default)]
pub(super) struct SessionCost {
    /// The cost before the current turn. That of a loaded session is known only if the agent
    /// reports it.
    before: Option<f64>,
    so_far: Option<f64>,
}

impl SessionCost {
    /// The cost of a new session.
    pub(super) fn of_new_session() -> Self {
        Self { before: Some(0.0), so_far: None }
    }

    /// Records the cost of the session so far. Before the first turn, it is the cost of the
    /// history.
    pub(super) fn record(&mut self, usd: f64, turn: Turn) {
        let is_history = turn == Turn::Replay || (turn != Turn::Live && self.before.is_none());
        *(if is_history { &mut self.before } else { &mut self.so_far }) = Some(usd);
    }

    /// The cost of the turn that ends.
    pub(super) fn take_turn_cost(&mut self) -> Option<Cost<'static>> {
        let now = self.so_far.take()?;
        let usd = now - self.before.replace(now)?;
        Some(Cost { scope: Scope::Turn, usd, ..Cost::default() }).filter(|cost| cost.usd > 0.0)
    }
}

impl AcpDecoder {
    pub(super) fn read_prompt<'a>(
        &mut self,
        id: Option<&Json<'a>>,
        params: &Params<'a>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        self.remember_client_request(id, ClientRequest::Prompt);
        self.end_turn_without_response(sink);
        self.start_session(params.session.as_ref(), sink);
        self.turn = Turn::Live;
        self.stage = SessionStage::Open;
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

    pub(super) fn read_user_chunk<'a>(
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
        self.release_held_text(sink);
        self.end_block(sink);
        let meta = meta_of(&update.meta);
        self.enter_turn(true, is_replay(meta.as_ref()), session, sink);
        let ours = meta.and_then(|meta| meta.ours).unwrap_or_default();
        // Gemini adds this context before the first message of the user.
        let context = self.agent == Agent::Gemini && text.body().starts_with("<session_context>");
        let injected = context || ours.injected == Some(true);
        let message = UserMessage { text, injected, replay: !injected };
        sink.event(Event::new(message).within(ours.parent));
    }

    /// Begins the turn that a record belongs to, if it is not open.
    #[inline]
    pub(super) fn enter_turn(
        &mut self,
        of_user: bool,
        replay: bool,
        session: Option<&Text<'_>>,
        sink: &mut dyn EventSink,
    ) {
        if self.turn == Turn::Live && self.session.started {
            return;
        }
        self.enter_other_turn(of_user, replay, session, sink);
    }

    fn enter_other_turn(
        &mut self,
        of_user: bool,
        replay: bool,
        session: Option<&Text<'_>>,
        sink: &mut dyn EventSink,
    ) {
        self.start_session(session, sink);
        let turn = match self.turn {
            Turn::Live => return,
            _ if replay => Turn::Replay,
            _ if self.client_seen && self.loaded => Turn::Replay,
            _ if self.client_seen => Turn::Unprompted,
            _ => match self.stage {
                SessionStage::Connected | SessionStage::StillReplaying => Turn::Replay,
                SessionStage::Unseen | SessionStage::Open => Turn::Live,
            },
        };
        let next_replayed_turn = of_user && self.replay_has_output;
        if self.turn != turn || next_replayed_turn {
            self.end_turn_without_response(sink);
            self.turn = turn;
            if turn != Turn::Live {
                let replay = turn == Turn::Replay;
                sink.event(Event::new(TurnStarted { id: None, replay }));
            }
        }
        self.replay_has_output = turn == Turn::Replay && !of_user;
    }

    /// Ends a turn that no response ends: replayed history, or output without a prompt.
    pub(super) fn end_turn_without_response(&mut self, sink: &mut dyn EventSink) {
        if matches!(self.turn, Turn::Replay | Turn::Unprompted) {
            let outcome = Outcome::Completed;
            self.end_turn(TurnEnded { outcome, ..TurnEnded::default() }, sink);
        }
    }

    /// Prepares the end of a turn that may have no output.
    pub(super) fn prepare_turn_end(&mut self, sink: &mut dyn EventSink) {
        self.end_turn_without_response(sink);
        self.start_session(None, sink);
    }

    /// Adds the usage of a request to that of the turn.
    pub(super) fn add_usage(&mut self, usage: &Usage<'static>) {
        let so_far = self.usage.take().unwrap_or_default();
        self.usage = Some(Usage { scope: Scope::Turn, ..so_far.plus(usage) });
    }

    /// Ends the open turn with its open block and calls.
    pub(super) fn end_turn(&mut self, ended: TurnEnded<'_>, sink: &mut dyn EventSink) {
        self.end_block(sink);
        self.end_calls(&ended.outcome, sink);
        self.agent_requests.clear();
        self.usage = None;
        self.prompt.clear();
        self.cancel_requested = false;
        self.turn = Turn::None;
        self.replay_has_output = false;
        sink.event(Event::new(ended));
    }

    /// Whether a prompt is being worked on, as far as it is visible.
    pub(super) fn has_live_turn(&self) -> bool {
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
