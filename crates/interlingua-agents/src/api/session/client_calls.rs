//! Calls of tools that the client runs: the turn waits until the client has answered.
//!
//! They need no permission, since the client can refuse a call itself, and all of them are with the
//! client at once, whatever our own tools do.

use std::time::Instant;

use interlingua::event::{Data, TurnStarted};
use serde_json::Value;

use super::calls::CallState;
use super::{Live, now_ms};
use crate::api::history::Part;
use crate::api::resume::UNKNOWN;
use crate::api::turns::MadeCall;
use crate::client_tool::MOST_OPEN;
use crate::permission::Decision;
use crate::session::{CallOutcome, ClientCall, LateResult, Refused, Wanted};

impl Live {
    /// Calls with the names under which their tools are offered. Events have the client's own names.
    pub(super) fn as_offered(&self, mut calls: Vec<MadeCall>) -> Vec<MadeCall> {
        let of_client = &self.outlets.seen.of_client;
        for call in calls.iter_mut().filter(|call| of_client.contains(&call.id)) {
            if let Some(name) = self.calls.client_tools.offered_name(&call.name) {
                name.clone_into(&mut call.name);
            }
        }
        calls
    }

    /// Goes on with the calls that the client had not answered when the program of the session before
    /// ended. Their results take the place in the history that is left for them. A host that continues a
    /// log gives the results with a prompt.
    pub(super) fn reopen_calls(&mut self) {
        if self.continues || self.agent.open_calls().is_empty() {
            return;
        }
        if self.input_requests.as_ref().is_none_or(|user| user.is_closed()) {
            self.agent.close_calls(UNKNOWN);
            return self.store_history();
        }
        let ids = self.begin_with_open_calls();
        let next = self.agent.reopen(&ids);
        self.follow(next);
    }

    /// Begins a turn with the calls that are open in the history; returns their emitted ids.
    fn begin_with_open_calls(&mut self) -> Vec<String> {
        // The log that is continued may have ended these calls, under ids of its last epoch.
        self.begin_stream(false);
        self.clock.turn_started(Instant::now());
        self.emit(TurnStarted::default());
        let mut ids: Vec<String> = Vec::new();
        for call in self.agent.open_calls() {
            let tool = self.calls.client_tools.own_name(&call.name).unwrap_or(&call.name);
            let (input, is_taken) = (call.input.to_string(), ids.contains(&call.id));
            let native = Some(&*call.id).filter(|_| !is_taken);
            let call = interlingua::ClientCall { native, tool, input: &input };
            let now = Some(now_ms());
            let Ok(id) = self.reader.client_call(&call, now, &mut self.outlets);
            ids.extend(id);
        }
        ids
    }

    /// Goes on with results for which an earlier program of the session waited. Returns whether its calls
    /// are open in the history.
    pub(super) fn resume_calls(&mut self, results: &[LateResult]) -> bool {
        let open = self.agent.open_calls();
        let result_of = |id: &str| results.iter().find(|result| result.native_id() == id);
        if !open.iter().any(|call| result_of(&call.id).is_some()) {
            return false;
        }
        let unknown = || CallOutcome::Failed(UNKNOWN.to_owned());
        let outcomes: Vec<_> = open
            .iter()
            .map(|call| result_of(&call.id).map_or_else(unknown, |result| result.outcome.clone()))
            .collect();
        let ids = self.begin_with_open_calls();
        self.calls.late = ids.iter().cloned().zip(outcomes).collect();
        let next = self.agent.reopen(&ids);
        self.follow(next);
        true
    }

    /// Ends calls that are open in the history without an answer, before another prompt.
    pub(super) fn close_open_calls(&mut self, results: &[LateResult]) {
        let answers = results.iter().map(LateResult::to_event).collect();
        self.reader.answer_with_next_turn(answers);
        if !self.agent.open_calls().is_empty() {
            let why = results.first().map(|result| result.outcome.text().0.into_owned());
            self.agent.close_calls(why.as_deref().unwrap_or(UNKNOWN));
            self.store_history();
        }
    }

    /// Lets the client run its tools, if some are called.
    pub(super) fn call_client(&mut self) {
        let client_tools = &self.calls.client_tools;
        let late = &self.calls.late;
        let (mut calls, mut answered) = (Vec::new(), Vec::new());
        for queued in &mut self.calls.queue {
            let Some(tool) = client_tools.own_name(&queued.made.name) else { continue };
            queued.state = CallState::AtClient;
            let (id, input) = (queued.made.id.clone(), queued.made.input.to_string());
            match late.get(&id) {
                Some(outcome) => answered.push((id, outcome.clone())),
                None => calls.push(ClientCall { id, tool: tool.to_owned(), input }),
            }
        }
        for (id, outcome) in answered {
            self.calls.late.remove(&id);
            self.client_ends(&id, &outcome);
        }
        if calls.is_empty() {
            return;
        }
        // Once the client knows of a call, a resumed session has to know of it, too.
        self.store_history();
        // Writers rely on no other calls being open while the turn waits.
        if self.calls.is_left_to_client() {
            self.suspend();
        }
        self.outlets.pass_on(&mut self.outbox, true);
        let too_many = calls.split_off(calls.len().min(MOST_OPEN));
        let sequence = self.outlets.last;
        for call in calls {
            let id = call.id.clone();
            let wanted = self.pending.add(Wanted::Call(call), sequence);
            if self.input_requests.as_ref().is_some_and(|user| user.send(wanted).is_ok()) {
                self.clock.called_client(id, None, Instant::now());
            } else {
                self.client_fails(&id, ClientCall::NO_CLIENT);
            }
        }
        let why = format!("{MOST_OPEN} calls wait for the user already: wait for them");
        for call in too_many {
            self.client_fails(&call.id, &why);
        }
    }

    /// Emits that the turn waits for the client.
    pub(super) fn suspend(&mut self) {
        let Ok(_) = self.reader.suspend(Some(now_ms()), &mut self.outlets);
    }

    /// Whether a request is a call of the client.
    pub(super) fn is_client_call(&self, id: &str) -> bool {
        matches!(self.pending.find(id), Ok(Wanted::Call(_)))
    }

    /// The client has run a tool.
    pub(super) fn client_answers(&mut self, id: &str, answer: &Value) {
        self.client_ends(id, &CallOutcome::Output(answer.clone()));
    }

    /// A tool has failed, or was not run.
    pub(super) fn client_fails(&mut self, id: &str, why: &str) {
        self.client_ends(id, &CallOutcome::Failed(why.to_owned()));
    }

    /// The client has refused a call.
    pub(super) fn client_decides(&mut self, id: &str, decision: Decision) -> Result<(), Refused> {
        let Decision::Deny(reason) = decision else { return Err(Refused::needs_result(id)) };
        let reason = if reason.is_empty() { ClientCall::REFUSED.to_owned() } else { reason };
        self.client_ends(id, &CallOutcome::Denied(reason));
        Ok(())
    }

    /// The client has not answered in time.
    pub(super) fn client_overdue(&mut self, id: &str) {
        self.client_fails(id, ClientCall::OVERDUE);
    }

    /// No client is there any more.
    pub(super) fn fail_client_calls(&mut self) {
        for wanted in self.pending.all() {
            if let Wanted::Call(call) = wanted {
                self.client_fails(&call.id, ClientCall::NO_CLIENT);
            }
        }
    }

    /// The call is not waited for any more.
    pub(super) fn forget_client_call(&mut self, id: &str) {
        self.clock.resolved(id, Instant::now());
        self.pending.remove(id);
    }

    fn client_ends(&mut self, id: &str, outcome: &CallOutcome) {
        self.forget_client_call(id);
        let redact = |text: &str| self.redactor.redact_text(text).into_owned();
        let Data::ToolEnded(ended) = outcome.to_event(id, redact).data else { return };
        let text = self.redactor.redact_text(&outcome.text().0).into_owned();
        let text = self.calls.tools.shortened(text);
        self.end_call(id, vec![Part::Text(text)], Vec::new(), ended);
    }
}
