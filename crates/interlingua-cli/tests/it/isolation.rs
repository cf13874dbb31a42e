//! No process of a run survives it, whatever it clears and however the run ends, with each mechanism
//! of isolation that this machine has, as this user and as an ordinary one.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

pub(crate) const BEGINS: &str =
    r#"echo '{"type":"thread.started","thread_id":"t"}'; echo '{"type":"turn.started"}'"#;
pub(crate) const COMPLETES: &str = r#"echo '{"type":"turn.completed","usage":{"input_tokens":5,"cached_input_tokens":0,"output_tokens":2}}'"#;

/// The mechanisms that leave nothing behind.
const MECHANISMS: [&str; 3] = ["namespace", "cgroup", "tree"];

/// The user id of `nobody`, an ordinary user.
const ORDINARY: &str = "65534";

/// Who runs `interlingua`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum User {
    Current,
    Ordinary,
}

impl User {
    fn command(self) -> Command {
        let program = env!("CARGO_BIN_EXE_interlingua");
        if self == Self::Current {
            return Command::new(program);
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid", ORDINARY, "--regid", ORDINARY, "--clear-groups", program]);
        command
    }

    /// The users that can run this test.
    fn all() -> Vec<Self> {
        let tried = Self::Ordinary.command().arg("--version").output();
        if tried.is_ok_and(|output| output.status.success()) {
            return vec![Self::Current, Self::Ordinary];
        }
        skipped("as an ordinary user: only root can become one, with `setpriv`");
        vec![Self::Current]
    }
}

/// An agent that is a shell script, with the files of its test.
pub(crate) struct Agent {
    folder: tempfile::TempDir,
    /// Both ends of the pipe `started`, by which processes of the agent wait for each other. While it
    /// is open, a line in it is not lost if its writer ends before it is read.
    _started: File,
}

impl Agent {
    pub(crate) fn new(lines: &[&str]) -> Self {
        Self::described("dialect = \"codex\"", lines)
    }

    fn described(how: &str, lines: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // An ordinary user has to read what another user wrote.
        set_mode(folder.path(), "755");
        let path = |name: &str| folder.path().join(name);
        let script = format!("cd {}\n{}", folder.path().display(), lines.join("\n"));
        fs::write(path("agent.sh"), script).unwrap();
        let script = path("agent.sh").display().to_string();
        let text = format!("command = \"/bin/sh\"\narguments = [{script:?}]\n{how}\n");
        fs::write(path("agent.toml"), text).unwrap();
        for pipe in ["alive", "started"] {
            let made = Command::new("mkfifo").args(["-m", "666"]).arg(path(pipe)).status();
            assert!(made.unwrap().success());
        }
        let started = File::options().read(true).write(true).open(path("started")).unwrap();
        Self { folder, _started: started }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self, user: User, mechanism: &str) -> Command {
        let mut command = user.command();
        command.arg("run").arg(self.path("agent.toml")).arg("do it");
        command.args(["--isolation", mechanism]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The last event of a run, which describes how the agent ended.
    fn session_end(&self, user: User, mechanism: &str) -> Option<serde_json::Value> {
        let output = self.command(user, mechanism).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        if is_unavailable(&stderr, user, mechanism) {
            return None;
        }
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert_ne!(stdout, "", "{user:?} {mechanism}: {stderr}");
        Some(serde_json::from_str(stdout.lines().last().unwrap()).unwrap())
    }

    /// The lines that the processes of the agent write to the pipe `alive`. The channel is closed
    /// when the last process that holds the pipe has ended.
    pub(crate) fn lines(&self) -> mpsc::Receiver<String> {
        let (sender, lines) = mpsc::channel();
        let path = self.path("alive");
        std::thread::spawn(move || {
            for line in BufReader::new(File::open(path).unwrap()).lines() {
                let _ = sender.send(line.unwrap());
            }
        });
        lines
    }
}

pub(crate) fn set_mode(path: &Path, mode: &str) {
    assert!(Command::new("chmod").arg(mode).arg(path).status().unwrap().success());
}

/// Says that something was not tested, even if the test passes, whose output is not shown.
pub(crate) fn skipped(what: &str) {
    let mut shown = std::io::stderr();
    writeln!(shown, "skipped {what}").unwrap();
}

/// Whether the machine lacks the mechanism; says so.
fn is_unavailable(stderr: &str, user: User, mechanism: &str) -> bool {
    let why = stderr.lines().find(|line| line.contains("is not available here"));
    if let Some(why) = why {
        skipped(&format!("with {mechanism} as the {user:?} user: {why}"));
    }
    why.is_some()
}

/// Every mechanism with every user.
fn combinations() -> impl Iterator<Item = (User, &'static str)> {
    User::all().into_iter().flat_map(|user| MECHANISMS.map(|mechanism| (user, mechanism)))
}

/// Starts a process that is hard to find: it has no environment, its own session, and no parent.
pub(crate) const ESCAPES: &str =
    "(env -i setsid sh -c '(echo away >&3; echo > started; exec sleep 1000) & exit' &)";

/// How a run ends.
#[derive(Debug, Clone, Copy)]
enum End {
    Completes,
    Interrupted,
    Killed,
}

fn nothing_survives(end: End) {
    for (user, mechanism) in combinations() {
        let last = match end {
            End::Completes => COMPLETES,
            End::Interrupted | End::Killed => "sleep 1000",
        };
        let agent = Agent::new(&[
            "exec 3> alive",
            BEGINS,
            ESCAPES,
            "read line < started",
            "echo here >&3",
            last,
        ]);
        let lines = agent.lines();
        let mut running = agent.command(user, mechanism).spawn().unwrap();
        let Some(first) = first_line(&lines, &mut running, user, mechanism) else { continue };
        let next = || lines.recv_timeout(Duration::from_secs(30));
        let both = (first.as_str(), next());
        assert_eq!(both, ("away", Ok("here".to_owned())), "{user:?} {mechanism} {end:?}");
        let expected = match end {
            End::Completes => Some(0),
            End::Interrupted => {
                signal(&running, Signal::INT);
                Some(130)
            }
            End::Killed => {
                signal(&running, Signal::KILL);
                None
            }
        };
        // Its output would fill the pipe.
        let output = running.wait_with_output().unwrap();
        assert_eq!(output.status.code(), expected, "{user:?} {mechanism} {end:?}");
        let gone = Err(mpsc::RecvTimeoutError::Disconnected);
        assert_eq!(next(), gone, "a process survived: {user:?} {mechanism} {end:?}");
    }
}

/// Waits for the first line of the agent; `None` if the mechanism is not available.
fn first_line(
    lines: &mpsc::Receiver<String>,
    running: &mut Child,
    user: User,
    mechanism: &str,
) -> Option<String> {
    loop {
        if let Ok(line) = lines.recv_timeout(Duration::from_millis(20)) {
            return Some(line);
        }
        if let Some(status) = running.try_wait().unwrap() {
            let mut stderr = String::new();
            running.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
            assert!(is_unavailable(&stderr, user, mechanism), "{status}: {stderr}");
            return None;
        }
    }
}

pub(crate) fn signal(process: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(process.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

#[test]
fn nothing_survives_a_completed_run() {
    nothing_survives(End::Completes);
}

#[test]
fn nothing_survives_an_interrupt() {
    nothing_survives(End::Interrupted);
}

#[test]
fn nothing_survives_a_killed_command() {
    nothing_survives(End::Killed);
}

/// The kernel ends a namespace with its first process, and that one with its parent. Without a
/// namespace, each of the two processes of a guard ends the run if the other one is killed.
#[test]
fn nothing_survives_if_a_process_of_the_guard_is_killed() {
    for ((user, mechanism), inner) in
        combinations().flat_map(|it| [false, true].map(|inner| (it, inner)))
    {
        let begins = ["exec 3> alive", BEGINS, ESCAPES, "read line < started"];
        let agent = Agent::new(&[&begins[..], &["echo here >&3", "sleep 1000"]].concat());
        let lines = agent.lines();
        let mut running = agent.command(user, mechanism).spawn().unwrap();
        if first_line(&lines, &mut running, user, mechanism).is_none() {
            continue;
        }
        let about = format!("{user:?} {mechanism} inner: {inner}");
        let next = || lines.recv_timeout(Duration::from_secs(30));
        assert_eq!(next(), Ok("here".to_owned()), "{about}");
        let child = |process: u32| {
            let children = format!("/proc/{process}/task/{process}/children");
            fs::read_to_string(children).unwrap().trim().parse::<u32>().unwrap()
        };
        let outer = child(running.id());
        let guard = if inner { child(outer) } else { outer };
        kill_process(Pid::from_raw(guard.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
        let output = running.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{about}");
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert!(stdout.contains("\"signal\":9"), "{about}: {stdout}");
        assert_eq!(next(), Err(mpsc::RecvTimeoutError::Disconnected), "{about}");
    }
}

#[test]
fn the_exit_status_of_the_agent_is_reported_through_its_guard() {
    for (user, mechanism) in combinations() {
        let exits = Agent::new(&[BEGINS, "exit 3"]).session_end(user, mechanism);
        let Some(exits) = exits else { continue };
        assert_eq!((&exits["type"], &exits["exit_code"]), (&"session_ended".into(), &3.into()));
        let dies = Agent::new(&[BEGINS, "kill -9 $$"]).session_end(user, mechanism).unwrap();
        assert_eq!((&dies["exit_code"], &dies["signal"]), (&serde_json::Value::Null, &9.into()));
    }
}

#[test]
fn a_program_that_cannot_be_started_is_reported() {
    let agent = Agent::new(&[]);
    let script = agent.path("agent.sh").display().to_string();
    fs::write(agent.path("agent.toml"), format!("command = {script:?}\ndialect = \"codex\""))
        .unwrap();
    for mechanism in MECHANISMS {
        let output = agent.command(User::Current, mechanism).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        if !is_unavailable(&stderr, User::Current, mechanism) {
            assert_eq!(output.status.code(), Some(2), "{mechanism}: {stderr}");
            assert!(stderr.contains("could not be started: Permission denied"), "{stderr}");
        }
    }
}

/// The process ignores SIGINT, which a shell sets for its background commands, so that it can be
/// seen whether the next signal reaches it.
#[test]
fn a_signal_reaches_processes_that_moved_away() {
    let away = "setsid sh -c 'trap \"echo received >&3; echo > started; exit\" TERM; \
                echo > started; while :; do sleep 1000 & wait; done' &";
    for (user, mechanism) in combinations() {
        // The agent exits once the other process has received its signal.
        let waits = "trap '' INT; trap 'read line < started; exit 1' TERM";
        let started = ["read line < started", "echo here >&3", "sleep 1000 & wait"];
        let agent = Agent::new(&[&[waits, "exec 3> alive", BEGINS, away], &started[..]].concat());
        let lines = agent.lines();
        let mut running = agent.command(user, mechanism).spawn().unwrap();
        let Some(first) = first_line(&lines, &mut running, user, mechanism) else { continue };
        assert_eq!(first, "here");
        signal(&running, Signal::INT);
        // The second one escalates at once.
        signal(&running, Signal::INT);
        let next = lines.recv_timeout(Duration::from_secs(30));
        assert_eq!(next, Ok("received".to_owned()), "{user:?} {mechanism}");
        running.wait_with_output().unwrap();
    }
}

/// The process is stopped before it has noticed that its agent runs, so that the signal is the first
/// thing that it sees.
#[test]
fn a_signal_before_the_prompt_was_accepted_ends_the_run_as_any_other() {
    for (user, mechanism) in combinations() {
        // A stopped process could not report that the mechanism is not available.
        if Agent::new(&[BEGINS, COMPLETES]).session_end(user, mechanism).is_none() {
            continue;
        }
        let agent = Agent::new(&["exec 3> alive", BEGINS, "echo here >&3", "sleep 1000 & wait"]);
        let lines = agent.lines();
        let mut running = agent.command(user, mechanism).spawn().unwrap();
        let children = format!("/proc/{0}/task/{0}/children", running.id());
        // The kernel reports the start of a child to no one but its parent.
        while fs::read_to_string(&children).is_ok_and(|children| children.is_empty())
            && running.try_wait().unwrap().is_none()
        {
            std::thread::yield_now();
        }
        signal(&running, Signal::STOP);
        let Some(first) = first_line(&lines, &mut running, user, mechanism) else { continue };
        assert_eq!(first, "here");
        signal(&running, Signal::INT);
        signal(&running, Signal::CONT);
        let output = running.wait_with_output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(130), "{user:?} {mechanism}: {stdout}");
        let events = stdout.lines().map(|it| serde_json::from_str(it).unwrap());
        let ends: Vec<serde_json::Value> =
            events.filter(|event: &serde_json::Value| event["type"] == "turn_ended").collect();
        assert_eq!(ends.len(), 1, "{user:?} {mechanism}: {stdout}");
        assert_eq!(ends[0]["outcome"], "cancelled", "{user:?} {mechanism}: {stdout}");
    }
}

#[test]
fn a_program_with_a_screen_controls_its_terminal() {
    // The terminal echoes the prompt, which must not end up in the middle of a line.
    let prompt = "read prompt";
    let printed =
        ["test -t 0 && test -t 1 && echo terminal", "echo controlled > /dev/tty", "stty size"];
    let lines = [&[prompt], &printed[..]].concat();
    for (user, mechanism) in combinations() {
        let agent = Agent::described("screen = true", &lines);
        let output = agent.command(user, mechanism).args(["--to", "text"]).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        if is_unavailable(&stderr, user, mechanism) {
            continue;
        }
        let stdout = String::from_utf8(output.stdout).unwrap();
        for line in ["terminal", "controlled", "300 200"] {
            assert!(stdout.lines().any(|it| it == line), "{user:?} {mechanism}: {stdout}");
        }
    }
}

/// A shell lets its background jobs ignore SIGINT, and an ignored signal is inherited.
#[test]
fn an_agent_in_the_background_of_a_shell_can_be_interrupted() {
    for (user, mechanism) in combinations().chain([(User::Current, "none")]) {
        // An ignored signal cannot be trapped in a shell, so the trap shows that it is not.
        let lines = ["exec 3> alive", "trap 'echo interrupted >&3; exit' INT", BEGINS];
        let agent = Agent::new(&[&lines[..], &["echo here >&3", "sleep 1000 & wait"]].concat());
        let direct = agent.command(user, mechanism);
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' INT; exec \"$@\"", "sh"]).arg(direct.get_program());
        command.args(direct.get_args());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let lines = agent.lines();
        let mut running = command.spawn().unwrap();
        let Some(first) = first_line(&lines, &mut running, user, mechanism) else { continue };
        assert_eq!(first, "here");
        signal(&running, Signal::INT);
        let next = lines.recv_timeout(Duration::from_secs(30));
        assert_eq!(next, Ok("interrupted".to_owned()), "{user:?} {mechanism}");
        running.wait_with_output().unwrap();
    }
}

/// The text that a script writes to its standard error in a namespace.
fn said_in_namespace(user: User, lines: &[&str]) -> Option<String> {
    let end = Agent::new(&[lines, &[BEGINS]].concat()).session_end(user, "namespace")?;
    Some(end["stderr"].as_str().unwrap_or_default().trim().to_owned())
}

#[test]
fn a_namespace_keeps_the_user_and_has_its_own_processes() {
    let lines = ["exec >&2", "id -u", "cat /proc/1/cmdline | tr '\\0' ' '"];
    for user in User::all() {
        let Some(said) = said_in_namespace(user, &lines) else { continue };
        let (id, init) = said.split_once('\n').unwrap();
        if user == User::Ordinary {
            assert_eq!(id, ORDINARY);
        }
        assert!(init.contains(" guard "), "{user:?}: {init}");
    }
}

/// Agents write their process ids into lock files, and would take that of another run for theirs.
#[test]
fn agents_in_two_namespaces_have_different_process_ids() {
    if !Path::new("/proc/sys/kernel/ns_last_pid").exists() {
        skipped("here: this kernel cannot choose process ids");
        return;
    }
    for user in User::all() {
        let first = said_in_namespace(user, &["echo $$ >&2"]);
        let second = said_in_namespace(user, &["echo $$ >&2"]);
        assert!(first.is_none() || first != second, "{user:?}: {first:?}");
    }
}

/// Codex runs its commands in a sandbox of this kind.
#[test]
fn a_sandbox_can_be_nested_in_a_namespace() {
    let sandbox = "unshare --user --map-current-user --pid --fork --mount-proc";
    for user in User::all() {
        let alone = match user {
            User::Current => format!("{sandbox} true"),
            User::Ordinary => format!(
                "setpriv --reuid {ORDINARY} --regid {ORDINARY} --clear-groups {sandbox} true"
            ),
        };
        if !Command::new("sh").args(["-c", &alone]).status().unwrap().success() {
            skipped(&format!("as the {user:?} user: `{sandbox}` does not work here"));
            continue;
        }
        let nested = format!("{sandbox} sh -c 'echo $$ >&2'");
        let said = said_in_namespace(user, &[&nested]);
        assert!(said.as_deref().is_none_or(|said| said == "1"), "{user:?}: {said:?}");
    }
}

/// An ordinary user needs a user namespace, in which nobody but the user exists.
#[test]
fn files_of_other_users_belong_to_nobody_in_the_namespace_of_an_ordinary_user() {
    for user in User::all() {
        let Some(owner) = said_in_namespace(user, &["stat -c %u / >&2"]) else { continue };
        let expected = if user == User::Ordinary { ORDINARY } else { "0" };
        if rustix::process::getuid().is_root() {
            assert_eq!(owner, expected, "{user:?}");
        }
    }
}

/// A program with the setuid bit gains no rights in the user namespace of an ordinary user, and does
/// elsewhere.
#[test]
fn setuid_programs_gain_no_rights_in_the_namespace_of_an_ordinary_user() {
    if !User::all().contains(&User::Ordinary) {
        return;
    }
    let user = |mechanism| {
        let agent = Agent::new(&["./id -u >&2", BEGINS]);
        let id = agent.path("id");
        fs::copy("/usr/bin/id", &id).unwrap();
        set_mode(&id, "4755");
        let end = agent.session_end(User::Ordinary, mechanism)?;
        Some(end["stderr"].as_str().unwrap_or_default().trim().to_owned())
    };
    if user("tree").as_deref() != Some("0") {
        skipped("here: the temporary folder ignores the setuid bit");
        return;
    }
    let inside = user("namespace");
    assert!(inside.as_deref().is_none_or(|inside| inside == ORDINARY), "{inside:?}");
}

#[test]
fn a_missing_mechanism_is_an_error_that_says_why() {
    let agent = Agent::new(&[BEGINS, COMPLETES]);
    for user in User::all() {
        let output = agent.command(user, "cgroup").output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        if output.status.success() {
            skipped(&format!("as the {user:?} user: cgroups are available"));
            continue;
        }
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains("the isolation `cgroup` is not available here: "), "{stderr}");
    }
}

#[test]
fn the_isolation_of_this_machine_is_listed() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_interlingua"));
    let output = command.arg("agents").env("PATH", "").output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let line = stdout.lines().find(|line| line.starts_with("isolation")).unwrap();
    let name = line.split_whitespace().nth(1).unwrap().trim_end_matches(':');
    assert!(MECHANISMS.contains(&name), "{stdout}");
}
