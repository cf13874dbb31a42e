//! How a described program learns of the tools of the client.
//!
//! The tools are offered by an MCP server over standard streams, which the program starts. It finds
//! the session by two environment variables, which the program always has. Some programs pass only
//! those on that their configuration names, so the configuration has them as well, and is a secret.

use std::collections::BTreeMap;
use std::ffi::OsString;

use serde::Deserialize;
use tempfile::TempDir;

use crate::agent::scratch_file;
use crate::client_tool::ToolCommand;
use crate::error::Error;
use crate::request::Request;

/// Stands for the path of the program that is the server.
const PROGRAM: &str = "{interlingua}";
/// Stands for a configuration in JSON, with the object `mcpServers`.
const SERVERS: &str = "{servers}";
/// Stands for the path of the file.
const FILE: &str = "{file}";

/// The table of a description.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClientToolsTable {
    /// Further arguments.
    #[serde(default)]
    arguments: Vec<String>,
    /// Further environment variables.
    #[serde(default)]
    environment: BTreeMap<String, String>,
    /// The text of a private file, which is deleted with the run.
    file: Option<String>,
}

/// What is added to the launch of a program.
#[derive(Default)]
pub(super) struct Added {
    pub(super) arguments: Vec<OsString>,
    pub(super) environment: Vec<(String, String)>,
    pub(super) file: Option<TempDir>,
}

impl ClientToolsTable {
    /// Checks where placeholders are used.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.arguments.iter().any(|argument| argument.contains(SERVERS)) {
            return Err(format!(
                "`{SERVERS}` contains a secret, and other users can read arguments: write `file = \"{SERVERS}\"`, and use `{FILE}` in the arguments"
            ));
        }
        if self.file.is_none() && self.values().any(|value| value.contains(FILE)) {
            return Err(format!(
                "`{FILE}` is the path of a file that is missing: add `file = \"{SERVERS}\"` to `[client-tools]`"
            ));
        }
        Ok(())
    }

    fn values(&self) -> impl Iterator<Item = &String> {
        self.arguments.iter().chain(self.environment.values())
    }

    /// What is added to a launch with tools.
    pub(super) fn added(&self, program: &str, request: &Request) -> Result<Added, Error> {
        let mut all = self.values().chain(&self.file);
        let uses_server = all.any(|it| it.contains(PROGRAM) || it.contains(SERVERS));
        let command = request.tool_command();
        if uses_server && command.is_none() {
            return Err(Error::NoMcpProgram { agent: program.to_owned() });
        }
        let mut values = Values::new(command.as_ref());
        let mut added = Added::default();
        if let Some(text) = &self.file {
            let (folder, path) = scratch_file("client-tools.json", &values.insert(text))?;
            values.file = path.display().to_string();
            added.file = Some(folder);
        }
        added.arguments = self.arguments.iter().map(|it| values.insert(it).into()).collect();
        let inserted = |(name, value): (&String, &String)| (name.clone(), values.insert(value));
        added.environment = self.environment.iter().map(inserted).collect();
        Ok(added)
    }
}

/// What the placeholders stand for.
#[derive(Default)]
struct Values {
    program: String,
    servers: String,
    file: String,
}

impl Values {
    fn new(command: Option<&ToolCommand>) -> Self {
        let Some(command) = command else { return Self::default() };
        let servers = command.servers().to_string();
        Self { program: command.program(), servers, file: String::new() }
    }

    fn insert(&self, text: &str) -> String {
        // What is inserted is not looked at again: a path may contain braces.
        let mut inserted = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            let (before, from) = rest.split_at(at);
            inserted.push_str(before);
            let known = [(PROGRAM, &self.program), (SERVERS, &self.servers), (FILE, &self.file)];
            let found =
                known.iter().find_map(|(name, value)| Some((from.strip_prefix(name)?, value)));
            rest = match found {
                Some((after, value)) => {
                    inserted.push_str(value);
                    after
                }
                None => {
                    inserted.push('{');
                    from.get(1..).unwrap_or_default()
                }
            };
        }
        inserted.push_str(rest);
        inserted
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use serde_json::{Value, json};

    use crate::agent::Launch;
    use crate::agent::program::Program;
    use crate::client_tool::{ClientTool, ClientToolServer};
    use crate::driver::testing::replies;
    use crate::error::Error;
    use crate::request::Request;

    fn request() -> Request {
        let server = ClientToolServer::start().unwrap();
        let offer = Arc::new(server.offer(ClientTool::form()).unwrap());
        let mcp_program = Some("/bin/inter{file}lingua".into());
        Request { client_tools: Some(offer), mcp_program, ..Request::default() }
    }

    fn launch(text: &str, request: &Request) -> Result<Launch, Error> {
        Program::parse(text).unwrap().launch(request)
    }

    fn variable(launch: &Launch, name: &str) -> Option<String> {
        let set = launch.command.environment.iter().rev().find(|(set, _)| set == name);
        set.map(|(_, value)| value.clone())
    }

    const DESCRIBED: &str = "
        command = 'sh'
        dialect = 'claude'
        [environment]
        INTERLINGUA_MCP_TOKEN = 'another'
        [client-tools]
        arguments = ['--config', '{file}', '--server={interlingua} mcp', '{other}']
        environment = { SERVERS = '{servers}', AT = '{file}' }
        file = '{servers}'
    ";

    #[tokio::test]
    async fn a_description_states_how_the_program_learns_of_the_tools() {
        let request = request();
        let tools = request.client_tools.clone().unwrap();
        let launch = launch(DESCRIBED, &request).unwrap();
        let variables = json!({"INTERLINGUA_MCP_URL": tools.endpoint().url, "INTERLINGUA_MCP_TOKEN": tools.token()});
        let server =
            json!({"command": "/bin/inter{file}lingua", "args": ["mcp"], "env": variables});
        let servers = json!({"mcpServers": {"interlingua": server}});
        let file = variable(&launch, "AT").unwrap();
        let written = std::fs::read_to_string(&file).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), servers);
        assert_eq!(variable(&launch, "SERVERS"), Some(servers.to_string()));
        let arguments = ["--config", &file, "--server=/bin/inter{file}lingua mcp", "{other}"];
        assert_eq!(launch.command.arguments, arguments);
        for (name, value) in tools.endpoint().variables() {
            assert_eq!(variable(&launch, name), Some(value));
        }
        assert!(variable(&launch, "NO_PROXY").unwrap().contains("127.0.0.1"));
        drop(launch);
        assert!(!Path::new(&file).exists());
    }

    /// Other users of the machine can read arguments, and files that are not private.
    #[tokio::test]
    #[cfg(unix)]
    async fn the_token_is_known_to_this_user_only() {
        use std::os::unix::fs::PermissionsExt;
        let request = request();
        let launch = launch(DESCRIBED, &request).unwrap();
        let token = request.client_tools.clone().unwrap().token().to_owned();
        assert!(!format!("{:?}", launch.command.arguments).contains(&token));
        let mode = launch.scratch.as_ref().unwrap().path().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
        let text = "command='sh'\ndialect='claude'\n[client-tools]\narguments=['{servers}']";
        let refused = Program::parse(text).unwrap_err();
        assert!(refused.contains("other users can read arguments"), "{refused}");
    }

    #[tokio::test]
    async fn without_tools_nothing_is_added() {
        let launch = launch(DESCRIBED, &Request::default()).unwrap();
        assert!(launch.command.arguments.is_empty() && launch.scratch.is_none());
        assert_eq!(variable(&launch, "INTERLINGUA_MCP_URL"), None);
        assert_eq!(variable(&launch, "INTERLINGUA_MCP_TOKEN").as_deref(), Some("another"));
    }

    #[tokio::test]
    async fn tools_that_a_program_cannot_learn_of_are_refused() {
        let refused = |text| launch(text, &request()).unwrap_err().to_string();
        for text in [
            "command='sh'\ndialect='claude'",
            "command='sh'\ndialect='claude'\nprompt='protocol'",
            "command='sh'\ndialect='acp'",
            "command='sh'\nscreen=true\n[client-tools]",
        ] {
            let refused = refused(text);
            assert!(refused.starts_with("sh cannot call tools of the client: add"), "{refused}");
        }
        let unnamed = Request { mcp_program: None, ..request() };
        let unnamed = launch(DESCRIBED, &unnamed).unwrap_err().to_string();
        assert!(unnamed.contains("Request::mcp_program"), "{unnamed}");
        // Its own configuration may name the server.
        assert!(launch("command='sh'\ndialect='claude'\n[client-tools]", &request()).is_ok());
        let text = "command='sh'\ndialect='claude'\n[client-tools]\narguments=['{file}']";
        assert!(Program::parse(text).unwrap_err().contains("add `file"));
    }

    /// The servers that a program is given in its protocol, and what is recorded of them.
    fn servers(text: &str, initialized: &str) -> Vec<Value> {
        let mut launch = launch(text, &request()).unwrap();
        launch.driver.prompt("do it", &mut Vec::new());
        let answer = format!(r#"{{"jsonrpc":"2.0","id":0,"result":{initialized}}}"#);
        let opened = replies(launch.driver.as_mut(), &answer).remove(0);
        assert_eq!(opened["method"], "session/new");
        assert_eq!(launch.client_tools.late, !opened["params"]["mcpServers"][0].is_null());
        opened["params"]["mcpServers"].as_array().unwrap().clone()
    }

    #[tokio::test]
    async fn a_program_that_speaks_acp_learns_of_the_tools_in_it() {
        let acp = "command = 'sh'\ndialect = 'acp'\nprompt = 'protocol'\n";
        let http = r#"{"agentCapabilities":{"mcpCapabilities":{"http":true}}}"#;
        let given = servers(acp, http);
        assert_eq!((given.len(), &given[0]["type"]), (1, &json!("http")));
        for initialized in ["{}", r#"{"agentCapabilities":{"mcpCapabilities":{"http":false}}}"#] {
            let given = servers(acp, initialized);
            assert_eq!((given.len(), &given[0]["args"]), (1, &json!(["mcp"])));
            assert_eq!(given[0]["env"][1]["name"], "INTERLINGUA_MCP_TOKEN");
        }
        // A table replaces it.
        assert_eq!(servers(&format!("{acp}[client-tools]"), http), [Value::Null; 0]);
    }
}
