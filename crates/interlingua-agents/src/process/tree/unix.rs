//! The processes of a run on macOS and other Unix systems: the program's group.
//!
//! Who leaves the group is not found: nobody may read the environment of another process there, and
//! orphans do not come to us.

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
    /// The tree of a program that was started as the first of its group.
    pub(in crate::process) fn of(program: Child, _mark: String) -> Self {
        let root = program.id().and_then(|root| i32::try_from(root).ok());
        Self { program, group: root.and_then(Pid::from_raw) }
    }

    /// Sends a signal to the program's group.
    pub(in crate::process) fn signal(&mut self, signal: Signal) -> bool {
        self.reaches(signal);
        true
    }

    /// Kills those who are left in the group. They are not counted: 1 says that there were some.
    pub(in crate::process) async fn sweep(&mut self) -> usize {
        usize::from(self.reaches(Signal::Kill))
    }

    /// Whether there was somebody to send a signal to.
    fn reaches(&self, signal: Signal) -> bool {
        self.group.is_some_and(|group| kill_process_group(group, signal.number()).is_ok())
    }
}
