//! `interlingua agents`: which agents are installed, and how to install the others.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Result;
use interlingua_agents::agent::{ALL, HostEnvironment, KnownAgent, SignIn};
use interlingua_agents::api::provider::{self, Provider};
use interlingua_agents::process::Isolation;
use serde_json::{Value, json};

use crate::SUCCESS;
use crate::arguments::AgentsArguments;
use crate::report::on_one_line;

/// How long all programs together may take to print their versions.
const VERSION_TIMEOUT: Duration = Duration::from_millis(1500);

/// How often it is checked whether a program has printed its version.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Runs the command; returns its exit code.
pub(crate) fn run(arguments: &AgentsArguments) -> Result<u8> {
    let host = HostEnvironment::current();
    let mut out = io::stdout().lock();
    for found in find_all(&host) {
        if arguments.json {
            writeln!(out, "{}", found.to_json())?;
        } else {
            found.lines().into_iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
    }
    for provider in &provider::ALL {
        if arguments.json {
            writeln!(out, "{}", provider_json(provider))?;
        } else {
            provider_lines(provider).into_iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
    }
    if let Some(isolation) = FoundIsolation::find()? {
        if arguments.json {
            writeln!(out, "{}", isolation.to_json())?;
        } else {
            isolation.lines().into_iter().try_for_each(|line| writeln!(out, "{line}"))?;
        }
    }
    Ok(SUCCESS)
}

/// The environment variable that has the key of a provider.
fn key_variable(provider: &Provider) -> Option<&'static str> {
    let is_set = |name: &&&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    provider.key_variables.iter().find(is_set).copied()
}

fn provider_lines(provider: &Provider) -> Vec<String> {
    let key = match key_variable(provider) {
        Some(name) => format!("a key was found in {name}"),
        None => format!("no key was found: {}", provider.how_to_sign_in()),
    };
    vec![
        format!("{:10} {}, with tools of Interlingua", provider.name, provider.title),
        format!("{:10} {key}", ""),
    ]
}

fn provider_json(provider: &Provider) -> Value {
    let sign_in = match key_variable(provider) {
        Some(name) => json!({"found": true, "place": name}),
        None => json!({"found": false, "how": provider.how_to_sign_in()}),
    };
    json!({
        "name": provider.name,
        "title": provider.title,
        "installed": true,
        "model": provider.model,
        "sign_in": sign_in,
    })
}

/// What keeps the processes of a run together on this machine.
struct FoundIsolation {
    strongest: Isolation,
    /// The stronger mechanisms, and why they do not work.
    unavailable: Vec<(Isolation, String)>,
}

impl FoundIsolation {
    /// Tries the mechanisms, on a system that has them.
    fn find() -> Result<Option<Self>> {
        if !cfg!(target_os = "linux") {
            return Ok(None);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (strongest, unavailable) = match crate::guard::guard() {
            Some(guard) => runtime.block_on(guard.strongest()),
            None => (Isolation::None, Vec::new()),
        };
        Ok(Some(Self { strongest, unavailable }))
    }

    fn lines(&self) -> Vec<String> {
        let Self { strongest, unavailable } = self;
        let what = match strongest {
            Isolation::Namespace => "runs have their own PID namespace",
            Isolation::Cgroup => "runs have their own cgroup",
            Isolation::Tree => "orphans of a run are adopted by its guard",
            _ => "processes that an agent leaves behind may survive",
        };
        let mut lines = vec![format!("{:10} {strongest}: {what}", "isolation")];
        lines.extend(unavailable.iter().map(|(_, why)| format!("{:10} {why}", "")));
        lines
    }

    fn to_json(&self) -> Value {
        let why = |(isolation, why): &(Isolation, String)| (isolation.to_string(), json!(why));
        let unavailable: serde_json::Map<_, _> = self.unavailable.iter().map(why).collect();
        json!({"isolation": self.strongest.to_string(), "unavailable": unavailable})
    }
}

/// What is known of an agent on this machine.
struct Found {
    agent: &'static KnownAgent,
    /// The program and its version, if the agent is installed.
    installed: Option<(PathBuf, Option<String>)>,
    sign_in: SignIn,
}

/// Finds all agents. Programs that must be run for their version run at the same time.
fn find_all(host: &HostEnvironment) -> Vec<Found> {
    let until = Instant::now() + VERSION_TIMEOUT;
    let started: Vec<_> = ALL
        .iter()
        .map(|agent| (*agent, agent.installed().map(|program| (Version::of(&program), program))))
        .collect();
    let found = started.into_iter().map(|(agent, installed)| Found {
        agent,
        installed: installed.map(|(version, program)| (program, version.known_by(until))),
        sign_in: agent.sign_in(host),
    });
    found.collect()
}

impl Found {
    fn lines(&self) -> Vec<String> {
        let Self { agent, installed, sign_in } = self;
        let Some((program, version)) = installed else {
            return vec![
                format!("{:10} {}: not installed", agent.name, agent.title),
                format!("{:10} {}", "", agent.install),
            ];
        };
        let sign_in = match sign_in {
            SignIn::Found(place) => format!("signed in, according to {place}"),
            SignIn::NotFound(how) => format!("no sign-in was found: {how}"),
        };
        let version = version.as_deref().unwrap_or("version unknown");
        vec![
            format!("{:10} {}: {version}", agent.name, agent.title),
            format!("{:10} {}", "", program.display()),
            format!("{:10} {sign_in}", ""),
        ]
    }

    fn to_json(&self) -> Value {
        let Self { agent, installed, sign_in } = self;
        let (program, version) = match installed {
            Some((program, version)) => (Some(program.to_string_lossy()), version.as_deref()),
            None => (None, None),
        };
        let sign_in = match sign_in {
            SignIn::Found(place) => json!({"found": true, "place": place}),
            SignIn::NotFound(how) => json!({"found": false, "how": how}),
        };
        json!({
            "name": agent.name,
            "title": agent.title,
            "installed": installed.is_some(),
            "program": program,
            "version": version,
            "install": agent.install,
            "sign_in": sign_in,
        })
    }
}

/// The version of a program, which may still be running to print it.
enum Version {
    Known(String),
    Running(Child),
    Unknown,
}

impl Version {
    /// Looks for the package that a program belongs to; without one, starts the program.
    fn of(program: &Path) -> Self {
        if let Some(version) = packaged_version(program) {
            return Self::Known(version);
        }
        let mut command = Command::new(program);
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.spawn();
        child.map_or(Self::Unknown, Self::Running)
    }

    fn known_by(self, until: Instant) -> Option<String> {
        let mut child = match self {
            Self::Known(version) => return Some(version),
            Self::Running(child) => child,
            Self::Unknown => return None,
        };
        while child.try_wait().ok()?.is_none() {
            if Instant::now() > until {
                // The program hangs, so its exit status is irrelevant.
                kill_group(&child);
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        // What it left behind may hold its output open.
        kill_group(&child);
        let output = child.wait_with_output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find(|line| line.contains(|it: char| it.is_ascii_digit()))?;
        Some(on_one_line(line.trim()))
    }
}

/// Kills a program with everything that it started, as far as that did not leave its process group.
#[cfg(unix)]
fn kill_group(leader: &Child) {
    use rustix::process::{Pid, Signal, kill_process_group};
    if let Some(group) = i32::try_from(leader.id()).ok().and_then(Pid::from_raw) {
        // Usually, nothing is left of it.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// Other systems have no process groups.
#[cfg(not(unix))]
fn kill_group(_leader: &Child) {}

/// The version in the npm package that a program is part of. Starting a Node program only to ask for
/// its version takes about a second.
fn packaged_version(program: &Path) -> Option<String> {
    let program = program.canonicalize().ok()?;
    let folders = program.ancestors().skip(1);
    // A package ends at the folder that packages are installed into.
    let within = folders.take_while(|folder| !folder.ends_with("node_modules"));
    let manifest = within.map(|folder| folder.join("package.json")).find(|path| path.is_file())?;
    if !manifest.components().any(|part| part.as_os_str() == "node_modules") {
        return None;
    }
    let manifest: Value = serde_json::from_slice(&std::fs::read(manifest).ok()?).ok()?;
    manifest.get("version")?.as_str().map(on_one_line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_a_package_is_read_from_its_manifest() {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join("node_modules/@a/agent");
        std::fs::create_dir_all(package.join("bin")).unwrap();
        std::fs::write(package.join("bin/agent.js"), "").unwrap();
        std::fs::write(package.join("package.json"), r#"{"name":"@a/agent","version":"1.2.3"}"#)
            .unwrap();
        assert_eq!(packaged_version(&package.join("bin/agent.js")).as_deref(), Some("1.2.3"));
        // A program next to somebody's own manifest is not part of that package.
        std::fs::write(folder.path().join("agent"), "").unwrap();
        std::fs::write(folder.path().join("package.json"), r#"{"version":"9"}"#).unwrap();
        assert_eq!(packaged_version(&folder.path().join("agent")), None);
    }
}
