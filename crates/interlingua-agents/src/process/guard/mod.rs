//! The guard of a run, as we see it: a program that is started in place of the agent. What it does
//! then is known by the crate `interlingua-guard`.

#[cfg(target_os = "linux")]
mod channel;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

#[cfg(target_os = "linux")]
pub(super) use channel::{Channel, started};

use super::Isolation;
use super::isolation::candidates;

/// The program that guards a run. It receives further arguments after its own, and has to call
/// [`guard`](super::guard()) with them before it does anything else.
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
        for &isolation in candidates(Isolation::Auto) {
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
        let (mut channel, arguments) =
            Channel::open(isolation, interlingua_guard::Terminal::No, None)?;
        let mut command = tokio::process::Command::new(&self.program);
        command.args(&self.arguments).args(arguments).stdin(std::process::Stdio::null());
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let mut child = command.process_group(0).spawn()?;
        let report = channel.first_report(&mut child, isolation).await?;
        child.wait().await?;
        started(report, isolation)
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
