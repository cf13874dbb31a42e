//! Records are written as soon as they are known, and writing stops when the output is closed.

use std::io::{BufRead, BufReader, Write};
use std::sync::mpsc;
use std::time::Duration;

use crate::support::{TURN, command, ran, run};

#[test]
fn a_record_appears_before_the_input_is_closed() {
    let mut child = command(&["translate", "--to", "text"]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let stdout = child.stdout.take().unwrap();
    let (sender, lines) = mpsc::channel();
    let reading = std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines() {
            sender.send(line.unwrap()).unwrap();
        }
    });
    for line in TURN.lines().take(3) {
        writeln!(stdin, "{line}").unwrap();
    }
    let next = || lines.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!([next(), next(), next()], ["● codex · session t", "", "Hello."]);
    writeln!(stdin, "{}", TURN.lines().last().unwrap()).unwrap();
    drop(stdin);
    assert!(child.wait().unwrap().success());
    reading.join().unwrap();
    assert_eq!(lines.iter().collect::<Vec<_>>(), ["", "— 5 tokens in, 2 out"]);
}

#[test]
fn a_closed_output_ends_the_command_quietly() {
    let mut child = command(&["translate", "--from", "codex", "--to", "text"]).spawn().unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    // The command exits while it is still being fed.
    while stdin.write_all(TURN.as_bytes()).is_ok() {}
    let ran = ran(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}

#[test]
fn the_clock_and_the_framing_can_be_chosen() {
    let arguments =
        ["translate", "--to", "text", "--live", "--framing", "objects", "--id-seed", "7"];
    let ran = run(&arguments, TURN.replace('\n', " ").as_bytes());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(ran.stdout, "● codex · session t\n\nHello.\n\n— 5 tokens in, 2 out\n");
}
