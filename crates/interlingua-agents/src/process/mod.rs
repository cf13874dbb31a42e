//! A process whose output is complete, whose end is seen, and that leaves nobody behind.
//!
//! What a program prints goes into a file that we follow. A reader that is slow, or a program that
//! exits before its pipe is drained, loses nothing that way: both lose output through a pipe, and
//! exit with 0. The files have no name, or are deleted by the system when they are closed, so that
//! nothing is left of them, however we end.

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

/// How many bytes of standard error are kept: the end of it.
const STDERR_KEPT: u64 = 64 << 10;

/// The variable by which the descendants of a run are known, wherever they have moved.
const MARK: &str = "INTERLINGUA_RUN";

/// What a program reads on its standard input.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Input {
    /// Nothing: it is closed from the start. Programs wait for ever on one that stays open.
    #[default]
    Closed,
    /// This text, and then its end.
    Text(String),
    /// What is written to it while the program runs.
    Open,
}

/// A program, and all that it is started with.
#[derive(Clone, Default)]
pub struct Command {
    /// The program: a name on the path, or a path.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables that are set for it, beside ours.
    pub environment: Vec<(String, String)>,
    /// The folder that it starts in.
    pub folder: PathBuf,
    /// What it reads.
    pub input: Input,
    /// The terminal that it is started at, for a program that has only a screen. Its input is then
    /// what is typed there.
    pub terminal: Option<Size>,
    /// Who ends it when we are killed.
    pub guard: Option<Guard>,
}

/// A program that was started.
#[derive(Debug)]
pub struct Process {
    /// The program, and all that it started.
    tree: Tree,
    /// What is still to be written to its standard input, which is closed after the last of it.
    stdin: Option<mpsc::UnboundedSender<Vec<u8>>>,
    stderr: File,
    /// Who copies what it shows at its terminal.
    copier: Option<Copier>,
    guard: Option<Child>,
}

/// A signal that asks a program to stop, or makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// What a terminal sends for Ctrl-C.
    Interrupt,
    /// The request to end.
    Terminate,
    /// The end.
    Kill,
}

/// Variables may be secrets: their names are shown, and nothing else.
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
    /// Starts the program in a process group of its own; gives it, and what it prints.
    pub fn start(&self) -> io::Result<(Process, Spool)> {
        let spool = Spool::new()?;
        let stderr = tempfile::tempfile()?;
        let (mark, folder) = (mark(), std::path::absolute(&self.folder)?);
        let mut command = tokio::process::Command::new(&self.program);
        command
            .args(&self.arguments)
            .current_dir(&folder)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            // Some programs believe this rather than the system.
            .env("PWD", &folder)
            .env(MARK, &mark)
            .kill_on_drop(true);
        // It has to be there before there is somebody to guard; without one, the run is as good.
        let guard = self.guard.as_ref().and_then(|guard| guard.start(&mark).ok());
        if let Some(size) = self.terminal {
            let (tree, stdin, copier) = terminal::start(command, mark, size, &spool, &stderr)?;
            let (stdin, copier) = (Some(stdin), Some(copier));
            return Ok((Process { tree, stdin, stderr, copier, guard }, spool));
        }
        command.stdin(self.stdin()?).stdout(spool.writer()?).stderr(stderr.try_clone()?);
        let mut tree = Tree::start(command, mark)?;
        let stdin = tree.stdin().map(written_to);
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

/// Writes what comes to a program that may be slow to read it, or never read it.
fn written_to(
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

/// A word that no other run has.
fn mark() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = since.map_or(0, |since| since.as_nanos());
    format!("{}-{run}-{nanos:x}", std::process::id())
}

impl Process {
    /// Writes to its standard input, when it reads; nobody waits for that.
    pub fn write(&mut self, bytes: Vec<u8>) {
        if let Some(stdin) = &self.stdin {
            // What nobody reads any more is no error: the end of the program tells more.
            let _ = stdin.send(bytes);
        }
    }

    /// Closes its standard input.
    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Waits for its end.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.tree.ended().await
    }

    /// Sends a signal to it and to all that it started; gives whether this system can.
    pub fn signal(&mut self, signal: Signal) -> bool {
        self.tree.signal(signal)
    }

    /// Makes sure that nobody is left of it, and that all it showed is in the spool; gives how many
    /// were left.
    pub async fn sweep(&mut self) -> usize {
        let left = self.tree.sweep().await;
        if let Some(copier) = self.copier.take() {
            copier.done().await;
        }
        if let Some(mut guard) = self.guard.take() {
            // One that has ended needs no end.
            let _ = guard.kill().await;
        }
        left
    }

    /// The last lines that it wrote to standard error.
    pub fn stderr_tail(&mut self) -> Option<String> {
        let length = self.stderr.metadata().ok()?.len();
        let from = length.saturating_sub(STDERR_KEPT);
        let mut tail = Vec::new();
        self.stderr.seek(SeekFrom::Start(from)).ok()?;
        io::Read::read_to_end(&mut self.stderr, &mut tail).ok()?;
        let text = String::from_utf8_lossy(&tail);
        // What was cut off in the middle of a line is no line.
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
