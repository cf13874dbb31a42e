//! `interlingua chat`: one prompt after another at the terminal.
//!
//! While a turn runs, Ctrl-C stops it. Between turns, lines are edited; Ctrl-C clears a line, and
//! quits at an empty one. A signal that ends other programs ends it, too. In a pipe, it is `run` with commands on standard input.

mod editor;
mod slash;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use interlingua_agents::{Ended, Prompt, Stop};

use crate::arguments::{ChatArguments, SessionArguments};
use crate::conversation::{Conversation, Until};
use crate::report;
use crate::run::{self, Started, StdinUse};
use crate::signals::OnInterrupt;
use crate::tally::Tally;
use crate::terminal_input;
use crate::transcript::Transcript;
use editor::{Editor, Typed};
use slash::SlashCommand;

/// Runs the command; returns its exit code.
pub(crate) fn run(arguments: &ChatArguments) -> Result<u8> {
    let mut session = run::resumed(&arguments.session)?;
    let at_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    if at_terminal && !io::stderr().is_terminal() {
        bail!(
            "questions and notes are shown on standard error, which is not a terminal: do not redirect it, or redirect standard output too and type commands as JSON"
        );
    }
    let first = session.asked.take().or_else(|| session.prompt.take());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let entered = runtime.enter();
    let started = Started::new(&session)?;
    drop(entered);
    let ended = runtime.block_on(async {
        if at_terminal {
            let files = session.of_api.attach.clone();
            Chat::start(started, &session).await?.converse(first, files).await
        } else {
            let mut conversation = started.start(StdinUse::Commands, OnInterrupt::Stop).await?;
            if let Some(first) = first {
                let first = Prompt::new(first).with_files(session.of_api.attach.clone());
                run::unless_ended(conversation.handle.prompt(first).await)?;
            }
            conversation.show(Until::End).await;
            conversation.end().await.context("the session was aborted")
        }
    });
    // A thread may still wait for a line of standard input.
    runtime.shutdown_background();
    // Whatever happened, the user sees again what is typed.
    terminal_input::show();
    let ended = ended?;
    run::report_end(&ended);
    Ok(ended.code())
}

/// A chat at the terminal.
struct Chat {
    conversation: Conversation,
    editor: Editor,
    folder: PathBuf,
}

impl Chat {
    async fn start(started: Started, arguments: &SessionArguments) -> Result<Self> {
        let mut conversation = started.start(StdinUse::Answers, OnInterrupt::InterruptTurn).await?;
        conversation.hide_prompts();
        conversation.tally = Some(Tally::default());
        conversation.transcript = Transcript::new().ok();
        let editor = Editor::new()?;
        Ok(Self { conversation, editor, folder: arguments.cwd.clone() })
    }

    async fn converse(mut self, first: Option<String>, files: Vec<PathBuf>) -> Result<Ended> {
        if let Some(first) = first
            && !self.prompt(Prompt::new(first).with_files(files)).await
        {
            return self.conversation.end().await.context("the session was aborted");
        }
        loop {
            self.conversation.pause_for_editor().await;
            let stopped = Arc::clone(&self.conversation.stopped);
            let typed = tokio::select! {
                biased;
                () = stopped.notified() => {
                    self.editor.abandon();
                    Typed::Hangup
                }
                typed = self.editor.read() => typed?,
            };
            self.conversation.resume();
            let typed = match typed {
                Typed::Line(line) => line,
                Typed::Nothing => continue,
                Typed::Quit => break,
                Typed::Hangup => return self.end(Stop::Interrupted).await,
            };
            let goes_on = match SlashCommand::read(&typed) {
                Some(Ok(SlashCommand::Exit)) => break,
                Some(Ok(command)) => {
                    self.execute(command).await;
                    true
                }
                Some(Err(problem)) => {
                    report::print_line(&problem);
                    true
                }
                None => self.prompt(typed.into()).await,
            };
            if !goes_on {
                return self.conversation.end().await.context("the session was aborted");
            }
        }
        self.end(Stop::Closed).await
    }

    /// Ends the session, and shows its end.
    async fn end(mut self, why: Stop) -> Result<Ended> {
        // The session may have ended already.
        let _ = self.conversation.handle.stop(why).await;
        self.conversation.show(Until::End).await;
        self.conversation.end().await.context("the session was aborted")
    }

    /// Sends a prompt, and shows its turn. Returns `false` once the session has ended.
    async fn prompt(&mut self, prompt: Prompt) -> bool {
        match self.conversation.handle.prompt(prompt).await {
            Ok(()) => self.conversation.show(Until::TurnEnd).await,
            Err(interlingua_agents::Refused::Ended) => {
                // What the agent reported at its end was not shown yet.
                self.conversation.show(Until::End).await
            }
            Err(refused) => {
                report::print_line(&refused.to_string());
                true
            }
        }
    }

    async fn execute(&mut self, command: SlashCommand) {
        let handle = &self.conversation.handle;
        let done = match command {
            SlashCommand::Model(model) => handle.set_model(&model).await,
            SlashCommand::Mode(mode) => handle.set_mode(mode).await,
            SlashCommand::Cost => {
                let tally = self.conversation.tally.as_ref();
                tally.iter().flat_map(|tally| tally.lines()).for_each(|line| {
                    report::print_line(&line);
                });
                Ok(())
            }
            SlashCommand::Diff => {
                slash::diff(&self.folder).iter().for_each(|line| report::print_shown(line));
                Ok(())
            }
            SlashCommand::Save(path) => {
                let saved = match &mut self.conversation.transcript {
                    Some(transcript) => transcript.save(&path),
                    None => Err(io::Error::other("nothing was kept: the disk may be full")),
                };
                report::print_line(&match saved {
                    Ok(()) => format!("saved to {}", path.display()),
                    Err(problem) => format!("{}: {problem}", path.display()),
                });
                Ok(())
            }
            SlashCommand::Help => {
                slash::HELP.lines().for_each(report::print_shown);
                Ok(())
            }
            SlashCommand::Exit => Ok(()),
        };
        if let Err(refused) = done {
            report::print_line(&refused.to_string());
        }
    }
}
