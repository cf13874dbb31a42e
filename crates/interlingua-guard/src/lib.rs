//! The guard of a run: a process that is started in place of the agent, starts the agent itself,
//! and ends everything that the agent left behind.
//!
//! A killed process can clean up nothing, and an orphan is found only by the process that adopts
//! it. Therefore the guard is a process of its own, between its *client* and the agent. It does three
//! things: it keeps all descendants of the agent together ([`Isolation`]), it carries out the orders
//! of the client, and it ends all of them when the agent has exited or when the client is gone, which
//! it notices because a pipe breaks.
//!
//! | module | what it knows |
//! |---|---|
//! | `isolation` | the mechanisms that keep processes together |
//! | `setup` | the command line of the guard |
//! | `channel` | the reports of the guard, and its ends of the two pipes to the client |
//! | `signal` | the signals that a client can order |
//! | `ignored` | the signals that were ignored since the start |
//! | [`processes`] | all processes of the machine, and who descends from whom |
//! | `caught` | signals that the guard receives |
//! | `namespace` | how a PID namespace is entered without threads, `fork` or `unsafe` |
//! | `cgroup` | how a cgroup is created, entered and killed |
//! | `supervisor` | the guard while the agent runs: it reaps, signals and sweeps |
//! | `watcher` | the second process of a guard without a namespace: it ends what a killed supervisor leaves |
//!
//! Guards exist on Linux. Windows needs none, because the system ends a job together with the
//! process that holds it. What clients on other systems use as well is available everywhere.
//!
//! A guard lives as long as its agent, and is two processes. So this crate has no runtime and no
//! thread, and a program that contains nothing else takes little memory.

#[cfg(target_os = "linux")]
mod caught;
#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod channel;
mod ignored;
mod isolation;
#[cfg(target_os = "linux")]
mod namespace;
#[cfg(target_os = "linux")]
pub mod processes;
#[cfg(target_os = "linux")]
mod setup;
mod signal;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(target_os = "linux")]
mod watcher;

use std::ffi::OsString;
use std::io;
use std::time::Duration;

#[cfg(target_os = "linux")]
use cgroup::Cgroup;
#[cfg(target_os = "linux")]
pub use channel::Report;
pub use ignored::is_hangup_ignored;
pub use isolation::Isolation;
#[cfg(target_os = "linux")]
use setup::Stage;
#[cfg(target_os = "linux")]
pub use setup::{PROTOCOL, Setup, Terminal};
pub use signal::Signal;
#[cfg(target_os = "linux")]
use supervisor::Members;

/// How long to wait for killed processes to disappear.
pub const SWEEP_TIMEOUT: Duration = Duration::from_secs(2);

/// The interval between two checks for remaining processes.
pub const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Guards a run, as its arguments say, which are those of [`Setup::to_arguments`]. Returns the exit
/// code for this process, which is that of the agent.
///
/// The calling process must have a single thread, because a process with several cannot enter a
/// user namespace.
#[cfg(target_os = "linux")]
pub fn guard(arguments: impl IntoIterator<Item = OsString>) -> io::Result<u8> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let setup = Setup::parse(&arguments).ok_or_else(|| {
        let message = format!("these are not the arguments of a guard with protocol {PROTOCOL}");
        io::Error::new(io::ErrorKind::InvalidInput, message)
    })?;
    if matches!(setup.stage, Stage::Init | Stage::InitOfUser) {
        namespace::end_with_parent()?;
    }
    let ends = setup.open_channel()?;
    let given = arguments.len();
    let result = match (setup.stage, setup.isolation) {
        (Stage::Guard, Isolation::Namespace) => namespace::start_init(&setup, &ends, given),
        (Stage::Guard, Isolation::Cgroup) => watcher::run(&setup, &ends, given, |supervisor| {
            Cgroup::of_child(supervisor).map_or(Members::Tree, Members::Cgroup)
        }),
        (Stage::Guard, _) => watcher::run(&setup, &ends, given, |_| Members::Tree),
        (Stage::Init | Stage::InitOfUser, _) => namespace::run_init(&setup, &ends),
        (Stage::Supervisor, Isolation::Cgroup) => cgroup::run(&setup, &ends),
        (Stage::Supervisor, _) => supervisor::run(&setup, &ends, Members::Tree),
    };
    result.or_else(|why| {
        ends.report(&Report::Unavailable(why.to_string()))?;
        Ok(1)
    })
}

/// Guards a run in place of a larger program, whose command line the arguments are: the program, the
/// argument that makes it a guard, and the arguments for [`guard`]. If those have another
/// [`PROTOCOL`], this process becomes that program, which understands them.
///
/// So the program is needed only after an update that has replaced one of the two, and a guard of
/// the wrong version costs no second start. The number is the third argument in every version.
#[cfg(target_os = "linux")]
pub fn stand_in(arguments: impl IntoIterator<Item = OsString>) -> io::Result<u8> {
    use std::os::unix::process::CommandExt;
    let mut arguments = arguments.into_iter();
    let (Some(program), Some(first)) = (arguments.next(), arguments.next()) else {
        let message = "this program is started by `interlingua`, and by nobody else";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    };
    let arguments: Vec<OsString> = arguments.collect();
    if setup::has_protocol(&arguments) {
        return guard(arguments);
    }
    Err(std::process::Command::new(program).arg(first).args(arguments).exec())
}

/// Guards a run, on systems that need a guard; this one does not.
#[cfg(not(target_os = "linux"))]
pub fn guard(_arguments: impl IntoIterator<Item = OsString>) -> io::Result<u8> {
    Err(io::Error::other("a guard exists only on Linux"))
}

/// Guards a run in place of a larger program, on systems that need a guard; this one does not.
#[cfg(not(target_os = "linux"))]
pub fn stand_in(arguments: impl IntoIterator<Item = OsString>) -> io::Result<u8> {
    guard(arguments)
}

/// Compiles the example of the README as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
