//! All processes of a run: the program and its descendants, including those that moved away.
//!
//! Agents start commands in separate sessions, which signals to the program's group do not reach,
//! and may exit before them. Each system has its own way of finding such processes, and its own
//! file: a guard on Linux, or else a mark and a subreaper; a job on Windows. Other systems have only
//! the process group.

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
#[cfg(all(unix, not(target_os = "linux")))]
pub(super) use unix::Tree;
#[cfg(windows)]
pub(super) use windows::Tree;

/// Makes this process the parent of orphaned descendants, on systems that support it.
#[cfg(not(target_os = "linux"))]
pub fn adopt_orphans() {}

#[cfg(all(unix, not(target_os = "linux")))]
impl Tree {
    /// Starts a program in its own process group.
    pub(super) fn start(
        mut command: tokio::process::Command,
        mark: String,
    ) -> std::io::Result<Self> {
        command.process_group(0);
        Ok(Self::of(command.spawn()?, mark))
    }

    /// The program's standard input, if it is a pipe.
    pub(super) fn stdin(&mut self) -> Option<tokio::process::ChildStdin> {
        self.program.stdin.take()
    }

    /// Waits until the program has exited.
    pub(super) async fn ended(&mut self) -> std::io::Result<std::process::ExitStatus> {
        self.program.wait().await
    }
}
