//! `interlingua agents`: what is installed here, and how to get the rest.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Result;
use interlingua_agents::agent::{ALL, Agent, HostEnvironment, SignIn};

use crate::WHOLE;
use crate::report::on_one_line;

/// How long a program may take to tell its version.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs the command; gives its exit code.
pub(crate) fn run() -> Result<u8> {
    let host = HostEnvironment::current();
    let mut out = io::stdout().lock();
    for agent in ALL {
        for line in about(agent, &host) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(WHOLE)
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
        SignIn::Found(where_from) => format!("signed in, as far as {where_from} tells"),
        SignIn::NotFound(how) => format!("no sign-in was found: {how}"),
    };
    vec![
        format!("{:10} {}: {version}", agent.name, agent.title),
        format!("{:10} {}", "", program.display()),
        format!("{:10} {sign_in}", ""),
    ]
}

/// What a program says of its version: the first line that has a number in it.
fn version(program: &Path) -> Option<String> {
    let mut child = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let until = Instant::now() + PATIENCE;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() > until {
            // It is of no use to anybody any more.
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
