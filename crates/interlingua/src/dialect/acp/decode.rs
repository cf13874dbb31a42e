//! Reads ACP: the agent's direction alone, or both directions as they come.
//!
//! A message says by its shape who sent it. What only the client can know (which answer belongs to
//! which request) is known where its direction is there too.

mod agent;
mod answers;
mod aside;
mod calls;
mod output;
mod permissions;
mod plan;
mod said;
mod session;
mod turns;

use self::agent::Agent;
use self::calls::Calls;
use self::permissions::Choice;
use self::said::Saying;
use self::session::{Opening, Session};
use self::turns::{Price, Turn};
use super::wire::{Message, Params, Update};
use super::wire_meta::Meta;
use crate::dialect::decode::Own;
use crate::dialect::{Decoder, EventSink, each_record, unknown};
use crate::event::{Event, Interrupted, Native, QuestionAnswered, QuestionAsked, Usage};
use crate::framing::FrameText;
use crate::json::read;
use crate::json::{Json, Text};

/// How many requests without an answer are remembered.
const REMEMBERED: usize = 256;

/// The reader of `acp`.
#[derive(Debug, Default)]
pub struct AcpDecoder {
    agent: Agent,
    session: Session,
    /// The client's requests that wait for the agent's answer.
    asked: Vec<(String, Asked)>,
    /// The agent's requests that wait for the client's answer, and what is asked.
    asking: Vec<(String, Asking)>,
    /// The client's direction is there.
    client_seen: bool,
    /// A session of the past was opened.
    loaded: bool,
    opening: Opening,
    turn: Turn,
    /// The agent has spoken since the last message of the user, in a turn of the past.
    past_answered: bool,
    saying: Saying,
    calls: Calls,
    /// What the turn at hand was asked.
    prompt: String,
    /// What the requests of the turn at hand used, where the agent tells only that.
    usage: Option<Usage<'static>>,
    price: Price,
    /// The client wants the turn at hand to stop.
    stopping: bool,
}

/// What the client asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Prompt,
    /// A connection or a session: without it nothing happens.
    Opening,
    Else,
}

/// What the agent asked for.
#[derive(Debug, Clone, PartialEq)]
enum Asking {
    Permission { call: Text<'static>, choices: Vec<Choice> },
    Question,
    Else,
}

impl Decoder for AcpDecoder {
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn EventSink) {
        each_record(frame, sink, |message: &mut Message<'_>, own, sink| {
            self.message(message, own, sink);
        });
    }

    fn finish(&mut self, sink: &mut dyn EventSink) {
        self.release(sink);
        self.end_block(sink);
        self.end_untold_turn(sink);
    }
}

impl AcpDecoder {
    #[inline]
    fn message<'a>(&mut self, message: &mut Message<'a>, own: Own<'a>, sink: &mut dyn EventSink) {
        let Some(method) = message.method.take() else {
            if message.id.is_some() {
                self.answered(message, own, sink);
            } else {
                sink.event(Event::new(unknown(None, own)));
            }
            return;
        };
        if method.body() == "session/update" {
            match &mut message.params {
                Some(Params { update: Some(update), session, .. }) => {
                    self.update(update, session.as_ref(), own, sink);
                }
                _ => sink.event(Event::new(unknown(Some(method), own))),
            }
            return;
        }
        let params = message.params.take().unwrap_or_default();
        match method.body() {
            "session/request_permission" => {
                self.release(sink);
                self.enter(false, false, params.session.as_ref(), sink);
                self.permission(message.id.as_ref(), params, sink);
            }
            "elicitation/create" => self.question(message.id.as_ref(), own, sink),
            _ => self.other(method, message.id.as_ref(), params, own, sink),
        }
    }

    /// Requests and notifications that are no part of what the agent says.
    fn other<'a>(
        &mut self,
        method: Text<'a>,
        id: Option<&Json<'a>>,
        params: Params<'a>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let asked = match method.body() {
            "session/prompt" => {
                self.prompted(id, &params, own, sink);
                return;
            }
            "session/cancel" => {
                self.client_seen = true;
                if self.turn == Turn::Live {
                    self.stopping = true;
                    sink.event(Event::new(Interrupted::default()));
                    return;
                }
                None
            }
            "initialize" | "session/new" => Some(Asked::Opening),
            "session/load" | "session/resume" => {
                self.loaded = true;
                self.price = Price::default();
                self.session.id = params.session.clone().map(Text::into_owned);
                Some(Asked::Opening)
            }
            "authenticate"
            | "logout"
            | "session/set_mode"
            | "session/set_config_option"
            | "session/list"
            | "session/close"
            | "session/fork"
            | "session/delete" => Some(Asked::Else),
            word if word.starts_with("fs/")
                || word.starts_with("terminal/")
                || word.starts_with("elicitation/")
                || word.starts_with("craft/")
                || word.starts_with('_')
                || word.starts_with("$/") =>
            {
                if let Some(id) = id {
                    self.remember_asking(id, Asking::Else);
                }
                sink.event(Event::new(Native { name: method, raw: own.json() }));
                return;
            }
            _ => {
                sink.event(Event::new(unknown(Some(method), own)));
                return;
            }
        };
        if let Some(asked) = asked {
            self.remember_asked(id, asked);
            if let Some(cwd) = &params.cwd {
                self.session.cwd = Some(cwd.clone().into_owned());
            }
        }
        sink.event(Event::new(Native { name: method, raw: own.json() }));
    }

    fn remember_asked(&mut self, id: Option<&Json<'_>>, asked: Asked) {
        self.client_seen = true;
        if let Some(id) = id {
            if self.asked.len() == REMEMBERED {
                self.asked.remove(0);
            }
            self.asked.push((id.get().to_owned(), asked));
        }
    }

    fn remember_asking(&mut self, id: &Json<'_>, asking: Asking) {
        if self.asking.len() == REMEMBERED {
            self.asking.remove(0);
        }
        self.asking.push((id.get().to_owned(), asking));
    }

    #[inline]
    fn update<'a>(
        &mut self,
        update: &mut Update<'a>,
        session: Option<&Text<'a>>,
        own: Own<'a>,
        sink: &mut dyn EventSink,
    ) {
        let kind = update.kind.as_ref().map_or("", Text::body);
        match kind {
            "agent_message_chunk" | "agent_thought_chunk" => {
                self.chunk(update, session, own, sink);
            }
            "tool_call" | "tool_call_update" => {
                self.release(sink);
                let meta = meta_of(&update.meta);
                let past = is_replay(meta.as_ref());
                self.enter(false, past, session, sink);
                self.call(update, meta.unwrap_or_default(), sink);
            }
            "user_message_chunk" => self.user_chunk(update, session, own, sink),
            "plan" | "plan_update" | "plan_removed" => self.plan(update, session, own, sink),
            _ => self.aside(update, session.cloned(), own, sink),
        }
    }

    fn question(&mut self, id: Option<&Json<'_>>, own: Own<'_>, sink: &mut dyn EventSink) {
        let request = id.map(request_name).unwrap_or_default();
        if let Some(id) = id {
            self.remember_asking(id, Asking::Question);
        }
        sink.event(Event::new(QuestionAsked {
            native_call: None,
            request,
            call: None,
            questions: own.json(),
        }));
    }

    /// What the client asked for that an answer is about; without the client's direction, nothing is
    /// known of it.
    fn take_asked(&mut self, id: &Json<'_>) -> Option<Asked> {
        let at = self.asked.iter().rposition(|(asked, _)| asked == id.get())?;
        Some(self.asked.remove(at).1)
    }

    fn take_asking(&mut self, id: &Json<'_>) -> Option<Asking> {
        let at = self.asking.iter().rposition(|(asking, _)| asking == id.get())?;
        Some(self.asking.remove(at).1)
    }

    fn client_seen(&self) -> bool {
        self.client_seen
    }
}

/// What an agent says in a place of its own.
fn meta_of<'m>(meta: &'m Option<Json<'_>>) -> Option<Meta<'m>> {
    read::record_of::<Meta<'_>>(meta.as_ref()?)
}

fn is_replay(meta: Option<&Meta<'_>>) -> bool {
    let ours = meta.and_then(|meta| meta.ours.as_ref());
    ours.is_some_and(|ours| ours.replay == Some(true))
}

/// A request's id, as a name.
fn request_name<'a>(id: &'a Json<'_>) -> Text<'a> {
    id.as_text().unwrap_or_else(|| Text::plain(id.get()))
}

/// The answer to a question that the agent put.
fn question_answered(id: &Json<'_>, own: Own<'_>, sink: &mut dyn EventSink) {
    let request = request_name(id);
    sink.event(Event::new(QuestionAnswered { request, answers: own.json() }));
}
