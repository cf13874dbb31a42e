//! Executes the commands of the caller.

use std::time::Instant;

use interlingua::TurnOwner;
use interlingua::event::{Event, SessionUpdated};
use interlingua::json::Text;

use super::Live;
use crate::driver::Applied;
use crate::permission::Mode;
use crate::process::Signal;
use crate::session::{Command, Prompt, Refused, Sent};

impl Live {
    pub(super) async fn command(&mut self, Sent { command, reply }: Sent) {
        let (ends, next) = (self.stop.is_some(), self.reader.next_sequence());
        let answer = match command {
            Command::Stop(why) => {
                self.stop(why).await;
                Ok(())
            }
            Command::Resume => {
                self.resume();
                Ok(())
            }
            _ if ends => Err(Refused::Ended),
            Command::Hold if self.is_closing() => Err(Refused::Ended),
            Command::Hold => {
                self.finishing = false;
                Ok(())
            }
            Command::Prompt(prompt) => self.take_prompt(prompt).await,
            Command::Decide { request, decision } => self.user_decides(&request, decision).await,
            Command::AllowAlways { request, always } => self.allow_always(&request, &always).await,
            Command::Answer { request, answer } => self.user_answers(&request, &answer).await,
            Command::Decline { request, reason } => self.user_declines(&request, reason).await,
            Command::Interrupt => self.interrupt(),
            Command::SetModel(model) => self.set_model(model),
            Command::SetMode(mode) => {
                self.set_mode(mode).await;
                Ok(())
            }
            Command::Finish => {
                self.finishing = true;
                Ok(())
            }
            Command::Emit(event) => {
                self.emit(*event);
                Ok(())
            }
            Command::Suspend => {
                self.signal(Signal::Suspend);
                self.clock.suspended(Instant::now());
                Ok(())
            }
        };
        reply.send(answer.map(|()| next));
    }

    async fn take_prompt(&mut self, prompt: Prompt) -> Result<(), Refused> {
        prompt.check()?;
        if !prompt.files.is_empty() {
            let why = "only model APIs take files with a prompt; name their paths in the prompt";
            return Err(Refused::NotSupported(why.to_owned()));
        }
        if self.is_closing() {
            return Err(Refused::Ended);
        }
        if prompt.joins && self.in_turn {
            let Some(epoch) = &mut self.epoch else { return Err(Refused::NoTurn) };
            let mut steps = Vec::new();
            let joined = epoch.driver.join(&prompt.text, &mut steps);
            self.execute(steps);
            self.handle_observations().await;
            let why = "the agent cannot add a prompt to its running turn; queue it instead";
            return if joined { Ok(()) } else { Err(Refused::NotSupported(why.to_owned())) };
        }
        self.prompts.push(prompt);
        if self.epoch.is_none() && !self.in_turn {
            // The caller learns at once that the agent cannot be started.
            let started = self.start_for_prompt().await;
            return started.map_err(|error| Refused::NotStarted(error.to_string()));
        }
        Ok(())
    }

    /// Whether the last process was asked to exit, because nothing is left to do.
    fn is_closing(&self) -> bool {
        let exiting = self.epoch.as_ref().is_none_or(|epoch| epoch.exiting);
        self.finishing && exiting && self.epochs > 0 && self.prompts.is_empty() && !self.in_turn
    }

    fn interrupt(&mut self) -> Result<(), Refused> {
        if !self.in_turn {
            return Err(Refused::NoTurn);
        }
        if std::mem::replace(&mut self.interrupted, true) {
            self.clock.escalate_now(Instant::now());
        } else {
            self.interrupt_turn();
        }
        Ok(())
    }

    fn set_model(&mut self, model: String) -> Result<(), Refused> {
        if model.is_empty() || model.starts_with('-') || model.contains(char::is_control) {
            return Err(Refused::NotSupported(format!("{model:?} cannot be the name of a model")));
        }
        let mut applied = Applied::AtRestart;
        self.call_driver(|driver, steps| applied = driver.set_model(&model, steps));
        self.restarts |= applied == Applied::AtRestart;
        self.forget_prepared_launch();
        let update = Some(Text::from(model.clone()));
        self.host.model = Some(model.clone());
        self.settings.model = Some(model);
        self.report(SessionUpdated { model: update, ..SessionUpdated::default() });
        Ok(())
    }

    /// Applies a mode to all requests from now on, also to those that wait.
    pub(super) async fn set_mode(&mut self, mode: Mode) {
        let mut applied = Applied::AtRestart;
        self.call_driver(|driver, steps| applied = driver.set_mode(mode, steps));
        self.restarts |= applied == Applied::AtRestart;
        self.change_mode(mode);
        self.judge_again().await;
    }

    /// Applies a mode that the agent knows of.
    pub(super) fn change_mode(&mut self, mode: Mode) {
        self.forget_prepared_launch();
        (self.policy.mode, self.settings.mode) = (mode, mode);
        self.host.permission_mode = Some(mode.to_string());
        let update = Some(Text::plain(mode.as_str()));
        self.report(SessionUpdated { permission_mode: update, ..SessionUpdated::default() });
    }

    /// A launch that was prepared before a setting changed is of no use, if another can be made.
    fn forget_prepared_launch(&mut self) {
        if self.relaunch.is_some() {
            self.prepared = None;
        }
    }

    /// Emits what the agent does not report itself. Before its first start, it is a fact of the start.
    fn report(&mut self, update: SessionUpdated<'static>) {
        self.reader.set_host(self.host.clone(), TurnOwner::Stream);
        if self.epochs > 0 {
            self.emit(Event::new(update));
        }
    }
}
