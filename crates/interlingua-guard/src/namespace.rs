//! A PID namespace with the guard as its init process.
//!
//! `unshare` puts only the children of the caller into the new namespace, so the guard starts
//! itself again: the child is process 1 there. The kernel kills everything in a namespace when its
//! process 1 ends, and process 1 is killed when its parent ends.
//!
//! An ordinary user may create namespaces only inside a new user namespace, in which the user keeps
//! the same ids. The capabilities that the user has there are lost when a program is executed, but
//! for the ambient one, which is needed to mount `/proc`, and dropped after that.
//!
//! `unshare` is that of `nix`, because `rustix` has only an `unsafe` one.

use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{getegid, geteuid, set_parent_process_death_signal};
use rustix::thread::{
    CapabilitySet, CapabilitySets, configure_capability_in_ambient_set, set_capabilities,
};

use crate::channel::{Ends, Report};
use crate::setup::{Setup, Stage};
use crate::supervisor::{self, Members};
use crate::watcher;

/// Enters new namespaces, starts this program again as their first process, and waits for it.
/// `given` is the number of arguments that the guard received, which are its last ones.
pub(crate) fn start_init(setup: &Setup, ends: &Ends, given: usize) -> io::Result<u8> {
    let stage = enter()?;
    let mut init = watcher::again(setup, ends, stage, given).spawn()?;
    supervisor::release_standard_streams()?;
    let status = init.wait()?;
    if status.signal().is_some() {
        // It could not report the end of the agent, which was killed with it.
        let _ = ends.report(&Report::Ended { status: status.into_raw(), orphans: 0 });
    }
    Ok(supervisor::exit_code(status))
}

/// Asks the kernel to kill this process when its parent ends. The parent may have ended before;
/// then its channel cannot be opened.
pub(crate) fn end_with_parent() -> io::Result<()> {
    Ok(set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?)
}

/// Runs the first process of the namespaces.
pub(crate) fn run_init(setup: &Setup, ends: &Ends) -> io::Result<u8> {
    mount_proc(setup.parent)?;
    if setup.stage == Stage::InitOfUser {
        hold_capabilities(CapabilitySet::empty())?;
    }
    supervisor::run(setup, ends, Members::Namespace)
}

/// Enters new PID and mount namespaces, inside a new user namespace if need be.
fn enter() -> io::Result<Stage> {
    let flags = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS;
    match unshare(flags) {
        Ok(()) => return Ok(Stage::Init),
        Err(Errno::EPERM) => {}
        Err(problem) => return Err(failed("a PID namespace cannot be created", problem.into())),
    }
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(flags | CloneFlags::CLONE_NEWUSER)
        .map_err(|problem| failed("a user namespace cannot be created", problem.into()))?;
    let write = |file: &str, text: String| {
        let name = format!("/proc/self/{file}");
        fs::write(&name, text).map_err(|problem| failed(&name, problem))
    };
    // The kernel demands this of users who map their own group.
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("{user} {user} 1"))?;
    write("gid_map", format!("{group} {group} 1"))?;
    hold_capabilities(CapabilitySet::SYS_ADMIN)?;
    configure_capability_in_ambient_set(CapabilitySet::SYS_ADMIN, true)?;
    Ok(Stage::InitOfUser)
}

/// Drops all other capabilities. The ambient ones are dropped with them.
fn hold_capabilities(set: CapabilitySet) -> io::Result<()> {
    let sets = CapabilitySets { effective: set, permitted: set, inheritable: set };
    Ok(set_capabilities(None, sets)?)
}

/// Mounts the `/proc` of the new namespace, which is visible in there only.
fn mount_proc(parent: u32) -> io::Result<()> {
    // What is mounted outside later is still seen inside, but not the other way round.
    let downstream = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", downstream)
        .map_err(|problem| failed("mounts cannot be made private", problem.into()))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None)
        .map_err(|problem| failed("/proc cannot be mounted", problem.into()))?;
    // Agents write their process ids into lock files. Numbers that start with those of this machine
    // differ from run to run; numbers that start with 2 would be those of every other run.
    let _ = fs::write("/proc/sys/kernel/ns_last_pid", parent.to_string());
    Ok(())
}

fn failed(what: &str, problem: io::Error) -> io::Error {
    io::Error::new(problem.kind(), format!("{what}: {problem}"))
}
