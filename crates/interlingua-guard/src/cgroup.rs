//! A cgroup for the processes of a run, where this process may create one: as root, or in a subtree
//! that is delegated to the user, as that of a systemd user session.
//!
//! A process can be put into a cgroup only by its id, which an attentive descendant could evade. So
//! the guard enters the cgroup itself, starts the agent, and leaves again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::Pid;

use crate::channel::Ends;
use crate::processes::pid;
use crate::setup::Setup;
use crate::supervisor::{self, Members};

/// Guards a run in a new cgroup, as its supervisor.
pub(crate) fn run(setup: &Setup, ends: &Ends) -> io::Result<u8> {
    let cgroup = Cgroup::create()?;
    let ran =
        cgroup.check().and_then(|()| supervisor::run(setup, ends, Members::Cgroup(cgroup.clone())));
    // After a complete run it was removed already.
    cgroup.remove();
    ran
}

/// A cgroup of version 2.
#[derive(Debug, Clone)]
pub(crate) struct Cgroup {
    folder: PathBuf,
    /// The cgroup that this process was in.
    parent: PathBuf,
}

impl Cgroup {
    /// Creates a cgroup in that of this process.
    fn create() -> io::Result<Self> {
        let parent = current().ok_or_else(|| io::Error::other("no cgroup v2 is mounted"))?;
        let cgroup = Self::of(std::process::id(), parent);
        fs::create_dir(&cgroup.folder).map_err(|problem| about(&cgroup.folder, &problem))?;
        Ok(cgroup)
    }

    /// The cgroup that a child of this process creates, if there can be one.
    pub(crate) fn of_child(child: u32) -> Option<Self> {
        current().map(|parent| Self::of(child, parent))
    }

    fn of(process: u32, parent: PathBuf) -> Self {
        Self { folder: parent.join(format!("interlingua-{process}")), parent }
    }

    /// Checks that the cgroup can be entered, left and killed.
    fn check(&self) -> io::Result<()> {
        let kill = self.folder.join("cgroup.kill");
        fs::metadata(&kill).map_err(|problem| about(&kill, &problem))?;
        self.enter()?;
        self.leave()
    }

    /// Moves this process into the cgroup.
    pub(crate) fn enter(&self) -> io::Result<()> {
        move_to(&self.folder)
    }

    /// Moves this process back.
    pub(crate) fn leave(&self) -> io::Result<()> {
        move_to(&self.parent)
    }

    pub(crate) fn members(&self) -> Vec<Pid> {
        let list = fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
        list.lines().filter_map(|line| pid(line.parse().ok()?)).collect()
    }

    /// Kills all members at once, including those that are just being created.
    pub(crate) fn kill(&self) {
        // A member that is left over is killed by its id.
        let _ = fs::write(self.folder.join("cgroup.kill"), "1");
    }

    /// Removes the cgroup if it is empty. A cgroup that the agent created inside is removed first.
    pub(crate) fn remove(&self) {
        remove(&self.folder);
    }
}

fn remove(folder: &Path) {
    for inner in fs::read_dir(folder).into_iter().flatten().flatten() {
        if inner.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&inner.path());
        }
    }
    // It stays if it is in use; the machine has another one then, and nothing else changes.
    let _ = fs::remove_dir(folder);
}

fn move_to(cgroup: &Path) -> io::Result<()> {
    let file = cgroup.join("cgroup.procs");
    // 0 is the writing process.
    fs::write(&file, "0").map_err(|problem| about(&file, &problem))
}

/// The folder of this process's cgroup.
fn current() -> Option<PathBuf> {
    let cgroups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = cgroups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|line| folder(line, path))
}

/// The folder of a cgroup, if this line of `mountinfo` describes a mount that contains it.
fn folder(mount: &str, cgroup: &str) -> Option<PathBuf> {
    let (place, kind) = mount.split_once(" - ")?;
    kind.starts_with("cgroup2 ").then_some(())?;
    let mut fields = place.split(' ').skip(3);
    let (root, point) = (fields.next()?, fields.next()?);
    let inside = Path::new(cgroup).strip_prefix(root).ok()?;
    Some(Path::new(point).join(inside))
}

fn about(path: &Path, problem: &io::Error) -> io::Error {
    io::Error::new(problem.kind(), format!("{}: {problem}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_is_found_below_its_mount() {
        let mount = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw";
        let found = folder(mount, "/user.slice/session-2.scope");
        assert_eq!(found, Some("/sys/fs/cgroup/user.slice/session-2.scope".into()));
        let of_container = mount.replace(" / ", " /docker/1 ");
        assert_eq!(folder(&of_container, "/docker/1/a"), Some("/sys/fs/cgroup/a".into()));
        assert_eq!(folder(&of_container, "/other"), None);
        assert_eq!(folder("30 24 0:26 / /proc rw - proc proc rw", "/"), None);
    }
}
