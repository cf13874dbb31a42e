//! MCP servers, whose tools are offered to the model beside our own.
//!
//! | module | what it knows |
//! |---|---|
//! | `config` | the file that lists servers, in the form that Claude Code and others use |
//! | `stdio` | a server that is a process: its streams, its environment, its end |
//! | `connection` | one server: its start, its tools, its calls |
//! | `names` | the names under which tools are offered |
//! | `result` | the result of a call, as the model receives it |
//!
//! All servers are started at the same time, before the session. Their tools are read once and then
//! stay the same, because models bind their reasoning to the tools that they were offered: a
//! server that announces other tools later is not listened to. A server that fails to start is
//! reported and left out, unless it is required. One that ends later is not started again; its
//! calls fail with the reason.
//!
//! What a server states about its tools is not trusted: every call needs a permission, whatever
//! its hints are.

mod config;
mod connection;
mod names;
mod result;
mod stdio;

use std::sync::Arc;

use serde_json::Value;

pub use config::{McpServer, McpTransport, parse_config, read_config};
use connection::Connection;
use names::Names;

use super::model::OfferedTool;
use crate::error::Error;
pub(crate) use crate::tool::settings::is_of_server;
use crate::tool::settings::lists;
use crate::tool::{Output, Settings};

/// The servers of a session.
#[derive(Debug, Default)]
pub(crate) struct Servers {
    connections: Vec<Arc<Connection>>,
    tools: Vec<ServerTool>,
}

/// A tool of a server.
#[derive(Debug)]
struct ServerTool {
    offered: OfferedTool,
    /// The name that the server knows.
    name: String,
    connection: Arc<Connection>,
}

impl Servers {
    /// Starts all servers at the same time. Returns what the user has to know of those that failed.
    pub(crate) async fn start(
        servers: Vec<McpServer>,
        settings: &Settings,
    ) -> Result<(Self, Vec<String>), Error> {
        let tasks: Vec<_> = servers
            .into_iter()
            .map(|server| {
                let settings = settings.clone();
                let (name, required) = (server.name.clone(), server.required);
                // An aborted start drops its connection, which ends the process.
                let start =
                    AbortOnDrop(tokio::spawn(
                        async move { Connection::start(server, &settings).await },
                    ));
                (name, required, start)
            })
            .collect();
        let (mut started, mut notices) = (Self::default(), Vec::new());
        let mut names = Names::default();
        for (name, required, mut task) in tasks {
            let result = match (&mut task.0).await {
                Ok(result) => result,
                Err(problem) => Err(problem.to_string()),
            };
            match result {
                Ok(connection) => started.add(connection, &mut names, settings),
                Err(problem) if required => {
                    started.close().await;
                    return Err(Error::McpNotStarted { server: name, problem });
                }
                Err(problem) => notices.push(format!(
                    "the MCP server `{name}` is not available, and neither are its tools: {problem}"
                )),
            }
        }
        notices.extend(started.missing(settings));
        Ok((started, notices))
    }

    /// What the user has to know of listed tools that no server has.
    fn missing(&self, settings: &Settings) -> Option<String> {
        let has = |listed: &str| self.tools.iter().any(|tool| lists(listed, &tool.offered.name));
        let listed = settings.tools.iter().flatten().filter(|name| is_of_server(name));
        let missing: Vec<_> =
            listed.filter(|name| !has(name)).map(|it| format!("`{it}`")).collect();
        (!missing.is_empty()).then(|| format!("no MCP server has {}", missing.join(", ")))
    }

    fn add(&mut self, connection: Connection, names: &mut Names, settings: &Settings) {
        let connection = Arc::new(connection);
        for tool in connection.tools() {
            // Every tool has its name, whether it is offered or not.
            let name = names.add(connection.name(), &tool.name);
            if !settings.offers(&name) {
                continue;
            }
            let offered = OfferedTool {
                name,
                description: tool.description.clone(),
                input_schema: tool.input_schema.clone(),
            };
            self.tools.push(ServerTool {
                offered,
                name: tool.name.clone(),
                connection: connection.clone(),
            });
        }
        self.connections.push(connection);
    }

    /// What is offered to the model, always in the same order.
    pub(crate) fn offered(&self) -> impl Iterator<Item = OfferedTool> {
        self.tools.iter().map(|tool| tool.offered.clone())
    }

    /// What is not enforced, for the user.
    pub(crate) fn enforcement(&self) -> Option<String> {
        let names: Vec<_> = self.connections.iter().map(|it| format!("`{}`", it.name())).collect();
        let names = Some(names.join(", ")).filter(|names| !names.is_empty())?;
        Some(format!("MCP servers run outside of any sandbox, and can do what you can: {names}"))
    }

    fn find(&self, name: &str) -> Option<&ServerTool> {
        self.tools.iter().find(|tool| tool.offered.name == name)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Runs a call; `None` if no server has the tool. If the future is dropped, the server is
    /// asked to cancel the call.
    pub(crate) async fn run(
        &self,
        name: &str,
        input: &Value,
        progress: &mut (dyn FnMut(&str) + Send),
    ) -> Option<Output> {
        let tool = self.find(name)?;
        Some(tool.connection.call(&tool.name, input, progress).await)
    }

    /// Ends all servers at the same time, and waits until their processes have ended.
    pub(crate) async fn close(&self) {
        for connection in &self.connections {
            connection.stop();
        }
        for connection in &self.connections {
            connection.stopped().await;
        }
    }
}

/// A task that ends when no one waits for it any more.
#[derive(Debug)]
struct AbortOnDrop<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
