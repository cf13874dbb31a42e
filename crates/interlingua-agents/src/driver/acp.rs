//! Any agent that speaks the Agent Client Protocol: JSON-RPC 2.0 lines.
//!
//! The talk is `initialize`, `session/new` or `session/load`, perhaps `session/set_mode` and
//! `session/set_model`, `session/prompt`. The agent asks for permissions, each with its own options;
//! everything else that it asks for we never offered, and refuse. `session/cancel` stops a turn.

use std::collections::HashMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::lines::{Message, Records, error_text, set};
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
    /// Of a session that is resumed, the agent tells the past after it has said that it was loaded, and
    /// then its commands. A prompt that came before that would be told in the middle of the past.
    pub late_history: bool,
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
    /// The agent tells the past, or has begun with what comes after it.
    Remembering {
        session: String,
        nearly: bool,
    },
    Settling {
        session: String,
        answers: u8,
    },
    InTurn {
        session: String,
    },
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
struct Updated {
    update: Update,
}

#[derive(Deserialize)]
struct Update {
    #[serde(rename = "sessionUpdate", default)]
    kind: String,
}

#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    options: Vec<Choice>,
}

/// How long an agent that tells the past may say nothing before it is taken to be done with it.
const REMEMBERS: Duration = Duration::from_secs(2);
const NEARLY: Duration = Duration::from_millis(100);

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
            (Some(method), None) if method == "session/update" => {
                let update = message.params.and_then(|it| serde_json::from_str(it.get()).ok());
                if let (Talk::Remembering { nearly, .. }, Some(Updated { update })) =
                    (&mut self.talk, update)
                {
                    *nearly |= update.kind == "available_commands_update";
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
                        set(&mut params, "sessionId", session);
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
                if self.session.late_history && self.session.resume.is_some() {
                    self.talk = Talk::Remembering { session, nearly: false };
                } else {
                    self.settle(session, steps);
                }
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
            let words = error_text(error);
            steps.push(Step::GiveUp(match &self.session.resume {
                // Some agents only say that something went wrong.
                Some(session) if number == OPEN => {
                    format!("the session {} cannot be resumed: {words}", session.trim())
                }
                _ => words,
            }));
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

    fn patience(&self) -> Option<Duration> {
        match self.talk {
            Talk::Remembering { nearly: true, .. } => Some(NEARLY),
            Talk::Remembering { nearly: false, .. } => Some(REMEMBERS),
            _ => None,
        }
    }

    fn woken(&mut self, steps: &mut Vec<Step>) {
        if let Talk::Remembering { session, .. } = &self.talk {
            self.settle(session.clone(), steps);
        }
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
            Talk::Remembering { .. } | Talk::Settling { .. } => true,
            Talk::Initializing | Talk::Opening | Talk::Over => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{hears, sent};
    use super::*;
    use serde_json::Value;

    fn driver(session: Session) -> AcpDriver {
        AcpDriver::new("do it".to_owned(), session)
    }

    fn in_turn() -> AcpDriver {
        let mut driver = driver(Session::default());
        hears(&mut driver, r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#);
        hears(&mut driver, r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}"#);
        driver
    }

    const ASKS: &str = r#"{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"always","name":"Always","kind":"allow_always"},{"optionId":"once","name":"Once","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}],"toolCall":{"toolCallId":"c"}}}"#;

    #[test]
    fn a_session_is_opened_settled_and_prompted() {
        let session = Session {
            folder: "/project".to_owned(),
            model: Some("m".to_owned()),
            mode: Some("autoEdit"),
            ..Session::default()
        };
        let mut driver = driver(session);
        let opened =
            hears(&mut driver, r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#);
        assert_eq!(
            (&opened[0]["method"], &opened[0]["params"]["cwd"]),
            (&json!("session/new"), &json!("/project"))
        );
        let settled = hears(&mut driver, r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}"#);
        assert_eq!(
            (&settled[0]["method"], &settled[1]["method"]),
            (&json!("session/set_mode"), &json!("session/set_model"))
        );
        assert_eq!(hears(&mut driver, r#"{"jsonrpc":"2.0","id":3,"result":{}}"#), [Value::Null; 0]);
        let prompted = hears(&mut driver, r#"{"jsonrpc":"2.0","id":4,"result":{}}"#);
        assert_eq!(
            prompted[0]["params"],
            json!({"sessionId":"s","prompt":[{"type":"text","text":"do it"}]})
        );
    }

    /// Gemini tells the past after it has said that the session was loaded.
    #[test]
    fn a_prompt_waits_until_the_past_was_told() {
        let resume = Some("old".to_owned());
        let session = Session { resume, late_history: true, ..Session::default() };
        let mut driver = driver(session);
        hears(&mut driver, r#"{"jsonrpc":"2.0","id":0,"result":{}}"#);
        assert!(hears(&mut driver, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).is_empty());
        let update = |kind: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"update":{{"sessionUpdate":"{kind}"}}}}}}"#
            )
        };
        assert!(hears(&mut driver, &update("agent_message_chunk")).is_empty());
        assert_eq!(driver.patience(), Some(REMEMBERS));
        assert!(hears(&mut driver, &update("available_commands_update")).is_empty());
        assert_eq!(driver.patience(), Some(NEARLY));
        let mut steps = Vec::new();
        driver.woken(&mut steps);
        assert_eq!(sent(&steps)[0]["method"], "session/prompt");
        assert_eq!(driver.patience(), None);
    }

    #[test]
    fn a_session_is_loaded_or_the_run_is_given_up() {
        let mut driver = driver(Session { resume: Some("old".to_owned()), ..Session::default() });
        let opened = hears(&mut driver, r#"{"jsonrpc":"2.0","id":0,"result":{}}"#);
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
            assert_eq!(hears(&mut driver, ASKS), [Value::Null; 0]);
            driver.decide("7", &decision, &mut steps);
            let outcome = json!({"outcome": "selected", "optionId": option});
            assert_eq!(sent(&steps)[0]["result"]["outcome"], outcome);
        }
    }

    #[test]
    fn a_cancelled_turn_answers_what_is_still_asked() {
        let (mut driver, mut steps) = (in_turn(), Vec::new());
        hears(&mut driver, ASKS);
        assert!(driver.interrupt(&mut steps));
        let sent = sent(&steps);
        assert_eq!((&sent[0]["method"], &sent[1]["id"]), (&json!("session/cancel"), &json!(7)));
        assert_eq!(sent[1]["result"]["outcome"]["outcome"], "cancelled");
    }

    #[test]
    fn what_was_never_offered_is_refused() {
        let asks = r#"{"jsonrpc":"2.0","id":"a","method":"fs/read_text_file","params":{}}"#;
        assert_eq!(hears(&mut in_turn(), asks)[0]["error"]["code"], -32601);
    }

    #[test]
    fn a_prompt_that_failed_is_told_by_the_stream() {
        let (mut driver, mut steps) = (in_turn(), Vec::new());
        driver.output(
            b"{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":401,\"message\":\"no key\"}}\n",
            &mut steps,
        );
        assert_eq!(steps, []);
    }
}
