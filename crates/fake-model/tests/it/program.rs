//! The program `fake-model` prints its address and how to point agents at it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// Ends the program even if the test fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fake-model"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn it_prints_its_address_and_answers_there() {
    let mut running = Running(program(&[]).spawn().unwrap());
    let mut lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
    let address = lines.next().unwrap().unwrap();
    let mut stream = TcpStream::connect(address.strip_prefix("http://").unwrap()).unwrap();
    stream.write_all(b"GET /v1/models HTTP/1.1\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("fake-model"));
    let printed: Vec<String> =
        lines.map(Result::unwrap).take_while(|line| !line.starts_with("GET ")).collect();
    let printed = printed.join("\n");
    for agent in ["codex: ", "claude: ", "gemini: ", "copilot: ", "opencode: ", "qwen: "] {
        assert!(printed.contains(agent), "{agent}");
    }
    assert!(printed.contains(&format!("ANTHROPIC_BASE_URL={address} ANTHROPIC_API_KEY=dummy")));
}

#[test]
fn it_reports_errors_in_its_arguments() {
    for (arguments, words) in [
        (&["--no"][..], "--no is not an option"),
        (&["--port", "x"], "--port needs a number"),
        (&["there-is-no-such.json"], "the script there-is-no-such.json cannot be read"),
        (&["Cargo.toml"], "the script Cargo.toml is not valid"),
    ] {
        let output = program(arguments).output().unwrap();
        assert!(!output.status.success());
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains(words), "{error}");
    }
}
