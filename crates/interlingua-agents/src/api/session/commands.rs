//! Executes the commands of the caller.

use std::time::Instant;

use interlingua::event::{Outcome, SessionUpdated, Severity};
use interlingua::json::Text;

use super::{Live, Work};
use crate::api::attachment;
use crate::api::turns::LoopSettings;
use crate::permission::{Always, Decision, Mode, Verdict};
use crate::session::{Command, Prompt, Refused, Sent, Wanted, now_ms};

/// An API has no questions of its own.
const NO_QUESTION: &str = "a decision, not an answer";

impl Live {
    pub(super) fn command(&mut self, Sent { command, reply }: Sent) {
        let (ends, next) = (self.stop.is_some(), self.reader.next_sequence());
        let answer = match command {
            Command::Stop(why) => {
                self.stop(why);
                Ok(())
            }
            Command::Resume => {
                self.clock.resumed(Instant::now());
                Ok(())
            }
            _ if ends => Err(Refused::Ended),
            Command::Hold => {
                self.finishing = false;
                Ok(())
            }
            Command::Prompt(prompt) => self.take_prompt(prompt),
            Command::Decide { request, decision } => self.user_decides(&request, decision),
            Command::AllowAlways { request, always } => self.allow_always(&request, &always),
            Command::Answer { request, answer } => {
                self.pending_call(&request).map(|call| self.client_answers(&call, &answer))
            }
            Command::Decline { request, reason } => {
                self.pending_call(&request).map(|call| self.client_fails(&call, &reason))
            }
            Command::Interrupt => self.interrupt(),
            Command::SetModel(model) => self.set_model(model),
            Command::SetMode(mode) => {
                self.set_mode(mode);
                Ok(())
            }
            Command::Finish => {
                self.finishing = true;
                Ok(())
            }
            Command::Emit(event) => {
                self.emit(event.data);
                Ok(())
            }
            Command::Suspend => {
                self.clock.suspended(Instant::now());
                Ok(())
            }
        };
        reply.send(answer.map(|()| next));
    }

    fn take_prompt(&mut self, prompt: Prompt) -> Result<(), Refused> {
        prompt.check()?;
        if prompt.joins && !matches!(self.work, Work::Idle) {
            let why = "a model API cannot add a prompt to its running turn; queue it instead";
            return Err(Refused::NotSupported(why.to_owned()));
        }
        // The caller learns at once that a file cannot be sent.
        for path in &prompt.files {
            attachment::read(path)?;
        }
        self.prompts.push(prompt);
        Ok(())
    }

    fn interrupt(&mut self) -> Result<(), Refused> {
        if matches!(self.work, Work::Idle) {
            return Err(Refused::NoTurn);
        }
        self.abort_turn(Outcome::Cancelled, "the turn was interrupted");
        Ok(())
    }

    /// The id of the call of the client that is named.
    fn pending_call(&self, name: &str) -> Result<String, Refused> {
        match self.pending.find(name)? {
            Wanted::Call(call) => Ok(call.id.clone()),
            other => {
                let (id, needs) = (other.id().to_owned(), NO_QUESTION.to_owned());
                Err(Refused::WrongAnswer { id, needs })
            }
        }
    }

    fn user_decides(&mut self, name: &str, decision: Decision) -> Result<(), Refused> {
        match self.pending.find(name)? {
            Wanted::Call(call) => {
                let id = call.id.clone();
                self.client_decides(&id, decision)
            }
            other => {
                let id = other.id().to_owned();
                self.decide(&id, decision);
                Ok(())
            }
        }
    }

    fn allow_always(&mut self, name: &str, always: &Always) -> Result<(), Refused> {
        let request = match self.pending.find(name)? {
            Wanted::Permission(request) => request.clone(),
            other => return Err(Refused::needs_result(other.id())),
        };
        // The rule is about the place that the user was asked about.
        if self.calls.leads_elsewhere(&request) {
            let why = "its path leads to another place by now; deny the request, and the model can try again";
            return Err(Refused::NotSupported(why.to_owned()));
        }
        self.policy.allow_always(&request, always).map_err(Refused::NotSupported)?;
        self.decide(&request.id, Decision::Allow);
        self.judge_again();
        Ok(())
    }

    fn set_model(&mut self, model: String) -> Result<(), Refused> {
        if model.is_empty() || model.starts_with('-') || model.contains(char::is_control) {
            return Err(Refused::NotSupported(format!("{model:?} cannot be the name of a model")));
        }
        if !matches!(self.work, Work::Idle) {
            let why =
                "the model cannot be changed during a turn; interrupt it, or wait for its end";
            return Err(Refused::NotSupported(why.to_owned()));
        }
        let dropped = self.agent.set_model(model.clone());
        if dropped.reasoning {
            let why = "another model cannot take the reasoning of the one before, so it is dropped";
            self.notify(Severity::Info, why);
        }
        if dropped.continuation {
            let why = "another model cannot continue the response of the one before, so it is requested again";
            self.notify(Severity::Info, why);
        }
        self.emit(SessionUpdated { model: Some(Text::from(model)), ..SessionUpdated::default() });
        let LoopSettings { limits, prices, model, .. } = self.agent.settings();
        if let Some(notice) = limits.cost_notice(prices, model, now_ms()) {
            self.notify(Severity::Info, &notice);
        }
        self.store_conversation();
        Ok(())
    }

    /// Applies a mode to all calls from now on, also to those that wait. The tools that are offered
    /// stay the same, since models bind their reasoning to them.
    fn set_mode(&mut self, mode: Mode) {
        self.policy.mode = mode;
        let permission_mode = Some(Text::plain(mode.as_str()));
        self.emit(SessionUpdated { permission_mode, ..SessionUpdated::default() });
        self.judge_again();
    }

    /// Judges the pending requests again, because the policy has changed.
    fn judge_again(&mut self) {
        let pending: Vec<_> = self.pending.permissions().cloned().collect();
        for request in pending {
            if let Verdict::Decided(decision) = self.judge(&request) {
                self.decide(&request.id, decision);
            }
        }
    }
}
