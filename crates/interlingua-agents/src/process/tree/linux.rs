//! The processes of a run on Linux.
//!
//! If the program was started by a guard, the guard knows its processes. Otherwise they are those
//! that descend from the program, or carry the mark of the run in their environment. A process that
//! cleared its environment is found while its parents live, and not as an orphan.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Instant;

use interlingua_guard::processes::{self, pid};
use interlingua_guard::{POLL_INTERVAL, Report, SWEEP_TIMEOUT};
use rustix::process::{WaitOptions, kill_process, kill_process_group, waitpid};
use tokio::process::{Child, ChildStdin};

use super::super::guard::Channel;
use super::super::{MARK, Signal};

/// The processes of a run.
#[derive(Debug)]
pub(in crate::process) struct Tree {
    /// The program, or its guard.
    program: Child,
    control: Control,
}

/// Who knows the processes.
#[derive(Debug)]
enum Control {
    Members(Members),
    Guard {
        channel: Channel,
        /// How many processes the program left behind, according to its guard. They have ended.
        orphans: Option<usize>,
        /// Those that are found if both processes of the guard were killed.
        members: Members,
    },
}

/// The processes of a program that was started without a guard.
#[derive(Debug)]
struct Members {
    /// The program, while it is alive.
    root: Option<u32>,
    mark: String,
    /// All members seen so far. Those that are reparented to us stay zombies until they are reaped.
    seen: HashSet<u32>,
}

/// Makes this process the parent (subreaper) of orphaned descendants. A program that runs agents
/// should call it once, so that commands that outlive their agent are found and reaped.
pub fn adopt_orphans() {
    // If it fails, orphans are still found by their mark.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

impl Tree {
    /// Starts a program in its own process group.
    pub(in crate::process) fn start(
        mut command: tokio::process::Command,
        mark: String,
    ) -> io::Result<Self> {
        command.process_group(0);
        Ok(Self::of(command.spawn()?, mark))
    }

    /// Wraps a program that was started as the leader of its process group.
    pub(in crate::process) fn of(program: Child, mark: String) -> Self {
        let members = Members { root: program.id(), mark, seen: HashSet::new() };
        Self { program, control: Control::Members(members) }
    }

    /// Wraps the guard of a program.
    pub(in crate::process) fn guarded(guard: Child, channel: Channel, mark: String) -> Self {
        let members = Members { root: None, mark, seen: HashSet::new() };
        Self { program: guard, control: Control::Guard { channel, orphans: None, members } }
    }

    /// The program's standard input, if it is a pipe.
    pub(in crate::process) fn stdin(&mut self) -> Option<ChildStdin> {
        self.program.stdin.take()
    }

    /// Waits until the program has exited. A guard exits after all processes of the run have ended.
    pub(in crate::process) async fn ended(&mut self) -> io::Result<ExitStatus> {
        let status = self.program.wait().await?;
        match &mut self.control {
            // Its process id, and that of its group, may belong to another program from now on.
            Control::Members(members) => members.root = None,
            Control::Guard { channel, orphans, .. } => {
                if let Some(Report::Ended { status, orphans: left }) = channel.last_report().await {
                    *orphans = Some(left);
                    return Ok(ExitStatus::from_raw(status));
                }
            }
        }
        // A guard could not report if both of its processes were killed.
        Ok(status)
    }

    pub(in crate::process) fn signal(&mut self, signal: Signal) -> bool {
        match &mut self.control {
            Control::Members(members) => members.signal(signal),
            Control::Guard { channel, .. } => channel.order(signal),
        }
        true
    }

    /// Kills the remaining processes until there are none, and returns how many there were. The
    /// program itself must have exited.
    pub(in crate::process) async fn sweep(&mut self) -> usize {
        match &mut self.control {
            Control::Members(members) => members.sweep().await,
            Control::Guard { orphans: Some(orphans), .. } => *orphans,
            Control::Guard { members, .. } => members.sweep().await,
        }
    }
}

impl Members {
    /// Sends a signal to the program's group, and to all members outside of it.
    fn signal(&mut self, signal: Signal) {
        let root = self.root.and_then(pid);
        if let Some(root) = root {
            // The group may have ended already.
            let _ = kill_process_group(root, signal.number());
        }
        let in_group = |member: &processes::Process| {
            root.is_some_and(|root| member.group == root.as_raw_pid())
        };
        let members = self.members();
        self.seen.extend(members.iter().map(|member| member.pid));
        for member in members.iter().filter(|member| !in_group(member)) {
            if let Some(pid) = pid(member.pid) {
                let _ = kill_process(pid, signal.number());
            }
        }
    }

    async fn sweep(&mut self) -> usize {
        self.root = None;
        let until = Instant::now() + SWEEP_TIMEOUT;
        let mut found = HashSet::new();
        loop {
            let members = self.members();
            self.seen.extend(members.iter().map(|member| member.pid));
            if members.is_empty() || Instant::now() > until {
                for pid in self.seen.drain().filter_map(pid) {
                    let _ = waitpid(Some(pid), WaitOptions::NOHANG);
                }
                return found.len();
            }
            for member in members {
                found.insert(member.pid);
                let Some(pid) = pid(member.pid) else { continue };
                let _ = kill_process(pid, Signal::Kill.number());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// The live members, without the program itself.
    fn members(&self) -> Vec<processes::Process> {
        let all = processes::all();
        let is_member = |process: &&processes::Process| {
            let descends = self.root.is_some_and(|root| processes::descends(&all, process, root));
            Some(process.pid) != self.root && (descends || self.has_mark(process.pid))
        };
        all.values().filter(is_member).copied().collect()
    }

    fn has_mark(&self, pid: u32) -> bool {
        let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return false };
        let mark = format!("{MARK}={}", self.mark);
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    }
}
