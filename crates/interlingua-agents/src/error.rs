//! The one error type of this crate.

use std::path::PathBuf;

use interlingua::Fault;

use crate::permission::Mode;

/// Why an agent was not started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is nothing to do.
    #[error("the prompt is empty: say what the agent is to do")]
    EmptyPrompt,
    /// The folder does not exist.
    #[error("there is no folder {}: make it, or name another one", .0.display())]
    NoFolder(PathBuf),
    /// A word that the agent would take for something else.
    #[error("{word:?} cannot be the name of a {what}")]
    BadWord {
        /// What it was to name.
        what: &'static str,
        /// The word.
        word: String,
    },
    /// The program is not here.
    #[error("{agent} is not installed: there is no program `{program}` on the path. {install}")]
    NotInstalled {
        /// The agent.
        agent: String,
        /// Its program.
        program: String,
        /// How to get it.
        install: String,
    },
    /// The agent has no such mode.
    #[error("{agent} has no permission mode `{mode}`{advice}")]
    NoMode {
        /// The agent.
        agent: &'static str,
        /// The mode.
        mode: Mode,
        /// What to use instead.
        advice: &'static str,
    },
    /// The agent's screen cannot be read.
    #[error("the screen of {agent} cannot be read: drive it by its protocol")]
    NoScreen {
        /// The agent.
        agent: &'static str,
    },
    /// A description of a program cannot be read.
    #[error("{path}: {problem}")]
    BadDescription {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The protocol cannot be read, or not be written.
    #[error(transparent)]
    CannotTranslate(#[from] interlingua::Error),
    /// The working folder could not be prepared.
    #[error("{} could not be written: {problem}", .path.display())]
    NotPrepared {
        /// The file that has to be there.
        path: PathBuf,
        /// What the system says.
        problem: std::io::Error,
    },
    /// It could not be started.
    #[error("{program} could not be started: {problem}")]
    NotStarted {
        /// The program.
        program: String,
        /// What the system says.
        problem: std::io::Error,
    },
}

impl Error {
    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Self::EmptyPrompt
            | Self::NoFolder(_)
            | Self::BadWord { .. }
            | Self::BadDescription { .. } => Fault::Caller,
            Self::NoMode { .. } | Self::NoScreen { .. } => Fault::Unsupported,
            Self::NotInstalled { .. } | Self::NotPrepared { .. } | Self::NotStarted { .. } => {
                Fault::Transport
            }
            Self::CannotTranslate(error) => error.fault(),
        }
    }
}
