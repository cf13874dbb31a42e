//! Codex by its app-server: JSON-RPC lines without the field `jsonrpc`.
//!
//! The talk is `initialize`, `initialized`, `thread/start` or `thread/resume`, `turn/start`. The server
//! asks for approvals, which must be answered, and takes `turn/interrupt`. It ends when its input is
//! closed, also in the middle of a turn: so the input is closed when the turn is over.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::lines::{Message, Records, error_text};
use super::{Driver, Step};
use crate::permission::Decision;

/// What a thread is started with.
#[derive(Debug, Clone, Default)]
pub struct Thread {
    /// The thread to go on with.
    pub resume: Option<String>,
    /// The folder, as an absolute path.
    pub folder: String,
    /// The model.
    pub model: Option<String>,
    /// When to ask: `on-request`, `never`.
    pub approvals: &'static str,
    /// What commands may do unasked: `read-only`, `workspace-write`, `danger-full-access`.
    pub sandbox: &'static str,
}

/// The driver of Codex.
#[derive(Debug)]
pub struct CodexDriver {
    prompt: String,
    thread: Thread,
    records: Records,
    talk: Talk,
    /// The approvals that wait, by request: the id as it was sent, and what they are about.
    asked: HashMap<String, (Box<RawValue>, Approval)>,
    interrupted: bool,
}

/// How far the talk has come.
#[derive(Debug, PartialEq, Eq)]
enum Talk {
    Initializing,
    StartingThread,
    StartingTurn { thread: String },
    InTurn { thread: String, turn: String },
    Over,
}

#[derive(Debug, Clone, Copy)]
enum Approval {
    Decision,
    Legacy,
}

const INITIALIZE: u64 = 0;
const THREAD: u64 = 1;
const TURN: u64 = 2;
const INTERRUPT: u64 = 3;

impl CodexDriver {
    /// A driver that begins with a prompt.
    pub fn new(prompt: String, thread: Thread) -> Self {
        Self {
            prompt,
            thread,
            records: Records::default(),
            talk: Talk::Initializing,
            asked: HashMap::new(),
            interrupted: false,
        }
    }

    fn take(&mut self, record: &str, steps: &mut Vec<Step>) {
        let Some(message) = Message::of(record) else { return };
        match (&message.method, message.id) {
            (Some(method), Some(id)) => self.request(method, id, &message, steps),
            (None, Some(id)) => {
                let number = id.get().parse::<u64>().ok();
                match (number, message.result, message.error) {
                    (Some(number), Some(result), _) => self.answer(number, result, steps),
                    (Some(number), None, Some(error)) => self.failure(number, error, steps),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn request(
        &mut self,
        method: &str,
        id: &RawValue,
        message: &Message<'_>,
        steps: &mut Vec<Step>,
    ) {
        let approval = match method {
            "item/commandExecution/requestApproval" | "item/fileChange/requestApproval" => {
                Approval::Decision
            }
            "execCommandApproval" | "applyPatchApproval" => Approval::Legacy,
            _ => {
                let text = format!("{method} is not supported by this client");
                let answer = json!({"id": id, "error": {"code": -32601, "message": text}});
                steps.push(Step::Send(answer.to_string()));
                return;
            }
        };
        if let Some(name) = message.id_text() {
            self.asked.insert(name, (id.to_owned(), approval));
        }
    }

    fn answer(&mut self, number: u64, result: &RawValue, steps: &mut Vec<Step>) {
        match (number, &self.talk) {
            (INITIALIZE, Talk::Initializing) => {
                self.talk = Talk::StartingThread;
                steps.push(Step::Send(json!({"method": "initialized"}).to_string()));
                steps.push(Step::Send(self.start_thread()));
            }
            (THREAD, Talk::StartingThread) => {
                let Some(thread) = id_in(result, |started: Started| started.thread) else {
                    steps.push(Step::GiveUp("codex started a thread without an id".to_owned()));
                    return;
                };
                let input = json!([{"type": "text", "text": self.prompt, "textElements": []}]);
                let turn = json!({"method": "turn/start", "id": TURN, "params": {"threadId": thread, "input": input}});
                self.prompt.clear();
                self.talk = Talk::StartingTurn { thread };
                steps.push(Step::Send(turn.to_string()));
            }
            (TURN, Talk::StartingTurn { thread }) => {
                let turn = id_in(result, |started: Started| started.turn).unwrap_or_default();
                self.talk = Talk::InTurn { thread: thread.clone(), turn };
                if self.interrupted {
                    self.interrupt(steps);
                }
            }
            _ => {}
        }
    }

    fn start_thread(&self) -> String {
        let Thread { resume, folder, model, approvals, sandbox } = &self.thread;
        let mut params = json!({"cwd": folder, "approvalPolicy": approvals, "sandbox": sandbox});
        if let Some(model) = model {
            params["model"] = json!(model);
        }
        let method = match resume {
            Some(thread) => {
                params["threadId"] = json!(thread);
                "thread/resume"
            }
            None => "thread/start",
        };
        json!({"method": method, "id": THREAD, "params": params}).to_string()
    }

    fn failure(&mut self, number: u64, error: &RawValue, steps: &mut Vec<Step>) {
        // An interrupt that came too late is no failure.
        if number != INTERRUPT && self.talk != Talk::Over {
            self.talk = Talk::Over;
            steps.push(Step::GiveUp(error_text(error)));
        }
    }
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

impl Driver for CodexDriver {
    fn start(&mut self, steps: &mut Vec<Step>) {
        let client = json!({"name": "interlingua", "title": "Interlingua", "version": env!("CARGO_PKG_VERSION")});
        let initialize =
            json!({"method": "initialize", "id": INITIALIZE, "params": {"clientInfo": client}});
        steps.push(Step::Send(initialize.to_string()));
    }

    fn output(&mut self, chunk: &[u8], steps: &mut Vec<Step>) {
        let mut records = std::mem::take(&mut self.records);
        records.each(chunk, |record| self.take(record, steps));
        self.records = records;
    }

    fn decide(&mut self, request: &str, decision: &Decision, steps: &mut Vec<Step>) {
        let Some((id, approval)) = self.asked.remove(request) else { return };
        let allowed = *decision == Decision::Allow;
        let word = match approval {
            Approval::Decision if allowed => "accept",
            Approval::Decision => "decline",
            Approval::Legacy if allowed => "approved",
            Approval::Legacy => "denied",
        };
        let answer: Value = json!({"id": id, "result": {"decision": word}});
        steps.push(Step::Send(answer.to_string()));
    }

    fn turn_ended(&mut self, steps: &mut Vec<Step>) {
        self.talk = Talk::Over;
        steps.push(Step::CloseInput);
    }

    fn interrupt(&mut self, steps: &mut Vec<Step>) -> bool {
        self.interrupted = true;
        match &self.talk {
            Talk::InTurn { thread, turn } => {
                let params = json!({"threadId": thread, "turnId": turn});
                let interrupt =
                    json!({"method": "turn/interrupt", "id": INTERRUPT, "params": params});
                steps.push(Step::Send(interrupt.to_string()));
                true
            }
            // It is interrupted as soon as there is something to interrupt.
            Talk::StartingTurn { .. } => true,
            Talk::Initializing | Talk::StartingThread | Talk::Over => false,
        }
    }
}
