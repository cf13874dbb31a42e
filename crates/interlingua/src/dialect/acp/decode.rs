//! Reads ACP: the agent's direction alone, or both directions as they come.
//!
//! A message says by its shape who sent it. What only the client can know (which answer belongs to
//! which request) is known where its direction is there too.

use super::calls::Calls;
use super::said::{Agent, Saying};
use super::wire::{Answer, ConfigOption, Content, Line, Meta, Params, Update};
use crate::dialect::decode::Own;
use crate::dialect::{Decoder, each_record, unknown};
use crate::event::{
    Compacted, Event, Interrupted, Native, Notice, Outcome, PlanItem, PlanStatus, PlanUpdated,
    QuestionAnswered, QuestionAsked, Scope, SessionStarted, SessionUpdated, Severity, Sink,
    TurnEnded, TurnStarted, Usage, UserMessage,
};
use crate::framing::FrameText;
use crate::json::read;
use crate::json::{Json, Text};

/// How many requests without an answer are remembered.
const REMEMBERED: usize = 256;

/// The reader of `acp`.
#[derive(Debug, Default)]
pub struct AcpDecoder {
    pub(super) agent: Agent,
    session: Session,
    /// The client's requests that wait for the agent's answer.
    asked: Vec<(String, Asked)>,
    /// The agent's requests that wait for the client's answer, and what is asked.
    pub(super) asking: Vec<(String, Asking)>,
    /// The client's direction is there.
    client_seen: bool,
    /// A session of the past was opened.
    loaded: bool,
    opening: Opening,
    turn: Turn,
    /// The agent has spoken since the last message of the user, in a turn of the past.
    past_answered: bool,
    pub(super) saying: Saying,
    pub(super) calls: Calls,
    /// What the turn at hand was asked.
    prompt: String,
    /// What the requests of the turn at hand used, where the agent tells only that.
    pub(super) usage: Option<Usage<'static>>,
    /// What the session has cost so far, if that was told in the turn at hand.
    pub(super) cost_usd: Option<f64>,
}

/// What is known of the session.
#[derive(Debug, Default)]
struct Session {
    started: bool,
    id: Option<Text<'static>>,
    agent: Option<Text<'static>>,
    version: Option<Text<'static>>,
    model: Option<Text<'static>>,
    mode: Option<Text<'static>>,
    cwd: Option<Text<'static>>,
}

/// What the client asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Prompt,
    /// A connection or a session: without it nothing happens.
    Opening,
    Else,
}

/// What the agent asked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Asking {
    Permission { call: Text<'static>, refusing: Vec<Text<'static>> },
    Question,
    Else,
}

/// How far the session is, as the agent's answers alone tell it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Opening {
    /// No answer was seen: the stream may begin anywhere.
    #[default]
    Unseen,
    /// There is a connection, and no session yet: what is said now is history.
    Connected,
    /// Gemini has answered, and still tells history.
    StillTelling,
    Open,
}

/// Which turn is open.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Turn {
    #[default]
    None,
    Live,
    /// One of the past.
    Past,
    /// Something that the agent says without having been asked: it has no end of its own.
    Unasked,
}

impl Decoder for AcpDecoder {
    fn decode(&mut self, frame: &FrameText<'_>, sink: &mut dyn Sink) {
        each_record(frame, sink, |line: &mut Line<'_>, own, sink| {
            self.line(line, own, sink);
        });
    }

    fn finish(&mut self, sink: &mut dyn Sink) {
        self.release(sink);
        self.end_block(sink);
        self.end_untold_turn(sink);
    }
}

impl AcpDecoder {
    #[inline]
    fn line<'a>(&mut self, line: &mut Line<'a>, own: Own<'a>, sink: &mut dyn Sink) {
        let Some(method) = line.method.take() else {
            if line.id.is_some() {
                self.answered(line, own, sink);
            } else {
                sink.event(Event::new(unknown(None, own)));
            }
            return;
        };
        if method.body() == "session/update" {
            match &mut line.params {
                Some(Params { update: Some(update), session, .. }) => {
                    self.update(update, session.as_ref(), own, sink);
                }
                _ => sink.event(Event::new(unknown(Some(method), own))),
            }
            return;
        }
        let params = line.params.take().unwrap_or_default();
        match method.body() {
            "session/request_permission" => {
                self.release(sink);
                self.enter(false, false, params.session.as_ref(), sink);
                self.permission(line.id.as_ref(), params, sink);
            }
            "elicitation/create" => self.question(line.id.as_ref(), own, sink),
            _ => self.other(method, line.id.as_ref(), params, own, sink),
        }
    }

    /// Requests and notifications that are no part of what the agent says.
    fn other<'a>(
        &mut self,
        method: Text<'a>,
        id: Option<&Json<'a>>,
        params: Params<'a>,
        own: Own<'a>,
        sink: &mut dyn Sink,
    ) {
        let asked = match method.body() {
            "session/prompt" => {
                self.prompted(id, &params, own, sink);
                return;
            }
            "session/cancel" => {
                self.client_seen = true;
                if self.turn == Turn::Live {
                    sink.event(Event::new(Interrupted::default()));
                    return;
                }
                None
            }
            "initialize" | "session/new" => Some(Asked::Opening),
            "session/load" | "session/resume" => {
                self.loaded = true;
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

    fn prompted<'a>(
        &mut self,
        id: Option<&Json<'a>>,
        params: &Params<'a>,
        own: Own<'a>,
        sink: &mut dyn Sink,
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

    fn remember_asked(&mut self, id: Option<&Json<'_>>, asked: Asked) {
        self.client_seen = true;
        if let Some(id) = id {
            if self.asked.len() == REMEMBERED {
                self.asked.remove(0);
            }
            self.asked.push((id.get().to_owned(), asked));
        }
    }

    pub(super) fn remember_asking(&mut self, id: &Json<'_>, asking: Asking) {
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
        sink: &mut dyn Sink,
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
            "plan" => {
                let meta = meta_of(&update.meta);
                self.enter(false, is_replay(meta.as_ref()), session, sink);
                let ours = meta.as_ref().and_then(|meta| meta.ours.as_ref());
                let call = ours.and_then(|ours| ours.call.as_ref());
                let told = call.is_some_and(|call| self.calls.told_plan(call));
                // A plan that stands already is told to nobody.
                let name = Text::plain("session/update/plan");
                sink.event(Event::new(Native { name, raw: own.json() }));
                if !told {
                    plan(update, meta.as_ref(), sink);
                }
            }
            _ => self.aside(update, session.cloned(), own, sink),
        }
    }

    /// Updates that say nothing in the conversation.
    fn aside<'a>(
        &mut self,
        update: &Update<'a>,
        session: Option<Text<'a>>,
        own: Own<'a>,
        sink: &mut dyn Sink,
    ) {
        let kind = update.kind.as_ref().map_or("", Text::body);
        let news = match kind {
            "current_mode_update" => {
                SessionUpdated { permission_mode: update.mode.clone(), ..SessionUpdated::default() }
            }
            "config_option_update" => settings(update.options.as_ref()),
            "session_info_update" => {
                let meta = meta_of(&update.meta);
                if let Some(ours) = meta.as_ref().and_then(|meta| meta.ours.as_ref()) {
                    self.opening = Opening::Open;
                    self.session.started = true;
                    self.session.id = session.clone().map(Text::into_owned);
                    sink.event(Event::new(SessionStarted {
                        id: session,
                        agent: ours.agent.clone(),
                        version: ours.version.clone(),
                        model: ours.model.clone(),
                        cwd: ours.cwd.clone(),
                        permission_mode: ours.permission_mode.clone(),
                        tools: ours.tools.clone(),
                    }));
                    return;
                }
                SessionUpdated::default()
            }
            "available_commands_update" => {
                if self.opening == Opening::StillTelling {
                    self.opening = Opening::Open;
                    self.end_untold_turn(sink);
                }
                SessionUpdated::default()
            }
            "usage_update" => {
                self.cost_told(update);
                SessionUpdated::default()
            }
            "notice" => {
                sink.event(Event::new(notice(update)));
                return;
            }
            "compaction_update" => {
                let done = update.status.as_ref().is_some_and(|status| *status == "completed");
                if done {
                    let details = own.json();
                    sink.event(Event::new(Compacted { details, ..Compacted::default() }));
                    return;
                }
                SessionUpdated::default()
            }
            "compaction_summary_chunk" => SessionUpdated::default(),
            _ => {
                let name = Text::from(format!("session/update/{kind}"));
                sink.event(Event::new(unknown(Some(name), own)));
                return;
            }
        };
        if news.model.is_some() || news.permission_mode.is_some() {
            self.learn(news, sink);
        }
        let name = Text::from(format!("session/update/{kind}"));
        sink.event(Event::new(Native { name, raw: own.json() }));
    }

    /// Keeps the price of the session, in dollars. What costs nothing was not counted.
    fn cost_told(&mut self, update: &Update<'_>) {
        let cost = update.cost.as_ref().and_then(read::record_of::<super::wire::Cost<'_>>);
        let dollars = cost.filter(|cost| cost.currency.as_ref().is_some_and(|it| *it == "USD"));
        let amount = dollars.and_then(|cost| cost.amount);
        self.cost_usd = amount.filter(|usd| *usd > 0.0 && usd.is_finite()).or(self.cost_usd);
    }

    fn question(&mut self, id: Option<&Json<'_>>, own: Own<'_>, sink: &mut dyn Sink) {
        let request = id.map(request_name).unwrap_or_default();
        if let Some(id) = id {
            self.remember_asking(id, Asking::Question);
        }
        sink.event(Event::new(QuestionAsked { request, call: None, questions: own.json() }));
    }

    fn user_chunk<'a>(
        &mut self,
        update: &Update<'a>,
        session: Option<&Text<'a>>,
        own: Own<'a>,
        sink: &mut dyn Sink,
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
        sink: &mut dyn Sink,
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
        sink: &mut dyn Sink,
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
    fn end_untold_turn(&mut self, sink: &mut dyn Sink) {
        if matches!(self.turn, Turn::Past | Turn::Unasked) {
            let outcome = Outcome::Completed;
            self.end_turn(TurnEnded { outcome, ..TurnEnded::default() }, sink);
        }
    }

    /// Makes ready for the end of a turn that may have said nothing.
    pub(super) fn begin_to_end(&mut self, sink: &mut dyn Sink) {
        self.end_untold_turn(sink);
        self.start_session(None, sink);
    }

    /// Adds what a request used to what the turn used.
    pub(super) fn add_usage(&mut self, usage: &Usage<'static>) {
        let so_far = self.usage.take().unwrap_or_default();
        self.usage = Some(Usage { scope: Scope::Turn, ..so_far.plus(usage) });
    }

    /// Ends the turn that is open, and all that is open in it.
    pub(super) fn end_turn(&mut self, ended: TurnEnded<'_>, sink: &mut dyn Sink) {
        self.end_block(sink);
        self.end_calls(&ended.outcome, sink);
        self.asking.clear();
        self.usage = None;
        self.prompt.clear();
        self.turn = Turn::None;
        self.past_answered = false;
        sink.event(Event::new(ended));
    }

    /// What the client asked for that an answer is about; without the client's direction, nothing is
    /// known of it.
    pub(super) fn take_asked(&mut self, id: &Json<'_>) -> Option<Asked> {
        let at = self.asked.iter().rposition(|(asked, _)| asked == id.get())?;
        Some(self.asked.remove(at).1)
    }

    pub(super) fn take_asking(&mut self, id: &Json<'_>) -> Option<Asking> {
        let at = self.asking.iter().rposition(|(asking, _)| asking == id.get())?;
        Some(self.asking.remove(at).1)
    }

    /// Whether a prompt is being worked on, as far as one can see.
    pub(super) fn in_prompt(&self) -> bool {
        self.turn == Turn::Live
    }

    /// Whether a failure that nobody asked about can only be that of a prompt.
    pub(super) fn session_open(&self) -> bool {
        matches!(self.opening, Opening::Open | Opening::StillTelling) || self.session.started
    }

    pub(super) fn client_seen(&self) -> bool {
        self.client_seen
    }

    /// The agent told who it is.
    pub(super) fn connected(&mut self, answer: &mut Answer<'_>) {
        self.opening = Opening::Connected;
        if let Some(info) = answer.info.take() {
            self.agent = Agent::named(info.name.as_ref());
            self.session.agent = info.name.map(Text::into_owned);
            self.session.version = info.version.map(Text::into_owned);
        }
    }

    /// The agent opened a session: a new one is named, one of the past is not.
    pub(super) fn opened(&mut self, answer: &mut Answer<'_>, sink: &mut dyn Sink) {
        let new = answer.session.is_some();
        // Gemini answers before it has told all of the past.
        if !new && self.agent == Agent::Gemini && !self.client_seen {
            self.opening = Opening::StillTelling;
        } else {
            self.opening = Opening::Open;
            // With the client's direction, history lasts until the first prompt.
            if new || !self.client_seen {
                self.end_untold_turn(sink);
            }
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
    pub(super) fn learn(&mut self, news: SessionUpdated<'_>, sink: &mut dyn Sink) {
        let own = |text: &Option<Text<'_>>| text.clone().map(Text::into_owned);
        let session = &mut self.session;
        session.id = own(&news.id).or(session.id.take());
        session.model = own(&news.model).or(session.model.take());
        session.mode = own(&news.permission_mode).or(session.mode.take());
        if session.started {
            sink.event(Event::new(news));
        }
    }

    fn start_session(&mut self, id: Option<&Text<'_>>, sink: &mut dyn Sink) {
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
            id: borrowed(&session.id),
            agent: borrowed(&session.agent).or(Some(Text::plain("acp"))),
            version: borrowed(&session.version),
            model: borrowed(&session.model),
            cwd: borrowed(&session.cwd),
            permission_mode: borrowed(&session.mode),
            tools: None,
        }));
    }
}

/// What an agent says in a place of its own.
pub(super) fn meta_of<'m>(meta: &'m Option<Json<'_>>) -> Option<Meta<'m>> {
    read::record_of::<Meta<'_>>(meta.as_ref()?)
}

pub(super) fn is_replay(meta: Option<&Meta<'_>>) -> bool {
    let ours = meta.and_then(|meta| meta.ours.as_ref());
    ours.is_some_and(|ours| ours.replay == Some(true))
}

/// A request's id, as a name.
pub(super) fn request_name<'a>(id: &'a Json<'_>) -> Text<'a> {
    id.as_text().unwrap_or_else(|| Text::plain(id.get()))
}

/// The answer to a question that the agent put.
pub(super) fn question_answered(id: &Json<'_>, own: Own<'_>, sink: &mut dyn Sink) {
    let request = request_name(id);
    sink.event(Event::new(QuestionAnswered { request, answers: own.json() }));
}

fn prompt_text(content: &Content<'_>) -> Option<String> {
    match content.kind.as_ref().map_or("text", Text::body) {
        "text" => content.text.as_ref().map(ToString::to_string),
        "resource_link" => content.uri.as_ref().map(ToString::to_string),
        _ => None,
    }
}

/// The settings that are more than the agent's own business: its model and its mode.
fn settings<'a>(options: Option<&Json<'a>>) -> SessionUpdated<'a> {
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

fn plan(update: &Update<'_>, meta: Option<&Meta<'_>>, sink: &mut dyn Sink) {
    let entries = update.entries.as_ref().and_then(read::records_of::<super::wire::Entry<'_>>);
    let items = entries.unwrap_or_default().into_iter().map(|entry| {
        let meta = entry.meta.unwrap_or_default();
        let ours = meta.ours.unwrap_or_default();
        let status = ours.status.or(entry.status);
        PlanItem {
            id: ours.id.or(meta.todo.and_then(|todo| todo.id)),
            text: entry.content.unwrap_or_default(),
            status: status.map_or(PlanStatus::Pending, |it| PlanStatus::from(&*it.to_plain())),
            raw_status: None,
            active_form: ours.active_form,
        }
    });
    let ours = meta.and_then(|meta| meta.ours.as_ref());
    let plan = ours.and_then(|ours| ours.plan.clone());
    let of_qwen = || meta.and_then(|meta| meta.plan.as_ref()).and_then(|plan| plan.id.clone());
    let plan = PlanUpdated {
        plan: plan.or_else(of_qwen),
        call: ours.and_then(|ours| ours.call.clone()),
        items: items.collect(),
    };
    sink.event(Event::new(plan));
}

fn notice<'a>(update: &Update<'a>) -> Notice<'a> {
    let severity = update.severity.as_ref().map_or(Severity::Info, |it| it.body().into());
    let title = update.title.clone().unwrap_or_default();
    let text = match &update.description {
        Some(description) => Text::from(format!("{title}\n{description}")),
        None => title,
    };
    Notice { severity, text }
}
