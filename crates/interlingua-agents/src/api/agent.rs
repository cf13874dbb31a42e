//! A model API as an agent: its settings, and how a session with it is prepared.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use interlingua::price::Prices;
use serde_json::Value;

use super::client_tools::ClientTools;
use super::failure::RetryPolicy;
use super::history::History;
use super::http::Connection;
use super::limits::Limits;
use super::mcp::{McpServer, Servers};
use super::model::{ApiKind, OfferedTool};
use super::resume::Earlier;
use super::session::Live;
use super::store::{RunRecorder, SessionStore, StoredRun};
use super::structured::AnswerSchema;
use super::tools::SessionTools;
use super::turns::{AgentLoop, Frozen, LoopSettings};
use crate::client_tool::ClientTool;
use crate::error::Error;
use crate::redaction::SHORTEST_KEY;
use crate::secret;
use crate::session::{Agent, Options, Starting};
use crate::tool;

/// The settings of an agent that is a model API.
#[derive(Debug, Clone)]
pub struct ApiSettings {
    /// The name of the agent, for the start of the session.
    pub name: &'static str,
    /// The API.
    pub api: ApiKind,
    /// The model.
    pub model: String,
    /// How the API is reached.
    pub connection: Connection,
    /// The working folder.
    pub folder: PathBuf,
    /// The system prompt. A resumed session keeps its own.
    pub system: String,
    /// How much the model should think, in the provider's words.
    pub effort: Option<String>,
    /// The limit of tokens of an answer.
    pub max_tokens: Option<u64>,
    /// The limits of a turn.
    pub limits: Limits,
    /// What models cost. [`Prices::builtin`] has the list prices.
    pub prices: Prices,
    /// When failed requests are repeated.
    pub retries: RetryPolicy,
    /// The JSON schema of the final answer, if it has to be structured.
    pub schema: Option<Value>,
    /// Older turns are summarised when the conversation exceeds the context window of the model.
    pub compact: bool,
    /// What the tools may do.
    pub tools: tool::Settings,
    /// The MCP servers whose tools are offered, too.
    pub mcp: Vec<McpServer>,
    /// The tools that the client of the session runs.
    pub client_tools: Vec<ClientTool>,
    /// Where the session is stored. Without it, it is not, or its host stores it.
    pub sessions: Option<Arc<dyn SessionStore>>,
    /// The session that is continued.
    pub earlier: Option<Earlier>,
}

/// An agent that is a model API.
#[derive(Debug)]
pub struct ApiAgent {
    settings: ApiSettings,
}

impl ApiAgent {
    /// An agent with these settings.
    pub fn new(settings: ApiSettings) -> Self {
        Self { settings }
    }
}

impl Agent for ApiAgent {
    fn start(self: Box<Self>, options: Options) -> Starting {
        Box::pin(async move {
            let mut settings = self.settings;
            settings.tools.folder.clone_from(&settings.folder);
            let keys = crate::agent::KEY_VARIABLES.iter().chain(&super::provider::KEY_VARIABLES);
            settings.tools.hidden_variables.extend(keys.map(|name| (*name).to_owned()));
            let headers = settings.connection.headers.iter();
            let headers = headers.flat_map(|(name, value)| secret::in_header(name, value));
            let secrets = settings.mcp.iter().flat_map(|server| server.transport.secrets());
            let of_servers: Vec<String> = secrets.map(str::to_owned).collect();
            let secrets = headers.chain([&*settings.connection.key]);
            let secrets: Vec<_> = secrets.chain(of_servers.iter().map(|it| &**it)).collect();
            settings.tools.hidden_variables.extend(revealing(std::env::vars_os(), &secrets));
            settings.tools.certificates.clone_from(&settings.connection.certificates);
            let mcp = std::mem::take(&mut settings.mcp);
            let servers = Servers::start(mcp, &settings.tools).await?;
            let (live, session) = Live::new(settings, servers, &of_servers, options)?;
            tokio::spawn(live.run());
            Ok(session)
        })
    }
}

/// The variables whose values contain a secret, whatever their names are. A value that is too short
/// for a key, such as `ollama`, may occur anywhere.
fn revealing(
    variables: impl Iterator<Item = (OsString, OsString)>,
    secrets: &[&str],
) -> Vec<String> {
    let secrets: Vec<_> =
        secrets.iter().filter(|secret| secret.chars().count() >= SHORTEST_KEY).collect();
    let reveals = |value: &OsString| {
        let value = value.to_string_lossy();
        secrets.iter().any(|secret| value.contains(**secret))
    };
    let found = variables.filter(|(_, value)| reveals(value));
    found.map(|(name, _)| name.to_string_lossy().into_owned()).collect()
}

/// What a session needs of its settings.
pub(super) struct Prepared {
    pub(super) name: &'static str,
    pub(super) agent: AgentLoop,
    pub(super) tools: Arc<SessionTools>,
    pub(super) client_tools: ClientTools,
    /// The names of the tools that are offered and can be run.
    pub(super) runnable: Vec<String>,
    pub(super) schema: Option<AnswerSchema>,
    pub(super) recorder: Option<RunRecorder>,
    /// What the user has to know at the start.
    pub(super) notices: Vec<String>,
}

impl ApiSettings {
    pub(super) fn is_resumed(&self) -> bool {
        self.earlier.is_some()
    }

    /// Prepares a session in a folder.
    pub(super) fn prepare(
        mut self,
        (servers, server_notices): (Servers, Vec<String>),
        folder: &Path,
        id_seed: u64,
    ) -> Result<Prepared, Error> {
        let cost_notice =
            self.limits.cost_notice(&self.prices, &self.model, crate::session::now_ms());
        self.tools.folder = folder.to_owned();
        let tools = SessionTools::new(tool::Toolbox::new(self.tools)?, servers);
        let client_tools = ClientTools::new(&self.client_tools)?;
        let schema = self.schema.map(AnswerSchema::new).transpose()?;
        let mut notices = tools.enforcement();
        notices.extend(server_notices);
        notices.extend(cost_notice);
        let answer_tool = schema.as_ref().map(AnswerSchema::tool);
        let added: Vec<_> = client_tools.offered().chain(answer_tool).collect();
        let (mut session, mut history, mut frozen) = (new_id(), History::default(), None);
        if let Some(earlier) = self.earlier {
            notices.extend(other_folder(&earlier, folder));
            let continued = earlier.continued(self.api, &self.model, &added, &client_tools);
            notices.extend(continued.losses);
            (history, frozen) = (continued.history, continued.frozen);
            session = continued.id.unwrap_or(session);
        }
        let available: Vec<_> = tools.offered().into_iter().chain(added).collect();
        if let Some(frozen) = &frozen {
            notices.extend(without_effect(frozen, &self.system, &available));
        }
        let frozen =
            frozen.unwrap_or_else(|| Frozen { system: self.system, tools: available.clone() });
        let runnable = runnable(&frozen, &available);
        notices.extend(missing_tools(&frozen, &runnable));
        let run =
            StoredRun { session: &session, agent: self.name, model: &self.model, folder, id_seed };
        let recorder = self
            .sessions
            .map(|sessions| sessions.open(&run).and_then(|log| RunRecorder::new(log, id_seed)));
        let recorder = recorder.transpose().map_err(Error::NotStored)?;
        let settings = LoopSettings {
            api: self.api,
            model: self.model,
            session,
            frozen,
            max_tokens: self.max_tokens,
            effort: self.effort,
            limits: self.limits,
            prices: self.prices,
            retries: self.retries,
            structured: schema.is_some(),
            compacts: self.compact,
        };
        Ok(Prepared {
            name: self.name,
            agent: AgentLoop::new(settings, history),
            tools: Arc::new(tools),
            client_tools,
            runnable,
            schema,
            recorder,
            notices,
        })
    }
}

/// The names of the offered tools that can be run. A resumed session offers what it always has.
fn runnable(frozen: &Frozen, available: &[OfferedTool]) -> Vec<String> {
    let is_available = |name: &str| available.iter().any(|tool| tool.name == name);
    let names = frozen.tools.iter().map(|tool| tool.name.clone());
    names.filter(|name| is_available(name)).collect()
}

fn missing_tools(frozen: &Frozen, runnable: &[String]) -> Option<String> {
    let names = frozen.tools.iter().map(|tool| &*tool.name);
    let missing: Vec<_> = names.filter(|name| !runnable.iter().any(|it| it == name)).collect();
    (!missing.is_empty()).then(|| {
        format!("calls of these tools of the earlier session fail now: {}", missing.join(", "))
    })
}

/// What a resumed session does not use of its settings, because it keeps what it began with.
fn without_effect(frozen: &Frozen, system: &str, available: &[OfferedTool]) -> Vec<String> {
    let mut notices = Vec::new();
    if frozen.system != system {
        notices.push(
            "the session keeps the system prompt and the instructions of the project with which it began; \
             the current ones have no effect"
                .to_owned(),
        );
    }
    let is_new = |tool: &&OfferedTool| !frozen.tools.iter().any(|it| it.name == tool.name);
    let new: Vec<_> = available.iter().filter(is_new).map(|tool| &*tool.name).collect();
    if !new.is_empty() {
        notices.push(format!(
            "the session began without these tools, so they are not offered: {}",
            new.join(", ")
        ));
    }
    notices
}

/// The system prompt of a resumed session names its folder.
fn other_folder(earlier: &Earlier, folder: &Path) -> Option<String> {
    let before = earlier.folder().filter(|before| Path::new(before) != folder)?;
    Some(format!(
        "the earlier session worked in {before}, and this one works in {}",
        folder.display()
    ))
}

/// A new id for a session.
pub(crate) fn new_id() -> String {
    let mut bytes = [0; 16];
    // Without randomness, the time and the process have to be enough.
    if getrandom::fill(&mut bytes).is_err() {
        let seed = u128::from(crate::session::fresh_seed());
        bytes = (seed << 64 | u128::from(std::process::id())).to_be_bytes();
    }
    let hex = |range: std::ops::Range<usize>| {
        let bytes = bytes.get(range).unwrap_or_default();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    format!("{}-{}-{}-{}-{}", hex(0..4), hex(4..6), hex(6..8), hex(8..10), hex(10..16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_with_a_key_is_found_by_its_value() {
        let variables = [
            ("MY_OWN_NAME", "sk-0123456789abcdef"),
            ("COMMAND", "curl -H 'x-api-key: sk-0123456789abcdef'"),
            ("HEADER", "Bearer token-of-a-header"),
            ("PATH", "/opt/ollama/bin"),
            ("HOME", "/home/a"),
        ];
        let variables =
            variables.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let secrets = ["sk-0123456789abcdef", "Bearer token-of-a-header", "ollama", ""];
        let found = revealing(variables.into_iter(), &secrets);
        assert_eq!(found, ["MY_OWN_NAME", "COMMAND", "HEADER"]);
    }
}
