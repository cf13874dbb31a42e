//! Somebody who is left when we are gone.
//!
//! A process that is killed can end nobody any more. A guard is another process: it holds one end of a
//! pipe whose other end is ours, and when that breaks it ends all that carry the mark of the run. It finds
//! them on Linux. On Windows it is not needed: the system ends a job with whoever holds it.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::PathBuf;
use std::process::Stdio;

use tokio::process::Child;

use super::MARK;
use super::tree::end_marked;

/// The program that guards a run: it is given the run's mark as its last argument, and has to call
/// [`guard`] with it.
#[derive(Debug, Clone)]
pub struct Guard {
    /// The program.
    pub program: PathBuf,
    /// Its arguments, but for the mark.
    pub arguments: Vec<OsString>,
}

impl Guard {
    /// Starts the guard of a run, in a group of its own: what is sent to our group is not for it.
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

/// Waits until the one who started us is gone, and ends all that is left of the run with this mark.
pub fn guard(mark: &str) -> io::Result<()> {
    // Nothing is ever written: whatever ends the wait, nobody is there any more.
    let _ = io::stdin().lock().read(&mut [0; 1]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(end_marked(mark.to_owned()));
    Ok(())
}
