//! The processes of a run on Windows: the program.

use std::io;
use std::process::ExitStatus;

use tokio::process::{Child, ChildStdin, Command};

use super::super::Signal;

/// The processes of a run.
#[derive(Debug)]
pub(in crate::process) struct Tree {
    program: Child,
}

impl Tree {
    /// Starts a program.
    pub(in crate::process) fn start(mut command: Command, _mark: String) -> io::Result<Self> {
        Ok(Self { program: command.spawn()? })
    }

    /// What the program reads, if it is for us to write.
    pub(in crate::process) fn stdin(&mut self) -> Option<ChildStdin> {
        self.program.stdin.take()
    }

    /// Waits for the end of the program.
    pub(in crate::process) async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.program.wait().await
    }

    pub(in crate::process) fn signal(&mut self, _signal: Signal) {}

    pub(in crate::process) async fn sweep(&mut self) -> usize {
        0
    }
}
