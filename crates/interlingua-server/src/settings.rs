//! What the caller of the library decides.

use std::path::PathBuf;
use std::time::Duration;

use interlingua::dialect::{self, Dialect};
use interlingua_sessions::Clock;

use crate::security::{Token, TokenKey};

/// The settings of a server.
#[derive(Clone)]
#[non_exhaustive]
pub struct Settings {
    /// Who may send requests. Without a token, no request is accepted.
    pub tokens: Vec<Token>,
    /// Signs tokens for one session. Without it, none are issued.
    pub token_key: Option<TokenKey>,
    /// What callers may request for new sessions, and which stored ones they may prompt.
    pub allowed: Allowed,
    /// The agent API, which is served if [sandboxes](Allowed::sandboxes) are permitted.
    pub agent_api: AgentApi,
    /// Names under which the server may be addressed, besides those of the loopback interface.
    pub hosts: Vec<String>,
    /// Origins of pages that may send requests, such as `https://example.com`.
    pub origins: Vec<String>,
    /// The limits.
    pub limits: Limits,
    /// How streams are served.
    pub streams: Streams,
    /// How long a session is kept after its last use.
    pub session_ttl: Option<Duration>,
    /// Dialects of the caller's own, which can be read like all others.
    pub dialects: Vec<&'static Dialect>,
    /// Tells the time.
    pub clock: Clock,
}

/// What callers may request for new sessions, and which stored ones they may prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowed {
    /// The agents.
    pub agents: Vec<String>,
    /// The folders in which, or below which, an agent may work. A new session that names no folder works
    /// in the first one. A stored session without one takes no prompts: where it has worked is not known.
    pub folders: Vec<PathBuf>,
    /// The permission modes. A session that names none has the agent's default.
    pub modes: Vec<String>,
    /// The folder below which sessions of the agent API have folders of their own. No session of another
    /// interface may begin in it. Without one, the agent API is not served.
    pub sandboxes: Option<PathBuf>,
}

/// How the agent API is served: the HTTP contract of the Giselle API.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentApi {
    /// The agent of requests that name none; the first permitted one unless it is set.
    pub agent: Option<String>,
    /// The permission mode of its sessions. What an agent asks for in spite of it is denied, since clients
    /// of this contract cannot decide.
    pub mode: Option<String>,
    /// The address of the relay as browsers reach it. Without it, it is derived from the request.
    pub relay_url: Option<String>,
}

/// Limits of what one client can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The size of a request's body, except for commands, the agent API and translations.
    pub body_bytes: usize,
    /// The size of the body of a command, or of a request of the agent API that may answer a call. The answer of a
    /// client's tool may be long.
    pub command_bytes: usize,
    /// The size of the body of a translation. It is not kept in memory.
    pub translate_bytes: u64,
    /// How long the body of a translation may be silent.
    pub translate_silence: Duration,
    /// The size of the metadata of a session, which is stored with every change of it.
    pub metadata_bytes: usize,
    /// How many header fields a request may have.
    pub headers: usize,
    /// The size of all header fields of a request; at least 8 KiB.
    pub header_bytes: usize,
    /// How long the header of a request may take to arrive.
    pub header_timeout: Duration,
    /// How long the body of a request may take to arrive.
    pub body_timeout: Duration,
    /// How long a client may take nothing of a response. Its connection is then closed; a client that
    /// reads slowly keeps it.
    pub stall_timeout: Duration,
    /// How many connections may be open.
    pub connections: usize,
    /// How many requests a token may send in a second, on average and at once.
    pub requests_per_second: u32,
    /// How many live readers a token may have: long-polls, connections with server-sent events, and runs of the
    /// agent API.
    pub readers: usize,
}

/// How streams are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Streams {
    /// The size at which a response ends, and the reader has to ask for the next part.
    pub response_bytes: usize,
    /// The size of a batch of server-sent events.
    pub event_bytes: usize,
    /// How long a long-poll waits.
    pub long_poll: Duration,
    /// When a connection with server-sent events is closed, so that its client connects anew.
    pub sse_lifetime: Duration,
    /// How often a connection without news receives a comment.
    pub heartbeat: Duration,
    /// How many writers that have caught up are kept.
    pub cached_writers: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tokens: Vec::new(),
            token_key: None,
            allowed: Allowed::default(),
            agent_api: AgentApi::default(),
            hosts: Vec::new(),
            origins: Vec::new(),
            limits: Limits::default(),
            streams: Streams::default(),
            session_ttl: Some(Duration::from_secs(7 * 24 * 60 * 60)),
            dialects: Vec::new(),
            clock: std::sync::Arc::new(|| {
                let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                u64::try_from(now.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
            }),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 4 * 1024 * 1024,
            command_bytes: 16 * 1024 * 1024,
            translate_bytes: 1024 * 1024 * 1024,
            translate_silence: Duration::from_secs(600),
            metadata_bytes: 16 * 1024,
            headers: 100,
            header_bytes: 32 * 1024,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            stall_timeout: Duration::from_secs(300),
            connections: 8192,
            requests_per_second: 100,
            readers: 4096,
        }
    }
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            response_bytes: 1024 * 1024,
            event_bytes: 64 * 1024,
            long_poll: Duration::from_secs(20),
            sse_lifetime: Duration::from_secs(60),
            heartbeat: Duration::from_secs(15),
            cached_writers: 1024,
        }
    }
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { allowed, hosts, origins, limits, streams, .. } = self;
        let mut out = out.debug_struct("Settings");
        out.field("allowed", allowed).field("hosts", hosts).field("origins", origins);
        out.field("limits", limits).field("streams", streams).finish_non_exhaustive()
    }
}

impl Limits {
    /// The limits of a request that may have the answer of a client's tool in it.
    pub(crate) fn of_answers(self) -> Self {
        Self { body_bytes: self.command_bytes, ..self }
    }
}

impl Settings {
    /// The dialect with a name, if it can be written.
    pub(crate) fn written_dialect(&self, name: &str) -> Option<&'static Dialect> {
        let own = self.dialects.iter().copied().find(|dialect| dialect.name == name);
        own.or_else(|| dialect::find(name)).filter(|dialect| dialect.encoder.is_some())
    }

    /// The time, in milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> u64 {
        (self.clock)()
    }
}
