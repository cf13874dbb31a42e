//! The processes of a run on Linux: all that descend from the program, or carry the mark of the
//! run.
//!
//! Every process of a run inherits the mark in its environment, and orphans are reparented to us
//! because we are their subreaper, so all of them are found.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::Instant;

use rustix::process::{Pid, WaitOptions, kill_process, kill_process_group, waitpid};
use tokio::process::Child;

use super::super::{MARK, Signal};
use super::{POLL_INTERVAL, SWEEP_TIMEOUT};

/// The processes of a run.
#[derive(Debug)]
pub(in crate::process) struct Tree {
    pub(super) program: Child,
    members: Members,
}

/// The members of a run.
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
    /// Wraps a program that was started as the leader of its process group.
    pub(in crate::process) fn of(program: Child, mark: String) -> Self {
        let members = Members { root: program.id(), mark, seen: HashSet::new() };
        Self { program, members }
    }

    pub(in crate::process) fn signal(&mut self, signal: Signal) -> bool {
        self.members.signal(signal);
        true
    }

    /// Kills the remaining processes until there are none, and returns how many there were. The
    /// program itself must have exited.
    pub(in crate::process) async fn sweep(&mut self) -> usize {
        self.members.sweep().await
    }
}

/// Kills all processes that carry a mark.
pub(in crate::process) async fn kill_marked(mark: String) {
    Members { root: None, mark, seen: HashSet::new() }.sweep().await;
}

impl Members {
    /// Sends a signal to the program's group, and to all members outside of it.
    fn signal(&mut self, signal: Signal) {
        let root = self.root.and_then(pid);
        if let Some(root) = root {
            // The group may have ended already.
            let _ = kill_process_group(root, signal.number());
        }
        let in_group = |member: &Member| root.is_some_and(|root| member.group == root.as_raw_pid());
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
    fn members(&self) -> Vec<Member> {
        let all = processes();
        let descends = |process: &Member| {
            let mut at = process.parent;
            // The bound prevents an endless loop if the snapshot contains a cycle.
            for _ in 0..all.len() {
                if Some(at) == self.root {
                    return true;
                }
                let Some(parent) = all.get(&at) else { return false };
                at = parent.parent;
            }
            false
        };
        let is_member = |process: &&Member| {
            Some(process.pid) != self.root && (descends(process) || self.has_mark(process.pid))
        };
        all.values().filter(is_member).copied().collect()
    }

    fn has_mark(&self, pid: u32) -> bool {
        let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) else { return false };
        let mark = format!("{MARK}={}", self.mark);
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    }
}

fn pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

#[derive(Debug, Clone, Copy)]
struct Member {
    pid: u32,
    parent: u32,
    group: i32,
}

/// All live processes by their process id.
fn processes() -> HashMap<u32, Member> {
    let Ok(entries) = fs::read_dir("/proc") else { return HashMap::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let alive = pids.filter_map(|pid: u32| Some((pid, member(pid)?)));
    alive.collect()
}

/// Reads `/proc` for a process; `None` if it is a zombie.
fn member(pid: u32) -> Option<Member> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The process name may contain any character, including brackets, so the last one is searched.
    let (_, after_name) = stat.rsplit_once(") ")?;
    let mut fields = after_name.split(' ');
    let (state, parent, group) = (fields.next()?, fields.next()?, fields.next()?);
    if state == "Z" || state == "X" {
        return None;
    }
    Some(Member { pid, parent: parent.parse().ok()?, group: group.parse().ok()? })
}
