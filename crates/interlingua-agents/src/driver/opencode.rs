//! OpenCode through `opencode serve`: requests and events of its HTTP server, as the bridge of
//! [`crate::process`] turns them into lines.
//!
//! The driver waits until the stream of events is connected, creates or opens a session, and sends
//! prompts with `prompt_async`, which returns at once. Permission requests and questions are events;
//! the answers are requests. Responses are consumed here, and only the server's events are passed
//! on. Seen in opencode 1.18.33:
//!
//! - A rejection rejects all other requests of its session too, without the reason. So a rejection
//!   is held back until every other request of the session is decided, which loses nothing: the
//!   model continues only when all of its calls have ended.
//! - A permission request may come before the input of its call, without which it cannot be judged.
//!   It is held back until then (`early`).
//! - A question that is rejected ends the turn, so a question without an answer is answered with
//!   the reason.
//! - The session has our rules, which a repository cannot loosen. If it loosens those of an agent
//!   that could be started as a sub-agent, sub-agents are denied.
//! - No request ends the server, and it ignores a signal while it installs its plugins in the
//!   background. So it is terminated, repeatedly.

mod early;
mod missed;
mod models;
mod rejections;
mod rules;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::HashMap;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::lines::RawLines;
use super::{Answer, Applied, Driver, Step};
use crate::permission::{Decision, Mode};
use early::{EarlyRequests, INPUT_TIMEOUT};
use missed::Missed;
use models::split_model;
use rejections::PermissionRequest;
pub(crate) use rules::permission_setting;
use rules::{loose_agents, session_rules};
use wire::{Line, Properties, problem, session_id};

/// The parameters with which a session is opened.
#[derive(Debug, Clone, Default)]
pub struct ServerSession {
    /// The session to resume.
    pub resume: Option<String>,
    /// The model, as `provider/model`.
    pub model: Option<String>,
    /// The agent only makes a plan.
    pub plan: bool,
}

/// The interval between the signals to a server that has to exit.
const TERMINATE_INTERVAL: Duration = Duration::from_millis(300);

/// The driver of OpenCode's server.
#[derive(Debug)]
pub struct OpencodeDriver {
    settings: ServerSession,
    lines: RawLines,
    phase: Phase,
    /// The id of the session, once it is open.
    session: Option<String>,
    /// No agent that could be started as a sub-agent has looser rules than the session.
    has_sub_agents: bool,
    /// The prompt that waits for the session.
    waiting: Option<String>,
    turn: Turn,
    interrupt: Interrupt,
    /// The permission requests that the server has not settled.
    requests: Vec<PermissionRequest>,
    early: EarlyRequests,
    /// The number of questions of each request that was not answered.
    questions: HashMap<String, usize>,
    next_id: u64,
    sent: HashMap<u64, Purpose>,
}

/// The phase of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The stream of events is not connected.
    Connecting,
    /// A session is being opened, or is open.
    Connected,
    /// The server has to exit.
    Closing,
}

/// The state of the turn, as the server reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Idle,
    /// The prompt was sent.
    Prompted,
    Busy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interrupt {
    None,
    /// It is sent once the turn runs: before that, it would have no effect.
    Requested,
    Sent,
}

/// What becomes of a line of the server.
enum Fate {
    /// It is consumed here.
    Consumed,
    Passed,
    /// It is passed on once the input of this call was.
    Held(String),
}

/// Why a request was sent.
#[derive(Debug)]
enum Purpose {
    /// The agents and their rules.
    Agents,
    Open,
    /// The rules of a resumed session.
    SetRules,
    Prompt,
    /// A rejection, and those of the same session that follow it.
    Reject(Vec<(String, String)>),
    /// The models, to check the one that was selected; the previous one.
    CheckModel(Option<String>),
    Missed(Missed),
    /// Its result does not matter.
    Other,
}

impl OpencodeDriver {
    /// Creates a driver that opens a session.
    pub fn new(settings: ServerSession) -> Self {
        Self {
            settings,
            lines: RawLines::default(),
            phase: Phase::Connecting,
            session: None,
            has_sub_agents: false,
            waiting: None,
            turn: Turn::Idle,
            interrupt: Interrupt::None,
            requests: Vec::new(),
            early: EarlyRequests::default(),
            questions: HashMap::new(),
            next_id: 0,
            sent: HashMap::new(),
        }
    }

    fn send(
        &mut self,
        purpose: Purpose,
        method: &str,
        path: &str,
        body: Option<Value>,
        steps: &mut Vec<Step>,
    ) {
        let id = self.next_id;
        self.next_id += 1;
        self.sent.insert(id, purpose);
        let mut record = json!({"id": id, "method": method, "path": path});
        if let Some(body) = body {
            super::json_rpc::set(&mut record, "body", body);
        }
        steps.push(Step::Send(record.to_string()));
    }

    fn receive(&mut self, line: Vec<u8>, steps: &mut Vec<Step>) {
        match self.read(&line, steps) {
            Fate::Consumed => {}
            Fate::Passed => Step::pass(line, steps),
            Fate::Held(call) => self.early.hold(call, line),
        }
        if !self.early.is_empty() {
            self.early.release(steps);
        }
    }

    fn read(&mut self, line: &[u8], steps: &mut Vec<Step>) -> Fate {
        let Ok(line) = serde_json::from_slice::<Line<'_>>(line) else { return Fate::Passed };
        if let Some(state) = &line.stream {
            self.stream_changed(state, line.error.as_deref(), steps);
            return Fate::Consumed;
        }
        let id = line.id.and_then(|id| id.get().parse::<u64>().ok());
        if let (Some(id), None) = (id, &line.kind) {
            self.responded(id, &line, steps);
            return Fate::Consumed;
        }
        let (Some(kind), Some(properties)) = (&line.kind, line.properties) else {
            return Fate::Passed;
        };
        if kind == "message.part.updated" {
            self.early.read_part(properties.get());
        } else if is_read(kind)
            && let Ok(properties) = serde_json::from_str(properties.get())
        {
            self.event(kind, &properties, steps);
            let call = properties.tool.and_then(|tool| tool.call);
            if kind == "permission.asked"
                && let Some(call) = call.filter(|call| self.early.is_early(call))
            {
                return Fate::Held(call.into_owned());
            }
        }
        Fate::Passed
    }

    fn stream_changed(&mut self, state: &str, error: Option<&str>, steps: &mut Vec<Step>) {
        match (state, self.phase) {
            ("connected", Phase::Connecting) => {
                self.phase = Phase::Connected;
                self.send(Purpose::Agents, "GET", "/agent", None, steps);
            }
            ("connected", Phase::Connected) => self.fetch_missed(steps),
            ("failed", _) => {
                let error = error.unwrap_or("it has no events");
                self.give_up(format!("OpenCode's server cannot be used: {error}"), steps);
            }
            ("event_too_long", _) => {
                let text = "an event of OpenCode was too long, and is missing";
                steps.push(Step::warn(text.to_owned()));
            }
            _ => {}
        }
    }

    /// Denies sub-agents if one of them could act without asking.
    fn read_agents(&mut self, list: &str, steps: &mut Vec<Step>) {
        let why = match loose_agents(list) {
            Some(loose) if loose.is_empty() => {
                self.has_sub_agents = true;
                return;
            }
            Some(loose) => {
                format!("the configuration lets {} act without asking", loose.join(", "))
            }
            None => "their rules are not known".to_owned(),
        };
        steps.push(Step::warn(format!("OpenCode may not start sub-agents: {why}")));
    }

    fn open(&mut self, steps: &mut Vec<Step>) {
        match self.settings.resume.as_deref().map(segment) {
            Some(id) => self.send(Purpose::Open, "GET", &format!("/session/{id}"), None, steps),
            None => {
                let body = json!({"permission": session_rules(self.has_sub_agents)});
                self.send(Purpose::Open, "POST", "/session", Some(body), steps);
            }
        }
    }

    fn give_up(&mut self, why: String, steps: &mut Vec<Step>) {
        steps.push(Step::GiveUp(why));
        self.close(steps);
    }

    fn responded(&mut self, id: u64, line: &Line<'_>, steps: &mut Vec<Step>) {
        let Some(purpose) = self.sent.remove(&id) else { return };
        let is_success = line.status.is_some_and(|status| (200..300).contains(&status));
        let body = line.body.map(RawValue::get).unwrap_or_default();
        match purpose {
            Purpose::Open if !is_success => {
                self.give_up(format!("the session cannot be opened: {}", problem(line)), steps);
            }
            Purpose::SetRules | Purpose::Prompt if !is_success => {
                self.give_up(problem(line), steps);
            }
            Purpose::Agents => {
                self.read_agents(if is_success { body } else { "" }, steps);
                self.open(steps);
            }
            Purpose::Open => match (session_id(body), &self.settings.resume) {
                // The rules must be ours before the first prompt.
                (Some(id), Some(_)) => {
                    let rules = json!({"permission": session_rules(self.has_sub_agents)});
                    let path = format!("/session/{}", segment(&id));
                    self.send(Purpose::SetRules, "PATCH", &path, Some(rules), steps);
                }
                (Some(id), None) => self.opened(id, steps),
                (None, _) => self.give_up(NO_ID.to_owned(), steps),
            },
            Purpose::SetRules => match session_id(body) {
                Some(id) => self.opened(id, steps),
                None => self.give_up(NO_ID.to_owned(), steps),
            },
            Purpose::Reject(rest) => {
                // The server has rejected them too, and reports that it does not know them.
                for (id, reason) in rest {
                    self.reject(&id, &reason, Vec::new(), steps);
                }
            }
            Purpose::CheckModel(before) if is_success => self.check_model(body, before, steps),
            Purpose::Missed(stage) => self.read_missed(stage, body, steps),
            Purpose::Prompt | Purpose::CheckModel(_) | Purpose::Other => {}
        }
    }

    fn opened(&mut self, id: String, steps: &mut Vec<Step>) {
        self.session = Some(segment(&id));
        if let Some(prompt) = self.waiting.take() {
            self.prompt(&prompt, steps);
        }
    }

    fn event(&mut self, kind: &str, properties: &Properties<'_>, steps: &mut Vec<Step>) {
        let is_ours = properties.session.as_deref() == self.session.as_deref();
        match (kind, &properties.id) {
            ("permission.asked", Some(id)) => {
                let session = properties.session.as_deref().unwrap_or_default().to_owned();
                if !self.requests.iter().any(|request| request.id == **id) {
                    let id = id.to_string();
                    self.requests.push(PermissionRequest { id, session, denied: None });
                }
            }
            ("question.asked", Some(id)) => {
                let count = properties.questions.as_ref().map_or(1, Vec::len);
                self.questions.insert(id.to_string(), count);
            }
            ("permission.replied", _) => {
                if let Some(id) = &properties.request {
                    self.requests.retain(|request| request.id != **id);
                }
            }
            ("session.status", _) if is_ours => {
                let is_idle = properties.status.as_ref().is_none_or(|status| status.kind == "idle");
                if !is_idle && self.turn != Turn::Busy {
                    self.turn = Turn::Busy;
                    if self.interrupt == Interrupt::Requested {
                        self.abort(steps);
                    }
                }
            }
            _ => {}
        }
    }

    fn abort(&mut self, steps: &mut Vec<Step>) {
        if let Some(session) = &self.session {
            let path = format!("/session/{session}/abort");
            self.interrupt = Interrupt::Sent;
            self.send(Purpose::Other, "POST", &path, None, steps);
        }
    }
}

const NO_ID: &str = "OpenCode opened a session without an id";

/// Whether the driver reads the properties of an event.
fn is_read(kind: &str) -> bool {
    matches!(kind, "permission.asked" | "permission.replied" | "question.asked" | "session.status")
}

/// An id as a segment of a path. The ids of OpenCode consist of letters, digits and underscores.
fn segment(id: &str) -> String {
    id.chars().filter(|letter| letter.is_ascii_alphanumeric() || "_-".contains(*letter)).collect()
}

impl Driver for OpencodeDriver {
    fn output(&mut self, chunk: &[u8], steps: &mut Vec<Step>) {
        let mut lines = std::mem::take(&mut self.lines);
        lines.each(chunk, |line| self.receive(line, steps));
        self.lines = lines;
    }

    fn prompt(&mut self, prompt: &str, steps: &mut Vec<Step>) {
        let Some(session) = &self.session else {
            self.waiting = Some(prompt.to_owned());
            return;
        };
        let mut body = json!({"parts": [{"type": "text", "text": prompt}]});
        if let Some((provider, model)) = self.settings.model.as_deref().and_then(split_model) {
            super::json_rpc::set(
                &mut body,
                "model",
                json!({"providerID": provider, "modelID": model}),
            );
        }
        if self.settings.plan {
            super::json_rpc::set(&mut body, "agent", "plan");
        }
        let path = format!("/session/{session}/prompt_async");
        if self.turn == Turn::Idle {
            self.turn = Turn::Prompted;
        }
        self.send(Purpose::Prompt, "POST", &path, Some(body), steps);
    }

    /// The model receives the prompt with its next request.
    fn join(&mut self, prompt: &str, steps: &mut Vec<Step>) -> bool {
        let runs = self.turn == Turn::Busy && self.interrupt == Interrupt::None;
        if runs {
            self.prompt(prompt, steps);
        }
        runs
    }

    fn decide(&mut self, request: &str, decision: &Decision, steps: &mut Vec<Step>) {
        let Some(at) = self.requests.iter().position(|pending| pending.id == request) else {
            return;
        };
        let session = self.requests.get(at).map(|pending| pending.session.clone());
        match decision {
            Decision::Allow => {
                self.requests.remove(at);
                let path = format!("/permission/{}/reply", segment(request));
                self.send(Purpose::Other, "POST", &path, Some(json!({"reply": "once"})), steps);
            }
            Decision::Deny(reason) => {
                if let Some(pending) = self.requests.get_mut(at) {
                    pending.denied = Some(reason.clone());
                }
            }
        }
        self.reject_decided(&session.unwrap_or_default(), steps);
    }

    fn conveys_reasons(&self) -> bool {
        true
    }

    fn answer(&mut self, request: &str, answer: &Answer, steps: &mut Vec<Step>) {
        let Some(count) = self.questions.remove(request) else { return };
        let answers = match answer {
            Answer::Chosen(chosen) => chosen.clone(),
            // OpenCode has no forms.
            Answer::Form(content) => vec![vec![content.to_string()]; count],
            Answer::Declined(reason) => vec![vec![reason.clone()]; count],
        };
        let path = format!("/question/{}/reply", segment(request));
        self.send(Purpose::Other, "POST", &path, Some(json!({"answers": answers})), steps);
    }

    /// An unknown model is reported, and not used.
    fn set_model(&mut self, model: &str, steps: &mut Vec<Step>) -> Applied {
        if split_model(model).is_none() {
            let text = format!("{model} is not a model of OpenCode: use PROVIDER/MODEL");
            steps.push(Step::warn(text));
            return Applied::Now;
        }
        let before = self.settings.model.replace(model.to_owned());
        if self.session.is_some() {
            self.send(Purpose::CheckModel(before), "GET", "/config/providers", None, steps);
        }
        Applied::Now
    }

    fn set_mode(&mut self, mode: Mode, _steps: &mut Vec<Step>) -> Applied {
        self.settings.plan = mode == Mode::Plan;
        Applied::Now
    }

    fn turn_ended(&mut self, _steps: &mut Vec<Step>) {
        (self.turn, self.interrupt) = (Turn::Idle, Interrupt::None);
        self.early.turn_ended();
        // The server forgets them too, and reports nothing.
        self.requests.clear();
        self.questions.clear();
    }

    fn close(&mut self, steps: &mut Vec<Step>) {
        self.phase = Phase::Closing;
        steps.push(Step::Terminate);
    }

    fn wake_after(&self) -> Option<Duration> {
        if self.phase == Phase::Closing {
            return Some(TERMINATE_INTERVAL);
        }
        (!self.early.is_empty()).then_some(INPUT_TIMEOUT)
    }

    fn woken(&mut self, steps: &mut Vec<Step>) {
        self.early.release_all(steps);
        if self.phase == Phase::Closing {
            steps.push(Step::Terminate);
        }
    }

    fn interrupt(&mut self, steps: &mut Vec<Step>) -> bool {
        match (self.turn, self.interrupt) {
            (Turn::Idle, _) => return false,
            (Turn::Prompted, Interrupt::None) => self.interrupt = Interrupt::Requested,
            (Turn::Busy, Interrupt::None | Interrupt::Requested) => self.abort(steps),
            _ => {}
        }
        true
    }

    fn holds_back(&self) -> bool {
        true
    }

    fn ended(&mut self, _code: Option<i64>, steps: &mut Vec<Step>) {
        self.early.release_all(steps);
        if let Some(rest) = self.lines.rest() {
            Step::pass(rest, steps);
        }
    }
}
