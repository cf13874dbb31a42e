//! The processes of a run on Windows: those of a job.
//!
//! A process belongs to the job of whoever started it, also as an orphan, detached, or in a process
//! group of its own, and it cannot leave: the job does not let anybody break away. The program is
//! started suspended and runs when it is in the job, so that nobody is started before. The job ends
//! all of them when its last handle is closed. We have the only one, and the system closes it when we
//! are killed. Not in the job, as it was not started by anybody in it, is what a service starts on
//! request: a scheduled task, a process of WMI, a COM server.
//!
//! There are no signals. `Terminate` and `Kill` both end the whole job at once, with exit code 1, and
//! nobody in it is asked. `Interrupt` cannot be sent: Ctrl-C is an event of a console, no safe interface
//! sends it to others, and a program whose output is followed needs no console. An agent is
//! interrupted in its own way, by its protocol or the end of its input; one that has none of these
//! is ended. It does not hear the Ctrl-C of our own console either: it is we who decide what to do
//! about that.
//!
//! The process is in two jobs, one within the other, since no safe interface does all: one starts and
//! ends, and the other lists who is there.

use std::collections::HashSet;
use std::io;
use std::process::ExitStatus;
use std::time::Instant;

use process_wrap::tokio::{ChildWrapper, CommandWrap, JobObject, KillOnDrop};
use tokio::process::{ChildStdin, Command};
use win32job::Job;

use super::super::Signal;
use super::{GONE, LOOK};

/// The first thread does not run yet.
const CREATE_SUSPENDED: u32 = 0x0000_0004;
/// The Ctrl-C of our console is not for it.
const CREATE_NEW_PROCESS_GROUP: u32 = 0x0000_0200;

/// The processes of a run.
#[derive(Debug)]
pub(in crate::process) struct Tree {
    /// The program, and the job that can be ended.
    program: Box<dyn ChildWrapper>,
    root: Option<u32>,
    /// The job that knows its members.
    members: Job,
}

impl Tree {
    /// Starts a program in a job of its own.
    pub(in crate::process) fn start(command: Command, _mark: String) -> io::Result<Self> {
        let members = Job::create().map_err(io::Error::other)?;
        let mut command = CommandWrap::from(command);
        // Together they make a job that is ended when it is closed.
        command.wrap(KillOnDrop).wrap(JobObject);
        let program = command.spawn_with(|command| {
            // The wrapper has set the first flag, and sets it going; setting flags replaces them.
            command.creation_flags(CREATE_SUSPENDED | CREATE_NEW_PROCESS_GROUP);
            let program = command.spawn()?;
            let handle = program.raw_handle().ok_or(io::ErrorKind::NotFound)?;
            members.assign_process(handle as isize).map_err(io::Error::other)?;
            Ok(program)
        })?;
        Ok(Self { root: program.id(), program, members })
    }

    /// What the program reads, if it is for us to write.
    pub(in crate::process) fn stdin(&mut self) -> Option<ChildStdin> {
        self.program.stdin().take()
    }

    /// Waits for the end of the program.
    pub(in crate::process) async fn ended(&mut self) -> io::Result<ExitStatus> {
        // The wrapper itself would wait for the whole job.
        self.program.inner_mut().wait().await
    }

    /// Ends all of them, if that is what the signal means; gives whether it means anything here.
    pub(in crate::process) fn signal(&mut self, signal: Signal) -> bool {
        let ends = signal != Signal::Interrupt;
        if ends {
            self.end();
        }
        ends
    }

    /// Ends those who are left, until nobody is; gives how many there were. The program itself must
    /// have ended.
    pub(in crate::process) async fn sweep(&mut self) -> usize {
        let until = Instant::now() + GONE;
        let mut found = HashSet::new();
        loop {
            match self.members() {
                Some(members) if members.is_empty() => return found.len(),
                Some(members) => found.extend(members),
                // More than a list has room for: they are counted when there are fewer.
                None => {}
            }
            if Instant::now() > until {
                return found.len();
            }
            self.end();
            tokio::time::sleep(LOOK).await;
        }
    }

    fn end(&mut self) {
        // A job in which nobody is left needs no end.
        let _ = self.program.start_kill();
    }

    /// The members that are alive, but for the program itself.
    fn members(&self) -> Option<Vec<usize>> {
        let root = self.root.and_then(|root| usize::try_from(root).ok());
        let mut members = self.members.query_process_id_list().ok()?;
        members.retain(|member| Some(*member) != root);
        Some(members)
    }
}
