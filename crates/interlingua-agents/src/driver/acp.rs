//! Any agent that speaks the Agent Client Protocol: JSON-RPC 2.0 lines.
//!
//! The client sends `initialize`, `session/new` or `session/load`, optionally `session/set_mode`
//! and `session/set_model`, and `session/prompt`. The agent requests permissions, each with its own
//! options. Every other request is refused, because the client advertised no further capabilities.
//! `session/cancel` stops a turn.

use std::collections::HashMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::json_rpc::{Envelope, Message, client_info, error_text, set};
use super::lines::Records;
use super::{Driver, Step};
use crate::permission::Decision;

/// The parameters with which a session is started.
#[derive(Debug, Clone, Default)]
pub struct Session {
    /// The session to resume.
    pub resume: Option<String>,
    /// The working folder, as an absolute path.
    pub folder: String,
    /// The model, if it is selected through the protocol.
    pub model: Option<String>,
    /// The mode, by the agent's name for it.
    pub mode: Option<&'static str>,
    /// The agent replays the history of a resumed session after it has reported the session as
    /// loaded, and then lists its commands. A prompt sent earlier would appear in the middle of the
    /// history.
    pub late_history: bool,
}

/// The driver of an agent that speaks ACP.
#[derive(Debug)]
pub struct AcpDriver {
    prompt: String,
    session: Session,
    records: Records,
    phase: Phase,
    /// The pending permission requests by their id: the id as it was sent, and the options.
    pending: HashMap<String, (Box<RawValue>, Vec<Choice>)>,
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
    Settling {
        session: String,
        answers: u8,
    },
    InTurn {
        session: String,
    },
    Closed,
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
}

/// The silence after which a replay counts as complete.
const REPLAY_TIMEOUT: Duration = Duration::from_secs(2);
const REPLAY_SETTLED: Duration = Duration::from_millis(100);

const INITIALIZE: u64 = 0;
const OPEN: u64 = 1;
const PROMPT: u64 = 2;
const MODE: u64 = 3;
const MODEL: u64 = 4;

const ENVELOPE: Envelope = Envelope::Standard;

impl AcpDriver {
    /// Creates a driver that opens a session with this prompt.
    pub fn new(prompt: String, session: Session) -> Self {
        Self {
            prompt,
            session,
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
            steps.push(ENVELOPE.not_supported(id, method));
            return;
        }
        let pending = message
            .params
            .and_then(|params| serde_json::from_str::<PermissionParams>(params.get()).ok());
        if let (Some(name), Some(pending)) = (message.id_text(), pending) {
            self.pending.insert(name, (id.to_owned(), pending.options));
        }
    }

    fn answer(&mut self, number: u64, result: &RawValue, steps: &mut Vec<Step>) {
        match (number, self.phase.clone()) {
            (INITIALIZE, Phase::Initializing) => {
                self.phase = Phase::Opening;
                let mut params = json!({"cwd": self.session.folder, "mcpServers": []});
                let method = match &self.session.resume {
                    Some(session) => {
                        set(&mut params, "sessionId", session.as_str());
                        "session/load"
                    }
                    None => "session/new",
                };
                steps.push(ENVELOPE.request(OPEN, method, &params));
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
            (MODE | MODEL, Phase::Settling { session, answers }) => {
                self.settled(session, answers, steps);
            }
            _ => {}
        }
    }

    /// Sets the mode and the model of the session, then sends the prompt.
    fn settle(&mut self, session: String, steps: &mut Vec<Step>) {
        let mut answers = 0;
        if let Some(mode) = self.session.mode {
            answers += 1;
            steps.push(ENVELOPE.request(
                MODE,
                "session/set_mode",
                &json!({"sessionId": session, "modeId": mode}),
            ));
        }
        if let Some(model) = &self.session.model {
            answers += 1;
            steps.push(ENVELOPE.request(
                MODEL,
                "session/set_model",
                &json!({"sessionId": session, "modelId": model}),
            ));
        }
        self.settled(session, answers + 1, steps);
    }

    fn settled(&mut self, session: String, answers: u8, steps: &mut Vec<Step>) {
        if answers > 1 {
            self.phase = Phase::Settling { session, answers: answers - 1 };
            return;
        }
        let prompt = json!([{"type": "text", "text": self.prompt}]);
        steps.push(ENVELOPE.request(
            PROMPT,
            "session/prompt",
            &json!({"sessionId": session, "prompt": prompt}),
        ));
        self.prompt.clear();
        self.phase = Phase::InTurn { session };
        if self.interrupted {
            self.interrupt(steps);
        }
    }

    fn failure(&mut self, number: u64, error: &RawValue, steps: &mut Vec<Step>) {
        // The stream itself reports how a prompt failed.
        if number != PROMPT && self.phase != Phase::Closed {
            self.phase = Phase::Closed;
            let words = error_text(error);
            steps.push(Step::GiveUp(match &self.session.resume {
                // Some agents only report that something went wrong.
                Some(session) if number == OPEN => {
                    format!("the session {} cannot be resumed: {words}", session.trim())
                }
                _ => words,
            }));
        }
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

    fn decide(&mut self, request: &str, decision: &Decision, steps: &mut Vec<Step>) {
        let Some((id, choices)) = self.pending.remove(request) else { return };
        let kinds = match decision {
            Decision::Allow => ["allow_once", "allow_always"],
            Decision::Deny(_) => ["reject_once", "reject_always"],
        };
        let choice =
            kinds.iter().find_map(|kind| choices.iter().find(|choice| choice.kind == *kind));
        // If an agent offers no option to reject, a cancelled request counts as a rejection.
        let outcome = match choice {
            Some(choice) => json!({"outcome": "selected", "optionId": choice.id}),
            None => json!({"outcome": "cancelled"}),
        };
        steps.push(ENVELOPE.result(&id, &json!({"outcome": outcome})));
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

    fn turn_ended(&mut self, steps: &mut Vec<Step>) {
        self.phase = Phase::Closed;
        steps.push(Step::CloseInput);
    }

    fn interrupt(&mut self, steps: &mut Vec<Step>) -> bool {
        self.interrupted = true;
        match &self.phase {
            Phase::InTurn { session } => {
                let params = json!({"sessionId": session});
                steps.push(ENVELOPE.notification("session/cancel", Some(&params)));
                // The protocol requires pending requests to be answered as cancelled.
                for (_, (id, _)) in self.pending.drain() {
                    let result = json!({"outcome": {"outcome": "cancelled"}});
                    steps.push(ENVELOPE.result(&id, &result));
                }
                true
            }
            Phase::Replaying { .. } | Phase::Settling { .. } => true,
            Phase::Initializing | Phase::Opening | Phase::Closed => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{replies, sent};
    use super::*;
    use serde_json::Value;

    fn driver(session: Session) -> AcpDriver {
        AcpDriver::new("do it".to_owned(), session)
    }

    fn in_turn() -> AcpDriver {
        let mut driver = driver(Session::default());
        replies(&mut driver, r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#);
        replies(&mut driver, r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}"#);
        driver
    }

    const ASKS: &str = r#"{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"always","name":"Always","kind":"allow_always"},{"optionId":"once","name":"Once","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}],"toolCall":{"toolCallId":"c"}}}"#;

    #[test]
    fn a_session_is_opened_configured_and_prompted() {
        let session = Session {
            folder: "/project".to_owned(),
            model: Some("m".to_owned()),
            mode: Some("autoEdit"),
            ..Session::default()
        };
        let mut driver = driver(session);
        let opened =
            replies(&mut driver, r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#);
        assert_eq!(
            (&opened[0]["method"], &opened[0]["params"]["cwd"]),
            (&json!("session/new"), &json!("/project"))
        );
        let settled =
            replies(&mut driver, r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}"#);
        assert_eq!(
            (&settled[0]["method"], &settled[1]["method"]),
            (&json!("session/set_mode"), &json!("session/set_model"))
        );
        assert_eq!(
            replies(&mut driver, r#"{"jsonrpc":"2.0","id":3,"result":{}}"#),
            [Value::Null; 0]
        );
        let prompted = replies(&mut driver, r#"{"jsonrpc":"2.0","id":4,"result":{}}"#);
        assert_eq!(
            prompted[0]["params"],
            json!({"sessionId":"s","prompt":[{"type":"text","text":"do it"}]})
        );
    }

    /// Gemini replays the history after it has reported the session as loaded.
    #[test]
    fn a_prompt_waits_for_the_end_of_the_replay() {
        let resume = Some("old".to_owned());
        let session = Session { resume, late_history: true, ..Session::default() };
        let mut driver = driver(session);
        replies(&mut driver, r#"{"jsonrpc":"2.0","id":0,"result":{}}"#);
        assert!(replies(&mut driver, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).is_empty());
        let update = |kind: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"update":{{"sessionUpdate":"{kind}"}}}}}}"#
            )
        };
        assert!(replies(&mut driver, &update("agent_message_chunk")).is_empty());
        assert_eq!(driver.wake_after(), Some(REPLAY_TIMEOUT));
        assert!(replies(&mut driver, &update("available_commands_update")).is_empty());
        assert_eq!(driver.wake_after(), Some(REPLAY_SETTLED));
        let mut steps = Vec::new();
        driver.woken(&mut steps);
        assert_eq!(sent(&steps)[0]["method"], "session/prompt");
        assert_eq!(driver.wake_after(), None);
    }

    #[test]
    fn a_session_is_loaded_or_the_run_is_given_up() {
        let mut driver = driver(Session { resume: Some("old".to_owned()), ..Session::default() });
        let opened = replies(&mut driver, r#"{"jsonrpc":"2.0","id":0,"result":{}}"#);
        assert_eq!(
            (&opened[0]["method"], &opened[0]["params"]["sessionId"]),
            (&json!("session/load"), &json!("old"))
        );
        let mut steps = Vec::new();
        let failed = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error","data":{"details":"not found"}}}"#;
        driver.output(format!("{failed}\n").as_bytes(), &mut steps);
        assert_eq!(
            steps,
            [Step::GiveUp(
                "the session old cannot be resumed: Internal error: not found".to_owned()
            )]
        );
    }

    #[test]
    fn the_smallest_permission_is_given() {
        for (decision, option) in [(Decision::Allow, "once"), (Decision::Deny(String::new()), "no")]
        {
            let (mut driver, mut steps) = (in_turn(), Vec::new());
            assert_eq!(replies(&mut driver, ASKS), [Value::Null; 0]);
            driver.decide("7", &decision, &mut steps);
            let outcome = json!({"outcome": "selected", "optionId": option});
            assert_eq!(sent(&steps)[0]["result"]["outcome"], outcome);
        }
    }

    #[test]
    fn a_cancelled_turn_answers_pending_requests() {
        let (mut driver, mut steps) = (in_turn(), Vec::new());
        replies(&mut driver, ASKS);
        assert!(driver.interrupt(&mut steps));
        let sent = sent(&steps);
        assert_eq!((&sent[0]["method"], &sent[1]["id"]), (&json!("session/cancel"), &json!(7)));
        assert_eq!(sent[1]["result"]["outcome"]["outcome"], "cancelled");
    }

    #[test]
    fn unadvertised_requests_are_refused() {
        let asks = r#"{"jsonrpc":"2.0","id":"a","method":"fs/read_text_file","params":{}}"#;
        assert_eq!(replies(&mut in_turn(), asks)[0]["error"]["code"], -32601);
    }

    #[test]
    fn a_failed_prompt_is_reported_by_the_stream() {
        let (mut driver, mut steps) = (in_turn(), Vec::new());
        driver.output(
            b"{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":401,\"message\":\"no key\"}}\n",
            &mut steps,
        );
        assert_eq!(steps, []);
    }
}
