//! Codex through its app-server: JSON-RPC lines without the field `jsonrpc`.
//!
//! The client sends `initialize`, `initialized`, `thread/start` or `thread/resume`, and a
//! `turn/start` for every prompt. The server sends approval requests and questions, which must be
//! answered, and accepts `turn/interrupt`. Commands survive an interrupt, so they are ended
//! separately. The server exits when its input is closed, even in the middle of a turn.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::json_rpc::{Envelope, Message, client_info, error_text, set};
use super::lines::Records;
use super::{Answer, Applied, Driver, Step};
use crate::client_tool::{Endpoint, LONGEST_WAIT, SERVER_NAME};
use crate::permission::{Decision, Mode};
use crate::session::LateResult;

/// The parameters with which a thread is started.
#[derive(Debug, Clone, Default)]
pub struct Thread {
    /// The thread to resume.
    pub resume: Option<String>,
    /// The working folder, as an absolute path.
    pub folder: String,
    /// The model.
    pub model: Option<String>,
    /// What the agent may do.
    pub mode: Mode,
    /// The tools of the client.
    pub client_tools: Option<Endpoint>,
}

/// The server of the client's tools. The thread starts when Codex knows them, and does not ask before
/// it calls one: the client can refuse.
fn mcp_server(tools: &Endpoint) -> Value {
    json!({
        "url": tools.url,
        "http_headers": tools.headers(),
        "tool_timeout_sec": LONGEST_WAIT.as_secs(),
        "default_tools_approval_mode": "approve",
        "supports_parallel_tool_calls": tools.only_reads,
        "required": true,
    })
}

/// The driver of Codex.
#[derive(Debug)]
pub struct CodexDriver {
    thread: Thread,
    records: Records,
    phase: Phase,
    /// The prompt that waits until the thread has started.
    prompt: Option<String>,
    /// Results that are added to the thread before the next turn.
    late: Option<Late>,
    /// The id of the request that adds them.
    injected: Option<u64>,
    /// The settings that the next turn changes, for itself and all later ones.
    changes: Map<String, Value>,
    /// The pending requests of the server by their id.
    pending: HashMap<String, Pending>,
    /// The id of the last request to the server, and of the last `turn/start`.
    last_request: u64,
    last_turn: u64,
    /// The prompts that the server was asked to add to the running turn, by the ids of the requests.
    joining: HashMap<u64, String>,
    interrupted: bool,
}

/// Results of calls that were open when an earlier server was lost.
#[derive(Debug)]
struct Late {
    /// The outputs, as items of the thread.
    items: Vec<Value>,
    /// The prompt that gives them, if the server does not take the items.
    prompt: String,
}

/// The phase of the conversation.
#[derive(Debug, PartialEq, Eq)]
enum Phase {
    Initializing,
    StartingThread,
    Idle { thread: String },
    StartingTurn { thread: String },
    InTurn { thread: String, turn: String },
    Closed,
}

/// A request of the server: its id as it was sent, and the form of its answer.
#[derive(Debug)]
struct Pending {
    id: Box<RawValue>,
    form: Form,
}

#[derive(Debug)]
enum Form {
    Approval,
    LegacyApproval,
    /// The permissions that are requested beyond the sandbox.
    Permissions(Value),
    /// The ids of the questions.
    Questions(Vec<String>),
    /// The form of an MCP server, or its request to run a tool.
    Elicitation,
}

const INITIALIZE: u64 = 0;
const THREAD: u64 = 1;

const ENVELOPE: Envelope = Envelope::WithoutVersion;

impl CodexDriver {
    /// Creates a driver that starts or resumes a thread.
    pub fn new(thread: Thread) -> Self {
        Self {
            thread,
            records: Records::default(),
            phase: Phase::Initializing,
            prompt: None,
            late: None,
            injected: None,
            changes: Map::new(),
            pending: HashMap::new(),
            last_request: THREAD,
            last_turn: THREAD,
            joining: HashMap::new(),
            interrupted: false,
        }
    }

    fn take(&mut self, record: &str, steps: &mut Vec<Step>) {
        if is_delta(record) {
            return;
        }
        let Some(message) = Message::of(record) else { return };
        match (&message.method, message.id) {
            (Some(method), Some(id)) => self.requested(method, id, &message, steps),
            (None, Some(id)) => {
                let number = id.get().parse::<u64>().ok();
                match (number, message.result, message.error) {
                    (Some(number), Some(result), _) => self.answered(number, result, steps),
                    (Some(number), None, Some(error)) => self.failed(number, error, steps),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// The server sent a request.
    fn requested(
        &mut self,
        method: &str,
        id: &RawValue,
        message: &Message<'_>,
        steps: &mut Vec<Step>,
    ) {
        let form = match method {
            "item/commandExecution/requestApproval" | "item/fileChange/requestApproval" => {
                Form::Approval
            }
            "execCommandApproval" | "applyPatchApproval" => Form::LegacyApproval,
            "item/permissions/requestApproval" => {
                let wanted =
                    message.params.map(|params| serde_json::from_str::<More>(params.get()));
                Form::Permissions(wanted.and_then(Result::ok).unwrap_or_default().permissions)
            }
            "item/tool/requestUserInput" => {
                let asked =
                    message.params.map(|params| serde_json::from_str::<Asked>(params.get()));
                let questions = asked.and_then(Result::ok).unwrap_or_default().questions;
                Form::Questions(questions.into_iter().filter_map(|it| it.id).collect())
            }
            "mcpServer/elicitation/request" => Form::Elicitation,
            _ => {
                steps.push(ENVELOPE.not_supported(id, method));
                return;
            }
        };
        if let Some(name) = message.id_text() {
            self.pending.insert(name, Pending { id: id.to_owned(), form });
        }
    }

    /// The server answered a request of this driver.
    fn answered(&mut self, number: u64, result: &RawValue, steps: &mut Vec<Step>) {
        self.joining.remove(&number);
        if self.injected == Some(number) {
            self.late_taken(steps);
            return;
        }
        match (number, &self.phase) {
            (INITIALIZE, Phase::Initializing) => {
                self.phase = Phase::StartingThread;
                steps.push(ENVELOPE.notification("initialized", None));
                steps.push(self.start_thread());
            }
            (THREAD, Phase::StartingThread) => {
                let Some(thread) = id_in(result, |started: Started| started.thread) else {
                    steps.push(Step::GiveUp("codex started a thread without an id".to_owned()));
                    return;
                };
                self.phase = Phase::Idle { thread };
                self.inject(steps);
                if let Some(prompt) = self.prompt.take() {
                    self.prompt(&prompt, steps);
                }
            }
            (number, Phase::StartingTurn { thread }) if number == self.last_turn => {
                let turn = id_in(result, |started: Started| started.turn).unwrap_or_default();
                self.phase = Phase::InTurn { thread: thread.clone(), turn };
                if self.interrupted {
                    self.interrupt(steps);
                }
            }
            _ => {}
        }
    }

    fn start_thread(&self) -> Step {
        let Thread { resume, folder, model, mode, client_tools } = &self.thread;
        let (approvals, sandbox, _) = limits(*mode);
        let mut params = json!({"cwd": folder, "approvalPolicy": approvals, "sandbox": sandbox});
        // Otherwise Codex marks the folder as trusted in the user's configuration, unasked, and
        // applies the rules that the folder contains.
        let mut config = json!({"projects": {folder: {"trust_level": "untrusted"}}});
        if let Some(tools) = client_tools {
            set(&mut config, "mcp_servers", json!({SERVER_NAME: mcp_server(tools)}));
        }
        set(&mut params, "config", config);
        if let Some(model) = model {
            set(&mut params, "model", model.as_str());
        }
        let method = match resume {
            Some(thread) => {
                set(&mut params, "threadId", thread.as_str());
                "thread/resume"
            }
            None => "thread/start",
        };
        let mut start = ENVELOPE.request(THREAD, method, &params);
        start.hide(&client_tools.iter().flat_map(Endpoint::secrets).collect::<Vec<_>>());
        start
    }

    fn failed(&mut self, number: u64, error: &RawValue, steps: &mut Vec<Step>) {
        if self.injected == Some(number) {
            self.late_refused(steps);
            return;
        }
        // The turn may have ended before the request arrived.
        if let Some(prompt) = self.joining.remove(&number) {
            Step::queue(prompt, &error_text(error), steps);
            return;
        }
        let starts = number == INITIALIZE || number == THREAD;
        // Only a prompt is worth giving up for: an interrupt may come too late, and there may be no
        // commands to end.
        if starts || matches!(self.phase, Phase::StartingTurn { .. }) && number == self.last_turn {
            self.phase = Phase::Closed;
            steps.push(Step::GiveUp(error_text(error)));
        }
    }

    /// Adds late results to the thread, in which they answer their calls.
    fn inject(&mut self, steps: &mut Vec<Step>) {
        let (Some(late), Phase::Idle { thread }) = (&self.late, &self.phase) else { return };
        let params = json!({"threadId": thread, "items": late.items});
        steps.push(self.request("thread/inject_items", &params));
        self.injected = Some(self.last_request);
    }

    /// The thread contains the results: a turn without a prompt continues from them.
    fn late_taken(&mut self, steps: &mut Vec<Step>) {
        (self.late, self.injected) = (None, None);
        self.start_turn(json!([]), steps);
    }

    /// Another version of Codex may not know the request.
    fn late_refused(&mut self, steps: &mut Vec<Step>) {
        self.injected = None;
        if let Some(late) = self.late.take() {
            self.prompt(&late.prompt, steps);
        }
    }

    fn start_turn(&mut self, input: Value, steps: &mut Vec<Step>) {
        let Phase::Idle { thread } = &self.phase else { return };
        let thread = thread.clone();
        let mut params = std::mem::take(&mut self.changes);
        params.insert("threadId".to_owned(), json!(thread));
        params.insert("input".to_owned(), input);
        steps.push(self.request("turn/start", &Value::Object(params)));
        self.last_turn = self.last_request;
        self.interrupted = false;
        self.phase = Phase::StartingTurn { thread };
    }

    fn request(&mut self, method: &str, params: &Value) -> Step {
        self.last_request += 1;
        ENVELOPE.request(self.last_request, method, params)
    }

    /// The thread, once it has started.
    fn thread_id(&self) -> Option<&str> {
        match &self.phase {
            Phase::Idle { thread }
            | Phase::StartingTurn { thread }
            | Phase::InTurn { thread, .. } => Some(thread),
            Phase::Initializing | Phase::StartingThread | Phase::Closed => None,
        }
    }
}

/// The approval policy for a mode, and the sandbox, in the two forms that the server accepts.
///
/// Codex asks before every command and change, and the policy decides; with `on-request` it would
/// act unasked inside its sandbox. The sandbox is a second limit, which an approval does not lift.
fn limits(mode: Mode) -> (&'static str, &'static str, Value) {
    let (sandbox, policy) = match mode {
        Mode::Ask | Mode::Interactive | Mode::AcceptEdits => ("workspace-write", "workspaceWrite"),
        Mode::Auto => ("danger-full-access", "dangerFullAccess"),
        Mode::Deny | Mode::Plan => ("read-only", "readOnly"),
    };
    ("untrusted", sandbox, json!({"type": policy}))
}

#[derive(Default, Deserialize)]
struct Asked {
    #[serde(default)]
    questions: Vec<Named>,
}

#[derive(Default, Deserialize)]
struct More {
    #[serde(default)]
    permissions: Value,
}

#[derive(Deserialize)]
struct Started {
    thread: Option<Named>,
    turn: Option<Named>,
}

#[derive(Deserialize)]
struct Named {
    id: Option<String>,
}

fn id_in(result: &RawValue, of: impl FnOnce(Started) -> Option<Named>) -> Option<String> {
    of(serde_json::from_str(result.get()).ok()?)?.id
}

/// Whether a record is a notification of a delta. Most records are, and the driver has no use for them,
/// so they are recognized without being parsed.
fn is_delta(record: &str) -> bool {
    let method = record.strip_prefix("{\"method\":\"item/").and_then(|rest| rest.split_once('"'));
    method.is_some_and(|(method, rest)| {
        (method.ends_with("/delta") || method.ends_with("Delta"))
            && rest.starts_with(",\"params\":")
    })
}

impl Driver for CodexDriver {
    fn start(&mut self, steps: &mut Vec<Step>) {
        // The requests that end commands are experimental.
        let capabilities = json!({"experimentalApi": true});
        let params = json!({"clientInfo": client_info(), "capabilities": capabilities});
        steps.push(ENVELOPE.request(INITIALIZE, "initialize", &params));
    }

    fn output(&mut self, chunk: &[u8], steps: &mut Vec<Step>) {
        let mut records = std::mem::take(&mut self.records);
        records.each(chunk, |record| self.take(record, steps));
        self.records = records;
    }

    fn prompt(&mut self, prompt: &str, steps: &mut Vec<Step>) {
        match self.phase {
            Phase::Idle { .. } => self.start_turn(text_input(prompt), steps),
            _ => self.prompt = Some(prompt.to_owned()),
        }
    }

    fn resume(&mut self, results: &[LateResult], prompt: &str, steps: &mut Vec<Step>) -> bool {
        // A new thread does not have the calls.
        if self.thread.resume.is_none() {
            return false;
        }
        let item = |result: &LateResult| {
            let (output, _) = result.outcome.text();
            json!({
                "type": "function_call_output",
                "call_id": result.native_id(),
                "output": output,
            })
        };
        let items = results.iter().map(item).collect();
        self.late = Some(Late { items, prompt: prompt.to_owned() });
        self.inject(steps);
        true
    }

    fn join(&mut self, prompt: &str, steps: &mut Vec<Step>) -> bool {
        let Phase::InTurn { thread, turn } = &self.phase else { return false };
        let params =
            json!({"threadId": thread, "expectedTurnId": turn, "input": text_input(prompt)});
        steps.push(self.request("turn/steer", &params));
        self.joining.insert(self.last_request, prompt.to_owned());
        true
    }

    fn decide(&mut self, request: &str, decision: &Decision, steps: &mut Vec<Step>) {
        let Some(Pending { id, form }) = self.pending.remove(request) else { return };
        let allowed = *decision == Decision::Allow;
        let result = match (form, allowed) {
            (Form::Approval, true) => json!({"decision": "accept"}),
            (Form::Approval, false) => json!({"decision": "decline"}),
            (Form::LegacyApproval, true) => json!({"decision": "approved"}),
            (Form::LegacyApproval, false) => json!({"decision": "denied"}),
            // What is granted ends with the turn.
            (Form::Permissions(wanted), true) if wanted.is_object() => {
                json!({"permissions": wanted, "scope": "turn"})
            }
            (Form::Permissions(_), _) => json!({"permissions": {}, "scope": "turn"}),
            (Form::Elicitation, true) => json!({"action": "accept", "content": {}, "_meta": null}),
            (Form::Elicitation, false) => {
                json!({"action": "decline", "content": null, "_meta": null})
            }
            (Form::Questions(_), _) => json!({"answers": {}}),
        };
        steps.push(ENVELOPE.result(&id, &result));
    }

    fn answer(&mut self, request: &str, answer: &Answer, steps: &mut Vec<Step>) {
        let Some(Pending { id, form }) = self.pending.remove(request) else { return };
        let result = match (form, answer) {
            (Form::Questions(ids), Answer::Chosen(chosen)) => answers(ids.iter().zip(chosen)),
            // An empty answer would not give the reason to the model.
            (Form::Questions(ids), Answer::Declined(reason)) => {
                let reason = vec![reason.clone()];
                answers(ids.iter().map(|id| (id, &reason)))
            }
            (_, Answer::Form(content)) => {
                json!({"action": "accept", "content": content, "_meta": null})
            }
            (_, Answer::Chosen(_)) => json!({"action": "accept", "content": {}, "_meta": null}),
            (_, Answer::Declined(_)) => {
                json!({"action": "decline", "content": null, "_meta": null})
            }
        };
        steps.push(ENVELOPE.result(&id, &result));
    }

    fn set_model(&mut self, model: &str, _steps: &mut Vec<Step>) -> Applied {
        self.changes.insert("model".to_owned(), json!(model));
        Applied::Now
    }

    fn set_mode(&mut self, mode: Mode, _steps: &mut Vec<Step>) -> Applied {
        let (approvals, _, sandbox) = limits(mode);
        self.changes.insert("approvalPolicy".to_owned(), json!(approvals));
        self.changes.insert("sandboxPolicy".to_owned(), sandbox);
        Applied::Now
    }

    fn turn_ended(&mut self, steps: &mut Vec<Step>) {
        let Some(thread) = self.thread_id().map(str::to_owned) else { return };
        if std::mem::replace(&mut self.interrupted, false) {
            let params = json!({"threadId": thread});
            steps.push(self.request("thread/backgroundTerminals/clean", &params));
        }
        self.pending.clear();
        self.phase = Phase::Idle { thread };
    }

    fn close(&mut self, steps: &mut Vec<Step>) {
        self.phase = Phase::Closed;
        steps.push(Step::CloseInput);
    }

    fn interrupt(&mut self, steps: &mut Vec<Step>) -> bool {
        match &self.phase {
            Phase::InTurn { thread, turn } => {
                let params = json!({"threadId": thread, "turnId": turn});
                steps.push(self.request("turn/interrupt", &params));
            }
            // The turn is interrupted as soon as its id is known.
            Phase::StartingTurn { .. } => {}
            Phase::Initializing | Phase::StartingThread | Phase::Idle { .. } | Phase::Closed => {
                return false;
            }
        }
        self.interrupted = true;
        true
    }
}

fn text_input(prompt: &str) -> Value {
    json!([{"type": "text", "text": prompt, "textElements": []}])
}

fn answers<'a>(all: impl Iterator<Item = (&'a String, &'a Vec<String>)>) -> Value {
    let all = all.map(|(id, chosen)| (id.clone(), json!({"answers": chosen})));
    json!({"answers": all.collect::<Map<_, _>>()})
}
