//! Runs the real agents against a scripted model: each agent in each situation.
//!
//! They are looked up in the folder that `INTERLINGUA_AGENTS` names; `./test.sh` installs them
//! there in pinned versions. Without it, and on systems other than Linux, nothing is run, and the
//! output reports that.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::print_stdout)]

mod changing;
mod client_tools;
mod described;
mod home;
mod killed;
mod live;
mod mcp;
mod model_apis;
mod ordinary_user;
mod plan;
mod reading;
mod repository;
mod requested;
mod same_turn;
mod screen;
mod situations;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

use changing::CHANGING;
use client_tools::CLIENT_TOOLS;
use described::DESCRIBED;
use home::{AGENTS, UNATTENDED};
use killed::killed_with_two_sessions;
use live::LIVE;
use mcp::MCP;
use plan::PLAN;
use reading::READING;
use repository::REPOSITORY;
use requested::REQUESTED;
use same_turn::{TURNS, same_turn};
use screen::SCREENS;
use situations::{Outcome, SITUATIONS, can};

/// The situations of the agents that are run with their JSON streams.
const IN_STREAMS: [&str; 5] =
    ["plain_text", "a_tool", "interrupted_in_a_tool", "resumed", "two_prompts"];

fn main() -> ExitCode {
    let mut given = std::env::args_os().skip(1);
    // A guard does nothing before it has entered its namespace.
    match given.next() {
        Some(first) if first == home::GUARD => return guard(given),
        Some(first) if first == described::MCP => return described::serve(),
        Some(first) if first == killed::HOST => return killed::host(given),
        _ => {}
    }
    let mut arguments = Arguments::from_args();
    // Each run starts several programs, and the machine may have only two processors.
    arguments.test_threads = arguments.test_threads.or(Some(2));
    if !cfg!(target_os = "linux") {
        println!("SKIPPED real agents: surviving processes can be looked up only on Linux");
        return libtest_mimic::run(&arguments, Vec::new()).exit_code();
    }
    let Some(folder) = std::env::var_os("INTERLINGUA_AGENTS").map(PathBuf::from) else {
        println!("SKIPPED real agents: INTERLINGUA_AGENTS does not name a folder with the agents");
        return libtest_mimic::run(&arguments, Vec::new()).exit_code();
    };
    let mut trials = Vec::new();
    for agent in AGENTS {
        let program = folder.join(home::program(agent).0);
        if !program.exists() {
            println!("SKIPPED {agent}: {} does not exist", program.display());
            continue;
        }
        for (name, situation) in SITUATIONS.iter().filter(|(name, _)| can(agent, name)) {
            let program = program.clone();
            let trial = format!("{agent}::{name}");
            trials.push(Trial::test(trial, move || wait_for(situation(agent, program))));
        }
        for (name, situation) in LIVE.iter().filter(|(name, _)| live::can(agent, name)) {
            let program = program.clone();
            let trial = format!("{agent}::live::{name}");
            trials.push(Trial::test(trial, move || wait_for(situation(agent, program))));
        }
        for (name, situation) in PLAN.iter().filter(|(name, _)| plan::can(agent, name)) {
            let program = program.clone();
            let trial = format!("{agent}::plan::{name}");
            trials.push(Trial::test(trial, move || wait_for(situation(agent, program))));
        }
        for (name, situation) in CHANGING.iter().filter(|(name, _)| changing::can(agent, name)) {
            let program = program.clone();
            let trial = format!("{agent}::changing::{name}");
            trials.push(Trial::test(trial, move || wait_for(situation(agent, program))));
        }
        for (name, situation) in READING.iter().filter(|_| agent != "codex-exec") {
            let program = program.clone();
            let trial = format!("{agent}::reading::{name}");
            trials.push(Trial::test(trial, move || wait_for(situation(agent, program))));
        }
        for (name, situation) in REPOSITORY.iter().filter(|_| agent != "codex-exec") {
            let program = program.clone();
            let trial = format!("{agent}::repository::{name}");
            trials.push(Trial::test(trial, move || wait_for(situation(agent, program))));
        }
        for (name, situation) in CLIENT_TOOLS.iter().filter(|_| agent != "codex-exec") {
            let program = program.clone();
            let trial = format!("{agent}::client_tools::{name}");
            trials.push(Trial::test(trial, move || wait_for(situation(agent, program))));
        }
        for (name, situation) in DESCRIBED.iter().filter(|_| described::AGENTS.contains(&agent)) {
            let program = program.clone();
            let trial = format!("{agent}::described::{name}");
            trials.push(Trial::test(trial, move || wait_for(situation(agent, program))));
        }
        for (name, situation) in REQUESTED.iter().filter(|_| agent != "codex-exec") {
            let program = program.clone();
            let trial = format!("{agent}::requested::{name}");
            trials.push(Trial::test(trial, move || wait_for(situation(agent, program))));
        }
        let (trial, killed) = (format!("{agent}::killed_with_two_sessions"), program.clone());
        let killed = move || wait_for(killed_with_two_sessions(agent, killed));
        trials.push(Trial::test(trial, killed));
        for (name, situation) in MCP.iter().filter(|_| mcp::AGENTS.contains(&agent)) {
            let program = program.clone();
            let trial = format!("{agent}::mcp::{name}");
            trials.push(Trial::test(trial, move || wait_for(situation(agent, program))));
        }
    }
    for agent in AGENTS.into_iter().filter(|agent| !agent.ends_with("-exec")) {
        let program = folder.join(agent);
        let trial = format!("{agent}::as_an_ordinary_user");
        if ordinary_user::is_possible(&program) {
            trials.push(Trial::test(trial, move || ordinary_user::runs(agent).map_err(Into::into)));
        } else {
            println!(
                "SKIPPED {trial}: only root can try it, and the user needs access to {folder:?}"
            );
        }
    }
    for agent in UNATTENDED {
        let program = folder.join(home::program(agent).0);
        let all = SITUATIONS.iter().chain(LIVE.iter()).filter(|_| program.exists());
        for (name, situation) in all.filter(|(name, _)| IN_STREAMS.contains(name)) {
            let program = program.clone();
            let trial = format!("{agent}::{name}");
            trials.push(Trial::test(trial, move || wait_for(situation(agent, program))));
        }
    }
    for (name, turn) in TURNS {
        let folder = folder.clone();
        let trial = format!("same_turn::{name}");
        trials.push(Trial::test(trial, move || wait_for(same_turn(&folder, turn))));
    }
    let copilot = folder.join("copilot");
    for (name, situation) in SCREENS.iter().filter(|_| copilot.exists()) {
        let (trial, copilot) = (format!("copilot-screen::{name}"), copilot.clone());
        trials.push(Trial::test(trial, move || wait_for(situation(copilot))));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn guard(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    match interlingua_agents::process::guard(arguments) {
        Ok(code) => code.into(),
        Err(problem) => {
            println!("the guard failed: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn wait_for(outcome: impl Future<Output = Outcome>) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(outcome).map_err(Into::into)
}
