//! The live processes of this machine, as `/proc` lists them, and who descends from whom.

use std::collections::HashMap;
use std::fs;

use rustix::process::Pid;

/// A live process.
#[derive(Debug, Clone, Copy)]
pub struct Process {
    /// Its process id.
    pub pid: u32,
    parent: u32,
    /// Its process group.
    pub group: i32,
}

/// The id of a process, as system calls take it.
pub fn pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// All live processes by their process id.
pub fn all() -> HashMap<u32, Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return HashMap::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let alive = pids.filter_map(|pid: u32| Some((pid, read(pid)?)));
    alive.collect()
}

/// The live descendants of a process.
pub fn descendants(root: u32) -> Vec<Process> {
    let all = all();
    all.values().filter(|process| descends(&all, process, root)).copied().collect()
}

/// Whether a process descends from another one.
pub fn descends(all: &HashMap<u32, Process>, process: &Process, root: u32) -> bool {
    let mut at = process.parent;
    // The bound prevents an endless loop if the snapshot contains a cycle.
    for _ in 0..all.len() {
        if at == root {
            return true;
        }
        let Some(parent) = all.get(&at) else { return false };
        at = parent.parent;
    }
    false
}

/// Reads `/proc` for a process; `None` if it is a zombie.
fn read(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The process name may contain any character, including brackets, so the last one is searched.
    let (_, after_name) = stat.rsplit_once(") ")?;
    let mut fields = after_name.split(' ');
    let (state, parent, group) = (fields.next()?, fields.next()?, fields.next()?);
    if state == "Z" || state == "X" {
        return None;
    }
    Some(Process { pid, parent: parent.parse().ok()?, group: group.parse().ok()? })
}
