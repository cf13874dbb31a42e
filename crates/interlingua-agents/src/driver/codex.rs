//! Codex through its app-server: JSON-RPC lines without the field `jsonrpc`.
//!
//! The client sends `initialize`, `initialized`, `thread/start` or `thread/resume`, and
//! `turn/start`. The server sends approval requests, which must be answered, and accepts
//! `turn/interrupt`. It exits when its input is closed, even in the middle of a turn, so the input
//! is closed when the turn has ended.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::json_rpc::{Envelope, Message, client_info, error_text, set};
use super::lines::Records;
use super::{Driver, Step};
use crate::permission::Decision;

/// The parameters with which a thread is started.
#[derive(Debug, Clone, Default)]
pub struct Thread {
    /// The thread to resume.
    pub resume: Option<String>,
    /// The working folder, as an absolute path.
    pub folder: String,
    /// The model.
    pub model: Option<String>,
    /// The approval policy: `untrusted`, `on-request` or `never`.
    pub approvals: &'static str,
    /// What commands may do without approval: `read-only`, `workspace-write` or
    /// `danger-full-access`.
    pub sandbox: &'static str,
}

/// The driver of Codex.
#[derive(Debug)]
pub struct CodexDriver {
    prompt: String,
    thread: Thread,
    records: Records,
    phase: Phase,
    /// The pending approval requests by their id: the id as it was sent, and the kind of approval.
    pending: HashMap<String, (Box<RawValue>, Approval)>,
    interrupted: bool,
}

/// The phase of the conversation.
#[derive(Debug, PartialEq, Eq)]
enum Phase {
    Initializing,
    StartingThread,
    StartingTurn { thread: String },
    InTurn { thread: String, turn: String },
    Closed,
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

const ENVELOPE: Envelope = Envelope::WithoutVersion;

impl CodexDriver {
    /// Creates a driver that starts a thread with this prompt.
    pub fn new(prompt: String, thread: Thread) -> Self {
        Self {
            prompt,
            thread,
            records: Records::default(),
            phase: Phase::Initializing,
            pending: HashMap::new(),
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
                steps.push(ENVELOPE.not_supported(id, method));
                return;
            }
        };
        if let Some(name) = message.id_text() {
            self.pending.insert(name, (id.to_owned(), approval));
        }
    }

    fn answer(&mut self, number: u64, result: &RawValue, steps: &mut Vec<Step>) {
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
                let input = json!([{"type": "text", "text": self.prompt, "textElements": []}]);
                let params = json!({"threadId": thread, "input": input});
                self.prompt.clear();
                self.phase = Phase::StartingTurn { thread };
                steps.push(ENVELOPE.request(TURN, "turn/start", &params));
            }
            (TURN, Phase::StartingTurn { thread }) => {
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
        let Thread { resume, folder, model, approvals, sandbox } = &self.thread;
        let mut params = json!({"cwd": folder, "approvalPolicy": approvals, "sandbox": sandbox});
        if *approvals != "never" {
            // Otherwise Codex marks the folder as trusted in the user's configuration, unasked, and
            // applies the rules that the folder contains.
            set(&mut params, "config", json!({"projects": {folder: {"trust_level": "untrusted"}}}));
        }
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
        ENVELOPE.request(THREAD, method, &params)
    }

    fn failure(&mut self, number: u64, error: &RawValue, steps: &mut Vec<Step>) {
        // An interrupt that arrives too late is not a failure.
        if number != INTERRUPT && self.phase != Phase::Closed {
            self.phase = Phase::Closed;
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
        let params = json!({"clientInfo": client_info()});
        steps.push(ENVELOPE.request(INITIALIZE, "initialize", &params));
    }

    fn output(&mut self, chunk: &[u8], steps: &mut Vec<Step>) {
        let mut records = std::mem::take(&mut self.records);
        records.each(chunk, |record| self.take(record, steps));
        self.records = records;
    }

    fn decide(&mut self, request: &str, decision: &Decision, steps: &mut Vec<Step>) {
        let Some((id, approval)) = self.pending.remove(request) else { return };
        let allowed = *decision == Decision::Allow;
        let word = match approval {
            Approval::Decision if allowed => "accept",
            Approval::Decision => "decline",
            Approval::Legacy if allowed => "approved",
            Approval::Legacy => "denied",
        };
        steps.push(ENVELOPE.result(&id, &json!({"decision": word})));
    }

    fn turn_ended(&mut self, steps: &mut Vec<Step>) {
        self.phase = Phase::Closed;
        steps.push(Step::CloseInput);
    }

    fn interrupt(&mut self, steps: &mut Vec<Step>) -> bool {
        self.interrupted = true;
        match &self.phase {
            Phase::InTurn { thread, turn } => {
                let params = json!({"threadId": thread, "turnId": turn});
                steps.push(ENVELOPE.request(INTERRUPT, "turn/interrupt", &params));
                true
            }
            // The turn is interrupted as soon as its id is known.
            Phase::StartingTurn { .. } => true,
            Phase::Initializing | Phase::StartingThread | Phase::Closed => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{replies, sent};
    use super::*;

    fn driver(resume: Option<&str>) -> CodexDriver {
        let thread = Thread {
            resume: resume.map(str::to_owned),
            folder: "/project".to_owned(),
            model: Some("m".to_owned()),
            approvals: "on-request",
            sandbox: "workspace-write",
        };
        CodexDriver::new("do it".to_owned(), thread)
    }

    fn in_turn() -> CodexDriver {
        let mut driver = driver(None);
        driver.start(&mut Vec::new());
        replies(&mut driver, r#"{"id":0,"result":{}}"#);
        replies(&mut driver, r#"{"id":1,"result":{"thread":{"id":"th"}}}"#);
        replies(&mut driver, r#"{"id":2,"result":{"turn":{"id":"tu"}}}"#);
        driver
    }

    #[test]
    fn a_thread_is_started_and_prompted() {
        let (mut driver, mut steps) = (driver(None), Vec::new());
        driver.start(&mut steps);
        assert_eq!(sent(&steps)[0]["method"], "initialize");
        let opened = replies(&mut driver, r#"{"id":0,"result":{}}"#);
        assert_eq!(
            (&opened[0]["method"], &opened[1]["method"]),
            (&json!("initialized"), &json!("thread/start"))
        );
        let params = json!({"cwd":"/project","approvalPolicy":"on-request","sandbox":"workspace-write","model":"m","config":{"projects":{"/project":{"trust_level":"untrusted"}}}});
        assert_eq!(opened[1]["params"], params);
        assert_eq!(
            replies(&mut driver, r#"{"method":"thread/started","params":{}}"#),
            [serde_json::Value::Null; 0]
        );
        let prompted = replies(&mut driver, r#"{"id":1,"result":{"thread":{"id":"th"}}}"#);
        assert_eq!(prompted[0]["params"]["threadId"], "th");
        assert_eq!(prompted[0]["params"]["input"][0]["text"], "do it");
    }

    #[test]
    fn a_thread_is_resumed_or_the_run_is_given_up_with_the_servers_message() {
        let mut driver = driver(Some("old"));
        let opened = replies(&mut driver, r#"{"id":0,"result":{}}"#);
        assert_eq!(opened[1]["method"], "thread/resume");
        let mut steps = Vec::new();
        driver.output(
            b"{\"id\":1,\"error\":{\"code\":-32600,\"message\":\"no rollout found\"}}\n",
            &mut steps,
        );
        assert_eq!(steps, [Step::GiveUp("no rollout found".to_owned())]);
    }

    #[test]
    fn approvals_are_answered_by_the_id_that_they_came_with() {
        for (decision, word) in
            [(Decision::Allow, "accept"), (Decision::Deny("no".into()), "decline")]
        {
            let mut driver = in_turn();
            let asks = r#"{"method":"item/commandExecution/requestApproval","id":0,"params":{"itemId":"i"}}"#;
            assert_eq!(replies(&mut driver, asks), [serde_json::Value::Null; 0]);
            let mut steps = Vec::new();
            driver.decide("0", &decision, &mut steps);
            assert_eq!(sent(&steps), [json!({"id": 0, "result": {"decision": word}})]);
        }
    }

    #[test]
    fn unsupported_requests_are_refused_at_once() {
        let asks = r#"{"method":"item/tool/requestUserInput","id":"x","params":{}}"#;
        let refused = replies(&mut in_turn(), asks);
        assert_eq!(
            (&refused[0]["id"], &refused[0]["error"]["code"]),
            (&json!("x"), &json!(-32601))
        );
    }

    #[test]
    fn an_early_interrupt_is_sent_once_the_turn_has_started() {
        let (mut steps, mut early) = (Vec::new(), driver(None));
        replies(&mut early, r#"{"id":0,"result":{}}"#);
        replies(&mut early, r#"{"id":1,"result":{"thread":{"id":"th"}}}"#);
        assert!(early.interrupt(&mut steps) && steps.is_empty());
        let sent_then = replies(&mut early, r#"{"id":2,"result":{"turn":{"id":"tu"}}}"#);
        assert_eq!(sent_then[0]["params"], json!({"threadId": "th", "turnId": "tu"}));
        assert!(in_turn().interrupt(&mut steps));
        assert_eq!(sent(&steps)[0]["method"], "turn/interrupt");
        let mut too_early = driver(None);
        assert!(!too_early.interrupt(&mut steps), "the run has to send a signal");
    }

    #[test]
    fn the_input_is_closed_when_the_turn_has_ended() {
        let mut steps = Vec::new();
        in_turn().turn_ended(&mut steps);
        assert_eq!(steps, [Step::CloseInput]);
    }
}
