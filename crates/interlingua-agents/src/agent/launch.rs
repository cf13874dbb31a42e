//! What is needed to start an agent: its command, how prompts and records reach it, and its files.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use interlingua::dialect::Dialect;
use tempfile::TempDir;

use crate::driver::Driver;
use crate::error::Error;
use crate::permission::Mode;
use crate::process::{Command, Input};

/// What has to be known about an agent that calls tools of the client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClientToolNeeds {
    /// The agent takes prompts before it knows the tools, so that they are held back until then.
    pub late: bool,
    /// How long the agent waits for the answer to a call, if it cannot be configured.
    pub limit: Option<Duration>,
    /// The agent passes its own ids of calls on. What another one sends in their place is not trusted.
    pub passes_ids: bool,
}

/// How a prompt reaches an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// Through its driver: any number of prompts.
    Driver,
    /// Through its driver, once: the agent exits after its turn.
    DriverOnce,
    /// On its standard input, which is then closed.
    Input,
    /// In its arguments, in place of [`PROMPT`].
    Argument,
}

/// How a record to an agent is delimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum InputFraming {
    /// By a line feed after it.
    #[default]
    Lines,
    /// By a header with its length before it, as in the Language Server Protocol.
    ContentLength,
}

impl InputFraming {
    /// The bytes of a record.
    pub(crate) fn frame(self, record: &str) -> Vec<u8> {
        let framed = match self {
            Self::Lines => format!("{record}\n"),
            Self::ContentLength => format!("Content-Length: {}\r\n\r\n{record}", record.len()),
        };
        framed.into_bytes()
    }
}

/// Stands for the prompt in the arguments of an agent. No argument can contain this character.
pub const PROMPT: &str = "\0";

/// The longest prompt that fits into an argument: systems limit a single one to 128 KiB.
const LONGEST_ARGUMENT: usize = 100 << 10;

/// Everything that is needed to start an agent.
#[derive(Debug)]
pub struct Launch {
    /// The command.
    pub command: Command,
    /// The dialect of the agent's output.
    pub dialect: &'static Dialect,
    /// The driver that speaks to the agent.
    pub driver: Box<dyn Driver>,
    /// How prompts reach the agent.
    pub delivery: Delivery,
    /// How the records to the agent are delimited.
    pub input_framing: InputFraming,
    /// The model that the agent is started with, if one was requested.
    pub model: Option<String>,
    /// Files that the working folder must have; they are written if they are missing.
    pub files: Vec<(PathBuf, String)>,
    /// A temporary folder for the files that the agent writes, deleted with the run.
    pub scratch: Option<TempDir>,
    /// Warnings for the user, emitted when the session starts.
    pub warnings: Vec<String>,
    /// What has to be known about its calls of the client's tools.
    pub client_tools: ClientToolNeeds,
}

impl Launch {
    /// Creates a launch from a command, the dialect of its output, and its driver, which delivers
    /// the prompts.
    pub fn new(command: Command, dialect: &'static Dialect, driver: Box<dyn Driver>) -> Self {
        Self {
            command,
            dialect,
            driver,
            delivery: Delivery::Driver,
            input_framing: InputFraming::default(),
            model: None,
            files: Vec::new(),
            scratch: None,
            warnings: Vec::new(),
            client_tools: ClientToolNeeds::default(),
        }
    }

    /// Whether one process takes any number of prompts.
    pub(crate) fn takes_many_prompts(&self) -> bool {
        self.delivery == Delivery::Driver
    }

    /// Puts a prompt where an agent expects it that receives it when it is started.
    pub(crate) fn deliver(&mut self, prompt: &str) -> Result<(), Error> {
        match self.delivery {
            Delivery::Driver | Delivery::DriverOnce => {}
            Delivery::Input => self.command.input = Input::Text(prompt.to_owned()),
            Delivery::Argument if prompt.len() > LONGEST_ARGUMENT || prompt.contains('\0') => {
                return Err(Error::PromptNotDelivered { length: prompt.len() });
            }
            Delivery::Argument => {
                for argument in &mut self.command.arguments {
                    if let Some(text) = argument.to_str()
                        && text.contains(PROMPT)
                    {
                        *argument = text.replace(PROMPT, prompt).into();
                    }
                }
            }
        }
        Ok(())
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

/// Creates a temporary folder that only this user can open.
pub(super) fn scratch_folder() -> io::Result<TempDir> {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "elsewhere, the folder is the user's own"))]
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::fs::Permissions;
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(Permissions::from_mode(0o700));
    }
    builder.tempdir()
}

/// Writes a file for the agent, which may contain a secret, into a temporary folder, which must exist
/// as long as the agent.
pub(super) fn scratch_file(name: &str, text: &str) -> Result<(TempDir, PathBuf), Error> {
    let failed = |path: &Path, problem| Error::NotPrepared { path: path.to_owned(), problem };
    let folder = scratch_folder().map_err(|problem| failed(&std::env::temp_dir(), problem))?;
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

/// What may change between two launches of one session.
#[derive(Debug, Clone, Default)]
pub struct Relaunch {
    /// The session to resume, by the agent's own id.
    pub resume: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// What the agent may do.
    pub mode: Mode,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::{PlainDriver, SCREEN};

    #[test]
    fn a_prompt_is_delivered_where_the_agent_expects_it() {
        let launch = |delivery| {
            let arguments = vec!["--prompt=\0".into(), "-x".into()];
            let command = Command { arguments, ..Command::default() };
            let driver = Box::<PlainDriver>::default();
            Launch { delivery, ..Launch::new(command, &SCREEN, driver) }
        };
        let mut argument = launch(Delivery::Argument);
        argument.deliver("--help me").unwrap();
        assert_eq!(argument.command.arguments, ["--prompt=--help me", "-x"]);
        let mut input = launch(Delivery::Input);
        input.deliver("do it").unwrap();
        assert_eq!(input.command.input, Input::Text("do it".to_owned()));
        for prompt in ["x".repeat(LONGEST_ARGUMENT + 1), "a\0b".to_owned()] {
            let refused = launch(Delivery::Argument).deliver(&prompt).unwrap_err();
            assert!(matches!(refused, Error::PromptNotDelivered { .. }));
        }
    }

    #[test]
    fn a_record_is_framed_as_the_agent_expects_it() {
        assert_eq!(InputFraming::Lines.frame("{}"), b"{}\n");
        let framed = InputFraming::ContentLength.frame(r#"{"a":"é"}"#);
        assert_eq!(framed, "Content-Length: 10\r\n\r\n{\"a\":\"é\"}".as_bytes());
    }

    /// It may contain the token of a session. Without the mode of its folder, the umask decides.
    #[test]
    #[cfg(unix)]
    fn a_file_for_an_agent_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let (folder, path) = scratch_file("a.json", "{}").unwrap();
        let mode = folder.path().metadata().unwrap().permissions().mode();
        assert_eq!((mode & 0o777, path.parent()), (0o700, Some(folder.path())));
    }
}
