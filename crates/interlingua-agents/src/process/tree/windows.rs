//! The processes of a run on Windows: the members of a job.
//!
//! A process belongs to the job of the process that started it, even as an orphan, detached, or in
//! its own process group, and it cannot leave, because the job does not permit breaking away. The
//! program is started suspended and resumed once it is in the job, so it cannot start anything
//! before. The job ends all members when its last handle is closed. We hold the only handle, and
//! the system closes it when we are killed. Processes that a service starts on request are not in
//! the job, because no member started them: a scheduled task, a WMI process, a COM server.
//!
//! There are no signals. `Terminate` and `Kill` both end the whole job at once, with exit code 1,
//! without asking its members. `Interrupt` cannot be sent: Ctrl-C is a console event, no safe
//! interface sends it to other processes, and a program whose output is followed needs no console.
//! An agent is interrupted in its own way, through its protocol or the end of its input; an agent
//! that has neither is ended. The Ctrl-C of our own console does not reach it either, because the
//! supervising process decides how to handle it.
//!
//! The process is in two nested jobs, since no safe interface does everything: one starts and ends
//! the members, the other lists them.

use std::collections::HashSet;
use std::io;
use std::process::ExitStatus;
use std::time::Instant;

use interlingua_guard::{POLL_INTERVAL, SWEEP_TIMEOUT};
use process_wrap::tokio::{ChildWrapper, CommandWrap, JobObject, KillOnDrop};
use tokio::process::{ChildStdin, Command};
use win32job::Job;

use super::super::Signal;

/// The first thread is created suspended.
const CREATE_SUSPENDED: u32 = 0x0000_0004;
/// The Ctrl-C of our console is not delivered to the process.
const CREATE_NEW_PROCESS_GROUP: u32 = 0x0000_0200;

/// The processes of a run.
#[derive(Debug)]
pub(in crate::process) struct Tree {
    /// The program, and the job that can be ended.
    program: Box<dyn ChildWrapper>,
    root: Option<u32>,
    /// The job that lists its members.
    members: Job,
}

impl Tree {
    /// Starts a program in its own job.
    pub(in crate::process) fn start(command: Command, _mark: String) -> io::Result<Self> {
        let members = Job::create().map_err(io::Error::other)?;
        let mut command = CommandWrap::from(command);
        // Together they create a job that is ended when it is closed.
        command.wrap(KillOnDrop).wrap(JobObject);
        let program = command.spawn_with(|command| {
            // Setting flags replaces those of the wrapper, so its `CREATE_SUSPENDED` is repeated;
            // the wrapper resumes the program.
            command.creation_flags(CREATE_SUSPENDED | CREATE_NEW_PROCESS_GROUP);
            let program = command.spawn()?;
            let handle = program.raw_handle().ok_or(io::ErrorKind::NotFound)?;
            members.assign_process(handle as isize).map_err(io::Error::other)?;
            Ok(program)
        })?;
        Ok(Self { root: program.id(), program, members })
    }

    /// The program's standard input, if it is a pipe.
    pub(in crate::process) fn stdin(&mut self) -> Option<ChildStdin> {
        self.program.stdin().take()
    }

    /// Waits until the program has exited.
    pub(in crate::process) async fn ended(&mut self) -> io::Result<ExitStatus> {
        // The wrapper's own method would wait for the whole job.
        self.program.inner_mut().wait().await
    }

    /// Ends the job if the signal is `Terminate` or `Kill`. Returns whether the signal is
    /// supported.
    pub(in crate::process) fn signal(&mut self, signal: Signal) -> bool {
        let ends = matches!(signal, Signal::Terminate | Signal::Kill);
        if ends {
            self.end();
        }
        ends
    }

    /// Ends the remaining processes until there are none, and returns how many there were. The
    /// program itself must have exited.
    pub(in crate::process) async fn sweep(&mut self) -> usize {
        let until = Instant::now() + SWEEP_TIMEOUT;
        let mut found = HashSet::new();
        loop {
            match self.members() {
                Some(members) if members.is_empty() => return found.len(),
                Some(members) => found.extend(members),
                // There are more members than the list can hold; they are counted once there are
                // fewer.
                None => {}
            }
            if Instant::now() > until {
                return found.len();
            }
            self.end();
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    fn end(&mut self) {
        // An empty job does not need to be ended.
        let _ = self.program.start_kill();
    }

    /// The live members, without the program itself.
    fn members(&self) -> Option<Vec<usize>> {
        let root = self.root.and_then(|root| usize::try_from(root).ok());
        let mut members = self.members.query_process_id_list().ok()?;
        members.retain(|member| Some(*member) != root);
        Some(members)
    }
}
