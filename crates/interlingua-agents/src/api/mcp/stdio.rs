//! An MCP server that is a process.
//!
//! It is started like any other process of ours: guarded where a guard is named, with its standard
//! error kept for error messages, and without variables that contain our keys. Its output is
//! followed in a file, so that nothing is lost if it exits. It ends when its input is closed, or is
//! ended soon after, together with all processes that it has started; also if this session is
//! dropped.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::{oneshot, watch};

use super::config::McpTransport;
use crate::agent::find_on_path;
use crate::process::{Command, Input, Process, Signal, Spool};
use crate::tool::Settings;

/// The size of the pipe between the process and the protocol.
const PIPE: usize = 64 << 10;

/// How long a server may take to exit after its input was closed, and again after each signal.
const GRACE: Duration = Duration::from_secs(1);

/// A running server.
#[derive(Debug)]
pub(super) struct ServerProcess {
    stop: watch::Sender<bool>,
    ended: watch::Receiver<Option<Exit>>,
}

/// How a server has ended.
#[derive(Debug, Clone, Default)]
pub(super) struct Exit {
    /// The last lines of its standard error.
    pub(super) stderr: Option<String>,
}

impl ServerProcess {
    /// Starts a server. Returns its standard streams.
    pub(super) async fn start(
        transport: &McpTransport,
        settings: &Settings,
    ) -> io::Result<(Self, DuplexStream)> {
        let McpTransport::Stdio { command, arguments, environment, folder } = transport else {
            return Err(io::Error::other("it is not a process"));
        };
        let folder = folder.clone().unwrap_or_else(|| settings.folder.clone());
        let command = Command {
            program: program(command, &folder),
            arguments: arguments.iter().map(Into::into).collect(),
            environment: environment.clone(),
            without: settings.hidden_variables.clone(),
            folder,
            input: Input::Open,
            isolation: settings.isolation,
            guard: settings.guard.clone(),
            ..Command::default()
        };
        let (process, spool) = command.start().await?;
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let (stop, stopped) = watch::channel(false);
        let (end, ended) = watch::channel(None);
        let (input, output) = tokio::io::split(ours);
        let (exited, exit) = oneshot::channel();
        tokio::spawn(copy_output(spool, output, exit));
        tokio::spawn(async move {
            let exit = serve(process, input, stopped, exited).await;
            end.send_replace(Some(exit));
        });
        Ok((Self { stop, ended }, theirs))
    }

    /// Asks the server to end.
    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits until the server has ended with all its processes.
    pub(super) async fn ended(&self) -> Exit {
        let mut ended = self.ended.clone();
        let exit = ended.wait_for(Option::is_some).await;
        exit.ok().and_then(|exit| exit.clone()).unwrap_or_default()
    }
}

/// The program of a command: a path below the working folder, or a name.
fn program(command: &str, folder: &Path) -> PathBuf {
    if command.contains(std::path::is_separator) {
        return folder.join(command);
    }
    // On Windows, many are scripts, whose ending the system does not add.
    let found = if cfg!(windows) { find_on_path(command) } else { None };
    found.unwrap_or_else(|| command.into())
}

/// Passes on what is sent to a server until it ends, or is stopped.
async fn serve(
    mut process: Process,
    mut input: ReadHalf<DuplexStream>,
    mut stopped: watch::Receiver<bool>,
    exited: oneshot::Sender<()>,
) -> Exit {
    let mut buffer = vec![0; PIPE];
    let is_running = loop {
        tokio::select! {
            biased;
            // An error means that no one is interested in the server any more.
            _ = stopped.wait_for(|stopped| *stopped) => break true,
            _ = process.ended() => break false,
            read = input.read(&mut buffer) => match read {
                Ok(length @ 1..) => process.write(buffer.get(..length).unwrap_or_default().to_vec()),
                Ok(_) | Err(_) => break true,
            },
        }
    };
    if is_running {
        end(&mut process).await;
    }
    process.sweep().await;
    // Only now is everything printed that will be.
    let _ = exited.send(());
    Exit { stderr: process.stderr_tail() }
}

/// Ends a process: by the end of its input, as the protocol asks for, or else by signals.
async fn end(process: &mut Process) {
    process.close_input();
    for signal in [Signal::Terminate, Signal::Kill] {
        if tokio::time::timeout(GRACE, process.ended()).await.is_ok() {
            return;
        }
        process.signal(signal);
    }
    // A process that the kernel cannot end, for example one that waits for a lost file system, must
    // not keep the session from ending.
    let _ = tokio::time::timeout(GRACE, process.ended()).await;
}

/// Copies the output of a server, to its end.
async fn copy_output(
    mut spool: Spool,
    mut output: WriteHalf<DuplexStream>,
    mut exit: oneshot::Receiver<()>,
) {
    let mut has_exited = false;
    loop {
        match spool.read() {
            Ok([]) if has_exited => break,
            Ok([]) => tokio::select! {
                () = spool.grown() => {}
                _ = &mut exit => has_exited = true,
            },
            Ok(chunk) => {
                if output.write_all(chunk).await.is_err() {
                    break;
                }
            }
            Err(_) => break,
        }
    }
    // The protocol learns that there is no more.
    let _ = output.shutdown().await;
}
