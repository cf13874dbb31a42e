//! `interlingua agents`: which agents are installed, and how to install the others.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Result;
use interlingua_agents::agent::{ALL, Agent, HostEnvironment, SignIn};
use interlingua_agents::process::Isolation;

use crate::SUCCESS;
use crate::report::on_one_line;

/// How long a program may take to print its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the command; returns its exit code.
pub(crate) fn run() -> Result<u8> {
    let host = HostEnvironment::current();
    let mut out = io::stdout().lock();
    for agent in ALL {
        for line in about(agent, &host) {
            writeln!(out, "{line}")?;
        }
    }
    for line in isolation()? {
        writeln!(out, "{line}")?;
    }
    Ok(SUCCESS)
}

/// What keeps the processes of a run together on this machine.
fn isolation() -> Result<Vec<String>> {
    if !cfg!(target_os = "linux") {
        return Ok(Vec::new());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (strongest, unavailable) = match crate::run::guard() {
        Some(guard) => runtime.block_on(guard.strongest()),
        None => (Isolation::None, Vec::new()),
    };
    let what = match strongest {
        Isolation::Namespace => "runs have their own PID namespace",
        Isolation::Cgroup => "runs have their own cgroup",
        Isolation::Tree => "orphans of a run are adopted by its guard",
        _ => "processes that an agent leaves behind may survive",
    };
    let mut lines = vec![format!("{:10} {strongest}: {what}", "isolation")];
    lines.extend(unavailable.into_iter().map(|(_, why)| format!("{:10} {why}", "")));
    Ok(lines)
}

fn about(agent: &Agent, host: &HostEnvironment) -> Vec<String> {
    let Some(program) = agent.installed() else {
        return vec![
            format!("{:10} {}: not installed", agent.name, agent.title),
            format!("{:10} {}", "", agent.install),
        ];
    };
    let version = version(&program).unwrap_or_else(|| "version unknown".to_owned());
    let sign_in = match (agent.signed_in)(host) {
        SignIn::Found(where_from) => format!("signed in, according to {where_from}"),
        SignIn::NotFound(how) => format!("no sign-in was found: {how}"),
    };
    vec![
        format!("{:10} {}: {version}", agent.name, agent.title),
        format!("{:10} {}", "", program.display()),
        format!("{:10} {sign_in}", ""),
    ]
}

/// The version of a program: the first line of its output that contains a digit.
fn version(program: &Path) -> Option<String> {
    let mut child = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let until = Instant::now() + VERSION_TIMEOUT;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() > until {
            // The program hangs, so its exit status is irrelevant.
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|line| line.contains(|it: char| it.is_ascii_digit()))?;
    Some(on_one_line(line.trim()))
}
