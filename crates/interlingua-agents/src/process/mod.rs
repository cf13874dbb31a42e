//! Processes with complete output, an observed end, and no survivors.
//!
//! A program prints into a file that is followed. Through a pipe, a slow reader or a program that
//! exits before its pipe is drained would lose output, and the exit code would still be 0; a file
//! loses nothing. The files are unnamed, or deleted by the system when they are closed, so nothing
//! of them is left however the run ends.

mod follow;
mod guard;
mod spool;
mod terminal;
mod tree;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::process::Child;
use tokio::sync::mpsc;

pub use guard::{Guard, guard};
pub use spool::Spool;
use terminal::Copier;
pub use terminal::Size;
use tree::Tree;
pub use tree::adopt_orphans;

/// The number of bytes of standard error that are kept, counted from its end.
const STDERR_KEPT: u64 = 64 << 10;

/// The environment variable that marks the descendants of a run, wherever they have moved.
const MARK: &str = "INTERLINGUA_RUN";

/// The standard input of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Input {
    /// Closed from the start. Some programs wait forever for the end of an open input.
    #[default]
    Closed,
    /// This text, followed by the end of the input.
    Text(String),
    /// A pipe that is written to while the program runs.
    Open,
}

/// A program, with everything that is needed to start it.
#[derive(Clone, Default)]
pub struct Command {
    /// The program: a path, or a name that is looked up on `PATH`.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Environment variables to set, in addition to the inherited ones.
    pub environment: Vec<(String, String)>,
    /// The working folder.
    pub folder: PathBuf,
    /// Its standard input.
    pub input: Input,
    /// The size of the pseudoterminal, for a program that has only a screen. Its input is then what
    /// is typed there.
    pub terminal: Option<Size>,
    /// The guard that ends the program if `interlingua` itself is killed.
    pub guard: Option<Guard>,
}

/// A started program.
#[derive(Debug)]
pub struct Process {
    /// The program and its descendants.
    tree: Tree,
    /// The queue for its standard input, which is closed once the queue is drained.
    stdin: Option<mpsc::UnboundedSender<Vec<u8>>>,
    stderr: File,
    /// The task that copies the output of the pseudoterminal.
    copier: Option<Copier>,
    guard: Option<Child>,
}

/// A signal that asks a program to stop, or forces it to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT, as sent by Ctrl-C at a terminal.
    Interrupt,
    /// SIGTERM, the request to exit.
    Terminate,
    /// SIGKILL.
    Kill,
}

/// Environment variables may be secrets, so only their names are shown.
impl std::fmt::Debug for Command {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.environment.iter().map(|(name, _)| name).collect();
        out.debug_struct("Command")
            .field("program", &self.program)
            .field("environment", &names)
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

impl Command {
    /// Starts the program in its own process group. Returns the process and its output.
    pub fn start(&self) -> io::Result<(Process, Spool)> {
        let spool = Spool::new()?;
        let stderr = tempfile::tempfile()?;
        let (mark, folder) = (mark(), std::path::absolute(&self.folder)?);
        let mut command = tokio::process::Command::new(&self.program);
        command
            .args(&self.arguments)
            .current_dir(&folder)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            // Some programs trust this variable more than the system call.
            .env("PWD", &folder)
            .env(MARK, &mark)
            .kill_on_drop(true);
        // The guard has to be running before the program starts; a run without one still works.
        let guard = self.guard.as_ref().and_then(|guard| guard.start(&mark).ok());
        if let Some(size) = self.terminal {
            let (tree, stdin, copier) = terminal::start(command, mark, size, &spool, &stderr)?;
            let (stdin, copier) = (Some(stdin), Some(copier));
            return Ok((Process { tree, stdin, stderr, copier, guard }, spool));
        }
        command.stdin(self.stdin()?).stdout(spool.writer()?).stderr(stderr.try_clone()?);
        let mut tree = Tree::start(command, mark)?;
        let stdin = tree.stdin().map(spawn_writer);
        Ok((Process { tree, stdin, stderr, copier: None, guard }, spool))
    }

    fn stdin(&self) -> io::Result<Stdio> {
        Ok(match &self.input {
            Input::Closed => Stdio::null(),
            Input::Open => Stdio::piped(),
            Input::Text(text) => {
                let mut file = tempfile::tempfile()?;
                file.write_all(text.as_bytes())?;
                file.seek(SeekFrom::Start(0))?;
                Stdio::from(file)
            }
        })
    }
}

/// Spawns a task that writes to a program's input, which may be read slowly or never.
fn spawn_writer(
    mut stdin: impl AsyncWrite + Unpin + Send + 'static,
) -> mpsc::UnboundedSender<Vec<u8>> {
    let (pieces, mut taken) = mpsc::unbounded_channel::<Vec<u8>>();
    tokio::spawn(async move {
        while let Some(piece) = taken.recv().await {
            if stdin.write_all(&piece).await.is_err() || stdin.flush().await.is_err() {
                return;
            }
        }
    });
    pieces
}

/// A unique mark for a run.
fn mark() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = since.map_or(0, |since| since.as_nanos());
    format!("{}-{run}-{nanos:x}", std::process::id())
}

impl Process {
    /// Queues bytes for its standard input, without waiting until they are read.
    pub fn write(&mut self, bytes: Vec<u8>) {
        if let Some(stdin) = &self.stdin {
            // A closed input is not an error; the exit status is more informative.
            let _ = stdin.send(bytes);
        }
    }

    /// Closes its standard input.
    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Waits until it has exited.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.tree.ended().await
    }

    /// Sends a signal to it and its descendants. Returns whether the system supports the signal.
    pub fn signal(&mut self, signal: Signal) -> bool {
        self.tree.signal(signal)
    }

    /// Kills all remaining processes, and waits until all terminal output is in the spool. Returns
    /// how many processes remained.
    pub async fn sweep(&mut self) -> usize {
        let left = self.tree.sweep().await;
        if let Some(copier) = self.copier.take() {
            copier.done().await;
        }
        if let Some(mut guard) = self.guard.take() {
            // The guard may have exited already.
            let _ = guard.kill().await;
        }
        left
    }

    /// The last lines of its standard error.
    pub fn stderr_tail(&mut self) -> Option<String> {
        let length = self.stderr.metadata().ok()?.len();
        let from = length.saturating_sub(STDERR_KEPT);
        let mut tail = Vec::new();
        self.stderr.seek(SeekFrom::Start(from)).ok()?;
        io::Read::read_to_end(&mut self.stderr, &mut tail).ok()?;
        let text = String::from_utf8_lossy(&tail);
        // An incomplete first line is dropped.
        let text = match text.split_once('\n') {
            Some((_, whole)) if from > 0 => whole,
            _ => &*text,
        };
        Some(text.to_owned()).filter(|text| !text.trim().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_shown_without_its_value() {
        let environment = vec![("API_KEY".to_owned(), "hunter2".to_owned())];
        let shown = format!("{:?}", Command { environment, ..Command::default() });
        assert!(shown.contains("API_KEY") && !shown.contains("hunter2"), "{shown}");
    }
}
