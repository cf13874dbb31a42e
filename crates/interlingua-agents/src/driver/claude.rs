//! Claude Code through stream-json in both directions, with its control protocol.
//!
//! A prompt is a record, and one process takes any number of them. The program requests permissions
//! and asks questions with a `control_request`, which must be answered, and accepts requests of its
//! host: an interrupt, another model, another mode. It exits when its input is closed.

mod beginning;
#[cfg(test)]
mod client_tool_tests;
mod client_tools;
mod requests;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::json_rpc::set;
use super::lines::Records;
use super::{Answer, Applied, Driver, Step};
use crate::client_tool::ClientTool;
use crate::permission::{Decision, Mode};
use crate::session::{LateResult, fresh_seed};
use beginning::{Beginning, LineKind};
use client_tools::{AskedCall, ClientTools};
use requests::{Kind, Pending, denied, refusal, respond};

/// How long a resumed program may take to ask for a call that it has deferred. It does so as soon as it
/// has started.
const ASKS_WITHIN: Duration = Duration::from_secs(20);

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
    tools: Option<ClientTools>,
    /// What the program prints before its first turn.
    beginning: Beginning,
    /// The call that the program has deferred, until it is known what is to be done with it.
    deferred: Option<AskedCall>,
    /// What the program has to be given in the place of a call that it has deferred.
    late: Option<Late>,
    /// A prompt was sent.
    was_prompted: bool,
}

/// The result of a call that the program has deferred, and that it has not asked for yet.
#[derive(Debug)]
struct Late {
    /// The prompt for the case that it does not.
    prompt: String,
    /// The user does not want the turn any more.
    interrupted: bool,
}

/// A prompt that should join the running turn.
#[derive(Debug)]
struct Joining {
    /// The id by which the program reports what becomes of it.
    id: String,
    /// The program reported that it has the prompt.
    queued: bool,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    request_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    request: Option<ControlRequest<'a>>,
    #[serde(borrow, default)]
    response: Option<ControlResponse<'a>>,
    #[serde(borrow, default)]
    command_uuid: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    state: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct ControlRequest<'a> {
    #[serde(borrow, default)]
    subtype: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    tool_name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    callback_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ControlResponse<'a> {
    #[serde(borrow, default)]
    request_id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    error: Option<Cow<'a, str>>,
}

impl ClaudeDriver {
    /// The same driver for a program that resumes its session.
    #[must_use]
    pub fn resuming(self) -> Self {
        Self { beginning: Beginning::resumed(), ..self }
    }

    /// The same driver with tools that the client runs.
    #[must_use]
    pub fn with_client_tools(self, tools: &[ClientTool]) -> Self {
        Self { tools: Some(ClientTools::new(tools)), ..self }
    }

    fn read(&mut self, chunk: &[u8], steps: &mut Vec<Step>) {
        let mut records = std::mem::take(&mut self.records);
        records.each(chunk, |record| self.take(record, steps));
        self.records = records;
    }

    fn take(&mut self, record: &str, steps: &mut Vec<Step>) {
        self.tools.iter_mut().for_each(|tools| tools.observe(record, steps));
        // Most records are long and irrelevant here, so they are not parsed.
        let joins = !self.joining.is_empty()
            && (record.contains("\"command_lifecycle\"") || record.contains("\"result\""));
        if !joins && !record.contains("\"control_") {
            return;
        }
        let Ok(line) = serde_json::from_str::<Line<'_>>(record) else { return };
        match (&*line.kind, line.request_id, line.request, line.response) {
            ("control_request", Some(id), Some(request), _) => self.requested(&id, &request, steps),
            ("control_cancel_request", Some(id), ..) => {
                self.pending.remove(&*id);
                self.deferred.take_if(|asked| asked.is_of(&id));
                self.tools.iter_mut().for_each(|tools| tools.cancelled(&id, steps));
            }
            ("control_response", _, _, Some(response)) => self.answered(&response, steps),
            ("command_lifecycle", ..) => {
                let (id, state) = (line.command_uuid.unwrap_or_default(), line.state);
                self.command_is(&id, &state.unwrap_or_default());
            }
            ("result", ..) => self.owes_turn = self.joining.iter().any(|prompt| prompt.queued),
            _ => {}
        }
    }

    /// The program requests something of its host.
    fn requested(&mut self, id: &str, request: &ControlRequest<'_>, steps: &mut Vec<Step>) {
        let subtype = request.subtype.as_deref().unwrap_or_default();
        match (subtype, &mut self.tools) {
            ("mcp_message", Some(tools)) => {
                tools.message(id, request.message.unwrap_or(RawValue::NULL), steps);
                return;
            }
            ("hook_callback", Some(tools)) => {
                let callback = request.callback_id.as_deref().unwrap_or_default();
                let input = request.input.unwrap_or(RawValue::NULL);
                match tools.asked(id, callback, input, steps) {
                    Some(asked) if self.beginning.is_open() => {
                        self.deferred = Some(asked);
                        self.settle_deferred(steps);
                    }
                    Some(asked) => tools.hold(asked, steps),
                    None => {}
                }
                return;
            }
            _ => {}
        }
        match Pending::of(request) {
            Some(pending) => drop(self.pending.insert(id.to_owned(), pending)),
            // An unanswered request would block the turn, so unsupported requests are refused.
            None => steps.push(Step::Send(refusal(id, subtype))),
        }
    }

    /// Settles the call that a resumed program has deferred and asks for again, once the session has said
    /// what it is resumed for: the program gets the result, or is interrupted so that it forgets the call.
    fn settle_deferred(&mut self, steps: &mut Vec<Step>) {
        let is_known = self.late.is_some() || self.was_prompted;
        let Some(asked) = self.deferred.take_if(|_| is_known) else { return };
        let has_result = self.tools.as_ref().is_some_and(|tools| tools.has_result(&asked));
        match (self.late.take(), &mut self.tools) {
            (Some(Late { interrupted: false, .. }), Some(tools)) if has_result => {
                self.beginning.give();
                tools.hold(asked, steps);
            }
            // The turn is the one that the user has interrupted, and ends as such.
            (Some(Late { interrupted: true, .. }), _) => {
                self.beginning.give();
                self.interrupt(steps);
            }
            (late, _) => {
                self.beginning.drop_turn();
                self.interrupt(steps);
                self.late = late;
                self.prompt_instead(steps);
            }
        }
    }

    /// Gives the program the prompt that is for the case that it does not ask for a deferred call.
    fn prompt_instead(&mut self, steps: &mut Vec<Step>) {
        let Some(Late { prompt, interrupted }) = self.late.take() else { return };
        self.tools.iter_mut().for_each(ClientTools::forget_results);
        if !interrupted {
            self.prompt(&prompt, steps);
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

impl Driver for ClaudeDriver {
    fn start(&mut self, steps: &mut Vec<Step>) {
        if self.tools.is_some() {
            let what = "the hook for the tools of the client".to_owned();
            self.request(what, &ClientTools::initialization(), steps);
        }
    }

    fn output(&mut self, chunk: &[u8], steps: &mut Vec<Step>) {
        if self.beginning.is_over() {
            return self.read(chunk, steps);
        }
        for (line, kind) in self.beginning.lines(chunk) {
            self.beginning.pass(line.clone(), kind, steps);
            self.read(&line, steps);
            if kind == LineKind::Unavailable {
                self.prompt_instead(steps);
            }
        }
        if self.beginning.is_over()
            && let Some(rest) = self.beginning.rest()
        {
            self.read(&rest, steps);
            Step::pass(rest, steps);
        }
    }

    fn holds_back(&self) -> bool {
        !self.beginning.is_over()
    }

    fn ended(&mut self, _code: Option<i64>, steps: &mut Vec<Step>) {
        self.beginning.rest().into_iter().for_each(|rest| Step::pass(rest, steps));
    }

    fn prompt(&mut self, prompt: &str, steps: &mut Vec<Step>) {
        // The program may have begun a turn by itself, for a command in the background that ended.
        // With this priority the prompt does not join that turn.
        steps.push(Step::Send(prompt_record(prompt, "later").to_string()));
        self.was_prompted = true;
        self.settle_deferred(steps);
    }

    fn resume(&mut self, results: &[LateResult], prompt: &str, steps: &mut Vec<Step>) -> bool {
        let ([result], Some(tools)) = (results, &mut self.tools) else { return false };
        if !result.deferred || !self.beginning.is_open() {
            return false;
        }
        let (text, failed) = result.outcome.text();
        tools.prepare(result.native_id().to_owned(), (text.into_owned(), failed));
        self.late = Some(Late { prompt: prompt.to_owned(), interrupted: false });
        self.settle_deferred(steps);
        true
    }

    fn wake_after(&self) -> Option<Duration> {
        self.late.as_ref().map(|_| ASKS_WITHIN)
    }

    fn woken(&mut self, steps: &mut Vec<Step>) {
        self.prompt_instead(steps);
    }

    fn client_answered(&mut self, call: u64, text: &str, failed: bool, steps: &mut Vec<Step>) {
        let result = (text.to_owned(), failed);
        self.tools.iter_mut().for_each(|tools| tools.answered(call, result.clone(), steps));
    }

    fn defer(&mut self, steps: &mut Vec<Step>) -> bool {
        // A prompt that waits would begin a turn, in which the call would be lost.
        let may = self.joining.is_empty() && self.beginning.is_over();
        may && self.tools.as_mut().is_some_and(|tools| tools.defer(steps))
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
        self.late.iter_mut().for_each(|late| late.interrupted = true);
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
