//! Where an agent finds the tools of its session, in the forms that agents take.
//!
//! What concerns one agent only is in its own file; here is what several of them share.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{SERVER_NAME, StdioToolServer};

/// How long an agent may wait for the answer to a call: longer than a session waits, so that it is
/// the session that ends a call. Timers of JavaScript take no more than 24.8 days.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_hours(24 * 24);

/// Where an agent finds the tools of its session.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The address of the MCP server.
    pub url: String,
    /// The value of the header `Authorization`, which is a secret.
    pub authorization: String,
    /// No tool changes anything, so that several calls may run at once.
    pub only_reads: bool,
}

impl Endpoint {
    /// The headers as an object.
    pub(crate) fn headers(&self) -> Value {
        json!({"Authorization": self.authorization})
    }

    /// The description of a server that speaks HTTP, in the form that most agents take, with further
    /// fields.
    pub(crate) fn http(&self, more: &Value) -> Value {
        let mut server = Map::new();
        server.insert("type".to_owned(), "http".into());
        server.insert("url".to_owned(), self.url.as_str().into());
        server.insert("headers".to_owned(), self.headers());
        server.extend(more.as_object().cloned().into_iter().flatten());
        server.into()
    }

    /// The secrets, as they stand in a record.
    pub(crate) fn secrets(&self) -> [String; 2] {
        [&*self.authorization, self.token()].map(|secret| Value::from(secret).to_string())
    }

    /// The secret without the scheme of the header.
    fn token(&self) -> &str {
        self.authorization.strip_prefix("Bearer ").unwrap_or(&self.authorization)
    }

    /// The environment variables by which a [`StdioToolServer`] finds the server.
    pub(crate) fn variables(&self) -> [(&'static str, String); 2] {
        [
            (StdioToolServer::URL, self.url.clone()),
            (StdioToolServer::TOKEN, self.token().to_owned()),
        ]
    }
}

/// The server over standard streams, for agents that take a server only as a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCommand {
    /// The program, which is started with the argument `mcp`.
    pub program: PathBuf,
    /// Where it finds the tools, which it learns from its environment.
    pub endpoint: Endpoint,
}

/// The first argument of the program.
const ARGUMENT: &str = "mcp";

impl ToolCommand {
    /// The configuration that many programs take, with the secret.
    pub(crate) fn servers(&self) -> Value {
        let variables = self.endpoint.variables();
        let variables: Map<_, _> = variables
            .into_iter()
            .map(|(name, value)| (name.to_owned(), Value::from(value)))
            .collect();
        let server = json!({"command": self.program(), "args": [ARGUMENT], "env": variables});
        json!({"mcpServers": {SERVER_NAME: server}})
    }

    /// The server in the form of ACP, where variables are a list.
    pub(crate) fn acp(&self) -> Value {
        let variables = self.endpoint.variables();
        let variables = variables.map(|(name, value)| json!({"name": name, "value": value}));
        json!({
            "name": SERVER_NAME,
            "command": self.program(),
            "args": [ARGUMENT],
            "env": variables,
        })
    }

    /// The program, as a record names it.
    pub(crate) fn program(&self) -> String {
        self.program.display().to_string()
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Endpoint").field("url", &self.url).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_not_shown() {
        let authorization = "Bearer abc".to_owned();
        let url = "http://127.0.0.1:1/mcp".to_owned();
        let endpoint = Endpoint { url, authorization, only_reads: false };
        let shown = format!("{endpoint:?}");
        assert!(shown.contains("127.0.0.1") && !shown.contains("abc"), "{shown}");
    }
}
