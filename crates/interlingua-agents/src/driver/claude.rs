//! Claude Code through stream-json in both directions, with its control protocol.
//!
//! A prompt is a record, and one process takes any number of them. The program requests permissions
//! and asks questions with a `control_request`, which must be answered, and accepts requests of its
//! host: an interrupt, another model, another mode. It exits when its input is closed.

use std::collections::HashMap;

use interlingua::dialect::claude::{APPROVE_PLAN, KEEP_PLANNING};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::json_rpc::set;
use super::lines::Records;
use super::{Answer, Applied, Driver, Step};
use crate::permission::{Decision, Mode};
use crate::session::fresh_seed;

/// The driver of Claude Code.
#[derive(Debug, Default)]
pub struct ClaudeDriver {
    records: Records,
    /// The requests that wait for an answer, by their id.
    pending: HashMap<String, Pending>,
    /// The requests that were sent, by which their answers are recognised.
    sent: HashMap<String, String>,
    requests: u64,
    /// The prompts that were sent to join the running turn, and that the program has not taken up.
    joining: Vec<Joining>,
    /// The running turn has ended before the program took up a prompt that should join it.
    owes_turn: bool,
}

/// A prompt that should join the running turn.
#[derive(Debug)]
struct Joining {
    /// The id by which the program reports what becomes of it.
    id: String,
    /// The program reported that it has the prompt.
    queued: bool,
}

/// A request that waits for an answer.
#[derive(Debug)]
struct Pending {
    input: Box<RawValue>,
    kind: Kind,
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// A permission for a tool.
    Tool,
    /// Questions, of which these are the texts; the answers are named by them.
    Questions(Vec<String>),
    /// A plan that the user may approve.
    Plan,
    /// A form or an address of an MCP server.
    Elicitation,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: std::borrow::Cow<'a, str>,
    #[serde(borrow, default)]
    request_id: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow, default)]
    request: Option<ControlRequest<'a>>,
    #[serde(borrow, default)]
    response: Option<ControlResponse<'a>>,
    #[serde(borrow, default)]
    command_uuid: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow, default)]
    state: Option<std::borrow::Cow<'a, str>>,
}

#[derive(Deserialize)]
struct ControlRequest<'a> {
    #[serde(borrow, default)]
    subtype: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow, default)]
    tool_name: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ControlResponse<'a> {
    #[serde(borrow, default)]
    request_id: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow, default)]
    error: Option<std::borrow::Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Questions {
    #[serde(default)]
    questions: Vec<Question>,
}

#[derive(Deserialize)]
struct Question {
    #[serde(default)]
    question: String,
}

impl ClaudeDriver {
    fn take(&mut self, record: &str, steps: &mut Vec<Step>) {
        // Most records are long and irrelevant here, so they are not parsed.
        let joins = !self.joining.is_empty()
            && (record.contains("\"command_lifecycle\"") || record.contains("\"result\""));
        if !joins && !record.contains("\"control_") {
            return;
        }
        let Ok(line) = serde_json::from_str::<Line<'_>>(record) else { return };
        match (&*line.kind, line.request_id, line.request, line.response) {
            ("control_request", Some(id), Some(request), _) => match Pending::of(&request) {
                Some(pending) => drop(self.pending.insert(id.into_owned(), pending)),
                // An unanswered request would block the turn, so unsupported requests are refused.
                None => {
                    let subtype = request.subtype.unwrap_or_default();
                    steps.push(Step::Send(refusal(&id, &subtype)));
                }
            },
            ("control_cancel_request", Some(id), ..) => drop(self.pending.remove(&*id)),
            ("control_response", _, _, Some(response)) => self.answered(&response, steps),
            ("command_lifecycle", ..) => {
                let (id, state) = (line.command_uuid.unwrap_or_default(), line.state);
                self.command_is(&id, &state.unwrap_or_default());
            }
            ("result", ..) => self.owes_turn = self.joining.iter().any(|prompt| prompt.queued),
            _ => {}
        }
    }

    /// The program reports what becomes of a prompt.
    fn command_is(&mut self, id: &str, state: &str) {
        match state {
            "queued" => {
                let it = self.joining.iter_mut().find(|prompt| prompt.id == id);
                it.into_iter().for_each(|prompt| prompt.queued = true);
            }
            _ => self.joining.retain(|prompt| prompt.id != id),
        }
    }

    /// The program answered a request of this driver.
    fn answered(&mut self, response: &ControlResponse<'_>, steps: &mut Vec<Step>) {
        let sent = response.request_id.as_ref().and_then(|id| self.sent.remove(&**id));
        if let (Some(what), Some(error)) = (sent, &response.error) {
            steps.push(Step::warn(format!("Claude Code did not accept {what}: {error}")));
        }
    }

    /// Sends a request to the program. `what` describes it, in case that it is not accepted.
    fn request(&mut self, what: String, request: &Value, steps: &mut Vec<Step>) {
        self.requests += 1;
        let id = format!("interlingua-{}", self.requests);
        let record = json!({"type": "control_request", "request_id": id, "request": request});
        steps.push(Step::Send(record.to_string()));
        self.sent.insert(id, what);
    }
}

/// The record of a prompt.
fn prompt_record(prompt: &str, priority: &str) -> Value {
    let message = json!({"role": "user", "content": prompt});
    json!({"type": "user", "message": message, "priority": priority})
}

/// An id that no other message of the conversation has, also not one of an earlier process.
fn fresh_uuid() -> String {
    let (high, low) = (fresh_seed(), fresh_seed());
    let (first, second, third) = (high >> 32, (high >> 16) & 0xffff, high & 0xfff);
    let (fourth, last) = ((low >> 48) & 0x3fff | 0x8000, low & 0xffff_ffff_ffff);
    format!("{first:08x}-{second:04x}-4{third:03x}-{fourth:04x}-{last:012x}")
}

impl Pending {
    fn of(request: &ControlRequest<'_>) -> Option<Self> {
        let input = request.input.unwrap_or(RawValue::NULL);
        let kind = match (request.subtype.as_deref()?, request.tool_name.as_deref()) {
            ("can_use_tool", Some("AskUserQuestion")) => {
                let asked = serde_json::from_str::<Questions>(input.get());
                let questions = asked.map(|asked| asked.questions).unwrap_or_default();
                Kind::Questions(questions.into_iter().map(|it| it.question).collect())
            }
            ("can_use_tool", Some("ExitPlanMode")) => Kind::Plan,
            ("can_use_tool", _) => Kind::Tool,
            ("elicitation", _) => Kind::Elicitation,
            _ => return None,
        };
        Some(Self { input: input.to_owned(), kind })
    }

    /// The response that allows the tool, with a changed input.
    fn allowed(&self, change: impl FnOnce(&mut Value)) -> Value {
        let mut input = serde_json::from_str(self.input.get()).unwrap_or_default();
        change(&mut input);
        json!({"behavior": "allow", "updatedInput": input})
    }

    fn answer(&self, answer: &Answer) -> Value {
        match (&self.kind, answer) {
            (Kind::Elicitation, Answer::Form(content)) => {
                json!({"action": "accept", "content": content})
            }
            (Kind::Elicitation, Answer::Chosen(_)) => json!({"action": "accept", "content": {}}),
            (Kind::Elicitation, _) => json!({"action": "decline"}),
            (Kind::Questions(questions), Answer::Chosen(chosen)) => {
                let pairs = questions.iter().zip(chosen);
                let answers: Map<_, _> = pairs
                    .map(|(question, chosen)| (question.clone(), json!(chosen.join(", "))))
                    .collect();
                self.allowed(|input| set(input, "answers", answers))
            }
            (Kind::Plan, Answer::Chosen(chosen)) => {
                let words = chosen.iter().flatten().map(String::as_str).collect::<Vec<_>>();
                match words.as_slice() {
                    [APPROVE_PLAN] => self.allowed(|_| {}),
                    [] | [KEEP_PLANNING] => denied("the user wants to keep planning"),
                    words => denied(&words.join("; ")),
                }
            }
            (_, Answer::Declined(reason)) => denied(reason),
            (_, _) => denied("the answer does not fit the question"),
        }
    }
}

fn denied(why: &str) -> Value {
    json!({"behavior": "deny", "message": why})
}

impl Driver for ClaudeDriver {
    fn output(&mut self, chunk: &[u8], steps: &mut Vec<Step>) {
        let mut records = std::mem::take(&mut self.records);
        records.each(chunk, |record| self.take(record, steps));
        self.records = records;
    }

    fn prompt(&mut self, prompt: &str, steps: &mut Vec<Step>) {
        // The program may have begun a turn by itself, for a command in the background that ended.
        // With this priority the prompt does not join that turn.
        steps.push(Step::Send(prompt_record(prompt, "later").to_string()));
    }

    /// The model receives the prompt with the next result of a tool. If none follows in this turn, the
    /// program begins a turn of its own for it.
    fn join(&mut self, prompt: &str, steps: &mut Vec<Step>) -> bool {
        let (id, mut record) = (fresh_uuid(), prompt_record(prompt, "next"));
        set(&mut record, "uuid", id.as_str());
        self.joining.push(Joining { id, queued: false });
        steps.push(Step::Send(record.to_string()));
        true
    }

    fn turn_ended(&mut self, steps: &mut Vec<Step>) {
        if std::mem::take(&mut self.owes_turn) {
            steps.push(Step::ExpectTurn);
        }
    }

    fn decide(&mut self, request: &str, decision: &Decision, steps: &mut Vec<Step>) {
        let Some(pending) = self.pending.remove(request) else { return };
        let answer = match decision {
            Decision::Allow => pending.allowed(|_| {}),
            Decision::Deny(why) => denied(why),
        };
        steps.push(respond(request, &answer));
    }

    fn conveys_reasons(&self) -> bool {
        true
    }

    fn answer(&mut self, request: &str, answer: &Answer, steps: &mut Vec<Step>) {
        let Some(pending) = self.pending.remove(request) else { return };
        let answer = pending.answer(answer);
        let approved =
            pending.kind == Kind::Plan && answer.get("behavior") == Some(&json!("allow"));
        steps.push(respond(request, &answer));
        if approved {
            steps.push(Step::LeavePlanMode);
        }
    }

    fn interrupt(&mut self, steps: &mut Vec<Step>) -> bool {
        self.request("the interrupt".to_owned(), &json!({"subtype": "interrupt"}), steps);
        true
    }

    fn set_model(&mut self, model: &str, steps: &mut Vec<Step>) -> Applied {
        let request = json!({"subtype": "set_model", "model": model});
        self.request(format!("the model {model}"), &request, steps);
        Applied::Now
    }

    fn set_mode(&mut self, mode: Mode, steps: &mut Vec<Step>) -> Applied {
        let request = json!({"subtype": "set_permission_mode", "mode": mode_name(mode)});
        self.request(format!("the permission mode {mode}"), &request, steps);
        Applied::Now
    }
}

/// The program's name for a mode. Except for planning it is `default`, in which it asks before every
/// action, and the policy decides. Its own `acceptEdits` also runs commands such as `rm`.
pub(crate) fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Plan => "plan",
        Mode::Ask | Mode::Interactive | Mode::AcceptEdits | Mode::Auto | Mode::Deny => "default",
    }
}

fn respond(request: &str, answer: &Value) -> Step {
    Step::Send(response(request, &json!({"response": answer, "subtype": "success"})))
}

fn refusal(id: &str, subtype: &str) -> String {
    let error = format!("{subtype} is not supported by this host");
    response(id, &json!({"subtype": "error", "error": error}))
}

fn response(id: &str, body: &serde_json::Value) -> String {
    let mut response = json!({"request_id": id});
    if let (Some(into), Some(from)) = (response.as_object_mut(), body.as_object()) {
        into.extend(from.clone());
    }
    json!({"type": "control_response", "response": response}).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::testing::sent;
    use super::*;

    const ASKS: &str = r#"{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t1"}}"#;

    #[test]
    fn prompts_are_turns_of_their_own_until_the_session_is_closed() {
        let (mut driver, mut steps) = (ClaudeDriver::default(), Vec::new());
        for prompt in ["do it", "and this"] {
            driver.prompt(prompt, &mut steps);
            driver.turn_ended(&mut steps);
            let sent = sent(&std::mem::take(&mut steps));
            assert_eq!(sent.len(), 1);
            assert_eq!(
                (&sent[0]["message"]["content"], &sent[0]["priority"]),
                (&json!(prompt), &json!("later"))
            );
        }
        driver.close(&mut steps);
        assert_eq!(steps, [Step::CloseInput]);
    }

    /// The turn of such a prompt was taken for that of the next one in the queue.
    #[test]
    fn a_prompt_that_did_not_join_has_a_turn_of_its_own() {
        for (states, owes) in
            [(&["queued", "started"][..], false), (&["queued"], true), (&[], false)]
        {
            let (mut driver, mut steps) = (ClaudeDriver::default(), Vec::new());
            driver.prompt("do it", &mut steps);
            driver.join("also", &mut steps);
            let id = sent(&std::mem::take(&mut steps))[1]["uuid"].clone();
            let mut prints = |record: Value, steps: &mut Vec<Step>| {
                driver.output(format!("{record}\n").as_bytes(), steps);
            };
            let lifecycle = |state: &str| json!({"type": "command_lifecycle", "command_uuid": id, "state": state});
            states.iter().for_each(|state| prints(lifecycle(state), &mut steps));
            prints(json!({"type": "result", "subtype": "success"}), &mut steps);
            // It may be read together with the end of the turn.
            prints(lifecycle("started"), &mut steps);
            driver.turn_ended(&mut steps);
            let expected = if owes { vec![Step::ExpectTurn] } else { Vec::new() };
            assert_eq!(steps, expected, "{states:?}");
            driver.turn_ended(&mut steps);
            assert_eq!(steps, expected, "only once");
        }
    }

    #[test]
    fn a_question_is_answered_by_its_text() {
        let asks = r#"{"type":"control_request","request_id":"q1","request":{"subtype":"can_use_tool","tool_name":"AskUserQuestion","input":{"questions":[{"question":"Which colour?"},{"question":"Which shapes?"}]},"tool_use_id":"t1"}}"#;
        let chosen = Answer::Chosen(vec![vec!["Blue".into()], vec!["Dot".into(), "Star".into()]]);
        let response = answered(asks, "q1", &chosen);
        assert_eq!(response["behavior"], "allow");
        let input = &response["updatedInput"];
        assert_eq!(
            input["answers"],
            json!({"Which colour?": "Blue", "Which shapes?": "Dot, Star"})
        );
        assert_eq!(input["questions"][0]["question"], "Which colour?", "the input is kept");
        let declined = answered(asks, "q1", &Answer::Declined("no one is here".into()));
        assert_eq!(declined, json!({"behavior": "deny", "message": "no one is here"}));
    }

    #[test]
    fn a_plan_is_approved_or_sent_back() {
        let asks = r#"{"type":"control_request","request_id":"p","request":{"subtype":"can_use_tool","tool_name":"ExitPlanMode","input":{"plan":"1."}}}"#;
        let chosen = |word: &str| Answer::Chosen(vec![vec![word.to_owned()]]);
        assert_eq!(answered(asks, "p", &chosen("Approve"))["updatedInput"]["plan"], "1.");
        assert_eq!(answered(asks, "p", &chosen("Keep planning"))["behavior"], "deny");
        assert_eq!(answered(asks, "p", &chosen("add tests"))["message"], "add tests");
    }

    #[test]
    fn a_form_of_a_server_is_accepted_or_declined() {
        let asks = r#"{"type":"control_request","request_id":"e","request":{"subtype":"elicitation","mcp_server_name":"s","message":"Name?"}}"#;
        let filled = answered(asks, "e", &Answer::Form(json!({"name": "x"})));
        assert_eq!(filled, json!({"action": "accept", "content": {"name": "x"}}));
        let declined = answered(asks, "e", &Answer::Declined(String::new()));
        assert_eq!(declined, json!({"action": "decline"}));
    }

    fn answered(asks: &str, id: &str, answer: &Answer) -> Value {
        let (mut driver, mut steps) = (ClaudeDriver::default(), Vec::new());
        driver.output(format!("{asks}\n").as_bytes(), &mut steps);
        assert_eq!(steps, []);
        driver.answer(id, answer, &mut steps);
        sent(&steps)[0]["response"]["response"].clone()
    }

    #[test]
    fn a_change_that_is_not_accepted_is_reported() {
        let (mut driver, mut steps) = (ClaudeDriver::default(), Vec::new());
        assert_eq!(driver.set_model("m", &mut steps), Applied::Now);
        let id = sent(&steps)[0]["request_id"].clone();
        steps.clear();
        let error = json!({"type": "control_response", "response": {"request_id": id, "subtype": "error", "error": "no such model"}});
        driver.output(format!("{error}\n").as_bytes(), &mut steps);
        let warning = "Claude Code did not accept the model m: no such model".to_owned();
        assert_eq!(steps, [Step::warn(warning)]);
    }

    #[test]
    fn a_permission_is_granted_for_the_requested_input() {
        for cut in [1, 40, ASKS.len()] {
            let (mut driver, mut steps) = (ClaudeDriver::default(), Vec::new());
            let (one, two) = ASKS.split_at(cut);
            driver.output(one.as_bytes(), &mut steps);
            driver.output(format!("{two}\n").as_bytes(), &mut steps);
            assert_eq!(steps, []);
            driver.decide("r1", &Decision::Allow, &mut steps);
            let response = &sent(&steps)[0]["response"];
            assert_eq!(response["request_id"], "r1");
            assert_eq!(response["response"]["updatedInput"]["command"], "ls");
            steps.clear();
            driver.decide("r1", &Decision::Allow, &mut steps);
            assert_eq!(steps, [], "a second decision has no effect");
        }
    }

    #[test]
    fn a_denial_carries_its_reason() {
        let (mut driver, mut steps) = (ClaudeDriver::default(), Vec::new());
        driver.output(format!("{ASKS}\n").as_bytes(), &mut steps);
        driver.decide("r1", &Decision::Deny("no".into()), &mut steps);
        assert_eq!(
            sent(&steps)[0]["response"]["response"],
            json!({"behavior":"deny","message":"no"})
        );
    }

    #[test]
    fn unsupported_requests_are_refused_at_once() {
        let (mut driver, mut steps) = (ClaudeDriver::default(), Vec::new());
        let hook =
            r#"{"type":"control_request","request_id":"r2","request":{"subtype":"hook_callback"}}"#;
        driver.output(format!("{hook}\n").as_bytes(), &mut steps);
        assert_eq!(sent(&steps)[0]["response"]["subtype"], "error");
    }

    #[test]
    fn an_interrupt_is_a_request_with_an_id_of_its_own() {
        let (mut driver, mut steps) = (ClaudeDriver::default(), Vec::new());
        assert!(driver.interrupt(&mut steps) && driver.interrupt(&mut steps));
        let sent = sent(&steps);
        assert_eq!(sent[0]["request"]["subtype"], "interrupt");
        assert_ne!(sent[0]["request_id"], sent[1]["request_id"]);
    }
}
