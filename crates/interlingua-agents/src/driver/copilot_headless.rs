//! Copilot's headless mode: JSON-RPC 2.0 messages that are preceded by their length.
//!
//! The client sends `ping`, then `session.create` or `session.resume`, and `session.send` for each
//! prompt; the event `session.idle` ends the turn. Permissions are requested by an event and decided
//! by a request of the client; a question is an event and a request of the agent. A todo list is
//! only reported as changed, so the client requests it. `session.abort` stops a turn, but does
//! nothing before the turn has begun, so it is held back until then.
//!
//! The driver knows the order of these messages, and what it has to answer. It does not know what
//! the events mean to the user.

mod provider;

use std::collections::HashMap;

use interlingua::framing::{Body, ContentLength, Framing, Limits};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::json_rpc::{Envelope, Message, error_text, set};
use super::{Answer, Applied, Driver, Step};
use crate::client_tool::{Endpoint, LONGEST_WAIT, SERVER_NAME};
use crate::permission::{Decision, Mode};

pub use provider::Provider;

/// The parameters with which a session is opened.
#[derive(Debug, Clone, Default)]
pub struct HeadlessSession {
    /// The session to resume.
    pub resume: Option<String>,
    /// The working folder, as an absolute path.
    pub folder: String,
    /// The model.
    pub model: Option<String>,
    /// The permission mode. Copilot only has to know whether it should plan.
    pub mode: Mode,
    /// The MCP servers and the skills of the folder are used.
    pub trusts_folder: bool,
    /// The user's own provider of models.
    pub provider: Option<Provider>,
    /// The tools of the client.
    pub client_tools: Option<Endpoint>,
}

/// The driver of `copilot --headless --stdio`.
#[derive(Debug)]
pub struct CopilotHeadlessDriver {
    session: HeadlessSession,
    framing: ContentLength,
    phase: Phase,
    next_id: u64,
    /// The requests of this client that have no response yet.
    requests: HashMap<u64, Asked>,
    /// The prompts that the agent was asked to add to the running turn, by the ids of the requests.
    joining: HashMap<u64, String>,
    /// The prompt that is sent as soon as the agent is ready.
    prompt: Option<String>,
    turn: Turn,
    /// Copilot's own mode is to plan.
    planning: bool,
    questions: Vec<Question>,
    /// The todo list has changed since it was requested.
    todos_changed: bool,
}

/// The phase of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    Opening,
    Open { session: String },
    Failed,
}

/// The state of the turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    None,
    /// The prompt was sent, or waits to be sent.
    Prompted {
        abort: bool,
    },
    Running,
}

/// What a request of this client was about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Ping,
    Open,
    Model,
    Mode,
    Todos,
    Other,
}

/// A question of the agent. Its event and its request arrive one after the other, in any order, and
/// have only the text in common.
#[derive(Debug, Default)]
struct Question {
    text: String,
    choices: Vec<String>,
    /// The id by which the event names it, once it has arrived.
    request: Option<String>,
    /// The id of the agent's request, once it has arrived.
    id: Option<Box<RawValue>>,
    /// The answer, if it was given before the agent's request arrived.
    answer: Option<Value>,
}

#[derive(Deserialize)]
struct Notification<'a> {
    #[serde(borrow)]
    event: EventHead<'a>,
}

#[derive(Deserialize)]
struct EventHead<'a> {
    #[serde(rename = "type", borrow)]
    kind: std::borrow::Cow<'a, str>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(rename = "agentId", borrow, default)]
    agent: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct QuestionData {
    #[serde(rename = "requestId", default)]
    request: String,
    #[serde(rename = "question", default)]
    text: String,
    #[serde(default)]
    choices: Option<Vec<String>>,
}

impl QuestionData {
    fn of(data: Option<&RawValue>) -> Option<Self> {
        serde_json::from_str(data?.get()).ok()
    }
}

#[derive(Deserialize)]
struct Opened {
    #[serde(rename = "sessionId")]
    session: Option<String>,
}

const ENVELOPE: Envelope = Envelope::Standard;

/// Stands for the provider where its key must not appear.
const SECRET: &str = "[secret]";

impl CopilotHeadlessDriver {
    /// Creates a driver that opens a session.
    pub fn new(session: HeadlessSession) -> Self {
        Self {
            session,
            framing: ContentLength::new(Limits::default()),
            phase: Phase::Opening,
            next_id: 0,
            requests: HashMap::new(),
            joining: HashMap::new(),
            prompt: None,
            turn: Turn::None,
            planning: false,
            questions: Vec::new(),
            todos_changed: false,
        }
    }

    fn take(&mut self, record: &str, steps: &mut Vec<Step>) {
        let Some(message) = Message::of(record) else { return };
        match (message.method.as_deref(), message.id) {
            (Some("session.event"), None) => {
                let params = message.params.map_or("", RawValue::get);
                if let Ok(Notification { event }) = serde_json::from_str(params) {
                    self.take_event(&event, steps);
                }
            }
            (Some("userInput.request"), Some(id)) => {
                self.take_question(id, message.params, steps);
            }
            (Some(method), Some(id)) => steps.push(ENVELOPE.not_supported(id, method)),
            (None, Some(id)) => {
                let number = id.get().parse::<u64>().ok();
                let Some(number) = number else { return };
                let Some(asked) = self.requests.remove(&number) else { return };
                let joining = self.joining.remove(&number);
                if let (Some(prompt), Some(error)) = (joining, message.error) {
                    Step::queue(prompt, &error_text(error), steps);
                }
                self.take_response(asked, &message, steps);
            }
            _ => {}
        }
    }

    fn take_event(&mut self, event: &EventHead<'_>, steps: &mut Vec<Step>) {
        match &*event.kind {
            "user.message" if event.agent.is_none() => {
                let abort = self.turn == Turn::Prompted { abort: true };
                self.turn = Turn::Running;
                if abort {
                    self.interrupt(steps);
                }
            }
            "session.idle" if event.agent.is_none() => self.turn_ended(steps),
            "user_input.requested" => {
                if let Some(asked) = QuestionData::of(event.data) {
                    let question = self.question(asked.text, |it| it.request.is_none());
                    question.request = Some(asked.request);
                    question.choices = asked.choices.unwrap_or_default();
                }
            }
            "session.todos_changed" => {
                self.todos_changed = true;
                self.request_todos(steps);
            }
            _ => {}
        }
    }

    fn take_question(&mut self, id: &RawValue, params: Option<&RawValue>, steps: &mut Vec<Step>) {
        let text = QuestionData::of(params).map(|asked| asked.text).unwrap_or_default();
        self.question(text, |it| it.id.is_none()).id = Some(id.to_owned());
        self.send_answers(steps);
    }

    /// The first question with this text that lacks something, or a new one.
    fn question(&mut self, text: String, lacks: impl Fn(&Question) -> bool) -> &mut Question {
        let found = self.questions.iter().position(|it| it.text == text && lacks(it));
        let at = found.unwrap_or_else(|| {
            self.questions.push(Question { text, ..Question::default() });
            self.questions.len() - 1
        });
        // The index was found or added above.
        #[allow(clippy::indexing_slicing)]
        &mut self.questions[at]
    }

    fn send_answers(&mut self, steps: &mut Vec<Step>) {
        self.questions.retain(|question| match (&question.id, &question.answer) {
            (Some(id), Some(answer)) => {
                steps.push(ENVELOPE.result(id, answer));
                false
            }
            _ => true,
        });
    }

    fn take_response(&mut self, asked: Asked, message: &Message<'_>, steps: &mut Vec<Step>) {
        let problem = message.error.map(error_text);
        match (asked, problem) {
            (Asked::Ping, _) => self.open(steps),
            (Asked::Open, None) => {
                let result = message.result.map_or("", RawValue::get);
                let opened = serde_json::from_str::<Opened>(result).ok();
                match opened.and_then(|it| it.session).or_else(|| self.session.resume.clone()) {
                    Some(session) => {
                        self.phase = Phase::Open { session };
                        self.adopt_mode(steps);
                    }
                    None => self.fail("the session has no id".to_owned(), steps),
                }
            }
            (Asked::Open, Some(problem)) => {
                let what = match &self.session.resume {
                    Some(session) => format!("the session {session} cannot be resumed: {problem}"),
                    None => format!("no session can be opened: {problem}"),
                };
                self.fail(what, steps);
            }
            (Asked::Model, Some(problem)) => {
                steps.push(Step::warn(format!("the model was not changed: {problem}")));
            }
            (Asked::Mode, Some(problem)) => {
                steps.push(Step::warn(format!("the mode was not changed: {problem}")));
            }
            (Asked::Todos, _) => self.request_todos(steps),
            _ => {}
        }
        self.send_prompt(steps);
    }

    fn open(&mut self, steps: &mut Vec<Step>) {
        // The hooks of a repository could allow everything in place of the user. The discovery of its
        // configuration does not concern what the user has configured.
        let mut params = json!({
            "clientName": "interlingua",
            "workingDirectory": self.session.folder,
            "streaming": true,
            "includeSubAgentStreamingEvents": true,
            "requestPermission": true,
            "requestUserInput": true,
            "enableFileHooks": false,
            "enableConfigDiscovery": self.session.trusts_folder,
        });
        if let Some(model) = &self.session.model {
            set(&mut params, "model", model.as_str());
        }
        let method = match &self.session.resume {
            Some(session) => {
                set(&mut params, "sessionId", session.as_str());
                "session.resume"
            }
            None => "session.create",
        };
        let id = self.next_request(Asked::Open);
        let mut redacted = params.clone();
        if let Some(provider) = self.session.provider.as_ref().map(Provider::to_json) {
            set(&mut params, "provider", provider);
            set(&mut redacted, "provider", SECRET);
        }
        if let Some(tools) = &self.session.client_tools {
            let wait = LONGEST_WAIT.as_millis() as u64;
            let server = tools.http(&json!({"tools": ["*"], "timeout": wait}));
            set(&mut params, "mcpServers", json!({SERVER_NAME: server}));
            set(&mut redacted, "mcpServers", SECRET);
        }
        let record = ENVELOPE.record(id, method, &params);
        let redacted = ENVELOPE.record(id, method, &redacted);
        steps.push(match record == redacted {
            true => Step::Send(record),
            false => Step::SendSecret { record, redacted },
        });
    }

    fn fail(&mut self, reason: String, steps: &mut Vec<Step>) {
        self.phase = Phase::Failed;
        self.prompt = None;
        steps.push(Step::GiveUp(reason));
    }

    /// Requests Copilot's mode for planning, or its usual one, if it is in the other.
    fn adopt_mode(&mut self, steps: &mut Vec<Step>) {
        let plans = self.session.mode == Mode::Plan;
        if plans != self.planning && matches!(self.phase, Phase::Open { .. }) {
            self.planning = plans;
            let mode = if plans { "plan" } else { "interactive" };
            self.session_request(Asked::Mode, "session.mode.set", json!({"mode": mode}), steps);
        }
    }

    /// Sends the prompt that waits, unless the session is not open or a change is not applied yet.
    fn send_prompt(&mut self, steps: &mut Vec<Step>) {
        let changes = |asked: &Asked| matches!(asked, Asked::Model | Asked::Mode);
        let ready = matches!(self.phase, Phase::Open { .. });
        if !ready || self.requests.values().any(changes) {
            return;
        }
        if let Some(prompt) = self.prompt.take() {
            let params = json!({"prompt": prompt});
            self.session_request(Asked::Other, "session.send", params, steps);
        }
    }

    /// Requests the todo list if it has changed, but not twice at the same time.
    fn request_todos(&mut self, steps: &mut Vec<Step>) {
        let requested = self.requests.values().any(|asked| *asked == Asked::Todos);
        if self.todos_changed && !requested {
            self.todos_changed = false;
            self.session_request(Asked::Todos, "session.plan.readSqlTodos", json!({}), steps);
        }
    }

    /// Sends a request about the session, if it is open.
    fn session_request(
        &mut self,
        asked: Asked,
        method: &str,
        mut params: Value,
        steps: &mut Vec<Step>,
    ) {
        if let Phase::Open { session } = &self.phase {
            set(&mut params, "sessionId", session.as_str());
            self.request(asked, method, params, steps);
        }
    }

    fn request(&mut self, asked: Asked, method: &str, params: Value, steps: &mut Vec<Step>) {
        let id = self.next_request(asked);
        steps.push(ENVELOPE.request(id, method, &params));
    }

    /// The id of the next request.
    fn next_request(&mut self, asked: Asked) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.requests.insert(id, asked);
        id
    }
}

impl Driver for CopilotHeadlessDriver {
    fn start(&mut self, steps: &mut Vec<Step>) {
        self.request(Asked::Ping, "ping", json!({}), steps);
    }

    fn output(&mut self, chunk: &[u8], steps: &mut Vec<Step>) {
        let unframed = ContentLength::new(Limits::default());
        let mut framing = std::mem::replace(&mut self.framing, unframed);
        framing.push(chunk, &mut |frame| {
            if let Body::Text(text) = frame.body {
                self.take(text.text, steps);
            }
        });
        self.framing = framing;
    }

    fn prompt(&mut self, prompt: &str, steps: &mut Vec<Step>) {
        self.prompt = Some(prompt.to_owned());
        self.turn = Turn::Prompted { abort: false };
        self.send_prompt(steps);
    }

    /// Adds a prompt to the running turn. Copilot moves a running command to the background.
    fn join(&mut self, prompt: &str, steps: &mut Vec<Step>) -> bool {
        let running = self.turn == Turn::Running;
        if running {
            let params = json!({"prompt": prompt, "mode": "immediate"});
            self.joining.insert(self.next_id, prompt.to_owned());
            self.session_request(Asked::Other, "session.send", params, steps);
        }
        running
    }

    fn decide(&mut self, request: &str, decision: &Decision, steps: &mut Vec<Step>) {
        let result = match decision {
            Decision::Allow => json!({"kind": "approve-once"}),
            Decision::Deny(reason) if reason.is_empty() => json!({"kind": "reject"}),
            Decision::Deny(reason) => json!({"kind": "reject", "feedback": reason}),
        };
        let params = json!({"requestId": request, "result": result});
        let method = "session.permissions.handlePendingPermissionRequest";
        self.session_request(Asked::Other, method, params, steps);
    }

    fn conveys_reasons(&self) -> bool {
        true
    }

    fn answer(&mut self, request: &str, answer: &Answer, steps: &mut Vec<Step>) {
        let is_it = |it: &&mut Question| it.request.as_deref() == Some(request);
        let Some(question) = self.questions.iter_mut().find(is_it) else { return };
        let text = match answer {
            Answer::Chosen(answers) => answers.concat().join(", "),
            Answer::Form(form) => form.to_string(),
            Answer::Declined(reason) => reason.clone(),
        };
        let freeform = !question.choices.contains(&text);
        question.answer = Some(json!({"answer": text, "wasFreeform": freeform}));
        self.send_answers(steps);
    }

    /// Stops the turn, and every command that it runs.
    fn interrupt(&mut self, steps: &mut Vec<Step>) -> bool {
        match &mut self.turn {
            Turn::None => false,
            Turn::Prompted { abort } => {
                *abort = true;
                true
            }
            Turn::Running => {
                self.session_request(Asked::Other, "session.abort", json!({}), steps);
                true
            }
        }
    }

    /// Changes the model for the following turns.
    fn set_model(&mut self, model: &str, steps: &mut Vec<Step>) -> Applied {
        self.session.model = Some(model.to_owned());
        if self.requests.values().any(|asked| *asked == Asked::Open) {
            // The session is being opened with the earlier model.
            return Applied::AtRestart;
        }
        let params = json!({"modelId": model});
        self.session_request(Asked::Model, "session.model.switchTo", params, steps);
        Applied::Now
    }

    /// Passes on whether the agent should plan; the rest of a mode is enforced by the session.
    fn set_mode(&mut self, mode: Mode, steps: &mut Vec<Step>) -> Applied {
        self.session.mode = mode;
        self.adopt_mode(steps);
        Applied::Now
    }

    fn turn_ended(&mut self, _steps: &mut Vec<Step>) {
        self.turn = Turn::None;
        self.questions.clear();
    }

    /// At the end of its input, Copilot ends its commands and exits.
    fn close(&mut self, steps: &mut Vec<Step>) {
        steps.push(Step::CloseInput);
    }
}

#[cfg(test)]
mod tests;
