//! Permission requests and questions of the agent: what the policy decides, and what the user does.

use std::time::Instant;

use serde_json::Value;

use super::Live;
use super::client_calls::ClientCalls;
use crate::driver::Answer;
use crate::permission::{Always, Decision, Mode, PermissionRequest, Verdict};
use crate::session::{ClientCall, QuestionRequest, Refused, Wanted};

/// The answer to a question that the user cannot be asked.
const NO_ONE: &str = "no one is available to answer; decide yourself, and say what you assumed";

impl Live {
    /// The agent wants something: the policy decides it, or the user is asked.
    pub(super) async fn requested(&mut self, wanted: Wanted, sequence: u64) {
        match wanted {
            Wanted::Permission(request) => self.permission_requested(request, sequence).await,
            Wanted::Answer(request) => self.question_asked(request, sequence).await,
            // Calls of the client do not come from the stream.
            Wanted::Call(_) => {}
        }
    }

    async fn permission_requested(&mut self, mut request: PermissionRequest, sequence: u64) {
        request.readable_files = self.long_results.files().to_vec();
        let id = request.id.clone();
        let verdict = if self.stop.is_some() {
            Verdict::Decided(Decision::Deny("the session is being stopped".to_owned()))
        } else if self.is_of_client(&request) {
            Verdict::Decided(Decision::Allow)
        } else {
            self.policy.judge(&request)
        };
        match verdict {
            Verdict::Decided(decision) => self.decide(&id, &decision).await,
            Verdict::AskUser { .. } if self.ask(Wanted::Permission(request), sequence) => {}
            Verdict::AskUser { .. } => self.decide(&id, &no_user()).await,
        }
    }

    async fn question_asked(&mut self, request: QuestionRequest, sequence: u64) {
        let id = request.id.clone();
        if self.stop.is_some() || !self.ask(Wanted::Answer(request), sequence) {
            self.answer(&id, &Answer::Declined(NO_ONE.to_owned())).await;
        }
    }

    /// Asks the user. Returns whether there is one.
    pub(super) fn ask(&mut self, wanted: Wanted, sequence: u64) -> bool {
        let Some(requests) = &self.input_requests else { return false };
        let (id, is_call) = (wanted.id().to_owned(), matches!(wanted, Wanted::Call(_)));
        let request = self.pending.add(wanted, sequence);
        if requests.send(request).is_err() {
            self.pending.remove(&id);
            return false;
        }
        if is_call {
            let limit = self.client_calls.as_ref().and_then(ClientCalls::limit);
            self.clock.called_client(id, limit, Instant::now());
        } else {
            self.clock.requested(id, Instant::now());
        }
        true
    }

    pub(super) fn forget_request(&mut self, id: &str) {
        self.clock.resolved(id, Instant::now());
        self.pending.remove(id);
        self.client_calls.iter_mut().for_each(|calls| calls.forget(id));
    }

    async fn decide(&mut self, id: &str, decision: &Decision) {
        self.forget_request(id);
        self.call_driver(|driver, steps| driver.decide(id, decision, steps));
        // The decision may have completed an event, for example the end of a turn.
        Box::pin(self.handle_observations()).await;
    }

    async fn answer(&mut self, id: &str, answer: &Answer) {
        let secrets = match self.pending.find(id) {
            Ok(Wanted::Answer(request)) => request.secrets(answer),
            _ => Vec::new(),
        };
        self.forget_request(id);
        self.call_driver(|driver, steps| {
            driver.answer(id, answer, steps);
            steps.iter_mut().for_each(|step| step.hide(&secrets));
        });
        Box::pin(self.handle_observations()).await;
    }

    /// The user decided a request.
    pub(super) async fn user_decides(
        &mut self,
        name: &str,
        decision: Decision,
    ) -> Result<(), Refused> {
        if let Some(call) = self.pending_call(name)? {
            return self.client_decides(&call, decision);
        }
        let request = self.pending_permission(name)?;
        if let Decision::Deny(reason) = &decision
            && !self.epoch.as_ref().is_some_and(|epoch| epoch.driver.conveys_reasons())
            && !reason.is_empty()
        {
            self.prompts.explain_denial(&request.subject(), reason);
        }
        self.decide(&request.id, &decision).await;
        if decision == Decision::Allow && request.ends_planning() && self.policy.mode == Mode::Plan
        {
            self.change_mode(Mode::Ask);
        }
        Ok(())
    }

    /// The user allowed a request, and whatever matches it from now on.
    pub(super) async fn allow_always(
        &mut self,
        name: &str,
        always: &Always,
    ) -> Result<(), Refused> {
        let request = self.pending_permission(name)?;
        self.policy.allow_always(&request, always).map_err(Refused::NotSupported)?;
        self.decide(&request.id, &Decision::Allow).await;
        self.judge_again().await;
        Ok(())
    }

    fn pending_permission(&self, name: &str) -> Result<PermissionRequest, Refused> {
        match self.pending.find(name)? {
            Wanted::Permission(request) => Ok(request.clone()),
            Wanted::Answer(request) => {
                let needs = "an answer, not a decision".to_owned();
                Err(Refused::WrongAnswer { id: request.id.clone(), needs })
            }
            Wanted::Call(call) => Err(Refused::needs_result(&call.id)),
        }
    }

    /// The id of the call of the client that is named, if it is one.
    fn pending_call(&mut self, name: &str) -> Result<Option<String>, Refused> {
        let Wanted::Call(call) = self.pending.find(name)? else { return Ok(None) };
        let id = call.id.clone();
        self.end_given_up(&id);
        // One that has ended by that is unknown now.
        self.pending.find(name).map(|_| Some(id))
    }

    /// The user answered a question, or the client has run a tool.
    pub(super) async fn user_answers(&mut self, name: &str, answer: &Value) -> Result<(), Refused> {
        if let Some(call) = self.pending_call(name)? {
            self.client_answers(&call, answer);
            return Ok(());
        }
        let request = self.pending_question(name)?;
        let wrong = |needs| Refused::WrongAnswer { id: request.id.clone(), needs };
        let answer = request.read(answer).map_err(wrong)?;
        self.answer(&request.id, &answer).await;
        Ok(())
    }

    /// The user did not want to answer a question, or a tool of the client has failed.
    pub(super) async fn user_declines(
        &mut self,
        name: &str,
        reason: String,
    ) -> Result<(), Refused> {
        if let Some(call) = self.pending_call(name)? {
            self.client_fails(&call, &reason);
            return Ok(());
        }
        let request = self.pending_question(name)?;
        self.answer(&request.id, &Answer::Declined(reason)).await;
        Ok(())
    }

    fn pending_question(&self, name: &str) -> Result<QuestionRequest, Refused> {
        match self.pending.find(name)? {
            Wanted::Answer(request) => Ok(request.clone()),
            Wanted::Permission(request) => {
                let needs = "a decision, not an answer".to_owned();
                Err(Refused::WrongAnswer { id: request.id.clone(), needs })
            }
            Wanted::Call(call) => Err(Refused::needs_result(&call.id)),
        }
    }

    /// Judges the pending requests again, because the policy has changed.
    pub(super) async fn judge_again(&mut self) {
        let pending: Vec<_> = self.pending.permissions().cloned().collect();
        for request in pending {
            if let Verdict::Decided(decision) = self.policy.judge(&request) {
                self.decide(&request.id, &decision).await;
            }
        }
    }

    /// Answers everything that waits, because the user is not available any more.
    pub(super) async fn decline_all(&mut self) {
        for wanted in self.pending.all() {
            match wanted {
                Wanted::Permission(request) => self.decide(&request.id, &no_user()).await,
                Wanted::Answer(request) => {
                    self.answer(&request.id, &Answer::Declined(NO_ONE.to_owned())).await;
                }
                Wanted::Call(call) => self.client_fails(&call.id, ClientCall::NO_CLIENT),
            }
        }
    }

    /// The user did not answer in time.
    pub(super) async fn unanswered(&mut self, id: &str) {
        match self.pending.find(id) {
            Ok(Wanted::Answer(_)) => {
                self.answer(id, &Answer::Declined(NO_ONE.to_owned())).await;
            }
            Ok(Wanted::Call(_)) => self.client_overdue(id),
            Ok(Wanted::Permission(_)) | Err(_) => {
                let why = "the permission request was not answered in time".to_owned();
                self.decide(id, &Decision::Deny(why)).await;
            }
        }
    }
}

fn no_user() -> Decision {
    Decision::Deny("no user is available to allow it".to_owned())
}
