//! How processes and turns begin, and how a process is asked to exit.

use std::time::Instant;

use interlingua::event::{Event, TurnEnded};
use interlingua::json::Text;

use super::Live;
use super::client_calls::ClientCalls;
use super::epoch::Epoch;
use crate::agent::Launch;
use crate::error::Error;
use crate::session::{Prompt, Stop};

impl Live {
    /// Starts the agent, because a prompt waits for it. If that fails, the prompt is removed.
    pub(super) async fn start_for_prompt(&mut self) -> Result<(), Error> {
        let takes_many = self.next_launch().map(|launch| launch.takes_many_prompts());
        let prompt = match takes_many {
            Ok(true) => None,
            Ok(false) | Err(_) => self.prompts.next(self.reader.next_sequence()),
        };
        let started = match takes_many {
            Ok(_) => self.start_epoch(prompt.as_ref()).await,
            Err(error) => Err(error),
        };
        if started.is_err() && prompt.is_none() {
            self.prompts.next(self.reader.next_sequence());
        }
        started
    }

    /// The launch of the next epoch.
    fn next_launch(&mut self) -> Result<&mut Launch, Error> {
        let launch = match (self.prepared.take(), &mut self.relaunch) {
            (Some(launch), _) => launch,
            (None, Some(relaunch)) => relaunch(&self.settings)?,
            (None, None) => return Err(Error::NotRestarted),
        };
        Ok(self.prepared.insert(launch))
    }

    /// Starts the next epoch, with the prompt of an agent that receives it then.
    pub(super) async fn start_epoch(&mut self, prompt: Option<&Prompt>) -> Result<(), Error> {
        let shown = prompt.map(|prompt| self.shown(prompt));
        let launch = self.next_launch()?;
        if let Some(shown) = &shown {
            launch.deliver(&shown.written())?;
        }
        launch.prepare()?;
        let started = launch.command.start().await.map_err(|problem| {
            let program = launch.command.program.display().to_string();
            Error::NotStarted { program, problem }
        });
        let (process, spool) = started?;
        let Some(mut launch) = self.prepared.take() else { return Err(Error::NotRestarted) };
        let warnings = std::mem::take(&mut launch.warnings);
        if self.epochs == 0 {
            warnings.iter().for_each(|warning| self.warn(warning));
        }
        if self.epochs > 0 && self.settings.resume.is_none() {
            self.warn("the agent reported no session id, so it starts a new conversation");
        }
        if self.epochs > 0 || self.continues {
            self.reader.next_stream(launch.dialect.into())?;
        }
        self.reader.expect_turn(prompt.is_some());
        self.restarts = false;
        self.epochs += 1;
        self.add_keys(&launch.command);
        if let Some(calls) = &mut self.client_calls {
            calls.begin_epoch(&launch, Instant::now());
        }
        self.epoch = Some(Epoch::new(launch, process, spool, self.read_interval));
        self.call_driver(|driver, steps| driver.start(steps));
        if let (Some(prompt), Some(shown)) = (prompt, shown) {
            self.begin_turn(prompt, &shown);
        }
        self.handle_observations().await;
        Ok(())
    }

    /// Sends the next prompt to the agent.
    pub(super) async fn send_prompt(&mut self) {
        let Some(prompt) = self.prompts.next(self.reader.next_sequence()) else { return };
        self.reader.expect_turn(true);
        let shown = self.shown(&prompt);
        self.begin_turn(&prompt, &shown);
        self.handle_observations().await;
    }

    /// A prompt as the agent gets it: long results are in files.
    pub(super) fn shown(&mut self, prompt: &Prompt) -> Prompt {
        let mut shown = prompt.clone();
        shown.results = self.long_results.shown_late(&prompt.results);
        shown
    }

    /// Begins the turn of a prompt, which the agent gets in another form.
    fn begin_turn(&mut self, prompt: &Prompt, shown: &Prompt) {
        self.in_turn = true;
        self.clock.turn_started(Instant::now());
        let answers = prompt.results.iter().map(|result| {
            let redact = |text: &str| self.redactor.redact_text(text).into_owned();
            result.outcome.to_event(&result.call, redact)
        });
        self.reader.answer_with_next_turn(answers.collect());
        let text = shown.written();
        self.call_driver(|driver, steps| {
            let is_placed = shown.only_resumes() && driver.resume(&shown.results, &text, steps);
            if !is_placed {
                driver.prompt(&text, steps);
            }
        });
    }

    /// Asks the agent to exit. One that has nothing left to do, because its session is finished or closed,
    /// may take its time for that: a signal would be recorded as its end.
    pub(super) fn close_epoch(&mut self) {
        let now = Instant::now();
        if self.stop.as_ref().is_some_and(|why| *why != Stop::Closed) {
            self.clock.stopping(now);
        }
        if let Some(epoch) = &mut self.epoch {
            epoch.exiting = true;
        }
        self.clock.exit_expected(now);
        self.call_driver(|driver, steps| driver.close(steps));
        self.client_calls.iter().for_each(ClientCalls::disconnect);
    }

    /// Emits a failed turn for a prompt that could not be sent.
    pub(super) async fn fail_turn(&mut self, error: &Error) {
        let cause = Some(Text::from(error.to_string()));
        self.emit(Event::new(TurnEnded { cause, ..TurnEnded::default() }));
        self.handle_observations().await;
    }
}
