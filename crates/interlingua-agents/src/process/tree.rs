//! All processes of a run: the program, its children, and those that moved away.
//!
//! Agents start commands in sessions of their own, where a signal to the program's group does not
//! reach them, and die without them. How they are found all the same is different on every system,
//! and has a file for each: a mark and a reaper on Linux, a job on Windows. Other systems have only
//! the group.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(all(unix, not(target_os = "linux")))]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub(super) use linux::Tree;
#[cfg(target_os = "linux")]
pub use linux::adopt_orphans;
#[cfg(target_os = "linux")]
pub(super) use linux::end_marked;
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) use unix::Tree;
#[cfg(windows)]
pub(super) use windows::Tree;

/// How long those who are left have to be gone after they were killed.
#[cfg(any(target_os = "linux", windows))]
const GONE: std::time::Duration = std::time::Duration::from_secs(2);

/// How long to wait between two looks at who is left.
#[cfg(any(target_os = "linux", windows))]
const LOOK: std::time::Duration = std::time::Duration::from_millis(2);

/// Makes orphans of our descendants come to us, where a system can do that.
#[cfg(not(target_os = "linux"))]
pub fn adopt_orphans() {}

/// Kills all that carry a mark, where a system can find them.
#[cfg(not(target_os = "linux"))]
pub(super) async fn end_marked(_mark: String) {}

#[cfg(unix)]
impl Tree {
    /// Starts a program in a process group of its own.
    pub(super) fn start(
        mut command: tokio::process::Command,
        mark: String,
    ) -> std::io::Result<Self> {
        command.process_group(0);
        Ok(Self::of(command.spawn()?, mark))
    }

    /// What the program reads, if it is for us to write.
    pub(super) fn stdin(&mut self) -> Option<tokio::process::ChildStdin> {
        self.program.stdin.take()
    }

    /// Waits for the end of the program.
    pub(super) async fn ended(&mut self) -> std::io::Result<std::process::ExitStatus> {
        self.program.wait().await
    }
}

#[cfg(unix)]
impl super::Signal {
    fn number(self) -> rustix::process::Signal {
        match self {
            Self::Interrupt => rustix::process::Signal::INT,
            Self::Terminate => rustix::process::Signal::TERM,
            Self::Kill => rustix::process::Signal::KILL,
        }
    }
}
