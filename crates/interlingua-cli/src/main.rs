//! The command `interlingua`: runs agents, and translates, checks and lists their dialects.
//!
//! It handles arguments, files and the terminal. It knows nothing of any protocol; the crate
//! `interlingua` does.

mod agent_name;
mod agents;
mod arguments;
mod arguments_of_apis;
mod arguments_of_serve;
mod asking;
mod chat;
mod check;
mod client_tools;
mod commands;
mod completions;
mod conversation;
mod dialect_name;
mod dialects;
mod guard;
mod input;
mod mcp;
mod model_api;
mod output;
mod question;
mod recent;
mod remote;
mod report;
mod run;
mod serve;
mod sessions;
mod signals;
mod size;
mod suggest;
mod tally;
mod terminal_input;
mod transcript;
mod translate;
mod view;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};

/// The first argument of a process that guards a run; `interlingua` starts it itself.
const GUARD: &str = "guard";
/// The first argument of a process that becomes a sandboxed command of a tool.
const SANDBOX: &str = "sandbox";

/// The command succeeded.
const SUCCESS: u8 = 0;
/// The input has findings, and the caller asked for them to be reported as a failure.
const FINDINGS: u8 = 1;
/// The arguments or the input cannot be used.
const UNUSABLE: u8 = 2;
/// The user has stopped the command.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let mut given = std::env::args_os().skip(1);
    // Neither a guard nor a sandbox does anything before it has changed this process.
    match given.next() {
        Some(first) if first == GUARD => return guard(given),
        Some(first) if first == SANDBOX => return sandbox(given),
        _ => {}
    }
    let arguments = Arguments::parse();
    let done = match &arguments.command {
        Command::Run(arguments) => run::run(arguments),
        Command::Chat(arguments) => chat::run(arguments),
        Command::Serve(arguments) => serve::run(arguments),
        Command::Agents(arguments) => agents::run(arguments),
        Command::Sessions(arguments) => sessions::run(arguments),
        Command::Translate(arguments) => translate::run(arguments),
        Command::Check(arguments) => check::run(arguments),
        Command::Dialects(arguments) => dialects::run(arguments),
        Command::Mcp(_) => mcp::run(),
        Command::Completions(arguments) => completions::run(arguments),
    };
    exit(done)
}

fn guard(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    exit(interlingua_guard::guard(arguments).map_err(Into::into))
}

fn sandbox(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    exit(interlingua_agents::tool::sandbox(arguments).map_err(Into::into))
}

/// Reports an error.
fn exit(done: anyhow::Result<u8>) -> ExitCode {
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) if report::is_closed_pipe(&error) => ExitCode::from(SUCCESS),
        Err(error) => {
            report::error(&error);
            let interrupted = error.is::<run::Interrupted>();
            ExitCode::from(if interrupted { INTERRUPTED } else { UNUSABLE })
        }
    }
}
