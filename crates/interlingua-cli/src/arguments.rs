//! What can be said on the command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use interlingua::Exit;
use interlingua::dialect::{Dialect, FramingKind, Team};
use interlingua::json::Json;
use interlingua_agents::permission::Mode;

use crate::dialect_name::{DialectName, Source, SourceName};
use crate::size::Size;

/// Reads the stream of any coding agent, and writes it as another protocol.
#[derive(Debug, Parser)]
#[command(name = "interlingua", version, after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  interlingua run codex 'fix the failing test'
  codex exec --json 'fix the tests' | interlingua translate --to text
  interlingua translate --from gemini --to claude run.jsonl > claude.jsonl
  interlingua check --as claude claude.jsonl
  interlingua dialects";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<RunArguments>),
    /// List the agents: which are installed, in which version, and how to get the others.
    Agents,
    Translate(TranslateArguments),
    Check(CheckArguments),
    Dialects(DialectsArguments),
    Completions(CompletionsArguments),
    /// Wait for the end of standard input, and end what is left of a run.
    #[command(hide = true)]
    Guard {
        /// The mark of the run.
        mark: String,
    },
}

/// Start an agent that is installed here, and write what it says as any protocol, as it comes.
///
/// The exit code is 0 when the turn was completed, 1 when the agent failed, 2 when the arguments cannot
/// be used, 124 when something took too long, 130 when the run was interrupted.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct RunArguments {
    /// The agent (`interlingua agents` lists them), or the file of a program that speaks a protocol.
    pub(crate) agent: String,
    /// What to do; `-`, or nothing, reads it from standard input.
    pub(crate) prompt: Option<String>,
    /// What to do, where it looks like a flag: --prompt='--help me'.
    #[arg(
        long = "prompt",
        value_name = "PROMPT",
        conflicts_with = "prompt",
        allow_hyphen_values = true
    )]
    pub(crate) asked: Option<String>,
    /// The protocol to write; `text` at a terminal, else `events`.
    #[arg(long, value_name = "NAME", value_parser = DialectName::Written)]
    pub(crate) to: Option<&'static Dialect>,
    /// The model, in the agent's word for it.
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The folder to work in.
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    pub(crate) cwd: PathBuf,
    /// The session to go on with, by the agent's own id.
    #[arg(long, value_name = "ID")]
    pub(crate) resume: Option<String>,
    /// What the agent may do: ask (default), change files (accept-edits), everything (auto), nothing that
    /// needs a permission (deny), only plan (plan).
    #[arg(long, value_name = "MODE", value_parser = ModeName)]
    pub(crate) permission_mode: Option<Mode>,
    /// The most seconds that the run may take.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    /// The most seconds of silence in a turn, while no tool runs and nobody is asked.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) idle_timeout: Option<Duration>,
    /// A variable for the agent; may be given several times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
    /// The agent's program, where it is not the one on the path.
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
    /// A file with rules for permissions.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Keep the agent's own bytes in a file, which `interlingua translate` reads; when they came is kept
    /// beside it.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Use the agent's protocol for unattended runs, where it has two (`codex exec --json`).
    #[arg(long)]
    pub(crate) exec: bool,

    /// Use no protocol, and read the agent's screen (only Copilot's can be read). It is a guess.
    #[arg(long, conflicts_with = "exec")]
    pub(crate) screen: bool,
    /// Also write the pieces of messages, where the protocol leaves the choice (claude).
    #[arg(long)]
    pub(crate) partial: bool,
    /// Flags of the agent's own, passed on as they are.
    #[arg(last = true, value_name = "FLAG")]
    pub(crate) flags: Vec<String>,
    #[command(flatten)]
    pub(crate) team: TeamArguments,
}

const RUN_EXAMPLES: &str = "\
Examples:
  interlingua run codex 'fix the failing test'
  interlingua run claude --permission-mode accept-edits --model sonnet - < task.md
  interlingua run gemini --to ai-sdk --permission-mode auto 'what is in this folder?'
  interlingua run ./my-agent.toml 'hello' -- --its-own-flag

In a pipe, an agent that asks for a permission is answered on standard input, a line each:
  {\"request\":\"ID\",\"decision\":\"allow\"}   or   {\"request\":\"ID\",\"decision\":\"deny\",\"reason\":\"...\"}";

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().map_err(|_| "it is no number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|time| !time.is_zero())
        .ok_or_else(|| "it must be more than zero".to_owned())
}

fn variable(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let (name, value) = parts.ok_or("it must be NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// The name of a permission mode.
#[derive(Debug, Clone, Copy)]
struct ModeName;

impl TypedValueParser for ModeName {
    type Value = Mode;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Mode, clap::Error> {
        let names = PossibleValuesParser::new(Mode::ALL.map(Mode::as_str));
        let name = names.parse_ref(command, argument, value)?;
        Ok(Mode::ALL.into_iter().find(|mode| mode.as_str() == name).unwrap_or_default())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(Mode::ALL.into_iter().map(|mode| PossibleValue::new(mode.as_str()))))
    }
}

/// Translate a stream from one protocol to another.
///
/// Every record is written as soon as it is known. The exit code is 0 when the translation is
/// whole, however the agent itself fared; 1 when --strict found something; 2 when the arguments or
/// the input cannot be used.
#[derive(Debug, Args)]
#[command(after_help = TRANSLATE_EXAMPLES)]
pub(crate) struct TranslateArguments {
    /// The protocol of the input; `auto` recognises it.
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = SourceName)]
    pub(crate) from: Source,
    /// The protocol to write.
    #[arg(long, value_name = "NAME", value_parser = DialectName::Written)]
    pub(crate) to: &'static Dialect,
    /// The input; standard input if it is absent or `-`.
    pub(crate) file: Option<PathBuf>,
    /// Also write the pieces of messages, where the protocol leaves the choice (claude).
    #[arg(long)]
    pub(crate) partial: bool,
    /// At the end, say on standard error what the target could not say and what was repaired.
    #[arg(long)]
    pub(crate) loss_report: bool,
    /// At the end, list on standard error the record types and fields that the reader does not know,
    /// with counts and an example of each: what a new release of an agent has brought.
    #[arg(long)]
    pub(crate) explain_unknown: bool,
    /// Exit with 1 if anything was lost, repaired or unreadable.
    #[arg(long)]
    pub(crate) strict: bool,
    #[command(flatten)]
    pub(crate) agent: AgentArguments,
    /// The user stopped the agent: a turn that is open at the end of the input was cancelled.
    #[arg(long)]
    pub(crate) interrupted: bool,
    /// The agent's standard error, kept in a file: its last 4 KiB tell why the agent failed.
    #[arg(long, value_name = "FILE")]
    pub(crate) stderr: Option<PathBuf>,
    /// How records are cut out of the input, where it is not as the protocol has it.
    #[arg(long, value_name = "KIND")]
    pub(crate) framing: Option<FramingName>,
    /// Give records the time of this machine's clock, where the protocol has a time.
    #[arg(long)]
    pub(crate) live: bool,
    #[command(flatten)]
    pub(crate) team: TeamArguments,
    /// What makes the ids that are written differ from those of another run. Without it they are made
    /// of the first line of the input, so that two runs on parts of one session may make the same.
    #[arg(long, value_name = "N")]
    pub(crate) id_seed: Option<u64>,
}

const TRANSLATE_EXAMPLES: &str = "\
Examples:
  interlingua run codex 'fix the failing test'
  codex exec --json 'fix the tests' | interlingua translate --to text
  interlingua translate --to claude --partial --loss-report run.jsonl
  agent 2>agent.err >run.jsonl; interlingua translate --to giselle \\
      --exit-status $? --stderr agent.err run.jsonl";

/// Check that a stream keeps the rules of its protocol.
///
/// Each finding is one line, `FILE:LINE: rule: message`. The exit code is 0 when nothing was found,
/// 1 when something was, 2 when the arguments or the input cannot be used.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  interlingua check --as claude run.jsonl")]
pub(crate) struct CheckArguments {
    /// The protocol that the input should be.
    #[arg(long = "as", value_name = "NAME", value_parser = DialectName::Checked)]
    pub(crate) dialect: &'static Dialect,
    /// The input; standard input if it is absent or `-`.
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) agent: AgentArguments,
}

/// Who the agent is among others, for protocols that say so in every record (agent-event).
#[derive(Debug, Args)]
pub(crate) struct TeamArguments {
    /// The id of the agent, where the protocol names it (agent-event).
    #[arg(long, value_name = "ID")]
    pub(crate) agent_id: Option<String>,
    /// The type of the agent, where it is not the one that is read (agent-event).
    #[arg(long, value_name = "TYPE")]
    pub(crate) agent_type: Option<String>,
    /// The team of the agent, as a JSON object (agent-event).
    #[arg(long, value_name = "JSON", value_parser = json_object)]
    pub(crate) team: Option<String>,
}

impl TeamArguments {
    pub(crate) fn team(&self) -> Team {
        let default = Team::default();
        Team {
            agent_id: self.agent_id.clone().unwrap_or(default.agent_id),
            agent_type: self.agent_type.clone(),
            metadata: self.team.clone().unwrap_or(default.metadata),
        }
    }
}

fn json_object(text: &str) -> Result<String, String> {
    let object = Json::from_text(text.trim().to_owned()).filter(Json::is_object);
    object
        .map(|object| object.get().to_owned())
        .ok_or_else(|| "this is not a JSON object; write it as {\"teamName\":\"red\"}".to_owned())
}

/// What is known of the agent that wrote the input, and what its lines may cost.
#[derive(Debug, Args)]
pub(crate) struct AgentArguments {
    /// How the agent ended: its exit code, or the negative number of the signal that ended it.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) exit_status: Option<i64>,
    /// The longest line that is read; a longer one is reported and skipped.
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    pub(crate) max_line: Size,
}

impl AgentArguments {
    /// How the agent ended, as far as the caller says.
    pub(crate) fn exit(&self) -> Exit {
        match self.exit_status {
            Some(signal) if signal < 0 => {
                Exit { signal: Some(signal.saturating_neg()), ..Exit::default() }
            }
            code => Exit { code, ..Exit::default() },
        }
    }
}

/// List the protocols, and what can be done with each.
#[derive(Debug, Args)]
pub(crate) struct DialectsArguments {
    /// Tell all about this one.
    #[arg(value_parser = DialectName::Any)]
    pub(crate) name: Option<&'static Dialect>,
}

/// Print a script that completes the arguments of this command in a shell.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  interlingua completions bash > /etc/bash_completion.d/interlingua"
)]
pub(crate) struct CompletionsArguments {
    /// The shell.
    pub(crate) shell: Shell,
}

/// How records are cut out of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FramingName {
    /// One record a line.
    Lines,
    /// Server-sent events.
    Sse,
    /// Objects wherever they stand.
    Objects,
}

impl From<FramingName> for FramingKind {
    fn from(name: FramingName) -> Self {
        match name {
            FramingName::Lines => Self::Lines,
            FramingName::Sse => Self::Sse,
            FramingName::Objects => Self::Objects,
        }
    }
}
