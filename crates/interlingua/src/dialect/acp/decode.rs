//! The decoder of ACP. It reads the agent's direction alone, or a log of both directions in the
//! order of time.
//!
//! The shape of a message shows which side sent it. Only with the client's direction is it known
//! which response belongs to which request.

mod agent;
mod calls;
mod messages;
mod other_updates;
mod output;
mod permissions;
mod plan;
mod questions;
mod responses;
mod running_output;
mod session;
mod turns;

use self::agent::Agent;
use self::calls::Calls;
use self::messages::Streaming;
use self::permissions::Choice;
use self::questions::PendingQuestion;
use self::session::{Session, SessionStage};
use self::turns::{SessionCost, Turn};
use super::wire::{Message, Params, Update};
use super::wire_meta::Meta;
use crate::dialect::decode::Own;
use crate::dialect::{Decoder, EventSink, each_record, unknown};
use crate::event::{Event, Interrupted, Native, SessionUpdated, Usage};
use crate::framing::FrameText;
use crate::json::read;
use crate::json::{Json, Text};

/// The number of requests without a response that are remembered.
const MAX_PENDING: usize = 256;

/// The decoder of `acp`.
#[derive(Debug, Default)]
pub struct AcpDecoder {
    agent: Agent,
    session: Session,
    /// The client's requests that have no response yet, by their ids.
    client_requests: Vec<(String, ClientRequest)>,
    /// The agent's requests that have no response yet, by their ids.
    agent_requests: Vec<(String, AgentRequest)>,
    /// The log contains the client's direction.
    client_seen: bool,
    /// The client has loaded an earlier session.
    loaded: bool,
    stage: SessionStage,
    turn: Turn,
    /// A replayed turn contains output of the agent, so the next message of the user begins another
    /// turn.
    replay_has_output: bool,
    streaming: Streaming,
    calls: Calls,
    /// The prompt of the current turn.
    prompt: String,
    /// The usage of the requests of the current turn, for agents that report no usage of the turn.
    usage: Option<Usage<'static>>,
    session_cost: SessionCost,
    /// The client has asked the agent to cancel the current turn.
    cancel_requested: bool,
}

/// A request of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClientRequest {
    Prompt,
    /// A connection or a session. If it fails, no turn can start.
    Open,
    Other,
}

/// A request of the agent.
#[derive(Debug, Clone, PartialEq)]
enum AgentRequest {
    Permission { call: Text<'static>, choices: Vec<Choice> },
    Question(PendingQuestion),
    Other,
}

impl Decoder for AcpDecoder {
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        each_record(frame, sink, |message: &mut Message<'_>, own, sink| {
            self.read_message(message, own, sink);
        });
    }

    fn finish(&mut self, sink: &mut dyn EventSink) {
        self.release_held_text(sink);
        self.end_block(sink);
        self.end_turn_without_response(sink);
    }
}

impl AcpDecoder {
    #[inline]
    fn read_message<'a>(
        &mut self,
        message: &mut Message<'a>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let Some(method) = message.method.take() else {
            if message.id.is_some() {
                self.read_response(message, own, sink);
            } else {
                sink.event(Event::new(unknown(None, own)));
            }
            return;
        };
        if method.body() == "session/update" {
            match &mut message.params {
                Some(Params { update: Some(update), session, .. }) => {
                    self.read_update(update, session.as_ref(), own, sink);
                }
                _ => sink.event(Event::new(unknown(Some(method), own))),
            }
            return;
        }
        let params = message.params.take().unwrap_or_default();
        match method.body() {
            "session/request_permission" => {
                self.release_held_text(sink);
                self.enter_turn(false, false, params.session.as_ref(), sink);
                self.read_permission_request(message.id.as_ref(), params, sink);
            }
            "elicitation/create" | "session/elicitation" => {
                self.read_form(message.id.as_ref(), params, sink);
            }
            _ => self.read_other_method(method, message.id.as_ref(), params, own, sink),
        }
    }

    /// Reads the prompt, and requests and notifications that are not part of the agent's output.
    fn read_other_method<'a>(
        &mut self,
        method: Text<'a>,
        id: Option<&Json<'a>>,
        params: Params<'a>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let request = match method.body() {
            "session/prompt" => {
                self.read_prompt(id, &params, own, sink);
                return;
            }
            "session/cancel" => {
                self.client_seen = true;
                if self.turn == Turn::Live {
                    self.cancel_requested = true;
                    sink.event(Event::new(Interrupted::default()));
                    return;
                }
                None
            }
            "qwen/notify/session/mode-update" => {
                let permission_mode = params.mode;
                sink.event(Event::new(SessionUpdated {
                    permission_mode,
                    ..SessionUpdated::default()
                }));
                return;
            }
            "initialize" | "session/new" => Some(ClientRequest::Open),
            "session/load" | "session/resume" => {
                self.loaded = true;
                self.session_cost = SessionCost::default();
                self.session.id = params.session.clone().map(Text::into_owned);
                Some(ClientRequest::Open)
            }
            "authenticate"
            | "logout"
            | "session/set_mode"
            | "session/set_model"
            | "session/set_config_option"
            | "session/list"
            | "session/close"
            | "session/fork"
            | "session/delete" => Some(ClientRequest::Other),
            name if name.starts_with("fs/")
                || name.starts_with("terminal/")
                || name.starts_with("elicitation/")
                || name.starts_with("craft/")
                || name.starts_with('_')
                || name.starts_with("$/") =>
            {
                if let Some(id) = id {
                    self.remember_agent_request(id, AgentRequest::Other);
                }
                sink.event(Event::new(Native { name: method, raw: own.json() }));
                return;
            }
            _ => {
                sink.event(Event::new(unknown(Some(method), own)));
                return;
            }
        };
        if let Some(request) = request {
            self.remember_client_request(id, request);
            if let Some(cwd) = &params.cwd {
                self.session.cwd = Some(cwd.clone().into_owned());
            }
        }
        sink.event(Event::new(Native { name: method, raw: own.json() }));
    }

    fn remember_client_request(&mut self, id: Option<&Json<'_>>, request: ClientRequest) {
        self.client_seen = true;
        if let Some(id) = id {
            if self.client_requests.len() == MAX_PENDING {
                self.client_requests.remove(0);
            }
            self.client_requests.push((id.get().to_owned(), request));
        }
    }

    fn remember_agent_request(&mut self, id: &Json<'_>, request: AgentRequest) {
        if self.agent_requests.len() == MAX_PENDING {
            self.agent_requests.remove(0);
        }
        self.agent_requests.push((id.get().to_owned(), request));
    }

    #[inline]
    fn read_update<'a>(
        &mut self,
        update: &mut Update<'a>,
        session: Option<&Text<'a>>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let kind = update.kind.as_ref().map_or("", Text::body);
        match kind {
            "agent_message_chunk" | "agent_thought_chunk" => {
                self.read_agent_chunk(update, session, own, sink);
            }
            "tool_call" | "tool_call_update" => {
                self.release_held_text(sink);
                let meta = meta_of(&update.meta);
                let replay = is_replay(meta.as_ref());
                self.enter_turn(false, replay, session, sink);
                self.read_call(update, meta.unwrap_or_default(), sink);
            }
            "user_message_chunk" => self.read_user_chunk(update, session, own, sink),
            "plan" | "plan_update" | "plan_removed" => self.read_plan(update, session, own, sink),
            _ => self.read_other_update(update, session.cloned(), own, sink),
        }
    }

    /// The client's request that a response answers. It is unknown without the client's direction.
    fn take_client_request(&mut self, id: &Json<'_>) -> Option<ClientRequest> {
        let at = self.client_requests.iter().rposition(|(pending, _)| pending == id.get())?;
        Some(self.client_requests.remove(at).1)
    }

    fn take_agent_request(&mut self, id: &Json<'_>) -> Option<AgentRequest> {
        let at = self.agent_requests.iter().rposition(|(pending, _)| pending == id.get())?;
        Some(self.agent_requests.remove(at).1)
    }
}

/// Reads `_meta`, in which agents write fields outside the protocol.
fn meta_of<'m>(meta: &'m Option<Json<'_>>) -> Option<Meta<'m>> {
    read::record_of::<Meta<'_>>(meta.as_ref()?)
}

fn is_replay(meta: Option<&Meta<'_>>) -> bool {
    let ours = meta.and_then(|meta| meta.ours.as_ref());
    ours.is_some_and(|ours| ours.replay == Some(true))
}

/// The id of a request as text.
fn request_id<'a>(id: &'a Json<'_>) -> Text<'a> {
    id.as_text().unwrap_or_else(|| Text::plain(id.get()))
}
