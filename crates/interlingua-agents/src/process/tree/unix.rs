//! The processes of a run on macOS and other Unix systems: the program's process group.
//!
//! Processes that leave the group are not found, because these systems do not let a process read
//! the environment of another, and orphans are not reparented to us.

use rustix::process::{Pid, kill_process_group};
use tokio::process::Child;

use super::super::Signal;

/// The processes of a run.
#[derive(Debug)]
pub(in crate::process) struct Tree {
    pub(super) program: Child,
    group: Option<Pid>,
}

impl Tree {
    /// Wraps a program that was started as the leader of its process group.
    pub(in crate::process) fn of(program: Child, _mark: String) -> Self {
        let root = program.id().and_then(|root| i32::try_from(root).ok());
        Self { program, group: root.and_then(Pid::from_raw) }
    }

    /// Sends a signal to the program's group.
    pub(in crate::process) fn signal(&mut self, signal: Signal) -> bool {
        self.reaches(signal);
        true
    }

    /// Kills the remaining processes of the group. They are not counted: 1 means that there were
    /// any.
    pub(in crate::process) async fn sweep(&mut self) -> usize {
        usize::from(self.reaches(Signal::Kill))
    }

    /// Sends a signal; returns whether the group had any process.
    fn reaches(&self, signal: Signal) -> bool {
        self.group.is_some_and(|group| kill_process_group(group, signal.number()).is_ok())
    }
}
