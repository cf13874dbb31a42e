//! The command line arguments.

use std::env::VarError;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use interlingua::Exit;
use interlingua::dialect::{Dialect, FramingKind, Team};
use interlingua::json::Json;
use interlingua_agents::permission::Mode;
use interlingua_agents::process::Isolation;

use crate::agent_name::AgentName;
use crate::arguments_of_apis::ApiArguments;
use crate::arguments_of_serve::ServeArguments;
use crate::dialect_name::{DialectName, Source, SourceName};
use crate::sessions::SessionsArguments;
use crate::size::Size;

/// Read the stream of a coding agent, and write it in another dialect.
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

/// List the agents: which are installed, their versions, and how to install the others.
#[derive(Debug, Args)]
pub(crate) struct AgentsArguments {
    /// Print one JSON object per line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<RunArguments>),
    Chat(Box<ChatArguments>),
    Serve(Box<ServeArguments>),
    Agents(AgentsArguments),
    Sessions(Box<SessionsArguments>),
    Translate(TranslateArguments),
    Check(CheckArguments),
    Dialects(DialectsArguments),
    Mcp(McpArguments),
    Completions(CompletionsArguments),
}

/// Run an agent or a model API, and write its events in any dialect as they happen.
///
/// The exit code is 0 when the turn completed, 1 when the agent failed, 2 when the arguments cannot
/// be used, 124 when something took too long, and 130 when the run was interrupted.
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    pub(crate) session: SessionArguments,
}

/// Talk to an agent or a model API, one prompt after another.
///
/// At a terminal, lines are edited, and /help lists the commands. Ctrl-C stops a turn and, at an
/// empty line, quits. In a pipe, commands are read from standard input as by `run --input json`.
#[derive(Debug, Args)]
#[command(after_help = CHAT_EXAMPLES)]
pub(crate) struct ChatArguments {
    #[command(flatten)]
    pub(crate) session: SessionArguments,
}

const CHAT_EXAMPLES: &str = "\
Examples:
  interlingua chat claude
  interlingua chat claude 'explain this folder'
  interlingua chat codex --continue --permission-mode accept-edits
  printf '%s\\n' '{\"prompt\":\"hello\"}' '{\"prompt\":\"and again\"}' | interlingua chat gemini --to ai-sdk";

/// The arguments of a session with an agent.
#[derive(Debug, Clone, Args)]
pub(crate) struct SessionArguments {
    /// The agent (`interlingua agents` lists them), or a .toml file that describes a program or a service.
    #[arg(value_parser = AgentName, hide_possible_values = true)]
    pub(crate) agent: String,
    /// The prompt. For `run`, `-` or nothing reads it from standard input; a `chat` begins with it.
    pub(crate) prompt: Option<String>,
    /// The prompt, if it looks like a flag: --prompt='--help me'.
    #[arg(
        long = "prompt",
        value_name = "PROMPT",
        conflicts_with = "prompt",
        allow_hyphen_values = true
    )]
    pub(crate) asked: Option<String>,
    /// The dialect to write; by default `text` at a terminal, else `events`.
    #[arg(long, value_name = "NAME", value_parser = DialectName::Written)]
    pub(crate) to: Option<&'static Dialect>,
    /// The form of standard input: `json` for commands, one per line. A prompt that is given makes
    /// it the default.
    #[arg(long, value_name = "FORM")]
    pub(crate) input: Option<InputForm>,
    /// The model, by the agent's name for it.
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The working folder.
    #[arg(long, value_name = "FOLDER", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: PathBuf,
    /// The session to resume, by the agent's own id.
    #[arg(long, value_name = "ID")]
    pub(crate) resume: Option<String>,
    /// Continue the last session that this agent had in this folder.
    #[arg(long = "continue", conflicts_with = "resume")]
    pub(crate) continues: bool,
    /// What the agent may do: read, and ask for the rest (default), ask for everything
    /// (interactive), change files (accept-edits), everything (auto),
    /// nothing that needs a permission (deny), only plan (plan).
    #[arg(long, value_name = "MODE", value_parser = ModeName)]
    pub(crate) permission_mode: Option<Mode>,
    /// Let the agent use what the working folder defines for it and runs without asking: hooks,
    /// plugins, MCP servers.
    #[arg(long)]
    pub(crate) trust_folder: bool,
    /// The time limit of the run, in seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    /// The limit for silence during a turn, in seconds, while no tool runs and no permission
    /// request is pending.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) idle_timeout: Option<Duration>,
    /// An environment variable for the agent; may be repeated. Without a value, it has the one that
    /// it has here, which keeps secrets out of the list of processes.
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
    /// The agent's program, if it is not the one on PATH.
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
    /// How the processes that the agent starts are kept together, so that none survives the run; by
    /// default the strongest way that this machine allows.
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = IsolationName)]
    pub(crate) isolation: Isolation,
    /// A file with permission settings.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// A file with tools that whoever reads the output runs: a JSON array of definitions (`name`, `description`,
    /// `inputSchema`), or of names of built-in ones. Their calls are answered on standard input.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) client_tools: Option<PathBuf>,
    /// Record the agent's own bytes in FILE, which `interlingua translate` reads, and the time of
    /// each chunk in FILE.times.jsonl.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Overwrite the files of --record if they exist.
    #[arg(long, requires = "record")]
    pub(crate) force: bool,
    /// Use the agent's protocol for unattended runs, if it has one (`codex exec --json`).
    #[arg(long)]
    pub(crate) exec: bool,

    /// Read the agent's screen instead of a protocol (only for Copilot). The result is a guess.
    #[arg(long, conflicts_with = "exec")]
    pub(crate) screen: bool,
    /// Also write the deltas of messages as they are streamed, if the dialect makes it optional
    /// (claude).
    #[arg(long)]
    pub(crate) partial: bool,
    /// At a terminal, show everything: whole outputs and diffs, all reasoning, and the agent's log.
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Flags for the agent itself, passed on unchanged.
    #[arg(last = true, value_name = "FLAG")]
    pub(crate) flags: Vec<String>,
    #[command(flatten)]
    pub(crate) team: TeamArguments,
    #[command(flatten)]
    pub(crate) of_api: ApiArguments,
}

/// The form of standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputForm {
    /// A command per line.
    Json,
}

const RUN_EXAMPLES: &str = "\
Examples:
  interlingua run codex 'fix the failing test'
  interlingua run claude --permission-mode accept-edits --model sonnet - < task.md
  interlingua run gemini --to ai-sdk --permission-mode auto 'what is in this folder?'
  interlingua run ./my-agent.toml 'hello' -- --its-own-flag
  interlingua run anthropic-api --permission-mode accept-edits 'fix the failing test'
  interlingua run openai-api --api chat --base-url http://localhost:11434/v1 --model qwen3 'hello'

In a pipe, commands are read from standard input, one per line:
  {\"prompt\":\"and now the docs\"}
  {\"request\":\"ID\",\"decision\":\"allow\"}    \"deny\" with a \"reason\", \"always\" with a \"pattern\"
  {\"request\":\"ID\",\"answer\":\"Blue\"}
  {\"interrupt\":true}, {\"model\":\"NAME\"}, {\"mode\":\"plan\"}, {\"close\":true}";

/// The longest time limit: about a hundred years.
const LONGEST: Duration = Duration::from_secs(3_000_000_000);

pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().map_err(|_| "this is not a number of seconds".to_owned())?;
    if seconds.is_nan() {
        return Err("this is not a number of seconds".to_owned());
    }
    if seconds <= 0.0 {
        return Err("the limit must be more than zero".to_owned());
    }
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if time.is_zero() => Err("the limit must be at least a nanosecond".to_owned()),
        Ok(time) if time <= LONGEST => Ok(time),
        _ => Err(format!("this is too long; the longest limit is {} s", LONGEST.as_secs())),
    }
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, value.to_owned()),
        None => (text, inherited(text)?),
    };
    if name.is_empty() {
        return Err("the form must be NAME=VALUE or NAME".to_owned());
    }
    Ok((name.to_owned(), value))
}

/// The value that a variable has here.
fn inherited(name: &str) -> Result<String, String> {
    // The system has no variables with such names, and asking for one panics on some.
    if name.is_empty() || name.contains('\0') {
        return Ok(String::new());
    }
    std::env::var(name).map_err(|problem| match problem {
        VarError::NotPresent => {
            format!("there is no variable {name} here; give its value as {name}=VALUE")
        }
        VarError::NotUnicode(_) => format!("the value of {name} is not valid UTF-8"),
    })
}

/// The name of a mechanism of isolation.
#[derive(Debug, Clone, Copy)]
struct IsolationName;

impl TypedValueParser for IsolationName {
    type Value = Isolation;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Isolation, clap::Error> {
        let names = PossibleValuesParser::new(Isolation::ALL.map(Isolation::as_str));
        let name = names.parse_ref(command, argument, value)?;
        Ok(Isolation::find(&name).unwrap_or_default())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let names = Isolation::ALL.into_iter().map(Isolation::as_str);
        Some(Box::new(names.map(PossibleValue::new)))
    }
}

/// The name of a permission mode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModeName;

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

/// Translate a stream from one dialect to another.
///
/// Every record is written as soon as it is known. The exit code is 0 when the translation is
/// complete, even if the agent itself failed; 1 when --strict found something; 2 when the arguments
/// or the input cannot be used.
#[derive(Debug, Args)]
#[command(after_help = TRANSLATE_EXAMPLES)]
pub(crate) struct TranslateArguments {
    /// The dialect of the input; `auto` recognises it.
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = SourceName)]
    pub(crate) from: Source,
    /// The dialect to write.
    #[arg(long, value_name = "NAME", value_parser = DialectName::Written)]
    pub(crate) to: &'static Dialect,
    /// The input file; standard input if it is absent or `-`.
    pub(crate) file: Option<PathBuf>,
    /// Also write the deltas of messages as they are streamed, if the dialect makes it optional
    /// (claude).
    #[arg(long)]
    pub(crate) partial: bool,
    /// At a terminal, show everything: whole outputs and diffs, all reasoning, and the agent's log.
    #[arg(long)]
    pub(crate) verbose: bool,
    /// At the end, report on standard error what the target could not express and what was
    /// repaired.
    #[arg(long)]
    pub(crate) loss_report: bool,
    /// At the end, list on standard error the unknown record types and fields of the input, with
    /// counts and an example of each. They show what a new release of an agent has added.
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
    /// A file with the agent's standard error, whose last 4 KiB explain a failure.
    #[arg(long, value_name = "FILE")]
    pub(crate) stderr: Option<PathBuf>,
    /// The framing of the input, if it is not the usual one of the dialect.
    #[arg(long, value_name = "KIND")]
    pub(crate) framing: Option<FramingName>,
    /// Timestamp records with the clock of this machine, if the dialect has timestamps.
    #[arg(long)]
    pub(crate) live: bool,
    #[command(flatten)]
    pub(crate) team: TeamArguments,
    /// The seed of generated ids. By default it is a hash of the first line, so two invocations on
    /// parts of one session may generate the same ids.
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

/// Check that a stream follows the rules of its dialect.
///
/// Each finding is one line, `FILE:LINE: rule: message`. The exit code is 0 when nothing was found,
/// 1 when something was, 2 when the arguments or the input cannot be used.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  interlingua check --as claude run.jsonl")]
pub(crate) struct CheckArguments {
    /// The expected dialect of the input.
    #[arg(long = "as", value_name = "NAME", value_parser = DialectName::Checked)]
    pub(crate) dialect: &'static Dialect,
    /// The input file; standard input if it is absent or `-`.
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) agent: AgentArguments,
}

/// The identity of the agent, for dialects that carry it in every record (agent-event).
#[derive(Debug, Clone, Args)]
pub(crate) struct TeamArguments {
    /// The id of the agent (agent-event).
    #[arg(long, value_name = "ID")]
    pub(crate) agent_id: Option<String>,
    /// The type of the agent, if it differs from the one in the input (agent-event).
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

/// Facts about the agent that wrote the input, and the limit for its lines.
#[derive(Debug, Args)]
pub(crate) struct AgentArguments {
    /// The exit code of the agent, or the negated number of the signal that ended it.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) exit_status: Option<i64>,
    /// The maximum length of a line; a longer line is reported and skipped.
    #[arg(long, value_name = "SIZE", default_value = "64MiB")]
    pub(crate) max_line: Size,
}

impl AgentArguments {
    /// How the agent ended, according to the arguments.
    pub(crate) fn exit(&self) -> Exit {
        match self.exit_status {
            Some(signal) if signal < 0 => {
                Exit { signal: Some(signal.saturating_neg()), ..Exit::default() }
            }
            code => Exit { code, ..Exit::default() },
        }
    }
}

/// List the dialects, and whether each can be read and written.
#[derive(Debug, Args)]
pub(crate) struct DialectsArguments {
    /// Show all facts about this dialect.
    #[arg(value_parser = DialectName::Any)]
    pub(crate) name: Option<&'static Dialect>,
}

/// Offer an agent the client's tools of its session, as an MCP server over standard streams.
///
/// The agent starts this command itself. It finds its session by the environment variables
/// INTERLINGUA_MCP_URL and INTERLINGUA_MCP_TOKEN, which `run`, `chat` and `serve` set for a program
/// that a file describes. It ends with its standard input, and reconnects to its session until then.
/// The exit code is 2 when the variables cannot be used.
#[derive(Debug, Args)]
#[command(after_help = MCP_EXAMPLE)]
pub(crate) struct McpArguments {}

const MCP_EXAMPLE: &str = "\
Example, in the file that describes an agent:
  [client-tools]
  arguments = [\"--mcp-config\", \"{file}\"]
  file = \"{servers}\"";

/// Print a shell completion script.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  interlingua completions bash > /etc/bash_completion.d/interlingua"
)]
pub(crate) struct CompletionsArguments {
    /// The shell.
    pub(crate) shell: Shell,
}

/// The framing of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FramingName {
    /// One record per line.
    Lines,
    /// Server-sent events.
    Sse,
    /// JSON objects anywhere in the text.
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
