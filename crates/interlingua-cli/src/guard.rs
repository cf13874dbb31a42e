//! Which program guards runs: the small one beside this program, or this program itself.

use std::path::PathBuf;

use interlingua_agents::process::Guard;

use crate::GUARD;

/// The program that runs, which agents start as a server of tools.
pub(crate) fn this_program() -> Option<PathBuf> {
    std::env::current_exe().ok()
}

/// The guard of a run.
pub(crate) fn guard() -> Option<Guard> {
    let this = this_program()?;
    #[cfg(target_os = "linux")]
    if let Some(program) = beside::guard(&this) {
        // It becomes this program if it is of another version.
        return Some(Guard { program, arguments: vec![this.into(), GUARD.into()] });
    }
    Some(Guard { program: this, arguments: vec![GUARD.into()] })
}

#[cfg(target_os = "linux")]
mod beside {
    use std::fs::Metadata;
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};

    /// The name of the small guard.
    const NAME: &str = "interlingua-guard";

    /// Permission of the group and of all others to write.
    const WRITABLE_BY_OTHERS: u32 = 0o022;
    /// In such a folder, users cannot replace the files of others.
    const STICKY: u32 = 0o1000;

    /// The small guard beside a program, if only this user or root can have put it there.
    ///
    /// It has the rights of this user, and sees everything that the agent sees. So it is never
    /// searched on `PATH`, and a link is not followed: where it leads is not beside the program.
    pub(super) fn guard(program: &Path) -> Option<PathBuf> {
        let folder = program.parent()?;
        let guard = folder.join(NAME);
        let (of_folder, of_guard) = (folder.metadata().ok()?, guard.symlink_metadata().ok()?);
        let is_kept = is_ours(&of_folder)
            && (!is_writable_by_others(&of_folder) || of_folder.mode() & STICKY != 0);
        let is_program = of_guard.is_file()
            && is_ours(&of_guard)
            && !is_writable_by_others(&of_guard)
            && rustix::fs::access(&guard, rustix::fs::Access::EXEC_OK).is_ok();
        (is_kept && is_program).then_some(guard)
    }

    fn is_ours(metadata: &Metadata) -> bool {
        metadata.uid() == 0 || metadata.uid() == rustix::process::geteuid().as_raw()
    }

    fn is_writable_by_others(metadata: &Metadata) -> bool {
        metadata.mode() & WRITABLE_BY_OTHERS != 0
    }
}
