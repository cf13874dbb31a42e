//! How each agent is started: one file per agent, and a registry.
//!
//! A launch consists of a checked request, the files that the working folder must have, a command,
//! the driver that speaks to the agent, and the dialect of the agent's output. If the output is
//! written in the same dialect, every record is passed through unchanged.
//!
//! **To add an agent**, add a file here with an [`Agent`], and its line to [`ALL`]. Any other
//! program is started from a description in a small file ([`program`]).

mod claude;
mod codex;
mod copilot;
mod gemini;
mod opencode;
pub mod program;
mod qwen;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use interlingua::dialect::Dialect;
use tempfile::TempDir;

use crate::driver::{AcpDriver, Driver, PlainDriver, SCREEN, SIZE, Session};
use crate::error::Error;
use crate::process::{Command, Input};
use crate::request::Request;

/// All known agents.
pub const ALL: &[&Agent] = &[
    &claude::AGENT,
    &codex::AGENT,
    &gemini::AGENT,
    &copilot::AGENT,
    &opencode::AGENT,
    &qwen::AGENT,
];

/// The facts about an agent.
#[derive(Debug)]
pub struct Agent {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its display name.
    pub title: &'static str,
    /// The program that is looked up on `PATH`.
    pub program: &'static str,
    /// How to install it.
    pub install: &'static str,
    /// Whether the user is signed in, as far as that is visible without starting the agent.
    pub signed_in: fn(&HostEnvironment) -> SignIn,
    /// How to start it.
    plan: MakePlan,
    /// How to start it at a terminal, if its screen can be read.
    screen: Option<MakePlan>,
}

type MakePlan = fn(&Request) -> Result<Plan, Error>;

/// Whether the user is signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignIn {
    /// A sign-in was found here. Only the provider knows whether it is still valid.
    Found(String),
    /// No sign-in was found; this is how to sign in.
    NotFound(&'static str),
}

/// What is visible of the machine without starting anything.
#[derive(Debug, Clone)]
pub struct HostEnvironment {
    home: PathBuf,
}

impl HostEnvironment {
    /// The state of this machine, as seen by this process.
    pub fn current() -> Self {
        let home = std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE"));
        Self { home: home.map(PathBuf::from).unwrap_or_default() }
    }

    /// The first of these that exists: environment variables, or files below the home folder. Their
    /// contents are never read.
    fn first_of(&self, variables: &[&str], files: &[&str]) -> Option<String> {
        let set = |name: &&&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        if let Some(name) = variables.iter().find(set) {
            return Some(format!("${name}"));
        }
        let file = files.iter().find(|file| self.home.join(file).is_file());
        file.map(|file| format!("~/{file}"))
    }

    fn sign_in(&self, variables: &[&str], files: &[&str], how: &'static str) -> SignIn {
        self.first_of(variables, files).map_or(SignIn::NotFound(how), SignIn::Found)
    }
}

/// How an agent is started for one request.
#[derive(Debug)]
struct Plan {
    arguments: Vec<OsString>,
    environment: Vec<(&'static str, String)>,
    input: Input,
    dialect: &'static str,
    driver: Box<dyn Driver>,
    scratch: Option<TempDir>,
    /// The agent is started at a pseudoterminal.
    at_terminal: bool,
}

impl Plan {
    /// An agent with a dialect and a driver.
    fn new(
        dialect: &'static str,
        arguments: Vec<OsString>,
        input: Input,
        driver: impl Driver + 'static,
    ) -> Self {
        let (environment, driver) = (Vec::new(), Box::new(driver));
        let (scratch, at_terminal) = (None, false);
        Self { arguments, environment, input, dialect, driver, scratch, at_terminal }
    }

    /// An agent that receives everything when it is started, and prints a stream.
    fn stream(dialect: &'static str, arguments: Vec<OsString>, input: Input) -> Self {
        Self::new(dialect, arguments, input, PlainDriver::default())
    }

    /// An agent that speaks ACP.
    fn acp(request: &Request, arguments: Vec<OsString>, session: Session) -> Self {
        let driver = AcpDriver::new(request.prompt.clone(), session);
        Self::new("acp", arguments, Input::Open, driver)
    }

    /// An agent whose screen is read; its driver emits all events.
    fn screen(arguments: Vec<OsString>, driver: impl Driver + 'static) -> Self {
        Self { at_terminal: true, ..Self::new(SCREEN.name, arguments, Input::Closed, driver) }
    }

    /// Sets an environment variable.
    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.environment.push((name, value.to_owned()));
        self
    }
}

/// Everything that is needed to run an agent once.
#[derive(Debug)]
pub struct Launch {
    /// The command.
    pub command: Command,
    /// The dialect of the agent's output.
    pub dialect: &'static Dialect,
    /// The driver that speaks to the agent.
    pub driver: Box<dyn Driver>,
    /// Files that the working folder must have; they are written if they are missing.
    pub files: Vec<(PathBuf, String)>,
    /// A temporary folder for the files that the agent writes, deleted with the run.
    pub scratch: Option<TempDir>,
}

impl Launch {
    /// Creates a launch from a command, the dialect of its output, and its driver.
    pub fn new(command: Command, dialect: &'static Dialect, driver: Box<dyn Driver>) -> Self {
        Self { command, dialect, driver, files: Vec::new(), scratch: None }
    }

    /// Prepares the working folder.
    pub(crate) fn prepare(&self) -> Result<(), Error> {
        for (path, text) in &self.files {
            let path = self.command.folder.join(path);
            prepare(&path, text).map_err(|problem| Error::NotPrepared { path, problem })?;
        }
        Ok(())
    }
}

/// Writes a file for the agent into a temporary folder, which must exist as long as the agent.
fn scratch_file(name: &str, text: &str) -> Result<(TempDir, PathBuf), Error> {
    let failed = |path: &Path, problem| Error::NotPrepared { path: path.to_owned(), problem };
    let folder = tempfile::tempdir().map_err(|problem| failed(&std::env::temp_dir(), problem))?;
    let path = folder.path().join(name);
    std::fs::write(&path, text).map_err(|problem| failed(&path, problem))?;
    Ok((folder, path))
}

/// Writes a file, unless it exists.
fn prepare(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    match std::fs::File::create_new(path) {
        Ok(mut file) => file.write_all(text.as_bytes()),
        Err(problem) if problem.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(problem) => Err(problem),
    }
}

impl Agent {
    /// Finds an agent by its name.
    pub fn find(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|agent| agent.name == name).copied()
    }

    /// The path of its program, if it is installed.
    pub fn installed(&self) -> Option<PathBuf> {
        find_on_path(self.program)
    }

    /// Prepares a launch for a request.
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
        plan(request)?.launch(program, request)
    }
}

impl Plan {
    fn launch(self, program: PathBuf, request: &Request) -> Result<Launch, Error> {
        let mut arguments = self.arguments;
        arguments.extend(request.flags.iter().map(OsString::from));
        let own = self.environment.into_iter().map(|(name, value)| (name.to_owned(), value));
        let environment = own.chain(request.environment.iter().cloned()).collect();
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
            folder,
            input,
            terminal,
            ..Command::default()
        };
        Ok(Launch { scratch: self.scratch, ..Launch::new(command, dialect, self.driver) })
    }
}

/// The ACP session of a request; the agent's own file adds its model and its mode.
fn session(request: &Request) -> Session {
    let (resume, folder) = (request.resume.clone(), absolute(&request.folder));
    Session { resume, folder, ..Session::default() }
}

/// The folder of a request, as an absolute path.
fn absolute(folder: &Path) -> String {
    let absolute = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    absolute.display().to_string()
}

/// Looks a program up on `PATH`.
fn find_on_path(program: &str) -> Option<PathBuf> {
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
                    let request = Request { mode, exec, ..Request::new("-x") };
                    match (agent.plan)(&request) {
                        Ok(plan) => {
                            let dialect = interlingua::dialect::find(plan.dialect).unwrap();
                            assert!(dialect.decoder.is_some(), "{}", agent.name);
                            assert!(!plan.arguments.contains(&"-x".into()), "{}", agent.name);
                        }
                        Err(Error::NoMode { .. }) => {}
                        Err(other) => panic!("{}: {other}", agent.name),
                    }
                }
            }
            let auto = Request { mode: Mode::Auto, ..Request::new("do it") };
            assert!((agent.plan)(&auto).is_ok(), "{}", agent.name);
            assert_eq!(Agent::find(agent.name).map(|found| found.title), Some(agent.title));
        }
    }

    #[test]
    fn a_missing_program_is_reported_with_how_to_install_it() {
        let agent = Agent { program: "no-such-agent-here", ..claude::AGENT };
        let refused = agent.launch(&Request::new("do it")).unwrap_err().to_string();
        assert!(refused.contains("no-such-agent-here") && refused.contains("npm"), "{refused}");
    }
}
