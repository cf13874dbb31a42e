//! Any agent that speaks the Agent Client Protocol: JSON-RPC 2.0 lines.
//!
//! The client sends `initialize`, `session/new` or `session/load`, optionally `session/set_mode`
//! and `session/set_model`, and a `session/prompt` for every prompt. The agent requests permissions,
//! each with its own options; Qwen also asks questions that way. Every other request is refused,
//! because the client advertised no further capabilities. `session/cancel` stops a turn.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::json_rpc::{Envelope, Message, client_info, error_text, set};
use super::lines::Records;
use super::{Answer, Applied, Driver, Step};
use crate::client_tool::{Endpoint, SERVER_NAME, ToolCommand};
use crate::permission::{Decision, Mode};

/// The parameters with which a session is started.
#[derive(Debug, Clone, Default)]
pub struct AcpSession {
    /// The session to resume.
    pub resume: Option<String>,
    /// The working folder, as an absolute path.
    pub folder: String,
    /// The model, if it is selected through the protocol.
    pub model: Option<String>,
    /// What the agent may do.
    pub mode: Mode,
    /// The agent's names for its modes.
    pub mode_names: Option<ModeNames>,
    /// The agent accepts only a few models through the protocol, so another one needs a restart.
    pub restarts_for_model: bool,
    /// The agent replays the history of a resumed session after it has reported the session as
    /// loaded, and then lists its commands. A prompt sent earlier would appear in the middle of the
    /// history.
    pub late_history: bool,
    /// The tools of the client.
    pub client_tools: Option<Endpoint>,
    /// The same for an agent that does not announce that it takes servers over HTTP.
    pub tool_command: Option<ToolCommand>,
}

/// An agent's names for its modes. Except for planning it is set to the mode in which it asks, and
/// the policy decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModeNames {
    /// The mode in which it asks before it acts.
    pub ask: &'static str,
    /// The mode in which it plans.
    pub plan: &'static str,
    /// New sessions are in the mode in which it asks.
    pub starts_asking: bool,
}

impl ModeNames {
    fn name(self, mode: Mode) -> &'static str {
        if mode == Mode::Plan { self.plan } else { self.ask }
    }
}

/// The server of the client's tools. Here, headers are a list.
fn mcp_server(tools: &Endpoint) -> Value {
    let headers = json!([{"name": "Authorization", "value": tools.authorization}]);
    tools.http(&json!({"name": SERVER_NAME, "headers": headers}))
}

/// What an agent states of the servers that it takes. Every agent takes a command.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Initialized {
    agent_capabilities: AgentCapabilities,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AgentCapabilities {
    mcp_capabilities: McpCapabilities,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct McpCapabilities {
    http: bool,
}

impl AcpSession {
    /// The server of the client's tools, in a form that the agent takes.
    fn tool_server(&self, initialized: &RawValue) -> Option<Value> {
        let tools = self.client_tools.as_ref()?;
        let takes_http = || {
            let stated = serde_json::from_str::<Initialized>(initialized.get());
            stated.unwrap_or_default().agent_capabilities.mcp_capabilities.http
        };
        match &self.tool_command {
            Some(command) if !takes_http() => Some(command.acp()),
            _ => Some(mcp_server(tools)),
        }
    }
}

/// The driver of an agent that speaks ACP.
#[derive(Debug)]
pub struct AcpDriver {
    session: AcpSession,
    records: Records,
    phase: Phase,
    /// The prompt that waits until the session is ready.
    prompt: Option<String>,
    /// The pending requests of the agent by their id.
    pending: HashMap<String, Pending>,
    /// The settings that were requested, by the id of the request.
    changes: HashMap<u64, String>,
    last_request: u64,
    interrupted: bool,
}

/// The phase of the conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    Initializing,
    Opening,
    /// The agent replays history, or has begun with what follows it.
    Replaying {
        session: String,
        settling: bool,
    },
    /// The mode and the model of the session are being set; with the number of missing answers.
    Settling {
        session: String,
        missing: u8,
    },
    Idle {
        session: String,
    },
    InTurn {
        session: String,
    },
    Closed,
}

/// A request of the agent.
#[derive(Debug)]
struct Pending {
    /// The id as it was sent.
    id: Box<RawValue>,
    options: Vec<Choice>,
    /// The number of its questions, if it is not a request for a permission.
    questions: Option<usize>,
}

#[derive(Debug, Clone, Deserialize)]
struct Choice {
    #[serde(rename = "optionId")]
    id: String,
    #[serde(default)]
    kind: String,
}

#[derive(Deserialize)]
struct Opened {
    #[serde(rename = "sessionId")]
    session: Option<String>,
}

#[derive(Deserialize)]
struct Updated {
    update: Update,
}

#[derive(Deserialize)]
struct Update {
    #[serde(rename = "sessionUpdate", default)]
    kind: String,
}

#[derive(Deserialize)]
struct PermissionParams {
    #[serde(default)]
    options: Vec<Choice>,
    #[serde(rename = "toolCall", default)]
    call: PermissionCall,
}

#[derive(Default, Deserialize)]
struct PermissionCall {
    #[serde(rename = "_meta", default)]
    meta: Option<PermissionMeta>,
}

#[derive(Deserialize)]
struct PermissionMeta {
    #[serde(rename = "qwenInteractionKind", default)]
    interaction: Option<String>,
    #[serde(rename = "qwenQuestions", default)]
    questions: Vec<IgnoredAny>,
}

/// The warning about a request that could not be allowed once.
const ONLY_PERMANENT: &str =
    "the agent offers no way to allow this request only once, so it was cancelled";

/// The silence after which a replay counts as complete.
const REPLAY_TIMEOUT: Duration = Duration::from_secs(2);
const REPLAY_SETTLED: Duration = Duration::from_millis(100);

const INITIALIZE: u64 = 0;
const OPEN: u64 = 1;

const ENVELOPE: Envelope = Envelope::Standard;

impl AcpDriver {
    /// Creates a driver that opens or resumes a session.
    pub fn new(session: AcpSession) -> Self {
        Self {
            session,
            records: Records::default(),
            phase: Phase::Initializing,
            prompt: None,
            pending: HashMap::new(),
            changes: HashMap::new(),
            last_request: OPEN,
            interrupted: false,
        }
    }

    fn take(&mut self, record: &str, steps: &mut Vec<Step>) {
        let Some(message) = Message::of(record) else { return };
        match (&message.method, message.id) {
            (Some(method), Some(id)) => self.requested(method, id, &message, steps),
            (Some(method), None) if method == "session/update" => {
                let update = message.params.and_then(|it| serde_json::from_str(it.get()).ok());
                if let (Phase::Replaying { settling, .. }, Some(Updated { update })) =
                    (&mut self.phase, update)
                {
                    *settling |= update.kind == "available_commands_update";
                }
            }
            (None, Some(id)) => {
                let Ok(number) = id.get().parse::<u64>() else { return };
                match (message.result, message.error) {
                    (_, Some(error)) => self.failed(number, error, steps),
                    (Some(result), None) => self.answered(number, result, steps),
                    (None, None) => {}
                }
            }
            _ => {}
        }
    }

    /// The agent sent a request.
    fn requested(
        &mut self,
        method: &str,
        id: &RawValue,
        message: &Message<'_>,
        steps: &mut Vec<Step>,
    ) {
        if method != "session/request_permission" {
            steps.push(ENVELOPE.not_supported(id, method));
            return;
        }
        let params = message
            .params
            .and_then(|params| serde_json::from_str::<PermissionParams>(params.get()).ok());
        if let (Some(name), Some(PermissionParams { options, call })) = (message.id_text(), params)
        {
            let is_question =
                |meta: &PermissionMeta| meta.interaction.as_deref() == Some("user_question");
            let questions = call.meta.filter(is_question).map(|meta| meta.questions.len().max(1));
            self.pending.insert(name, Pending { id: id.to_owned(), options, questions });
        } else {
            // No one can decide it, and the agent waits for an answer.
            steps.push(ENVELOPE.result(id, &json!({"outcome": {"outcome": "cancelled"}})));
        }
    }

    /// The agent answered a request of this driver.
    fn answered(&mut self, number: u64, result: &RawValue, steps: &mut Vec<Step>) {
        match (number, self.phase.clone()) {
            (INITIALIZE, Phase::Initializing) => {
                self.phase = Phase::Opening;
                let tools = self.session.client_tools.as_ref();
                let servers: Vec<_> = self.session.tool_server(result).into_iter().collect();
                let mut params = json!({"cwd": self.session.folder, "mcpServers": servers});
                let method = match &self.session.resume {
                    Some(session) => {
                        set(&mut params, "sessionId", session.as_str());
                        "session/load"
                    }
                    None => "session/new",
                };
                let mut open = ENVELOPE.request(OPEN, method, &params);
                open.hide(&tools.into_iter().flat_map(Endpoint::secrets).collect::<Vec<_>>());
                steps.push(open);
            }
            (OPEN, Phase::Opening) => {
                let opened = serde_json::from_str::<Opened>(result.get()).ok();
                let session = opened.and_then(|opened| opened.session);
                let Some(session) = session.or_else(|| self.session.resume.clone()) else {
                    steps.push(Step::GiveUp("the agent opened a session without an id".to_owned()));
                    return;
                };
                if self.session.late_history && self.session.resume.is_some() {
                    self.phase = Phase::Replaying { session, settling: false };
                } else {
                    self.settle(session, steps);
                }
            }
            (number, _) if self.changes.remove(&number).is_some() => self.settled(steps),
            _ => {}
        }
    }

    /// Sets the mode and the model of the session.
    fn settle(&mut self, session: String, steps: &mut Vec<Step>) {
        self.phase = Phase::Settling { session, missing: 1 };
        let mode = self.session.mode;
        let names = self.session.mode_names;
        if names.is_some_and(|names| !names.starts_asking || mode == Mode::Plan) {
            self.set_mode(mode, steps);
        }
        if let Some(model) = self.session.model.clone() {
            self.set_model(&model, steps);
        }
        self.settled(steps);
    }

    /// One setting fewer is missing; the last one makes the session ready.
    fn settled(&mut self, steps: &mut Vec<Step>) {
        let Phase::Settling { session, missing } = &mut self.phase else { return };
        *missing = missing.saturating_sub(1);
        if *missing > 0 {
            return;
        }
        self.phase = Phase::Idle { session: session.clone() };
        if let Some(prompt) = self.prompt.take() {
            self.prompt(&prompt, steps);
        }
    }

    /// Requests a change of the session. `what` describes it, in case that it is not accepted.
    fn change(
        &mut self,
        what: String,
        method: &str,
        (name, value): (&str, &str),
        steps: &mut Vec<Step>,
    ) {
        let session = match &mut self.phase {
            Phase::Settling { session, missing } => {
                *missing = missing.saturating_add(1);
                session.clone()
            }
            Phase::Idle { session } | Phase::InTurn { session } => session.clone(),
            Phase::Initializing | Phase::Opening | Phase::Replaying { .. } | Phase::Closed => {
                return;
            }
        };
        let mut params = json!({"sessionId": session});
        set(&mut params, name, value);
        steps.push(self.request(method, &params));
        self.changes.insert(self.last_request, what);
    }

    fn request(&mut self, method: &str, params: &Value) -> Step {
        self.last_request += 1;
        ENVELOPE.request(self.last_request, method, params)
    }

    fn failed(&mut self, number: u64, error: &RawValue, steps: &mut Vec<Step>) {
        let words = error_text(error);
        if let Some(what) = self.changes.remove(&number) {
            steps.push(Step::warn(format!("the agent did not accept {what}: {words}")));
            self.settled(steps);
            return;
        }
        // The stream itself reports how a prompt failed.
        if number > OPEN || self.phase == Phase::Closed {
            return;
        }
        self.phase = Phase::Closed;
        steps.push(Step::GiveUp(match &self.session.resume {
            // Some agents only report that something went wrong.
            Some(session) if number == OPEN => {
                format!("the session {} cannot be resumed: {words}", session.trim())
            }
            _ => words,
        }));
    }
}

impl Driver for AcpDriver {
    fn start(&mut self, steps: &mut Vec<Step>) {
        let capabilities =
            json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false});
        let params = json!({"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": client_info()});
        steps.push(ENVELOPE.request(INITIALIZE, "initialize", &params));
    }

    fn output(&mut self, chunk: &[u8], steps: &mut Vec<Step>) {
        let mut records = std::mem::take(&mut self.records);
        records.each(chunk, |record| self.take(record, steps));
        self.records = records;
    }

    fn prompt(&mut self, prompt: &str, steps: &mut Vec<Step>) {
        let Phase::Idle { session } = &self.phase else {
            self.prompt = Some(prompt.to_owned());
            return;
        };
        let session = session.clone();
        let content = json!([{"type": "text", "text": prompt}]);
        let params = json!({"sessionId": session, "prompt": content});
        steps.push(self.request("session/prompt", &params));
        self.phase = Phase::InTurn { session };
        if std::mem::replace(&mut self.interrupted, false) {
            self.interrupt(steps);
        }
    }

    fn decide(&mut self, request: &str, decision: &Decision, steps: &mut Vec<Step>) {
        let Some(Pending { id, options, .. }) = self.pending.remove(request) else { return };
        let kind = match decision {
            Decision::Allow => "allow_once",
            Decision::Deny(_) => "reject_once",
        };
        let mut fitting = options.iter().filter(|choice| choice.kind == kind);
        // Qwen's first option for a plan restores the mode before it, in which it may not ask.
        let best = fitting.clone().find(|choice| choice.id == "proceed_once");
        // A permanent decision would outlive the session, and may cover more than this request. A
        // cancelled request counts as a rejection.
        let outcome = match best.or_else(|| fitting.next()) {
            Some(choice) => json!({"outcome": "selected", "optionId": choice.id}),
            None => {
                let warning = (*decision == Decision::Allow).then_some(ONLY_PERMANENT);
                steps.extend(warning.map(|warning| Step::warn(warning.to_owned())));
                json!({"outcome": "cancelled"})
            }
        };
        steps.push(ENVELOPE.result(&id, &json!({"outcome": outcome})));
    }

    fn answer(&mut self, request: &str, answer: &Answer, steps: &mut Vec<Step>) {
        let Some(Pending { id, options, questions }) = self.pending.remove(request) else {
            return;
        };
        // Declining would end the turn, so the reason is given as the answer to every question.
        let texts: Vec<_> = match answer {
            Answer::Chosen(chosen) => chosen.iter().map(|texts| texts.join(", ")).collect(),
            Answer::Declined(reason) => vec![reason.clone(); questions.unwrap_or(1)],
            Answer::Form(_) => Vec::new(),
        };
        let submit = options.iter().find(|choice| choice.kind == "allow_once");
        let (Some(submit), true) = (submit, questions.is_some()) else {
            steps.push(ENVELOPE.result(&id, &json!({"outcome": {"outcome": "cancelled"}})));
            return;
        };
        let texts = texts.into_iter().enumerate();
        let answers: Map<_, _> = texts.map(|(at, text)| (at.to_string(), json!(text))).collect();
        let outcome = json!({"outcome": "selected", "optionId": submit.id});
        steps.push(ENVELOPE.result(&id, &json!({"outcome": outcome, "answers": answers})));
    }

    fn set_model(&mut self, model: &str, steps: &mut Vec<Step>) -> Applied {
        if self.session.restarts_for_model {
            return Applied::AtRestart;
        }
        self.session.model = Some(model.to_owned());
        let change = ("modelId", model);
        self.change(format!("the model {model}"), "session/set_model", change, steps);
        Applied::Now
    }

    fn set_mode(&mut self, mode: Mode, steps: &mut Vec<Step>) -> Applied {
        self.session.mode = mode;
        if let Some(names) = self.session.mode_names {
            let change = ("modeId", names.name(mode));
            self.change(format!("the permission mode {mode}"), "session/set_mode", change, steps);
        }
        Applied::Now
    }

    fn wake_after(&self) -> Option<Duration> {
        match self.phase {
            Phase::Replaying { settling: true, .. } => Some(REPLAY_SETTLED),
            Phase::Replaying { settling: false, .. } => Some(REPLAY_TIMEOUT),
            _ => None,
        }
    }

    fn woken(&mut self, steps: &mut Vec<Step>) {
        if let Phase::Replaying { session, .. } = &self.phase {
            self.settle(session.clone(), steps);
        }
    }

    fn turn_ended(&mut self, _steps: &mut Vec<Step>) {
        self.pending.clear();
        if let Phase::InTurn { session } = &self.phase {
            self.phase = Phase::Idle { session: session.clone() };
        }
    }

    fn close(&mut self, steps: &mut Vec<Step>) {
        self.phase = Phase::Closed;
        steps.push(Step::CloseInput);
    }

    fn interrupt(&mut self, steps: &mut Vec<Step>) -> bool {
        match &self.phase {
            Phase::InTurn { session } => {
                let params = json!({"sessionId": session});
                steps.push(ENVELOPE.notification("session/cancel", Some(&params)));
                // The protocol requires pending requests to be answered as cancelled.
                for (_, Pending { id, .. }) in self.pending.drain() {
                    let result = json!({"outcome": {"outcome": "cancelled"}});
                    steps.push(ENVELOPE.result(&id, &result));
                }
                true
            }
            Phase::Replaying { .. } | Phase::Settling { .. } => {
                self.interrupted = true;
                true
            }
            Phase::Initializing | Phase::Opening | Phase::Idle { .. } | Phase::Closed => false,
        }
    }
}
