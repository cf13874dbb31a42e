//! `interlingua completions`: a script with which a shell completes the command line.
//!
//! The script is the one that `clap_complete` generates, with two additions: in zsh, an agent may
//! also be a file, and in fish, arguments without a flag are completed.

use anyhow::Result;
use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, CommandFactory};
use clap_complete::Shell;

use crate::agent_name::AgentName;
use crate::arguments::{Arguments, CompletionsArguments};
use crate::{SUCCESS, report};

/// Prints the script.
pub(crate) fn run(arguments: &CompletionsArguments) -> Result<u8> {
    let mut script = Vec::new();
    let mut command = Arguments::command();
    clap_complete::generate(arguments.shell, &mut command, "interlingua", &mut script);
    let script = String::from_utf8(script)?;
    let script = match arguments.shell {
        Shell::Zsh => with_described_agents(&script),
        Shell::Fish => script + &fish_arguments(&command),
        _ => script,
    };
    report::print_output(script.as_bytes())?;
    Ok(SUCCESS)
}

/// How the description of an argument of a session begins in the script for zsh.
const AGENT: &str = "':agent -- ";

/// The function that completes an agent in zsh: the known names, and files that describe one.
const AGENT_OR_FILE: &str = "\
(( $+functions[_interlingua__agent] )) ||
_interlingua__agent() {
    local -a agents
    agents=(NAMES)
    _describe -t agents 'agent' agents
    _files -g '*.toml'
}

";

/// Replaces the list of agents by a function that also completes files.
fn with_described_agents(script: &str) -> String {
    let mut changed = String::with_capacity(script.len() + AGENT_OR_FILE.len());
    for line in script.split_inclusive('\n') {
        match line.split_once(":((") {
            Some((about, _)) if line.starts_with(AGENT) => {
                changed.push_str(about);
                changed.push_str(":_interlingua__agent' \\\n");
            }
            // The last part of the script registers the completion.
            _ if line.starts_with("if [ \"$funcstack[1]\"") => {
                changed.push_str(&AGENT_OR_FILE.replace("NAMES", &zsh_names()));
                changed.push_str(line);
            }
            _ => changed.push_str(line),
        }
    }
    changed
}

fn zsh_names() -> String {
    let names = AgentName.possible_values().into_iter().flatten().map(|value| {
        let title = value.get_help().map(ToString::to_string).unwrap_or_default();
        format!("'{}:{title}'", value.get_name())
    });
    names.collect::<Vec<_>>().join(" ")
}

/// The lines for arguments without a flag. Files are completed too.
fn fish_arguments(command: &clap::Command) -> String {
    let mut lines = String::new();
    for subcommand in command.get_subcommands() {
        let using = format!("__fish_interlingua_using_subcommand {}", subcommand.get_name());
        for value in subcommand.get_positionals().flat_map(possible_values) {
            let about = value.get_help().map(ToString::to_string).unwrap_or_default();
            let about = about.replace('\\', "\\\\").replace('\'', "\\'");
            let name = value.get_name();
            lines +=
                &format!("complete -c interlingua -n \"{using}\" -a \"{name}\" -d '{about}'\n");
        }
    }
    lines
}

fn possible_values(argument: &Arg) -> Vec<PossibleValue> {
    argument.get_value_parser().possible_values().map(Iterator::collect).unwrap_or_default()
}
