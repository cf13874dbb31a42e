//! The file that lists MCP servers:
//!
//! ```json
//! {
//!   "mcpServers": {
//!     "files": {"command": "mcp-files", "args": ["--root", "${HOME}"], "env": {"LEVEL": "1"}},
//!     "tickets": {
//!       "type": "http",
//!       "url": "https://tickets.example/mcp",
//!       "headers": {"Authorization": "Bearer ${TICKETS_TOKEN}"},
//!       "required": true
//!     }
//!   }
//! }
//! ```
//!
//! It is the form that Claude Code and others use. `${NAME}` and `${NAME:-default}` in values are
//! environment variables. Further fields: `cwd` (the working folder of a process), `timeout` (the
//! limit of a call, in milliseconds), `startupTimeout` (the limit of the start), `required` (the
//! session fails without the server) and `disabled`. Fields that only other programs know are
//! ignored.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::Error;
use crate::secret;

/// How long a server may take to start.
const START: Duration = Duration::from_secs(30);

/// How long a call may take.
const CALL: Duration = Duration::from_secs(600);

/// An MCP server.
#[derive(Debug, Clone)]
pub struct McpServer {
    /// Its name, which becomes a part of the names of its tools.
    pub name: String,
    /// How it is reached.
    pub transport: McpTransport,
    /// The session does not start without it.
    pub required: bool,
    /// How long it may take to start, and to list its tools.
    pub start_limit: Duration,
    /// How long a call may take.
    pub call_limit: Duration,
}

/// How an MCP server is reached.
#[derive(Clone)]
pub enum McpTransport {
    /// It is a process, and talks through its standard streams.
    Stdio {
        /// The program: a path, or a name that is looked up on `PATH`.
        command: String,
        /// Its arguments.
        arguments: Vec<String>,
        /// Environment variables to set, in addition to the inherited ones.
        environment: Vec<(String, String)>,
        /// Its working folder; that of the session if absent.
        folder: Option<PathBuf>,
    },
    /// It is reached with streamable HTTP.
    Http {
        /// Its address.
        url: String,
        /// Headers of every request.
        headers: Vec<(String, String)>,
    },
}

impl McpTransport {
    /// What must not be shown or passed on.
    pub(crate) fn secrets(&self) -> Vec<&str> {
        match self {
            Self::Stdio { environment, .. } => {
                let secret =
                    environment.iter().filter(|(name, value)| secret::is_in_variable(name, value));
                secret.map(|(_, value)| &**value).collect()
            }
            Self::Http { headers, .. } => {
                headers.iter().flat_map(|(name, value)| secret::in_header(name, value)).collect()
            }
        }
    }

    /// A message without the secrets that an address may contain.
    pub(super) fn without_secrets(&self, message: &str) -> String {
        let Self::Http { url, .. } = self else { return message.to_owned() };
        let harmless = crate::api::http::without_secrets(url);
        let mut message = message.replace(&**url, &harmless);
        // The client writes the address in its own form.
        if let Ok(parsed) = reqwest::Url::parse(url) {
            message = message.replace(parsed.as_str(), &harmless);
        }
        message
    }
}

/// Values of variables and headers may be secrets, and so may arguments and addresses.
impl std::fmt::Debug for McpTransport {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stdio { command, .. } => {
                out.debug_struct("Stdio").field("command", command).finish_non_exhaustive()
            }
            Self::Http { .. } => out.debug_struct("Http").finish_non_exhaustive(),
        }
    }
}

impl McpServer {
    /// A server with the usual limits, which is not required.
    pub fn new(name: impl Into<String>, transport: McpTransport) -> Self {
        Self { name: name.into(), transport, required: false, start_limit: START, call_limit: CALL }
    }
}

/// Reads a file that lists servers.
pub fn read_config(path: &Path) -> Result<Vec<McpServer>, Error> {
    let source = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|problem| Error::InvalidFile {
        path: source.clone(),
        problem: problem.to_string(),
    })?;
    parse_config(&text, &source, &|name| std::env::var(name).ok())
}

/// Parses a list of servers. `source` is its name in errors, and `variable` looks up the
/// environment.
pub fn parse_config(
    text: &str,
    source: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<McpServer>, Error> {
    let invalid = |problem: String| Error::InvalidFile { path: source.to_owned(), problem };
    let file: File = serde_json::from_str(text).map_err(|problem| invalid(problem.to_string()))?;
    let mut servers = Vec::new();
    for (name, value) in file.servers {
        let of_server = |problem| invalid(format!("the MCP server `{name}`: {problem}"));
        let Value::Object(fields) = value else {
            return Err(of_server("it has to be an object".to_owned()));
        };
        let entry = Entry { fields: &fields, variable };
        servers.extend(entry.server(&name).map_err(of_server)?);
    }
    Ok(servers)
}

#[derive(Deserialize)]
struct File {
    /// They are ordered by their names, so that tools are always offered in the same order.
    #[serde(rename = "mcpServers")]
    servers: BTreeMap<String, Value>,
}

/// The fields of a server.
struct Entry<'e> {
    fields: &'e Map<String, Value>,
    variable: &'e dyn Fn(&str) -> Option<String>,
}

impl Entry<'_> {
    /// The server, unless it is disabled.
    fn server(&self, name: &str) -> Result<Option<McpServer>, String> {
        if name.trim().is_empty() {
            return Err("its name is empty".to_owned());
        }
        if self.read::<bool>("disabled")?.unwrap_or(false) {
            return Ok(None);
        }
        let kind = self.read::<String>("type")?;
        let transport = match kind.as_deref() {
            Some("stdio") => self.stdio()?,
            Some("http" | "streamable-http" | "streamableHttp") => self.http()?,
            Some(other) => {
                return Err(format!(
                    "the field `type`: {other:?} is not supported; use \"stdio\" or \"http\""
                ));
            }
            None if self.fields.contains_key("command") => self.stdio()?,
            None if self.fields.contains_key("url") => self.http()?,
            None => return Err("it needs the field `command` or the field `url`".to_owned()),
        };
        let mut server = McpServer::new(name, transport);
        server.required = self.read("required")?.unwrap_or(false);
        let limit = |field, usual| {
            let read = self.read::<u64>(field)?;
            Ok::<_, String>(read.map_or(usual, Duration::from_millis))
        };
        server.start_limit = limit("startupTimeout", START)?;
        server.call_limit = limit("timeout", CALL)?;
        Ok(Some(server))
    }

    fn stdio(&self) -> Result<McpTransport, String> {
        let command = self.text("command")?.filter(|command| !command.is_empty());
        let command = command.ok_or("the field `command` is missing or empty")?;
        let arguments = self.read::<Vec<String>>("args")?.unwrap_or_default();
        let arguments: Result<_, _> =
            arguments.iter().map(|argument| self.expanded("args", argument)).collect();
        Ok(McpTransport::Stdio {
            command,
            arguments: arguments?,
            environment: self.pairs("env")?,
            folder: self.text("cwd")?.map(PathBuf::from),
        })
    }

    fn http(&self) -> Result<McpTransport, String> {
        let url = self.text("url")?.ok_or("the field `url` is missing")?;
        let parsed = reqwest::Url::parse(&url);
        if !parsed.is_ok_and(|url| matches!(url.scheme(), "http" | "https")) {
            return Err("the field `url`: it has to begin with http:// or https://".to_owned());
        }
        Ok(McpTransport::Http { url, headers: self.pairs("headers")? })
    }

    /// The value of a field, if there is one.
    fn read<T: DeserializeOwned>(&self, field: &str) -> Result<Option<T>, String> {
        let value = self.fields.get(field).filter(|value| !value.is_null());
        let read = value.map(|value| T::deserialize(value)).transpose();
        read.map_err(|problem| format!("the field `{field}`: {problem}"))
    }

    fn text(&self, field: &str) -> Result<Option<String>, String> {
        let text = self.read::<String>(field)?;
        text.map(|text| self.expanded(field, &text)).transpose()
    }

    fn pairs(&self, field: &str) -> Result<Vec<(String, String)>, String> {
        let pairs: Map<String, Value> = self.read(field)?.unwrap_or_default();
        let pairs = pairs.iter().map(|(name, value)| {
            let place = format!("{field}.{name}");
            let text = value
                .as_str()
                .ok_or_else(|| format!("the field `{place}`: it has to be a text"))?;
            Ok((name.clone(), self.expanded(&place, text)?))
        });
        pairs.collect()
    }

    /// A text with the values of the variables in it.
    fn expanded(&self, field: &str, text: &str) -> Result<String, String> {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            expanded.push_str(before);
            let Some((inside, after)) = after.split_once('}') else {
                return Err(format!("the field `{field}`: `${{` is not closed by `}}`"));
            };
            let (name, default) = match inside.split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (inside, None),
            };
            // As in a shell, a default also takes the place of an empty value.
            let value = (self.variable)(name).filter(|it| !it.is_empty() || default.is_none());
            match value.as_deref().or(default) {
                Some(value) => expanded.push_str(value),
                None => {
                    return Err(format!(
                        "the field `{field}`: the environment variable {name} is not set; set it, or write ${{{name}:-default}}"
                    ));
                }
            }
            rest = after;
        }
        expanded.push_str(rest);
        Ok(expanded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(name: &str) -> Option<String> {
        match name {
            "HOME" => Some("/home/a".to_owned()),
            "TOKEN" => Some("s3cret".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    fn parse(text: &str) -> Result<Vec<McpServer>, Error> {
        parse_config(text, "mcp.json", &variable)
    }

    fn of(server: &str) -> Result<Vec<McpServer>, Error> {
        parse(&format!(r#"{{"mcpServers": {{"s": {server}}}}}"#))
    }

    #[test]
    fn a_process_is_read() {
        let servers = of(r#"{
            "command": "${HOME}/bin/server",
            "args": ["--token=${TOKEN}", "${NONE:-x}${EMPTY:-y}", "$HOME", "${EMPTY}"],
            "env": {"A": "${NONE:-}", "B": "1"},
            "cwd": "${HOME}",
            "timeout": 1500,
            "startupTimeout": 20,
            "required": true,
            "trust": "unknown fields are those of other programs"
        }"#)
        .unwrap();
        let [server] = &servers[..] else { panic!("{servers:?}") };
        assert_eq!((&*server.name, server.required), ("s", true));
        assert_eq!(server.call_limit, Duration::from_millis(1500));
        assert_eq!(server.start_limit, Duration::from_millis(20));
        let McpTransport::Stdio { command, arguments, environment, folder } = &server.transport
        else {
            panic!("{server:?}")
        };
        assert_eq!(command, "/home/a/bin/server");
        assert_eq!(arguments, &["--token=s3cret", "xy", "$HOME", ""]);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(environment, &[pair("A", ""), pair("B", "1")]);
        assert_eq!(folder.as_deref(), Some(Path::new("/home/a")));
    }

    #[test]
    fn an_address_is_read() {
        let text = r#"{"type": "http", "url": "https://a.example/${NONE:-mcp}",
                       "headers": {"Authorization": "Bearer ${TOKEN}"}}"#;
        let servers = of(text).unwrap();
        let McpTransport::Http { url, headers } = &servers[0].transport else { panic!() };
        assert_eq!(url, "https://a.example/mcp");
        assert_eq!(headers, &[("Authorization".to_owned(), "Bearer s3cret".to_owned())]);
        assert_eq!((servers[0].start_limit, servers[0].call_limit), (START, CALL));
        let shown = format!("{servers:?}");
        assert!(!shown.contains("s3cret"), "{shown}");
    }

    #[test]
    fn servers_are_in_the_order_of_their_names() {
        let text = r#"{"mcpServers": {
            "b": {"command": "b"}, "a": {"command": "a"}, "c": {"command": "c", "disabled": true}
        }}"#;
        let names: Vec<_> = parse(text).unwrap().into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn an_error_names_the_file_the_server_and_the_field() {
        let cases = [
            (r#"{"command": 1}"#, "the field `command`: invalid type"),
            (r#"{"command": ""}"#, "the field `command` is missing or empty"),
            (r#"{"command": "a", "args": "b"}"#, "the field `args`: invalid type"),
            (
                r#"{"command": "a", "args": ["${NONE}"]}"#,
                "the field `args`: the environment variable NONE is not set",
            ),
            (r#"{"command": "a", "env": {"K": 1}}"#, "the field `env.K`: it has to be a text"),
            (r#"{"command": "a", "env": {"K": "${A"}}"#, "the field `env.K`: `${` is not closed"),
            (r#"{"command": "a", "timeout": -1}"#, "the field `timeout`"),
            (r#"{"type": "sse", "url": "http://a"}"#, "the field `type`: \"sse\" is not supported"),
            (r#"{"url": "ftp://a"}"#, "the field `url`: it has to begin with"),
            (r#"{}"#, "it needs the field `command` or the field `url`"),
            (r#"[]"#, "it has to be an object"),
        ];
        for (server, expected) in cases {
            let problem = of(server).unwrap_err().to_string();
            assert!(problem.starts_with("mcp.json: the MCP server `s`: "), "{problem}");
            assert!(problem.contains(expected), "{server}: {problem}");
        }
        let problem = parse("{}").unwrap_err().to_string();
        assert!(problem.contains("mcp.json: missing field `mcpServers`"), "{problem}");
    }
}
