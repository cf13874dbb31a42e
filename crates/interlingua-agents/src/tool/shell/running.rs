//! A command with its processes, from its start to its certain end.

use std::io;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::output::Output;
use crate::process::{Command, Joined, Process, Signal};

/// How long a command may take to exit after it was asked to.
const GRACE: Duration = Duration::from_secs(2);

/// How long to wait for killed processes, and for output that they left in the pipe.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// A command that runs. If it is dropped, all its processes end.
#[derive(Debug)]
pub(super) struct Running {
    process: Owned,
    joined: Option<Joined>,
    output: Output,
}

/// How a command ended.
#[derive(Debug)]
pub(super) struct End {
    pub(super) output: Output,
    /// The exit code; 128 and the number of the signal if one ended the command, as in shells.
    pub(super) code: Option<i64>,
    signal: Option<i32>,
    pub(super) timed_out: bool,
    /// How many processes it left behind. They have ended.
    pub(super) survivors: usize,
}

impl End {
    /// What is unusual about the end.
    pub(super) fn description(&self) -> Option<String> {
        match (self.signal, self.code) {
            (Some(signal), _) => Some(format!("The command was killed by signal {signal}")),
            (None, Some(0)) => None,
            (None, Some(code)) => Some(format!("Exit code {code}")),
            (None, None) => Some("The exit code of the command is not known".to_owned()),
        }
    }
}

impl Running {
    pub(super) async fn start(
        command: &Command,
        output: Output,
        cleanups: &Cleanups,
    ) -> io::Result<Self> {
        let (process, joined) = command.start_joined().await?;
        let process = Owned { process: Some(process), cleanups: cleanups.clone() };
        Ok(Self { process, joined: Some(joined), output })
    }

    /// Waits for the end; `printed` receives the output.
    pub(super) async fn finish(
        mut self,
        limit: Duration,
        printed: &mut (dyn FnMut(&str) + Send),
    ) -> End {
        let exited = self.follow(Instant::now() + limit, printed).await;
        match exited {
            Some(status) => self.ended(Some(status), false, printed).await,
            None => self.end(true, printed).await,
        }
    }

    /// Passes output on until the command has exited, or `None` when the time has come.
    pub(super) async fn follow(
        &mut self,
        until: Instant,
        printed: &mut (dyn FnMut(&str) + Send),
    ) -> Option<io::Result<ExitStatus>> {
        let Self { process, joined, output } = self;
        let process = process.process.as_mut()?;
        loop {
            let next = async {
                match joined.as_mut() {
                    Some(joined) => joined.next().await,
                    None => std::future::pending().await,
                }
            };
            // In this order, so that a command that prints without end cannot delay its end.
            tokio::select! {
                biased;
                () = sleep_until(until) => return None,
                status = process.ended() => return Some(status),
                piece = next => match piece {
                    Some(piece) => printed(&output.push(&piece)),
                    None => *joined = None,
                },
            }
        }
    }

    /// Ends the command: asks it to exit, and kills it.
    pub(super) async fn end(
        mut self,
        timed_out: bool,
        printed: &mut (dyn FnMut(&str) + Send),
    ) -> End {
        let mut exited = None;
        for (signal, patience) in [(Signal::Terminate, GRACE), (Signal::Kill, KILL_TIMEOUT)] {
            if let Some(process) = &mut self.process.process {
                process.signal(signal);
            }
            exited = self.follow(Instant::now() + patience, printed).await;
            if exited.is_some() {
                break;
            }
        }
        self.ended(exited, timed_out, printed).await
    }

    /// Ends what is left of an exited command, and takes the rest of its output.
    pub(super) async fn ended(
        mut self,
        status: Option<io::Result<ExitStatus>>,
        timed_out: bool,
        printed: &mut (dyn FnMut(&str) + Send),
    ) -> End {
        let mut survivors = 0;
        if let Some(process) = &mut self.process.process {
            survivors = process.sweep().await;
        }
        // Nothing is left to end.
        self.process.process = None;
        let until = Instant::now() + DRAIN_TIMEOUT;
        while let Some(joined) = &mut self.joined {
            match timeout_at(until, joined.next()).await {
                Ok(Some(piece)) => printed(&self.output.push(&piece)),
                Ok(None) | Err(_) => self.joined = None,
            }
        }
        let rest = self.output.finish();
        if !rest.is_empty() {
            printed(&rest);
        }
        let status = status.and_then(Result::ok);
        let signal = status.and_then(signal);
        let code = signal.map(|signal| 128 + signal).or_else(|| status?.code()).map(i64::from);
        End { output: self.output, code, signal, timed_out, survivors }
    }
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal(_status: ExitStatus) -> Option<i32> {
    None
}

/// A process that ends, with all others of its command, when it is dropped.
#[derive(Debug)]
struct Owned {
    process: Option<Process>,
    cleanups: Cleanups,
}

impl Drop for Owned {
    fn drop(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        process.signal(Signal::Kill);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let task = runtime.spawn(async move {
            // A process that cannot be killed is not waited for any longer.
            let _ = tokio::time::timeout(KILL_TIMEOUT, process.ended()).await;
            process.sweep().await;
        });
        self.cleanups.add(task);
    }
}

/// The tasks that end the processes of cancelled commands.
#[derive(Debug, Clone, Default)]
pub(super) struct Cleanups {
    tasks: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Cleanups {
    fn add(&self, task: JoinHandle<()>) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.retain(|task| !task.is_finished());
        tasks.push(task);
    }

    /// Waits until all of them are done.
    pub(super) async fn done(&self) {
        let tasks: Vec<_> = {
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            tasks.drain(..).collect()
        };
        for task in tasks {
            // A task that broke has nothing left to end.
            let _ = task.await;
        }
    }
}
