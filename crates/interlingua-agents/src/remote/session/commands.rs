//! Executes the commands of the caller.

use std::time::Instant;

use interlingua::event::Outcome;

use super::Live;
use super::runs::Work;
use crate::session::{Command, Prompt, Refused, Sent};

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
            Command::Decide { request, decision } => {
                self.pending_call(&request).and_then(|call| self.client_decides(&call, decision))
            }
            Command::AllowAlways { request, .. } => {
                self.pending_call(&request).and_then(|call| Err(Refused::needs_result(&call)))
            }
            Command::Answer { request, answer } => {
                self.pending_call(&request).map(|call| self.client_answers(&call, answer))
            }
            Command::Decline { request, reason } => {
                self.pending_call(&request).map(|call| self.client_fails(&call, &reason))
            }
            Command::Interrupt => self.interrupt(),
            Command::SetModel(_) => Err(unsupported("the service chooses the model")),
            Command::SetMode(_) => Err(unsupported("the service has permission modes of its own")),
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
            let why = "a remote agent cannot add a prompt to its running turn; queue it instead";
            return Err(unsupported(why));
        }
        if !prompt.files.is_empty() {
            return Err(unsupported("the contract of a remote agent has no files in prompts"));
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
}

fn unsupported(why: &str) -> Refused {
    Refused::NotSupported(why.to_owned())
}
