//! What can be said on the command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use interlingua::Exit;
use interlingua::dialect::{Dialect, FramingKind};

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
  codex exec --json 'fix the tests' | interlingua translate --to text
  interlingua translate --from gemini --to claude run.jsonl > claude.jsonl
  interlingua check --as claude claude.jsonl
  interlingua dialects";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Translate(TranslateArguments),
    Check(CheckArguments),
    Dialects(DialectsArguments),
    Completions(CompletionsArguments),
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
    /// The agent's standard error, kept in a file: its last 4 KiB tell why the agent failed.
    #[arg(long, value_name = "FILE")]
    pub(crate) stderr: Option<PathBuf>,
    /// How records are cut out of the input, where it is not as the protocol has it.
    #[arg(long, value_name = "KIND")]
    pub(crate) framing: Option<FramingName>,
    /// Give records the time of this machine's clock, where the protocol has a time.
    #[arg(long)]
    pub(crate) live: bool,
    /// What makes the ids that are written differ from those of another run.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) id_seed: u64,
}

const TRANSLATE_EXAMPLES: &str = "\
Examples:
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
