//! The outer one of a guard's two processes, where no namespace ends everything with its first process.
//!
//! The inner process, the supervisor, starts the agent and does all the work. If it is killed, its
//! descendants are adopted by this process, which ends them. If this process is killed, the
//! supervisor receives a signal, and ends them. So something survives only if both are killed.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};

use rustix::process::{Pid, Signal, getppid, kill_process, set_parent_process_death_signal};

use crate::channel::{Ends, Report};
use crate::processes::pid;
use crate::setup::{Setup, Stage, Terminal};
use crate::supervisor::{self, Members, Run};

/// The signal by which the supervisor learns that its parent has ended.
pub(crate) const PARENT_ENDED: Signal = Signal::USR1;

/// Starts the supervisor, and ends what it leaves behind. `given` is the number of arguments that the
/// guard received. `members` are the processes of a run whose supervisor has this process id.
pub(crate) fn run(
    setup: &Setup,
    ends: &Ends,
    given: usize,
    members: impl FnOnce(u32) -> Members,
) -> io::Result<u8> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let mut caught = supervisor::catch_signals(&[])?;
    let mut command = again(setup, ends, Stage::Supervisor, given);
    if setup.terminal == Terminal::No {
        // A signal to this group is passed on below, and must not arrive twice.
        command.process_group(0);
    }
    let child = command.spawn()?;
    let _ = supervisor::release_standard_streams();
    let Some(inner) = pid(child.id()) else { return Ok(1) };
    let terminal = setup.terminal;
    let mut run = Run { members: members(child.id()), agent: inner, terminal, status: None };
    while run.status.is_none() {
        // Nothing can be watched without waiting.
        let Ok(happened) = caught.wait(None) else { break };
        if happened.signals.contains(&Signal::CHILD) {
            run.reap();
        }
        happened.signals.into_iter().for_each(|signal| pass_on(signal, inner));
    }
    // A supervisor that ended by itself has left nothing behind.
    let orphans = run.end_all();
    let status = run.status.unwrap_or_else(|| ExitStatus::from_raw(Signal::KILL.as_raw()));
    if status.signal().is_some() {
        // It could not report the end of the agent, which was killed.
        let _ = ends.report(&Report::Ended { status: status.into_raw(), orphans });
    }
    Ok(supervisor::exit_code(status))
}

/// Passes on a signal that somebody sent to this process. The supervisor decides whether the agent
/// receives it.
fn pass_on(signal: Signal, supervisor: Pid) {
    if signal != Signal::CHILD {
        let _ = kill_process(supervisor, signal);
    }
}

/// The command that starts this program once more, as another process of the same guard.
pub(crate) fn again(setup: &Setup, ends: &Ends, stage: Stage, given: usize) -> Command {
    let (orders, reports) = ends.descriptors();
    let inner = Setup { stage, parent: std::process::id(), orders, reports, ..setup.clone() };
    let own: Vec<_> = std::env::args_os().collect();
    let own = own.get(1..own.len().saturating_sub(given)).unwrap_or_default();
    // The program may have been replaced or deleted since it was started.
    let mut command = Command::new("/proc/self/exe");
    command.args(own).args(inner.to_arguments());
    command
}

/// Asks the kernel for a signal when the parent of this process ends.
pub(crate) fn notice_end_of_parent(parent: u32) -> io::Result<()> {
    set_parent_process_death_signal(Some(PARENT_ENDED))?;
    if getppid() == pid(parent) {
        return Ok(());
    }
    Err(io::Error::other("the process that started this one has ended"))
}
