//! Processes with complete output, an observed end, and no survivors.
//!
//! A program prints into a file that is followed. Through a pipe, a slow reader or a program that
//! exits before its pipe is drained would lose output, and the exit code would still be 0; a file
//! loses nothing. The file is unnamed, or deleted by the system when it is closed, so nothing of it
//! is left however the run ends. Only the end of standard error is kept.

mod follow;
mod guard;
mod isolation;
mod joined;
mod server;
mod spool;
mod stderr;
mod terminal;
mod tree;

use std::ffi::OsString;
use std::io::{self, PipeWriter, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

pub use guard::Guard;
pub use interlingua_guard::{Isolation, Signal, guard, is_hangup_ignored};
pub use joined::Joined;
pub use server::Server;
use server::{Bridge, Password};
pub use spool::Spool;
use stderr::Stderr;
use terminal::Copier;
pub use terminal::Size;
use tree::Tree;
pub use tree::adopt_orphans;

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
    /// Inherited environment variables that the program must not see.
    pub without: Vec<String>,
    /// The working folder.
    pub folder: PathBuf,
    /// Its standard input.
    pub input: Input,
    /// The size of the pseudoterminal, for a program that has only a screen. Its input is then what
    /// is typed there.
    pub terminal: Option<Size>,
    /// Its protocol, if it is HTTP instead of its standard streams. What is written to it are then
    /// requests.
    pub server: Option<Server>,
    /// How its descendants are kept together.
    pub isolation: Isolation,
    /// The guard that keeps them together. Without one, only [`Isolation::None`] is available.
    pub guard: Option<Guard>,
}

/// A started program.
#[derive(Debug)]
pub struct Process {
    /// The program and its descendants.
    tree: Tree,
    /// The queue for its standard input, which is closed once the queue is drained.
    stdin: Option<mpsc::UnboundedSender<Vec<u8>>>,
    stderr: Stderr,
    /// The task that copies the output of the pseudoterminal.
    copier: Option<Copier>,
    /// The task that turns the HTTP of a server into lines.
    bridge: Option<Bridge>,
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
    /// The value of an environment variable, as the program will see it.
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        let set = self.environment.iter().rev().find(|(set, _)| set == name);
        set.map(|(_, value)| OsString::from(value)).or_else(|| std::env::var_os(name))
    }

    /// Starts the program, with the first of the mechanisms of isolation that is available. Returns
    /// the process and its output.
    pub async fn start(&self) -> io::Result<(Process, Spool)> {
        let spool = Spool::new().map_err(temporary)?;
        let (stderr, writer) = Stderr::open()?;
        let password = self.server.as_ref().map(|_| Password::new()).transpose()?;
        let streams = Streams { spool: &spool, stderr: writer, joined: None, password };
        let (tree, stdin, copier) = self.start_available(&streams).await?;
        let password = streams.password;
        let process = Process { tree, stdin, stderr, copier, bridge: None };
        match (&self.server, password) {
            (Some(server), Some(password)) => process.bridged(server, password, spool),
            _ => Ok((process, spool)),
        }
    }

    /// Starts a program without a terminal and without a server, whose standard output and standard
    /// error are one pipe, so that they keep their order. A program that prints faster than its
    /// output is taken has to wait.
    pub async fn start_joined(&self) -> io::Result<(Process, Joined)> {
        let spool = Spool::new().map_err(temporary)?;
        let (stderr, _) = Stderr::open()?;
        let (joined, writer) = Joined::open()?;
        let streams = Streams {
            spool: &spool,
            stderr: writer.try_clone()?,
            joined: Some(writer),
            password: None,
        };
        let (tree, stdin, copier) = self.start_available(&streams).await?;
        Ok((Process { tree, stdin, stderr, copier, bridge: None }, joined))
    }

    /// Starts the program with the first mechanism that is available.
    async fn start_available(&self, streams: &Streams<'_>) -> io::Result<Started> {
        let mut unavailable = None;
        for &isolation in isolation::candidates(self.isolation) {
            match self.start_isolated(isolation, streams).await {
                Err(why) if why.kind() == io::ErrorKind::Unsupported => unavailable = Some(why),
                started => return started,
            }
        }
        Err(unavailable.unwrap_or_else(|| io::ErrorKind::Unsupported.into()))
    }

    /// Starts the program with one mechanism; `Unsupported` if it is not available.
    async fn start_isolated(
        &self,
        isolation: Isolation,
        streams: &Streams<'_>,
    ) -> io::Result<Started> {
        if isolation == Isolation::None {
            return self.start_directly(streams);
        }
        #[cfg(target_os = "linux")]
        if let Some(guard) = &self.guard {
            return self.start_guarded(guard, isolation, streams).await;
        }
        let why = match cfg!(target_os = "linux") {
            true => "no program was named that could guard the run",
            false => "it exists only on Linux",
        };
        Err(isolation::unavailable(isolation, why))
    }

    fn start_directly(&self, streams: &Streams<'_>) -> io::Result<Started> {
        let mark = mark();
        let mut command = tokio::process::Command::new(&self.program);
        command.args(&self.arguments).kill_on_drop(true);
        self.prepare(&mut command, &mark)?;
        if let Some(size) = self.terminal {
            let (tree, stdin, copier) = terminal::start(command, mark, size, streams)?;
            return Ok((tree, Some(stdin), Some(copier)));
        }
        self.redirect(&mut command, streams)?;
        let mut tree = Tree::start(command, mark)?;
        let stdin = tree.stdin().map(spawn_writer);
        Ok((tree, stdin, None))
    }

    #[cfg(target_os = "linux")]
    async fn start_guarded(
        &self,
        guard: &Guard,
        isolation: Isolation,
        streams: &Streams<'_>,
    ) -> io::Result<Started> {
        use guard::Channel;
        use interlingua_guard::Terminal;
        let terminal = if self.terminal.is_some() { Terminal::Yes } else { Terminal::No };
        let program = (self.program.clone().into_os_string(), self.arguments.clone());
        let (mut channel, arguments) = Channel::open(isolation, terminal, Some(program))?;
        // It is not killed when it is dropped, because it ends the others when its channel closes.
        let mut command = tokio::process::Command::new(&guard.program);
        command.args(&guard.arguments).args(arguments);
        let mark = mark();
        self.prepare(&mut command, &mark)?;
        let mut copied = None;
        if let Some(size) = self.terminal {
            let (pty, pts) = terminal::open(size)?;
            terminal::redirect(&mut command, &pts, streams)?;
            copied = Some(pty);
        } else {
            self.redirect(&mut command, streams)?;
            command.process_group(0);
        }
        let not_guarded = |problem| {
            isolation::unavailable(isolation, &format!("{}: {problem}", guard.program.display()))
        };
        let mut child = command.spawn().map_err(not_guarded)?;
        // The command holds the agent's end of a terminal, which would never be closed.
        drop(command);
        // Waiting for the guard, as is done next, would close it.
        let stdin = child.stdin.take();
        guard::started(channel.first_report(&mut child, isolation).await?, isolation)?;
        let tree = Tree::guarded(child, channel, mark);
        let (stdin, copier) = match copied {
            Some(pty) => {
                let (stdin, copier) = terminal::copy(pty, streams)?;
                (Some(stdin), Some(copier))
            }
            None => (stdin.map(spawn_writer), None),
        };
        Ok((tree, stdin, copier))
    }

    /// Sets the environment and the working folder.
    fn prepare(&self, command: &mut tokio::process::Command, mark: &str) -> io::Result<()> {
        let folder = std::path::absolute(&self.folder)?;
        for name in crate::NOT_INHERITED {
            command.env_remove(name);
        }
        for name in &self.without {
            command.env_remove(name);
        }
        command
            .current_dir(&folder)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            // Some programs trust this variable more than the system call.
            .env("PWD", &folder)
            .env(MARK, mark);
        Ok(())
    }

    fn redirect(
        &self,
        command: &mut tokio::process::Command,
        streams: &Streams<'_>,
    ) -> io::Result<()> {
        command.stdin(self.stdin()?);
        match &streams.joined {
            Some(joined) => command.stdout(joined.try_clone()?),
            None => command.stdout(streams.spool.writer()?),
        };
        command.stderr(streams.stderr.try_clone()?);
        if let (Some(server), Some(password)) = (&self.server, &streams.password) {
            password.set(command, server.password_variable);
        }
        Ok(())
    }

    fn stdin(&self) -> io::Result<Stdio> {
        Ok(match &self.input {
            Input::Closed => Stdio::null(),
            Input::Open => Stdio::piped(),
            Input::Text(text) => {
                let mut file = tempfile::tempfile().map_err(temporary)?;
                file.write_all(text.as_bytes()).map_err(temporary)?;
                file.seek(SeekFrom::Start(0))?;
                Stdio::from(file)
            }
        })
    }
}

/// Names the temporary folder as the cause of an error.
fn temporary(problem: io::Error) -> io::Error {
    let folder = std::env::temp_dir();
    io::Error::other(format!(
        "the temporary folder {} cannot be used: {problem}; set TMPDIR to another one",
        folder.display()
    ))
}

/// Where a program prints.
struct Streams<'a> {
    spool: &'a Spool,
    stderr: PipeWriter,
    /// The pipe that takes the place of the spool.
    joined: Option<PipeWriter>,
    /// The password of a server.
    password: Option<Password>,
}

/// A started program, the queue for its standard input, and the task that copies its terminal.
type Started = (Tree, Option<mpsc::UnboundedSender<Vec<u8>>>, Option<Copier>);

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

    /// Closes its standard input. A server, which has none, receives no further requests.
    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Waits until it has exited. A server whose output cannot be written is killed.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        let Some(bridge) = &mut self.bridge else { return self.tree.ended().await };
        tokio::select! {
            biased;
            status = self.tree.ended() => return status,
            () = bridge.failed() => {}
        }
        self.tree.signal(Signal::Kill);
        self.tree.ended().await
    }

    /// Puts a bridge between a server and the output that is read.
    fn bridged(
        mut self,
        server: &Server,
        password: Password,
        stdout: Spool,
    ) -> io::Result<(Self, Spool)> {
        let spool = Spool::new().map_err(temporary)?;
        let (bridge, requests) = Bridge::start(server.clone(), password, stdout, spool.writer()?)?;
        (self.stdin, self.bridge) = (Some(requests), Some(bridge));
        Ok((self, spool))
    }

    /// Sends a signal to it and its descendants. Returns whether the system supports the signal.
    pub fn signal(&mut self, signal: Signal) -> bool {
        self.tree.signal(signal)
    }

    /// Kills all remaining processes, and waits until all that they printed was copied. Returns how
    /// many processes remained.
    pub async fn sweep(&mut self) -> usize {
        let left = self.tree.sweep().await;
        if let Some(copier) = self.copier.take() {
            copier.done().await;
        }
        if let Some(bridge) = self.bridge.take() {
            bridge.done().await;
        }
        self.stderr.ended().await;
        left
    }

    /// The last lines of its standard error.
    pub fn stderr_tail(&self) -> Option<String> {
        self.stderr.tail()
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
