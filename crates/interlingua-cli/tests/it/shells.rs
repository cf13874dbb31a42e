//! The command as a job of a shell: `nohup`, Ctrl-Z and `fg`, and time limits.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

const BEGINS: &str =
    r#"echo '{"type":"thread.started","thread_id":"t"}'; echo '{"type":"turn.started"}'"#;
const COMPLETES: &str = r#"echo '{"type":"turn.completed","usage":{"input_tokens":5,"cached_input_tokens":0,"output_tokens":2}}'"#;

/// An agent that is a shell script, with two named pipes: `told`, to which it writes, and `asked`,
/// from which it reads.
struct Agent {
    folder: tempfile::TempDir,
}

impl Agent {
    fn new(lines: &[&str]) -> Self {
        let agent = Self { folder: tempfile::tempdir().unwrap() };
        let script = format!("cd {}\n{}", agent.folder.path().display(), lines.join("\n"));
        fs::write(agent.path("agent.sh"), script).unwrap();
        let script = agent.path("agent.sh").display().to_string();
        let text = format!("command = '/bin/sh'\narguments = ['{script}']\ndialect = 'codex'\n");
        fs::write(agent.path("agent.toml"), text).unwrap();
        for pipe in ["told", "asked"] {
            assert!(Command::new("mkfifo").arg(agent.path(pipe)).status().unwrap().success());
        }
        agent
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts the command in a shell that runs this first.
    fn start(&self, first: &str, more: &[&str]) -> Child {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{first} exec \"$@\""), "sh"]);
        command.arg(env!("CARGO_BIN_EXE_interlingua")).arg("run").arg(self.path("agent.toml"));
        command.arg("do it").args(more);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    /// The lines that the agent writes to `told`.
    fn lines(&self) -> mpsc::Receiver<String> {
        let (sender, lines) = mpsc::channel();
        let path = self.path("told");
        std::thread::spawn(move || {
            for line in BufReader::new(File::open(path).unwrap()).lines() {
                let _ = sender.send(line.unwrap());
            }
        });
        lines
    }

    fn ask(&self) {
        let mut asked = File::options().read(true).write(true).open(self.path("asked")).unwrap();
        writeln!(asked).unwrap();
        // The pipe has to stay open until the agent has read it.
        std::mem::forget(asked);
    }
}

fn pid(process: &Child) -> Pid {
    Pid::from_raw(i32::try_from(process.id()).unwrap()).unwrap()
}

fn next(lines: &mpsc::Receiver<String>) -> String {
    lines.recv_timeout(Duration::from_secs(30)).unwrap()
}

#[test]
fn a_run_survives_its_terminal_with_nohup() {
    let agent =
        Agent::new(&["exec 3> told", BEGINS, "echo here >&3", "read line < asked", COMPLETES]);
    let lines = agent.lines();
    let running = agent.start("trap '' HUP;", &[]);
    assert_eq!(next(&lines), "here");
    kill_process(pid(&running), Signal::HUP).unwrap();
    agent.ask();
    let output = running.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_run_ends_with_its_terminal_otherwise() {
    let agent = Agent::new(&["exec 3> told", BEGINS, "echo here >&3", "sleep 1000"]);
    let lines = agent.lines();
    let running = agent.start("", &[]);
    assert_eq!(next(&lines), "here");
    kill_process(pid(&running), Signal::HUP).unwrap();
    assert_eq!(running.wait_with_output().unwrap().status.code(), Some(130));
}

/// The state letter of a process whose command line contains a word.
fn state(word: &str) -> Option<char> {
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if line.starts_with(b"/bin/sh\0") && String::from_utf8_lossy(&line).contains(word) {
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            return stat.rsplit_once(") ")?.1.chars().next();
        }
    }
    None
}

#[test]
fn the_agent_is_suspended_and_continued_with_the_command() {
    for mechanism in ["auto", "tree", "none"] {
        let agent =
            Agent::new(&["exec 3> told", BEGINS, "echo here >&3", "read line < asked", COMPLETES]);
        let lines = agent.lines();
        let running = agent.start("", &["--isolation", mechanism, "--timeout", "60"]);
        assert_eq!(next(&lines), "here");
        kill_process(pid(&running), Signal::TSTP).unwrap();
        let (_, status) = waitpid(Some(pid(&running)), WaitOptions::UNTRACED).unwrap().unwrap();
        assert!(status.stopped(), "{mechanism}: {status:?}");
        let script = agent.path("agent.sh").display().to_string();
        // The guard carries out its order while the command is stopped already.
        let until = Instant::now() + Duration::from_secs(30);
        while state(&script) != Some('T') {
            assert!(Instant::now() < until, "{mechanism}: {:?}", state(&script));
            std::thread::yield_now();
        }
        kill_process(pid(&running), Signal::CONT).unwrap();
        agent.ask();
        let output = running.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{mechanism}");
    }
}

/// SIGTERM is sent at the limit, and SIGKILL three seconds after it.
#[test]
fn a_time_limit_is_exceeded_by_one_period_of_grace_only() {
    let agent = Agent::new(&["trap '' INT TERM", BEGINS, "while :; do sleep 1000; done"]);
    let started = Instant::now();
    let running = agent.start("", &["--timeout", "1"]);
    let output = running.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(124));
    let took = started.elapsed();
    assert!(took > Duration::from_secs(4) && took < Duration::from_millis(7500), "{took:?}");
}

#[test]
fn a_process_that_outlives_its_completed_turn_has_not_timed_out() {
    let agent = Agent::new(&[BEGINS, COMPLETES, "sleep 1000"]);
    let output = agent.start("", &["--timeout", "1"]).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_time_limit_that_is_out_of_range_is_explained() {
    let agent = Agent::new(&[]);
    let cases = [
        ("1e300", "too long"),
        ("inf", "too long"),
        ("99999999999999999999", "too long"),
        ("0", "more than zero"),
        ("NaN", "not a number"),
    ];
    for (limit, words) in cases {
        for option in ["--timeout", "--idle-timeout"] {
            let output = agent.start("", &[option, limit]).wait_with_output().unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{stderr}");
            assert!(stderr.contains(words), "{option} {limit}: {stderr}");
        }
    }
}
