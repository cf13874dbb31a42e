//! Which program guards a run: the small one beside the command if it can be trusted, or else the
//! command itself.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use rustix::process::Signal;

use super::isolation::{Agent, BEGINS, COMPLETES, ESCAPES, User, set_mode, signal, skipped};

const COMMAND: &str = env!("CARGO_BIN_EXE_interlingua");
const SMALL: &str = env!("CARGO_BIN_EXE_interlingua-guard");

/// The user id of somebody else.
const STRANGER: u32 = 65534;

/// A folder with the command, and nothing else yet.
struct Installed {
    folder: tempfile::TempDir,
}

impl Installed {
    /// The command without its small guard.
    fn alone() -> Self {
        // A link needs the same file system, and a copy would be large.
        let beside = Path::new(COMMAND).parent().unwrap();
        let folder = tempfile::tempdir_in(beside).unwrap();
        fs::hard_link(COMMAND, folder.path().join("interlingua")).unwrap();
        Self { folder }
    }

    fn with_guard() -> Self {
        let installed = Self::alone();
        copy(Path::new(SMALL), &installed.guard());
        set_mode(&installed.guard(), "755");
        installed
    }

    fn guard(&self) -> PathBuf {
        self.folder.path().join("interlingua-guard")
    }

    /// The command line for an agent.
    fn command(&self, agent: &Agent, mechanism: &str) -> Command {
        let direct = agent.command(User::Current, mechanism);
        let mut command = Command::new(self.folder.path().join("interlingua"));
        command.args(direct.get_args());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The name of the program that guards a run, which has to complete.
    fn guarded_by(&self) -> String {
        let agent = Agent::new(&["readlink /proc/$PPID/exe > guard", BEGINS, COMPLETES]);
        // It exists everywhere, and the guard is one process.
        let output = self.command(&agent, "tree").output().unwrap();
        assert!(output.status.success(), "{}", errors(&output));
        let program = fs::read_to_string(agent.path("guard")).unwrap();
        let program = Path::new(program.trim());
        assert_eq!(program.parent(), Some(&*self.folder.path().canonicalize().unwrap()));
        program.file_name().unwrap().to_str().unwrap().to_owned()
    }
}

/// Copies a program in a process of its own: while a file is open for writing here, another test may
/// start a process that inherits it, and the program could not be started.
fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg(from).arg(to).status().unwrap().success());
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_guard_is_the_small_program_beside_the_command() {
    assert_eq!(Installed::with_guard().guarded_by(), "interlingua-guard");
}

#[test]
fn without_a_small_program_the_command_is_its_own_guard() {
    assert_eq!(Installed::alone().guarded_by(), "interlingua");
}

/// It would have the rights of the user, so no other user may choose it.
#[test]
fn a_small_program_that_others_can_change_is_not_started() {
    for (mode, expected) in [
        ("775", "interlingua"),
        ("757", "interlingua"),
        ("644", "interlingua"),
        ("700", "interlingua-guard"),
    ] {
        let installed = Installed::with_guard();
        set_mode(&installed.guard(), mode);
        assert_eq!(installed.guarded_by(), expected, "{mode}");
    }
    let installed = Installed::with_guard();
    if chown(installed.guard(), Some(STRANGER), None).is_err() {
        return skipped("a guard of somebody else: only root can make one");
    }
    assert_eq!(installed.guarded_by(), "interlingua");
}

/// Whoever can write to the folder replaces the program between the check and the start. In a folder
/// like `/tmp`, only its owner can.
#[test]
fn a_small_program_in_a_folder_of_others_is_not_started() {
    for (mode, expected) in [
        ("775", "interlingua"),
        ("777", "interlingua"),
        ("1777", "interlingua-guard"),
        ("755", "interlingua-guard"),
    ] {
        let installed = Installed::with_guard();
        set_mode(installed.folder.path(), mode);
        assert_eq!(installed.guarded_by(), expected, "{mode}");
    }
}

#[test]
fn what_is_not_a_file_is_not_started() {
    let installed = Installed::alone();
    symlink(SMALL, installed.guard()).unwrap();
    assert_eq!(installed.guarded_by(), "interlingua");
    let installed = Installed::alone();
    fs::create_dir(installed.guard()).unwrap();
    assert_eq!(installed.guarded_by(), "interlingua");
}

/// After an update that replaced one of the two. The next test shows that the real program does what
/// this script does.
#[test]
fn with_a_guard_of_another_version_the_command_guards_itself() {
    let installed = Installed::alone();
    let script = installed.folder.path().join("script");
    fs::write(&script, "#!/bin/sh\nexec \"$@\"\n").unwrap();
    copy(&script, &installed.guard());
    set_mode(&installed.guard(), "755");
    assert_eq!(installed.guarded_by(), "interlingua");
}

#[test]
fn a_guard_that_does_not_know_the_protocol_becomes_the_command() {
    let given = ["/bin/echo", "guard", "0", "guard", "tree", "1", "3", "4", "files", "sh", "-c"];
    let output = Command::new(SMALL).args(given).output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), given[1..].join(" "));
}

#[test]
fn a_guard_that_nobody_started_reports_an_error() {
    for given in [&[][..], &["guard"], &["/bin/echo", "guard", "1", "guard"]] {
        let output = Command::new(SMALL).args(given).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{given:?}");
        assert!(errors(&output).starts_with("interlingua-guard: "), "{}", errors(&output));
    }
}

#[test]
fn nothing_survives_a_killed_command_whoever_guards_it() {
    for installed in [Installed::with_guard(), Installed::alone()] {
        for mechanism in ["auto", "tree"] {
            let begins = ["exec 3> alive", BEGINS, ESCAPES, "read line < started"];
            let agent = Agent::new(&[&begins[..], &["echo here >&3", "sleep 1000"]].concat());
            let lines = agent.lines();
            let running = installed.command(&agent, mechanism).spawn().unwrap();
            let next = || lines.recv_timeout(Duration::from_secs(30));
            assert_eq!((next().as_deref(), next().as_deref()), (Ok("away"), Ok("here")));
            signal(&running, Signal::KILL);
            running.wait_with_output().unwrap();
            assert_eq!(next(), Err(RecvTimeoutError::Disconnected), "a process survived");
        }
    }
}
