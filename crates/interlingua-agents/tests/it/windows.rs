//! The guarantees of a run on Windows: complete output, a truthful outcome, no survivors.
//!
//! The agent is this test program itself, started again with the name of a part to play. Processes
//! that stay alive keep a connection open, so that their end is observed and not guessed.

// Windows has no zombies, and writing to standard output is the protocol of these parts.
#![allow(clippy::zombie_processes, clippy::explicit_write)]

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::windows::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio, exit};
use std::time::Duration;

use interlingua::dialect;
use interlingua_agents::Stop;
use interlingua_agents::agent::Launch;
use interlingua_agents::driver::{Interrupt, PlainDriver};
use interlingua_agents::process::{Command, Input};
use tokio::io::AsyncReadExt;
use tokio::task::JoinHandle;

use crate::support::*;

/// The environment variable that names the part to play.
const PART: &str = "PART";
/// The environment variable with the address to connect to.
const DOOR: &str = "DOOR";

const DETACHED_PROCESS: u32 = 0x0000_0008;
const CREATE_NEW_PROCESS_GROUP: u32 = 0x0000_0200;
const CREATE_BREAKAWAY_FROM_JOB: u32 = 0x0100_0000;

/// The number and the length of the records of the part `talks`: more than one read returns.
const RECORDS: usize = 2000;
const LENGTH: usize = 2000;

/// The arguments that make this program play its part and nothing else.
const PLAYS: [&str; 3] = ["--exact", "windows::plays_its_part", "--nocapture"];

#[test]
fn plays_its_part() {
    let Ok(part) = std::env::var(PART) else { return };
    exit(play(&part));
}

/// Plays a part; returns the exit code.
fn play(part: &str) -> i32 {
    match part {
        "goes well" => {
            begins();
            prints_text("hello");
            completes();
        }
        "fails" => {
            begins();
            return 7;
        }
        "contradicts itself" => {
            begins();
            completes();
            writeln!(io::stderr(), "why").unwrap();
            return 3;
        }
        "talks" => {
            begins();
            (0..RECORDS).for_each(|number| prints_text(&long(number)));
            completes();
        }
        "talks in turn" => {
            begins();
            prints_text("first, ");
            assert!(plays("prints second").stdout(Stdio::inherit()).status().unwrap().success());
            prints_text("third");
            completes();
        }
        "prints second" => prints_text("second, "),
        "reads" => {
            begins();
            prints_text("hello");
            io::stdin().read_to_end(&mut Vec::new()).unwrap();
            return 7;
        }
        "lingers" => {
            begins();
            completes();
            stays();
        }
        "will not stop" => {
            let _door = connect();
            begins();
            let _child = starts(&mut plays("stays"));
            prints_text("hello");
            stays();
        }
        "leaves some behind" => {
            begins();
            let _group = starts(plays("stays").creation_flags(CREATE_NEW_PROCESS_GROUP));
            let _detached = starts(plays("stays").creation_flags(DETACHED_PROCESS));
            let mut parent = starts(&mut plays("leaves an orphan"));
            assert!(parent.wait().unwrap().success());
            completes();
        }
        "leaves an orphan" => {
            plays("stays").stdout(Stdio::inherit()).spawn().unwrap();
        }
        "breaks away" => {
            begins();
            let broke = plays("stays").creation_flags(CREATE_BREAKAWAY_FROM_JOB).spawn().is_ok();
            prints_text(if broke { "broke away" } else { "was kept" });
            completes();
        }
        "stays" => {
            let _door = connect();
            io::stdout().write_all(b"!").unwrap();
            io::stdout().flush().unwrap();
            stays();
        }
        "supervises" => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let door = std::env::var(DOOR).unwrap();
            runtime.unwrap().block_on(run(agent("will not stop", &door), options()));
        }
        other => panic!("there is no part {other}"),
    }
    0
}

fn begins() {
    prints(r#"{"type":"thread.started","thread_id":"t1"}"#);
    prints(r#"{"type":"turn.started"}"#);
}

fn prints_text(text: &str) {
    prints(&format!(
        r#"{{"type":"item.completed","item":{{"id":"{text}","type":"agent_message","text":"{text}"}}}}"#
    ));
}

fn completes() {
    prints(
        r#"{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}"#,
    );
}

fn prints(record: &str) {
    writeln!(io::stdout(), "{record}").unwrap();
}

fn long(number: usize) -> String {
    format!("{number}{}", "x".repeat(LENGTH))
}

fn stays() -> ! {
    loop {
        std::thread::park();
    }
}

/// Connects to the test for as long as the process lives.
fn connect() -> TcpStream {
    TcpStream::connect(std::env::var(DOOR).unwrap()).unwrap()
}

/// This program in another part.
fn plays(part: &str) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(PLAYS).env(PART, part).stdin(Stdio::null());
    command
}

/// Starts a process that stays alive, and waits until it has connected.
fn starts(command: &mut std::process::Command) -> Child {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    // The output of the test harness precedes the marker.
    while byte_of(child.stdout.as_mut().unwrap()) != b'!' {}
    child
}

fn byte_of(from: &mut impl Read) -> u8 {
    let mut byte = [0];
    from.read_exact(&mut byte).unwrap();
    byte[0]
}

/// This program in place of an agent that prints Codex's records.
fn agent(part: &str, door: &str) -> Launch {
    driven(part, door, Input::Closed, PlainDriver::default())
}

fn driven(part: &str, door: &str, input: Input, driver: PlainDriver) -> Launch {
    let command = Command {
        program: std::env::current_exe().unwrap(),
        arguments: PLAYS.iter().map(Into::into).collect(),
        environment: vec![(PART.to_owned(), part.to_owned()), (DOOR.to_owned(), door.to_owned())],
        folder: std::env::temp_dir(),
        input,
        terminal: None,
        ..Command::default()
    };
    Launch::new(command, dialect::find("codex").unwrap(), Box::new(driver))
}

/// Accepts the connections of the processes that stay alive.
struct Listener {
    address: String,
    connections: JoinHandle<Vec<tokio::net::TcpStream>>,
}

impl Listener {
    /// Begins to accept this number of connections.
    async fn open(count: usize) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let connections = tokio::spawn(async move {
            let mut connections = Vec::new();
            while connections.len() < count {
                connections.push(listener.accept().await.unwrap().0);
            }
            connections
        });
        Self { address, connections }
    }

    /// Waits for all connections.
    async fn connections(self) -> Vec<tokio::net::TcpStream> {
        within(self.connections).await.unwrap()
    }
}

/// Waits until all connections are closed, because a process that has ended has none.
async fn all_closed(connections: Vec<tokio::net::TcpStream>) {
    for mut connection in connections {
        match within(connection.read(&mut [0])).await {
            Ok(length) => assert_eq!(length, 0),
            Err(problem) => assert_eq!(problem.kind(), io::ErrorKind::ConnectionReset),
        }
    }
}

#[tokio::test]
async fn a_completed_turn() {
    let (ended, events) = run(agent("goes well", ""), options()).await;
    assert_eq!((ended.code(), ended.exit.code, ended.orphans), (0, Some(0), 0));
    assert_eq!(
        (text(&events), &turn_end(&events)["outcome"]),
        ("hello".into(), &"completed".into())
    );
}

#[tokio::test]
async fn the_exit_code_is_reported() {
    let (ended, events) = run(agent("fails", ""), options()).await;
    assert_eq!((ended.code(), ended.exit.code, ended.exit.signal), (1, Some(7), None));
    let cause = turn_end(&events)["cause"].as_str().unwrap();
    assert!(cause.contains("exited with code 7"), "{cause}");
}

#[tokio::test]
async fn an_exit_code_that_contradicts_the_stream_is_reported() {
    let (ended, events) = run(agent("contradicts itself", ""), options()).await;
    assert_eq!(ended.code(), 1);
    let error = events.iter().find(|event| event["type"] == "error").unwrap();
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("exited with code 3") && message.contains("why"), "{message}");
}

/// An inherited handle shares one file position between its writer and its reader.
#[tokio::test]
async fn reading_does_not_move_the_write_position() {
    let (ended, events) = run(agent("talks", ""), options()).await;
    let (received, expected) = (text(&events), (0..RECORDS).map(long).collect::<String>());
    assert_eq!((ended.code(), received.len(), received == expected), (0, expected.len(), true));
}

#[tokio::test]
async fn the_output_of_a_child_follows_earlier_output() {
    let (ended, events) = run(agent("talks in turn", ""), options()).await;
    assert_eq!((ended.code(), text(&events)), (0, "first, second, third".to_owned()));
}

#[tokio::test]
async fn an_interrupt_can_be_the_end_of_the_input() {
    let launch = driven("reads", "", Input::Open, PlainDriver::new(Interrupt::CloseInput));
    let mut run = Watched::start(launch, options()).await;
    run.until(|event| event["type"] == "block").await;
    run.handle.stop(Stop::Interrupted).await.unwrap();
    let (ended, _) = run.end().await;
    assert_eq!((ended.code(), ended.exit.code), (130, Some(7)));
}

#[tokio::test]
async fn an_agent_that_does_not_exit_after_its_turn_is_ended_and_has_not_failed() {
    let mut options = options();
    options.deadlines.exit_after_turn = Duration::from_millis(200);
    let (ended, events) = run(agent("lingers", ""), options).await;
    assert_eq!((ended.code(), &turn_end(&events)["outcome"]), (0, &"completed".into()));
    assert!(!kinds(&events).contains(&"error"));
}

#[tokio::test]
async fn an_agent_that_will_not_stop_is_ended_with_its_child() {
    let listener = Listener::open(2).await;
    let mut run = Watched::start(agent("will not stop", &listener.address), options()).await;
    run.until(|event| event["type"] == "block").await;
    run.handle.stop(Stop::Interrupted).await.unwrap();
    let (ended, events) = run.end().await;
    assert_eq!((ended.code(), ended.exit.code, ended.exit.signal), (130, Some(1), None));
    assert_eq!(turn_end(&events)["outcome"], "cancelled");
    all_closed(listener.connections().await).await;
}

#[tokio::test]
async fn no_process_survives() {
    // One in its own process group, one detached, and one that has become an orphan.
    let listener = Listener::open(3).await;
    let (ended, _) = run(agent("leaves some behind", &listener.address), options()).await;
    assert_eq!((ended.code(), ended.orphans), (0, 3));
    all_closed(listener.connections().await).await;
}

#[tokio::test]
async fn no_process_breaks_away() {
    let (ended, events) = run(agent("breaks away", ""), options()).await;
    assert_eq!((ended.code(), text(&events)), (0, "was kept".to_owned()));
}

#[tokio::test]
async fn no_process_and_no_file_survives_a_killed_supervisor() {
    let (listener, folder) = (Listener::open(2).await, tempfile::tempdir().unwrap());
    let files = || std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
    let mut supervisor = plays("supervises");
    supervisor.env(DOOR, &listener.address).env("TMP", folder.path()).env("TEMP", folder.path());
    let mut supervisor = supervisor.stdout(Stdio::null()).spawn().unwrap();
    let connections = listener.connections().await;
    assert!(files().count() > 0, "the output is in files there");
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    all_closed(connections).await;
    assert_eq!(files().collect::<Vec<_>>(), Vec::<PathBuf>::new());
}
