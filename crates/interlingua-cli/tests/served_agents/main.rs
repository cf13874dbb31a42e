//! Serves the real agents, and model APIs, against a scripted model.
//!
//! The agents are looked up in the folder that `INTERLINGUA_AGENTS` names; `./test.sh` installs them
//! there in pinned versions. Without it, and on systems other than Linux, nothing is run, and the output
//! reports that.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::print_stdout)]
#![allow(clippy::expect_used, reason = "a message tells what was wrong")]

#[cfg(target_os = "linux")]
mod client_tools;
#[cfg(target_os = "linux")]
mod deferred;
#[cfg(target_os = "linux")]
mod faults;
#[cfg(target_os = "linux")]
mod forgotten;
#[cfg(target_os = "linux")]
#[path = "../support/http.rs"]
mod http;
#[cfg(target_os = "linux")]
#[path = "../support/log.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod log;
#[cfg(target_os = "linux")]
#[path = "../support/random.rs"]
mod random;
#[cfg(target_os = "linux")]
#[path = "../support/reader.rs"]
mod reader;
#[cfg(target_os = "linux")]
mod same_story;
#[cfg(target_os = "linux")]
mod served;
#[cfg(target_os = "linux")]
mod story;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
#[cfg(target_os = "linux")]
use std::time::Duration;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Each run starts several programs, and the machine may have only two processors.
    arguments.test_threads = arguments.test_threads.or(Some(3));
    let folder = std::env::var_os("INTERLINGUA_AGENTS").map(PathBuf::from);
    let trials = match &folder {
        Some(folder) => trials(folder),
        None => {
            println!(
                "SKIPPED served agents: INTERLINGUA_AGENTS does not name a folder with the agents"
            );
            Vec::new()
        }
    };
    libtest_mimic::run(&arguments, trials).exit_code()
}

#[cfg(not(target_os = "linux"))]
fn trials(_: &Path) -> Vec<Trial> {
    println!("SKIPPED served agents: surviving processes can be looked up only on Linux");
    Vec::new()
}

#[cfg(target_os = "linux")]
fn trials(programs: &Path) -> Vec<Trial> {
    let mut trials = Vec::new();
    let (seed, faults) = random::settings();
    let faults = faults.div_ceil(served::AGENTS.len() as u64);
    let folder = programs.to_owned();
    // It waits most of its time, so it begins first, and the others run meanwhile.
    trials.push(Trial::test("all::a_client_tool_that_takes_four_minutes", move || {
        slow_person(&folder);
        Ok(())
    }));
    for (number, agent) in (0..).zip(served::AGENTS) {
        if !agent.is_in(programs) {
            println!("SKIPPED {}: it is not in {}", agent.name, programs.display());
            continue;
        }
        let (name, folder) = (format!("{}::the_same_story", agent.title()), programs.to_owned());
        trials.push(Trial::test(name, move || {
            same_story::check(agent, &folder);
            Ok(())
        }));
        let (name, folder) =
            (format!("{}::a_long_result_of_a_client_tool", agent.title()), programs.to_owned());
        trials.push(Trial::test(name, move || {
            client_tools::check_long(agent, &folder);
            Ok(())
        }));
        let (name, folder) =
            (format!("{}::two_client_tools_in_parallel", agent.title()), programs.to_owned());
        trials.push(Trial::test(name, move || {
            client_tools::check_two(agent, &folder, Duration::ZERO);
            Ok(())
        }));
        let (name, folder) =
            (format!("{}::client_tools_allow_no_others", agent.title()), programs.to_owned());
        trials.push(Trial::test(name, move || {
            client_tools::check_others(agent, &folder);
            Ok(())
        }));
        for (name, instead) in client_tools::INSTEAD {
            let (name, folder) = (format!("{}::{name}", agent.title()), programs.to_owned());
            trials.push(Trial::test(name, move || {
                client_tools::check_instead(agent, &folder, instead);
                Ok(())
            }));
        }
        if agent.is_program() {
            let (name, folder) = (
                format!("{}::a_session_that_it_has_forgotten", agent.title()),
                programs.to_owned(),
            );
            trials.push(Trial::test(name, move || {
                forgotten::check(agent, &folder);
                Ok(())
            }));
        }
        for (name, loss) in client_tools::losses(agent) {
            let (name, folder) = (format!("{}::{name}", agent.title()), programs.to_owned());
            trials.push(Trial::test(name, move || {
                client_tools::check(agent, &folder, loss);
                Ok(())
            }));
        }
        trials.extend(deferrals(agent, programs));
        let (name, folder) = (format!("{}::faults", agent.title()), programs.to_owned());
        trials.push(Trial::test(name, move || {
            faults::check(agent, &folder, seed.wrapping_add(number), faults);
            Ok(())
        }));
    }
    trials
}

/// Only Claude Code can defer a call.
#[cfg(target_os = "linux")]
fn deferrals(agent: served::Agent, programs: &Path) -> Vec<Trial> {
    if agent.name != "claude" {
        return Vec::new();
    }
    let fate = |(name, fate): (&str, deferred::Fate)| {
        let (name, folder) = (format!("{}::{name}", agent.title()), programs.to_owned());
        Trial::test(name, move || {
            deferred::check(agent, &folder, fate);
            Ok(())
        })
    };
    let folder = programs.to_owned();
    let two = Trial::test("claude::two_client_tools_of_a_stopped_server", move || {
        deferred::check_two(agent, &folder);
        Ok(())
    });
    deferred::FATES.into_iter().map(fate).chain([two]).collect()
}

/// All agents at once: they only wait.
#[cfg(target_os = "linux")]
fn slow_person(programs: &Path) {
    std::thread::scope(|all| {
        for agent in served::AGENTS.into_iter().filter(|agent| agent.is_in(programs)) {
            let check = move || client_tools::check_two(agent, programs, client_tools::SLOW_PERSON);
            std::thread::Builder::new().name(agent.title()).spawn_scoped(all, check).unwrap();
        }
    });
}
