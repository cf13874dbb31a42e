//! Tools that the client of a session runs: a form in a browser, for example.
//!
//! An agent that is a process reaches them through an MCP server of ours ([`ClientToolServer`]), which
//! one process needs once, for any number of sessions. An agent that carries the messages of MCP in a
//! protocol of its own needs no connection to it (`messages`). A session is [offered](ClientToolServer::offer)
//! its tools under a token of its own. A call stays open until the session answers it.
//!
//! This module knows MCP and the tools. It knows neither agents nor sessions: what a call means to
//! them, and how an agent finds the server, is theirs.

mod endpoint;
mod exchange;
mod form;
mod handler;
mod keyed;
mod list;
mod messages;
mod routes;
mod server;
mod stdio;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(crate) use endpoint::LONGEST_WAIT;
pub use endpoint::{Endpoint, ToolCommand};
pub(crate) use handler::{MOST_OPEN, ReceivedCall, ToolMessage};
pub use list::ClientTools;
pub(crate) use messages::{MessageCall, MessageServer, Received};
pub use server::{ClientToolOffer, ClientToolServer};
pub use stdio::StdioToolServer;

/// The name of the MCP server. It has neither `-` nor `_`, so that the names of its tools, which agents
/// join with it in different ways, are not ambiguous.
pub(crate) const SERVER_NAME: &str = "interlingua";

/// A tool that the client runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClientTool {
    /// Its name.
    pub name: String,
    /// What it does, for the model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The JSON schema of its input.
    #[serde(default = "any_object")]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub input_schema: Map<String, Value>,
    /// It changes nothing, so that an agent may call it several times at once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}

/// The schema of a tool that takes any object.
fn any_object() -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), "object".into())])
}

impl ClientTool {
    /// The tools for the form of a web page: `getFormSnapshot` and `executeFormActions`.
    pub fn form() -> Vec<Self> {
        form::tools()
    }

    /// Checks the tools of a session. The error states what is wrong.
    pub fn check(tools: &[Self]) -> Result<(), String> {
        if tools.len() > MOST_TOOLS {
            return Err(format!("there are {} tools, and at most {MOST_TOOLS}", tools.len()));
        }
        let mut names = HashSet::new();
        for tool in tools {
            tool.check_one()?;
            if !names.insert(&tool.name) {
                return Err(format!("there are two tools `{}`", tool.name));
            }
        }
        let size = serde_json::to_string(tools).map_or(usize::MAX, |json| json.len());
        if size > LARGEST {
            return Err(format!(
                "the definitions have {size} bytes, and at most {LARGEST}: shorten descriptions and schemas"
            ));
        }
        Ok(())
    }

    fn check_one(&self) -> Result<(), String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let starts = self.name.starts_with(|c: char| c.is_ascii_alphabetic());
        if !starts || self.name.len() > LONGEST_NAME || !self.name.chars().all(is_plain) {
            return Err(format!(
                "{:?} cannot be the name of a tool: use a letter, and then up to {} letters, digits, `_` or `-`",
                self.name,
                LONGEST_NAME - 1,
            ));
        }
        match self.input_schema.get("type") {
            Some(kind) if kind == "object" => Ok(()),
            _ => {
                Err(format!("the schema of the tool `{}` needs `\"type\": \"object\"`", self.name))
            }
        }
    }
}

/// The most tools of a session. Every request to the model repeats their descriptions.
const MOST_TOOLS: usize = 64;

/// The largest definitions, as JSON. They are also stored with every change of a session.
const LARGEST: usize = 64 * 1024;

/// The longest name of a tool. Model APIs limit it to 64 characters, with what an agent adds to it.
const LONGEST_NAME: usize = 40;

/// How a client has answered a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ClientResult {
    /// The tool has run; its output.
    Output(String),
    /// It has not run, or has failed; why. The model sees it as an error.
    Error(String),
}
