//! The one error type of this crate.

use std::path::PathBuf;

use interlingua::Fault;

use crate::permission::Mode;

/// Why an agent was not started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder does not exist.
    #[error("there is no folder {}: create it, or name another one", .0.display())]
    NoFolder(PathBuf),
    /// A name that is empty, or that the agent would take for something else.
    #[error("{name:?} cannot be the name of a {what}")]
    InvalidName {
        /// What it should name.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// The program is not installed.
    #[error("{agent} is not installed: there is no program `{program}` on PATH. {install}")]
    NotInstalled {
        /// The agent.
        agent: String,
        /// Its program.
        program: String,
        /// How to install it.
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
    #[error("the screen of {agent} cannot be read: use its protocol instead")]
    NoScreen {
        /// The agent.
        agent: &'static str,
    },
    /// The agent cannot call tools of the client.
    #[error(
        "{agent} cannot call tools of the client when it is started like this: use the protocol of a known agent, without `--exec` and `--screen`, and with settings that are plain JSON"
    )]
    NoClientTools {
        /// The agent.
        agent: String,
    },
    /// The description of a program does not say how it learns of the tools of the client.
    #[error(
        "{program} cannot call tools of the client: add the table `[client-tools]` to its description, which says how it learns of an MCP server. A screen has no tools"
    )]
    NoToolsTable {
        /// The program.
        program: String,
    },
    /// The server over standard streams was not named.
    #[error(
        "no program was named that offers {agent} the tools of the client: set `Request::mcp_program`"
    )]
    NoMcpProgram {
        /// The agent.
        agent: String,
    },
    /// The tools of the client are offered to another session.
    #[error("these tools of the client are those of another session: offer them once more")]
    ClientToolsTaken,
    /// The tools of the client cannot be offered.
    #[error("the tools of the client cannot be offered: {problem}")]
    InvalidClientTools {
        /// What is wrong with them.
        problem: String,
    },
    /// A settings file, or the description of a program, cannot be used.
    #[error("{path}: {problem}")]
    InvalidFile {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The dialect cannot be read, or cannot be written.
    #[error(transparent)]
    CannotTranslate(#[from] interlingua::Error),
    /// The working folder could not be prepared.
    #[error("{} could not be written: {problem}", .path.display())]
    NotPrepared {
        /// The file that is required.
        path: PathBuf,
        /// The error of the operating system.
        problem: std::io::Error,
    },
    /// The session cannot be stored.
    #[error("the session cannot be stored: {0}")]
    NotStored(#[source] std::io::Error),
    /// The agent takes its prompt as an argument, into which this one does not fit.
    #[error(
        "a prompt of {length} bytes does not fit into an argument of the agent: shorten it, or use a protocol that takes prompts of any length"
    )]
    PromptNotDelivered {
        /// The length of the prompt.
        length: usize,
    },
    /// The address of a model API, or a setting of its connection, cannot be used.
    #[error("{base_url}: {problem}")]
    InvalidConnection {
        /// The address.
        base_url: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The schema of the answer cannot be used.
    #[error("the schema of the answer cannot be used: {problem}")]
    InvalidSchema {
        /// What is wrong with it.
        problem: String,
    },
    /// An MCP server that the session requires did not start.
    #[error("the MCP server `{server}`, which is required, is not available: {problem}")]
    McpNotStarted {
        /// The name of the server.
        server: String,
        /// Why it did not start.
        problem: String,
    },
    /// The agent has exited, and cannot be started again.
    #[error("the agent has exited, and cannot be started again for another prompt")]
    NotRestarted,
    /// The program could not be started.
    #[error("{program} could not be started: {problem}")]
    NotStarted {
        /// The program.
        program: String,
        /// The error of the operating system.
        problem: std::io::Error,
    },
}

impl Error {
    /// Whose fault the error is.
    pub fn fault(&self) -> Fault {
        match self {
            Self::NoFolder(_)
            | Self::InvalidName { .. }
            | Self::InvalidFile { .. }
            | Self::InvalidConnection { .. }
            | Self::InvalidSchema { .. }
            | Self::InvalidClientTools { .. }
            | Self::NoMcpProgram { .. }
            | Self::PromptNotDelivered { .. } => Fault::Caller,
            Self::NoMode { .. }
            | Self::NoScreen { .. }
            | Self::NoClientTools { .. }
            | Self::NoToolsTable { .. }
            | Self::ClientToolsTaken
            | Self::NotRestarted => Fault::Unsupported,
            Self::NotInstalled { .. }
            | Self::NotPrepared { .. }
            | Self::NotStored(_)
            | Self::NotStarted { .. }
            | Self::McpNotStarted { .. } => Fault::Transport,
            Self::CannotTranslate(error) => error.fault(),
        }
    }
}
