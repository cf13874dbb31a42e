//! The guard while the agent runs: it reaps its children, carries out orders, passes on signals,
//! and at the end kills what is left.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::time::Instant;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group};

use crate::caught::Caught;
use crate::cgroup::Cgroup;
use crate::channel::{Ends, Report};
use crate::ignored::is_hangup_ignored;
use crate::processes::{descendants, pid};
use crate::setup::{Setup, Stage, Terminal};
use crate::watcher::{self, PARENT_ENDED};
use crate::{POLL_INTERVAL, SWEEP_TIMEOUT};

/// The exit code of a guard whose agent could not be started, as that of shells.
const NOT_STARTED: u8 = 127;

/// Added to the number of the signal that ended the agent, as shells do.
const ENDED_BY_SIGNAL: i32 = 128;

/// How the processes of the run are found.
#[derive(Debug)]
pub(crate) enum Members {
    /// All other processes of the PID namespace, of which this process is the first.
    Namespace,
    /// The members of the cgroup, and all descendants of this process.
    Cgroup(Cgroup),
    /// All descendants of this process.
    Tree,
}

/// Starts the agent, and supervises it until all processes of the run have ended. Returns the
/// agent's exit code. An error means that nothing was started.
pub(crate) fn run(setup: &Setup, ends: &Ends, members: Members) -> io::Result<u8> {
    if !matches!(members, Members::Namespace) {
        let this = rustix::process::getpid();
        rustix::process::set_child_subreaper(Some(this))?;
    }
    let is_watched = setup.stage == Stage::Supervisor;
    let mut caught = catch_signals(if is_watched { &[PARENT_ENDED] } else { &[] })?;
    if is_watched {
        watcher::notice_end_of_parent(setup.parent)?;
    }
    let agent = match start_agent(setup, &members)? {
        Start::Started(agent) => agent,
        Start::Failed(report) => {
            ends.report(&report)?;
            return Ok(NOT_STARTED);
        }
        Start::NoProgram => {
            ends.report(&Report::Started)?;
            return Ok(0);
        }
    };
    let mut run = Run { members, agent, terminal: setup.terminal, status: None };
    // A failure of the channel means that the process at its other end is gone, which is
    // noticed below.
    let _ = ends.report(&Report::Started);
    let _ = release_standard_streams();
    while run.status.is_none() {
        // Nothing can be supervised without waiting.
        let Ok(happened) = caught.wait(Some(&ends.orders)) else { break };
        let is_alone = happened.is_alone || happened.signals.contains(&PARENT_ENDED);
        if happened.signals.contains(&Signal::CHILD) {
            run.reap();
        }
        happened.orders.into_iter().for_each(|order| run.carry_out(order));
        happened.signals.into_iter().for_each(|signal| run.pass_on(signal));
        if is_alone {
            break;
        }
    }
    let orphans = run.end_all();
    if let Some(status) = run.status {
        let _ = ends.report(&Report::Ended { status: status.into_raw(), orphans });
    }
    Ok(run.status.map_or(1, exit_code))
}

/// The result of starting the agent.
enum Start {
    Started(Pid),
    Failed(Report),
    NoProgram,
}

fn start_agent(setup: &Setup, members: &Members) -> io::Result<Start> {
    let Some((program, arguments)) = &setup.program else { return Ok(Start::NoProgram) };
    let mut command = Command::new(program);
    command.args(arguments);
    match setup.terminal {
        Terminal::Yes => {
            rustix::process::setsid()?;
            rustix::process::ioctl_tiocsctty(io::stdin())?;
        }
        Terminal::No => {
            command.process_group(0);
        }
    }
    if let Members::Cgroup(cgroup) = members {
        cgroup.enter()?;
    }
    let started = command.spawn();
    if let Members::Cgroup(cgroup) = members {
        cgroup.leave()?;
    }
    Ok(match started {
        Ok(agent) => match pid(agent.id()) {
            Some(agent) => Start::Started(agent),
            None => Start::NoProgram,
        },
        Err(problem) => {
            let (code, problem) = (problem.raw_os_error(), problem.to_string());
            Start::Failed(Report::NotStarted { code, problem })
        }
    })
}

/// Catches the end of children, the signals that ask a process to end or to stop, and more. Only an
/// ignored hang-up stays ignored: that is what `nohup` is for.
pub(crate) fn catch_signals(more: &[Signal]) -> io::Result<Caught> {
    let mut all = vec![Signal::CHILD, Signal::INT, Signal::QUIT, Signal::TERM];
    all.extend(more);
    // These would stop this process, and the others would not be supervised.
    all.extend([Signal::TSTP, Signal::TTIN, Signal::TTOU]);
    if !is_hangup_ignored() {
        all.push(Signal::HUP);
    }
    Caught::new(&all)
}

/// Closes the agent's standard streams in this process, so that an end of them is seen when the
/// agent closes them.
pub(crate) fn release_standard_streams() -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok(rustix::stdio::dup2_stderr(&null)?)
}

/// The exit code for a status, as shells report it.
pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| ENDED_BY_SIGNAL + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// A run: the agent, or the supervisor of one that another process supervises, and its descendants.
pub(crate) struct Run {
    pub(crate) members: Members,
    pub(crate) agent: Pid,
    pub(crate) terminal: Terminal,
    /// How the agent ended.
    pub(crate) status: Option<ExitStatus>,
}

impl Run {
    /// Reaps all children that have ended: the agent, and orphans that were adopted. Returns whether
    /// children are left.
    pub(crate) fn reap(&mut self) -> bool {
        loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((child, status))) if child == self.agent => {
                    self.status = Some(ExitStatus::from_raw(status.as_raw()));
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    fn carry_out(&self, order: u8) {
        // An unknown order comes from another version, and is not meant for this one.
        if let Some(signal) = crate::Signal::of_order(order) {
            self.signal(signal.number());
        }
    }

    /// Passes on a signal that somebody sent to this process.
    fn pass_on(&self, signal: Signal) {
        let ends = [Signal::INT, Signal::QUIT, Signal::TERM, Signal::HUP].contains(&signal);
        // The terminal has sent the signal to the agent as well.
        if ends && self.terminal == Terminal::No {
            self.signal(signal);
        }
    }

    /// Sends a signal to all processes of the run. Some of them may have ended meanwhile.
    fn signal(&self, signal: Signal) {
        if let Members::Namespace = self.members {
            let _ = kill_process_group(Pid::INIT, signal);
            return;
        }
        // A group is signalled at once, so that no member can start another one in between. At a
        // terminal, this process is a member of the agent's group.
        let group = (self.terminal == Terminal::No).then_some(self.agent);
        if let Some(group) = group {
            let _ = kill_process_group(group, signal);
        }
        for (process, its_group) in self.processes() {
            if group.is_none_or(|group| group.as_raw_pid() != its_group) {
                let _ = kill_process(process, signal);
            }
        }
    }

    /// The live processes of the run, with their groups.
    fn processes(&self) -> Vec<(Pid, i32)> {
        let mut all: Vec<(Pid, i32)> = descendants(std::process::id())
            .into_iter()
            .filter_map(|member| Some((pid(member.pid)?, member.group)))
            .collect();
        if let Members::Cgroup(cgroup) = &self.members {
            let known: HashSet<Pid> = all.iter().map(|(process, _)| *process).collect();
            let others = cgroup.members().into_iter().filter(|process| !known.contains(process));
            all.extend(others.map(|process| (process, 0)));
        }
        all
    }

    /// Kills the remaining processes until there are none, and returns how many there were.
    pub(crate) fn end_all(&mut self) -> usize {
        if self.status.is_none() && !matches!(self.members, Members::Namespace) {
            // An agent whose children are killed before it would report how they ended.
            self.signal(Signal::KILL);
        }
        let until = Instant::now() + SWEEP_TIMEOUT;
        let mut found = HashSet::new();
        loop {
            let has_children = self.reap();
            let processes = self.processes();
            found.extend(processes.iter().map(|(process, _)| *process));
            if let Members::Namespace = self.members {
                // The kernel kills them when this process ends, and waits for them.
                return found.len();
            }
            // A list of processes may miss one that is being started, but the kernel knows whether
            // there are children: this process adopts every orphan.
            let is_done = !has_children && processes.is_empty();
            if is_done || Instant::now() > until {
                if let Members::Cgroup(cgroup) = &self.members {
                    cgroup.remove();
                }
                return found.len();
            }
            if let Members::Cgroup(cgroup) = &self.members {
                cgroup.kill();
            }
            for (process, _) in processes {
                let _ = kill_process(process, Signal::KILL);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}
