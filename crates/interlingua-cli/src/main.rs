//! The command `interlingua`: translates, checks and lists the protocols of coding agents.
//!
//! It knows arguments, files and the terminal, and nothing of any protocol: that is the crate
//! `interlingua`.

mod agents;
mod answers;
mod arguments;
mod check;
mod dialect_name;
mod dialects;
mod input;
mod report;
mod run;
mod size;
mod translate;

use std::process::ExitCode;

use clap::Parser;

use arguments::{Arguments, Command};

/// All went well.
const WHOLE: u8 = 0;
/// The input is not as it should be, and the caller asked to be told.
const FOUND: u8 = 1;
/// There was nothing to do the work with: bad arguments, or an input that cannot be read.
const UNUSABLE: u8 = 2;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments.command {
        Command::Run(arguments) => run::run(arguments),
        Command::Agents => agents::run(),
        Command::Translate(arguments) => translate::run(arguments),
        Command::Check(arguments) => check::run(arguments),
        Command::Dialects(arguments) => dialects::run(arguments),
        Command::Completions(arguments) => dialects::completions(arguments),
        Command::Guard { mark } => {
            interlingua_agents::process::guard(mark).map(|()| WHOLE).map_err(Into::into)
        }
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) if report::is_closed_pipe(&error) => ExitCode::from(WHOLE),
        Err(error) => {
            report::error(&error);
            ExitCode::from(UNUSABLE)
        }
    }
}
