//! The arguments of `sessions`.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand, ValueHint};
use interlingua::dialect::Dialect;
use interlingua_sessions::host::{Command, Verdict, WhilePending};
use serde_json::Value;

use crate::dialect_name::DialectName;

/// List the stored sessions, the ones that were used last first; show, continue or delete them.
///
/// They are those of model APIs that `run` and `chat` have stored on this machine, and those of
/// `serve`. With --server, they are those of a running server, which needs its token in the
/// environment variable INTERLINGUA_TOKEN.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SessionsArguments {
    /// Print one JSON object per line.
    #[arg(long)]
    pub(super) json: bool,
    /// The address of a server, such as http://127.0.0.1:4717.
    #[arg(long, value_name = "URL", global = true)]
    pub(super) server: Option<String>,
    /// The file of the store [default: below the user's data folder].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, global = true, conflicts_with = "server")]
    pub(super) store: Option<PathBuf>,
    #[command(subcommand)]
    pub(super) command: Option<SessionsCommand>,
}

const EXAMPLES: &str = "\
Examples:
  interlingua sessions
  interlingua sessions show 3f7a --to events
  interlingua sessions --server http://127.0.0.1:4717 follow 3f7a
  interlingua sessions send 3f7a 'and now the other test'
  interlingua sessions --server http://127.0.0.1:4717 send 3f7a --allow r-1";

#[derive(Debug, Subcommand)]
pub(super) enum SessionsCommand {
    /// List the sessions.
    List,
    /// Print a session, up to now.
    Show(ShowArguments),
    /// Print a session as it goes on, until it is closed.
    Follow(ShowArguments),
    /// Send a prompt, and print its turn; or decide, answer, interrupt or close.
    Send(Box<SendArguments>),
    /// Delete sessions.
    Delete {
        /// The ids of the sessions, or the beginnings of them.
        #[arg(required = true)]
        ids: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub(super) struct ShowArguments {
    /// The id of the session, or the beginning of it.
    pub(super) id: String,
    /// The dialect to write.
    #[arg(long, value_name = "NAME", value_parser = DialectName::Written)]
    pub(super) to: Option<&'static Dialect>,
    /// Show everything: whole outputs, and what the agent logs.
    #[arg(long)]
    pub(super) verbose: bool,
}

#[derive(Debug, Args)]
pub(super) struct SendArguments {
    /// The id of the session, or the beginning of it.
    pub(super) id: String,
    /// The prompt.
    #[arg(required_unless_present_any = ["allow", "allow_always", "deny", "answer", "decline", "interrupt", "close"])]
    pub(super) prompt: Option<String>,
    /// Allow a permission request.
    #[arg(long, value_name = "REQUEST", group = "other", conflicts_with = "prompt")]
    allow: Option<String>,
    /// Allow a permission request, and the same again in this session.
    #[arg(long, value_name = "REQUEST", group = "other", conflicts_with = "prompt")]
    allow_always: Option<String>,
    /// Deny a permission request.
    #[arg(long, value_name = "REQUEST", group = "other", conflicts_with = "prompt")]
    deny: Option<String>,
    /// Answer a question; the answer is JSON, or a text.
    #[arg(long, value_name = "REQUEST=ANSWER", group = "other", conflicts_with = "prompt")]
    answer: Option<String>,
    /// Decline to answer a question.
    #[arg(long, value_name = "REQUEST", group = "other", conflicts_with = "prompt")]
    decline: Option<String>,
    /// Why it is denied or declined, for the agent.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Stop the running turn.
    #[arg(long, group = "other", conflicts_with = "prompt")]
    interrupt: bool,
    /// Close the session.
    #[arg(long, group = "other", conflicts_with = "prompt")]
    close: bool,
    /// What happens to the prompt while the session waits for an answer: queue, supersede or reject.
    #[arg(long, value_name = "WAY", value_parser = ["queue", "supersede", "reject"], default_value = "queue")]
    while_pending: String,
    /// Identifies the command: sent again with the same key, it does nothing more.
    #[arg(long)]
    pub(super) key: Option<String>,
    /// Return as soon as the prompt is accepted.
    #[arg(long)]
    pub(super) no_wait: bool,
    /// The dialect to write.
    #[arg(long, value_name = "NAME", value_parser = DialectName::Written)]
    pub(super) to: Option<&'static Dialect>,
    /// Show everything: whole outputs, and what the agent logs.
    #[arg(long)]
    pub(super) verbose: bool,
}

impl SendArguments {
    /// The command to send.
    pub(super) fn command(&self) -> Result<Command> {
        let decide = |request: &String, decision| Command::Decide {
            request: request.clone(),
            decision,
            reason: self.reason.clone(),
        };
        Ok(if let Some(text) = &self.prompt {
            let while_pending = match &*self.while_pending {
                "supersede" => WhilePending::Supersede,
                "reject" => WhilePending::Reject,
                _ => WhilePending::Queue,
            };
            Command::Prompt { text: text.clone(), while_pending, joins: false }
        } else if let Some(request) = &self.allow {
            decide(request, Verdict::Allow)
        } else if let Some(request) = &self.allow_always {
            decide(request, Verdict::AllowAlways)
        } else if let Some(request) = &self.deny {
            decide(request, Verdict::Deny)
        } else if let Some(answer) = &self.answer {
            let (request, answer) = answer.split_once('=').context("the form is REQUEST=ANSWER")?;
            let answer = serde_json::from_str(answer).unwrap_or_else(|_| Value::from(answer));
            Command::Answer { request: request.to_owned(), answer: Some(answer), decline: None }
        } else if let Some(request) = &self.decline {
            let why = self.reason.clone().unwrap_or_else(|| "the user declined to answer".into());
            Command::Answer { request: request.clone(), answer: None, decline: Some(why) }
        } else if self.interrupt {
            Command::Interrupt
        } else if self.close {
            Command::Close
        } else {
            bail!("give a prompt, or what to do")
        })
    }
}
