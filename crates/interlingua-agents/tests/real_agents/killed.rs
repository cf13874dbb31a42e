//! A host that is killed with two open sessions, with every agent: nothing of them survives.
//!
//! The host is this program, started once more. It opens the sessions and waits to be killed.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use fake_model::{Reply, Script};
use interlingua_agents::agent::KnownAgent;
use interlingua_agents::permission::Mode;
use interlingua_agents::{Agent, Options, Request, Session};
use serde_json::{Value, json};

use crate::home::{Home, guard};
use crate::situations::{Outcome, make_fifo};

/// The first argument of the host.
pub(crate) const HOST: &str = "interlingua-host";

/// How long the system may take to end the processes. Nothing reports that it is done.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) async fn killed_with_two_sessions(agent: &'static str, program: PathBuf) -> Outcome {
    let mut homes = Vec::new();
    for _ in 0..2 {
        let script = Script::new().reply(Reply::shell("cat running"));
        let home = Home::new(agent, program.clone(), script.any_stream())?;
        make_fifo(&home.work().join("running"))?;
        homes.push(home);
    }
    let sessions = homes.iter().map(|home| described(home, &home.request(Mode::Auto)));
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut host = Command::new(program);
    host.arg(HOST).args(sessions.map(|session| session.to_string()));
    let mut host = host.spawn().map_err(|error| error.to_string())?;
    let both = async {
        let mut pipes = Vec::new();
        for home in &homes {
            pipes.push(read_by_command(home.work().join("running")).await);
        }
        pipes
    };
    // While they are open, the commands do not end by themselves.
    let pipes = tokio::time::timeout(crate::home::RUN_TIMEOUT, both).await;
    let working = homes.iter().filter(|home| home.runs("cat running")).count();
    host.kill().and_then(|()| host.wait()).map_err(|error| error.to_string())?;
    if pipes.is_err() || working != 2 {
        return Err(format!("{working} commands run in two sessions"));
    }
    let killed = Instant::now();
    loop {
        let left: Vec<_> = homes.iter().flat_map(|home| home.live_processes()).collect();
        if left.is_empty() {
            return Ok(());
        }
        if killed.elapsed() > PATIENCE {
            return Err(format!("processes survived: {left:?}"));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Opens the named pipe once a command reads it. A command that announced itself before it executes
/// the program might not be found: for a moment in between, a process has no command line.
async fn read_by_command(pipe: PathBuf) -> Option<File> {
    let (sender, opened) = tokio::sync::oneshot::channel();
    // A thread, because a blocking task in the runtime would keep a failing test from ending.
    std::thread::spawn(move || sender.send(OpenOptions::new().write(true).open(pipe)));
    opened.await.ok()?.ok()
}

/// A session as an argument of the host.
fn described(home: &Home, request: &Request) -> Value {
    json!({
        "agent": home.agent,
        "program": request.program,
        "exec": request.exec,
        "folder": request.folder,
        "environment": request.environment,
    })
}

/// The host: opens all sessions, sends each a prompt, and waits to be killed.
pub(crate) fn host(sessions: impl Iterator<Item = OsString>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut open = Vec::new();
        for session in sessions {
            let session: Value = serde_json::from_str(session.to_str().unwrap()).unwrap();
            open.push(start(&session).await);
        }
        loop {
            for Session { entries, .. } in &mut open {
                entries.next().await.unwrap();
            }
        }
    })
}

async fn start(session: &Value) -> Session {
    let request = Request {
        program: serde_json::from_value(session["program"].clone()).unwrap(),
        exec: session["exec"] == true,
        folder: session["folder"].as_str().unwrap().into(),
        environment: serde_json::from_value(session["environment"].clone()).unwrap(),
        mode: Mode::Auto,
        guard: guard(),
        ..Request::default()
    };
    let agent = KnownAgent::find(session["agent"].as_str().unwrap()).unwrap();
    let mut options = Options::default();
    options.policy.mode = Mode::Auto;
    let session = Box::new(agent.prepare(&request).unwrap()).start(options).await.unwrap();
    session.handle.prompt("Do as the script says.").await.unwrap();
    session
}
