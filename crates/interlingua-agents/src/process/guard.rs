//! A guard process, which ends the run if `interlingua` itself is killed.
//!
//! A killed process can clean up nothing. The guard is a separate process at one end of a pipe,
//! whose other end belongs to the supervising process. When the pipe breaks, the guard kills all
//! processes that carry the mark of the run. It can find them on Linux. Windows needs no guard,
//! because the system ends a job together with the process that holds it.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::Stdio;

use tokio::process::Child;

use super::MARK;
use super::tree::kill_marked;

/// The program that guards a run. It receives the mark of the run as its last argument, and has to
/// call [`guard`] with it.
#[derive(Debug, Clone)]
pub struct Guard {
    /// The program.
    pub program: PathBuf,
    /// Its arguments, without the mark.
    pub arguments: Vec<OsString>,
}

impl Guard {
    /// Starts the guard of a run, in its own process group, so that signals to ours do not reach
    /// it.
    pub(super) fn start(&self, mark: &str) -> io::Result<Child> {
        let mut command = tokio::process::Command::new(&self.program);
        command
            .args(&self.arguments)
            .arg(mark)
            .env_remove(MARK)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        command.spawn()
    }
}

/// Waits until the parent process has ended, then kills all remaining processes of the run with
/// this mark.
pub fn guard(mark: &str) -> io::Result<()> {
    // Nothing is ever written to the pipe, so any result means that the parent is gone.
    let _ = io::stdin().lock().read(&mut [0; 1]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(kill_marked(mark.to_owned()));
    Ok(())
}
