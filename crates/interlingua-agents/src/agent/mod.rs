//! How each agent is started: one file per agent, and a registry.
//!
//! A launch consists of the files that the working folder must have, a command, the driver that
//! speaks to the agent, how prompts reach it, and the dialect of the agent's output. A session may
//! need several launches: where an agent takes one prompt per process, each prompt is one.
//!
//! In every mode, an agent is started so that it asks before it acts, and the session's policy
//! decides. Only the protocols for unattended runs (`exec`) depend on the agent's own modes.
//!
//! **To add an agent**, add a file here with a [`KnownAgent`], and its line to [`ALL`]. Any other
//! program is started from a description in a small file ([`program`]).

mod claude;
mod codex;
mod copilot;
mod described;
mod gemini;
mod launch;
mod opencode;
pub mod program;
mod qwen;
mod repository;
mod session_files;
mod sign_in;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::driver::{AcpDriver, AcpSession, Driver, PlainDriver, SCREEN, SIZE};
use crate::error::Error;
use crate::process::{Command, Input, Server};
use crate::process_agent::ProcessAgent;
use crate::request::Request;
pub use described::Described;
pub use launch::{ClientToolNeeds, Delivery, InputFraming, Launch, PROMPT, Relaunch};
use launch::{scratch_file, scratch_folder};
use repository::Loosening;
use session_files::SessionStorage;
use sign_in::Folder;
pub use sign_in::{HostEnvironment, KEY_VARIABLES, SignIn};

/// All known agents.
pub const ALL: &[&KnownAgent] = &[
    &claude::AGENT,
    &codex::AGENT,
    &gemini::AGENT,
    &copilot::AGENT,
    &opencode::AGENT,
    &qwen::AGENT,
];

/// What is known of an agent before it is started.
#[derive(Debug)]
pub struct KnownAgent {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its display name.
    pub title: &'static str,
    /// The program that is looked up on `PATH`.
    pub program: &'static str,
    /// How to install it.
    pub install: &'static str,
    /// How to sign in, at a shell.
    pub how_to_sign_in: &'static str,
    /// Where a sign-in was found, as far as that is visible without starting the agent.
    signed_in: fn(&HostEnvironment) -> Option<String>,
    /// How to start it.
    plan: MakePlan,
    /// How to start it at a terminal, if its screen can be read.
    screen: Option<MakePlan>,
    /// The files by which a repository makes it run programs or act without asking.
    loosenings: &'static [Loosening],
    /// What it ignores if the folder has such a file.
    ignored: &'static str,
    /// Where it keeps its sessions.
    sessions: SessionStorage,
}

type MakePlan = fn(&Request) -> Result<Plan, Error>;

/// How an agent is started for one request.
#[derive(Debug)]
struct Plan {
    arguments: Vec<OsString>,
    environment: Vec<(&'static str, String)>,
    /// Variables that replace those of the request.
    overrides: Vec<(&'static str, String)>,
    input: Input,
    dialect: &'static str,
    driver: Box<dyn Driver>,
    delivery: Delivery,
    input_framing: InputFraming,
    scratch: Option<TempDir>,
    /// The agent is started at a pseudoterminal.
    at_terminal: bool,
    /// The agent is a server.
    server: Option<Server>,
    /// The agent ignores the files by which the folder could make it act without asking.
    restricted: bool,
    /// The agent asks before it acts.
    asks: bool,
    /// Why it asks about less than it should, if it does.
    lax: Option<String>,
    /// What has to be known about its calls of the client's tools; `None` if it cannot call them.
    client_tools: Option<ClientToolNeeds>,
}

impl Plan {
    /// An agent that takes any number of prompts through its driver.
    fn live(
        dialect: &'static str,
        arguments: Vec<OsString>,
        driver: impl Driver + 'static,
    ) -> Self {
        Self {
            arguments,
            environment: Vec::new(),
            overrides: Vec::new(),
            input: Input::Open,
            dialect,
            driver: Box::new(driver),
            delivery: Delivery::Driver,
            input_framing: InputFraming::Lines,
            scratch: None,
            at_terminal: false,
            server: None,
            restricted: false,
            asks: true,
            lax: None,
            client_tools: None,
        }
    }

    /// An agent that receives one prompt when it is started, and prints a stream.
    fn stream(dialect: &'static str, arguments: Vec<OsString>, delivery: Delivery) -> Self {
        let (input, asks) = (Input::Closed, false);
        Self { delivery, input, asks, ..Self::live(dialect, arguments, PlainDriver::default()) }
    }

    /// An agent that speaks ACP.
    fn acp(arguments: Vec<OsString>, session: AcpSession) -> Self {
        Self::live("acp", arguments, AcpDriver::new(session))
    }

    /// An agent whose screen is read; its driver emits all events.
    fn screen(arguments: Vec<OsString>, driver: impl Driver + 'static) -> Self {
        let (at_terminal, input, delivery) = (true, Input::Closed, Delivery::Argument);
        Self { at_terminal, input, delivery, ..Self::live(SCREEN.name, arguments, driver) }
    }

    /// The same plan for an agent that knows the tools of the client.
    fn calling_client(mut self, needs: ClientToolNeeds) -> Self {
        self.client_tools = Some(needs);
        self
    }

    /// The same plan with another driver.
    fn driven_by(mut self, driver: impl Driver + 'static) -> Self {
        self.driver = Box::new(driver);
        self
    }

    /// Sets an environment variable.
    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.environment.push((name, value.to_owned()));
        self
    }
}

impl KnownAgent {
    /// Finds an agent by its name.
    pub fn find(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|agent| agent.name == name).copied()
    }

    /// The path of its program, if it is installed.
    pub fn installed(&self) -> Option<PathBuf> {
        find_on_path(self.program)
    }

    /// Whether the user is signed in, as far as that is visible without starting the agent.
    pub fn sign_in(&self, host: &HostEnvironment) -> SignIn {
        (self.signed_in)(host).map_or(SignIn::NotFound(self.how_to_sign_in), SignIn::Found)
    }

    /// Prepares the agent for a request. It is started with [`Agent::start`](crate::Agent::start).
    pub fn prepare(&'static self, request: &Request) -> Result<ProcessAgent, Error> {
        let (launch, request) = (self.launch(request)?, request.clone());
        let (first, client_tools) = (request.relaunch(), request.client_tools.clone());
        let again = move |next: &Relaunch| self.launch(&request.with(next));
        Ok(ProcessAgent::new(launch).relaunched(first, again).with_client_tools(client_tools))
    }

    /// Prepares one launch for a request.
    pub fn launch(&self, request: &Request) -> Result<Launch, Error> {
        request.check()?;
        let not_installed = || Error::NotInstalled {
            agent: self.title.to_owned(),
            program: request
                .program
                .as_ref()
                .map_or_else(|| self.program.to_owned(), |path| path.display().to_string()),
            install: format!("Install it with: {}", self.install),
        };
        let program = match &request.program {
            Some(path) => find_on_path(&path.display().to_string()),
            None => self.installed(),
        };
        let program = program.ok_or_else(not_installed)?;
        let plan = match (request.screen, self.screen) {
            (false, _) => self.plan,
            (true, Some(screen)) => screen,
            (true, None) => return Err(Error::NoScreen { agent: self.title }),
        };
        let plan = plan(request)?;
        if request.client_tools.is_some() && plan.client_tools.is_none() {
            return Err(Error::NoClientTools { agent: self.title.to_owned() });
        }
        let ignored = plan.restricted.then_some(self.ignored);
        let repository = repository::warning(self.title, ignored, self.loosenings, request);
        let unasked = (!plan.asks).then(|| {
            let (title, mode) = (self.title, request.mode);
            format!(
                "with --exec, {title} does not ask before it acts: its own settings for `{mode}` apply, and permission rules do not"
            )
        });
        let warnings = [unasked, plan.lax.clone(), repository].into_iter().flatten().collect();
        Ok(Launch { warnings, ..plan.launch(program, request)? })
    }
}

impl Plan {
    fn launch(self, program: PathBuf, request: &Request) -> Result<Launch, Error> {
        let mut arguments = self.arguments;
        arguments.extend(request.flags.iter().map(OsString::from));
        let named = |(name, value): (&str, String)| (name.to_owned(), value);
        let defaults = self.environment.into_iter().map(named);
        let overrides = self.overrides.into_iter().chain(without_proxy(request)).map(named);
        let requested = request.environment.iter().cloned();
        let environment = defaults.chain(requested).chain(overrides).collect();
        let dialect = match interlingua::dialect::find(self.dialect) {
            _ if self.at_terminal => &SCREEN,
            Some(dialect) => dialect,
            None => return Err(interlingua::Error::NotRead { dialect: self.dialect }.into()),
        };
        let (folder, input) = (request.folder.clone(), self.input);
        let terminal = self.at_terminal.then_some(SIZE);
        let command = Command {
            program,
            arguments,
            environment,
            without: Vec::new(),
            folder,
            input,
            terminal,
            server: self.server,
            isolation: request.isolation,
            guard: request.guard.clone(),
        };
        let Self { delivery, input_framing, scratch, driver, client_tools, .. } = self;
        let (model, launch) = (request.model.clone(), Launch::new(command, dialect, driver));
        let client_tools = client_tools.unwrap_or_default();
        Ok(Launch { delivery, input_framing, scratch, model, client_tools, ..launch })
    }
}

/// Keeps an agent that calls tools of the client from sending their token to a proxy.
fn without_proxy(request: &Request) -> Vec<(&'static str, String)> {
    if request.client_tools.is_none() {
        return Vec::new();
    }
    let names = ["NO_PROXY", "no_proxy"].into_iter();
    let added = names.map(|name| {
        let before = request.variable(name).map(|value| value.to_string_lossy().into_owned());
        let before = before.filter(|before| !before.is_empty());
        (name, before.map_or_else(String::new, |before| before + ",") + "127.0.0.1,localhost")
    });
    added.collect()
}

/// The ACP session of a request; the agent's own file adds its model and the names of its modes.
fn session(request: &Request) -> AcpSession {
    let (resume, folder) = (request.resume.clone(), absolute(&request.folder));
    let client_tools = request.tool_endpoint();
    AcpSession { resume, folder, mode: request.mode, client_tools, ..AcpSession::default() }
}

/// The folder of a request, as an absolute path.
pub(crate) fn absolute(folder: &Path) -> String {
    let absolute = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    absolute.display().to_string()
}

/// Looks a program up on `PATH`.
pub(crate) fn find_on_path(program: &str) -> Option<PathBuf> {
    if program.contains(std::path::MAIN_SEPARATOR) {
        return Some(PathBuf::from(program)).filter(|path| path.is_file());
    }
    let path = std::env::var_os("PATH")?;
    let endings: &[&str] = if cfg!(windows) { &[".exe", ".cmd", ".bat", ""] } else { &[""] };
    std::env::split_paths(&path).find_map(|folder| {
        let candidates = endings.iter().map(|ending| folder.join(format!("{program}{ending}")));
        candidates.into_iter().find(|candidate| is_program(candidate))
    })
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

/// Fixed arguments, followed by the flags whose values the request has.
fn arguments(fixed: &[&str], options: &[(&str, &Option<String>)]) -> Vec<OsString> {
    let mut arguments = words(fixed);
    for (flag, value) in options {
        if let Some(value) = value {
            arguments.extend(words(&[flag, value]));
        }
    }
    arguments
}

/// Converts strings to arguments.
fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permission::Mode;

    #[test]
    fn every_agent_can_be_read_in_every_supported_mode() {
        for agent in ALL {
            for mode in Mode::ALL {
                for exec in [false, true] {
                    let request = Request { mode, exec, ..Request::default() };
                    match (agent.plan)(&request) {
                        Ok(plan) => {
                            let dialect = interlingua::dialect::find(plan.dialect).unwrap();
                            assert!(dialect.decoder.is_some(), "{}", agent.name);
                            // A prompt that looks like a flag must not be taken for one.
                            assert!(!plan.arguments.contains(&PROMPT.into()), "{}", agent.name);
                        }
                        Err(Error::NoMode { .. }) => {}
                        Err(other) => panic!("{}: {other}", agent.name),
                    }
                }
            }
            let auto = Request { mode: Mode::Auto, ..Request::default() };
            assert!((agent.plan)(&auto).is_ok(), "{}", agent.name);
            assert_eq!(KnownAgent::find(agent.name).map(|found| found.title), Some(agent.title));
        }
    }

    /// A proxy would receive the token of the session.
    #[tokio::test]
    #[cfg(unix)]
    async fn the_tools_of_the_client_are_reached_without_a_proxy() {
        use crate::client_tool::{ClientTool, ClientToolServer};
        let server = ClientToolServer::start().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let program = Some("/bin/sh".into());
        let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        for agent in ALL {
            let environment = vec![set("NO_PROXY", "intern.example"), set("no_proxy", "")];
            let folder = folder.path().to_owned();
            let without =
                Request { folder, program: program.clone(), environment, ..Request::default() };
            let offer = server.offer(ClientTool::form()).unwrap();
            let with =
                Request { client_tools: Some(std::sync::Arc::new(offer)), ..without.clone() };
            let value = |request: &Request, name: &str| {
                let environment = agent.launch(request).unwrap().command.environment;
                environment.into_iter().rev().find(|(set, _)| set == name).map(|(_, value)| value)
            };
            let value = |request, name| value(request, name).unwrap_or_default();
            let expected = "intern.example,127.0.0.1,localhost";
            assert_eq!(value(&with, "NO_PROXY"), expected, "{}", agent.name);
            assert_eq!(value(&with, "no_proxy"), "127.0.0.1,localhost", "{}", agent.name);
            assert_eq!(value(&without, "NO_PROXY"), "intern.example", "{}", agent.name);
        }
    }

    /// The warnings about an agent, whose program is a shell here.
    #[cfg(unix)]
    fn warnings(agent: &KnownAgent, request: Request) -> Vec<String> {
        let request = Request { program: Some("/bin/sh".into()), ..request };
        agent.launch(&request).unwrap().warnings
    }

    #[test]
    #[cfg(unix)]
    fn an_agent_that_cannot_be_held_to_its_mode_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        for agent in ALL {
            let folder = folder.path().to_owned();
            let asks = Request { mode: Mode::Auto, folder, ..Request::default() };
            assert_eq!(warnings(agent, asks.clone()), [""; 0], "{}", agent.name);
            let found = warnings(agent, Request { exec: true, ..asks }).join("\n");
            // Claude has one protocol for both.
            let expected = agent.name != "claude";
            assert_eq!(found.contains("does not ask before it acts"), expected, "{}", agent.name);
        }
    }

    /// Gemini uses the settings of a folder that the user has trusted in it.
    #[test]
    #[cfg(unix)]
    fn programs_that_gemini_would_start_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".gemini")).unwrap();
        let settings = folder.path().join(".gemini/settings.json");
        std::fs::write(settings, r#"{"mcpServers":{"a":{"command":"b"}}}"#).unwrap();
        let request = Request { folder: folder.path().to_owned(), ..Request::default() };
        let found = warnings(&gemini::AGENT, request.clone());
        assert!(found.len() == 1 && found[0].contains("settings.json: mcpServers"), "{found:?}");
        assert_eq!(warnings(&gemini::AGENT, Request { trusts_folder: true, ..request }), [""; 0]);
    }

    #[test]
    fn a_missing_program_is_reported_with_how_to_install_it() {
        let agent = KnownAgent { program: "no-such-agent-here", ..claude::AGENT };
        let refused = agent.launch(&Request::default()).unwrap_err().to_string();
        assert!(refused.contains("no-such-agent-here") && refused.contains("npm"), "{refused}");
    }
}
