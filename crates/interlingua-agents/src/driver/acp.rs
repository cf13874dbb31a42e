//! Any agent that speaks the Agent Client Protocol: JSON-RPC 2.0 lines.
//!
//! The client sends `initialize`, `session/new` or `session/load`, optionally `session/set_mode`
//! and `session/set_model`, and a `session/prompt` for every prompt. The agent requests permissions,
//! each with its own options; Qwen also asks questions that way. Every other request is refused,
//! because the client advertised no further capabilities. `session/cancel` stops a turn.

use std::collections::HashMap;
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::json_rpc::{Envelope, Message, client_info, error_text, set};
use super::lines::Records;
use super::{Answer, Applied, Driver, Step};
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
        }
    }

    /// The agent answered a request of this driver.
    fn answered(&mut self, number: u64, result: &RawValue, steps: &mut Vec<Step>) {
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

#[cfg(test)]
mod tests {
    use super::super::testing::{replies, sent};
    use super::*;

    fn driver(session: AcpSession) -> AcpDriver {
        let mut driver = AcpDriver::new(session);
        driver.prompt("do it", &mut Vec::new());
        driver
    }

    fn in_turn() -> AcpDriver {
        let mut driver = driver(AcpSession::default());
        replies(&mut driver, r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}"#);
        replies(&mut driver, r#"{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}"#);
        driver
    }

    const ASKS: &str = r#"{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"always","name":"Always","kind":"allow_always"},{"optionId":"once","name":"Once","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}],"toolCall":{"toolCallId":"c"}}}"#;

    #[test]
    fn a_session_is_opened_configured_and_prompted() {
        let session = AcpSession {
            folder: "/project".to_owned(),
            model: Some("m".to_owned()),
            mode: Mode::AcceptEdits,
            mode_names: Some(ModeNames { ask: "default", plan: "plan", starts_asking: false }),
            ..AcpSession::default()
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
        assert_eq!(settled[0]["params"]["modeId"], "default");
        assert_eq!(
            replies(&mut driver, r#"{"jsonrpc":"2.0","id":2,"result":{}}"#),
            [Value::Null; 0]
        );
        let prompted = replies(&mut driver, r#"{"jsonrpc":"2.0","id":3,"result":{}}"#);
        assert_eq!(
            prompted[0]["params"],
            json!({"sessionId":"s","prompt":[{"type":"text","text":"do it"}]})
        );
    }

    /// Gemini replays the history after it has reported the session as loaded.
    #[test]
    fn a_prompt_waits_for_the_end_of_the_replay() {
        let resume = Some("old".to_owned());
        let session = AcpSession { resume, late_history: true, ..AcpSession::default() };
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
        let mut driver =
            driver(AcpSession { resume: Some("old".to_owned()), ..AcpSession::default() });
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
    fn a_second_prompt_follows_the_first_turn() {
        let (mut driver, mut steps) = (in_turn(), Vec::new());
        driver.turn_ended(&mut steps);
        driver.set_model("n", &mut steps);
        driver.prompt("and this", &mut steps);
        let sent_then = sent(&std::mem::take(&mut steps));
        assert_eq!(sent_then[0]["params"], json!({"sessionId": "s", "modelId": "n"}));
        assert_eq!(sent_then[1]["params"]["prompt"][0]["text"], "and this");
        let refused = json!({"jsonrpc": "2.0", "id": sent_then[0]["id"], "error": {"code": -32602, "message": "no"}});
        driver.output(format!("{refused}\n").as_bytes(), &mut steps);
        assert_eq!(steps, [Step::warn("the agent did not accept the model n: no".to_owned())]);
    }

    /// Qwen's previous mode may be `auto`, in which it acts without asking.
    #[test]
    fn an_approved_plan_does_not_restore_the_mode_before_it() {
        let asks = r#"{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"restore_previous","kind":"allow_once"},{"optionId":"proceed_always","kind":"allow_always"},{"optionId":"proceed_once","kind":"allow_once"},{"optionId":"cancel","kind":"reject_once"}],"toolCall":{"toolCallId":"c"}}}"#;
        let (mut driver, mut steps) = (in_turn(), Vec::new());
        replies(&mut driver, asks);
        driver.decide("7", &Decision::Allow, &mut steps);
        assert_eq!(sent(&steps)[0]["result"]["outcome"]["optionId"], "proceed_once");
    }

    /// Qwen asks questions by requesting a permission; cancelling one ends the turn.
    #[test]
    fn a_question_is_answered_beside_the_outcome() {
        let asks = r#"{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"proceed_once","name":"Submit","kind":"allow_once"},{"optionId":"cancel","kind":"reject_once"}],"toolCall":{"toolCallId":"c","_meta":{"qwenInteractionKind":"user_question","qwenQuestions":[{"question":"Which colour?"},{"question":"Which shapes?"}]}}}}"#;
        let chosen = Answer::Chosen(vec![vec!["Blue".into()], vec!["Dot".into(), "Star".into()]]);
        let declined = Answer::Declined("no one is here".into());
        let expected = [
            (chosen, json!({"0": "Blue", "1": "Dot, Star"})),
            (declined, json!({"0": "no one is here", "1": "no one is here"})),
        ];
        for (answer, answers) in expected {
            let (mut driver, mut steps) = (in_turn(), Vec::new());
            replies(&mut driver, asks);
            driver.answer("7", &answer, &mut steps);
            let result = &sent(&steps)[0]["result"];
            assert_eq!(result["outcome"]["optionId"], "proceed_once");
            assert_eq!(result["answers"], answers);
        }
    }

    /// Qwen stores a permanent decision in the settings of the project or of the user.
    #[test]
    fn a_decision_is_never_permanent() {
        let asks = r#"{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"always","kind":"allow_always"},{"optionId":"never","kind":"reject_always"}],"toolCall":{"toolCallId":"c"}}}"#;
        let warning = vec![Step::warn(ONLY_PERMANENT.to_owned())];
        let decisions = [(Decision::Allow, warning), (Decision::Deny(String::new()), Vec::new())];
        for (decision, warnings) in decisions {
            let (mut driver, mut steps) = (in_turn(), Vec::new());
            replies(&mut driver, asks);
            driver.decide("7", &decision, &mut steps);
            let answer = steps.pop();
            assert_eq!(steps, warnings);
            assert_eq!(
                sent(answer.as_slice())[0]["result"],
                json!({"outcome": {"outcome": "cancelled"}})
            );
        }
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
