//! The guard of a run: a process that is started in place of the agent, starts the agent itself,
//! and ends everything that the agent left behind.
//!
//! A killed process can clean up nothing, and an orphan is found only by the process that adopts
//! it. Therefore the guard is a process of its own, between us and the agent. It does three things:
//! it keeps all descendants of the agent together ([`Isolation`]), it carries out our orders, and it
//! ends all of them when the agent has exited or when we are gone, which it notices because a pipe
//! breaks.
//!
//! | module | what it knows |
//! |---|---|
//! | `setup` | the command line of the guard |
//! | `channel` | orders to the guard, and its reports |
//! | `namespace` | how a PID namespace is entered without threads, `fork` or `unsafe` |
//! | `cgroup` | how a cgroup is created, entered and killed |
//! | `supervisor` | the guard while the agent runs: it reaps, signals and sweeps |
//!
//! Guards exist on Linux. Windows needs none, because the system ends a job together with the
//! process that holds it.

#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod channel;
#[cfg(target_os = "linux")]
mod namespace;
#[cfg(target_os = "linux")]
mod setup;
#[cfg(target_os = "linux")]
mod supervisor;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

#[cfg(target_os = "linux")]
pub(super) use channel::{Channel, Report};
#[cfg(target_os = "linux")]
pub(super) use setup::Terminal;

use super::isolation::Isolation;

/// The program that guards a run. It receives further arguments after its own, and has to call
/// [`guard`] with them before it does anything else.
#[derive(Debug, Clone)]
pub struct Guard {
    /// The program.
    pub program: PathBuf,
    /// Its own arguments.
    pub arguments: Vec<OsString>,
}

impl Guard {
    /// Determines the mechanism that [`Isolation::Auto`] would use with this guard, and why each
    /// stronger one is not available.
    pub async fn strongest(&self) -> (Isolation, Vec<(Isolation, String)>) {
        let mut unavailable = Vec::new();
        for &isolation in Isolation::Auto.candidates() {
            match self.probe(isolation).await {
                Ok(()) => return (isolation, unavailable),
                Err(why) => unavailable.push((isolation, why.to_string())),
            }
        }
        (Isolation::None, unavailable)
    }

    /// Checks that a mechanism is available, by using it without an agent.
    #[cfg(target_os = "linux")]
    pub async fn probe(&self, isolation: Isolation) -> io::Result<()> {
        if matches!(isolation, Isolation::Auto | Isolation::None) {
            return Ok(());
        }
        let (mut channel, arguments) = Channel::open(isolation, Terminal::No, None)?;
        let mut command = tokio::process::Command::new(&self.program);
        command.args(&self.arguments).args(arguments).stdin(std::process::Stdio::null());
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let mut child = command.process_group(0).spawn()?;
        let report = channel.first_report(&mut child, isolation).await?;
        child.wait().await?;
        report.into_result(isolation)
    }

    /// Checks that a mechanism is available.
    #[cfg(not(target_os = "linux"))]
    pub async fn probe(&self, isolation: Isolation) -> io::Result<()> {
        match isolation {
            Isolation::Auto | Isolation::None => Ok(()),
            _ => Err(io::Error::other(format!("`{isolation}` exists only on Linux"))),
        }
    }
}

/// Guards a run, as its arguments say; see [`Guard`]. Returns the exit code for this process, which
/// is that of the agent.
///
/// The calling process must have a single thread, because a process with several cannot enter a
/// user namespace.
#[cfg(target_os = "linux")]
pub fn guard(arguments: impl IntoIterator<Item = OsString>) -> io::Result<u8> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let setup = setup::Setup::parse(&arguments).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "these are not the arguments of a guard")
    })?;
    let is_init = setup.stage != setup::Stage::Guard;
    if is_init {
        namespace::end_with_parent()?;
    }
    let ends = setup.open_channel()?;
    let result = match setup.isolation {
        Isolation::Namespace if is_init => namespace::run_init(&setup, &ends),
        Isolation::Namespace => namespace::start_init(&setup, &ends, arguments.len()),
        Isolation::Cgroup => cgroup::run(&setup, &ends),
        _ => supervisor::run(&setup, &ends, supervisor::Members::Tree),
    };
    result.or_else(|why| {
        ends.report(&Report::Unavailable(why.to_string()))?;
        Ok(1)
    })
}

/// Guards a run, on systems that need a guard; this one does not.
#[cfg(not(target_os = "linux"))]
pub fn guard(_arguments: impl IntoIterator<Item = OsString>) -> io::Result<u8> {
    Err(io::Error::other("a guard exists only on Linux"))
}
