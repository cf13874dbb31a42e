//! The arguments of `serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use interlingua_agents::permission::Mode;

use crate::arguments::{ModeName, seconds};
use crate::arguments_of_apis::OpenAiApi;
use crate::serve::ADDRESS;
use crate::serve::log::LogLevel;

/// Keep sessions with agents, and serve them to other programs over HTTP.
///
/// Every request needs a token: the one in the environment variable INTERLINGUA_TOKEN, those of a file
/// (--tokens), or one that is generated and shown once.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArguments {
    /// The address to listen on. Port 0 lets the system choose one.
    #[arg(long, value_name = "ADDRESS", default_value_t = ADDRESS)]
    pub(crate) listen: SocketAddr,
    /// Listen on an address that other machines can reach. Connections are not encrypted.
    #[arg(long)]
    pub(crate) public: bool,
    /// The file of the store [default: below the user's data folder].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) store: Option<PathBuf>,
    /// Keep sessions in memory only. They end with the server.
    #[arg(long, conflicts_with = "store")]
    pub(crate) memory: bool,
    /// Wait for the disk before an entry is served, so that none is lost if the machine loses its
    /// power. Otherwise the disk has it within 100 ms; commands are always on the disk first.
    #[arg(long, conflicts_with = "memory")]
    pub(crate) sync: bool,
    /// A file with a token per line, followed by `admin`, `owner NAME` or `session ID`.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) tokens: Option<PathBuf>,
    /// An agent that callers may start, by its name or the path of a .toml file; repeatable
    /// [default: all known agents].
    #[arg(long = "allow-agent", value_name = "AGENT")]
    pub(crate) agents: Vec<String>,
    /// A folder in which, or below which, agents may work; repeatable [default: the current folder].
    #[arg(long = "allow-folder", value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) folders: Vec<PathBuf>,
    /// A permission mode that callers may request; repeatable.
    #[arg(
        long = "allow-mode",
        value_name = "MODE",
        value_parser = ModeName,
        default_values = ["default", "accept-edits", "plan", "deny"]
    )]
    pub(crate) modes: Vec<Mode>,
    /// A name under which the server may be addressed, besides those of the loopback interface.
    #[arg(long = "host", value_name = "NAME")]
    pub(crate) hosts: Vec<String>,
    /// An origin of pages that may send requests, such as https://example.com; repeatable.
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    pub(crate) origins: Vec<String>,
    /// How many agents may be live at once. Further prompts wait.
    #[arg(long, value_name = "NUMBER", default_value_t = 64)]
    pub(crate) live: usize,
    /// How many seconds the agent of a session that rests is kept.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "600")]
    pub(crate) idle: Duration,
    /// How many seconds a session is kept after its last use.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "604800")]
    pub(crate) ttl: Option<Duration>,
    /// Serve the agent API too (docs/giselle.md). Its sessions work in folders of their own below this one,
    /// which is created. It should not be inside of a folder that callers may name (--allow-folder).
    #[arg(long = "agent-api", value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub(crate) agent_api: Option<PathBuf>,
    /// The agent of the agent API for requests that name none [default: the first one that is allowed].
    #[arg(long, value_name = "AGENT", requires = "agent_api")]
    pub(crate) agent_api_agent: Option<String>,
    /// The permission mode of sessions of the agent API, whose clients cannot decide: what an agent asks
    /// for in spite of it is denied. It has to be allowed (--allow-mode).
    #[arg(
        long,
        value_name = "MODE",
        value_parser = ModeName,
        requires = "agent_api",
        default_value = "accept-edits"
    )]
    pub(crate) agent_api_mode: Mode,
    /// The address of the relay as browsers reach it [default: from the request, with http].
    #[arg(long, value_name = "URL", requires = "agent_api")]
    pub(crate) relay_url: Option<String>,
    /// Which of OpenAI's APIs `openai-api` uses. Compatible servers have `chat`.
    #[arg(long, value_name = "API")]
    pub(crate) api: Option<OpenAiApi>,
    /// What is logged on standard error, as JSON lines: error, warn, info (every request) or debug. No
    /// log has tokens, prompts or anything that an agent printed.
    #[arg(long, value_name = "LEVEL", default_value = "warn")]
    pub(crate) log: LogLevel,
    /// A file with permission rules, the default mode and the time to answer.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  interlingua serve
  INTERLINGUA_TOKEN=$(openssl rand -hex 16) interlingua serve --allow-folder ~/projects
  interlingua serve --listen 127.0.0.1:0 --allow-agent codex --allow-mode default";
