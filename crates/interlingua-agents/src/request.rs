//! What is requested of an agent before its first prompt, checked before anything is started.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use crate::agent::Relaunch;
use crate::client_tool::{ClientToolOffer, Endpoint, ToolCommand};
use crate::error::Error;
use crate::permission::Mode;
use crate::process::{Guard, Isolation};

/// How an agent is to be started.
#[derive(Clone)]
pub struct Request {
    /// The model, by the agent's name for it.
    pub model: Option<String>,
    /// The working folder.
    pub folder: PathBuf,
    /// The session to resume, by the agent's own id.
    pub resume: Option<String>,
    /// What the agent may do.
    pub mode: Mode,
    /// Environment variables to set for the agent.
    pub environment: Vec<(String, String)>,
    /// The agent's program, if it is not the one on `PATH`.
    pub program: Option<PathBuf>,
    /// The tools that the client runs.
    pub client_tools: Option<Arc<ClientToolOffer>>,
    /// The program that offers these tools over standard streams when it is started with the argument
    /// `mcp`: `interlingua`, or one that runs a [`StdioToolServer`](crate::StdioToolServer). It is for
    /// agents that take an MCP server only as a command.
    pub mcp_program: Option<PathBuf>,
    /// Additional flags, passed to the agent unchanged.
    pub flags: Vec<String>,
    /// The files of the working folder may make the agent run programs without asking: hooks,
    /// plugins, MCP servers. Otherwise the agent is started so that it ignores them, as far as it can.
    pub trusts_folder: bool,
    /// Use the agent's protocol for unattended runs, even if it reports less.
    pub exec: bool,
    /// Read the agent's screen instead of a protocol. The result is a guess.
    pub screen: bool,
    /// How the processes that the agent starts are kept together.
    pub isolation: Isolation,
    /// The guard that keeps them together.
    pub guard: Option<Guard>,
}

impl Default for Request {
    /// An agent in the current folder, with its own defaults.
    fn default() -> Self {
        Self {
            model: None,
            folder: PathBuf::from("."),
            resume: None,
            mode: Mode::default(),
            environment: Vec::new(),
            program: None,
            client_tools: None,
            mcp_program: None,
            flags: Vec::new(),
            trusts_folder: false,
            exec: false,
            screen: false,
            isolation: Isolation::default(),
            guard: None,
        }
    }
}

/// Environment variables may be secrets, so only their names are shown.
impl std::fmt::Debug for Request {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.environment.iter().map(|(name, _)| name).collect();
        out.debug_struct("Request")
            .field("model", &self.model)
            .field("folder", &self.folder)
            .field("resume", &self.resume)
            .field("mode", &self.mode)
            .field("environment", &names)
            .field("flags", &self.flags)
            .finish_non_exhaustive()
    }
}

impl Request {
    /// The same request with what has changed since the agent was first started.
    pub(crate) fn with(&self, next: &Relaunch) -> Self {
        let Relaunch { resume, model, mode } = next.clone();
        Self { resume, model, mode, ..self.clone() }
    }

    /// What may change at the next launch, as it is requested for the first one.
    pub(crate) fn relaunch(&self) -> Relaunch {
        Relaunch { resume: self.resume.clone(), model: self.model.clone(), mode: self.mode }
    }

    /// Where the agent finds the tools of the client.
    pub(crate) fn tool_endpoint(&self) -> Option<Endpoint> {
        self.client_tools.as_ref().map(|tools| tools.endpoint())
    }

    /// The command by which the agent starts a server of these tools.
    pub(crate) fn tool_command(&self) -> Option<ToolCommand> {
        let program = self.mcp_program.clone()?;
        self.tool_endpoint().map(|endpoint| ToolCommand { program, endpoint })
    }

    /// The value of an environment variable, as the agent will see it.
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        let set = self.environment.iter().rev().find(|(set, _)| set == name);
        set.map(|(_, value)| OsString::from(value)).or_else(|| std::env::var_os(name))
    }

    /// Rejects a request that no agent could carry out.
    pub fn check(&self) -> Result<(), Error> {
        if !self.folder.is_dir() {
            return Err(Error::NoFolder(self.folder.clone()));
        }
        let names = [("model", &self.model), ("session", &self.resume)];
        for (what, name) in names {
            if let Some(name) = name
                && (name.is_empty() || name.starts_with('-') || name.contains(char::is_control))
            {
                return Err(Error::InvalidName { what, name: name.clone() });
            }
        }
        for (name, _) in &self.environment {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(Error::InvalidName { what: "variable", name: name.clone() });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_requests_are_rejected() {
        let fine = Request::default();
        assert!(fine.check().is_ok());
        let nowhere = Request { folder: "/no/such/folder".into(), ..fine.clone() };
        assert!(matches!(nowhere.check(), Err(Error::NoFolder(_))));
        for name in ["", "-x", "a\nb"] {
            let model = Request { model: Some(name.to_owned()), ..fine.clone() };
            assert!(
                matches!(model.check(), Err(Error::InvalidName { what: "model", .. })),
                "{name}"
            );
        }
        let variable = Request { environment: vec![("a=b".into(), "c".into())], ..fine };
        assert!(matches!(variable.check(), Err(Error::InvalidName { what: "variable", .. })));
    }

    #[test]
    fn a_variable_is_shown_without_its_value() {
        let environment = vec![("API_KEY".to_owned(), "hunter2".to_owned())];
        let shown = format!("{:?}", Request { environment, ..Request::default() });
        assert!(shown.contains("API_KEY") && !shown.contains("hunter2"), "{shown}");
    }
}
