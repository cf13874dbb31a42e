//! How each agent is started: a file an agent, and a list of all.
//!
//! A launch is a request that was checked, files that the working folder has to have, a command, a
//! driver that speaks to the agent, and the dialect in which the agent answers: the dialect is the mapper
//! of its output, and one that is written as it is read passes every record on as it is. **To add an agent**: a file here with an [`Agent`], and its line in [`ALL`];
//! a program that nobody has described is started from a small file ([`program`]).

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
use crate::process::{Command, Input, Process, Spool};
use crate::request::Request;

/// All agents that are known.
pub const ALL: &[&Agent] = &[
    &claude::AGENT,
    &codex::AGENT,
    &gemini::AGENT,
    &copilot::AGENT,
    &opencode::AGENT,
    &qwen::AGENT,
];

/// What is known of an agent.
#[derive(Debug)]
pub struct Agent {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    /// The program that is looked for on the path.
    pub program: &'static str,
    /// How to get it.
    pub install: &'static str,
    /// Whether somebody is signed in, as far as that can be seen without asking anybody.
    pub signed_in: fn(&Surroundings) -> SignIn,
    /// How to start it.
    plan: MakePlan,
    /// How to start it at a terminal, where its screen can be read.
    screen: Option<MakePlan>,
}

type MakePlan = fn(&Request) -> Result<Plan, Error>;

/// Whether somebody is signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignIn {
    /// This says so; whether it is still valid, only the provider knows.
    Seen(String),
    /// Nothing of the kind was found, and this is how to sign in.
    NotSeen(&'static str),
}

/// What can be seen of the machine without starting anything.
#[derive(Debug, Clone)]
pub struct Surroundings {
    home: PathBuf,
}

impl Surroundings {
    /// Those of this process.
    pub fn here() -> Self {
        let home = std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE"));
        Self { home: home.map(PathBuf::from).unwrap_or_default() }
    }

    /// The first of these that is there: variables by name, files below the home folder. Their values
    /// are never looked at.
    fn first_of(&self, variables: &[&str], files: &[&str]) -> Option<String> {
        let set = |name: &&&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        if let Some(name) = variables.iter().find(set) {
            return Some(format!("${name}"));
        }
        let file = files.iter().find(|file| self.home.join(file).is_file());
        file.map(|file| format!("~/{file}"))
    }

    fn sign_in(&self, variables: &[&str], files: &[&str], how: &'static str) -> SignIn {
        self.first_of(variables, files).map_or(SignIn::NotSeen(how), SignIn::Seen)
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
    /// The agent is started at a terminal.
    at_terminal: bool,
}

impl Plan {
    /// An agent that is driven so, and answers in a dialect.
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

    /// An agent that is told everything when it is started, and prints a stream.
    fn stream(dialect: &'static str, arguments: Vec<OsString>, input: Input) -> Self {
        Self::new(dialect, arguments, input, PlainDriver::default())
    }

    /// An agent that speaks ACP.
    fn acp(request: &Request, arguments: Vec<OsString>, session: Session) -> Self {
        let driver = AcpDriver::new(request.prompt.clone(), session);
        Self::new("acp", arguments, Input::Open, driver)
    }

    /// An agent whose screen is read: all that is known of it is what its driver tells.
    fn screen(arguments: Vec<OsString>, driver: impl Driver + 'static) -> Self {
        Self { at_terminal: true, ..Self::new(SCREEN.name, arguments, Input::Closed, driver) }
    }

    /// The same, with a variable set.
    fn with(mut self, name: &'static str, value: &str) -> Self {
        self.environment.push((name, value.to_owned()));
        self
    }
}

/// Everything that a run needs.
#[derive(Debug)]
pub struct Launch {
    /// The command.
    pub command: Command,
    /// The protocol in which the agent answers.
    pub dialect: &'static Dialect,
    /// Who speaks to it.
    pub driver: Box<dyn Driver>,
    /// Files that have to be in the working folder: they are written there where they are not.
    pub files: Vec<(PathBuf, String)>,
    /// A folder for what it writes beside its stream, which is gone when the run is over.
    pub scratch: Option<TempDir>,
}

impl Launch {
    /// A command that answers in a dialect, and who speaks to it.
    pub fn new(command: Command, dialect: &'static Dialect, driver: Box<dyn Driver>) -> Self {
        Self { command, dialect, driver, files: Vec::new(), scratch: None }
    }

    /// Prepares the working folder, and starts the program.
    pub(crate) fn start(&self) -> Result<(Process, Spool), Error> {
        for (path, text) in &self.files {
            let path = self.command.folder.join(path);
            prepare(&path, text).map_err(|problem| Error::NotPrepared { path, problem })?;
        }
        self.command.start().map_err(|problem| Error::NotStarted {
            program: self.command.program.display().to_string(),
            problem,
        })
    }
}

/// Writes a file, unless it is there.
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
    /// The agent of a name.
    pub fn find(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|agent| agent.name == name).copied()
    }

    /// Where its program is.
    pub fn installed(&self) -> Option<PathBuf> {
        on_the_path(self.program)
    }

    /// Makes ready to start it.
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
            Some(path) => on_the_path(&path.display().to_string()),
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
        let guard = None;
        let command = Command { program, arguments, environment, folder, input, terminal, guard };
        Ok(Launch { scratch: self.scratch, ..Launch::new(command, dialect, self.driver) })
    }
}

/// The session of a request; its model and its mode are for the agent to say.
fn session(request: &Request) -> Session {
    let (resume, folder) = (request.resume.clone(), absolute(&request.folder));
    Session { resume, folder, ..Session::default() }
}

/// The folder of a request, as agents want to be told it.
fn absolute(folder: &Path) -> String {
    let absolute = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    absolute.display().to_string()
}

/// Where a program is, if it is on the path.
fn on_the_path(program: &str) -> Option<PathBuf> {
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

/// Arguments, and after them flags for what a request says.
fn arguments(fixed: &[&str], said: &[(&str, &Option<String>)]) -> Vec<OsString> {
    let mut arguments = words(fixed);
    for (flag, value) in said {
        if let Some(value) = value {
            arguments.extend(words(&[flag, value]));
        }
    }
    arguments
}

/// Words as arguments.
fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permission::Mode;

    #[test]
    fn every_agent_can_be_read_in_every_mode_that_it_has() {
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
    fn a_program_that_is_not_there_is_said_with_how_to_get_it() {
        let agent = Agent { program: "no-such-agent-here", ..claude::AGENT };
        let refused = agent.launch(&Request::new("do it")).unwrap_err().to_string();
        assert!(refused.contains("no-such-agent-here") && refused.contains("npm"), "{refused}");
    }
}
