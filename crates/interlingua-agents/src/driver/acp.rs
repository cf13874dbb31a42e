//! Any agent that speaks the Agent Client Protocol: JSON-RPC 2.0 lines.
//!
//! The talk is `initialize`, `session/new` or `session/load`, perhaps `session/set_mode` and
//! `session/set_model`, `session/prompt`. The agent asks for permissions, each with its own options;
//! everything else that it asks for we never offered, and refuse. `session/cancel` stops a turn.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::lines::{Message, Records, error_text};
use super::{Driver, Step};
use crate::permission::Decision;

/// What a session is started with.
#[derive(Debug, Clone, Default)]
pub struct Session {
    /// The session to go on with.
    pub resume: Option<String>,
    /// The folder, as an absolute path.
    pub folder: String,
    /// The model, where it is chosen in the protocol.
    pub model: Option<String>,
    /// The mode, in the agent's word.
    pub mode: Option<&'static str>,
}

/// The driver of an agent that speaks ACP.
#[derive(Debug)]
pub struct AcpDriver {
    prompt: String,
    session: Session,
    records: Records,
    talk: Talk,
    /// The permissions that wait, by request: the id as it was sent, and what may be answered.
    asked: HashMap<String, (Box<RawValue>, Vec<Choice>)>,
    interrupted: bool,
}

/// How far the talk has come.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Talk {
    Initializing,
    Opening,
    Settling { session: String, answers: u8 },
    InTurn { session: String },
    Over,
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
struct Asked {
    #[serde(default)]
    options: Vec<Choice>,
}

const INITIALIZE: u64 = 0;
const OPEN: u64 = 1;
const PROMPT: u64 = 2;
const MODE: u64 = 3;
const MODEL: u64 = 4;

impl AcpDriver {
    /// A driver that begins with a prompt.
    pub fn new(prompt: String, session: Session) -> Self {
        Self {
            prompt,
            session,
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
                let Ok(number) = id.get().parse::<u64>() else { return };
                match (message.result, message.error) {
                    (_, Some(error)) => self.failure(number, error, steps),
                    (Some(result), None) => self.answer(number, result, steps),
                    (None, None) => {}
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
        if method != "session/request_permission" {
            let text = format!("{method} is not supported by this client");
            let error = json!({"code": -32601, "message": text});
            steps.push(send(&json!({"jsonrpc": "2.0", "id": id, "error": error})));
            return;
        }
        let asked =
            message.params.and_then(|params| serde_json::from_str::<Asked>(params.get()).ok());
        if let (Some(name), Some(asked)) = (message.id_text(), asked) {
            self.asked.insert(name, (id.to_owned(), asked.options));
        }
    }

    fn answer(&mut self, number: u64, result: &RawValue, steps: &mut Vec<Step>) {
        match (number, self.talk.clone()) {
            (INITIALIZE, Talk::Initializing) => {
                self.talk = Talk::Opening;
                let mut params = json!({"cwd": self.session.folder, "mcpServers": []});
                let method = match &self.session.resume {
                    Some(session) => {
                        params["sessionId"] = json!(session);
                        "session/load"
                    }
                    None => "session/new",
                };
                steps.push(request(OPEN, method, &params));
            }
            (OPEN, Talk::Opening) => {
                let opened = serde_json::from_str::<Opened>(result.get()).ok();
                let session = opened.and_then(|opened| opened.session);
                let Some(session) = session.or_else(|| self.session.resume.clone()) else {
                    steps.push(Step::GiveUp("the agent opened a session without an id".to_owned()));
                    return;
                };
                self.settle(session, steps);
            }
            (MODE | MODEL, Talk::Settling { session, answers }) => {
                self.settled(session, answers, steps);
            }
            _ => {}
        }
    }

    /// Sets what the session is to be like, and then prompts.
    fn settle(&mut self, session: String, steps: &mut Vec<Step>) {
        let mut answers = 0;
        if let Some(mode) = self.session.mode {
            answers += 1;
            steps.push(request(
                MODE,
                "session/set_mode",
                &json!({"sessionId": session, "modeId": mode}),
            ));
        }
        if let Some(model) = &self.session.model {
            answers += 1;
            steps.push(request(
                MODEL,
                "session/set_model",
                &json!({"sessionId": session, "modelId": model}),
            ));
        }
        self.settled(session, answers + 1, steps);
    }

    fn settled(&mut self, session: String, answers: u8, steps: &mut Vec<Step>) {
        if answers > 1 {
            self.talk = Talk::Settling { session, answers: answers - 1 };
            return;
        }
        let prompt = json!([{"type": "text", "text": self.prompt}]);
        steps.push(request(
            PROMPT,
            "session/prompt",
            &json!({"sessionId": session, "prompt": prompt}),
        ));
        self.prompt.clear();
        self.talk = Talk::InTurn { session };
        if self.interrupted {
            self.interrupt(steps);
        }
    }

    fn failure(&mut self, number: u64, error: &RawValue, steps: &mut Vec<Step>) {
        // How a prompt failed, the stream tells.
        if number != PROMPT && self.talk != Talk::Over {
            self.talk = Talk::Over;
            steps.push(Step::GiveUp(error_text(error)));
        }
    }
}

fn send(record: &serde_json::Value) -> Step {
    Step::Send(record.to_string())
}

fn request(id: u64, method: &str, params: &serde_json::Value) -> Step {
    send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

impl Driver for AcpDriver {
    fn start(&mut self, steps: &mut Vec<Step>) {
        let capabilities =
            json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false});
        let client = json!({"name": "interlingua", "title": "Interlingua", "version": env!("CARGO_PKG_VERSION")});
        let params =
            json!({"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": client});
        steps.push(request(INITIALIZE, "initialize", &params));
    }

    fn output(&mut self, chunk: &[u8], steps: &mut Vec<Step>) {
        let mut records = std::mem::take(&mut self.records);
        records.each(chunk, |record| self.take(record, steps));
        self.records = records;
    }

    fn decide(&mut self, request: &str, decision: &Decision, steps: &mut Vec<Step>) {
        let Some((id, choices)) = self.asked.remove(request) else { return };
        let kinds = match decision {
            Decision::Allow => ["allow_once", "allow_always"],
            Decision::Deny(_) => ["reject_once", "reject_always"],
        };
        let choice =
            kinds.iter().find_map(|kind| choices.iter().find(|choice| choice.kind == *kind));
        // An agent that offers no way to say no takes a cancelled question for one.
        let outcome = match choice {
            Some(choice) => json!({"outcome": "selected", "optionId": choice.id}),
            None => json!({"outcome": "cancelled"}),
        };
        steps.push(send(&json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}})));
    }

    fn turn_ended(&mut self, steps: &mut Vec<Step>) {
        self.talk = Talk::Over;
        steps.push(Step::CloseInput);
    }

    fn interrupt(&mut self, steps: &mut Vec<Step>) -> bool {
        self.interrupted = true;
        match &self.talk {
            Talk::InTurn { session } => {
                let params = json!({"sessionId": session});
                steps.push(send(
                    &json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params}),
                ));
                // By the protocol, what waits for an answer is answered as cancelled.
                for (_, (id, _)) in self.asked.drain() {
                    let result = json!({"outcome": {"outcome": "cancelled"}});
                    steps.push(send(&json!({"jsonrpc": "2.0", "id": id, "result": result})));
                }
                true
            }
            Talk::Settling { .. } => true,
            Talk::Initializing | Talk::Opening | Talk::Over => false,
        }
    }
}
