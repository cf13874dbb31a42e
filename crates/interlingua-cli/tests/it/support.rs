//! Runs the command as a process.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A complete turn of Codex.
pub(crate) const TURN: &str = r#"{"type":"thread.started","thread_id":"t"}
{"type":"turn.started"}
{"type":"item.completed","item":{"id":"0","type":"agent_message","text":"Hello."}}
{"type":"turn.completed","usage":{"input_tokens":5,"cached_input_tokens":0,"output_tokens":2}}
"#;

/// The same turn without its last record.
pub(crate) fn unended() -> String {
    TURN.lines().take(3).map(|line| format!("{line}\n")).collect()
}

/// The result of a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_interlingua"));
    command.args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the command with this standard input.
pub(crate) fn run(arguments: &[&str], stdin: &[u8]) -> Ran {
    let mut child = command(arguments).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let stdin = stdin.to_vec();
    // A command that does not read its input closes the pipe, which is not an error.
    let feeding = std::thread::spawn(move || pipe.write_all(&stdin).is_ok());
    let ran = ran(child.wait_with_output().unwrap());
    feeding.join().unwrap();
    ran
}

pub(crate) fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A file for this test.
pub(crate) fn file(name: &str, content: &[u8]) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}
